//! JSON strings: every spelling of every text, nothing else, and every prefix of a spelling.

use maskwright_grammar::{CharSet, ExprId, Grammar, GrammarBuilder};
use maskwright_oracle::Oracle;
use maskwright_oracle::generate::{Rng, mutate};

fn strings_of(text: impl FnOnce(&mut GrammarBuilder) -> ExprId) -> Grammar {
    let mut g = GrammarBuilder::new();
    let root = g.declare("root");
    let text = text(&mut g);
    let body = g.json_string(text);
    g.define(root, body);
    g.finish(root).expect("defined and regular")
}

#[track_caller]
fn check(oracle: &Oracle, whole: &[&str], beginnings: &[&str], dead: &[&str]) {
    for text in whole {
        assert!(oracle.accepts(text.as_bytes()), "{text} is whole");
    }
    for text in beginnings {
        let state = oracle.run(&oracle.start(), text.as_bytes());
        assert!(oracle.is_viable(&state) && !oracle.is_accepting(&state), "{text} is a beginning");
    }
    for text in dead {
        assert!(!oracle.is_prefix(text.as_bytes()), "{text} is dead");
    }
}

#[test]
fn one_text_has_many_spellings() {
    let oracle = Oracle::new(&strings_of(|g| g.bytes("a/😀".as_bytes())));
    check(
        &oracle,
        &[r#""a/😀""#, r#""\u0061\/\uD83D\uDE00""#, r#""a\u002f\ud83d\ude00""#, r#""\u0061\u002F😀""#],
        &[
            "",
            "\"",
            r#""a"#,
            r#""\"#,
            r#""\u"#,
            r#""\u006"#,
            r#""a\/\uD83D\uDE0"#,
            r#""a/\uD8"#,
            r#""a/\uD83D\"#,
        ],
        &[
            "a",
            r#""a""#,
            r#""b"#,
            r#""\/"#,
            r#""\u0062"#,
            r#""\u1"#,
            r#""\u007"#,
            r#""a/\uD83D\uDE1"#,
            r#""a/\uD83E"#,
            r#""a/\uDE"#,
            r#""a/\uD83Dx"#,
            r#""a/\uD83D\n"#,
            r#""a/😀"x"#,
        ],
    );
}

#[test]
fn lone_surrogates_and_raw_controls_are_refused() {
    let oracle = Oracle::new(&strings_of(GrammarBuilder::any_text));
    check(
        &oracle,
        &[r#""""#, r#""\b\f\n\r\t\"\\\/""#, "\"\u{7F}\"", r#""\ud800\udc00""#, r#""\u0000""#, r#""\uFFFF""#],
        &[r#""\uD83D"#, r#""\uD83D\u"#, r#""\uD83D\uD"#, r#""\uD83D\uDFF"#],
        &[
            "\"\n",
            "\"\u{1F}",
            r#""\uDC"#,
            r#""\udf"#,
            r#""\uD83D""#,
            r#""\uD83Da"#,
            r#""\uD83D\uDB"#,
            r#""\uD83D\u0"#,
            r#""\a"#,
            r#""\U"#,
            r#""\u00g"#,
            r#""""""#,
        ],
    );
    for (bytes, viable) in [
        (&b"\"\xF0\x9F"[..], true),
        (b"\"\xC3", true),
        (b"\"\xC3\"", false),
        (b"\"\xC3\\", false),
        (b"\"\xC0", false),
        (b"\"\x80", false),
        (b"\"\xED\xA0", false),
        (b"\"\xFF", false),
    ] {
        assert_eq!(oracle.is_prefix(bytes), viable, "{}", bytes.escape_ascii());
    }
}

#[test]
fn counts_are_counts_of_characters() {
    let oracle = Oracle::new(&strings_of(|g| {
        let any = g.class(CharSet::all());
        g.repeat(any, 2, Some(3))
    }));
    check(
        &oracle,
        &[r#""ab""#, r#""😀\uD83D\uDE00é""#, r#""\n\n""#],
        &[r#""a"#, r#""abc"#],
        &[r#""a""#, r#""abcd"#, r#""abc\"#],
    );
}

#[test]
fn an_excluded_text_is_excluded_in_every_spelling() {
    let oracle = Oracle::new(&strings_of(|g| {
        let id = g.bytes(b"id");
        g.not(id)
    }));
    check(
        &oracle,
        &[r#""""#, r#""ID""#, r#""ids""#, r#""\u0069\u0064s""#],
        &[r#""id"#, r#""i\u0064"#],
        &[r#""id""#, r#""\u0069d""#, r#""i\u0064""#],
    );
}

/// Bytes that are not text have no spelling, and no prefix of one.
#[test]
fn texts_that_are_not_well_formed_have_no_spelling() {
    let oracle = Oracle::new(&strings_of(|g| {
        let (broken, fine) = (g.bytes(b"a\xFF"), g.bytes(b"b"));
        g.alt([broken, fine])
    }));
    check(&oracle, &[r#""b""#], &["\""], &["\"a", r#""\u0061"#]);
}

/// Compares with an independent parser on random strings: raw, escaped, or with a mistake.
#[test]
fn serde_json_agrees() {
    const CHARS: [char; 10] = ['a', 'é', '😀', '"', '\\', '/', '\n', '\0', '\u{E000}', '\u{10_FFFF}'];
    // Every text without two adjacent `a`.
    let oracle = Oracle::new(&strings_of(|g| {
        let (any, aa) = (g.any_text(), g.bytes(b"aa"));
        let double = g.seq([any, aa, any]);
        g.not(double)
    }));
    let mut rng = Rng::new(5);
    let (mut right, mut wrong) = (0, 0);
    for _ in 0..4000 {
        let text: String = (0..rng.below(6)).filter_map(|_| rng.choose(&CHARS)).collect();
        let mut spelling = spell(&mut rng, &text).into_bytes();
        if rng.one_in(2) {
            spelling = mutate(&mut rng, &spelling);
        }
        let is_quoted = spelling.len() > 1 && spelling.starts_with(b"\"") && spelling.ends_with(b"\"");
        let decoded = serde_json::from_slice::<String>(&spelling).ok().filter(|_| is_quoted);
        let expected = decoded.is_some_and(|text| !text.contains("aa"));
        assert_eq!(oracle.accepts(&spelling), expected, "{}", spelling.escape_ascii());
        check_beginnings(&oracle, &spelling, expected);
        (right, wrong) = (right + u32::from(expected), wrong + u32::from(!expected));
    }
    assert!(right > 1000 && wrong > 1000, "{right} and {wrong}");
}

/// Checks that every prefix of an accepted string is viable, and that everything viable can be completed.
fn check_beginnings(oracle: &Oracle, spelling: &[u8], accepted: bool) {
    let mut state = oracle.start();
    for &byte in spelling {
        state = oracle.step(&state, byte);
        assert!(oracle.is_viable(&state) || !accepted, "{}", spelling.escape_ascii());
    }
    if let Some(rest) = oracle.completion(&state) {
        let whole = [spelling, &rest].concat();
        let decoded: String = serde_json::from_slice(&whole).expect("a JSON string");
        assert!(!decoded.contains("aa"), "{}", whole.escape_ascii());
    }
}

/// Returns a random spelling.
fn spell(rng: &mut Rng, text: &str) -> String {
    let mut spelling = String::from("\"");
    for c in text.chars() {
        if !rng.one_in(3) && c >= ' ' && c != '"' && c != '\\' {
            spelling.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            let digits = if rng.one_in(2) { format!("{unit:04x}") } else { format!("{unit:04X}") };
            spelling.push_str("\\u");
            spelling.push_str(&digits);
        }
    }
    spelling.push('"');
    spelling
}
