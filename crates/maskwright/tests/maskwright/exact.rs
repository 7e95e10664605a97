//! Exact draws against the truth, where all texts can be listed.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use maskwright::exact::{DrawError, MAX_TRIES, Options, Sampler, SetupError};
use maskwright::{Compiler, Constraint, Matcher, TokenId, Vocabulary, VocabularyBuilder};

const TOKENS: [&str; 22] = [
    "a", "b", "ab", "c", "ba", "0", "1", "2", "01", "12", "{", "}", "{\"", "\"", "k", "\":", ":", " ", "<",
    ">", "<a", "x",
];
const MAX_TOKENS: usize = 12;

/// Numbers by chance, the same each time.
struct Chance(u64);

impl Chance {
    fn number(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.0)
    }
}

#[expect(clippy::cast_precision_loss, reason = "53 bits are exact")]
fn mix(state: u64) -> f64 {
    let state = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let state = (state ^ (state >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((state ^ (state >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
}

fn vocabulary() -> Arc<Vocabulary> {
    let mut builder = VocabularyBuilder::new();
    for (id, token) in (0..).zip(TOKENS) {
        builder.token(TokenId(id), token.as_bytes()).unwrap();
    }
    let end = TokenId(TOKENS.len() as u32);
    builder.special(end, "<end>").unwrap().eos(end);
    Arc::new(builder.finish().unwrap())
}

/// A model whose logits are a function of the text, without any pattern.
fn model(seed: u64, text: &[TokenId]) -> Vec<f32> {
    let state = text
        .iter()
        .fold(seed, |state, token| state.wrapping_mul(0x0100_0000_01B3).wrapping_add(u64::from(token.0) + 1));
    (0..=TOKENS.len() as u64).map(|id| (mix(state.wrapping_mul(31).wrapping_add(id)) * 6.0) as f32).collect()
}

fn shares(logits: &[f32]) -> Vec<f64> {
    let sum: f64 = logits.iter().map(|&logit| f64::from(logit).exp()).sum();
    logits.iter().map(|&logit| f64::from(logit).exp() / sum).collect()
}

type Texts = BTreeMap<Vec<TokenId>, f64>;

/// All token texts that a matcher allows, with the model's mass of each, and what masks token by token make of it.
fn list(seed: u64, start: &Matcher) -> (Texts, Texts) {
    let (mut truth, mut masked) = (Texts::new(), Texts::new());
    let mut open = vec![(Vec::new(), start.fork(), 1.0, 1.0)];
    while let Some((text, mut matcher, mass, under_mask)) = open.pop() {
        let shares = shares(&model(seed, &text));
        let words = matcher.mask_words().unwrap().to_vec();
        let allowed: Vec<u32> =
            (0..shares.len() as u32).filter(|id| words[*id as usize / 32] >> (id % 32) & 1 == 1).collect();
        let sum: f64 = allowed.iter().map(|&id| shares[id as usize]).sum();
        for id in allowed {
            let mut next = text.clone();
            next.push(TokenId(id));
            let (share, mut matcher) = (shares[id as usize], matcher.fork());
            matcher.accept(TokenId(id)).unwrap();
            if matcher.is_terminated() {
                truth.insert(next.clone(), mass * share);
                masked.insert(next, under_mask * share / sum);
            } else {
                open.push((next, matcher, mass * share, under_mask * share / sum));
            }
        }
    }
    (truth, masked)
}

fn scaled(mut texts: Texts) -> Texts {
    let sum: f64 = texts.values().sum();
    for mass in texts.values_mut() {
        *mass /= sum;
    }
    texts
}

fn distance(left: &Texts, right: &Texts) -> f64 {
    let all: std::collections::BTreeSet<_> = left.keys().chain(right.keys()).collect();
    let of = |texts: &Texts, text| texts.get(text).copied().unwrap_or(0.0);
    all.into_iter().map(|text| (of(left, text) - of(right, text)).abs()).sum::<f64>() / 2.0
}

fn constraints() -> [(&'static str, Constraint); 6] {
    let tag = r#"{"type": "sequence", "elements": [
        {"type": "regex", "pattern": "[ab]?"},
        {"type": "tag", "begin": "<a>", "content": {"type": "regex", "pattern": "[01]{1,2}"}, "end": "<a>"}]}"#;
    let schema = r#"{"type": "object", "properties": {"k": {"enum": [0, 1, 12]}}, "required": ["k"], "additionalProperties": false}"#;
    [
        ("choice", Constraint::choice(["a", "ab", "ba", "abc", "x", "1201"])),
        ("regex", Constraint::regex("[ab]{2,4}")),
        ("ebnf", Constraint::ebnf("root ::= \"a\" root \"b\" | \"1\" | \"\"")),
        ("lark", Constraint::lark("start: N (\":\" N)?\nN: /[012]{1,2}/")),
        ("json_schema", Constraint::json_schema(schema)),
        ("structural_tag", Constraint::structural_tag(tag)),
    ]
}

fn sampler(constraint: &Constraint, tries: usize) -> (Sampler, Matcher) {
    let vocabulary = vocabulary();
    let compiler = Compiler::new(vocabulary.clone());
    let mut matcher = compiler.compile(constraint).unwrap().matcher();
    let options = Options { tries, max_tokens: MAX_TOKENS, ..Options::default() };
    let sampler = Sampler::new(matcher.fork(), &vocabulary, options).unwrap();
    matcher.set_budget(Some(maskwright::Budget::new(MAX_TOKENS as u32))).unwrap();
    (sampler, matcher)
}

#[test]
#[expect(clippy::print_stdout, clippy::cast_precision_loss, reason = "the numbers are for people, and small")]
fn draws_have_the_distribution_of_the_model_over_valid_texts() {
    const DRAWS: usize = 100_000;
    println!(
        "constraint      texts  valid mass  masked TV  exact TV  tries of rejection  first draw  all draws"
    );
    for (name, constraint) in constraints() {
        let seed = 7;
        let (mut sampler, start) = sampler(&constraint, MAX_TRIES);
        let (truth, masked) = list(seed, &start);
        let mass: f64 = truth.values().sum();
        let truth = scaled(truth);
        let mut chance = Chance(3);
        let next = |text: &[TokenId]| Ok::<_, Infallible>(model(seed, text));
        let mut found = Texts::new();
        let (mut tries, mut first) = (0, 0);
        for draw in 0..DRAWS {
            let drawn = sampler.draw(next, || chance.number()).unwrap();
            assert!(drawn.is_exact, "{name}");
            tries += drawn.tries;
            first = if draw == 0 { drawn.tries } else { first };
            *found.entry(drawn.tokens).or_default() += 1.0 / DRAWS as f64;
        }
        let (bent, exact) = (distance(&masked, &truth), distance(&found, &truth));
        println!(
            "{name:15} {:5}  {mass:10.2e}  {bent:9.3}  {exact:8.4}  {:18.0}  {first:10}  {:9.4}",
            truth.len(),
            1.0 / mass,
            tries as f64 / DRAWS as f64
        );
        assert!(exact <= 0.02, "{name}: {exact}");
        assert!(bent > 0.05, "{name}: the mask does not bend this model, so that nothing is shown");
        // What it has learned is the truth: nothing is lost that is valid, and nothing is unaccounted for in the end.
        let known = sampler.known();
        assert!((known.valid - mass).abs() < 1e-3 * mass, "{name}: {known:?} {mass}");
        assert!((known.valid + known.lost + known.unaccounted - 1.0).abs() < 1e-12);
        assert!((tries as f64 / DRAWS as f64) < 1.1, "{name}: {tries} tries for {DRAWS} draws");
    }
}

/// Many first draws: what is learned within a draw must not bend it either.
#[test]
fn first_draws_are_exact() {
    const DRAWS: u32 = 4000;
    let constraint = Constraint::choice(["a", "ab", "ba", "x"]);
    let vocabulary = vocabulary();
    let (_, start) = sampler(&constraint, MAX_TRIES);
    let (truth, _) = list(7, &start);
    let truth = scaled(truth);
    let mut found = Texts::new();
    let mut chance = Chance(11);
    for _ in 0..DRAWS {
        let options = Options { tries: MAX_TRIES, max_tokens: MAX_TOKENS, ..Options::default() };
        let mut sampler = Sampler::new(start.fork(), &vocabulary, options).unwrap();
        let next = |text: &[TokenId]| Ok::<_, Infallible>(model(7, text));
        let drawn = sampler.draw(next, || chance.number()).unwrap();
        assert!(drawn.is_exact);
        *found.entry(drawn.tokens).or_default() += 1.0 / f64::from(DRAWS);
    }
    // Six texts and 4,000 draws: 0.02 is about three times what chance makes of it.
    let distance = distance(&found, &truth);
    assert!(distance <= 0.03, "{distance}: {found:?} {truth:?}");
}

/// The same texts as plain rejection finds: free texts, of which the invalid ones are thrown away.
#[test]
fn plain_rejection_agrees() {
    const DRAWS: u32 = 3000;
    let constraint = Constraint::regex("[ab]{1,2}");
    let (mut sampler, start) = sampler(&constraint, MAX_TRIES);
    let end = TokenId(TOKENS.len() as u32);
    let mut chance = Chance(5);
    let (mut plain, mut ours) = (Texts::new(), Texts::new());
    for _ in 0..DRAWS {
        let text = loop {
            let mut text = Vec::new();
            while text.len() < MAX_TOKENS && text.last() != Some(&end) {
                let shares = shares(&model(7, &text));
                let (goal, mut sum) = (chance.number(), 0.0);
                let token = shares.iter().position(|share| {
                    sum += share;
                    sum > goal
                });
                text.push(TokenId(token.unwrap_or(shares.len() - 1) as u32));
            }
            let mut matcher = start.fork();
            if text.iter().all(|token| matcher.accept(*token).is_ok()) && matcher.is_terminated() {
                break text;
            }
        };
        *plain.entry(text).or_default() += 1.0 / f64::from(DRAWS);
        let next = |text: &[TokenId]| Ok::<_, Infallible>(model(7, text));
        let drawn = sampler.draw(next, || chance.number()).unwrap();
        *ours.entry(drawn.tokens).or_default() += 1.0 / f64::from(DRAWS);
    }
    let distance = distance(&plain, &ours);
    assert!(distance <= 0.05, "{distance}");
}

#[test]
fn when_tries_are_used_up_the_text_is_valid_and_says_so() {
    let constraint = Constraint::choice(["abab", "x1201"]);
    let vocabulary = vocabulary();
    let (_, start) = sampler(&constraint, 1);
    // A model that never wants to write any of it: about one text in 10⁹ is valid.
    let next = |text: &[TokenId]| {
        let mut logits = model(7, text);
        logits[18] += 20.0;
        Ok::<_, Infallible>(logits)
    };
    let options = Options { tries: 3, max_tokens: MAX_TOKENS, ..Options::default() };
    let mut sampler = Sampler::new(start.fork(), &vocabulary, options).unwrap();
    let mut chance = Chance(1);
    let drawn = sampler.draw(next, || chance.number()).unwrap();
    assert!(!drawn.is_exact);
    assert_eq!(drawn.tries, 3);
    let mut matcher = start.fork();
    drawn.tokens.iter().for_each(|token| matcher.accept(*token).unwrap());
    assert!(matcher.is_terminated());
    let known = drawn.known;
    assert!(known.lost > 0.999 && known.unaccounted > 0.0, "{known:?}");
    assert!((known.valid + known.lost + known.unaccounted - 1.0).abs() < 1e-12);
    // It goes on learning, and the next one is exact soon.
    let later = (0..100).filter(|_| sampler.draw(next, || chance.number()).unwrap().is_exact).count();
    assert!(later > 90, "{later}");
}

#[test]
fn what_makes_no_sense_is_refused() {
    let vocabulary = vocabulary();
    let matcher = Compiler::new(vocabulary.clone()).compile(&Constraint::regex("[ab]{5}")).unwrap().matcher();
    let new = |tries, max_tokens| {
        let options = Options { tries, max_tokens, ..Options::default() };
        Sampler::new(matcher.fork(), &vocabulary, options).map(drop)
    };
    assert_eq!(new(0, 9), Err(SetupError::Tries(0)));
    assert_eq!(new(1_000_000_000, 9), Err(SetupError::Tries(1_000_000_000)));
    assert_eq!(new(0, 9).unwrap_err().to_string(), "there are 0 tries, but there must be 1 to 10000");
    let error = new(1, 2).unwrap_err().to_string();
    assert!(error.starts_with("max_tokens cannot be kept: "), "{error}");
    let mut sampler = Sampler::new(matcher.fork(), &vocabulary, Options::default()).unwrap();
    let none = |_: &[TokenId]| Ok::<_, Infallible>(vec![f32::NAN; TOKENS.len() + 1]);
    assert_eq!(sampler.draw(none, || 0.5), Err(DrawError::NoToken));
    let broken = |_: &[TokenId]| Err::<Vec<f32>, _>("no model");
    let mut sampler = Sampler::new(matcher, &vocabulary, Options::default()).unwrap();
    assert_eq!(sampler.draw(broken, || 0.5), Err(DrawError::Model("no model")));
}
