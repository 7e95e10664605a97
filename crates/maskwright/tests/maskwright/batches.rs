//! Masks of many matchers at once: the same as one by one, whatever the number of threads.

use std::num::NonZero;
use std::sync::Arc;

use maskwright::service::{Service, Settings};
use maskwright::{
    Compiler, Constraint, FillRow, Filled, MatchError, Matcher, RowError, TokenId, Vocabulary,
    VocabularyBuilder, fill_masks, set_threads,
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
