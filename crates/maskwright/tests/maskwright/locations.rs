//! Where a text stands, in the terms of its grammar.

use std::sync::Arc;

use maskwright::locate::{Follower, LocateError, Location, Written};
use maskwright::{Category, Compiler, Constraint, Options, TokenId, VocabularyBuilder};

/// Every byte, and two special tokens.
fn compiler() -> Compiler {
    let mut builder = VocabularyBuilder::new();
    for byte in 0..=u8::MAX {
        builder.token(TokenId(byte.into()), &[byte]).unwrap();
    }
    builder.special(TokenId(256), "<end>").unwrap().eos(TokenId(256));
    builder.special(TokenId(257), "<|call|>").unwrap();
    Compiler::new(Arc::new(builder.finish().unwrap()))
}

fn at(constraint: &Constraint, text: &str) -> Location {
    compiler().locate(constraint, &Options::default(), Written::Text(text.as_bytes())).unwrap()
}

fn rules(location: &Location) -> Vec<Vec<(&str, usize)>> {
    location
        .readings
        .iter()
        .map(|reading| reading.rules.iter().map(|rule| (&*rule.name, rule.begin)).collect())
        .collect()
}

fn next(location: &Location) -> Vec<String> {
    location.next.iter().map(|next| format!("{}: {}", next.rule, next.notation)).collect()
}

/// Compares a location at a place with what a person would say.
#[test]
fn rules_and_terminals_have_names_and_beginnings() {
    let grammar = Constraint::lark(
        "start: pair (\",\" pair)*\npair: NAME \":\" value\nvalue: NUMBER | \"(\" start \")\"\nNAME: /[a-z]+/\nNUMBER: /[0-9]/+ (\".\" /[0-9]/+)?\n",
    );
    let location = at(&grammar, "a:1,bc:(d:23");
    assert_eq!(
        rules(&location),
        [[("start", 0), ("pair", 4), ("value", 7), ("start", 8), ("pair", 8), ("value", 10), ("NUMBER", 10)]]
    );
    let terminal = location.readings[0].terminal.as_ref().unwrap();
    assert_eq!((&*terminal.notation, terminal.begin, terminal.matched), ("[0-9]+", 10, 2));
    assert!(terminal.may_end && !location.complete);
    assert_eq!(next(&location), ["NUMBER: \".\"", "start: \",\"", "value: \")\""]);

    let location = at(&grammar, "a:1,b");
    assert_eq!(location.readings[0].terminal.as_ref().unwrap().notation, "[a-z]+");
    assert_eq!(next(&location), ["pair: \":\""]);
    assert_eq!(location.path, None);

    let location = at(&grammar, "a:");
    assert_eq!(location.readings[0].terminal, None);
    assert_eq!(next(&location), ["NUMBER: [0-9]+", "value: \"(\""]);
}

#[test]
fn a_literal_says_how_much_of_it_there_is() {
    let location = at(&Constraint::choice(["yes", "yesterday"]), "yest");
    let terminals: Vec<_> =
        location.readings.iter().filter_map(|reading| reading.terminal.as_ref()).collect();
    assert!(!terminals.is_empty());
    assert!(terminals.iter().all(|terminal| terminal.length.is_some_and(|length| terminal.matched < length)));
}

#[test]
fn ambiguity_and_left_recursion_give_readings() {
    let grammar = Constraint::ebnf(
        "root ::= sum | word\nsum ::= sum \"+\" num | num\nnum ::= [0-9]+\nword ::= [0-9a-f]+",
    );
    let location = at(&grammar, "12");
    let mut found = rules(&location);
    found.sort();
    assert_eq!(found, [vec![("root", 0), ("sum", 0), ("num", 0)], vec![("root", 0), ("word", 0)],]);
    assert!(location.complete);
    let location = at(&grammar, "12+3");
    assert!(rules(&location).contains(&vec![("root", 0), ("sum", 0), ("num", 3)]));
}

#[test]
fn a_place_in_a_document_has_a_path() {
    let schema = r##"{"type": "object", "required": ["items"], "properties": {"items": {"type": "array", "items": {"type": "object",
        "properties": {"name": {"type": "string"}, "a/b": {"type": "integer", "minimum": 3}}, "required": ["name"]}}, "next": {"$ref": "#"}}}"##;
    let schema = Constraint::json_schema(schema);
    for (text, path) in [
        ("", ""),
        ("{\"it", ""),
        ("{\"items\"", "/items"),
        ("{\"items\": [", "/items"),
        (
            "{\"items\": [{\"name\": \"a\"}, {\"name\": \"b\"}, {\"name\": \"c\"}, {\"name\": \"dog",
            "/items/3/name",
        ),
        ("{\"items\": [{\"name\": \"a\", \"a/b\": 4", "/items/0/a~1b"),
        ("{\"items\": [], \"next\": {\"items\": [{", "/next/items/0"),
        ("{\"items\": []}", ""),
    ] {
        assert_eq!(at(&schema, text).path.as_deref(), Some(path), "{text}");
    }
    // The middle of a string is a terminal of its own.
    let location = at(&schema, "{\"items\": [{\"name\": \"dog");
    let terminal = location.readings[0].terminal.as_ref().unwrap();
    assert!(terminal.notation.starts_with("<json string"), "{location:?}");
    assert_eq!((terminal.matched, terminal.may_end), (4, false));
    assert_eq!(location.readings[0].rules[0].name, "root");
}

#[test]
fn documents_in_tags_and_grammars_have_paths_of_their_own() {
    let tag = r#"{"type": "tag", "begin": "<call>", "content": {"type": "json_schema", "json_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}, "end": "</call>"}"#;
    assert_eq!(at(&Constraint::structural_tag(tag), "<call>{\"city\": \"Ber").path.as_deref(), Some("/city"));
    assert_eq!(at(&Constraint::structural_tag(tag), "<cal").path, None);
    let lark =
        "start: \"answer = \" value\nvalue: %json {\"type\": \"array\", \"items\": {\"type\": \"boolean\"}}";
    assert_eq!(at(&Constraint::lark(lark), "answer = [true, fal").path.as_deref(), Some("/1"));
}

#[test]
fn what_may_be_empty_is_passed() {
    let grammar = Constraint::lark("start: OTHER \"1\"\nOTHER: ~WORD & /[a-z!]*/\nWORD: /[a-z]/+ \"!\"");
    assert!(next(&at(&grammar, "")).contains(&"start: \"1\"".to_owned()));
    let grammar = Constraint::ebnf("root ::= a a \"x\"\na ::= b? b?\nb ::= \"b\" | a \"c\"");
    let location = at(&grammar, "");
    assert_eq!(next(&location), ["b: \"b\"", "b: \"c\"", "root: \"x\""]);
    assert!(rules(&location).contains(&vec![("root", 0)]));
}

#[test]
fn special_tokens_take_no_bytes() {
    let grammar = Constraint::lark("start: <|call|> NAME\nNAME: /[a-z]+/");
    let tokens = [257, u32::from(b'h'), u32::from(b'i')].map(TokenId);
    let compiler = compiler();
    let location = compiler.locate(&grammar, &Options::default(), Written::Tokens(&tokens)).unwrap();
    let terminal = location.readings[0].terminal.as_ref().unwrap();
    assert_eq!((location.bytes, terminal.begin, terminal.matched), (2, 0, 2));
    let location = compiler.locate(&grammar, &Options::default(), Written::Tokens(&[])).unwrap();
    assert_eq!(next(&location), ["start: <token \"<|call|>\">"]);
}

#[test]
fn what_is_not_allowed_has_no_place() {
    let error = compiler().locate(&Constraint::regex("[0-9]+"), &Options::default(), Written::Text(b"4x"));
    assert!(matches!(error, Err(LocateError::Text { .. })), "{error:?}");
    let error = compiler().locate(&Constraint::regex("(a"), &Options::default(), Written::Text(b""));
    assert!(matches!(error, Err(LocateError::Constraint(_))), "{error:?}");
    let numbered = Constraint::lark("start: <[97]>");
    let error = compiler().locate(&numbered, &Options::default(), Written::Text(b""));
    assert!(matches!(error, Err(LocateError::Numbered)), "{error:?}");
}

/// Reading again is the grammar's own: every beginning of texts of random shape has a reading.
#[test]
fn every_beginning_of_a_text_has_a_reading() {
    let schema = Constraint::json_schema(
        r#"{"type": "object", "properties": {"a": {"type": ["number", "null", "string"]}, "b": {}}, "additionalProperties": false}"#,
    );
    let text = "{\"a\": -12.5e3, \"b\": [{\"x\": [\"\\u00e9\", true]}, null, 0.1]}";
    let compiler = compiler();
    for end in 0..=text.len() {
        let written = Written::Text(&text.as_bytes()[..end]);
        let location = compiler.locate(&schema, &Options::default(), written).unwrap();
        let is_whole = location.complete && location.next.is_empty();
        let is_known =
            location.readings.iter().any(|reading| reading.terminal.is_some()) || !location.next.is_empty();
        assert!(is_whole || is_known, "{}", &text[..end]);
        assert_eq!(location.complete, end == text.len());
    }
}

fn captures(location: &Location) -> Vec<(&str, String)> {
    let text = |text: &[u8]| String::from_utf8(text.to_vec()).unwrap();
    location.captures.iter().map(|one| (&*one.name, text(&one.text))).collect()
}

#[test]
fn what_rules_have_matched_is_told() {
    let list = Constraint::ebnf("root ::= item (\",\" item)*\nitem[capture=\"number\"] ::= [0-9]+\n");
    let location = at(&list, "1,22,333");
    let three: Vec<(&str, String)> = ["1", "22", "333"].map(|text| ("number", text.into())).into();
    assert_eq!(captures(&location), three);
    assert_eq!((location.captures[1].begin, location.captures[1].end), (2, 4));
    // Of a text that is not complete, what is over.
    assert_eq!(captures(&at(&list, "1,22,")), three[..2]);
    assert_eq!(captures(&at(&list, "")), []);

    // Parts are as long as they may be, and no longer: what follows has to fit.
    let greedy = Constraint::lark("start: a b\na[capture]: /[a-z]*/\nb[capture=\"rest\"]: \"bc\" /c*/\n");
    assert_eq!(captures(&at(&greedy, "abcbcc")), [("a", "abc".into()), ("rest", "bcc".into())]);

    // Inner rules come before outer ones, and rules that call themselves may do so often.
    let nested = Constraint::lark("start: nest\nnest[capture]: \"(\" nest \")\" | \"x\"\n");
    assert_eq!(captures(&at(&nested, "((x))")), ["x", "(x)", "((x))"].map(|text| ("nest", text.into())));
    let deep = format!("{}x{}", "(".repeat(2_000), ")".repeat(2_000));
    assert_eq!(at(&nested, &deep).captures.len(), 2_001);
    let many = Constraint::lark("start: item*\nitem[capture]: /[a-z];/\n");
    assert_eq!(at(&many, &"a;".repeat(3_000)).captures.len(), 3_000);

    // Suffixes are told apart, and what is ignored is no part of a terminal.
    let suffix = Constraint::lark(
        "start: line \"!\"\nline[capture, suffix=\"<end>\", stop_capture=\"mark\"]: /[a-z<>]*/\n%ignore \" \"\n",
    );
    assert_eq!(captures(&at(&suffix, "foo<end>  !")), [("mark", "<end>".into()), ("line", "foo".into())]);
    // Those of several lengths are as short as they may be, and what stands before them matches the body.
    let marks = |body: &str, suffix: &str| {
        let grammar = "start: (line \"!\")+\nline[capture, suffix=SUFFIX, stop_capture=\"mark\"]: BODY\n";
        Constraint::lark(grammar.replace("BODY", body).replace("SUFFIX", suffix))
    };
    let told = |grammar: &Constraint, text| {
        let location = at(grammar, text);
        captures(&location).into_iter().map(|(_, text)| text).collect::<Vec<_>>()
    };
    assert_eq!(told(&marks("/(.|\\n)*/", "/\\n+end/"), "ab\n\nend!\nend!"), ["\nend", "ab\n", "\nend", ""]);
    assert_eq!(told(&marks("/[a-z]*/", "/[0-9]+;/"), "ab123;!7;!"), ["123;", "ab", "7;", ""]);
    assert_eq!(told(&marks("/[a-zé]*/", "/[éx]y|z/"), "éaéy!"), ["éy", "éa"]);
    assert_eq!(told(&marks("/[a-z]*/", "/[0-9]+;/"), "ab12"), [""; 0]);
    // The same inside of a grammar that is quoted.
    let quoted = Constraint::lark(
        "start: \"<\" %lark { start: line\nline[capture, suffix=/[0-9]+;/]: /[a-z]*/ } \">\"\n",
    );
    assert_eq!(captures(&at(&quoted, "<ab12;>")), [("line", "ab".into())]);
    let root = Constraint::lark("start[capture=\"all\"]: \"a\" \"b\"?\n");
    assert_eq!(captures(&at(&root, "ab")), [("all", "ab".into())]);
    assert_eq!(captures(&at(&root, "a")), [("all", "a".into())]);
    // A rule that may be empty has matched nothing there.
    let empty = Constraint::lark("start: a b\na[capture]: \"x\"?\nb: \"y\"\n");
    assert_eq!(captures(&at(&empty, "y")), [("a", String::new())]);
}

#[test]
fn the_innermost_rule_says_the_temperature() {
    let grammar = Constraint::ebnf(
        "root ::= \"a:\" value \";\" other\nvalue[temperature=0.5] ::= [a-z]+ inner?\ninner[temperature=1.5] ::= [0-9]+\nother ::= \"x\"\n",
    );
    assert_eq!(at(&grammar, "a").temperature, None);
    assert_eq!(at(&grammar, "a:").temperature, Some(0.5));
    // More letters, or digits, or the end.
    assert_eq!(at(&grammar, "a:b").temperature, Some(1.5));
    assert_eq!(at(&grammar, "a:b1").temperature, Some(1.5));
    assert_eq!(at(&grammar, "a:b1;").temperature, None);
    let told = at(&grammar, "a:").json();
    assert_eq!((&told["temperature"], &told["captures"]), (&serde_json::json!(0.5), &serde_json::json!([])));
    let root = Constraint::lark("start[temperature=0]: /[a-z]+/\n");
    assert_eq!(at(&root, "a").temperature, Some(0.0));
}

/// What is told token by token is what `locate` tells at the same place, also when much was forgotten in between.
#[test]
fn a_follower_tells_the_temperatures_of_locate() {
    let compiler = compiler();
    let long = format!("({}1:abc,{}2)", "(".repeat(20), "x:y,".repeat(400));
    for (constraint, text) in [
        (
            Constraint::ebnf(
                "root ::= \"a:\" value \";\" other\nvalue[temperature=0.5] ::= [a-z]+ inner?\ninner[temperature=1.5] ::= [0-9]+\nother ::= \"x\"\n",
            ),
            "a:bcd12;x".to_owned(),
        ),
        (
            Constraint::lark(
                "start[temperature=0.2]: \"(\"* item (\",\" item)* \")\"*\nitem: KEY \":\" value | DIGIT\nvalue[temperature=1.1]: /[a-z]+/\nKEY: /[a-z0-9]/\nDIGIT: /[0-9]/\n",
            ),
            long,
        ),
        // Both readings are open at once.
        (
            Constraint::lark(
                "start: (cold | hot)+\ncold[temperature=0.1]: /[a-f]/+\nhot[temperature=2]: /[d-z]/+\n",
            ),
            "abcdefghijadz".to_owned(),
        ),
        // Special tokens are units of their own.
        (
            Constraint::lark("start: \"a\" <|call|> name\nname[temperature=0.7]: /[a-z]+/\n"),
            "a\u{1}bc".to_owned(),
        ),
    ] {
        let compiled = compiler.compile(&constraint).unwrap();
        let mut matcher = compiled.matcher();
        let mut follower = Follower::new(compiled.remarks().temperatures.as_ref().unwrap()).unwrap();
        let tokens: Vec<TokenId> =
            text.bytes().map(|byte| if byte == 1 { TokenId(257) } else { TokenId(byte.into()) }).collect();
        for end in 0..=tokens.len() {
            // All of a short text, and some places of a long one.
            if end < 40 || end % 97 == 0 {
                let located =
                    compiler.locate(&constraint, &Options::default(), Written::Tokens(&tokens[..end]));
                assert_eq!(follower.temperature(&matcher), located.unwrap().temperature, "{text:?}, {end}");
            }
            if let Some(token) = tokens.get(end) {
                matcher.accept(*token).unwrap();
                // A clone is independent.
                let mut clone = follower.clone();
                clone.accept(*token).unwrap();
                follower = clone;
            }
        }
    }
}

#[test]
fn a_follower_forgets_what_no_open_rule_needs() {
    let compiler = compiler();
    let constraint = Constraint::ebnf("root ::= item*\nitem[temperature=0.5] ::= [a-z]+ \";\"");
    let compiled = compiler.compile(&constraint).unwrap();
    let mut follower = Follower::new(compiled.remarks().temperatures.as_ref().unwrap()).unwrap();
    let (mut matcher, entries) = (compiled.matcher(), |follower: &_| format!("{follower:?}"));
    let mut most = 0;
    for byte in b"abc;".iter().copied().cycle().take(8_000) {
        matcher.accept(TokenId(byte.into())).unwrap();
        follower.accept(TokenId(byte.into())).unwrap();
        let told = entries(&follower);
        let number: usize = told.chars().filter(char::is_ascii_digit).collect::<String>().parse().unwrap();
        most = most.max(number);
    }
    assert!(most <= 10_000, "{most} entries");
    assert_eq!(follower.temperature(&matcher), Some(0.5));
    // What is never over is never forgotten: the number of readings has a limit.
    let constraint = Constraint::ebnf("root[temperature=1] ::= root root root | root root | \"a\"");
    let compiled = compiler.compile(&constraint).unwrap();
    let mut follower = Follower::new(compiled.remarks().temperatures.as_ref().unwrap()).unwrap();
    let error = (0..10_000).find_map(|_| follower.accept(TokenId(b'a'.into())).err()).unwrap();
    assert!(matches!(error, LocateError::TooLong { .. }), "{error}");
    assert_eq!(error.category(), Category::Limit);
    // A grammar without temperatures has none to follow.
    let plain = compiler.compile(&Constraint::ebnf("root ::= \"a\"")).unwrap();
    assert!(plain.remarks().temperatures.is_none());
}

/// The temperatures after a prefix are those of the grammar that begins with it.
#[test]
fn temperatures_behind_a_prefix() {
    let compiler = compiler();
    let constraint = Constraint::ebnf("root ::= \"a\" hot\nhot[temperature=2] ::= [b-z]+");
    let options = Options { prefix: "say: ".into(), ..Options::default() };
    let compiled = compiler.compile_with(&constraint, &options).unwrap();
    let mut matcher = compiled.matcher();
    let mut follower = Follower::new(compiled.remarks().temperatures.as_ref().unwrap()).unwrap();
    let mut told = Vec::new();
    for byte in *b"say: abc" {
        told.push(follower.temperature(&matcher));
        matcher.accept(TokenId(byte.into())).unwrap();
        follower.accept(TokenId(byte.into())).unwrap();
    }
    assert_eq!(told[..6], [None; 6]);
    assert_eq!(told[6..], [Some(2.0); 2]);
}
