//! Loads arbitrary bytes as an index, and asks it everything.
//!
//! A random input would never get past the checksum. So it is taken as a patch: pairs of a place and a byte that change a sound file,
//! whose length and checksum are then made right again.

#![no_main]

use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use maskwright_engine::{AutomatonCache, Index, IndexLimits, Library, StateId};
use maskwright_grammar::{CharSet, GrammarBuilder};
use maskwright_vocab::{TokenId, VocabularyBuilder, checksum};

fuzz_target!(|input: &[u8]| {
    // As it is: foreign, cut, damaged.
    let _ = Index::from_bytes(input.to_vec());
    let mut file = SOUND.clone();
    for change in input.as_chunks::<3>().0 {
        let at = usize::from(u16::from_le_bytes([change[0], change[1]])) % (file.len() + 4);
        match file.get_mut(at) {
            Some(byte) => *byte = change[2],
            // The last places change the length.
            None => file.truncate(file.len() - usize::from(change[2]).min(file.len()) / 4 * 4),
        }
    }
    if file.len() < 48 {
        return;
    }
    let words = (file.len() / 4) as u32;
    file[20..24].copy_from_slice(&words.to_le_bytes());
    let sum = checksum(&file[48..]).to_le_bytes();
    file[32..48].copy_from_slice(&sum);
    let Ok(index) = Index::from_bytes(file) else { return };
    let mut row = vec![0; index.mask_words().min(1 << 12)];
    for state in index.states().take(6).chain([StateId::DEAD, StateId::ENDED, StateId(u32::MAX)]) {
        index.mask(state).write(&mut row);
        index.is_terminal(state);
        for token in (0..2_700).step_by(401).chain([2_599, 2_600, 2_601, u32::MAX]).map(TokenId) {
            if let Ok(next) = index.next_state(state, token) {
                assert!(next == StateId::ENDED || (next.0 as usize) < index.len() + 2);
            }
        }
    }
    let _ = index.sections().count();
});

/// A small index in which every section has something.
static SOUND: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut vocabulary = VocabularyBuilder::new();
    for id in 0..2_600u32 {
        let text = format!("{id:x}");
        vocabulary.token(TokenId(id), text.as_bytes()).expect("ids are distinct");
    }
    vocabulary.token(TokenId(2_600), b"\"").expect("the id is free");
    vocabulary.special(TokenId(2_601), "<end>").expect("the id is free").eos(TokenId(2_601));
    let library = Library::new(Arc::new(vocabulary.finish().expect("there are tokens")));
    let mut g = GrammarBuilder::new();
    let root = g.declare("root");
    let any = g.any_text();
    let string = g.json_string(any);
    let digit = g.class(CharSet::from_ranges([('0', '9')]));
    let digits = g.repeat(digit, 1, Some(4));
    let value = g.alt([string, digits]);
    g.define(root, value);
    let grammar = g.finish(root).expect("a grammar");
    let index = Index::build(&grammar, &library, &AutomatonCache::default(), &IndexLimits::default());
    let mut file = Vec::new();
    index.expect("regular").save(&mut file).expect("memory is large enough");
    file
});
