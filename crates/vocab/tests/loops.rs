//! Loops against their definition, token by token, on made-up vocabularies with every kind of byte.

use std::collections::BTreeMap;

use maskwright_vocab::{Loop, LoopClass, LoopLibrary, TokenId, Trie, Vocabulary, VocabularyBuilder};

/// What a token does in a loop, by the definition.
#[derive(Debug, PartialEq, Eq)]
enum Fate {
    Stays,
    /// Leaves, and this is what is left of it.
    Leaves(Vec<u8>),
}

fn fate(class: LoopClass, token: &[u8]) -> Fate {
    let mut rest = token;
    while let Some(&byte) = rest.first() {
        if byte < 128 {
            if !class.contains_ascii(byte) {
                return Fate::Leaves(rest.to_vec());
            }
            rest = &rest[1..];
            continue;
        }
        if !class.utf8 {
            return Fate::Leaves(rest.to_vec());
        }
        // The first character, by the standard library.
        let whole = (1..=rest.len().min(4)).find(|&len| std::str::from_utf8(&rest[..len]).is_ok());
        let Some(len) = whole else {
            let error = std::str::from_utf8(rest).expect_err("no character begins here");
            let unfinished = error.valid_up_to() == 0 && error.error_len().is_none();
            return if unfinished { Fate::Stays } else { Fate::Leaves(rest.to_vec()) };
        };
        rest = &rest[len..];
    }
    Fate::Stays
}

/// All rests that the exits of a loop lead to, with their tokens.
fn rests(entry: &Loop, trie: &Trie) -> BTreeMap<Vec<u8>, Vec<u32>> {
    let mut found: BTreeMap<Vec<u8>, Vec<u32>> = BTreeMap::new();
    for (trie, node) in entry.exits(trie) {
        let mut stack = vec![(node, vec![trie.byte(node)])];
        while let Some((node, path)) = stack.pop() {
            if !trie.tokens(node).is_empty() {
                found.entry(path.clone()).or_default().extend(trie.tokens(node));
            }
            for child in trie.children(node) {
                stack.push((child, [&path[..], &[trie.byte(child)]].concat()));
            }
        }
    }
    for ids in found.values_mut() {
        ids.sort_unstable();
    }
    found
}

fn check(vocabulary: &Vocabulary, class: LoopClass) {
    let entry = vocabulary.loops().get(class);
    let mut expected: BTreeMap<Vec<u8>, Vec<u32>> = BTreeMap::new();
    for (id, bytes) in vocabulary.spelled().filter(|(_, bytes)| !bytes.is_empty()) {
        let fate = fate(class, bytes);
        assert_eq!(entry.run().contains(id), fate == Fate::Stays, "{class:?} {id} {bytes:x?}");
        if let Fate::Leaves(rest) = fate {
            expected.entry(rest).or_default().push(id.0);
        }
    }
    assert_eq!(rests(&entry, vocabulary.trie()), expected, "{class:?}");
    assert_eq!(entry.run_len(), entry.run().count());
    for limit in 0..entry.max_chars() + 2 {
        let short = entry.run_up_to(limit);
        for id in (0..vocabulary.size() as u32).map(TokenId) {
            let chars = vocabulary.bytes(id).iter().filter(|&&byte| byte & 0xC0 != 0x80).count();
            assert_eq!(short.contains(id), entry.run().contains(id) && chars <= limit);
        }
    }
}

fn classes() -> Vec<LoopClass> {
    let mut classes = vec![LoopClass { ascii: 0, utf8: false }, LoopClass::JSON_STRING];
    for utf8 in [false, true] {
        classes.push(LoopClass::of(|_| true, utf8));
        classes.push(LoopClass::of(|byte| byte == b'a', utf8));
        classes.push(LoopClass::of(|byte| byte != b'"', utf8));
        classes.push(LoopClass::of(|byte| byte.is_ascii_alphabetic(), utf8));
    }
    classes
}

/// A vocabulary of random strings over bytes that are likely to form, or to break, characters.
fn random_vocabulary(count: u32, mut seed: u64) -> Vocabulary {
    let alphabet =
        [b'a', b'b', b'"', b' ', 0x80, 0x9F, 0xA0, 0xBF, 0xC3, 0xE0, 0xE2, 0xED, 0xF0, 0xF4, 0xFF, 0x0A];
    let mut builder = VocabularyBuilder::new();
    for id in 0..count {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(77);
        let len = (seed >> 61) as usize;
        let bytes: Vec<u8> = (0..len).map(|i| alphabet[(seed >> (10 + 4 * i)) as usize % 16]).collect();
        builder.token(TokenId(id), &bytes).expect("a small vocabulary");
    }
    for (id, text) in ["naïve \"é\"", "日本", "a😀b\"", "😀😀"].iter().enumerate() {
        builder.token(TokenId(count + id as u32), text.as_bytes()).expect("a small vocabulary");
    }
    builder.special(TokenId(count + 50), "<end>").expect("a small vocabulary");
    builder.finish().expect("a small vocabulary")
}

#[test]
fn runs_and_rests_equal_their_definition() {
    for seed in 0..20 {
        let vocabulary = random_vocabulary(600, seed);
        for class in classes().into_iter().chain(vocabulary.loops().classes()) {
            check(&vocabulary, class);
        }
    }
}

#[test]
fn both_places_of_rests_are_met() {
    let vocabulary = random_vocabulary(600, 1);
    let is_split = |class| (0..=255).any(|byte| vocabulary.loops().get(class).is_outside(byte));
    assert!(is_split(LoopClass::of(|byte| byte == b'a', false)));
    // With well-formed text only, few tokens leave a wide loop at once.
    let mut builder = VocabularyBuilder::new();
    for (id, text) in ["a", "b", "c", "d", "e", "f", "a\"b", "\"b", "ab"].iter().enumerate() {
        builder.token(TokenId(id as u32), text.as_bytes()).expect("a small vocabulary");
    }
    let vocabulary = builder.finish().expect("a small vocabulary");
    let body = vocabulary.loops().get(LoopClass::JSON_STRING);
    assert!(!(0..=255).any(|byte| body.is_outside(byte)));
    check(&vocabulary, LoopClass::JSON_STRING);
}

#[test]
fn a_class_is_built_once_and_shared_between_threads() {
    let vocabulary = random_vocabulary(600, 2);
    let class = LoopClass::of(|byte| byte == b'b', true);
    assert!(vocabulary.loops().find(class).is_none());
    let built: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| vocabulary.loops().get(class))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    assert!(built.iter().all(|entry| std::sync::Arc::ptr_eq(entry, &built[0])));
    assert!(vocabulary.loops().find(class).is_some());
}

#[test]
fn a_full_library_still_answers() {
    let vocabulary = random_vocabulary(40, 3);
    for bits in 0..2 * LoopLibrary::MAX_CLASSES as u128 {
        let class = LoopClass { ascii: bits << 60, utf8: true };
        assert_eq!(vocabulary.loops().get(class).class(), class);
    }
    assert_eq!(vocabulary.loops().classes().len(), LoopLibrary::MAX_CLASSES);
    check(&vocabulary, LoopClass::of(|byte| byte == b'"', true));
}
