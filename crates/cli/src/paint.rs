//! Colored output, on terminals that support it.

use std::env;
use std::io::{self, IsTerminal};

/// Wraps text in ANSI colors, or leaves it unchanged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paint {
    on: bool,
}

/// A color, or a weight.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ink {
    Bold,
    Dim,
    Red,
    Green,
    Yellow,
    Cyan,
    /// One of the two backgrounds that distinguish adjacent tokens.
    Token(usize),
}

impl Paint {
    /// Uses color if standard output is a terminal, unless the user disabled it (`--no-color`, `NO_COLOR`,
    /// `TERM=dumb`). `CLICOLOR_FORCE` enables color without a terminal.
    pub(crate) fn detect(no_color: bool) -> Self {
        let set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
        let forced = env::var_os("CLICOLOR_FORCE").is_some_and(|value| !value.is_empty() && value != "0");
        let dumb = env::var_os("TERM").is_some_and(|term| term == "dumb");
        let refused = no_color || set("NO_COLOR");
        Self { on: !refused && (forced || (!dumb && io::stdout().is_terminal())) }
    }

    pub(crate) fn text(self, ink: Ink, text: impl AsRef<str>) -> String {
        let text = text.as_ref();
        if !self.on {
            return text.to_owned();
        }
        let code = match ink {
            Ink::Bold => "1",
            Ink::Dim => "2",
            Ink::Red => "31",
            Ink::Green => "32",
            Ink::Yellow => "33",
            Ink::Cyan => "36",
            Ink::Token(number) if number.is_multiple_of(2) => "30;48;5;153",
            Ink::Token(_) => "30;48;5;223",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}
