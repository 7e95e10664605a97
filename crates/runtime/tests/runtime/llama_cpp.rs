//! The model on top of llama.cpp: the laws of all models, our own model as a reference, and what can run out.

use std::{num::NonZero, path::PathBuf};

use maskwright_runtime::{
    Loaded,
    model::{
        Feed, Llama, LoadError, LoadOptions, Logits, Model, ModelError, SequenceId, Wanted,
        llama_cpp::{LlamaCpp, Options},
    },
};
use maskwright_vocab::TokenId;

use crate::{
    laws::{Laws, rows, text},
    smollm2::{self, folder},
    tiny::{Folder, Shape, Tiny},
};

fn file() -> Option<PathBuf> {
    let mut files = folder()?.read_dir().unwrap().map(|entry| entry.unwrap().path());
    files.find(|path| path.extension().is_some_and(|end| end == "gguf"))
}

fn load(options: &Options) -> Option<LlamaCpp> {
    Some(LlamaCpp::load(file()?, options).unwrap_or_else(|error| panic!("{error}")))
}

/// A small model: texts of 100 tokens, and so many of them.
fn small(tokens: usize, sequences: usize) -> Options {
    let load = LoadOptions { threads: NonZero::new(1), context: NonZero::new(100) };
    Options { load, tokens: NonZero::new(tokens), sequences: NonZero::new(sequences) }
}

/// Tokens that are ordinary text in `SmolLM2`.
fn token(number: u32) -> TokenId {
    TokenId(number * 37 + 1000)
}

/// How much two rows differ (the root of the mean square), in units of how much the logits of a row differ among themselves.
fn distance(left: &[f32], right: &[f32]) -> f32 {
    let mean = right.iter().sum::<f32>() / right.len() as f32;
    let spread: f32 = right.iter().map(|one| (one - mean).powi(2)).sum();
    let apart: f32 = left.iter().zip(right).map(|(left, right)| (left - right).powi(2)).sum();
    (apart / spread).sqrt()
}

/// llama.cpp computes batches of different sizes by different kernels, which round numbers to eight bits differently, and texts that make no
/// sense leave a model of four bits undecided: rows that should be equal were found 0.05 apart on average, and 0.22 at most. Rows of different
/// texts are 3 apart on average, and 0.67 at least, which a test makes sure of.
const NEAR: f32 = 0.35;
/// As above, for the rows of one test together.
const NEAR_ON_AVERAGE: f32 = 0.2;

fn mean(numbers: &[f32]) -> f32 {
    numbers.iter().sum::<f32>() / numbers.len() as f32
}

fn near(found: &[f32], expected: &[f32]) {
    let distance = distance(found, expected);
    assert!(distance < NEAR, "{distance}");
}

#[test]
fn it_keeps_the_laws_of_models() {
    let Some(mut model) = load(&small(1024, 8)) else { return };
    let mut laws = Laws { model: &mut model, token, same: near };
    let (left, right) = (laws.alone(&text(1, 20)), laws.alone(&text(2, 20)));
    let apart: Vec<f32> = left.iter().zip(&right).map(|(left, right)| distance(left, right)).collect();
    assert!(apart.iter().all(|&apart| apart > 1.5 * NEAR), "the laws could not tell texts apart: {apart:?}");
    assert!(mean(&apart) > 5.0 * NEAR, "{apart:?}");
    laws.a_batch_equals_one_after_the_other();
    laws.only_wanted_rows_are_written();
    laws.forks_and_truncations_equal_computing_anew();
    laws.wrong_steps_are_refused_and_change_nothing();
    assert_eq!(model.cache_bytes(), 0);
}

#[test]
fn smollm2_writes_the_same_with_llama_cpp() {
    let Some(folder) = folder() else { return };
    smollm2::check(Loaded::open_llama_cpp(&folder, &Options::default()).unwrap());
}

#[test]
fn its_logits_are_near_those_of_our_own_model() {
    let Some(folder) = folder() else { return };
    let own = Loaded::open(&folder, &LoadOptions::default()).unwrap();
    let other = Loaded::open_llama_cpp(&folder, &Options::default()).unwrap();
    let prompt =
        own.prompt("The capital of France is Paris. The capital of Italy is Rome, and that of").unwrap();
    let [own, other] = [own, other].map(|mut loaded| {
        let mut logits = Logits::new();
        let sequence = loaded.model.open();
        let feed = Feed { sequence, tokens: &prompt, wanted: Wanted::All };
        loaded.model.step(&[feed], &mut logits).unwrap();
        rows(&logits)
    });
    let best = |row: &[f32]| (0..row.len()).max_by(|&left, &right| row[left].total_cmp(&row[right]));
    for (own, other) in own.iter().zip(&other) {
        near(other, own);
        assert_eq!(best(own), best(other));
    }
}

#[test]
fn a_step_may_be_larger_than_a_batch_of_llama_cpp() {
    let Some(mut model) = load(&Options { tokens: NonZero::new(1024), ..Options::default() }) else { return };
    let long: Vec<TokenId> = text(3, 300).into_iter().map(token).collect();
    let sequences = [model.open(), model.open(), model.open()];
    let wanted = [Wanted::Last, Wanted::All, Wanted::Last];
    let parts = [&long[..200], &long[100..150], &long[..300]];
    // At once …
    let feeds: Vec<Feed<'_>> =
        (0..3).map(|at| Feed { sequence: sequences[at], tokens: parts[at], wanted: wanted[at] }).collect();
    let mut logits = Logits::new();
    model.step(&feeds, &mut logits).unwrap();
    let found = rows(&logits);
    assert_eq!(found.len(), 52);
    // … and in small pieces.
    let mut expected = Vec::new();
    for feed in feeds {
        model.truncate(feed.sequence, 0).unwrap();
        let mut all = Vec::new();
        for tokens in feed.tokens.chunks(60) {
            model.step(&[Feed { tokens, ..feed }], &mut logits).unwrap();
            all.extend(rows(&logits));
        }
        expected.extend(all.split_off(all.len() - feed.wanted.rows(feed.tokens.len())));
    }
    for (found, expected) in found.iter().zip(&expected) {
        near(found, expected);
    }
}

#[test]
fn what_does_not_fit_is_refused_and_changes_nothing() {
    let Some(mut model) = load(&small(256, 3)) else { return };
    assert_eq!((model.tokens(), model.context()), (256, 100));
    let long: Vec<TokenId> = text(1, 100).into_iter().map(token).collect();
    let mut logits = Logits::new();
    let all: Vec<SequenceId> = (0..5).map(|_| model.open()).collect();
    let feed =
        |at: usize, count: usize| Feed { sequence: all[at], tokens: &long[..count], wanted: Wanted::Last };
    // Open sequences take no slot; those with tokens do, however many a step brings.
    let no_slot = ModelError::NoSlot { sequences: 3 };
    assert_eq!(model.step(&[0, 1, 2, 3].map(|at| feed(at, 1)), &mut logits), Err(no_slot.clone()));
    model.step(&[feed(0, 100), feed(1, 100)], &mut logits).unwrap();
    let no_room = ModelError::NoRoom { asked: 57, free: 56, tokens: 256 };
    assert!(no_room.is_shortage() && no_slot.is_shortage());
    assert_eq!(model.step(&[feed(2, 57)], &mut logits), Err(no_room));
    assert_eq!(model.length(all[2]), Ok(0));
    // A fork takes a slot and no room, and gives both back.
    let full = model.cache_bytes();
    let fork = model.fork(all[0], 90).unwrap();
    assert_eq!(model.cache_bytes(), full);
    assert_eq!(model.fork(all[0], 90), Err(no_slot.clone()));
    assert_eq!(model.step(&[feed(2, 1)], &mut logits), Err(no_slot));
    assert_eq!(model.fork(all[0], 0).map(|empty| model.length(empty)), Ok(Ok(0)));
    model.close(all[0]);
    assert_eq!(model.cache_bytes(), full / 200 * 190);
    model.step(&[feed(2, 66)], &mut logits).unwrap();
    model.close(fork);
    model.truncate(all[1], 0).unwrap();
    assert_eq!(model.cache_bytes(), full / 200 * 66);
    // Slots are used again and again.
    for _ in 0..10 {
        model.step(&[feed(1, 20), feed(3, 5)], &mut logits).unwrap();
        model.truncate(all[1], 0).unwrap();
        model.truncate(all[3], 0).unwrap();
    }
}

#[test]
fn what_it_cannot_load_is_refused() {
    let tiny = Folder::new("llama-cpp-safetensors");
    Tiny::random(&Shape::of("llama"), 1).write_folder(&tiny);
    let refused = |path: &std::path::Path, options: &Options| {
        LlamaCpp::load(path, options).expect_err("it is refused").to_string()
    };
    let nothing = Options::default();
    assert!(refused(tiny.whole(), &nothing).contains("GGUF files only"));
    let path = tiny.file("noise.gguf", b"GGUF and then nothing that makes sense");
    assert!(refused(&path, &nothing).contains("llama.cpp cannot load"));
    let missing = path.with_file_name("missing.gguf");
    assert!(matches!(LlamaCpp::load(&missing, &nothing), Err(LoadError::Io { .. })));
    let Some(folder) = folder() else { return };
    let many = Options { sequences: NonZero::new(257), ..nothing };
    let error = Loaded::open_llama_cpp(&folder, &many).expect_err("it is refused").to_string();
    assert!(error.contains("256 sequences, but 257"), "{error}");
}

/// Anything in any order, against a list of what each sequence has.
#[test]
fn any_order_of_things_leaves_what_it_should() {
    let Some(mut model) = load(&small(512, 6)) else { return };
    let Some(file) = file() else { return };
    let mut own =
        Llama::load(file, &LoadOptions { threads: NonZero::new(1), context: NonZero::new(100) }).unwrap();
    let mut texts: Vec<(SequenceId, SequenceId)> = vec![(model.open(), own.open())];
    let (mut logits, mut expected) = (Logits::new(), Logits::new());
    let mut apart = Vec::new();
    for step in 0..120_usize {
        let (one, two) = texts[step * 7 % texts.len()];
        let length = own.length(two).unwrap();
        match (step * step + step / 3) % 7 {
            0 if texts.len() < 6 => texts.push((model.open(), own.open())),
            1 if texts.len() < 6 => {
                let cut = length / 2;
                texts.push((model.fork(one, cut).unwrap(), own.fork(two, cut).unwrap()));
            }
            2 => {
                model.truncate(one, length * 2 / 3).unwrap();
                own.truncate(two, length * 2 / 3).unwrap();
            }
            3 if texts.len() > 1 => {
                texts.retain(|&(this, _)| this != one);
                model.close(one);
                own.close(two);
            }
            _ if length < 90 => {
                let tokens: Vec<TokenId> = text(step as u32, 1 + step % 5).into_iter().map(token).collect();
                let feed = |sequence| [Feed { sequence, tokens: &tokens, wanted: Wanted::Last }];
                model.step(&feed(one), &mut logits).unwrap();
                own.step(&feed(two), &mut expected).unwrap();
                apart.push(distance(logits.row(0).unwrap(), expected.row(0).unwrap()));
            }
            _ => {}
        }
        for &(one, two) in &texts {
            assert_eq!(model.length(one), own.length(two));
        }
    }
    // The two models round differently too, so a single row may be further off.
    assert!(apart.len() > 30 && mean(&apart) < NEAR_ON_AVERAGE, "{apart:?}");
    assert!(apart.iter().all(|&apart| apart < 2.0 * NEAR), "{apart:?}");
    for (one, _) in texts {
        model.close(one);
    }
    assert_eq!(model.cache_bytes(), 0);
}
