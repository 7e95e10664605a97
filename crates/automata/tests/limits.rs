//! Hostile and large expressions must give a result or an error, with few steps and little memory. Steps are counted,
//! because time would depend on the load of the machine.

use maskwright_automata::{ByteSet, Dfa, ExprId, Exprs, LazyDfa, Limits, Resource};

fn any_char_but_newline(e: &mut Exprs) -> ExprId {
    e.chars([('\0', '\t'), ('\u{b}', char::MAX)])
}

/// Matches `.*a.{n}`: the automaton must remember where an `a` was among the last `n` characters.
fn counting(e: &mut Exprs, n: u32) -> ExprId {
    let any = any_char_but_newline(e);
    let (before, a, after) = (e.star(any), e.bytes(b"a"), e.repeat(any, n, Some(n)));
    e.concat([before, a, after])
}

#[test]
fn an_exponential_automaton_is_refused_soon() {
    let mut e = Exprs::new();
    let id = counting(&mut e, 30);
    // The states run out before the steps do.
    let limits = Limits { steps: 5_000_000, ..Limits::default() };
    let error = Dfa::build(&mut e, id, &limits).unwrap_err();
    assert_eq!((error.resource(), error.limit()), (Resource::States, 100_000));
    assert!(error.to_string().contains("lower a repetition bound"), "{error}");
    // With a tenth of the states, a tenth of the work is done.
    let limits = Limits { steps: 500_000, states: 10_000, ..Limits::default() };
    assert_eq!(Dfa::build(&mut e, id, &limits).unwrap_err().resource(), Resource::States);
}

#[test]
fn the_lazy_automaton_reads_what_the_whole_one_cannot() {
    let mut e = Exprs::new();
    let id = counting(&mut e, 30);
    let mut lazy = LazyDfa::new(e, Limits::default());
    let start = lazy.state_of(id).unwrap();
    let text = ["aé字x", "a", "äbcdefghijklmnopqrstuvwxyzaaaa"].concat();
    let end = lazy.run(start, text.as_bytes()).unwrap();
    assert!(lazy.is_accepting(end));
    let end = lazy.run(start, &text.as_bytes()[..text.len() - 1]).unwrap();
    assert!(!lazy.is_accepting(end) && !lazy.is_dead(end));
    let end = lazy.run(start, b"a\n").unwrap();
    assert!(lazy.is_dead(end));
}

/// Rounds can be divided in many ways: only the least number that a text may have taken matters.
#[test]
fn counted_words_stay_small() {
    let mut e = Exprs::new();
    let (letter, space) = (e.set(ByteSet::range(b'a', b'z')), e.bytes(b" "));
    let (word, space) = (e.repeat(letter, 1, None), e.repeat(space, 0, Some(1)));
    let round = e.concat([word, space]);
    let words = e.repeat(round, 1, Some(200));
    let limits = Limits { states: 5_000, ..Limits::default() };
    let dfa = Dfa::build(&mut e, words, &limits).unwrap();
    assert!(dfa.len() < 500, "{}", dfa.len());
    assert!(dfa.matches("ab ".repeat(200).as_bytes()) && !dfa.matches("ab ".repeat(201).as_bytes()));
    // A count inside a count, and a least number of rounds.
    let (digits, comma) = (e.set(ByteSet::range(b'0', b'9')), e.bytes(b","));
    let (digits, comma) = (e.repeat(digits, 1, Some(5)), e.repeat(comma, 0, Some(1)));
    let round = e.concat([digits, comma]);
    let numbers = e.repeat(round, 3, Some(100));
    let dfa = Dfa::build(&mut e, numbers, &limits).unwrap();
    assert!(dfa.matches("1".repeat(500).as_bytes()) && !dfa.matches("1".repeat(501).as_bytes()));
    assert!(dfa.matches(b"123") && dfa.matches(b"1,2,3") && !dfa.matches(b"1,2") && !dfa.matches(b"12"));
    let numbers = e.repeat(round, 30, None);
    let dfa = Dfa::build(&mut e, numbers, &limits).unwrap();
    assert!(dfa.matches("1".repeat(30).as_bytes()) && !dfa.matches("1".repeat(29).as_bytes()));
}

#[test]
fn bounded_tails_stay_small() {
    let mut e = Exprs::new();
    let any = e.set(ByteSet::range(b' ', b'~'));
    let (before, a, after) = (e.star(any), e.bytes(b"a"), e.repeat(any, 0, Some(20)));
    let counted = e.concat([before, a, after]);
    let mut lazy = LazyDfa::new(e, Limits::default());
    let start = lazy.state_of(counted).unwrap();
    for text in
        [&b"abababababa"[..], b"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", b"bbbbbabbbbbbbbbbbbbbbbbbbbbbbbba"]
    {
        lazy.run(start, text).unwrap();
    }
    assert!(lazy.len() <= 24, "{}", lazy.len());
}

#[test]
fn every_limit_is_named() {
    let mut e = Exprs::new();
    let a = e.bytes(b"a");
    let b = e.bytes(b"b");
    let many = e.repeat(a, 1_000_000, Some(1_000_000));
    let error = Dfa::build(&mut e, many, &Limits::default()).unwrap_err();
    assert_eq!((error.resource(), error.limit()), (Resource::States, 100_000));
    let id = counting(&mut e, 12);
    let small = Limits { steps: 1000, ..Limits::default() };
    assert_eq!(Dfa::build(&mut e, id, &small).unwrap_err().resource(), Resource::Steps);
    let small = Limits { bytes: 1000, ..Limits::default() };
    assert_eq!(Dfa::build(&mut e, id, &small).unwrap_err().resource(), Resource::Bytes);
    // With a complement, the other construction is used.
    let not_b = e.not(b);
    let id = e.and([id, not_b]);
    let small = Limits { states: 10, ..Limits::default() };
    assert_eq!(Dfa::build(&mut e, id, &small).unwrap_err().resource(), Resource::States);
    let small = Limits { steps: 100, ..Limits::default() };
    assert_eq!(Dfa::build(&mut e, id, &small).unwrap_err().resource(), Resource::Steps);
}

#[test]
fn emptiness_is_exact_and_limited() {
    // a(bb)*c ∧ a(bbb)*c ∧ ¬…: only multiples of six, and the complement excludes them all.
    let mut e = Exprs::new();
    let (a, c) = (e.bytes(b"a"), e.bytes(b"c"));
    let multiple = |e: &mut Exprs, n: usize| {
        let bs = e.bytes(&vec![b'b'; n]);
        let bs = e.star(bs);
        e.concat([a, bs, c])
    };
    let (two, three, six) = (multiple(&mut e, 2), multiple(&mut e, 3), multiple(&mut e, 6));
    let not_six = e.not(six);
    let none = e.and([two, three, not_six]);
    assert_ne!(none, ExprId::NEVER);
    let mut lazy = LazyDfa::new(e.clone(), Limits::default());
    assert_eq!(lazy.state_of(none).unwrap(), LazyDfa::DEAD);
    assert_eq!(lazy.witness_from(LazyDfa::DEAD).unwrap(), None);
    let small = Limits { steps: 20, ..Limits::default() };
    let mut lazy = LazyDfa::new(e.clone(), small);
    assert_eq!(lazy.state_of(none).unwrap_err().resource(), Resource::Steps);
    let dfa = Dfa::build(&mut e, none, &Limits::default()).unwrap();
    assert!(dfa.is_empty() && dfa.start() == Dfa::DEAD && dfa.witness().is_none());
    assert_eq!(dfa, Dfa::never());
}

#[test]
fn depth_costs_no_stack() {
    let mut e = Exprs::new();
    let (a, b) = (e.bytes(b"a"), e.bytes(b"b"));
    let mut id = a;
    // ((…(a b?){0,2} | b) …: every level is a new node that normalization cannot remove.
    for _ in 0..100_000 {
        let optional = e.optional(b);
        let pair = e.concat([id, optional, a]);
        let not = e.not(pair);
        id = e.alt([not, b]);
    }
    let small = Limits { steps: 2_000_000, ..Limits::default() };
    let mut lazy = LazyDfa::new(e, small);
    // Any result or error is fine, but not a stack overflow.
    let _ = lazy.state_of(id).and_then(|state| lazy.run(state, b"ab"));
}

#[test]
fn ten_thousand_words_are_one_automaton() {
    let mut e = Exprs::new();
    let words: Vec<ExprId> = (0..10_000).map(|i| e.bytes(format!("word-{:05}", i * 7).as_bytes())).collect();
    let any = e.alt(words);
    // Ten letters each, within the default number of steps.
    let dfa = Dfa::build(&mut e, any, &Limits::default()).unwrap();
    assert!(dfa.matches(b"word-00007") && !dfa.matches(b"word-00008"));
    assert_eq!(dfa.witness().unwrap(), b"word-00000");
}

#[test]
fn utf8_text_is_what_the_standard_library_says() {
    let mut e = Exprs::new();
    let id = e.utf8_text();
    let dfa = Dfa::build(&mut e, id, &Limits::default()).unwrap();
    assert_eq!(dfa.len(), 9);
    // All strings of three bytes from the interesting ones: lead bytes, and the edges of continuations.
    let edges =
        [0, b'a', 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc1, 0xc2, 0xdf, 0xe0, 0xe1, 0xec, 0xed]
            .into_iter()
            .chain(0xee..=0xff);
    let edges: Vec<u8> = edges.collect();
    for &x in &edges {
        for &y in &edges {
            for &z in &edges {
                for text in [&[x][..], &[x, y], &[x, y, z], &[x, y, z, 0x80], &[x, y, z, 0xbf]] {
                    assert_eq!(dfa.matches(text), core::str::from_utf8(text).is_ok(), "{text:x?}");
                }
            }
        }
    }
}
