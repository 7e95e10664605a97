//! Exact draws on a scheduler, and the mass of masks, with a fake model.

use std::collections::BTreeMap;

use maskwright::{Compiler, Constraint, exact::MAX_TRIES};
use maskwright_runtime::{
    Failure, MatcherGuide, Reason, Request, Sampling, Scheduler, SubmitError, Tries, What,
    model::{Feed, Logits, Model, Wanted},
    scheduler::{Options, Report, Turn},
};
use maskwright_vocab::TokenId;

use crate::fake::{END, Fake, bytes, vocabulary};

const CHOICES: [&str; 4] = ["a", "b", "the", "ab"];

fn request(seed: u64, constraint: &Constraint) -> Request {
    let mut prompt = vec![TokenId(1)];
    prompt.extend(bytes("a prompt"));
    let mut request = Request::new(prompt);
    request.sampling = Sampling { seed: Some(seed), temperature: 0.5, ..Sampling::default() };
    request.max_tokens = Some(12);
    let matcher = Compiler::new(vocabulary()).compile(constraint).unwrap().matcher();
    let mut guide = MatcherGuide::new(matcher);
    guide.set_budget(12).unwrap();
    request.guide = Some(Box::new(guide));
    request
}

/// The answers, and what came of the tries.
fn draw(scheduler: &Scheduler, request: Request, tries: usize, rows: usize) -> (Vec<Vec<TokenId>>, Report) {
    let answers = request.answers;
    let mut tries = Tries::new(request, tries, rows).unwrap();
    let mut stream = scheduler.stream(tries.first()).unwrap();
    loop {
        let event = stream.next().expect("events until it is done");
        match tries.take(event) {
            Turn::Wait => {}
            Turn::Next(request) => stream = scheduler.stream(request).unwrap(),
            Turn::Failed(failure) => panic!("{failure}"),
            Turn::Done(events) => {
                let mut texts = vec![Vec::new(); answers];
                for event in events {
                    match event.what {
                        What::More { tokens, .. } => {
                            texts[event.answer].extend(tokens.iter().map(|one| one.token));
                        }
                        What::Finished { reason, .. } => assert_eq!(reason, Reason::Stop),
                        What::Failed(failure) => panic!("{failure}"),
                    }
                }
                return (texts, tries.report());
            }
        }
    }
}

/// The model's mass of every way to write a choice, the end included, and what it is under a mask.
fn truth() -> BTreeMap<Vec<TokenId>, f64> {
    let all = request(0, &Constraint::choice(CHOICES));
    let ways: [&[u32]; 5] = [&[97], &[98], &[116, 104, 101], &[256], &[97, 98]];
    let mut masses = BTreeMap::new();
    for way in ways {
        let mut model = Fake::default();
        let sequence = model.open();
        let (mut mass, mut feed) = (1.0, all.prompt.clone());
        let tokens: Vec<TokenId> = way.iter().copied().map(TokenId).collect();
        for &token in tokens.iter().chain([&END]) {
            let mut logits = Logits::new();
            let feeds = [Feed { sequence, tokens: &feed, wanted: Wanted::Last }];
            model.step(&feeds, &mut logits).unwrap();
            let weights: Vec<f64> =
                logits.row(0).unwrap().iter().map(|&logit| (f64::from(logit) / 0.5).exp()).collect();
            mass *= weights[token.index()] / weights.iter().sum::<f64>();
            feed = vec![token];
        }
        masses.insert(tokens, mass);
    }
    masses
}

#[test]
fn answers_have_the_distribution_of_the_model_over_valid_texts() {
    const DRAWS: u32 = 1500;
    let mut truth = truth();
    let valid: f64 = truth.values().sum();
    for mass in truth.values_mut() {
        *mass /= valid;
    }
    let scheduler = Scheduler::start(
        Box::new(Fake::default()),
        vocabulary(),
        Options { max_batch: 8, ..Options::default() },
    );
    let mut found: BTreeMap<Vec<TokenId>, f64> = BTreeMap::new();
    let mut tries = 0;
    for seed in 0..u64::from(DRAWS) {
        let (texts, report) = draw(&scheduler, request(seed, &Constraint::choice(CHOICES)), MAX_TRIES, 8);
        assert_eq!(report.exact, [true]);
        tries += report.tries;
        *found.entry(texts[0].clone()).or_default() += 1.0 / f64::from(DRAWS);
        let known = report.known;
        assert!(
            known.valid <= valid * 1.0001 && known.valid + known.unaccounted >= valid * 0.9999,
            "{known:?} {valid}"
        );
    }
    let keys: std::collections::BTreeSet<_> = truth.keys().chain(found.keys()).collect();
    let of = |map: &BTreeMap<Vec<TokenId>, f64>, key| map.get(key).copied().unwrap_or(0.0);
    let distance: f64 =
        keys.into_iter().map(|key| (of(&truth, key) - of(&found, key)).abs()).sum::<f64>() / 2.0;
    assert!(distance < 0.05, "{distance}: {found:?} {truth:?}");
    // Plain rejection would have needed a thousand times as many.
    assert!(f64::from(u32::try_from(tries).unwrap()) < f64::from(DRAWS) / valid / 100.0, "{tries}, {valid}");
}

#[test]
fn a_seed_gives_the_same_answers_beside_others() {
    let alone = Scheduler::start(Box::new(Fake::default()), vocabulary(), Options::default());
    let beside = Scheduler::start(Box::new(Fake::default()), vocabulary(), Options::default());
    let constraint = Constraint::regex("[a-z]{1,3}(the)?");
    for seed in 0..5 {
        let two = || Request { answers: 2, ..request(seed, &constraint) };
        let (expected, report) = draw(&alone, two(), 500, 6);
        assert_eq!(report.exact, [true, true]);
        let mut other = request(seed + 100, &constraint);
        other.max_tokens = Some(40);
        other.guide = None;
        let stream = beside.stream(other).unwrap();
        let (texts, again) = draw(&beside, two(), 500, 6);
        // What is known of the mass, and how many tokens were written, depends on how far the tries came that did not matter any more.
        assert_eq!((&texts, &again.exact, again.tries), (&expected, &report.exact, report.tries));
        drop(stream);
    }
}

#[test]
fn when_tries_are_used_up_the_answer_is_valid_and_says_so() {
    let scheduler = Scheduler::start(Box::new(Fake::default()), vocabulary(), Options::default());
    let constraint = Constraint::choice(["abcdef", "ghijkl"]);
    let (texts, report) = draw(&scheduler, Request { answers: 2, ..request(3, &constraint) }, 2, 4);
    assert_eq!((report.exact, report.tries), (vec![false, false], 2));
    for text in texts {
        assert!([bytes("abcdef"), bytes("ghijkl")].contains(&text), "{text:?}");
    }
    assert!(report.known.unaccounted > 0.0 && report.known.lost > 0.5, "{:?}", report.known);
}

#[test]
fn what_would_make_a_draw_inexact_is_refused() {
    let constraint = Constraint::choice(CHOICES);
    let field = |change: &dyn Fn(&mut Request), tries| {
        let mut request = request(1, &constraint);
        change(&mut request);
        match Tries::new(request, tries, 4) {
            Err(SubmitError::Invalid { field, .. }) => Some(field),
            Err(error) => panic!("{error}"),
            Ok(_) => None,
        }
    };
    assert_eq!(field(&|_| (), 64), None);
    assert_eq!(field(&|_| (), 0), Some("tries"));
    assert_eq!(field(&|_| (), 1_000_000_000), Some("tries"));
    assert_eq!(field(&|request| request.answers = 3, 2), Some("tries"));
    assert_eq!(field(&|request| request.sampling.temperature = 0.0, 64), Some("temperature"));
    assert_eq!(field(&|request| request.sampling.top_k = 5, 64), Some("top_k"));
    assert_eq!(field(&|request| request.sampling.top_p = 0.9, 64), Some("top_p"));
    assert_eq!(field(&|request| request.sampling.min_p = 0.1, 64), Some("min_p"));
    assert_eq!(field(&|request| request.stop.push("x".into()), 64), Some("stop"));
    assert_eq!(field(&|request| request.guide = None, 64), Some("sampling"));
}

#[test]
fn the_mass_of_a_mask_is_told_and_counted() {
    let scheduler = Scheduler::start(Box::new(Fake::default()), vocabulary(), Options::default());
    let constraint = Constraint::choice(["the"]);
    let run = |mass: bool| {
        let mut request = request(1, &constraint);
        request.sampling.mass = mass;
        let mut written = Vec::new();
        for event in scheduler.stream(request).unwrap() {
            match event.what {
                What::More { tokens, .. } => written.extend(tokens),
                What::Finished { reason, .. } => assert_eq!(reason, Reason::Stop),
                What::Failed(failure) => panic!("{failure}"),
            }
        }
        written
    };
    assert!(run(false).iter().all(|one| one.mass.is_none()));
    assert_eq!(scheduler.statistics().masses.counts.iter().sum::<u64>(), 0);
    let written = run(true);
    assert!(!written.is_empty());
    for one in &written {
        let mass = one.mass.expect("every token has one");
        assert!(mass < -3.0 && mass.is_finite(), "{mass}");
        assert!(!one.is_forced);
    }
    let masses = scheduler.statistics().masses;
    assert_eq!(masses.counts.iter().sum::<u64>(), written.len() as u64);
    let sum: f64 = written.iter().filter_map(|one| one.mass).map(|mass| -f64::from(mass)).sum();
    assert!((f64::from(u32::try_from(masses.micros).unwrap()) / 1e6 - sum).abs() < 1e-3);
    // Without a mask there is no mass.
    let mut free = request(1, &constraint);
    (free.guide, free.sampling.mass) = (None, true);
    for event in scheduler.stream(free).unwrap() {
        if let What::More { tokens, .. } = event.what {
            assert!(tokens.iter().all(|one| one.mass.is_none()));
        }
    }
    assert_ne!(Failure::Rejected.to_string(), "");
}
