//! The command as a user meets it: flags in, answer and exit code out.

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

const TINY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/tokenizers/tiny.json");
const LETTERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/tokenizers/letters.json");

const PERSON: &str = r#"{"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name"], "additionalProperties": false, "title": "A person"}"#;

struct Answer {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Answer {
    fn of(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("answers are UTF-8");
        Self { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {}", self.out))
    }
}

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_maskwright"));
    command.args(args).env_remove("MASKWRIGHT_TOKENIZER").env_remove("CLICOLOR_FORCE").stdin(Stdio::null());
    command
}

fn run(args: &[&str]) -> Answer {
    Answer::of(command(args).output().expect("the command starts"))
}

fn run_with_input(args: &[&str], input: &str) -> Answer {
    let mut child = command(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("the command reads");
    Answer::of(child.wait_with_output().expect("the command ends"))
}

/// Runs a command that must end with this code; what it says must contain the text.
fn check(args: &[&str], code: i32, says: &str) -> Answer {
    let answer = run(args);
    assert_eq!(answer.code, Some(code), "{args:?}\n{}\n{}", answer.out, answer.err);
    let said = format!("{}{}", answer.out, answer.err);
    assert!(said.contains(says), "{args:?} should say {says:?}, but says\n{said}");
    answer
}

#[test]
fn sound_constraints_are_said_to_be_sound() {
    check(&["check", "--regex", "[a-z]+"], 0, "a sound regex constraint");
    check(&["check", "--choice", "yes", "--choice", "no"], 0, "a sound choice constraint");
    check(&["check", "--ebnf-text", "root ::= \"a\" root | \"b\""], 0, "a sound ebnf constraint");
    check(&["check", "--lark-text", "start: \"a\" start | \"b\""], 0, "a sound lark constraint");
    let gbnf = run_with_input(&["check", "--gbnf", "-", "--text", "a-b"], "root ::= \"a\".\"b\"");
    assert!(gbnf.out.contains("a sound gbnf constraint") && gbnf.out.contains("accepted"), "{}", gbnf.out);
    let here = run(&["check", "--gbnf-text", "root ::= \"a\".\"b\"", "--text", "a-b"]);
    assert!(here.out.contains("a sound gbnf constraint") && here.out.contains("accepted"), "{}", here.out);
    let sum = "start: N (\"+\" N)*\nN: /[0-9]/\n%ignore \" \"";
    let lark = run_with_input(&["check", "--lark", "-", "--text", "1 + 2 +"], sum);
    assert!(lark.out.contains("not accepted"), "{}", lark.out);
    check(&["check", "--schema-text", PERSON], 0, "/title: annotation");
}

#[test]
fn what_is_probably_a_mistake_in_a_schema_is_told() {
    let schema = r#"{"type": "string", "format": "guid", "maxLenght": 3, "title": "x"}"#;
    let format = "constrains nothing, because there is no format of this name; did you mean uuid?";
    let text = check(&["check", "--schema-text", schema], 0, &format!("/format: warning: {format}"));
    for line in ["/maxLenght: warning: constrains nothing; did you mean maxLength?", "/title: annotation"] {
        assert!(text.out.contains(line), "{line} is not in {}", text.out);
    }
    let told = check(&["check", "--schema-text", schema, "--json"], 0, "");
    let told = told.json();
    let warnings = json!([
        {"pointer": "/maxLenght", "message": "constrains nothing; did you mean maxLength?"},
        {"pointer": "/format", "message": format},
    ]);
    assert_eq!(told["warnings"], warnings, "{told}");
    let entry = json!({"pointer": "/format", "coverage": format!("note: {format}")});
    assert!(told["report"].as_array().is_some_and(|report| report.contains(&entry)), "{told}");
}

#[test]
fn wrong_constraints_are_refused_with_their_place() {
    let regex = check(&["check", "--regex", "ab(c"], 2, "regex:1:3: error:");
    assert!(regex.out.is_empty() && regex.err.contains("1 | ab(c\n  |   ^"), "{}", regex.err);
    let ebnf = check(
        &["check", "--ebnf-text", "root ::= digits\ndigit ::= [0-9]"],
        2,
        "rule `digits` is not defined",
    );
    assert!(ebnf.err.contains("1 | root ::= digits\n  |          ^^^^^^"), "{}", ebnf.err);
    check(&["check", "--ebnf-text", "root ::= root \"a\""], 2, "error:");
    let lark =
        check(&["check", "--lark-text", "start: \"a\" nubmer\nnumber: \"1\""], 2, "did you mean `number`?");
    assert!(
        lark.err.contains("lark:1:12: error:") && lark.err.contains("  |            ^^^^^^"),
        "{}",
        lark.err
    );
    check(&["check", "--schema-text", r#"{"type": "strin"}"#], 2, "/type");
    check(&["check", "--schema-text", "{"], 2, "not JSON");
    check(&["check", "--choices", "/nonexistent/file"], 2, "cannot read /nonexistent/file");
}

#[test]
fn a_schema_is_read_as_the_flags_say() {
    let schema = ["check", "--schema-text", PERSON, "--text"];
    let swapped = r#"{"age": 1, "name": "x"}"#;
    check(&[&schema[..], &[swapped]].concat(), 1, "");
    check(&[&schema[..], &[swapped, "--key-order", "any"]].concat(), 0, "accepted");
    check(&[&schema[..], &[r#"{"name": "x"}"#, "--objects", "strict"]].concat(), 1, "");
    check(&[&schema[..], &[r#"{"name": "x"}"#, "--whitespace", "compact"]].concat(), 1, "");
    check(&[&schema[..], &[r#"{"name":"x"}"#, "--whitespace", "compact"]].concat(), 0, "accepted");
    check(&["check", "--regex", "a", "--key-order", "any"], 2, "are about JSON Schemas");
    check(
        &["check", "--regex", "[a&&b]", "--dialect", "python", "--text", "&"],
        0,
        "dialect of patterns: python",
    );
    check(&["check", "--schema-text", "{}", "--dialect", "python"], 2, "--dialect is about");
    check(&["check", "--regex", "a", "--dialect", "perl"], 2, "known are ecma, python, rust");
}

#[test]
fn unreachable_rules_are_warned_about() {
    check(&["check", "--ebnf-text", "root ::= \"a\"\nlost ::= \"b\""], 0, "ebnf:2:1: warning:");
}

#[test]
fn exactly_one_constraint_must_be_given() {
    check(&["check"], 2, "required");
    check(&["check", "--regex", "a", "--choice", "b"], 2, "cannot be used with");
}

#[test]
fn a_text_is_accepted_or_the_place_is_shown() {
    check(&["check", "--regex", "[0-9]{4}-[0-9]{2}", "--text", "2031-11"], 0, "accepted: 7 bytes");
    let answer = check(
        &["check", "--regex", "[0-9]{4}-[0-9]{2}", "--text", "2031-1x"],
        1,
        "not accepted: only 6 bytes of it fit",
    );
    assert!(
        answer.out.contains("text:1:7: error: `x` does not fit here; expected `0`–`9`\n"),
        "{}",
        answer.out
    );
    assert!(answer.out.contains("1 | 2031-1x\n  |       ^"), "{}", answer.out);
    check(&["check", "--regex", "[0-9]{4}", "--text", "20"], 1, "the text ends too early; expected `0`–`9`");
    check(&["check", "--choice", "yes", "--text", "y"], 1, "expected `es`");
    check(&["check", "--schema-text", PERSON, "--text", r#"{"name": "Ada", "age": 36}"#], 0, "accepted");
    check(&["check", "--schema-text", PERSON, "--text", "{\"name\": \"Ada\",\n \"x\": 1}"], 1, "text:2:");
}

#[test]
fn a_character_that_is_cut_in_two_is_shown_whole() {
    let answer = check(&["check", "--regex", "é", "--text", "aè"], 1, "text:1:1");
    assert!(answer.out.contains("expected `é`"), "{}", answer.out);
    check(
        &["check", "--regex", "aé", "--text", "aè"],
        1,
        "text:1:2: error: `è` does not fit here; expected `é`",
    );
}

#[test]
fn constraint_and_text_may_come_from_standard_input() {
    let answer = run_with_input(&["check", "--schema", "-", "--json"], PERSON);
    assert_eq!((answer.code, &answer.json()["kind"]), (Some(0), &Value::from("json_schema")));
    let answer = run_with_input(&["check", "--regex", "a+", "--text-file", "-"], "aaa");
    assert_eq!(answer.code, Some(0), "{}", answer.err);
    let answer = run_with_input(&["check", "--choices", "-", "--text", "no"], "yes\nno\n");
    assert_eq!(answer.code, Some(0), "{}", answer.err);
    let answer = run_with_input(&["check", "--ebnf", "-", "--text-file", "-"], "root ::= \"a\"");
    assert_eq!(answer.code, Some(2));
    assert!(answer.err.contains("only once"), "{}", answer.err);
}

#[test]
fn answers_for_programs_are_json() {
    let answer = run(&["check", "--regex", "ab", "--text", "ax", "--json"]);
    let value = answer.json();
    assert_eq!(answer.code, Some(1));
    assert_eq!((&value["accepted"], &value["rejection"]["offset"]), (&Value::from(false), &Value::from(1)));
    assert_eq!(value["rejection"]["next_bytes"], serde_json::json!([[98, 98]]));
    let answer = run(&["check", "--regex", "a{2,1}", "--json"]);
    let value = answer.json();
    assert_eq!((answer.code, answer.err.as_str()), (Some(2), ""));
    assert_eq!(
        (&value["ok"], &value["error"]["problems"][0]["column"]),
        (&Value::from(false), &Value::from(2))
    );
    for stage in ["ast", "grammar", "network", "nfa", "automaton"] {
        let answer = run(&["debug", stage, "--regex", "(a|b)*abb", "--json"]);
        assert!(answer.code == Some(0) && answer.json().is_object(), "{stage}: {}", answer.err);
    }
}

#[test]
fn masks_list_what_may_come_next() {
    let constraint = ["--choice", "yes", "--choice", "no", "--choice", "USD", "--tokenizer", TINY];
    let answer = run(&[&["mask", "--json"][..], &constraint].concat());
    // n, y, U, yes, no, US, USD; not `USA`, and not `es`.
    assert_eq!(answer.json()["tokens"], serde_json::json!([85, 110, 121, 257, 258, 259, 260]));
    let answer = run(&[&["mask", "--after", "yes", "--json"][..], &constraint].concat());
    assert_eq!(answer.json()["tokens"], serde_json::json!([300]), "only the end may follow");
    check(&[&["mask", "--after", "n"][..], &constraint].concat(), 0, "1 of 301 tokens may come next");
    check(
        &[&["mask", "--after", "nx"][..], &constraint].concat(),
        1,
        "after:1:2: error: `x` does not fit here",
    );
}

#[test]
fn a_rejected_token_is_explained() {
    let constraint = ["--choice", "USD", "--choice", "EUR", "--tokenizer", TINY];
    let args = [&["explain", "--token-text", "USA"][..], &constraint].concat();
    let answer = check(&args, 1, "token 261 `USA` is not allowed at the beginning");
    assert!(answer.out.contains("2 of its 3 bytes fit; after `US` expected `D`"), "{}", answer.out);
    assert!(answer.out.contains("  USA\n  ~~^\n"), "{}", answer.out);
    let value = run(&[&["explain", "--token", "261", "--json"][..], &constraint].concat()).json();
    assert_eq!((&value["allowed"], &value["fitting_bytes"]), (&Value::from(false), &Value::from(2)));
    check(&[&["explain", "--token-text", "USD"][..], &constraint].concat(), 0, "is allowed");
    check(&[&["explain", "--token-text", "</s>"][..], &constraint].concat(), 1, "which is not complete");
    check(&[&["explain", "--token-text", "yesno"][..], &constraint].concat(), 2, "writes it as `yes` `no`");
    check(&[&["explain", "--token", "999"][..], &constraint].concat(), 2, "there is no token 999");
}

#[test]
fn a_vocabulary_that_cannot_spell_the_constraint_is_named() {
    let says = "this vocabulary cannot spell the constraint";
    check(&["check", "--regex", "[0-9]+", "--tokenizer", LETTERS], 2, says);
    check(&["mask", "--regex", "[0-9]+", "--tokenizer", LETTERS], 2, says);
    check(&["mask", "--regex", "a[0-9]+", "--after", "a", "--tokenizer", LETTERS], 2, says);
    check(&["check", "--regex", "(ab)+", "--tokenizer", LETTERS], 0, "first mask: 2 of");
}

#[test]
fn a_broken_tokenizer_is_said_in_one_sentence() {
    let missing = check(&["vocab", "--tokenizer", "/nonexistent/tokenizer.json"], 2, "cannot read");
    assert_eq!(missing.err.lines().count(), 1, "{}", missing.err);
    let path = std::env::temp_dir().join(format!("maskwright-cli-{}.gguf", std::process::id()));
    std::fs::write(&path, b"GGUF\x03\0\0\0\x01\0").expect("a temporary file");
    let truncated = run(&["vocab", "--tokenizer", path.to_str().expect("UTF-8")]);
    let _ = std::fs::remove_file(&path);
    assert_eq!((truncated.code, truncated.err.lines().count()), (Some(2), 1), "{}", truncated.err);
    let nowhere = Answer::of(command(&["vocab"]).current_dir(std::env::temp_dir()).output().expect("starts"));
    assert_eq!(nowhere.code, Some(2));
    assert!(nowhere.err.contains("make assets"), "{}", nowhere.err);
}

#[test]
fn a_vocabulary_has_statistics() {
    check(&["vocab", "--tokenizer", TINY], 0, "256 of 256");
    let value = run(&["vocab", "--tokenizer", TINY, "--json"]).json();
    assert_eq!((&value["tokens"], &value["size"], &value["eos"][0]), (&268.into(), &301.into(), &300.into()));
    assert_eq!(value["max_token_bytes"], 4);
}

#[test]
fn stages_can_be_looked_at() {
    check(&["debug", "ast", "--regex", "(a|b)+c"], 0, "repeat 1 or more times");
    check(&["debug", "ast", "--ebnf-text", "root ::= \"a\" root?"], 0, "call root");
    let lark = "start: A & ~/b/i | %lark { start: \"x\" }\nA: \"a\"~2";
    check(&["debug", "ast", "--lark-text", lark], 0, "pattern /b/i");
    check(&["debug", "grammar", "--schema-text", PERSON], 0, "root ::= ");
    check(&["debug", "network", "--ebnf-text", "root ::= \"(\" root \")\" | \"x\""], 0, "machine 0 `root`");
    check(&["debug", "automaton", "--regex", "(a|b)*abb"], 0, "4 states");
    check(&["debug", "automaton", "--ebnf-text", "root ::= \"(\" root \")\" | \"x\""], 2, "recursive");
    check(&["debug", "nfa", "--regex", "(a|b)*abb"], 0, "state 0");
    check(&["debug", "nfa", "--ebnf-text", "root ::= \"(\" root \")\" | \"x\""], 2, "recursive");
    let both = "start: A & /a+/\nA: /[ab]+/";
    check(&["debug", "nfa", "--lark-text", both], 2, "look at `debug automaton`");
    for stage in ["ast", "grammar", "network", "nfa", "automaton"] {
        let answer = check(&["debug", stage, "--regex", "\"a+\"|b", "--dot"], 0, "digraph");
        assert!(answer.out.trim_end().ends_with('}'), "{}", answer.out);
    }
}

#[test]
fn the_demo_runs_with_a_small_tokenizer_and_without_color() {
    let answer = check(&["demo", "--tokenizer", TINY], 0, "complete: now the text may end");
    assert!(answer.out.contains("2 of its 3 bytes fit; after `US` expected `D"), "{}", answer.out);
    assert!(!answer.out.contains('\x1b'), "no color without a terminal");
    let color = command(&["demo", "--tokenizer", TINY]).env("CLICOLOR_FORCE", "1").output().expect("starts");
    assert!(Answer::of(color).out.contains("\x1b["));
}

#[test]
fn hostile_patterns_are_answered() {
    let deep = "(".repeat(100_000);
    let closed = format!("{deep}a{}", ")".repeat(20_000));
    check(&["check", "--regex", &deep], 2, "error:");
    check(&["check", "--regex", &closed], 2, "error:");
    let long = "b".repeat(40) + "a" + &"c".repeat(30);
    check(&["check", "--regex", ".*a.{30}", "--text", &long], 0, "accepted");
    check(&["check", "--regex", ".{1,1000000}", "--text", "anything"], 0, "accepted");
    check(&["check", "--regex", "(a*)*", "--text", "aaaa"], 0, "accepted");
    let answer = run(&["check", "--regex", "a{1000}{1000}", "--text", &"a".repeat(1_000)]);
    assert!(matches!(answer.code, Some(1 | 2)), "{:?} {}", answer.code, answer.err);
    let nested = format!("{}1{}", "[".repeat(50_000), "]".repeat(50_000));
    check(&["check", "--schema-text", &nested], 2, "error:");
    check(&["check", "--ebnf-text", &format!("root ::= {deep}")], 2, "error:");
}

#[test]
fn a_closed_pipe_is_no_error() {
    let mut child = command(&["debug", "network", "--regex", &"(ab|c)?".repeat(9_000)])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("the command ends");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn every_command_has_help_with_examples() {
    for name in ["check", "mask", "explain", "locate", "debug", "vocab", "audit", "demo"] {
        check(&[name, "--help"], 0, "Examples:");
    }
}

#[test]
fn a_text_has_a_place() {
    let answer =
        check(&["locate", "--schema-text", PERSON, "--text", "{\"name\": \"Ad"], 0, "path      /name\n");
    assert!(answer.out.contains(", 3 bytes of it\n"), "{}", answer.out);
    let answer = check(&["locate", "--schema-text", PERSON, "--text", "{\"name\": \"Ad", "--json"], 0, "");
    assert_eq!(answer.json()["path"], "/name");
    check(&["locate", "--regex", "a+", "--text", "b"], 1, "the text does not fit");
    check(&["locate", "--regex", "(a", "--text", "b"], 2, "error");
}

#[test]
fn an_audit_without_the_package_says_what_to_do() {
    check(&["audit", ".", "--python", "no-such-python"], 2, "no-such-python cannot be run");
    check(&["audit", ".", "--draws", "some"], 2, "invalid value 'some' for '--draws <N>'");
    // A program that has no modules at all.
    check(&["audit", ".", "--python", "false"], 2, "does not have the package maskwright");
}

#[test]
fn a_schema_becomes_a_regular_expression() {
    let regex = r#"{"name":"(?:[^\x00-\x1f"\\]|"#;
    let answer = check(&["schema-to-regex", "--schema-text", PERSON, "--whitespace", "compact"], 0, "");
    assert!(answer.out.starts_with(&regex.replace('{', "\\{")), "{}", answer.out);
    // What was written is read again, and takes the same documents.
    let pattern = answer.out.trim_end();
    check(&["check", "--regex", pattern, "--text", r#"{"name":"Ada","age":36}"#], 0, "accepted");
    check(&["check", "--regex", pattern, "--text", r#"{"age":36}"#], 1, "not accepted");

    let open = r#"{"type": "object", "properties": {"a": {"type": "null"}}}"#;
    check(&["schema-to-regex", "--schema-text", open], 2, "(root): arrays or objects of any kind");
    let answer = run_with_input(
        &["schema-to-regex", "--schema", "-", "--objects", "closed", "--whitespace-pattern", " ?", "--json"],
        open,
    );
    assert_eq!(answer.json()["regex"], r#"\{ ?(?:"a" ?: ?null ?)?\}"#);
    check(&["schema-to-regex", "--schema-text", "{}", "--whitespace", "wide"], 2, "known are flexible");
    let order = ["--key-order", "any", "--objects", "strict", "--whitespace", "compact"];
    let two = r#"{"properties": {"a": {"type": "null"}, "b": {"type": "null"}}, "type": "object"}"#;
    let answer = check(&[&["schema-to-regex", "--schema-text", two][..], &order].concat(), 0, "");
    assert_eq!(answer.out.matches("\"b\"").count(), 2, "{}", answer.out);
}

/// A file of this test run that is removed at its end.
struct Scratch(std::path::PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("maskwright-{}-{name}", std::process::id())))
    }

    fn path(&self) -> &str {
        self.0.to_str().expect("a readable path")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn an_index_is_built_shown_and_verified() {
    let file = Scratch::new("month.mwi");
    let regex = ["--regex", "[0-9]{4}-[0-9]{2}", "--tokenizer", TINY];
    let build = [&["index", "build", "--out", file.path(), "--json"], &regex[..]].concat();
    let built = check(&build, 0, "\"states\"").json();
    let info = check(&["index", "info", file.path(), "--json"], 0, "\"sections\"").json();
    assert_eq!((&info["states"], &info["bytes"]), (&built["states"], &built["bytes"]));
    check(&["index", "info", file.path()], 0, "classes of tokens");
    let verify = |regex: &str, tokenizer: &str, code, says: &str| {
        let args = ["index", "verify", file.path(), "--regex", regex, "--tokenizer", tokenizer];
        check(&args, code, says);
    };
    verify("[0-9]{4}-[0-9]{2}", TINY, 0, "right, ");
    verify("[0-9]{4}-[0-9]{3}", TINY, 1, "state ");
    verify("[0-9]{4}-[0-9]{2}", LETTERS, 2, "another vocabulary");
}

#[test]
fn what_has_no_index_is_said_in_one_sentence() {
    let file = Scratch::new("none.mwi");
    let build = |flags: &[&str], says: &str| {
        let answer =
            check(&[&["index", "build", "--out", file.path(), "--tokenizer", TINY], flags].concat(), 2, says);
        assert_eq!(answer.err.lines().count(), 1, "{}", answer.err);
        assert!(!file.0.exists(), "nothing is written");
    };
    build(&["--ebnf-text", "root ::= \"a\" root \"b\" | \"c\""], "rule `root` contains itself");
    build(&["--schema-text", r#"{"type": "object"}"#], "no index");
    build(&["--regex", "[a-z]{0,65535}", "--max-states", "1000"], "1000 states");
    let schema = r#"{"type": "object", "properties": {"a": {"type": "integer"}}}"#;
    check(
        &[
            "index",
            "build",
            "--out",
            file.path(),
            "--tokenizer",
            TINY,
            "--objects",
            "closed",
            "--schema-text",
            schema,
        ],
        0,
        "states",
    );
}

#[test]
fn files_that_are_no_index_are_refused() {
    let file = Scratch::new("damaged.mwi");
    check(&["index", "info", file.path()], 2, "error: ");
    check(&["index", "info", TINY], 2, "this is not an index");
    check(
        &["index", "build", "--out", file.path(), "--choice", "yes", "--choice", "no", "--tokenizer", TINY],
        0,
        "states",
    );
    let whole = std::fs::read(&file.0).expect("it was built");
    std::fs::write(&file.0, &whole[..whole.len() / 2]).expect("it can be written");
    check(&["index", "info", file.path()], 2, "cut off");
    let mut damaged = whole.clone();
    damaged[whole.len() - 9] ^= 4;
    std::fs::write(&file.0, damaged).expect("it can be written");
    check(&["index", "info", file.path()], 2, "checksum");
    let mut old = whole;
    old[16] = 77;
    std::fs::write(&file.0, old).expect("it can be written");
    check(&["index", "info", file.path()], 2, "format 77");
    check(
        &["index", "build", "--out", "/no/such/folder/x", "--choice", "a", "--tokenizer", TINY],
        2,
        "cannot write",
    );
}

/// Every command of docs/indexes.md does what the page says.
#[test]
fn the_commands_of_the_page_about_indexes_run() {
    let folder = Scratch::new("index-page");
    std::fs::create_dir_all(&folder.0).expect("a folder");
    std::fs::copy(TINY, folder.0.join("tokenizer.json")).expect("a tokenizer");
    let page = include_str!("../../../docs/indexes.md");
    let mut commands = 0;
    let blocks = page.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
    for line in blocks.flat_map(str::lines) {
        let (line, code) = match line.split_once("# exit code ") {
            Some((line, code)) => (line, code.trim().parse().expect("a number")),
            None => (line, 0),
        };
        let args: Vec<&str> = words(line);
        assert_eq!(args[0], "maskwright", "{line}");
        let output = command(&args[1..]).current_dir(&folder.0).output().expect("the command starts");
        let answer = Answer::of(output);
        assert_eq!(answer.code, Some(code), "{line}\n{}{}", answer.out, answer.err);
        commands += 1;
    }
    let _ = std::fs::remove_dir_all(&folder.0);
    assert!(commands >= 8, "only {commands} commands were found");
}

/// Every command of the tutorial, and of the page about the command, prints what stands below it.
#[test]
fn the_commands_of_the_book_print_what_it_shows() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let pages = [include_str!("../../../docs/tutorial.md"), include_str!("../../../docs/command.md")];
    let mut commands = 0;
    for block in pages.iter().flat_map(|page| page.split("```console\n").skip(1)) {
        let block = block.split("```").next().expect("a block ends");
        let (line, shown) = block.split_once('\n').expect("a command, and what it prints");
        let args = words(line.strip_prefix("$ maskwright ").expect("a command"));
        let answer = Answer::of(command(&args).current_dir(root).output().expect("the command starts"));
        let said = format!("{}{}", answer.out, answer.err);
        let said: Vec<&str> = said.lines().map(str::trim_end).collect();
        assert_eq!(said, shown.lines().collect::<Vec<_>>(), "{line}");
        commands += 1;
    }
    assert!(commands >= 10, "only {commands} commands were found");
}

/// SECURITY.md lists the defaults of the server as its help does.
#[cfg(feature = "server")]
#[test]
fn the_defaults_of_the_server_are_those_of_the_security_page() {
    let help = run(&["serve", "--help"]).out.split_whitespace().collect::<Vec<_>>().join(" ");
    let rows = include_str!("../../../SECURITY.md").lines().filter(|line| line.starts_with("| `--"));
    let mut flags = 0;
    for row in rows {
        let mut cells = row.split('|').map(|cell| cell.trim().trim_matches('`')).skip(1);
        let (flag, default) = (cells.next().expect("a flag"), cells.next().expect("a default"));
        let about = help.split_once(&format!(" {flag} <")).unwrap_or_else(|| panic!("no {flag}")).1;
        let about = about.split(" --").next().expect("a flag's text");
        let shown =
            about.split_once("[default: ").map_or("none", |(_, rest)| rest.split(']').next().unwrap_or(rest));
        assert_eq!(shown, default, "{flag}");
        flags += 1;
    }
    assert!(flags >= 9, "only {flags} flags were found");
}

/// The words of a command line, as a shell would see them; single quotes are all it knows.
fn words(line: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = line.trim();
    while !rest.is_empty() {
        let (word, behind) = match rest.strip_prefix('\'') {
            Some(quoted) => quoted.split_once('\'').expect("a closing quote"),
            None => rest.split_once(' ').unwrap_or((rest, "")),
        };
        words.push(word);
        rest = behind.trim_start();
    }
    words
}

#[cfg(feature = "runtime")]
#[test]
fn generate_says_what_is_wrong_before_it_writes() {
    check(&["generate", "--model", "nothing.gguf", "--prompt", "x"], 2, "cannot read nothing.gguf");
    check(&["generate", "--model", TINY, "--prompt", "x"], 2, "it does not begin with GGUF");
    check(&["generate"], 2, "--prompt");
    check(&["generate", "--prompt", "x", "--regex", "a", "--choice", "b"], 2, "cannot be used with");
    check(&["generate", "--prompt", "x", "--whitespace", "compact"], 2, "about JSON Schemas");
}

/// With the small model that `make assets` fetches; without it, this says so and passes.
#[cfg(feature = "runtime")]
#[test]
fn generate_writes_what_it_must() {
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/assets/smollm2");
    if !std::path::Path::new(model).is_dir() {
        // Not by a macro, because the test harness would hide it.
        let _ = writeln!(std::io::stderr(), "SKIPPED: smollm2 is not there; run scripts/assets.sh smollm2");
        return;
    }
    let question = "In which year did the Second World War end? Answer with the year only.";
    let year = check(
        &["generate", "--model", model, "--prompt", question, "--regex", "19[0-9]{2}"],
        0,
        "ended by stop",
    );
    assert_eq!(year.out, "1945\n");
    assert!(year.err.contains("tokens") && year.err.contains("mask"), "{}", year.err);
    let cut = ["--raw", "--prompt", "A year:", "--regex", " 19[0-9]{2}", "--max-tokens", "2", "--json"];
    let cut = run(&[&["generate", "--model", model][..], &cut].concat());
    assert_eq!((cut.code, &cut.json()["answers"][0]["finish_reason"]), (Some(1), &Value::from("length")));
    // However much the model prefers something else, the grammar decides.
    let pcfg =
        ["--pcfg-text", "S -> tea [0.999999999999] | coffee [0.000000000001]", "--lambda", "1000", "--json"];
    let tea = run(&[&["generate", "--model", model, "--prompt", "Say coffee."][..], &pcfg].concat());
    let answer = &tea.json()["answers"][0];
    assert_eq!(
        (&answer["text"], &answer["weights"]["best_parse"]),
        (&"tea".into(), &"(S tea)".into()),
        "{}",
        tea.err
    );
    // An exact draw says what it took; with one try it is none, and says so, and is valid nevertheless.
    let ask = ["generate", "--model", model, "--prompt", "Is the sky blue? Answer yes or no."];
    let exact =
        ["--choice", "Yes", "--choice", "No", "--exact", "--temperature", "1", "--seed", "3", "--json"];
    for (tries, is_exact) in [("400", true), ("1", false)] {
        let drawn = run(&[&ask[..], &exact, &["--tries", tries]].concat());
        let told = drawn.json();
        assert!(["Yes", "No"].contains(&told["answers"][0]["text"].as_str().unwrap()), "{told}");
        let sampling = &told["sampling"];
        assert_eq!(sampling["exact"], serde_json::json!([is_exact]), "{told}");
        let mass = |name: &str| sampling["mass"][name].as_f64().unwrap();
        assert!((mass("valid") + mass("lost") + mass("unaccounted") - 1.0).abs() < 1e-9, "{told}");
    }
    for (more, part) in [
        (&["--tries", "0"][..], "tries"),
        (&["--tries", "1000000000"], "tries"),
        (&["--temperature", "0"], "temperature"),
    ] {
        let base = ["--choice", "Yes", "--exact"];
        let warm = if more[0] == "--temperature" { &[][..] } else { &["--temperature", "1"] };
        check(&[&ask[..], &base, warm, more].concat(), 2, part);
    }
    check(&[&ask[..], &["--exact", "--temperature", "1"]].concat(), 2, "constraint");
    check(&[&ask[..], &["--choice", "Yes", "--tries", "5"]].concat(), 2, "--exact");
    // A prompt that ends with a blank is cut back before it, unless that is not wanted.
    let raw = [
        "--raw",
        "--prompt",
        "Is the sky blue, yes or no? The answer is ",
        "--choice",
        "yes",
        "--choice",
        "no",
    ];
    let prompt = |more: &[&str]| {
        let told = run(&[&["generate", "--model", model, "--json"][..], &raw, more].concat()).json();
        assert!(["yes", "no"].contains(&told["answers"][0]["text"].as_str().unwrap()), "{told}");
        told["answers"][0]["prompt_tokens"].as_u64().unwrap()
    };
    assert_eq!(prompt(&[]) + 1, prompt(&["--no-heal"]));
    check(&["generate", "--model", model, "--prompt", "x", "--temperature", "-1"], 2, "temperature");
    check(&["generate", "--model", model, "--prompt", "x", "--stop", ""], 2, "stop string 0 is empty");
    check(
        &["generate", "--model", model, "--prompt", "x", "--regex", "a{2,1}"],
        2,
        "at least 2 but at most 1",
    );
}

#[test]
fn forced_text_is_shown() {
    let args = ["forced", "--tokenizer", LETTERS, "--choice", "abba", "--choice", "abab"];
    let answer = check(&args, 0, "forced text    ab");
    assert!(answer.out.contains("tokens, the end included"), "{}", answer.out);
    let json = check(&[&args[..], &["--after", "abb", "--json"]].concat(), 0, "").json();
    assert_eq!((&json["text"], &json["shortest_completion"]), (&"a".into(), &2.into()));
    check(&[&args[..], &["--after", "abba"]].concat(), 0, "no text is forced\nthe text is complete");
    check(&[&args[..], &["--after", "ac"]].concat(), 1, "");
}

#[cfg(feature = "server")]
#[test]
fn serve_says_what_is_wrong_before_it_listens() {
    check(&["serve", "--model", "nothing.gguf", "--log", "off"], 2, "cannot read nothing.gguf");
    check(&["serve", "--config", "nothing.toml"], 2, "cannot read nothing.toml");
    check(&["serve", "--max-body", "16X"], 2, "known are K, M and G");
    check(&["serve", "--grammar-backend", "other"], 2, "maskwright, llguidance");
    check(&["serve", "--runtime", "other"], 2, "maskwright, llama-cpp");
    #[cfg(not(feature = "llama-cpp"))]
    for args in [&["serve", "--log", "off"][..], &["generate", "--prompt", "x"]] {
        let model = ["--runtime", "llama-cpp", "--model", "nothing.gguf"];
        check(&[args, &model].concat(), 2, "cargo build --features llama-cpp");
    }
    // A model of another architecture: what it is, and the way out.
    let folder = std::env::temp_dir().join(format!("maskwright-cli-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let text = |text: &str| [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat();
    let list = |kind: u32, items: Vec<Vec<u8>>| {
        [&kind.to_le_bytes()[..], &(items.len() as u64).to_le_bytes(), &items.concat()].concat()
    };
    let entries = [
        ("general.architecture", 8_u32, text("mamba")),
        ("tokenizer.ggml.model", 8, text("gpt2")),
        ("tokenizer.ggml.tokens", 9, list(8, vec![text("a"), text("b")])),
        ("tokenizer.ggml.merges", 9, list(8, vec![])),
        ("tokenizer.ggml.eos_token_id", 4, 1_u32.to_le_bytes().to_vec()),
    ];
    let mut file = b"GGUF\x03\0\0\0\0\0\0\0\0\0\0\0".to_vec();
    file.extend((entries.len() as u64).to_le_bytes());
    for (key, kind, value) in entries {
        file.extend([text(key), kind.to_le_bytes().to_vec(), value].concat());
    }
    let model = folder.join("other.gguf");
    std::fs::write(&model, file).unwrap();
    let answer =
        check(&["serve", "--log", "off", "--model", model.to_str().unwrap()], 2, "its architecture is");
    #[cfg(not(feature = "llama-cpp"))]
    assert!(answer.err.contains("make serve RUNTIME=llama-cpp"), "{}", answer.err);
    let _ = answer;
    check(&["serve", "--api-key", "", "--log", "off"], 2, "an API key is empty");
    let both = ["--constrained-json-disable-any-whitespace", "--constrained-json-whitespace-pattern", " "];
    check(&[&["serve"][..], &both].concat(), 2, "cannot be used with");
}

#[test]
fn a_weighted_grammar_is_a_constraint() {
    let drinks = "S -> \"yes\" [0.75] | \"no\" [0.25]";
    check(&["check", "--pcfg-text", drinks, "--text", "no"], 0, "a sound pcfg constraint");
    check(&["check", "--pcfg-text", drinks, "--text", "maybe"], 1, "not accepted");
    let file = run_with_input(
        &["check", "--pcfg", "-", "--start", "D", "--normalise"],
        "S -> D\nD -> a [3] | b [1]",
    );
    assert_eq!(file.code, Some(0), "{}", file.err);
    check(&["check", "--pcfg-text", "S -> a [0.5] | b [0.6]"], 2, "the probabilities of `S` add up to 1.1");
    check(&["check", "--pcfg-text", "S -> S a [0.9999999999999] | a"], 2, "never ends");
    check(&["check", "--regex", "a", "--normalise"], 2, "are about --pcfg");
    check(&["debug", "ast", "--pcfg-text", drinks], 0, "weighted grammar");
    let constraint = ["--pcfg-text", drinks, "--tokenizer", TINY];
    let answer = run(&[&["mask", "--json"][..], &constraint].concat());
    let value = answer.json();
    let (tokens, logs) = (value["tokens"].as_array().unwrap(), value["logprobs"].as_array().unwrap());
    assert!(tokens.len() == logs.len() && !tokens.is_empty(), "{value}");
    // Every token begins `yes` or `no`.
    let is_one = |log: &Value| {
        let share = log.as_f64().unwrap().exp();
        (share - 0.75).abs() < 1e-9 || (share - 0.25).abs() < 1e-9
    };
    assert!(logs.iter().all(is_one), "{value}");
    check(&[&["mask", "--after", "n"][..], &constraint].concat(), 0, "0.000");
    let why = |token: &str, code: i32| {
        let ask = ["explain", "--json", "--after", "n", "--token-text", token];
        check(&[&ask[..], &constraint].concat(), code, "").json()["allowed"].clone()
    };
    assert_eq!((why("o", 0), why("e", 1)), (true.into(), false.into()));
}

#[cfg(feature = "runtime")]
#[test]
fn what_is_said_about_a_weighted_grammar_must_make_sense() {
    let drinks = "S -> \"yes\" [0.75] | \"no\" [0.25]";
    check(&["generate", "--prompt", "x", "--regex", "a", "--lambda", "1"], 2, "are about --pcfg");
    check(&["generate", "--prompt", "x", "--pcfg-text", drinks, "--lambda", "nan"], 2, "lambda is NaN");
    check(&["generate", "--prompt", "x", "--pcfg-text", drinks, "--lambda", "-1"], 2, "from 0 to 1000");
    check(&["generate", "--prompt", "x", "--pcfg-text", drinks, "--lambda", "x"], 2, "invalid");
    check(&["generate", "--prompt", "x", "--pcfg-text", drinks, "--exact"], 2, "which --pcfg changes");
    let path = std::env::temp_dir().join(format!("maskwright-pcfg-{}", std::process::id()));
    std::fs::write(&path, "S -> a [2]").unwrap();
    check(&["serve", "--pcfg", path.to_str().unwrap()], 2, "add up to 2");
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn prefixes_of_a_weighted_grammar() {
    let args = ["pcfg", "prefix", "--grammar", "-", "--json", "a", "a", "a"];
    let answer = run_with_input(&args, "S -> a [0.6] | S S [0.4]\n");
    assert_eq!(answer.code, Some(0), "{}", answer.err);
    let value = answer.json();
    let logs: Vec<f64> =
        value["prefix_logprobs"].as_array().unwrap().iter().map(|log| log.as_f64().unwrap()).collect();
    for (log, wanted) in logs.iter().zip([1.0f64, 0.4, 1.6 * 0.16]) {
        assert!((log.exp() - wanted).abs() < 1e-12, "{value}");
    }
    assert_eq!(logs.len(), 3);
    assert!((value["sentence_logprob"].as_f64().unwrap().exp() - 2.0 * 0.216 * 0.16).abs() < 1e-12);
    // What cannot come has no logarithm.
    let answer = run_with_input(
        &["pcfg", "prefix", "--grammar", "-", "--json", "a", "b", "a"],
        "S -> a S [0.4] | a [0.6]",
    );
    assert_eq!(
        (answer.code, answer.json()["prefix_logprobs"][1].is_null()),
        (Some(1), true),
        "{}",
        answer.out
    );
    assert!(answer.json()["sentence_logprob"].is_null());
}

#[test]
fn weighted_grammars_are_parsed_sampled_and_trained() {
    let grammar = "S -> NP sleeps\nNP -> kim [0.8] | \"<x>\" [0.2]\n";
    let svg = std::env::temp_dir().join(format!("maskwright-{}.svg", std::process::id()));
    let path = svg.to_str().expect("a path of characters");
    let answer =
        run_with_input(&["pcfg", "parse", "--grammar", "-", "--svg", path, "<x>", "sleeps"], grammar);
    assert!(answer.out.starts_with("S\n├─ NP\n│  └─ <x>\n└─ sleeps\n"), "{}{}", answer.out, answer.err);
    let picture = std::fs::read_to_string(&svg).expect("a picture");
    std::fs::remove_file(&svg).expect("it was there");
    assert!(picture.starts_with("<svg") && picture.contains("&lt;x&gt;"), "{picture}");
    let answer = run_with_input(&["pcfg", "parse", "--grammar", "-", "--json", "kim"], grammar);
    assert_eq!((answer.code, answer.json()["tree"].is_null()), (Some(1), true));
    let answer = run_with_input(&["pcfg", "sample", "--grammar", "-", "--count", "3", "--json"], grammar);
    assert_eq!(answer.json()["sentences"].as_array().map(Vec::len), Some(3));
    let corpus = std::env::temp_dir().join(format!("maskwright-{}.txt", std::process::id()));
    std::fs::write(&corpus, "kim sleeps\n<x> sleeps\n").expect("a corpus");
    let path = corpus.to_str().expect("a path of characters");
    let answer = run_with_input(&["pcfg", "train", "--grammar", "-", "--sentences", path], grammar);
    std::fs::remove_file(&corpus).expect("it was there");
    assert!(answer.out.contains("NP -> kim [0.5] | \"<x>\" [0.5]"), "{}{}", answer.out, answer.err);
}

#[test]
fn wrong_weighted_grammars_are_refused_with_their_place() {
    let answer = run_with_input(&["pcfg", "prefix", "--grammar", "-", "a"], "S -> a [0.5]");
    assert_eq!(answer.code, Some(2));
    assert!(
        answer.err.contains("<stdin>:1:1: error: the probabilities of `S` add up to 0.5"),
        "{}",
        answer.err
    );
    let answer =
        run_with_input(&["pcfg", "prefix", "--grammar", "-", "--normalise", "--json", "a"], "S -> a [0.5]");
    assert_eq!(answer.code, Some(0), "{}", answer.out);
}
