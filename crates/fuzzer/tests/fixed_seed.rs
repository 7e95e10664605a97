//! A fixed run of the fuzzer, short enough for every `make test`. `make fuzz-schema` runs for as long as one likes.

#![expect(clippy::print_stderr, reason = "how much was compared is a result")]

use maskwright_fuzzer::run::{Orders, run};

/// How many seeds. Rounds are the same on every machine, so this is a number and not a time.
const SEEDS: u64 = 400;

#[test]
fn nothing_is_found() {
    let orders = Orders { seed: 1, count: Some(SEEDS), time: None, only: None, finds: 3 };
    let (counts, finds) = run(&orders, &mut |_| {});
    eprintln!("{counts:?}");
    let shown: Vec<String> = finds.iter().map(ToString::to_string).collect();
    assert!(shown.is_empty(), "{}", shown.join("\n\n"));
    assert!(counts.pairs > SEEDS * 20, "only {} pairs", counts.pairs);
    assert!(counts.valid * 4 > counts.pairs, "only {} of {} documents are valid", counts.valid, counts.pairs);
    assert!(counts.disputed * 20 < counts.pairs, "validators disagree about {}", counts.disputed);
    assert!(counts.walks > SEEDS * 6 && counts.masks > SEEDS && counts.orders > SEEDS * 4, "{counts:?}");
}

#[test]
fn rounds_are_the_same_again() {
    let orders = Orders { seed: 9_000, count: Some(8), time: None, only: None, finds: 1 };
    let (first, second) = (run(&orders, &mut |_| {}).0, run(&orders, &mut |_| {}).0);
    assert_eq!((first.pairs, first.valid, first.walks), (second.pairs, second.valid, second.walks));
    assert_eq!((first.finished, first.masks), (second.finished, second.masks));
}

/// Rounds in which a mask met a limit, or took minutes: stacks that fork on many levels, free text many times over, and searches that look at every string; and one in which a token was missing.
#[test]
fn known_rounds_come_to_an_end() {
    let rounds = [
        (1_080_007_831, "walks"),
        (1_150_006_160, "tags"),
        (1_150_011_260, "walks"),
        (1_140_008_779, "pairs"),
        (3_020_005_067, "walks"),
    ];
    for (seed, kind) in rounds {
        let orders = Orders { seed, count: Some(1), time: None, only: Some(kind.to_owned()), finds: 1 };
        let (counts, finds) = run(&orders, &mut |_| {});
        let shown: Vec<String> = finds.iter().map(ToString::to_string).collect();
        assert!(shown.is_empty() && counts.walks > 0, "{seed}: {}", shown.join("\n"));
    }
}
