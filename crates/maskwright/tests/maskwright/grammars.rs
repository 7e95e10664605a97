//! Grammars in Lark and GBNF through the engine: every mask on the way through the accepted texts of `testdata` against the oracle, tokens
//! of the vocabulary, and, with the crate feature `llguidance`, random walks that llguidance allows.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use maskwright::{Compiler, Constraint, Error, Matcher, TokenId, Vocabulary, VocabularyBuilder};
use maskwright_oracle::generate::Rng;
use maskwright_oracle::{Oracle, Tokens};

/// A case of `testdata` that has a grammar.
struct Case {
    name: String,
    constraint: Constraint,
    accept: Vec<String>,
    reject: Vec<String>,
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (notation, constraint) in [("lark", Constraint::lark as fn(String) -> _), ("gbnf", Constraint::gbnf)]
    {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(notation);
        let mut files: Vec<_> = fs::read_dir(folder)
            .expect("the folder of the cases is there")
            .map(|entry| entry.expect("the folder can be read").path())
            .collect();
        files.sort();
        for path in files {
            let text = fs::read_to_string(&path).expect("a case file is UTF-8");
            let file: toml::Table = toml::from_str(&text).expect("a case file is TOML");
            for case in file["case"].as_array().expect("a list of cases") {
                let texts = |key: &str| -> Vec<String> {
                    let list = case.get(key).and_then(toml::Value::as_array).into_iter().flatten();
                    list.filter_map(|text| text.as_str().map(str::to_owned)).collect()
                };
                let string = |key: &str| case.get(key).and_then(toml::Value::as_str).map(str::to_owned);
                if string("error").is_some() || string("root").is_some() {
                    continue;
                }
                cases.push(Case {
                    name: format!("{notation}: {}", string("name").expect("a name")),
                    constraint: constraint(string("source").expect("a source")),
                    accept: texts("accept"),
                    reject: texts("reject"),
                });
            }
        }
    }
    cases
}

/// All bytes, pieces of the texts, and an end.
fn pieces(texts: &[String], rng: &mut Rng) -> Vec<Vec<u8>> {
    let mut pieces = BTreeSet::new();
    for text in texts.iter().filter(|text| !text.is_empty()) {
        for _ in 0..12 {
            let start = rng.below(text.len());
            let end = (start + 2 + rng.below(5)).min(text.len());
            pieces.insert(text.as_bytes()[start..end].to_vec());
        }
    }
    let bytes = (0..=255u8).map(|byte| vec![byte]);
    bytes.chain(pieces.into_iter().filter(|piece| piece.len() > 1)).collect()
}

fn vocabulary(list: &[Vec<u8>]) -> Arc<Vocabulary> {
    let mut builder = VocabularyBuilder::new();
    for (id, bytes) in (0..).zip(list) {
        builder.token(TokenId(id), bytes).expect("ids are distinct");
    }
    let end = TokenId(list.len() as u32);
    builder.special(end, "<end>").expect("the id is free").eos(end);
    Arc::new(builder.finish().expect("there are tokens"))
}

fn accepts(matcher: &mut Matcher, text: &str) -> bool {
    matcher.accept_bytes(text.as_bytes()).is_ok() && matcher.is_accepting()
}

/// On the way through every accepted text, every bit of every mask is what the oracle says.
#[test]
fn masks_are_exact() {
    let (mut rng, mut masks) = (Rng::new(5), 0);
    for case in cases() {
        let list = pieces(&case.accept, &mut rng);
        let compiler = Compiler::new(vocabulary(&list));
        let (grammar, remarks) =
            compiler.grammar(&case.constraint).unwrap_or_else(|error| panic!("{}: {error}", case.name));
        let bound = compiler
            .compile_grammar(&grammar, remarks)
            .unwrap_or_else(|error| panic!("{}: {error}", case.name));
        let (oracle, tokens) = (Oracle::new(&grammar), Tokens::from_list(&list));
        for text in &case.accept {
            let (mut matcher, mut state) = (bound.matcher(), oracle.start());
            for (at, byte) in text.bytes().enumerate() {
                // The oracle takes its time over long texts, so of those only some places are looked at.
                if text.len() < 24 || rng.below(text.len()) < 16 {
                    let (engine, expected) =
                        (matcher.mask().expect("a mask").clone(), oracle.mask(&state, &tokens));
                    for (id, bytes) in (0..).zip(&list) {
                        let place = || format!("{}: {:?} + {}", case.name, &text[..at], bytes.escape_ascii());
                        assert_eq!(engine.contains(TokenId(id)), expected.contains(id), "{}", place());
                    }
                    masks += 1;
                }
                state = oracle.step(&state, byte);
                assert!(matcher.accept_bytes(&[byte]).is_ok(), "{}: {text:?} at {at}", case.name);
            }
            assert!(matcher.is_accepting(), "{}: {text:?}", case.name);
        }
        for text in &case.reject {
            assert!(!accepts(&mut bound.matcher(), text), "{}: {text:?}", case.name);
        }
    }
    assert!(masks > 1_000, "only {masks} masks were compared");
}

/// A vocabulary with bytes, a word and special tokens.
fn with_specials() -> Compiler {
    let mut builder = VocabularyBuilder::new();
    for byte in 0..=255u8 {
        builder.token(TokenId(u32::from(byte)), &[byte]).expect("ids are distinct");
    }
    builder.token(TokenId(256), b"word").expect("the id is free");
    for (id, name) in (300..).zip(["<think>", "</think>", "<|tool|>", "<|end|>"]) {
        builder.special(TokenId(id), name).expect("the id is free");
    }
    builder.eos(TokenId(303));
    Compiler::new(Arc::new(builder.finish().expect("there are tokens")))
}

fn takes(constraint: &Constraint, tokens: &[u32]) -> bool {
    let bound = with_specials().compile(constraint).unwrap_or_else(|error| panic!("{constraint:?}: {error}"));
    let mut matcher = bound.matcher();
    tokens.iter().all(|&token| {
        let allowed = matcher.mask().expect("a mask").contains(TokenId(token));
        assert_eq!(allowed, matcher.accept(TokenId(token)).is_ok(), "{constraint:?}: {token}");
        allowed
    }) && matcher.is_accepting()
}

#[test]
fn tokens_of_the_vocabulary() {
    let [think, done, tool, word, a] = [300, 301, 302, 256, 97];
    let both = |lark: &str, gbnf: &str| [Constraint::lark(lark), Constraint::gbnf(gbnf)];
    for constraint in both("start: <think> /[a-z]*/ </think> \"a\"", "root ::= <think> [a-z]* </think> \"a\"")
    {
        assert!(takes(&constraint, &[think, word, a, done, a]));
        assert!(takes(&constraint, &[think, done, a]));
        assert!(!takes(&constraint, &[a, done, a]));
        assert!(!takes(&constraint, &[think, tool, done, a]));
        // The text of its name is no token.
        let spelled: Vec<u32> = "<think></think>a".bytes().map(u32::from).collect();
        assert!(!takes(&constraint, &spelled));
    }
    for constraint in both("start: <[^301]>* <[301,302]>", "root ::= !</think>* <[301,302]>") {
        assert!(takes(&constraint, &[think, a, word, tool, done]));
        assert!(takes(&constraint, &[done]));
        assert!(!takes(&constraint, &[think, a]));
        assert!(!takes(&constraint, &[done, done]));
    }
    let any = Constraint::lark("start: <[*]>~2");
    assert!(takes(&any, &[word, tool]) && !takes(&any, &[word]));
    let spaced = Constraint::lark("start: <|tool|> \"a\"\n%ignore \" \"");
    assert!(takes(&spaced, &[32, tool, 32, 32, a, 32]));
    for unknown in both("start: <|tol|>", "root ::= <|tol|>") {
        let error = with_specials().compile(&unknown).expect_err("there is no such token");
        assert!(matches!(error, Error::Compile(_)) && error.to_string().contains("<|tol|>"), "{error}");
    }
}

/// Cases in which llguidance allows what must not be allowed, or what we do not have.
#[cfg(feature = "llguidance")]
const DIFFERENT: [(&str, &str); 4] = [
    ("lark: a rule that never ends", "it walks into the dead end"),
    ("lark: lazy without a delimiter", "it reads on after a lazy terminal that matched the empty text"),
    ("lark: stop", "the stop is written and taken away again"),
    ("lark: stop with something else behind it", "the stop is written and taken away again"),
];

/// Whatever a mask of llguidance allows, ours must allow: the same language, without the losses of its lexer.
#[cfg(feature = "llguidance")]
#[test]
fn whatever_llguidance_allows_is_allowed() {
    use maskwright::backend::{Backend, Llguidance, Status};
    use maskwright::{Options, TokenMask};

    let (mut rng, mut walks, mut complete, mut masks, mut refused) = (Rng::new(11), 0, 0, 0, Vec::new());
    let mut wrong: Vec<String> = Vec::new();
    let is_alike = |case: &Case| DIFFERENT.iter().all(|(name, _)| *name != case.name);
    let cases = cases().into_iter().filter(|case| matches!(case.constraint, Constraint::Lark(_)));
    for case in cases.filter(is_alike) {
        let list = pieces(&case.accept, &mut rng);
        let vocabulary = vocabulary(&list);
        let peer = Llguidance::new(vocabulary.clone()).expect("it takes the vocabulary");
        let Ok(peer) = peer.compile(&case.constraint, &Options::default()) else {
            refused.push(case.name);
            continue;
        };
        let ours = Compiler::new(vocabulary.clone()).compile(&case.constraint).expect("it compiles");
        // Programming languages have more to show than a case of three lines.
        let count = if case.accept.iter().any(|text| text.len() > 30) { 200 } else { 30 };
        for _ in 0..count {
            let (mut peer, mut ours) = (peer.clone().start(), ours.matcher());
            let (mut text, mut words) = (Vec::new(), vec![0u32; vocabulary.size().div_ceil(32)]);
            for _ in 0..60 {
                if peer.fill_mask(&mut words).is_err() {
                    break;
                }
                masks += 1;
                let allowed = TokenMask::from_words(&words, vocabulary.size());
                let mask = ours.mask().expect("a mask");
                for token in allowed.iter().filter(|token| !mask.contains(*token)) {
                    let shown = String::from_utf8_lossy(&text).into_owned();
                    let name = list
                        .get(token.0 as usize)
                        .map_or("<end>".into(), |bytes| bytes.escape_ascii().to_string());
                    wrong.push(format!("{}: {shown:?} + {name}", case.name));
                }
                // Printable tokens, and long ones, lead further than random bytes do.
                let choices: Vec<TokenId> = allowed
                    .iter()
                    .filter(|token| {
                        list.get(token.0 as usize)
                            .is_some_and(|bytes| bytes.iter().all(|b| (32..127).contains(b)))
                    })
                    .collect();
                if choices.is_empty() || (peer.status() >= Status::Accepting && rng.below(6) == 0) {
                    break;
                }
                let token = choices[rng.below(choices.len())];
                if peer.accept(token).is_err() || ours.accept(token).is_err() {
                    break;
                }
                text.extend_from_slice(&list[token.0 as usize]);
            }
            walks += 1;
            complete += usize::from(peer.status() >= Status::Accepting);
        }
    }
    println!("{walks} walks, {complete} of them complete, {masks} masks; refused by llguidance: {refused:?}");
    wrong.sort();
    wrong.dedup();
    assert!(wrong.is_empty(), "{} disagreements\n{}", wrong.len(), wrong.join("\n"));
    assert!(masks > 10_000, "only {masks} masks were compared");
}
