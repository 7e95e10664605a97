//! The effect of a grammar on a model's distribution.

use std::collections::BTreeMap;
use std::sync::Arc;

use maskwright_vocab::{TokenId, TokenMask, Vocabulary, VocabularyBuilder};
use maskwright_weighted::{
    Adapter, Boolean, ExactSampler, Random, Real, SampleError, SampleLimits, guide, log_mask_mass,
};

use crate::golden::grammar;

const END: TokenId = TokenId(2);

fn vocabulary() -> Arc<Vocabulary> {
    let mut builder = VocabularyBuilder::new();
    builder.token(TokenId(0), b"a").unwrap();
    builder.token(TokenId(1), b"b").unwrap();
    builder.special(END, "<end>").unwrap().eos(END);
    Arc::new(builder.finish().unwrap())
}

/// A model that writes three letters, each slightly more likely if it repeats the one before, and stops.
fn model(text: &[TokenId]) -> Vec<f64> {
    match text {
        [_, _, _, ..] => vec![0.0, 0.0, 1.0],
        [] => vec![0.4, 0.6, 0.0],
        [.., TokenId(0)] => vec![0.7, 0.3, 0.0],
        _ => vec![0.25, 0.75, 0.0],
    }
}

/// Returns the exact distribution over the texts that the grammar allows, and that of plain masking.
fn exact(source: &str) -> (BTreeMap<String, f64>, BTreeMap<String, f64>) {
    let grammar = grammar(source);
    let mut adapter = Adapter::<Boolean>::new(&grammar, vocabulary()).unwrap();
    let (mut given, mut masked) = (BTreeMap::new(), BTreeMap::new());
    for bits in 0..8u32 {
        let text: Vec<TokenId> = (0..3).map(|at| TokenId(bits >> at & 1)).chain([END]).collect();
        adapter.reset();
        let (mut plain, mut under_mask) = (1.0, 1.0);
        for (at, token) in text.iter().enumerate() {
            let chances = model(&text[..at]);
            let mask = adapter.allowed_token_mask();
            let left: f64 = mask.iter().map(|token| chances[token.0 as usize]).sum();
            plain *= chances[token.0 as usize];
            under_mask *= chances[token.0 as usize] / left;
            if !adapter.step_with_token(*token) {
                plain = 0.0;
                break;
            }
        }
        if plain > 0.0 {
            let name: String = text[..3].iter().map(|token| if token.0 == 0 { 'a' } else { 'b' }).collect();
            given.insert(name.clone(), plain);
            masked.insert(name, under_mask);
        }
    }
    let sum: f64 = given.values().sum();
    for chance in given.values_mut() {
        *chance /= sum;
    }
    (given, masked)
}

#[test]
fn rejection_with_a_memory_samples_what_the_model_would_write() {
    // Of the texts that begin with a, only one in four is allowed; of those that begin with b, all are.
    let source = "S -> a a b [0.5] | b X X [0.5]\nX -> a | b";
    let (given, masked) = exact(source);
    assert!((given["aab"] - masked["aab"]).abs() > 0.2, "masking should distort: {given:?} {masked:?}");
    let grammar = grammar(source);
    let mut adapter = Adapter::<Boolean>::new(&grammar, vocabulary()).unwrap();
    let mut sampler = ExactSampler::new();
    let mut random = Random::new(5);
    let count = 4_000u32;
    let mut seen: BTreeMap<String, f64> = BTreeMap::new();
    for _ in 0..count {
        let text = sampler.sample(model, &mut adapter, &mut random, SampleLimits::default()).unwrap();
        assert_eq!(text.last(), Some(&END));
        let name = text[..3].iter().map(|token| if token.0 == 0 { 'a' } else { 'b' }).collect();
        *seen.entry(name).or_default() += 1.0 / f64::from(count);
    }
    for (text, chance) in &given {
        // Four standard deviations.
        let room = 4.0 * (chance * (1.0 - chance) / f64::from(count)).sqrt();
        assert!((seen[text] - chance).abs() < room, "{text}: {} instead of {chance}", seen[text]);
    }
    assert!((seen["aab"] - masked["aab"]).abs() > 0.15);
    // By now everything that is not known to be invalid is valid, so nothing is rejected any more.
    let valid: f64 = 0.4 * 0.7 * 0.3 + 0.6;
    assert!((sampler.open_mass() - valid).abs() < 1e-9, "{}", sampler.open_mass());
    let before = sampler.attempts();
    for _ in 0..100 {
        sampler.sample(model, &mut adapter, &mut random, SampleLimits::default()).unwrap();
    }
    assert_eq!(sampler.attempts(), before + 100);
    assert!(before < u64::from(count) + 20, "{before} attempts");
}

/// A sampler that knows nothing is as exact as one that knows everything, only slower.
#[test]
fn what_has_been_learned_so_far_does_not_bias() {
    let grammar = grammar("S -> aab [0.5] | b X X [0.5]\nX -> a | b");
    let model = |text: &[TokenId]| if text.len() < 3 { vec![0.5, 0.5, 0.0] } else { vec![0.0, 0.0, 1.0] };
    let mut adapter = Adapter::<Boolean>::new(&grammar, vocabulary()).unwrap();
    let most = SampleLimits::default().prefixes;
    let cases =
        [(6_000, 1, 1, most), (1_000, 6, 2, most), (1, 6_000, 3, most), (1, 6_000, 4, 1), (1, 6_000, 5, 3)];
    let mut attempts = Vec::new();
    for (fresh, each, seed, prefixes) in cases {
        let limits = SampleLimits { prefixes, ..SampleLimits::default() };
        let mut random = Random::new(seed);
        let (mut seen, mut tries) = (0.0, 0);
        for _ in 0..fresh {
            let mut sampler = ExactSampler::new();
            for _ in 0..each {
                let text = sampler.sample(model, &mut adapter, &mut random, limits).unwrap();
                seen += f64::from(u8::from(text[0] == TokenId(0))) / 6_000.0;
            }
            tries += sampler.attempts();
        }
        // One of five equally likely texts, and four standard deviations.
        assert!((seen - 0.2).abs() < 4.0 * (0.16f64 / 6_000.0).sqrt(), "{seen} with {fresh} samplers");
        attempts.push(tries);
    }
    // With room for the first prefix only, the invalid texts that begin with `a` are found again and again.
    assert!(attempts[2] < 6_100 && attempts[3] > 7_000, "{attempts:?}");
}

#[test]
fn what_cannot_be_sampled_is_said() {
    let grammar = grammar("S -> a a a a");
    let mut adapter = Adapter::<Boolean>::new(&grammar, vocabulary()).unwrap();
    let mut sampler = ExactSampler::new();
    let limits = SampleLimits { attempts: 200, tokens: 10, ..SampleLimits::default() };
    let error = sampler.sample(model, &mut adapter, &mut Random::new(1), limits).unwrap_err();
    assert_eq!(error, SampleError::Impossible);
    let endless = |_: &[TokenId]| vec![1.0, 0.0, 0.0];
    let grammar = self::grammar("S -> a S [0.5] | b [0.5]");
    let mut adapter = Adapter::<Boolean>::new(&grammar, vocabulary()).unwrap();
    let error = ExactSampler::new().sample(endless, &mut adapter, &mut Random::new(1), limits).unwrap_err();
    assert_eq!(error, SampleError::Length(10));
}

#[test]
fn a_model_without_an_opinion_writes_as_the_grammar_does() {
    let grammar = grammar("S -> a S [0.3] | b [0.7]");
    let mut adapter = Adapter::<Real>::new(&grammar, vocabulary()).unwrap();
    let mut logits = [0.0f32; 4];
    assert_eq!(guide(&adapter, 1.0, &mut logits), 2);
    assert!(
        (f64::from(logits[0]).exp() - 0.3).abs() < 1e-6 && (f64::from(logits[1]).exp() - 0.7).abs() < 1e-6
    );
    assert_eq!(logits[2..], [f32::NEG_INFINITY; 2]);
    assert!(adapter.step_with_token(TokenId(1)));
    let mut logits = [0.5f32; 3];
    assert_eq!(guide(&adapter, 1.0, &mut logits), 1);
    assert_eq!(logits[2], 0.5);
    // Without strength only the mask is left.
    adapter.reset();
    let mut logits = [1.0f32, -2.0, 3.0];
    guide(&adapter, 0.0, &mut logits);
    assert_eq!(logits, [1.0, -2.0, f32::NEG_INFINITY]);
}

#[test]
fn the_mass_of_a_mask() {
    let mut mask = TokenMask::new(3);
    assert_eq!(log_mask_mass(&[0.0; 3], &mask), f64::NEG_INFINITY);
    mask.insert(TokenId(0));
    mask.insert(TokenId(2));
    let logits = [2.0f32, 1.0, f32::NEG_INFINITY];
    let wanted = (2f64.exp() / (2f64.exp() + 1f64.exp())).ln();
    assert!((log_mask_mass(&logits, &mask) - wanted).abs() < 1e-12);
}
