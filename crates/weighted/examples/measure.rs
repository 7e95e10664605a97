//! How long a word takes.
//!
//! ```text
//! measure english OUT          writes a grammar of 10,000 rules and sentences of it into the folder OUT, and times them
//! measure linear               times texts of growing length under grammars that a deterministic parser could read
//! ```
//!
//! `english` writes `grammar.pcfg`, `sentences.txt` and `ours.json`; `bench/weighted/compare_genlm.py` calls it, and times the same words with genlm-grammar.

#![expect(clippy::print_stdout, reason = "an example that reports")]
#![expect(clippy::cast_precision_loss, clippy::cast_sign_loss, reason = "counts are small and positive")]

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};
use std::{env, error::Error, fs};

use maskwright_weighted::{Boolean, Options, Parser, Pcfg, Random, Real, Sampler, Semiring};

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["english", folder] => english(Path::new(folder)),
        ["linear"] => linear(),
        _ => Err("say `english FOLDER` or `linear`".into()),
    }
}

/// Phrases with agreement and attachment, and a lexicon of Zipf's law: the shape of a grammar that was read off a treebank.
fn english_grammar(rules: usize) -> String {
    let mut out = String::from(
        "S -> NP VP [0.8] | S CC S [0.05] | PP NP VP [0.1] | ADVP NP VP [0.05]\n\
         NP -> DT NBAR [0.45] | NNP [0.2] | NP PP [0.15] | PRP [0.1] | NP SBAR [0.05] | NP CC NP [0.05]\n\
         NBAR -> NN [0.6] | JJ NBAR [0.3] | NN NN [0.1]\n\
         VP -> VBD NP [0.4] | VBD [0.1] | VP PP [0.2] | VBD NP PP [0.1] | VBD SBAR [0.1] | ADVP VP [0.05] | VP CC VP [0.05]\n\
         PP -> IN NP\nSBAR -> WDT VP [0.5] | THAT S [0.5]\nADVP -> RB [0.8] | RB ADVP [0.2]\nTHAT -> that\n",
    );
    let classes = [
        ("NN", 0.4),
        ("VBD", 0.2),
        ("NNP", 0.15),
        ("JJ", 0.15),
        ("RB", 0.06),
        ("IN", 0.02),
        ("DT", 0.005),
        ("PRP", 0.005),
        ("CC", 0.005),
        ("WDT", 0.005),
    ];
    let phrases = 30;
    for (class, share) in classes {
        let words = (((rules - phrases) as f64 * share) as usize).max(3);
        let weights: Vec<f64> = (1..=words).map(|rank| 1.0 / rank as f64).collect();
        for (at, weight) in weights.iter().enumerate() {
            let arrow = if at == 0 { format!("{class} ->") } else { " |".to_owned() };
            // Every tenth word belongs to two classes.
            let word =
                if at % 10 == 9 { format!("w{}", at / 10) } else { format!("{}{at}", class.to_lowercase()) };
            let _ = write!(out, "{arrow} {word} [{weight}]");
        }
        out.push('\n');
    }
    out
}

fn english(folder: &Path) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(folder)?;
    let source = english_grammar(10_000);
    let options = Options { normalise: true, ..Options::default() };
    let grammar = Pcfg::parse(&source, &options).map_err(|remarks| remarks[0].render("english", &source))?;
    let sampler = Sampler::new(&grammar, 1_000)?;
    let mut random = Random::new(2026);
    let mut sentences = Vec::new();
    while sentences.len() < 200 {
        let words = sampler.sentence(&mut random)?;
        if (5..=25).contains(&words.len()) {
            sentences.push(words);
        }
    }
    fs::write(folder.join("grammar.pcfg"), grammar.to_string())?;
    fs::write(
        folder.join("sentences.txt"),
        sentences.iter().map(|words| words.join(" ") + "\n").collect::<String>(),
    )?;
    let begin = Instant::now();
    let mut parser = Parser::<Real>::new(&grammar)?;
    let building = begin.elapsed();
    let (mut times, mut logs) = (Vec::new(), Vec::new());
    for words in &sentences {
        parser.reset();
        for word in words {
            let begin = Instant::now();
            assert!(parser.step_word(word), "{words:?}");
            times.push(begin.elapsed());
        }
        logs.push(parser.sentence_logprob());
    }
    let mut asked = Vec::new();
    for words in sentences.iter().take(20) {
        parser.reset();
        for word in words {
            assert!(parser.step_word(word));
            let begin = Instant::now();
            assert!(!parser.next_terminal_distribution().terminals.is_empty());
            asked.push(begin.elapsed());
        }
    }
    println!("{} rules, tables in {building:.1?}, {} words", grammar.rules().len(), times.len());
    println!("a word: {}", percentiles(&mut times));
    println!("the distribution over all next words: {}", percentiles(&mut asked));
    let logs: Vec<String> = logs.iter().map(f64::to_string).collect();
    let mean = |times: &[Duration]| times.iter().sum::<Duration>().as_secs_f64() / times.len() as f64;
    let (word, distribution) = (mean(&times), mean(&asked));
    let report = format!(
        "{{\"word_s\": {word:e}, \"distribution_s\": {distribution:e}, \"sentence_logprobs\": [{}]}}\n",
        logs.join(", ")
    );
    fs::write(folder.join("ours.json"), report)?;
    Ok(())
}

fn percentiles(times: &mut [Duration]) -> String {
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    let mean = times.iter().sum::<Duration>() / times.len() as u32;
    format!(
        "mean {mean:.2?}, p50 {:.2?}, p95 {:.2?}, p99 {:.2?}, max {:.2?}",
        at(0.5),
        at(0.95),
        at(0.99),
        at(1.0)
    )
}

/// Grammars that a deterministic parser could read; each text is one word after the other, as often as asked.
const LINEAR: [(&str, &str, &[&str]); 5] = [
    ("left recursion", "S -> S a [0.9] | a [0.1]", &["a"]),
    ("right recursion", "S -> a S [0.9] | a [0.1]", &["a"]),
    ("right recursion by units", "S -> a T [0.9] | a [0.1]\nT -> U\nU -> S", &["a"]),
    (
        "lists of lists",
        "S -> \"[\" L \"]\"\nL -> S L [0.4] | x L [0.4] | ε [0.2]",
        &["[", "x", "x", "[", "x", "]"],
    ),
    ("ambiguous, for comparison", "S -> S S [0.4] | a [0.6]", &["a"]),
];

fn linear() -> Result<(), Box<dyn Error>> {
    println!("microseconds for each word in texts of so many words");
    for (name, source, words) in LINEAR {
        let grammar = Pcfg::parse(source, &Options::default()).map_err(|remarks| remarks[0].to_string())?;
        let lengths: &[usize] = if name.starts_with("ambiguous") {
            &[50, 100, 200]
        } else {
            &[1_000, 2_000, 4_000, 8_000, 16_000]
        };
        let real: Vec<String> = lengths.iter().map(|length| time::<Real>(&grammar, words, *length)).collect();
        let boolean: Vec<String> =
            lengths.iter().map(|length| time::<Boolean>(&grammar, words, *length)).collect();
        println!("{name:28} {lengths:?}  probability {}  yes or no {}", real.join(" "), boolean.join(" "));
    }
    Ok(())
}

fn time<S: Semiring>(grammar: &Pcfg, words: &[&str], length: usize) -> String {
    let Ok(mut parser) = Parser::<S>::new(grammar) else { return "-".into() };
    let mut best = f64::INFINITY;
    for _ in 0..3 {
        parser.reset();
        let begin = Instant::now();
        for word in words.iter().cycle().take(length) {
            assert!(parser.step_word(word));
        }
        best = best.min(begin.elapsed().as_secs_f64() * 1e6 / length as f64);
    }
    format!("{best:.2}")
}
