//! Compares the sampler with a simple implementation that sorts everything, and checks the promises of the steps.

#![allow(clippy::cast_sign_loss, clippy::float_cmp, reason = "positive and exact numbers")]

use super::*;

/// A small generator for the tests: numbers of a position.
struct Chance(u64);

impl Chance {
    fn number(&mut self) -> f64 {
        self.0 += 1;
        Rng::new(Some(99), 0).at(self.0)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.number() * limit as f64) as usize
    }

    fn between(&mut self, least: f32, most: f32) -> f32 {
        least + (most - least) * self.number() as f32
    }

    fn maybe(&mut self) -> bool {
        self.number() < 0.5
    }
}

/// A direct implementation of the module's table, without regard to speed.
fn slow(
    params: &Sampling,
    prompt: &[u32],
    answer: &[u32],
    logits: &[f32],
    mask: Option<&[u32]>,
    chance: f64,
) -> Option<u32> {
    let mut pairs: Vec<(u32, f32)> = (0..).zip(logits.iter().copied()).collect();
    if let Some(words) = mask {
        pairs.retain(|(id, _)| words.get(*id as usize / 32).is_some_and(|word| word >> (id % 32) & 1 == 1));
    }
    pairs.retain(|(_, logit)| logit.is_finite());
    for (id, logit) in &mut pairs {
        let count = answer.iter().filter(|token| *token == id).count();
        if count > 0 || prompt.contains(id) {
            *logit = if *logit > 0.0 {
                *logit / params.repetition_penalty
            } else {
                *logit * params.repetition_penalty
            };
        }
        if count > 0 {
            *logit -= params.frequency_penalty * count as f32 + params.presence_penalty;
        }
        for (token, bias) in &params.logit_bias {
            if token.0 == *id {
                *logit += bias;
            }
        }
    }
    pairs.sort_by(|left, right| right.1.partial_cmp(&left.1).unwrap().then(left.0.cmp(&right.0)));
    let best = pairs.first()?.1;
    if params.temperature == 0.0 {
        return Some(pairs[0].0);
    }
    for (_, logit) in &mut pairs {
        *logit = (*logit - best) / params.temperature;
    }
    let best = 0.0;
    if params.top_k > 0 {
        pairs.truncate(params.top_k as usize);
    }
    let weight = |logit: f32| f64::from((logit - best).exp());
    let sum_by_id = |pairs: &[(u32, f32)]| {
        let mut by_id = pairs.to_vec();
        by_id.sort_by_key(|(id, _)| *id);
        by_id.iter().map(|(_, logit)| weight(*logit)).sum::<f64>()
    };
    if params.top_p < 1.0 {
        let goal = f64::from(params.top_p) * sum_by_id(&pairs);
        let mut sum = 0.0;
        let mut kept = Vec::new();
        for pair in &pairs {
            kept.push(*pair);
            sum += weight(pair.1);
            if sum >= goal {
                break;
            }
        }
        pairs = kept;
    }
    pairs.retain(|(_, logit)| weight(*logit) >= f64::from(params.min_p));
    let goal = chance * sum_by_id(&pairs);
    pairs.sort_by_key(|(id, _)| *id);
    let mut sum = 0.0;
    for (id, logit) in &pairs {
        sum += weight(*logit);
        if sum > goal {
            return Some(*id);
        }
    }
    pairs.iter().rev().find(|(_, logit)| weight(*logit) > 0.0).map(|(id, _)| *id)
}

fn random_params(chance: &mut Chance) -> Sampling {
    let pick = |chance: &mut Chance, off: f32, least: f32, most: f32| {
        if chance.maybe() { off } else { chance.between(least, most) }
    };
    Sampling {
        temperature: pick(chance, 0.0, 0.05, 3.0),
        top_k: if chance.maybe() { 0 } else { 1 + chance.below(50) as u32 },
        top_p: pick(chance, 1.0, 0.0, 1.0),
        min_p: pick(chance, 0.0, 0.0, 0.4),
        repetition_penalty: pick(chance, 1.0, 0.5, 2.0),
        frequency_penalty: pick(chance, 0.0, -2.0, 2.0),
        presence_penalty: pick(chance, 0.0, -2.0, 2.0),
        logit_bias: (0..chance.below(4))
            .map(|_| (TokenId(chance.below(40) as u32), chance.between(-9.0, 9.0)))
            .collect(),
        seed: Some(chance.below(1000) as u64),
        logprobs: None,
        mass: false,
    }
}

#[test]
fn the_sampler_equals_its_slow_twin() {
    let mut chance = Chance(0);
    let mut distinct = std::collections::BTreeSet::new();
    for round in 0..3000 {
        let size = [5, 40, 700, 2000][round % 4];
        let params = random_params(&mut chance);
        // A few levels, so that ties are common, or many levels.
        let levels = [4.0, 1000.0][chance.below(2)];
        let mut logits: Vec<f32> =
            (0..size).map(|_| (chance.between(-8.0, 8.0) * levels).round() / levels).collect();
        if chance.maybe() {
            logits[chance.below(size)] = f32::NAN;
        }
        let prompt: Vec<u32> = (0..chance.below(6)).map(|_| chance.below(size) as u32).collect();
        let answer: Vec<u32> = (0..chance.below(6)).map(|_| chance.below(size) as u32).collect();
        let words: Vec<u32> =
            (0..size.div_ceil(32)).map(|_| (chance.number() * 4_294_967_296.0) as u32).collect();
        let mask = chance.maybe().then_some(&words[..]);
        let tokens = |ids: &[u32]| ids.iter().copied().map(TokenId).collect::<Vec<_>>();
        let mut sampler = Sampler::new(&params, &tokens(&prompt), 3).unwrap();
        for &token in &tokens(&answer) {
            sampler.accept(token);
        }
        let place = Rng::new(params.seed, 3).at(answer.len() as u64);
        let expected = slow(&params, &prompt, &answer, &logits, mask, place);
        let chosen = sampler.choose(&mut logits.clone(), mask).ok().map(|choice| choice.token.0);
        assert_eq!(chosen, expected, "round {round}, {params:?}, prompt {prompt:?}, answer {answer:?}");
        distinct.insert(chosen);
    }
    assert!(distinct.len() > 100, "the rounds look alike: {}", distinct.len());
}

#[test]
fn what_is_forbidden_stays_forbidden() {
    let params = Sampling {
        temperature: 100.0,
        logit_bias: vec![(TokenId(1), 100.0)],
        repetition_penalty: 0.01,
        frequency_penalty: -2.0,
        seed: Some(1),
        ..Sampling::default()
    };
    let mut sampler = Sampler::new(&params, &[TokenId(1)], 0).unwrap();
    for _ in 0..200 {
        let choice = sampler.choose(&mut [1.0, 50.0, 0.0, 3.0], Some(&[0b1101])).unwrap();
        assert_ne!(choice.token, TokenId(1));
        sampler.accept(choice.token);
    }
    assert_eq!(sampler.choose(&mut [1.0, 2.0], Some(&[0])), Err(NoToken));
    assert_eq!(sampler.choose(&mut [f32::NAN, f32::NEG_INFINITY], None), Err(NoToken));
    assert_eq!(sampler.choose(&mut [], None), Err(NoToken));
}

#[test]
fn the_best_of_equals_is_the_first() {
    let mut sampler = Sampler::new(&Sampling::greedy(), &[], 0).unwrap();
    assert_eq!(sampler.choose(&mut [1.0, 3.0, f32::NAN, 3.0], None).unwrap().token, TokenId(1));
    let one = Sampling { top_k: 1, seed: Some(5), ..Sampling::default() };
    let mut sampler = Sampler::new(&one, &[], 0).unwrap();
    assert_eq!(sampler.choose(&mut [1.0, 3.0, 3.0], None).unwrap().token, TokenId(1));
    let none = Sampling { top_p: 0.0, seed: Some(5), ..Sampling::default() };
    let mut sampler = Sampler::new(&none, &[], 0).unwrap();
    assert_eq!(sampler.choose(&mut [1.0, 3.0, 3.0], None).unwrap().token, TokenId(1));
}

#[test]
fn shares_are_what_softmax_says() {
    let logits = [0.0, 1.0, 2.0, -1.0];
    let sum: f64 = logits.iter().map(|&logit| f64::from(logit).exp()).sum();
    let mut sampler = Sampler::new(&Sampling { seed: Some(3), ..Sampling::default() }, &[], 0).unwrap();
    let mut counts = [0_u32; 4];
    for _ in 0..20_000 {
        let token = sampler.choose(&mut logits.clone(), None).unwrap().token;
        counts[token.index()] += 1;
        sampler.accept(token);
    }
    for (count, logit) in counts.into_iter().zip(logits) {
        let expected = f64::from(logit).exp() / sum;
        let deviation = (expected * (1.0 - expected) / 20_000.0).sqrt();
        assert!((f64::from(count) / 20_000.0 - expected).abs() < 5.0 * deviation, "{counts:?}");
    }
}

#[test]
fn log_probabilities_are_of_what_is_allowed() {
    let params = Sampling {
        temperature: 0.0,
        logprobs: Some(2),
        logit_bias: vec![(TokenId(3), 50.0)],
        ..Sampling::default()
    };
    let mut sampler = Sampler::new(&params, &[], 0).unwrap();
    let choice = sampler.choose(&mut [0.0, 5.0, 1.0, 2.0], Some(&[0b1101])).unwrap();
    assert_eq!(choice.token, TokenId(3));
    let logprobs = choice.logprobs.unwrap();
    let total = (0_f32.exp() + 1_f32.exp() + 2_f32.exp()).ln();
    assert!((logprobs.chosen - (2.0 - total)).abs() < 1e-6);
    let tokens: Vec<u32> = logprobs.top.iter().map(|(token, _)| token.0).collect();
    assert_eq!(tokens, [3, 2]);
    assert!((logprobs.top[1].1 - (1.0 - total)).abs() < 1e-6);
    let only = sampler.choose(&mut [0.0, 5.0, 1.0, 2.0], Some(&[0b0010])).unwrap();
    assert_eq!(only.logprobs.unwrap(), Logprobs { chosen: 0.0, top: vec![(TokenId(1), 0.0)] });
}

#[test]
fn absurd_numbers_are_refused_by_name() {
    let ok = Sampling::default();
    let cases = [
        (Sampling { temperature: -0.1, ..ok.clone() }, "temperature"),
        (Sampling { temperature: f32::NAN, ..ok.clone() }, "temperature"),
        (Sampling { temperature: f32::INFINITY, ..ok.clone() }, "temperature"),
        (Sampling { top_p: 1.01, ..ok.clone() }, "top_p"),
        (Sampling { min_p: -1.0, ..ok.clone() }, "min_p"),
        (Sampling { repetition_penalty: 0.0, ..ok.clone() }, "repetition_penalty"),
        (Sampling { frequency_penalty: 2.5, ..ok.clone() }, "frequency_penalty"),
        (Sampling { presence_penalty: f32::NAN, ..ok.clone() }, "presence_penalty"),
        (Sampling { logit_bias: vec![(TokenId(0), 101.0)], ..ok.clone() }, "logit_bias"),
        (Sampling { logit_bias: vec![(TokenId(0), 0.0); 5000], ..ok.clone() }, "logit_bias"),
        (Sampling { logprobs: Some(21), ..ok.clone() }, "top_logprobs"),
    ];
    assert!(ok.check().is_ok());
    for (params, field) in cases {
        let error = Sampler::new(&params, &[], 0).unwrap_err();
        assert_eq!(error.field, field);
        assert!(error.to_string().starts_with(field), "{error}");
    }
}

/// Even at the lowest temperatures the best token is drawn, and there always is one.
#[test]
fn a_temperature_that_is_nearly_zero() {
    for temperature in [f32::from_bits(1), 1e-40, 1e-30, 1e-3] {
        for prompt in [1.0, -1.0] {
            let logits: Vec<f32> = (0..100).map(|id| prompt * (id * 37 % 100) as f32 * 3.0).collect();
            let params = Sampling { temperature, seed: Some(5), top_p: 0.9, ..Sampling::default() };
            let mut sampler = Sampler::new(&params, &[], 0).unwrap();
            let choice = sampler.choose(&mut logits.clone(), None).unwrap();
            assert_eq!(Some(choice.token), best(&logits), "{temperature}");
        }
    }
}

/// A temperature that a rule requests replaces that of the request until it is reset.
#[test]
fn a_temperature_of_one_place() {
    let logits: Vec<f32> = (0..50).map(|id| (id % 7) as f32).collect();
    let at = |temperature| Sampling { temperature, seed: Some(3), ..Sampling::default() };
    let drawn = |sampler: &mut Sampler| -> Vec<TokenId> {
        let mut tokens = Vec::new();
        for _ in 0..40 {
            let token = sampler.choose(&mut logits.clone(), None).unwrap().token;
            sampler.accept(token);
            tokens.push(token);
        }
        tokens
    };
    let plain = |temperature| drawn(&mut Sampler::new(&at(temperature), &[], 0).unwrap());
    for (request, rule) in [(0.0, 1.5), (1.5, 0.0), (0.3, 2.0)] {
        let mut sampler = Sampler::new(&at(request), &[], 0).unwrap();
        sampler.set_temperature(Some(rule));
        assert_eq!(drawn(&mut sampler), plain(rule));
        let mut sampler = Sampler::new(&at(request), &[], 0).unwrap();
        sampler.set_temperature(Some(rule));
        sampler.set_temperature(None);
        assert_eq!(drawn(&mut sampler), plain(request));
        assert_ne!(plain(request), plain(rule));
    }
}
