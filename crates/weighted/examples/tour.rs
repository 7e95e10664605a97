//! A tour of the crate, to be read from top to bottom and run with `cargo run -p maskwright-weighted --example tour`.

#![expect(clippy::print_stdout, reason = "an example that reports")]

use std::error::Error;
use std::sync::Arc;

use maskwright_vocab::{TokenId, VocabularyBuilder};
use maskwright_weighted::{
    Adapter, Count, ExactSampler, Options, Parser, Pcfg, Random, Real, SampleLimits, Sampler, Training,
    best_parse, train,
};

const ENGLISH: &str = r"
    S  -> NP VP
    NP -> kim [0.4] | sandy [0.3] | the N [0.2] | NP PP [0.1]
    N  -> dog | telescope
    VP -> sees NP [0.6] | VP PP [0.2] | sleeps [0.2]
    PP -> with NP
";

fn main() -> Result<(), Box<dyn Error>> {
    // 1. A grammar is text. Errors are reported with their place.
    let grammar =
        Pcfg::parse(ENGLISH, &Options::default()).map_err(|remarks| remarks[0].render("english", ENGLISH))?;
    println!("{grammar}");
    let wrong = "S -> a [0.5] | Verb [0.4]";
    for remark in Pcfg::parse(wrong, &Options::default()).err().unwrap_or_default() {
        println!("{}", remark.render("wrong", wrong));
    }

    // 2. Words are read one at a time. After each word, the probability of all texts with this prefix is known, and the
    //    distribution of the next word.
    let words = ["kim", "sees", "sandy", "with", "the", "telescope"];
    let mut parser = Parser::<Real>::new(&grammar)?;
    for word in words {
        assert!(parser.step_word(word), "{word} cannot come here");
        let next = parser.next_terminal_distribution();
        let likely = next.terminals.iter().max_by(|a, b| a.1.total_cmp(&b.1));
        let likely = likely
            .map(|(id, chance)| format!("{} with {chance:.2}", grammar.terminal(*id)))
            .unwrap_or_default();
        println!(
            "{word:10} prefix {:9.6}   end {:.2}   likeliest word {likely}",
            parser.prefix_logprob().exp(),
            next.end
        );
    }

    // 3. The sentence has two derivations: who has the telescope? This is the better one.
    let mut trees = Parser::<Count>::new(&grammar)?;
    assert!(words.iter().all(|word| trees.step_word(word)));
    println!("\n{} derivations; the best:", trees.sentence());
    if let Some(tree) = best_parse(&grammar, &words)? {
        print!("{}", tree.draw(&grammar));
    }

    // 4. Random sentences, and probabilities learned back from them.
    let sampler = Sampler::new(&grammar, 100)?;
    let mut random = Random::new(1);
    let sentences: Vec<Vec<String>> = (0..300).filter_map(|_| sampler.sentence(&mut random).ok()).collect();
    let flat = Pcfg::parse(
        &ENGLISH
            .replace(" [0.6]", "")
            .replace(" [0.2]", "")
            .replace(" [0.4]", "")
            .replace(" [0.3]", "")
            .replace(" [0.1]", ""),
        &Options::default(),
    )
    .map_err(|remarks| remarks[0].to_string())?;
    let trained = train(&flat, &sentences, &Training { rounds: 30, ..Training::default() })?;
    println!(
        "\nlearnt from {} sentences in {} rounds:\n{}",
        sentences.len(),
        trained.log_likelihoods.len() - 1,
        trained.grammar
    );

    // 5. Over tokens, which need not be words: sample what a model would write, given that it is a sentence.
    let mut vocabulary = VocabularyBuilder::new();
    for (id, token) in (0..).zip(["a", "b"]) {
        vocabulary.token(TokenId(id), token.as_bytes())?;
    }
    vocabulary.special(TokenId(2), "<end>")?.eos(TokenId(2));
    let small = Pcfg::parse("S -> aab [0.5] | b X X [0.5]\nX -> a | b", &Options::default())
        .map_err(|remarks| remarks[0].to_string())?;
    let mut adapter = Adapter::<Real>::new(&small, Arc::new(vocabulary.finish()?))?;
    let model = |text: &[TokenId]| if text.len() < 3 { vec![0.5, 0.5, 0.0] } else { vec![0.0, 0.0, 1.0] };
    let mut exact = ExactSampler::new();
    let mut aab = 0;
    for _ in 0..20_000 {
        let text = exact.sample(model, &mut adapter, &mut random, SampleLimits::default())?;
        aab += u32::from(text[0] == TokenId(0));
    }
    println!(
        "aab is one of five texts that the model likes equally: sampled {:.3}, a plain mask gives 0.5",
        f64::from(aab) / 20_000.0
    );
    Ok(())
}
