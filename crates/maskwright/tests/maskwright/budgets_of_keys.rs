//! Budgets where values must differ: a mask is exact and takes few steps, also where keys are required in any order.

use maskwright::json_schema::{self, KeyOrder, Whitespace};
use maskwright::{Budget, Compiler, Constraint, Limits, Options, TokenId};

use super::dead_ends::{Random, compiler, vocabulary, with_options};

/// A token that ends a required key and closes the object at once is put into a mask when what was seen is known, also where tokens are counted.
#[test]
fn a_budget_leaves_tokens_that_end_a_key_and_its_object() {
    let schema = r#"{"type":"object","required":["c","d"],"dependentRequired":{"a":["b"]}}"#;
    for whitespace in [Whitespace::Tidy, Whitespace::Compact] {
        let options = json_schema::Options::default().with_key_order(KeyOrder::Any);
        let compiler = with_options(options.with_whitespace(whitespace));
        let bound = compiler.compile(&Constraint::json_schema(schema)).expect(schema);
        for budget in 2..6 {
            let mut matcher = bound.matcher();
            matcher.accept_bytes(br#"{"c":[],"d"#).expect("it is valid");
            matcher.set_budget(Some(Budget::new(budget))).expect("`\":1}` and the end");
            let unasked = matcher.fork();
            let mask = matcher.mask().expect("there is a limit").clone();
            for token in (0..bound.vocabulary().size() as u32).map(TokenId) {
                let error = unasked.fork().accept(token).err();
                assert_eq!(mask.contains(token), error.is_none(), "{budget} left, then {token:?}: {error:?}");
            }
            assert!(mask.count() > 0, "{budget} left");
        }
    }
}

/// A key that repeats one ends the reading in which it is a key, perhaps the only one that would have ended in time.
#[test]
fn a_budget_counts_no_reading_that_repeats_a_key() {
    let tag = r#"{"type":"structural_tag","format":{"type":"sequence","elements":[{"type":"any_text"},{"type":"json_schema","json_schema":{"type":"object","minProperties":2,"additionalProperties":{"type":"boolean"}}}]}}"#;
    let bound = compiler(KeyOrder::Schema).compile(&Constraint::structural_tag(tag)).expect(tag);
    let mut budgets = 0;
    for text in [r#"{"a":false,"#, r#"{"a":false,"a"#, r#"{"a":false,"a":{"a":true,"a"#] {
        for budget in 2..24 {
            let mut matcher = bound.matcher();
            matcher.accept_bytes(text.as_bytes()).expect("it is valid");
            if matcher.set_budget(Some(Budget::new(budget))).is_err() {
                continue;
            }
            budgets += 1;
            let unasked = matcher.fork();
            let mask = matcher.mask().expect("there is a limit").clone();
            for token in (0..bound.vocabulary().size() as u32).map(TokenId) {
                let error = unasked.fork().accept(token).err();
                assert_eq!(
                    mask.contains(token),
                    error.is_none(),
                    "{text}, {budget} left, then {token:?}: {error:?}"
                );
            }
        }
    }
    assert!(budgets > 30, "only {budgets} budgets were tried");
}

/// Of required keys in any order, the next one is looked for, and not all of them behind each set of others.
#[test]
fn masks_under_a_budget_with_many_keys_take_few_steps() {
    let keys: Vec<String> = (0..30).map(|at| format!("\"k{at:02}\"")).collect();
    let properties: Vec<String> = keys.iter().map(|key| format!("{key}:{{\"type\":\"boolean\"}}")).collect();
    let schema = format!(
        r#"{{"type":"object","properties":{{{}}},"required":[{}],"additionalProperties":false}}"#,
        properties.join(","),
        keys.join(",")
    );
    let mut limits = Limits::default();
    limits.mask_steps = 250_000;
    let json_schema =
        json_schema::Options::default().with_key_order(KeyOrder::Any).with_whitespace(Whitespace::Compact);
    let options = Options { json_schema, limits, ..Options::default() };
    let bound = Compiler::with_options(vocabulary(), options)
        .compile(&Constraint::json_schema(&*schema))
        .unwrap_or_else(|error| panic!("{error}"));
    let mut matcher = bound.matcher();
    let need = matcher.shortest_completion().expect("there is a way");
    matcher.set_budget(Some(Budget::new(need + 40))).expect("it is more than is needed");
    let mut random = Random(1);
    while !matcher.is_terminated() {
        let mask = matcher.mask().unwrap_or_else(|error| panic!("{error}"));
        let allowed: Vec<TokenId> = mask.iter().collect();
        matcher.accept(allowed[random.below(allowed.len())]).expect("it is in the mask");
    }
}
