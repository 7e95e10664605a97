//! Measures the time per word, and of the scores of the tokens that may come next.
//!
//! ```text
//! word_times english OUT          writes a grammar of 10,000 rules and sentences of it into the folder OUT, and times them
//! word_times scores TOKENIZER     times the scores of 64 allowed tokens at every place of random sentences, under several grammars
//! word_times linear [FILE.svg]  times texts of growing length under grammars that a deterministic parser could read, and draws it
//! ```
//!
//! `english` writes `grammar.pcfg`, `sentences.txt` and `ours.json`. `bench/weighted/compare_genlm.py` calls it, and
//! measures the same words with genlm-grammar.

#![expect(clippy::print_stdout, reason = "an example that reports")]
#![expect(clippy::cast_precision_loss, clippy::cast_sign_loss, reason = "counts are small and positive")]

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};
use std::{env, error::Error, fs};

use maskwright::{Compiler, Constraint, TokenId};
use maskwright_tokenizers::Tokenizer;
use maskwright_weighted::{Boolean, Guidance, Options, Parser, Pcfg, Random, Real, Sampler, Semiring};

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["english", folder] => english(Path::new(folder)),
        ["scores", tokenizer] => scores(&maskwright_tokenizers::load(tokenizer)?),
        ["linear"] => linear(None),
        ["linear", svg] => linear(Some(Path::new(svg))),
        _ => Err("say `english FOLDER`, `scores TOKENIZER`, `linear` or `linear FILE.svg`".into()),
    }
}

/// Generates phrases with agreement and attachment, and a lexicon that follows Zipf's law: the shape of a grammar read
/// off a treebank. `before` is put before every word.
fn english_grammar(rules: usize, before: &str) -> String {
    let mut out = String::from(
        "S -> NP VP [0.8] | S CC S [0.05] | PP NP VP [0.1] | ADVP NP VP [0.05]\n\
         NP -> DT NBAR [0.45] | NNP [0.2] | NP PP [0.15] | PRP [0.1] | NP SBAR [0.05] | NP CC NP [0.05]\n\
         NBAR -> NN [0.6] | JJ NBAR [0.3] | NN NN [0.1]\n\
         VP -> VBD NP [0.4] | VBD [0.1] | VP PP [0.2] | VBD NP PP [0.1] | VBD SBAR [0.1] | ADVP VP [0.05] | VP CC VP [0.05]\n\
         PP -> IN NP\nSBAR -> WDT VP [0.5] | THAT S [0.5]\nADVP -> RB [0.8] | RB ADVP [0.2]\n",
    );
    let _ = writeln!(out, "THAT -> \"{before}that\"");
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
            let _ = write!(out, "{arrow} \"{before}{word}\" [{weight}]");
        }
        out.push('\n');
    }
    out
}

fn english(folder: &Path) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(folder)?;
    let source = english_grammar(10_000, "");
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

/// The grammars of docs/weighted.md, as texts: with spaces between words.
const TEXTS: [(&str, &str); 5] = [
    ("names", "S -> N \" sleeps\"\nN -> \"Alice\" [0.9] | \"Bob\" [0.1]"),
    (
        "attachment",
        "S -> NP VP\nNP -> \" kim\" [0.5] | \" sandy\" [0.3] | NP PP [0.2]\n\
         VP -> \" sees\" NP [0.7] | VP PP [0.3]\nPP -> \" with\" NP",
    ),
    ("nested", "S -> a S b [0.4] | S S [0.1] | c [0.5]"),
    (
        "phrases, a pattern",
        "S -> NP VP [0.9] | S \" and\" S [0.1]\nNP -> \" Kim\" [1/2] | Det N [1/2]\nVP -> V NP [0.6] | V [0.4]\n\
         Det -> \" the\" | \" a\" | ε\nN -> / [a-z]+/\nV -> \" sees\" [0.7] | \" hears\" [0.3]",
    ),
    (
        "JSON, patterns",
        "S -> \"{\" Name \",\" Age \"}\" [0.7] | \"{\" Name \"}\" [0.3]\nName -> \"\\\"name\\\":\" String\n\
         Age -> \"\\\"age\\\":\" /[1-9][0-9]{0,2}/\n\
         String -> \"\\\"Alice\\\"\" [0.5] | \"\\\"Al\\\"\" [0.2] | /\"[a-z ]{0,12}\"/ [0.3]",
    ),
];

/// The number of tokens that are scored.
const SCORED: usize = 64;

/// At every token of random sentences: draws 64 of the allowed tokens, or takes all if there are fewer, and measures
/// their scores; and then the complete work on a row of logits.
fn scores(tokenizer: &Tokenizer) -> Result<(), Box<dyn Error>> {
    let compiler = Compiler::new(tokenizer.vocabulary().clone());
    println!(
        "{} tokens in the vocabulary; scores of at most {SCORED} allowed ones",
        compiler.vocabulary().size()
    );
    let english = english_grammar(10_000, " ");
    let options = Options { normalise: true, ..Options::default() };
    for (name, source) in TEXTS.into_iter().chain([("English, 9,991 rules", &*english)]) {
        let grammar = Pcfg::parse(source, &options).map_err(|remarks| remarks[0].render(name, source))?;
        let constraint = Constraint::pcfg(grammar.to_string());
        let compiled = compiler.compile(&constraint)?;
        let weights = compiled.remarks().weights.clone().ok_or("a weighted grammar has weights")?;
        let (sampler, mut random) = (Sampler::new(&grammar, 1_000)?, Random::new(2026));
        let (mut scoring, mut weighing, mut full, mut scored) = (Vec::new(), Vec::new(), Vec::new(), 0);
        while scoring.len() < 3_000 {
            let text = sampler.sentence(&mut random)?.concat();
            let mut matcher = compiled.matcher();
            let mut scorer = weights.scorer(compiler.vocabulary().clone());
            for token in tokenizer.encode(&text)? {
                let mut logits: Vec<f32> = vec![f32::NEG_INFINITY; compiler.vocabulary().size()];
                let mut allowed: Vec<(f64, TokenId)> =
                    matcher.mask()?.iter().map(|token| (random.unit(), token)).collect();
                for (logit, token) in &allowed {
                    logits[token.0 as usize] = *logit as f32;
                }
                allowed.sort_by(|a, b| b.0.total_cmp(&a.0));
                let tokens: Vec<TokenId> = allowed.iter().take(SCORED).map(|entry| entry.1).collect();
                let (found, time) = timed(|| scorer.scores(&tokens));
                let found = found?;
                scoring.push(time);
                assert!(found.iter().all(|score| score.is_finite()), "{text}");
                scored += found.len();
                full.extend(scoring.last().filter(|_| found.len() == SCORED));
                let (weighed, time) = timed(|| scorer.weigh(&mut logits, &Guidance::default()));
                weighed?;
                weighing.push(time);
                matcher.accept(token)?;
                scorer.accept(token)?;
            }
        }
        println!("{name}: {:.1} tokens a time", scored as f64 / scoring.len() as f64);
        println!("  scores {}", percentiles(&mut scoring));
        if !full.is_empty() {
            println!("  of 64  {}, {} places", percentiles(&mut full), full.len());
        }
        println!("  a row  {}", percentiles(&mut weighing));
    }
    Ok(())
}

/// Runs something and returns its time, without the time in which this thread waited for a processor. On a busy machine
/// the upper percentiles would show nothing else.
fn timed<T>(what: impl FnOnce() -> T) -> (T, Duration) {
    let before = waited();
    let begin = Instant::now();
    let done = what();
    let time = begin.elapsed();
    (done, time.saturating_sub(waited().saturating_sub(before)))
}

/// Returns how long this thread has waited for a processor since it began. Only Linux reports it; elsewhere nothing is
/// subtracted.
fn waited() -> Duration {
    let told = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = told.split(' ').nth(1).and_then(|field| field.parse().ok());
    Duration::from_nanos(nanoseconds.unwrap_or(0))
}

/// Grammars that a deterministic parser could read. Each text repeats its words as often as required.
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

fn linear(svg: Option<&Path>) -> Result<(), Box<dyn Error>> {
    println!("microseconds for each word in texts of so many words");
    let mut curves = Vec::new();
    for (name, source, words) in LINEAR {
        let grammar = Pcfg::parse(source, &Options::default()).map_err(|remarks| remarks[0].to_string())?;
        let lengths: &[usize] = if name.starts_with("ambiguous") {
            &[50, 100, 200]
        } else {
            &[1_000, 2_000, 4_000, 8_000, 16_000]
        };
        let mut real = Vec::new();
        let mut boolean = Vec::new();
        for &length in lengths {
            real.push((length as f64, time::<Real>(&grammar, words, length)?));
            boolean.push((length as f64, time::<Boolean>(&grammar, words, length)?));
        }
        println!("{name:28} {lengths:?}  probability {}  yes or no {}", shown(&real), shown(&boolean));
        curves.push((name, real));
    }
    if let Some(path) = svg {
        fs::write(path, plot(&curves))?;
    }
    Ok(())
}

fn time<S: Semiring>(grammar: &Pcfg, words: &[&str], length: usize) -> Result<f64, Box<dyn Error>> {
    let mut parser = Parser::<S>::new(grammar).map_err(|error| error.to_string())?;
    let mut best = f64::INFINITY;
    for _ in 0..3 {
        parser.reset();
        let begin = Instant::now();
        for word in words.iter().cycle().take(length) {
            assert!(parser.step_word(word));
        }
        best = best.min(begin.elapsed().as_secs_f64() * 1e6 / length as f64);
    }
    Ok(best)
}

fn shown(points: &[(f64, f64)]) -> String {
    points.iter().map(|(_, micros)| format!("{micros:.2}")).collect::<Vec<_>>().join(" ")
}

/// Plots the time per word over the length of the text, both on logarithmic scales: linear total time is a horizontal
/// line.
fn plot(curves: &[(&str, Vec<(f64, f64)>)]) -> String {
    const COLORS: [&str; 6] = ["#0f766e", "#b45309", "#6d28d9", "#be123c", "#1d4ed8", "#4d7c0f"];
    let x = |length: f64| 60.0 + (length / 50.0).log2() / (16_000.0_f64 / 50.0).log2() * 480.0;
    let y = |micros: f64| 280.0 - (micros / 0.1).log10() / 4.0 * 240.0;
    let mut out = String::from(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 780 320\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"780\" height=\"320\" fill=\"white\"/>\n<text x=\"60\" y=\"20\">microseconds for each word, by the number of words</text>\n",
    );
    for power in -1..=3 {
        let (micros, at) = (10_f64.powi(power), y(10_f64.powi(power)));
        let _ = writeln!(
            out,
            "<path d=\"M60 {at:.0}H540\" stroke=\"#ddd\"/><text x=\"52\" y=\"{:.0}\" text-anchor=\"end\">{micros}</text>",
            at + 4.0
        );
    }
    for length in [50, 200, 1_000, 4_000, 16_000] {
        let _ = writeln!(
            out,
            "<text x=\"{:.0}\" y=\"300\" text-anchor=\"middle\">{length}</text>",
            x(f64::from(length))
        );
    }
    for (number, (name, points)) in curves.iter().enumerate() {
        let color = COLORS[number % COLORS.len()];
        let line: Vec<String> =
            points.iter().map(|(length, micros)| format!("{:.1},{:.1}", x(*length), y(*micros))).collect();
        let _ = writeln!(
            out,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"2\"/>",
            line.join(" ")
        );
        let name = name.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        let _ = writeln!(out, "<text x=\"556\" y=\"{}\" fill=\"{color}\">{name}</text>", 60 + 20 * number);
    }
    out + "</svg>\n"
}
