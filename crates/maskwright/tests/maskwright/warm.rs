//! A service is saved, and another one begins where it ended.

use std::sync::Arc;

use maskwright::service::{Client, LoadError, Service, Settings};
use maskwright::statistics::Lookup;
use maskwright::{Compiler, Constraint, Options, TokenId, Vocabulary, VocabularyBuilder, json_schema};
use maskwright_oracle::generate::Rng;

/// All single bytes, some longer tokens, and an end.
fn vocabulary() -> Arc<Vocabulary> {
    let mut builder = VocabularyBuilder::new();
    for byte in 0..=255u8 {
        builder.token(TokenId(u32::from(byte)), &[byte]).expect("a new token");
    }
    let longer =
        ["\":", "\", \"", "ab", "abc", "{\"", "\"}", "10", "200", "é", "日本", " \"", "a\"", "-0", "\\u00"];
    for (id, text) in (300..).zip(longer) {
        builder.token(TokenId(id), text.as_bytes()).expect("a new token");
    }
    builder.special(TokenId(256), "<end>").expect("a new token").eos(TokenId(256));
    Arc::new(builder.finish().expect("a vocabulary"))
}

fn client(vocabulary: &Arc<Vocabulary>) -> Client {
    let service = Service::new(Settings::default()).expect("threads can be started");
    service.client(Arc::new(Compiler::new(vocabulary.clone())))
}

fn constraints() -> Vec<Constraint> {
    vec![
        Constraint::regex("[a-c]{2,40}(10|200)?"),
        Constraint::choice(["ab", "abc"]),
        Constraint::json_schema(
            r#"{"type": "object", "properties": {"name": {"type": "string", "pattern": "^a+[b-z]*$"},
                "day": {"type": "string", "format": "date"}, "n": {"type": "number", "minimum": -0.5}}}"#,
        ),
        Constraint::json_schema(
            r#"{"type": "array", "items": {"not": {"type": "string"}}, "uniqueItems": true}"#,
        ),
    ]
}

/// Walks at random and notes every mask.
fn walk(client: &Client, constraint: &Constraint, seed: u64) -> Vec<Vec<u32>> {
    let mut matcher = client.compile(constraint).expect("a constraint").matcher();
    let mut rng = Rng::new(seed);
    let mut masks = Vec::new();
    for _ in 0..60 {
        let mut mask = vec![0; 10];
        matcher.fill_mask(&mut mask).expect("a mask");
        let allowed: Vec<u32> = (0..320).filter(|t| mask[*t as usize / 32] >> (t % 32) & 1 == 1).collect();
        masks.push(mask);
        let allowed: Vec<u32> = allowed.into_iter().filter(|token| *token != 256).collect();
        if allowed.is_empty() {
            break;
        }
        matcher.accept(TokenId(allowed[rng.below(allowed.len())])).expect("an allowed token");
    }
    masks
}

fn saved(client: &Client) -> Vec<u8> {
    let mut file = Vec::new();
    client.save(&mut file).expect("memory");
    file
}

#[test]
fn masks_are_the_same_and_nothing_is_compiled_twice() {
    let vocabulary = vocabulary();
    let before = client(&vocabulary);
    let mut options = Options::default();
    options.json_schema.key_order = json_schema::KeyOrder::Any;
    let other = before.with_options(options.clone());
    let constraints = constraints();
    let masks: Vec<_> = constraints.iter().map(|constraint| walk(&before, constraint, 7)).collect();
    let any_order = walk(&other, &constraints[2], 8);
    let mut resolving = Options::default();
    resolving.json_schema.resolver = Some(json_schema::Resolver::new(|_| None));
    before.with_options(resolving).compile(&constraints[2]).expect("a constraint");

    let mut file = Vec::new();
    let written = before.save(&mut file).expect("memory");
    assert_eq!((written.constraints, written.left_out), (5, 1));
    let after = client(&vocabulary);
    let warm = after.load(&file).expect("a file");
    assert_eq!(warm.ready, 5, "{:?}", warm.refused);
    for (constraint, masks) in constraints.iter().zip(&masks) {
        assert_eq!(after.request(constraint).lookup(), Lookup::Hit);
        assert_eq!(&walk(&after, constraint, 7), masks);
    }
    assert_eq!(after.with_options(options.clone()).request(&constraints[2]).lookup(), Lookup::Hit);
    assert_eq!(walk(&after.with_options(options), &constraints[2], 8), any_order);
    // Walks that were not made before must not be different either.
    let fresh = client(&vocabulary);
    for (constraint, seed) in constraints.iter().zip(20..) {
        assert_eq!(walk(&after, constraint, seed), walk(&fresh, constraint, seed));
    }
}

#[test]
fn what_was_loaded_can_be_saved_again() {
    let vocabulary = vocabulary();
    let first = client(&vocabulary);
    for constraint in &constraints() {
        drop(walk(&first, constraint, 1));
    }
    let file = saved(&first);
    let second = client(&vocabulary);
    second.load(&file).expect("a file");
    let again = saved(&second);
    // What is learned has no order, so only the sizes can be compared.
    assert!(again.len().abs_diff(file.len()) * 10 < file.len(), "{} and {}", again.len(), file.len());
    assert_eq!(client(&vocabulary).load(&again).expect("a file").ready, 4);
}

/// Two processes that save into one file: what the second writes has what the first had compiled.
#[test]
fn constraints_of_another_file_are_kept() {
    let vocabulary = vocabulary();
    let all = constraints();
    let (first, second) = (client(&vocabulary), client(&vocabulary));
    for (client, some) in [(&first, &all[..3]), (&second, &all[2..])] {
        for constraint in some {
            drop(walk(client, constraint, 1));
        }
    }
    // The same schema as the first process has, in another layout.
    let Constraint::JsonSchema(text) = &all[2] else { panic!("a schema") };
    drop(walk(&second, &Constraint::json_schema(text.replace(' ', "  ")), 1));
    let file = saved(&first);
    let mut both = Vec::new();
    assert_eq!(second.save_with(&file, &mut both).expect("a file").constraints, all.len());
    let third = client(&vocabulary);
    assert_eq!(third.load(&both).expect("a file").ready, all.len());
    for constraint in &all {
        assert_eq!(third.request(constraint).lookup(), Lookup::Hit);
        assert_eq!(walk(&third, constraint, 7), walk(&client(&vocabulary), constraint, 7));
    }
    // What would not be loaded adds nothing.
    let alone = saved(&second);
    for other in [&b"something else"[..], &file[..file.len() / 2]] {
        let mut target = Vec::new();
        second.save_with(other, &mut target).expect("a file");
        assert_eq!(client(&vocabulary).load(&target).expect("a file").ready, all.len() - 2);
        assert!(target.len().abs_diff(alone.len()) * 10 < alone.len());
    }
}

#[test]
fn other_files_are_refused() {
    let vocabulary = vocabulary();
    let before = client(&vocabulary);
    walk(&before, &constraints()[0], 3);
    let file = saved(&before);
    let after = client(&vocabulary);
    assert!(matches!(after.load(b"something else"), Err(LoadError::Open(_))));
    assert!(matches!(after.load(b""), Err(LoadError::Open(_))));
    let mut builder = VocabularyBuilder::new();
    builder.token(TokenId(0), b"a").expect("a new token");
    let other = client(&Arc::new(builder.finish().expect("a vocabulary")));
    assert_eq!(other.load(&file).err(), Some(LoadError::OtherVocabulary));
    let mut version = file.clone();
    version[16] = 99;
    let message = after.load(&version).err().map(|error| error.to_string());
    assert!(message.is_some_and(|message| message.contains("format 99")));
    assert_eq!(after.request(&constraints()[0]).lookup(), Lookup::Miss);
}

#[test]
fn damaged_files_are_refused_and_change_nothing() {
    let vocabulary = vocabulary();
    let before = client(&vocabulary);
    for constraint in &constraints() {
        drop(walk(&before, constraint, 3));
    }
    let file = saved(&before);
    let after = client(&vocabulary);
    let mut rng = Rng::new(5);
    for _ in 0..200 {
        let mut damaged = file.clone();
        let at = rng.below(damaged.len());
        damaged[at] ^= 1 << rng.below(8);
        assert!(after.load(&damaged).is_err(), "byte {at}");
        damaged.truncate(at);
        assert!(after.load(&damaged).is_err(), "cut at {at}");
    }
    assert_eq!(after.request(&constraints()[0]).lookup(), Lookup::Miss);
}

/// With a right checksum anything may be in the file. It may be refused or not, but nothing may panic.
#[test]
fn forged_libraries_break_nothing() {
    use maskwright_vocab::pack;
    const HEADER: usize = 44;
    let vocabulary = vocabulary();
    let compiler = Compiler::new(vocabulary.clone());
    for constraint in constraints() {
        let mut matcher = compiler.compile(&constraint).expect("a constraint").matcher();
        matcher.mask().expect("a mask");
    }
    let mut file = Vec::new();
    compiler.save_learnt(&mut file).expect("memory");
    let (magic, version) = (file[..16].try_into().expect("sixteen bytes"), 1);
    let mut rng = Rng::new(11);
    let mut refused = 0;
    for _ in 0..300 {
        let mut body = file[HEADER..].to_vec();
        let at = rng.below(body.len());
        body[at] = [0, 1, 0x7F, 0xFF, body[at] ^ 1, body[at].wrapping_add(1)][rng.below(6)];
        let forged = Compiler::new(vocabulary.clone());
        if forged.load_learnt(&pack::seal(&magic, version, &body)).is_err() {
            refused += 1;
            continue;
        }
        for constraint in constraints() {
            let Ok(bound) = forged.compile(&constraint) else { continue };
            let mut matcher = bound.matcher();
            let first = matcher.mask().expect("a mask").iter().next();
            if let Some(token) = first.filter(|token| token.0 != 256) {
                // A wrong table may refuse what it allowed before.
                drop(matcher.accept(token));
                matcher.mask().expect("a mask");
            }
        }
    }
    assert!(refused > 50, "{refused}");
}
