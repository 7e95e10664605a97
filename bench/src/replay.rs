//! The loop that is measured: compile, first mask, then every instance token by token.
//!
//! ```text
//!  compile ─ start ─ fill     │ look up token │ accept │ fill │ look up │ accept │ …  fill │ may it end?
//!  └────── first mask ──────┘                 └ accept ┘└ mask ┘                     └ mask ┘
//! ```
//! The first instance continues with the session of the first mask, whose time is therefore not counted again; each
//! further instance starts its own session with the same compiled constraint. Only the engine's call is between two
//! time stamps. An engine returns its mask by reference, in its own memory or in ours, as it prefers; with
//! [`Options::rows`] every engine writes it into our row.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use mwbench_abi::Source;

use crate::clock::Clock;
use crate::corpus::{Case, Instance};
use crate::engines::{Compiled, Engine, Session};

/// The results of one engine for one schema.
pub struct Record {
    pub outcome: Outcome,
    /// Nanoseconds of `compile` alone, and until the first mask, if it got that far.
    pub compile: Option<u64>,
    pub first_mask: Option<u64>,
    /// Nanoseconds of each mask and each accepted token.
    pub masks: Vec<u64>,
    pub accepts: Vec<u64>,
    /// The same for a second replay with the warm constraint, if requested.
    pub warm_masks: Vec<u64>,
    pub warm_accepts: Vec<u64>,
    /// Bytes that were still allocated with the compiled constraint after all instances.
    pub bytes: Option<u64>,
    /// Whether valid instances were rejected, and each of them is accepted with its keys in another order.
    pub by_key_order: bool,
    /// The slowest mask: nanoseconds, instance, token.
    pub slowest: (u64, usize, usize),
    /// The first valid instance that was rejected, and how many of its tokens were accepted before.
    pub rejected: Option<(usize, usize)>,
}

/// The outcome of a replay.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// All instances were replayed.
    Judged { valid_rejected: bool, invalid_accepted: bool },
    /// The engine does not accept the schema, failed in the middle, panicked or took too long.
    Refused(String),
}

/// The options of the loop.
pub struct Options<'a> {
    pub clock: &'a Clock,
    /// Ids that end a text.
    pub end: &'a [u32],
    pub timeout: Duration,
    /// Whether to replay everything a second time with the warm constraint.
    pub warm: bool,
    /// Whether the engine keeps what it learned from earlier schemas.
    pub shared: bool,
    /// Whether engines must write masks into a row, even if they can return them by reference.
    pub rows: bool,
    /// The time for computing ahead between a mask and the next token, which is not timed.
    pub prepare: Option<Duration>,
    /// A function that gets the progress before each token, outside of the timed parts.
    pub watch: Option<&'a dyn Fn(&SoFar<'_>)>,
}

/// The measurements so far.
pub struct SoFar<'a> {
    pub is_warm: bool,
    pub first_mask: u64,
    pub masks: &'a [u64],
    pub accepts: &'a [u64],
}

/// The beginning of a refusal's message if time ran out.
pub const TIMED_OUT: &str = "timed out";

impl Options<'_> {
    fn mask<'s>(&self, session: &'s mut dyn Session, row: &'s mut [u32]) -> Option<&'s [u32]> {
        if self.rows { session.fill(row).then_some(row) } else { session.mask(row) }
    }
}

/// Runs `case` with `engine`. `mask` is a buffer of the vocabulary's width.
pub fn replay(engine: &dyn Engine, case: &Case, options: &Options<'_>, mask: &mut [u32]) -> Record {
    let mut record = Record::with_room_for(case, options.warm);
    let run = || run(engine, case, options, mask, &mut record);
    let outcome = match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(message)) => Outcome::Refused(message),
        Err(panic) => Outcome::Refused(format!("panicked: {}", panic_text(panic.as_ref()))),
    };
    record.outcome = outcome;
    record
}

fn run(
    engine: &dyn Engine,
    case: &Case,
    options: &Options<'_>,
    mask: &mut [u32],
    record: &mut Record,
) -> Result<Outcome, String> {
    if !options.shared {
        engine.forget();
    }
    let before = engine.live_bytes();
    let source = Source { kind: case.kind, text: &case.source };
    let deadline = Instant::now() + options.timeout;
    let clock = options.clock;
    let (compiled, compile) = clock.time(|| engine.compile(source));
    let compiled = compiled?;
    let (started, start) = clock.time(|| {
        let mut session = compiled.start()?;
        let given = options.mask(session.as_mut(), mask).is_some();
        Ok::<_, String>((session, given))
    });
    let (mut session, given) = started?;
    record.compile = Some(compile);
    record.first_mask = Some(compile + start);
    if !given {
        return Err(GAVE_UP.into());
    }
    if Duration::from_nanos(compile + start) > options.timeout {
        return Err(format!("{TIMED_OUT}: no first mask within {} s", options.timeout.as_secs()));
    }
    let first_mask = compile + start;
    let mut walk = Walk { engine, options, deadline, row: mask, is_known: true, is_warm: false, first_mask };
    let (masks, accepts) = (&mut record.masks, &mut record.accepts);
    let mut verdict = Verdict::default();
    for (index, instance) in case.instances.iter().enumerate() {
        if index > 0 {
            drop(session);
            session = compiled.start()?;
            walk.is_known = false;
        }
        let (first, before) = (masks.len(), accepts.len());
        let accepted = walk.instance(session.as_mut(), instance, masks, accepts)?;
        verdict.note(instance, accepted);
        if instance.valid && !accepted {
            record.rejected.get_or_insert((index, accepts.len() - before));
        }
        record.slowest = record.slowest.max(slowest(&masks[first..], index));
    }
    drop(session);
    if options.warm {
        walk.deadline = Instant::now() + options.timeout;
        walk.is_warm = true;
        replay_warm(compiled.as_ref(), case, &mut walk, &mut record.warm_masks, &mut record.warm_accepts)?;
    }
    record.bytes = Some(u64::try_from(engine.live_bytes() - before).unwrap_or(0));
    Ok(Outcome::Judged { valid_rejected: verdict.valid_rejected, invalid_accepted: verdict.invalid_accepted })
}

fn replay_warm(
    compiled: &dyn Compiled,
    case: &Case,
    walk: &mut Walk<'_>,
    masks: &mut Vec<u64>,
    accepts: &mut Vec<u64>,
) -> Result<(), String> {
    for instance in &case.instances {
        walk.is_known = false;
        walk.instance(compiled.start()?.as_mut(), instance, masks, accepts)?;
    }
    Ok(())
}

const GAVE_UP: &str = "gave up while computing a mask";

/// Runs one instance after the other in sessions of one engine.
struct Walk<'a> {
    engine: &'a dyn Engine,
    options: &'a Options<'a>,
    deadline: Instant,
    row: &'a mut [u32],
    /// Whether the next mask was already requested and timed.
    is_known: bool,
    is_warm: bool,
    first_mask: u64,
}

impl Walk<'_> {
    /// Returns whether the engine accepts the instance as a complete text.
    fn instance(
        &mut self,
        session: &mut dyn Session,
        instance: &Instance,
        masks: &mut Vec<u64>,
        accepts: &mut Vec<u64>,
    ) -> Result<bool, String> {
        for &token in &instance.tokens {
            if let Some(watch) = self.options.watch {
                watch(&SoFar { is_warm: self.is_warm, first_mask: self.first_mask, masks, accepts });
            }
            if !self.mask(session, masks, |mask| is_set(mask, token))? {
                return Ok(false);
            }
            if let Some(time) = self.options.prepare {
                session.prepare(time);
            }
            let (accepted, nanos) = self.options.clock.time(|| session.accept(token));
            accepts.push(nanos);
            if !accepted {
                return Err(format!("refuses token {token}, which its mask allows"));
            }
            if Instant::now() > self.deadline {
                return Err(format!("{TIMED_OUT}: the instances took too long"));
            }
        }
        let end = self.options.end;
        let may_end = self.mask(session, masks, |mask| end.iter().any(|&token| is_set(mask, token)))?;
        Ok(if self.engine.end_in_mask() { may_end } else { session.accepting() })
    }

    /// Requests the mask, and reads one bit of it.
    fn mask(
        &mut self,
        session: &mut dyn Session,
        masks: &mut Vec<u64>,
        look: impl FnOnce(&[u32]) -> bool,
    ) -> Result<bool, String> {
        let options = self.options;
        let (mask, nanos) = options.clock.time(|| options.mask(session, self.row));
        if !std::mem::take(&mut self.is_known) {
            masks.push(nanos);
        }
        mask.map(look).ok_or_else(|| GAVE_UP.into())
    }
}

#[derive(Default)]
struct Verdict {
    valid_rejected: bool,
    invalid_accepted: bool,
}

impl Verdict {
    fn note(&mut self, instance: &Instance, accepted: bool) {
        self.valid_rejected |= instance.valid && !accepted;
        self.invalid_accepted |= !instance.valid && accepted;
    }
}

impl Record {
    /// Creates lists with room for everything, so that their growth is not counted as memory of our engine.
    fn with_room_for(case: &Case, warm: bool) -> Record {
        let steps = case.instances.iter().map(|instance| instance.tokens.len() + 1).sum();
        let warm_steps = if warm { steps } else { 0 };
        Record {
            outcome: Outcome::Refused(String::new()),
            compile: None,
            first_mask: None,
            masks: Vec::with_capacity(steps),
            accepts: Vec::with_capacity(steps),
            warm_masks: Vec::with_capacity(warm_steps),
            warm_accepts: Vec::with_capacity(warm_steps),
            bytes: None,
            by_key_order: false,
            slowest: (0, 0, 0),
            rejected: None,
        }
    }

    pub fn rejects_valid(&self) -> bool {
        matches!(self.outcome, Outcome::Judged { valid_rejected: true, .. })
    }

    pub fn is_refused(&self) -> bool {
        matches!(self.outcome, Outcome::Refused(_))
    }

    /// Frees the room that rejected instances did not use.
    pub fn shrink(&mut self) {
        for list in [&mut self.masks, &mut self.accepts, &mut self.warm_masks, &mut self.warm_accepts] {
            list.shrink_to_fit();
        }
    }
}

/// Returns the bit of `token` in a mask of 32-bit words.
pub fn is_set(mask: &[u32], token: u32) -> bool {
    mask.get(token as usize / 32).is_some_and(|word| word >> (token % 32) & 1 == 1)
}

pub fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    match panic.downcast_ref::<String>() {
        Some(text) => text,
        None => panic.downcast_ref::<&str>().copied().unwrap_or("without a message"),
    }
}

fn slowest(masks: &[u64], instance: usize) -> (u64, usize, usize) {
    let timed = masks.iter().enumerate().map(|(token, &nanos)| (nanos, instance, token));
    timed.max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use mwbench_abi::Kind;

    use super::*;

    /// An engine that accepts the tokens 1, 2 and then the end token 0; the source selects an error.
    struct Fake;

    struct Text {
        taken: u32,
        gives_up: bool,
    }

    impl Engine for Fake {
        fn name(&self) -> &str {
            "fake"
        }

        fn release(&self) -> &str {
            "0"
        }

        fn end_in_mask(&self) -> bool {
            true
        }

        fn compile(&self, source: Source<'_>) -> Result<Box<dyn Compiled + '_>, String> {
            match source.text {
                "refuse" => Err("no".into()),
                "panic" => panic!("oh"),
                text => Ok(Box::new(text == "give up")),
            }
        }

        fn live_bytes(&self) -> i64 {
            0
        }
    }

    impl Compiled for bool {
        fn start(&self) -> Result<Box<dyn Session + '_>, String> {
            Ok(Box::new(Text { taken: 0, gives_up: *self }))
        }
    }

    impl Session for Text {
        fn fill(&mut self, mask: &mut [u32]) -> bool {
            mask[0] = [0b10, 0b100, 0b1][self.taken as usize];
            !(self.gives_up && self.taken == 1)
        }

        fn accept(&mut self, token: u32) -> bool {
            self.taken = token;
            true
        }

        fn accepting(&mut self) -> bool {
            self.taken == 2
        }
    }

    fn outcome(source: &str, instances: &[(bool, &[u32])]) -> (Outcome, Record) {
        let instance = |&(valid, tokens): &(bool, &[u32])| Instance {
            valid,
            text: String::new(),
            tokens: tokens.to_vec(),
        };
        let instances = instances.iter().map(instance).collect();
        let case = Case { name: "case".into(), kind: Kind::JsonSchema, source: source.into(), instances };
        let clock = Clock::plain();
        let timeout = Duration::from_secs(10);
        let options = Options {
            clock: &clock,
            end: &[0],
            timeout,
            warm: false,
            shared: false,
            rows: false,
            prepare: None,
            watch: None,
        };
        let record = replay(&Fake, &case, &options, &mut [0]);
        (record.outcome.clone(), record)
    }

    #[test]
    fn judges_instances() {
        for (instances, valid, invalid) in [
            (&[(true, &[1, 2][..]), (false, &[1][..]), (false, &[2][..])][..], false, false),
            (&[(true, &[1, 2][..]), (true, &[1, 1][..])][..], true, false),
            (&[(false, &[1, 2][..])][..], false, true),
            (&[(true, &[][..]), (false, &[1, 2][..])][..], true, true),
        ] {
            let (outcome, _) = outcome("", instances);
            let Outcome::Judged { valid_rejected, invalid_accepted } = outcome else {
                panic!("{outcome:?}");
            };
            assert_eq!((valid_rejected, invalid_accepted), (valid, invalid), "{instances:?}");
        }
    }

    #[test]
    fn counts_every_mask_once() {
        let (_, record) = outcome("", &[(true, &[1, 2]), (true, &[1, 2])]);
        // Three masks for each instance; the very first one belongs to the first mask's time.
        assert_eq!((record.masks.len(), record.accepts.len()), (5, 4));
        assert!(record.first_mask.is_some());
    }

    #[test]
    fn refusals_are_kept_apart() {
        for (source, message) in [("refuse", "no"), ("panic", "panicked: oh"), ("give up", GAVE_UP)] {
            let (outcome, _) = outcome(source, &[(true, &[1, 2])]);
            assert!(matches!(&outcome, Outcome::Refused(text) if text == message), "{outcome:?}");
        }
    }
}
