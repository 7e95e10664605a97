//! Tiny models: the forward pass against the reference, batches, forks and truncations against computing anew.

use std::num::NonZero;

use maskwright_runtime::model::{Feed, Llama, LoadOptions, Logits, Model, ModelError, SequenceId, Wanted};
use maskwright_vocab::TokenId;

use crate::{
    reference,
    tiny::{Folder, Shape, Tiny},
};

pub(crate) fn load(tiny: &Tiny, name: &str, threads: usize) -> Llama {
    let folder = Folder::new(name);
    tiny.write_folder(&folder);
    let options = LoadOptions { threads: NonZero::new(threads), context: None };
    Llama::load(folder.whole(), &options).unwrap_or_else(|error| panic!("{error}"))
}

fn tokens(ids: &[u32]) -> Vec<TokenId> {
    ids.iter().copied().map(TokenId).collect()
}

/// Some tokens, different for each seed.
fn text(seed: u32, length: usize) -> Vec<u32> {
    (0..length as u32).map(|at| (at * 7 + seed * 13 + at * at * seed) % 50).collect()
}

fn feed(model: &mut Llama, sequence: SequenceId, ids: &[u32]) -> Vec<Vec<f32>> {
    let mut logits = Logits::new();
    model.step(&[Feed { sequence, tokens: &tokens(ids), wanted: Wanted::All }], &mut logits).unwrap();
    (0..logits.len()).map(|row| logits.row(row).unwrap().to_vec()).collect()
}

fn alone(model: &mut Llama, ids: &[u32]) -> Vec<Vec<f32>> {
    let sequence = model.open();
    let rows = feed(model, sequence, ids);
    model.close(sequence);
    rows
}

/// The largest difference, in units of how much the logits of a row differ among themselves.
fn distance(rows: &[Vec<f32>], expected: &[Vec<f64>]) -> f64 {
    assert_eq!(rows.len(), expected.len());
    let mut worst = 0.0_f64;
    for (row, expected) in rows.iter().zip(expected) {
        let mean = expected.iter().sum::<f64>() / expected.len() as f64;
        let spread =
            (expected.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / expected.len() as f64).sqrt();
        for (number, expected) in row.iter().zip(expected) {
            worst = worst.max((f64::from(*number) - expected).abs() / spread);
        }
    }
    worst
}

/// Sums in another order differ in their last bits.
const CLOSE: f64 = 1e-3;
/// Now and then such a bit moves a number to the next step of its block, which is a 127th of the largest, and every later row
/// sees it. A wrong head, angle or norm changes the logits by about their spread, which is 1 here.
const NEAR: f64 = 0.25;

/// All models must be near the reference, and at least one must be close to it in all its rows.
fn check(family: &'static str, load: impl Fn(&Tiny) -> Llama) {
    let mut closest = f64::INFINITY;
    for seed in 1..=8 {
        let tiny = Tiny::random(&Shape::of(family), seed);
        let mut model = load(&tiny);
        let ids = text(3, 70);
        let expected = reference::logits(&tiny, &ids);
        let worst = distance(&alone(&mut model, &ids), &expected);
        assert!(worst < NEAR, "{family}, seed {seed}: {worst}");
        closest = closest.min(worst);
        let shifted = distance(&alone(&mut model, &ids[1..]), &expected[1..]);
        assert!(shifted > 2.0 * NEAR, "{family}: the test cannot tell texts apart, {shifted}");
    }
    assert!(closest < CLOSE, "{family}: {closest}");
}

#[test]
fn every_family_agrees_with_the_reference() {
    for family in ["llama", "qwen2", "qwen3"] {
        check(family, |tiny| load(tiny, &format!("family-{family}"), 1));
    }
}

#[test]
fn gguf_files_agree_with_the_reference() {
    for family in ["llama", "qwen2", "qwen3"] {
        let folder = Folder::new(&format!("gguf-{family}"));
        check(family, |tiny| {
            let path = folder.file("model.gguf", &tiny.gguf().finish());
            Llama::load(&path, &LoadOptions::default()).unwrap()
        });
    }
}

#[test]
fn a_batch_changes_no_bit() {
    for threads in [1, 3] {
        let tiny = Tiny::random(&Shape::of("llama"), 3);
        let mut model = load(&tiny, &format!("batch-{threads}"), threads);
        let texts: Vec<Vec<u32>> = (0..5).map(|seed| text(seed, 3 + 17 * seed as usize)).collect();
        let expected: Vec<Vec<Vec<f32>>> = texts.iter().map(|ids| alone(&mut model, ids)).collect();
        let sequences: Vec<SequenceId> = texts.iter().map(|_| model.open()).collect();
        let mut found: Vec<Vec<Vec<f32>>> = vec![Vec::new(); texts.len()];
        // In each step, each sequence takes a different number of tokens, some none.
        let mut done = [0; 5];
        for step in 0.. {
            let mut parts = Vec::new();
            for (index, ids) in texts.iter().enumerate() {
                let count = ((step * 3 + index * 5) % 7).min(ids.len() - done[index]);
                if count > 0 {
                    parts.push((index, tokens(&ids[done[index]..done[index] + count])));
                    done[index] += count;
                }
            }
            if parts.is_empty() && done.iter().zip(&texts).all(|(done, ids)| *done == ids.len()) {
                break;
            }
            let feeds: Vec<Feed<'_>> = parts
                .iter()
                .map(|(index, tokens)| Feed { sequence: sequences[*index], tokens, wanted: Wanted::All })
                .collect();
            let mut logits = Logits::new();
            model.step(&feeds, &mut logits).unwrap();
            let mut row = 0;
            for (index, tokens) in &parts {
                for _ in tokens {
                    found[*index].push(logits.row(row).unwrap().to_vec());
                    row += 1;
                }
            }
            assert_eq!(row, logits.len());
        }
        assert!(found == expected, "{threads} threads");
    }
}

#[test]
fn threads_change_no_bit() {
    let tiny = Tiny::random(&Shape::of("qwen3"), 4);
    let ids = text(1, 60);
    let one = alone(&mut load(&tiny, "one", 1), &ids);
    assert!(alone(&mut load(&tiny, "four", 4), &ids) == one);
}

#[test]
fn only_wanted_rows_are_written() {
    let tiny = Tiny::random(&Shape::of("llama"), 5);
    let mut model = load(&tiny, "wanted", 1);
    let all = alone(&mut model, &text(2, 9));
    let (first, second, third) = (model.open(), model.open(), model.open());
    let ids = tokens(&text(2, 9));
    let mut logits = Logits::new();
    let feeds = [
        Feed { sequence: first, tokens: &ids, wanted: Wanted::None },
        Feed { sequence: second, tokens: &ids, wanted: Wanted::Last },
        Feed { sequence: third, tokens: &ids[..2], wanted: Wanted::All },
    ];
    model.step(&feeds, &mut logits).unwrap();
    let rows: Vec<Vec<f32>> = (0..logits.len()).map(|row| logits.row(row).unwrap().to_vec()).collect();
    assert!(rows == [all[8].clone(), all[0].clone(), all[1].clone()]);
    model.step(&[Feed { sequence: third, tokens: &ids[2..3], wanted: Wanted::None }], &mut logits).unwrap();
    assert!(logits.is_empty());
}

#[test]
fn forks_and_truncations_equal_computing_anew() {
    let tiny = Tiny::random(&Shape::of("llama"), 6);
    let mut model = load(&tiny, "fork", 1);
    let (left, right) = (text(1, 80), text(4, 30));
    // Within a page, at its border, and beyond.
    for cut in [0, 1, 31, 32, 33, 63, 64, 79] {
        let mixed = [&left[..cut], &right[..]].concat();
        let expected = alone(&mut model, &mixed[..mixed.len().min(100)]);
        let origin = model.open();
        feed(&mut model, origin, &left);
        let fork = model.fork(origin, cut).unwrap();
        assert_eq!((model.length(fork), model.length(origin)), (Ok(cut), Ok(80)));
        let room = 100 - cut;
        let more = &right[..right.len().min(room)];
        assert!(feed(&mut model, fork, more) == expected[cut..], "fork at {cut}");
        // What the fork wrote is not seen by its origin.
        assert!(feed(&mut model, origin, &[7]) == alone(&mut model, &[&left[..], &[7]].concat())[80..]);
        model.truncate(origin, cut).unwrap();
        assert!(feed(&mut model, origin, more) == expected[cut..], "truncation to {cut}");
        model.close(origin);
        model.close(fork);
    }
    assert_eq!(model.cache_bytes(), 0);
}

#[test]
fn forks_share_their_pages() {
    let tiny = Tiny::random(&Shape::of("llama"), 7);
    let mut model = load(&tiny, "share", 1);
    let origin = model.open();
    feed(&mut model, origin, &text(1, 64));
    let before = model.cache_bytes();
    let forks: Vec<SequenceId> = (0..10).map(|_| model.fork(origin, 64).unwrap()).collect();
    assert_eq!(model.cache_bytes(), before);
    feed(&mut model, forks[0], &[1]);
    assert_eq!(model.cache_bytes(), before / 2 * 3);
}

#[test]
fn wrong_steps_are_refused_and_change_nothing() {
    let tiny = Tiny::random(&Shape::of("llama"), 8);
    let mut model = load(&tiny, "wrong", 1);
    let (one, two) = (model.open(), model.open());
    let (good, bad) = (tokens(&[1, 2]), tokens(&[1, 50]));
    let long = tokens(&[3; 101]);
    let mut logits = Logits::new();
    let feed = |sequence, tokens| Feed { sequence, tokens, wanted: Wanted::Last };
    let gone = SequenceId(99);
    let cases: [(&[Feed<'_>], ModelError); 5] = [
        (&[feed(one, &good), feed(two, &bad)], ModelError::NoToken { token: TokenId(50), tokens: 50 }),
        (&[feed(one, &good), feed(two, &long)], ModelError::Full { length: 101, context: 100 }),
        (&[feed(one, &good), feed(gone, &good)], ModelError::NoSequence(gone)),
        (&[feed(one, &good), feed(one, &good)], ModelError::Twice(one)),
        (&[feed(one, &good), feed(two, &[])], ModelError::NoTokens(two)),
    ];
    for (feeds, error) in cases {
        assert_eq!(model.step(feeds, &mut logits), Err(error));
        assert_eq!((model.length(one), model.length(two)), (Ok(0), Ok(0)));
    }
    assert_eq!(model.fork(one, 1), Err(ModelError::TooShort { asked: 1, length: 0 }));
    assert_eq!(model.truncate(one, 1), Err(ModelError::TooShort { asked: 1, length: 0 }));
    assert_eq!(model.truncate(gone, 0), Err(ModelError::NoSequence(gone)));
    model.close(gone);
    model.step(&[feed(one, &long[..100])], &mut logits).unwrap();
    assert_eq!(
        model.step(&[feed(one, &good[..1])], &mut logits),
        Err(ModelError::Full { length: 101, context: 100 })
    );
}
