//! Budgets over a real vocabulary: the numbers are the least, and walks within them finish.
//!
//! The tokenizer comes from `make assets`.

#![expect(clippy::print_stderr, reason = "how much was compared is a result")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use maskwright::json_schema::{self, KeyOrder, Whitespace};
use maskwright::{Budget, BudgetError, Compiler, Constraint, Matcher, Options, TokenId, Vocabulary};
use maskwright_oracle::generate::Rng;

use super::assets;
use super::walks::{check, judge, schemas_of};

fn vocabulary() -> Arc<Vocabulary> {
    assets::llama().vocabulary().clone()
}

/// In how many tokens a text can be written, and then ended.
fn least(vocabulary: &Vocabulary, text: &str) -> u32 {
    let text = text.as_bytes();
    let mut tokens = vec![u32::MAX; text.len() + 1];
    tokens[0] = 0;
    for from in 0..text.len() {
        for to in from + 1..=text.len().min(from + vocabulary.max_token_bytes()) {
            let is_token = vocabulary
                .trie()
                .find(&text[from..to])
                .is_some_and(|node| !vocabulary.trie().tokens(node).is_empty());
            if is_token && tokens[from] != u32::MAX {
                tokens[to] = tokens[to].min(tokens[from] + 1);
            }
        }
    }
    tokens[text.len()] + 1
}

/// Compares the number of a constraint with the least of all its texts.
fn compare(compiler: &Compiler, constraint: &Constraint, texts: &[&str]) -> u32 {
    let compiled = compiler.compile(constraint).expect("the constraint compiles");
    let mut matcher = compiled.matcher();
    let vocabulary = matcher.bound().vocabulary().clone();
    let expected = texts.iter().map(|text| least(&vocabulary, text)).min().expect("there is a text");
    assert_eq!(matcher.shortest_completion(), Some(expected), "{texts:?}");
    let error = matcher.set_budget(Some(Budget::new(expected - 1))).expect_err("it is too small");
    assert_eq!(error, BudgetError::TooSmall { tokens: expected - 1, need: expected });
    matcher.set_budget(Some(Budget::new(expected))).expect("it is large enough");
    let text = walk(&mut matcher, &mut Rng::new(1), &mut Vec::new()).expect("it finishes");
    assert!(texts.iter().any(|one| one.as_bytes() == text), "{}", text.escape_ascii());
    expected
}

/// Takes any allowed token until there is none. Returns the text, or what went wrong.
fn walk(matcher: &mut Matcher, rng: &mut Rng, times: &mut Vec<Duration>) -> Result<Vec<u8>, String> {
    let vocabulary = matcher.bound().vocabulary().clone();
    let mut text = Vec::new();
    loop {
        let show = |text: &[u8]| text.escape_ascii().to_string();
        let left = matcher.budget_left().expect("there is a budget");
        // One without a mask, which would be believed.
        let mut unasked = matcher.fork();
        let start = Instant::now();
        let mask = matcher.mask().map_err(|error| error.to_string())?.clone();
        times.push(start.elapsed());
        // A mask says what is accepted.
        for _ in 0..8 {
            let token = TokenId(rng.below(vocabulary.size()) as u32);
            if unasked.allows(token) != Ok(mask.contains(token)) {
                return Err(format!("{token} is in the mask or not, {left} left after {}", show(&text)));
            }
        }
        let eos = vocabulary.eos();
        let is_complete = eos.iter().any(|end| mask.contains(*end));
        let next: Vec<TokenId> = mask.iter().filter(|token| !eos.contains(token)).collect();
        let Some(&token) = rng.choose(&next) else {
            return if is_complete { Ok(text) } else { Err(format!("stuck after {}", show(&text))) };
        };
        if left <= 1 {
            return Err(format!("cut off after {}", show(&text)));
        }
        matcher.accept(token).map_err(|error| format!("{error} after {}", show(&text)))?;
        text.extend_from_slice(vocabulary.bytes(token));
    }
}

#[test]
fn literals_and_choices_are_counted_in_tokens() {
    let compiler = Compiler::new(vocabulary());
    let text = "a long constant that needs many tokens to be written";
    assert_eq!(compare(&compiler, &Constraint::regex(text), &[text]), 11);
    let names = ["Czech Republic", "United Kingdom"];
    let need = compare(&compiler, &Constraint::choice(names), &names);
    assert!(need <= 4, "{need}");
    compare(
        &compiler,
        &Constraint::ebnf("root ::= a b\na ::= \"the end\"\nb ::= \" of it\""),
        &["the end of it"],
    );
}

#[test]
fn documents_are_counted_across_borders() {
    let compact = json_schema::Options::default().with_whitespace(Whitespace::Compact);
    let compiler =
        Compiler::with_options(vocabulary(), Options { json_schema: compact, ..Options::default() });
    let schema = r#"{"type": "object", "additionalProperties": false, "required": ["name", "tags"], "properties": {
        "name": {"enum": ["Ada", "Grace"]}, "tags": {"type": "array", "items": {"const": true}, "minItems": 2, "maxItems": 2}}}"#;
    let texts = [r#"{"name":"Ada","tags":[true,true]}"#, r#"{"name":"Grace","tags":[true,true]}"#];
    compare(&compiler, &Constraint::json_schema(schema), &texts);
    let strings = r#"{"type": "object", "additionalProperties": false, "required": ["a"], "properties": {"a": {"type": "string", "maxLength": 0}}}"#;
    compare(&compiler, &Constraint::json_schema(strings), &[r#"{"a":""}"#]);
}

/// Behind a free text of any length a trigger must come. A text may end in the middle of nearly every token, so a first search may be given up, and the number is an upper bound; the next ones go on
/// where it has stopped, and find the least.
#[test]
fn triggers_are_counted_across_borders() {
    let compiler = Compiler::new(vocabulary());
    let years: Vec<String> = (0..100).map(|year| format!("Answer: 19{year:02}")).collect();
    let need = years.iter().map(|text| least(compiler.vocabulary(), text)).min().expect("there is a text");
    for free in [r#"{"type": "any_text"}"#, r#"{"type": "any_text", "max_tokens": 9}"#] {
        let elements = format!(
            r#"[{free}, {{"type": "const_string", "value": "Answer: "}}, {{"type": "regex", "pattern": "19[0-9]{{2}}"}}]"#
        );
        let tag = format!(
            r#"{{"type": "structural_tag", "format": {{"type": "sequence", "elements": {elements}}}}}"#
        );
        let compiled = compiler.compile(&Constraint::structural_tag(&tag)).expect("the tag compiles");
        let mut matcher = compiled.matcher();
        let numbers = [(); 3].map(|()| matcher.shortest_completion().expect("some number is known"));
        assert!(numbers.iter().all(|number| *number >= need), "{free}: {numbers:?}");
        assert_eq!(numbers[2], need, "{free}: {numbers:?}");
        for more in [0, 1, 4] {
            matcher.reset();
            matcher.set_budget(Some(Budget::new(need + more))).expect("it is large enough");
            let text = walk(&mut matcher, &mut Rng::new(u64::from(more)), &mut Vec::new());
            let text = String::from_utf8(text.expect("it finishes")).expect("all text is UTF-8");
            assert!(years.iter().any(|year| text.ends_with(year)), "{text}");
        }
    }
}

#[test]
fn walks_within_tight_budgets_finish() {
    let root = assets::root();
    let compiler = Compiler::new(vocabulary());
    let any_order = json_schema::Options::default().with_key_order(KeyOrder::Any);
    let any_order =
        Compiler::with_options(vocabulary(), Options { json_schema: any_order, ..Options::default() });
    let (mut walks, mut refused, mut wrong) = (0, Vec::new(), Vec::new());
    let (mut times, mut slowest) = (Vec::new(), (Duration::ZERO, String::new()));
    for (number, (name, schema)) in (0..).zip(schemas_of(&root)).step_by(9) {
        for (order, compiler) in [("", &compiler), (", any order", &any_order)] {
            let name = format!("{name}{order}");
            let Some(judge) = judge(&schema) else { continue };
            let Ok(compiled) = compiler.compile(&Constraint::json_schema(schema.as_str())) else { continue };
            let mut matcher = compiled.matcher();
            let start = Instant::now();
            let Some(need) = matcher.shortest_completion() else {
                refused.push(name);
                continue;
            };
            slowest = slowest.max((start.elapsed(), name.clone()));
            for more in [0, 1, 5] {
                matcher.reset();
                let set = matcher.set_budget(Some(Budget::new(need + more)));
                if let Err(error) = set {
                    assert_eq!(error, BudgetError::Values, "{name}");
                    refused.push(name.clone());
                    break;
                }
                walks += 1;
                match walk(&mut matcher, &mut Rng::new(number * 100 + u64::from(more)), &mut times) {
                    Ok(text) => {
                        if let Err(error) = check(&judge, &text) {
                            wrong.push(format!("{name}: {}: {error}", text.escape_ascii()));
                        }
                    }
                    // The limit is named, and the budget is not broken.
                    Err(what) if what.contains("`mask_steps`") => {
                        refused.push(name.clone());
                        break;
                    }
                    Err(what) => wrong.push(format!("{name}, {need} and {more}: {what}")),
                }
            }
        }
    }
    times.sort_unstable();
    let at = |share: usize| times[times.len() * share / 1_000];
    eprintln!("{walks} walks, masks p50 {:?}, p99 {:?}; slowest number {slowest:?}", at(500), at(990));
    eprintln!("refused: {refused:?}");
    assert!(wrong.is_empty(), "{} of {walks}\n{}", wrong.len(), wrong.join("\n"));
    assert!(walks > 60, "{walks} walks");
    assert!(refused.len() <= 4, "{refused:?}");
}

/// Free text up to a trigger, within a limit of its own. With a real vocabulary the least number takes too long to find, and the upper bound does.
#[test]
fn a_trigger_comes_in_time_with_a_real_vocabulary() {
    let compiler = Compiler::new(vocabulary());
    let tag = |tokens: u32| {
        Constraint::structural_tag(format!(
            r#"{{"type": "sequence", "elements": [{{"type": "any_text", "max_tokens": {tokens}}},
                {{"type": "const_string", "value": "Answer: "}}, {{"type": "regex", "pattern": "19[0-9]{{2}}"}}]}}"#
        ))
    };
    let mut rng = Rng::new(3);
    for limit in [0, 3, 20] {
        let compiled = compiler.compile(&tag(limit)).expect("`Answer: 1900` is such a text");
        let free = compiled.matcher();
        let need = free.shortest_completion().expect("some number is known");
        for budget in [need, need + 4, need + 60] {
            let mut matcher = free.fork();
            matcher.set_budget(Some(Budget::new(budget))).expect("it is enough");
            let text = walk(&mut matcher, &mut rng, &mut Vec::new()).expect("it finishes");
            let text = String::from_utf8(text).expect("free text is text");
            let (before, year) = text.split_once("Answer: ").expect("the trigger came");
            assert!(year.len() == 4 && year.starts_with("19"), "{text}");
            assert!(before.is_empty() || limit > 0, "{text}");
            // What stands behind the free text has twelve bytes.
            assert!(matcher.steps() <= limit as usize + 12 && matcher.steps() <= budget as usize, "{text}");
        }
    }
}

/// Required keys in any order beside free ones.
#[test]
fn required_keys_of_an_open_object_have_a_least_number() {
    for (count, expected) in [(4, 15), (6, 21), (10, 33)] {
        let names: Vec<String> = (0..count).map(|number| format!("n{number}")).collect();
        let schema = serde_json::json!({"type": "object", "required": names});
        let mut options = Options::default();
        options.json_schema.key_order = KeyOrder::Any;
        options.json_schema.whitespace = Whitespace::Compact;
        let compiler = Compiler::with_options(vocabulary(), options);
        let compiled = compiler.compile(&Constraint::json_schema(schema.to_string())).expect("a schema");
        let mut matcher = compiled.matcher();
        assert_eq!(matcher.shortest_completion(), Some(expected), "{count} keys");
        matcher.set_budget(Some(Budget::new(expected + 3))).expect("it is enough");
        if count < 10 {
            walk(&mut matcher, &mut Rng::new(count), &mut Vec::new()).expect("it finishes");
        }
    }
}
