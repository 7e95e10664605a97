//! Masks of many matchers at once: the same as one by one, whatever the number of threads.

use std::num::NonZero;
use std::sync::Arc;

use maskwright::service::{Service, Settings};
use maskwright::{
    Budget, Compiler, Constraint, FillRow, Filled, MaskRow, MatchError, Matcher, RowError, StepRow, TokenId,
    Vocabulary, VocabularyBuilder, fill_masks, set_threads, step_batch,
};

const WORDS: usize = 257_usize.div_ceil(32);

fn vocabulary() -> Arc<Vocabulary> {
    let mut builder = VocabularyBuilder::new();
    for byte in 0..=u8::MAX {
        builder.token(TokenId(byte.into()), &[byte]).unwrap();
    }
    builder.special(TokenId(256), "<end>").unwrap().eos(TokenId(256));
    Arc::new(builder.finish().unwrap())
}

/// Matchers of several constraints, each at another place.
fn matchers(count: usize) -> Vec<Matcher> {
    let compiler = Compiler::new(vocabulary());
    let constraints = [
        (Constraint::regex("[a-f]{0,90}[0-9]+"), "abcdef"),
        (Constraint::json_schema(r#"{"type": "array", "items": {"enum": ["x", 1]}}"#), "[\"x\", 1"),
        (Constraint::ebnf("root ::= \"(\" root \")\" | \"x\""), "((((((((("),
        (Constraint::choice(["yes", "no"]), "no"),
    ];
    let compiled: Vec<_> =
        constraints.iter().map(|(constraint, text)| (compiler.compile(constraint).unwrap(), text)).collect();
    let matcher = |number: usize| {
        let (compiled, text) = &compiled[number % compiled.len()];
        let mut matcher = compiled.matcher();
        matcher.accept_bytes(&text.as_bytes()[..number % (text.len() + 1)]).unwrap();
        matcher
    };
    (0..count).map(matcher).collect()
}

fn one_by_one(matchers: &mut [Matcher]) -> Vec<Vec<u32>> {
    let mask = |matcher: &mut Matcher| {
        let mut words = vec![0; WORDS];
        matcher.fill_mask(&mut words).unwrap();
        words
    };
    matchers.iter_mut().map(mask).collect()
}

/// A row that takes so long that other threads are worth waking, and knows who filled it.
#[derive(Clone, Copy, Debug, Default)]
struct Slow(Option<std::thread::ThreadId>);

impl FillRow for Slow {
    type Error = ();

    fn fill_row(&mut self) -> Result<(), ()> {
        std::thread::sleep(std::time::Duration::from_micros(300));
        self.0 = Some(std::thread::current().id());
        Ok(())
    }
}

/// Has batches learn that rows take long, so that the next one is spread over threads. Says how many filled the last of these.
fn slow_down(threads: usize) -> usize {
    let fill = || fill_masks(vec![Slow::default(); 24], threads).rows;
    fill();
    let mut by: Vec<_> = fill().into_iter().map(|row| format!("{:?}", row.0)).collect();
    by.sort_unstable();
    by.dedup();
    by.len()
}

#[test]
fn rows_that_take_long_are_spread_over_threads() {
    set_threads(NonZero::new(3).unwrap()).unwrap();
    assert_eq!(slow_down(1), 1);
    // Another test may have taken the pool away for a moment.
    assert!((0..20).any(|_| slow_down(3) > 1));
}

#[test]
fn a_batch_is_what_its_rows_are_by_themselves() {
    for threads in [1, 2, 3, 8] {
        // More threads than the machine may have; other tests may fill batches meanwhile.
        set_threads(NonZero::new(threads).unwrap()).unwrap();
        for count in [0, 1, 7, 8, 9, 16, 17, 100] {
            let mut matchers = matchers(count);
            let expected = one_by_one(&mut matchers);
            assert!(count < 9 || expected.windows(2).any(|pair| pair[0] != pair[1]));
            // What lies in a row before is of no account, and words beyond the vocabulary are cleared.
            let rows = matchers.into_iter().map(|matcher| (matcher, vec![u32::MAX; WORDS + 2])).collect();
            slow_down(threads);
            let Filled { rows, errors, .. } = fill_masks(rows, threads);
            assert!(errors.is_empty() && rows.len() == count);
            for (number, ((_, words), expected)) in rows.iter().zip(&expected).enumerate() {
                assert_eq!(words[..WORDS], expected[..], "row {number} of {count}, {threads} threads");
                assert_eq!(words[WORDS..], [0, 0]);
            }
        }
    }
}

#[test]
fn an_error_concerns_one_row() {
    for threads in [1, 4, usize::MAX] {
        let mut matchers = matchers(40);
        let expected = one_by_one(&mut matchers);
        let width = |number| if number == 3 || number == 29 { WORDS - 1 } else { WORDS };
        let rows = matchers.into_iter().enumerate();
        let rows = rows.map(|(number, matcher)| (matcher, vec![7; width(number)])).collect();
        let Filled { rows, errors, .. } = fill_masks(rows, threads);
        let short = || RowError::Mask(MatchError::MaskTooShort { words: WORDS });
        assert_eq!(errors, [(3, short()), (29, short())]);
        for (number, (_, words)) in rows.iter().enumerate() {
            if width(number) == WORDS {
                assert_eq!(*words, expected[number]);
            } else {
                assert_eq!(*words, [0; WORDS - 1], "it is cleared");
            }
        }
    }
}

#[derive(Debug)]
struct Odd {
    number: usize,
    is_filled: bool,
}

impl FillRow for Odd {
    type Error = usize;

    fn fill_row(&mut self) -> Result<(), usize> {
        match self.number {
            11 => panic!("oh {}", self.number),
            12 => Err(self.number),
            _ => {
                self.is_filled = true;
                Ok(())
            }
        }
    }
}

#[test]
fn a_panic_concerns_one_row_and_rows_come_back_in_their_order() {
    for threads in [1, 4] {
        let rows = (0..60).map(|number| Odd { number, is_filled: false }).collect();
        slow_down(threads);
        let filled = fill_masks(rows, threads);
        assert_eq!(filled.errors, [(11, RowError::Panicked("oh 11".into())), (12, RowError::Mask(12))]);
        assert!(filled.rows.iter().enumerate().all(|(number, row)| row.number == number));
        assert!(filled.rows.iter().all(|row| row.is_filled != (11..=12).contains(&row.number)));
    }
}

#[test]
fn many_batches_at_once_do_not_wait_for_each_other() {
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut matchers = matchers(64);
                let expected = one_by_one(&mut matchers);
                let mut rows: Vec<_> =
                    matchers.into_iter().map(|matcher| (matcher, vec![0; WORDS])).collect();
                for _ in 0..20 {
                    slow_down(3);
                    rows = fill_masks(rows, 3).rows;
                    assert!(rows.iter().zip(&expected).all(|((_, words), expected)| words == expected));
                }
            });
        }
    });
}

#[test]
fn matchers_of_a_service_are_counted() {
    let service = Service::new(Settings::default()).unwrap();
    let compiled =
        service.client(Arc::new(Compiler::new(vocabulary()))).compile(&Constraint::regex("a+")).unwrap();
    let rows = (0..30).map(|_| (compiled.matcher(), vec![0; WORDS])).collect();
    let filled = fill_masks(rows, 2);
    assert!(filled.errors.is_empty() && filled.rows.iter().all(|(_, words)| words[3] == 1 << (b'a' % 32)));
    drop(filled);
    assert_eq!(service.statistics().matching.masks, 30);
}

#[test]
fn idle_workers_prepare_masks() {
    let settings =
        Settings { prepare: std::time::Duration::from_secs(20), workers: 2, ..Settings::default() };
    let service = Service::new(settings).unwrap();
    let client = service.client(Arc::new(Compiler::new(vocabulary())));
    let constraint =
        Constraint::json_schema(r#"{"properties": {"ab": {"type": "integer"}, "ac": {"type": "string"}}}"#);
    let compiled = client.compile(&constraint).unwrap();
    // What is done in the background is there after a while.
    let wait = |is_done: &dyn Fn() -> bool| {
        let is_there = (0..2_000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(5));
            is_done()
        });
        assert!(is_there);
    };
    wait(&|| service.statistics().matching.prepared > 0);
    let mut matcher = compiled.matcher();
    for byte in br#"{"ab": 1, "ac": "#.iter().copied() {
        wait(&|| matcher.prepare_soon());
        std::thread::sleep(std::time::Duration::from_millis(30));
        matcher.accept(TokenId(byte.into())).unwrap();
        matcher.mask_words().unwrap();
    }
    drop(matcher);
    let matching = service.statistics().matching;
    assert!(matching.prepared > 10 && matching.computed <= 4, "{matching:?}");
    // Nothing is prepared unless that is wanted.
    let service = Service::new(Settings::default()).unwrap();
    let matcher =
        service.client(Arc::new(Compiler::new(vocabulary()))).compile(&constraint).unwrap().matcher();
    assert!(!matcher.prepare_soon());
}

/// Numbers that look random.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }

    /// A token that a mask allows.
    fn token(&mut self, mask: &[u32]) -> Option<TokenId> {
        let allowed: Vec<u32> =
            (0..257).filter(|token| mask[*token as usize / 32] >> (token % 32) & 1 == 1).collect();
        (!allowed.is_empty()).then(|| TokenId(allowed[self.below(allowed.len())]))
    }
}

/// Matchers whose masks stay the same for some tokens, and some that are corrected: values that must differ, a budget, other ends.
fn various() -> Vec<Matcher> {
    let compiler = Compiler::new(vocabulary());
    let constraints = [
        Constraint::regex("[a-f]{0,30}[0-9]*"),
        Constraint::regex("([a-z]{1,5} ?){1,9}"),
        Constraint::json_schema(r#"{"type": "array", "items": {"type": "string"}, "uniqueItems": true}"#),
        Constraint::json_schema(r#"{"type": "array", "items": {"type": "string", "maxLength": 3}}"#),
        Constraint::json_schema(r#"{"properties": {"ab": {"type": "integer"}, "ac": {"type": "null"}}}"#),
        Constraint::ebnf("root ::= root \"+\" root | [0-9]+"),
    ];
    let mut matchers: Vec<Matcher> =
        constraints.iter().map(|constraint| compiler.compile(constraint).unwrap().matcher()).collect();
    let mut bounded = matchers[1].fork();
    bounded.set_budget(Some(Budget::new(40))).unwrap();
    let mut ends = matchers[0].fork();
    ends.set_stops(Some(Arc::new([TokenId(b'a'.into())]))).unwrap();
    matchers.extend([bounded, ends]);
    matchers
}

#[test]
fn a_row_that_is_updated_holds_what_a_mask_written_anew_holds() {
    let (mut matchers, mut random) = (various(), Random(7));
    let mut rows: Vec<(Vec<u32>, MaskRow)> =
        (0..3).map(|_| (vec![0x5555_5555; WORDS + 1], MaskRow::default())).collect();
    let (mut fresh, mut unchanged, mut borrowed_unchanged) = (vec![0; WORDS + 1], 0, 0);
    let mut borrowed_before = vec![Vec::new(); matchers.len()];
    for round in 0..20_000 {
        let at = random.below(matchers.len());
        let matcher = &mut matchers[at];
        matcher.fill_mask(&mut fresh).unwrap();
        match random.below(20) {
            0 => matcher.reset(),
            1 => drop(matcher.rollback(1)),
            2 => matcher.set_eos_in_mask(random.below(2) == 0),
            3 => {}
            _ => match random.token(&fresh) {
                Some(token) => matcher.accept(token).unwrap(),
                None => matcher.reset(),
            },
        }
        matcher.fill_mask(&mut fresh).unwrap();
        // Mostly every matcher keeps its row.
        let row = if random.below(5) == 0 { random.below(3) } else { at % 3 };
        let (words, row) = &mut rows[row];
        let before = words.clone();
        let has_changed = matcher.update_mask(words, row).unwrap();
        assert_eq!(*words, fresh, "round {round}, matcher {at}");
        assert!(has_changed || *words == before, "round {round}, matcher {at}: a change is said");
        unchanged += usize::from(!has_changed);
        let (mask, has_changed) = matcher.borrow_mask().unwrap();
        assert_eq!(mask, &fresh[..WORDS], "round {round}, matcher {at}");
        assert!(has_changed || mask == borrowed_before[at], "round {round}, matcher {at}: a change is said");
        borrowed_unchanged += usize::from(!has_changed);
        borrowed_before[at] = mask.to_vec();
        if random.below(100) == 0 {
            words.fill(random.below(2) as u32);
            row.forget();
        }
    }
    assert!(unchanged > 500 && borrowed_unchanged > 1_000, "{unchanged} {borrowed_unchanged}");
}

#[test]
fn masks_that_were_prepared_are_there_and_are_the_same() {
    let mut random = Random(5);
    let (mut prepared_count, mut ready, mut masks) = (0, 0, 0);
    for _ in 0..20 {
        // Two sets of matchers that share nothing.
        for (mut prepared, mut plain) in various().into_iter().zip(various()) {
            for _ in 0..12 {
                let mut left = random.below(300);
                let done = prepared.prepare(&mut || {
                    left = left.saturating_sub(1);
                    left > 0
                });
                prepared_count += done.masks;
                assert!(!done.is_complete || done.tokens == plain.mask().unwrap().count());
                let Some(token) = random.token(plain.mask_words().unwrap()) else { break };
                assert_eq!(prepared.accept(token), plain.accept(token));
                let before = prepared.computed_masks();
                assert_eq!(prepared.mask_words().unwrap(), plain.mask_words().unwrap());
                assert!(!done.is_complete || prepared.computed_masks() == before, "it was prepared");
                masks += 1;
                ready += usize::from(prepared.computed_masks() == before);
            }
        }
    }
    assert!(prepared_count > 500 && ready > masks / 2, "{prepared_count} {ready} {masks}");
}

#[test]
fn a_step_of_a_batch_is_what_its_rows_do_by_themselves() {
    for threads in [1, 3] {
        let mut random = Random(threads as u64);
        let mut alone: Vec<Matcher> = (0..5).flat_map(|_| various()).collect();
        let mut rows: Vec<_> = alone.iter().map(|matcher| StepRow::new(matcher.fork(), WORDS)).collect();
        let (mut refused, mut unchanged) = (0, 0);
        for step in 0..60 {
            let before: Vec<Vec<u32>> = rows.iter().map(|row| row.words().to_vec()).collect();
            let mut expected_errors = Vec::new();
            for (number, (row, matcher)) in rows.iter_mut().zip(&mut alone).enumerate() {
                // Now and then there is no token, or one that is not allowed.
                let token = match random.below(12) {
                    0 => None,
                    1 => Some(TokenId(random.below(256) as u32)),
                    _ => random.token(matcher.mask_words().unwrap()),
                };
                row.set_token(token);
                if let Some(Err(error)) = token.map(|token| matcher.accept(token)) {
                    expected_errors.push((number, RowError::Mask(error)));
                }
            }
            slow_down(threads);
            let Filled { rows: stepped, errors, .. } = step_batch(rows, threads);
            rows = stepped;
            assert_eq!(errors, expected_errors, "step {step}");
            refused += errors.len();
            for (number, (row, matcher)) in rows.iter().zip(&mut alone).enumerate() {
                assert_eq!(row.words(), matcher.mask_words().unwrap(), "step {step}, row {number}");
                assert!(row.has_changed() || row.words() == before[number], "step {step}, row {number}");
                unchanged += usize::from(!row.has_changed());
            }
        }
        assert!(refused > 30 && unchanged > 200, "{refused} {unchanged}");
    }
}
