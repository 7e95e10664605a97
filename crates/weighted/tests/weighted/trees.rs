//! Best derivations and expected counts.

use maskwright_oracle::generate::Rng;
use maskwright_weighted::{
    Label, Options, Parser, Pcfg, Random, Real, Sampler, TerminalId, Training, best_parse, expected_counts,
    train,
};

use crate::golden::grammar;
use crate::grammars::random;
use crate::twin::Twin;

/// Returns random texts of a grammar, as words, none longer than six.
fn texts(grammar: &Pcfg, seed: u64) -> Vec<Vec<String>> {
    let sampler = Sampler::new(grammar, 40).unwrap();
    let mut random = Random::new(seed);
    let short = |text: &Vec<String>| text.len() <= 6;
    (0..12).filter_map(|_| sampler.sentence(&mut random).ok()).filter(short).collect()
}

fn ids(grammar: &Pcfg, words: &[String]) -> Vec<TerminalId> {
    words.iter().map(|word| grammar.literal(word).unwrap()).collect()
}

#[test]
fn best_trees_are_derivations_and_none_is_better() {
    let mut looked = 0;
    for seed in 0..120 {
        let (source, grammar) = random(&mut Rng::new(seed));
        let twin = Twin::new(&grammar, true);
        for words in texts(&grammar, seed) {
            let tree = best_parse(&grammar, &words).unwrap().unwrap_or_else(|| panic!("{source}\n{words:?}"));
            let best = twin.answer(&ids(&grammar, &words)).sentence;
            let found = tree.log_probability.exp();
            assert!(
                (found - best).abs() <= 1e-12,
                "seed {seed}: {found} instead of {best}\n{source}\n{words:?}"
            );
            if !grammar.warnings().is_empty() {
                continue;
            }
            let product: f64 = tree.rules().iter().map(|rule| grammar.rule(*rule).probability).product();
            assert!((product - found).abs() <= 1e-12, "seed {seed}: {source}\n{}", tree.draw(&grammar));
            let word = |node: &maskwright_weighted::Node| match &node.label {
                Label::Word(word) => Some(word.clone()),
                _ => None,
            };
            assert_eq!(tree.nodes().iter().filter_map(word).collect::<Vec<_>>(), words, "{source}");
            looked += 1;
        }
    }
    assert!(looked > 100, "only {looked} trees");
}

#[test]
fn trees_are_drawn() {
    let grammar =
        grammar("S -> NP VP\nNP -> \"Alice\" | \"<b>\"\nVP -> sleeps Adv\nAdv -> ε [0.5] | well [0.5]");
    let tree = best_parse(&grammar, &["Alice", "sleeps"]).unwrap().unwrap();
    assert_eq!(tree.brackets(&grammar), "(S (NP Alice) (VP sleeps (Adv ε)))");
    assert_eq!(tree.draw(&grammar), "S\n├─ NP\n│  └─ Alice\n└─ VP\n   ├─ sleeps\n   └─ Adv\n      └─ ε\n");
    let other = best_parse(&grammar, &["<b>", "sleeps", "well"]).unwrap().unwrap();
    let svg = other.svg(&grammar);
    assert!(svg.starts_with("<svg") && svg.contains("&lt;b&gt;") && !svg.contains("<b>"), "{svg}");
    assert_eq!(svg.matches("<line").count(), other.nodes().len() - 1);
}

#[test]
fn patterns_that_may_be_empty_leave_no_trace_in_trees() {
    let grammar = grammar("S -> /[0-9]*/ x");
    let tree = best_parse(&grammar, &["12", "x"]).unwrap().unwrap();
    assert_eq!(tree.brackets(&grammar), "(S 12 x)");
    let tree = best_parse(&grammar, &["x"]).unwrap().unwrap();
    assert_eq!(tree.brackets(&grammar), "(S x)");
}

#[test]
fn a_deep_tree_needs_no_deep_stack() {
    let grammar = grammar("S -> a S [0.5] | a [0.5]");
    let words = vec!["a"; 2_000];
    let tree = best_parse(&grammar, &words).unwrap().unwrap();
    assert_eq!(tree.nodes().len(), 4_000);
    assert!(tree.brackets(&grammar).ends_with(&")".repeat(2_000)));
}

/// Returns the derivative of the log probability by the logarithm of one rule's weight, when the weights of its symbol
/// are then normalized.
fn slope(grammar: &Pcfg, rule: usize, words: &[String]) -> f64 {
    let step = 1e-5;
    let at = |factor: f64| {
        let mut weights: Vec<f64> = grammar.rules().iter().map(|rule| rule.probability).collect();
        weights[rule] *= factor;
        let changed = grammar.with_probabilities(&weights).unwrap();
        let mut parser = Parser::<Real>::new(&changed).unwrap();
        assert!(words.iter().all(|word| parser.step_word(word)));
        parser.sentence_logprob()
    };
    (at(f64::exp(step)) - at(f64::exp(-step))) / (2.0 * step)
}

#[test]
fn expected_counts_are_derivatives() {
    let mut looked = 0;
    for seed in 0..80 {
        let (source, grammar) = random(&mut Rng::new(seed));
        if !grammar.warnings().is_empty() {
            continue;
        }
        for words in texts(&grammar, seed).into_iter().take(3) {
            let found = expected_counts(&grammar, &words).unwrap().unwrap();
            let counts = found.rules;
            // The chart that keeps everything uses no shortcuts; the other one does.
            let mut parser = Parser::<Real>::new(&grammar).unwrap();
            assert!(words.iter().all(|word| parser.step_word(word)));
            assert!(
                (parser.sentence_logprob() - found.log_probability).abs() < 1e-10,
                "seed {seed}\n{source}{words:?}"
            );
            for (number, rule) in grammar.rules().iter().enumerate() {
                let all: f64 = grammar
                    .rules()
                    .iter()
                    .zip(&counts)
                    .filter(|(other, _)| other.left == rule.left)
                    .map(|(_, c)| c)
                    .sum();
                let (wanted, got) =
                    (slope(&grammar, number, &words), counts[number] - rule.probability * all);
                assert!(
                    (wanted - got).abs() < 1e-6 * (1.0 + all),
                    "seed {seed}, rule {number}: {got} instead of {wanted}\n{source}{words:?}"
                );
                looked += 1;
            }
        }
    }
    assert!(looked > 300, "only {looked} rules");
}

#[test]
fn counts_add_up_over_trees() {
    // Two trees of a a a, each with two S S and three a.
    let grammar = grammar("S -> S S [0.4] | A [0.6]\nA -> a");
    let counts = expected_counts(&grammar, &["a", "a", "a"]).unwrap().unwrap().rules;
    for (count, wanted) in counts.iter().zip([2.0, 3.0, 3.0]) {
        assert!((count - wanted).abs() < 1e-12, "{counts:?}");
    }
    assert_eq!(expected_counts(&grammar, &["a", "b"]).unwrap(), None);
}

#[test]
fn training_finds_what_the_sentences_came_from() {
    let truth = grammar("S -> a S b [0.3] | S S [0.1] | c [0.6]");
    let sampler = Sampler::new(&truth, 200).unwrap();
    let mut random = Random::new(11);
    let sentences: Vec<Vec<String>> = (0..400).filter_map(|_| sampler.sentence(&mut random).ok()).collect();
    let start = grammar("S -> a S b [0.1] | S S [0.3] | c [0.6]");
    let trained = train(&start, &sentences, &Training { rounds: 20, ..Training::default() }).unwrap();
    for pair in trained.log_likelihoods.windows(2) {
        assert!(pair[1] >= pair[0] - 1e-7, "{:?}", trained.log_likelihoods);
    }
    for (rule, truth) in trained.grammar.rules().iter().zip(truth.rules()) {
        assert!((rule.probability - truth.probability).abs() < 0.06, "{}", trained.grammar);
    }
    let error = train(&start, &[vec!["x".into()]], &Training::default()).unwrap_err();
    assert!(error.message.contains("sentence 1 is not derived"), "{error}");
}

#[test]
fn training_with_a_prior_keeps_a_chance_for_what_was_not_seen() {
    let start = Pcfg::parse("S -> a | b", &Options::default()).unwrap();
    let sentences = vec![vec!["a".to_owned()]];
    let how = Training { rounds: 3, prior: 0.5, ..Training::default() };
    let trained = train(&start, &sentences, &how).unwrap();
    assert!((trained.grammar.rules()[1].probability - 0.25).abs() < 1e-12, "{}", trained.grammar);
    let plain = train(&start, &sentences, &Training::default()).unwrap();
    assert_eq!(plain.grammar.rules()[1].probability, 0.0);
}
