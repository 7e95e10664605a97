//! The terminals of `%import common.NAME`, as patterns.
//!
//! Names and languages are those that Lark ships. `ESCAPED_STRING` may contain a line break, as in llguidance and
//! unlike in Lark, because its language is otherwise the same and more than one server depends on it.

/// Returns the pattern of a terminal of the module `common`.
pub(super) fn pattern(name: &str) -> Option<&'static str> {
    TERMINALS.iter().find(|(known, _)| *known == name).map(|(_, pattern)| *pattern)
}

/// Returns the names of all terminals.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    TERMINALS.iter().map(|(name, _)| *name)
}

const TERMINALS: [(&str, &str); 25] = [
    ("DIGIT", "[0-9]"),
    ("HEXDIGIT", "[0-9A-Fa-f]"),
    ("INT", "[0-9]+"),
    ("SIGNED_INT", "[+-]?[0-9]+"),
    ("DECIMAL", r"[0-9]+\.[0-9]*|\.[0-9]+"),
    ("_EXP", "[Ee][+-]?[0-9]+"),
    ("FLOAT", r"[0-9]+[Ee][+-]?[0-9]+|([0-9]+\.[0-9]*|\.[0-9]+)([Ee][+-]?[0-9]+)?"),
    ("SIGNED_FLOAT", r"[+-]?([0-9]+[Ee][+-]?[0-9]+|([0-9]+\.[0-9]*|\.[0-9]+)([Ee][+-]?[0-9]+)?)"),
    ("NUMBER", r"([0-9]+(\.[0-9]*)?|\.[0-9]+)([Ee][+-]?[0-9]+)?"),
    ("SIGNED_NUMBER", r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([Ee][+-]?[0-9]+)?"),
    ("ESCAPED_STRING", r#""([^"\\]|\\.)*""#),
    ("LCASE_LETTER", "[a-z]"),
    ("UCASE_LETTER", "[A-Z]"),
    ("LETTER", "[A-Za-z]"),
    ("WORD", "[A-Za-z]+"),
    ("CNAME", "[A-Za-z_][0-9A-Za-z_]*"),
    ("WS_INLINE", r"[ \t]+"),
    ("WS", r"[ \t\f\r\n]+"),
    ("CR", r"\r"),
    ("LF", r"\n"),
    ("NEWLINE", r"(\r?\n)+"),
    ("SH_COMMENT", r"#[^\n]*"),
    ("CPP_COMMENT", r"//[^\n]*"),
    // A run of stars without a slash after it continues the comment; the last run is followed by the closing slash.
    ("C_COMMENT", r"/\*([^*]|\*+[^*/])*\*+/"),
    ("SQL_COMMENT", r"--[^\n]*"),
];
