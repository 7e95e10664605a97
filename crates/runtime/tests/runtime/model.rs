//! Tiny models: the forward pass against the reference, batches, forks and truncations against computing anew.

use std::num::NonZero;

use maskwright_runtime::model::{Llama, LoadOptions, Model, SequenceId};
use maskwright_vocab::TokenId;

use crate::{
    laws::{Laws, text},
    reference,
    tiny::{Folder, Shape, Tiny},
};

pub(crate) fn load(tiny: &Tiny, name: &str, threads: usize) -> Llama {
    let folder = Folder::new(name);
    tiny.write_folder(&folder);
    let options = LoadOptions { threads: NonZero::new(threads), context: None };
    Llama::load(folder.whole(), &options).unwrap_or_else(|error| panic!("{error}"))
}

/// The laws for a model whose numbers do not depend on who else is in a step.
fn exact(model: &mut Llama) -> Laws<'_> {
    Laws { model, token: TokenId, same: |found, expected| assert!(found == expected) }
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
        let worst = distance(&exact(&mut model).alone(&ids), &expected);
        assert!(worst < NEAR, "{family}, seed {seed}: {worst}");
        closest = closest.min(worst);
        let shifted = distance(&exact(&mut model).alone(&ids[1..]), &expected[1..]);
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
        exact(&mut load(&tiny, &format!("batch-{threads}"), threads)).a_batch_equals_one_after_the_other();
    }
}

#[test]
fn threads_change_no_bit() {
    let tiny = Tiny::random(&Shape::of("qwen3"), 4);
    let ids = text(1, 60);
    let one = exact(&mut load(&tiny, "one", 1)).alone(&ids);
    assert!(exact(&mut load(&tiny, "four", 4)).alone(&ids) == one);
}

#[test]
fn only_wanted_rows_are_written() {
    let tiny = Tiny::random(&Shape::of("llama"), 5);
    exact(&mut load(&tiny, "wanted", 1)).only_wanted_rows_are_written();
}

#[test]
fn forks_and_truncations_equal_computing_anew() {
    let tiny = Tiny::random(&Shape::of("llama"), 6);
    exact(&mut load(&tiny, "fork", 1)).forks_and_truncations_equal_computing_anew();
}

#[test]
fn forks_share_their_pages() {
    let tiny = Tiny::random(&Shape::of("llama"), 7);
    let mut model = load(&tiny, "share", 1);
    let origin = model.open();
    exact(&mut model).feed(origin, &text(1, 64));
    let before = model.cache_bytes();
    let forks: Vec<SequenceId> = (0..10).map(|_| model.fork(origin, 64).unwrap()).collect();
    assert_eq!(model.cache_bytes(), before);
    exact(&mut model).feed(forks[0], &[1]);
    assert_eq!(model.cache_bytes(), before / 2 * 3);
}

#[test]
fn wrong_steps_are_refused_and_change_nothing() {
    let tiny = Tiny::random(&Shape::of("llama"), 8);
    exact(&mut load(&tiny, "wrong", 1)).wrong_steps_are_refused_and_change_nothing();
}
