//! Measures what a vocabulary costs: `cargo run --release --example measure -- tokenizer.json`.
#![expect(clippy::print_stdout, reason = "this program prints its measurements")]

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use maskwright_tokenizers::{Error, load};
use maskwright_vocab::{ByteClasses, ClassTrie, TokenId, Trie, Vocabulary, VocabularyBuilder};

fn main() -> Result<(), Error> {
    for path in std::env::args().skip(1) {
        let (took, tokenizer) = timed(1, || load(&path));
        let tokenizer = tokenizer?;
        println!("{path}: {}, loaded in {}", tokenizer.format(), ms(took));
        measure(tokenizer.vocabulary());
        let text = "{\"name\": \"Ada Lovelace\", \"born\": [1815, 12, 10], \"naïve\": \"日本語 😀\"}";
        let (first, tokens) = timed(1, || tokenizer.encode(text));
        match tokens {
            Ok(tokens) => println!("  first encode {}: {} tokens", ms(first), tokens.len()),
            Err(error) => println!("  {error}"),
        }
    }
    Ok(())
}

fn measure(vocabulary: &Arc<Vocabulary>) {
    let tokens: Vec<(TokenId, &[u8])> = vocabulary.ordinary().collect();
    let text: usize = tokens.iter().map(|(_, bytes)| bytes.len()).sum();
    println!(
        "  {} tokens of {} ids, {} ordinary with {text} bytes, longest {}, EOS {:?}",
        vocabulary.len(),
        vocabulary.size(),
        tokens.len(),
        vocabulary.max_token_bytes(),
        vocabulary.eos().iter().map(|&id| vocabulary.special_name(id)).collect::<Vec<_>>()
    );
    let pairs = || tokens.iter().map(|(id, bytes)| (*bytes, id.0));
    let (took, trie) = timed(20, || Trie::build(pairs()));
    println!("  trie: {} nodes, {}, {}", trie.len(), kb(trie.heap_bytes()), ms(took));
    for (name, classes) in [("merged", ByteClasses::merged()), ("split", ByteClasses::split())] {
        let (took, classes) = timed(20, || ClassTrie::build(&trie, classes));
        let bytes = classes.trie().heap_bytes();
        println!("  class trie, letters {name}: {} nodes, {}, {}", classes.trie().len(), kb(bytes), ms(took));
    }
    let (took, again) = timed(5, || rebuild(vocabulary));
    println!("  whole vocabulary: {}, {}", kb(again.heap_bytes()), ms(took));
    let mut file = Vec::new();
    let (took, saved) = timed(1, || vocabulary.save(&mut file));
    if let Err(error) = saved {
        println!("  cannot save: {error}");
    }
    let (load, loaded) = timed(20, || Vocabulary::load(&file));
    let same = loaded.is_ok_and(|loaded| loaded.fingerprint() == vocabulary.fingerprint());
    println!("  saved: {}, {}; loaded in {}, the same: {same}", kb(file.len()), ms(took), ms(load));
}

fn rebuild(vocabulary: &Vocabulary) -> Vocabulary {
    let mut builder = VocabularyBuilder::new();
    for (id, bytes) in vocabulary.ordinary() {
        builder.token(id, bytes).expect("it was accepted before");
    }
    for (id, name) in vocabulary.specials() {
        builder.special(id, name).expect("it was accepted before");
    }
    for &id in vocabulary.eos() {
        builder.eos(id);
    }
    builder.size(vocabulary.size());
    builder.finish().expect("it was accepted before")
}

/// The time that this thread has spent on a processor, where the system tells it: on a busy machine that
/// is what the work costs.
fn cpu_time() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}

/// The average time of several runs, and the last result. The system counts time in steps of some
/// milliseconds, so short work needs many runs.
fn timed<T>(runs: u32, mut work: impl FnMut() -> T) -> (Duration, T) {
    let (start, before) = (Instant::now(), cpu_time());
    let mut result = work();
    for _ in 1..runs {
        result = work();
    }
    let took =
        cpu_time().zip(before).map_or_else(|| start.elapsed(), |(now, before)| now.saturating_sub(before));
    (took / runs, result)
}

fn ms(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1e3)
}

fn kb(bytes: usize) -> String {
    format!("{} KB", bytes / 1024)
}
