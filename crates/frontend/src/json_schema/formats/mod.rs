//! `format`: each format of the standard as a language over the decoded text.
//!
//! Each format is a regular expression, built from named parts that follow the defining document. Some formats are not
//! regular, or too large for a table. The language of these is smaller than the format:
//!
//! - `date-time`, `time`: a leap second can be written only as 23:59:60 UTC, not in another time zone.
//! - `regex`: groups nest at most two deep, ranges in classes are of letters or of digits, and there is no `\0`.
//! - `email`: where escaped and single characters mix in a quoted local part, slightly less than 64 characters fit.
//!
//! Under a negation such a format is replaced by a larger language ([`lower_wide`]). Texts that are in the larger
//! language without having the format then cannot be written.
//!
//! Some languages are larger than the format: `idn-hostname` and `idn-email` take any character beyond ASCII as a
//! letter, and the total length of host names (253) is not limited, only the length of their labels (63).

mod internet;
mod regex_syntax;
mod time;

use std::sync::OnceLock;

use maskwright_grammar::{ExprId, GrammarBuilder};

use crate::{notation::nearest, regex};

/// Checks whether this is a format of the standard. Any other name constrains nothing.
pub(crate) fn is_known(name: &str) -> bool {
    NAMES.contains(&name)
}

/// Returns the format with the most similar name, for a suggestion.
pub(crate) fn near(name: &str) -> Option<&'static str> {
    nearest(name, NAMES.into_iter())
}

const NAMES: [&str; 19] = [
    "date-time",
    "date",
    "time",
    "duration",
    "email",
    "idn-email",
    "hostname",
    "idn-hostname",
    "ipv4",
    "ipv6",
    "uri",
    "uri-reference",
    "iri",
    "iri-reference",
    "uri-template",
    "uuid",
    "json-pointer",
    "relative-json-pointer",
    "regex",
];

/// Checks whether the language of a format is smaller than the format.
pub(crate) fn is_smaller_than_format(name: &str) -> bool {
    matches!(name, "time" | "date-time" | "email" | "idn-email" | "regex")
}

/// Returns the expression of a larger language, for the formats whose language is smaller than the format. A text
/// outside the larger language does not have the format.
fn wide_expression(name: &str) -> Option<String> {
    Some(match name {
        "time" => time::wide_time(),
        "date-time" => format!("{}[Tt]{}", time::date(), time::wide_time()),
        "email" => internet::wide_email(""),
        "idn-email" => internet::wide_email(r"\u{80}-\u{10FFFF}"),
        "regex" => regex_syntax::wide_regex(),
        _ => return None,
    })
}

/// Returns the regular expression of a format, for a full match.
fn expression(name: &str) -> Option<String> {
    Some(match name {
        "date" => time::date(),
        "time" => time::time(),
        "date-time" => format!("{}[Tt]{}", time::date(), time::time()),
        "duration" => time::duration(),
        "email" => internet::email(""),
        "idn-email" => internet::email(r"\u{80}-\u{10FFFF}"),
        "hostname" => internet::hostname(""),
        "idn-hostname" => internet::hostname(r"\u{80}-\u{10FFFF}"),
        "ipv4" => internet::ipv4(),
        "ipv6" => internet::ipv6(),
        "uri" => internet::uri("", "", false),
        "uri-reference" => internet::uri("", "", true),
        "iri" => internet::uri(internet::UCS, internet::PRIVATE, false),
        "iri-reference" => internet::uri(internet::UCS, internet::PRIVATE, true),
        "uri-template" => internet::uri_template(),
        "uuid" => "[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}".to_owned(),
        "json-pointer" => "(?:/(?:[^/~]|~[01])*)*".to_owned(),
        "relative-json-pointer" => "(?:0|[1-9][0-9]*)(?:#|(?:/(?:[^/~]|~[01])*)*)".to_owned(),
        "regex" => regex_syntax::regex(),
        _ => return None,
    })
}

fn options() -> regex::Options {
    regex::Options { ascii: true, ..regex::Options::default() }
}

/// Returns the parsed regular expression of a format. It is parsed once per process.
fn ast(name: &str) -> Option<&'static regex::Ast> {
    static READ: [OnceLock<Option<regex::Ast>>; NAMES.len()] = [const { OnceLock::new() }; NAMES.len()];
    let place = NAMES.iter().position(|one| *one == name)?;
    let read = || {
        // With `s`, `.` matches line ends, as classes such as `[^/~]` do.
        regex::parse(&format!("(?s){}", expression(name)?), &options()).ok()
    };
    READ[place].get_or_init(read).as_ref()
}

/// Returns the texts that have a format. An unknown name allows every text.
pub(crate) fn lower(name: &str, grammar: &mut GrammarBuilder) -> ExprId {
    match ast(name).map(|ast| regex::lower_ast(ast, &options(), grammar)) {
        Some(Ok(expr)) => expr,
        // Unreachable: a test lowers all these expressions.
        Some(Err(_)) | None => grammar.any_text(),
    }
}

/// Returns a superset of the texts that have a format, for use under a negation: no text outside it has the format.
pub(crate) fn lower_wide(name: &str, grammar: &mut GrammarBuilder) -> ExprId {
    let Some(expression) = wide_expression(name) else { return lower(name, grammar) };
    let ast = regex::parse(&format!("(?s){expression}"), &options());
    // A test lowers all these expressions. The fallback allows every text, so that its negation allows none.
    ast.ok()
        .and_then(|ast| regex::lower_ast(&ast, &options(), grammar).ok())
        .unwrap_or_else(|| grammar.any_text())
}

#[cfg(test)]
mod tests {
    use super::super::cases::Languages;
    use super::*;

    fn check(name: &str, good: &[&str], bad: &[&str]) {
        let ast = ast(name).expect("the format can be read");
        let mut builder = GrammarBuilder::new();
        let expr =
            regex::lower_ast(ast, &options(), &mut builder).unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut languages = Languages::default();
        for text in good {
            assert_eq!(languages.contains(&builder, expr, text), Some(true), "{name} should hold {text:?}");
        }
        for text in bad {
            assert_eq!(
                languages.contains(&builder, expr, text),
                Some(false),
                "{name} should not hold {text:?}"
            );
        }
    }

    #[test]
    fn wide_languages() {
        let cases: [(&str, &[&str], &[&str]); 4] = [
            ("time", &["08:30:60+08:00", "23:59:60Z", "08:30:06Z"], &["24:00:00Z", "08:30:61Z", ""]),
            ("date-time", &["1990-12-31T15:59:60-08:00"], &["1990-02-31T15:59:60-08:00", "x"]),
            ("email", &["a@b", "\"a\"@b"], &["a", "\"a@b"]),
            (
                "regex",
                &["(((a)))", "\\\"", "[z-a]", "(a)\\1", "", "\\(", "[(]", "()", "a\\\\"],
                &["*a", "a)", "(a", "a[b", "\\", "a\\\\\\", "?", "(?x"],
            ),
        ];
        for name in NAMES {
            assert_eq!(is_smaller_than_format(name), wide_expression(name).is_some(), "{name}");
        }
        for (name, good, bad) in cases {
            let mut builder = GrammarBuilder::new();
            let wide = lower_wide(name, &mut builder);
            let mut languages = Languages::default();
            for (texts, expected) in [(good, true), (bad, false)] {
                for text in texts {
                    assert_eq!(languages.contains(&builder, wide, text), Some(expected), "{name}: {text:?}");
                }
            }
        }
    }

    #[test]
    fn every_format_can_be_lowered() {
        for name in NAMES {
            check(name, &[], &["\\"]);
        }
    }

    #[test]
    fn dates_and_times() {
        check(
            "date",
            &["1963-06-19", "2020-02-29", "2000-02-29", "2021-04-30"],
            &["2021-02-29", "1900-02-29", "2021-04-31", "2021-13-01", "2021-00-10", "21-01-01", "2021-1-1"],
        );
        check(
            "time",
            &["08:30:06Z", "08:30:06.283185+01:00", "23:59:60Z", "00:00:00z"],
            &["24:00:00Z", "08:60:00Z", "08:30:60Z", "08:30:06", "8:30:06Z", "08:30:06+24:00", "08:30Z"],
        );
        check(
            "date-time",
            &["1963-06-19T08:30:06.283185Z", "1990-12-31T15:59:50.123-08:00", "1963-06-19t08:30:06z"],
            &["1963-06-19 08:30:06Z", "1963-06-19", "2013-350T01:01:01", "1990-02-31T15:59:59Z"],
        );
        check(
            "duration",
            &["P4DT12H30M5S", "P4Y", "PT0S", "P1M", "PT1M", "P2W", "P1Y2M3DT4H5M6S", "PT36H"],
            &["PT1D", "4DT12H", "P", "P1YT", "PT", "P2D1Y", "P1D2H", "P2S", "P1Y2W", "P1"],
        );
    }

    #[test]
    fn addresses() {
        check(
            "email",
            &["joe.bloggs@example.com", "te~st@example.com", "\"joe bloggs\"@example.com", "a@[127.0.0.1]"],
            &[
                "2962",
                ".test@example.com",
                "test.@example.com",
                "te..st@example.com",
                "a@b c",
                "joe@=example.com",
            ],
        );
        check("idn-email", &["실례@실례.테스트", "joe@example.com"], &["2962", "@x"]);
        check(
            "hostname",
            &["www.example.com", "localhost", "a-b.c9", "1.2"],
            &["-a", "a-", "a..b", ".a", "a_b", "", "a.", &"x".repeat(64)],
        );
        check("ipv4", &["192.168.0.1", "0.0.0.0"], &["256.1.1.1", "1.1.1", "01.1.1.1", "1.1.1.1.1"]);
        check(
            "ipv6",
            &[
                "::1",
                "::",
                "1:2:3:4:5:6:7:8",
                "::ffff:192.168.0.1",
                "1::",
                "a::b:c",
                "1:2:3:4:5:6:1.2.3.4",
                "1:2:3:4:5:6:7::",
            ],
            &[
                "12345::",
                "1:2:3:4:5:6:7:8:9",
                "::1::",
                ":1",
                "1:2:3",
                "1:2:3:4:5:6:7:8::",
                "::1.2.3",
                "1:2:3:4:1.2.3.4",
            ],
        );
    }

    #[test]
    fn identifiers() {
        check(
            "uri",
            &[
                "http://foo.bar/?baz=qux#quux",
                "urn:oasis:names",
                "mailto:a@b.c",
                "http://[::1]:80/x",
                "tel:+1-816-555-1212",
                "file:///etc/x",
            ],
            &[
                "//foo.bar",
                "/abc",
                "\\\\WINDOWS",
                "http:// shouldfail",
                "http://a b",
                "bar,baz:foo",
                "http://a/%zz",
                "http://a/<>",
            ],
        );
        check(
            "uri-reference",
            &["", "//foo.bar", "/abc", "abc#frag", "a:b", "?x"],
            &["\\\\WINDOWS", "#frag\\ment", "a b"],
        );
        check("iri", &["http://ƒøø.ßår/?∂éœ=πîx#πîüx"], &["/abc", "âππ", "http:// a"]);
        check("iri-reference", &["âππ", "#ƒrägmênt"], &["\\\\a", "a b"]);
        check(
            "uri-template",
            &["http://a/{x}/{?y*,z:3}", "", "{+a.b}", "a'b"],
            &["http://{", "{}", "a b", "{x:0}"],
        );
        check(
            "uuid",
            &["2EB8AA08-aa98-11ea-b4aa-73b441d16380"],
            &["2eb8aa08-aa98-11ea-b4aa-73b441d1638", "x"],
        );
        check("json-pointer", &["", "/a~1b/~0", "/ /é"], &["a", "/~", "/~2", "#/a"]);
        check("relative-json-pointer", &["1", "0/a/b", "2#"], &["01", "-1", "/a", "1a"]);
        check(
            "regex",
            &["^[a-z]+$", "", "a|b", "(a(b)?)*", "[^\\]x0-9]{2,5}", "\\d+\\.\\u00e9", "(?=x)y", "é+?"],
            &["(", "a)", "[", "*a", "a**", "\\", "[z-a]", "a{2,1}", "(?x", "\\00", "[\\00]"],
        );
    }
}
