//! Lists of words, which become trees: the bytes that may follow each prefix, and where a text may end.

use std::collections::BTreeSet;
use std::sync::Arc;

use maskwright_engine::{AutomatonCache, BoundProgram, Library, Limits, compile};
use maskwright_grammar::GrammarBuilder;
use maskwright_oracle::generate::Rng;

use crate::support;

/// Returns words over two letters, many of them prefixes of others.
fn words(rng: &mut Rng, count: usize) -> BTreeSet<Vec<u8>> {
    let mut words = BTreeSet::new();
    while words.len() < count {
        let length = 1 + rng.below(9);
        words.insert((0..length).map(|_| b'a' + rng.below(2) as u8).collect());
    }
    words
}

#[test]
fn a_list_of_words_takes_those_words_and_no_others() {
    let mut rng = Rng::new(5);
    // A few words are no tree; many are one, also before something and beside something else.
    for count in [1, 7, 8, 9, 60, 300] {
        let words = words(&mut rng, count);
        let mut texts: BTreeSet<Vec<u8>> =
            words.iter().map(|word| [word.as_slice(), b".".as_slice()].concat()).collect();
        texts.extend(["(a)", "(b)"].map(|text| [text.as_bytes(), b".".as_slice()].concat()));
        let mut g = GrammarBuilder::new();
        let mut ways: Vec<_> = words.iter().map(|word| g.bytes(word)).collect();
        let (open, a, b, close) = (g.bytes(b"("), g.bytes(b"a"), g.bytes(b"b"), g.bytes(b")"));
        let letter = g.alt([a, b]);
        ways.push(g.seq([open, letter, close]));
        let (word, end) = (g.alt(ways), g.bytes(b"."));
        // A rule that calls itself prevents the whole grammar from becoming a table.
        let text = g.seq([word, end]);
        let root = g.declare("root");
        let (left, right) = (g.bytes(b"["), g.bytes(b"]"));
        let again = g.rule(root);
        let nested = g.seq([left, again, right]);
        let both = g.alt([text, nested]);
        g.define(root, both);
        let grammar = g.finish(root).expect("the rule is defined");
        let program = compile(&grammar, &AutomatonCache::default(), &Limits::default()).expect("it compiles");
        let vocabulary = support::vocabulary(&b"ab.()[]".map(|byte| vec![byte]));
        let bound = BoundProgram::new(Arc::new(program), Arc::new(Library::new(vocabulary)));
        let beginnings: BTreeSet<&[u8]> =
            texts.iter().flat_map(|text| (0..=text.len()).map(|length| &text[..length])).collect();
        for beginning in &beginnings {
            let mut matcher = bound.matcher();
            matcher.accept_bytes(beginning).expect("a text begins like this");
            let next = texts.iter().filter(|text| text.starts_with(beginning));
            let mut next: BTreeSet<u8> = next.filter_map(|text| text.get(beginning.len()).copied()).collect();
            if beginning.is_empty() {
                next.insert(b'[');
            }
            let found: BTreeSet<u8> = matcher.next_bytes().iter().collect();
            assert_eq!(found, next, "{count} words, after {:?}", String::from_utf8_lossy(beginning));
            assert_eq!(matcher.is_accepting(), texts.contains(*beginning));
        }
    }
}
