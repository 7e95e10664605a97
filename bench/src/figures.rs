//! Summarizes one engine's records of some schemas in a few numbers.

use crate::replay::{Outcome, Record};
use crate::stats::{Sorted, Summary, Times};

/// The numbers of one engine in one population.
pub struct Figures {
    pub schemas: usize,
    pub right: usize,
    pub refused: usize,
    pub valid_rejected: usize,
    /// Those rejected only because of the order of keys.
    pub valid_rejected_by_key_order: usize,
    pub invalid_accepted: usize,
    pub mask: Summary,
    pub accept: Summary,
    /// Mask and accept of one token together: the cost of a step.
    pub step_avg: f64,
    pub first_mask: Summary,
    pub compile: Summary,
    pub warm: Option<(Summary, Summary)>,
    pub bytes: Summary,
}

impl Figures {
    pub fn of(records: &[&Record]) -> Figures {
        let chosen = || records.iter().copied();
        let count = |test: fn(&Outcome) -> bool| chosen().filter(|record| test(&record.outcome)).count();
        let of = |list: fn(&Record) -> &Vec<u64>| {
            sorted(chosen().flat_map(|record| list(record).iter().copied())).summary()
        };
        let (mask, accept) = (of(|record| &record.masks), of(|record| &record.accepts));
        let warm = (of(|record| &record.warm_masks), of(|record| &record.warm_accepts));
        Figures {
            schemas: chosen().count(),
            right: count(is_right),
            refused: count(|outcome| matches!(outcome, Outcome::Refused(_))),
            valid_rejected: count(|outcome| matches!(outcome, Outcome::Judged { valid_rejected: true, .. })),
            valid_rejected_by_key_order: chosen().filter(|record| record.by_key_order).count(),
            invalid_accepted: count(|outcome| {
                matches!(outcome, Outcome::Judged { invalid_accepted: true, .. })
            }),
            mask,
            accept,
            step_avg: mask.avg + accept.avg,
            first_mask: sorted(chosen().filter_map(|record| record.first_mask)).summary(),
            compile: sorted(chosen().filter_map(|record| record.compile)).summary(),
            warm: (warm.0.count > 0).then_some(warm),
            // A summary divides by a thousand, for microseconds; bytes must compensate for that.
            bytes: sorted(chosen().filter_map(|record| record.bytes).map(|bytes| bytes * 1000)).summary(),
        }
    }
}

pub fn is_right(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Judged { valid_rejected: false, invalid_accepted: false })
}

pub fn sorted(nanos: impl Iterator<Item = u64>) -> Sorted {
    Times(nanos.collect()).sorted()
}
