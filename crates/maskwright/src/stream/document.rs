//! Documents inside a text: where a JSON value ends, and what a list of parameters is as JSON.

use maskwright_frontend::tag::{Parameter, Wire, Written};

/// Follows a JSON value to its end. It does not check more than it needs for that.
#[derive(Clone, Debug, Default)]
pub(super) struct JsonEnd {
    depth: u32,
    inside: Inside,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Inside {
    #[default]
    Start,
    Brackets,
    String,
    Escape,
    /// A number, `true`, `false` or `null`.
    Word,
    Over,
}

/// What was found out about a piece of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// So many bytes belong to the value, and it goes on.
    More(usize),
    /// So many bytes belong to the value, and it is over.
    End(usize),
    /// No value begins here.
    Nothing,
}

impl JsonEnd {
    /// Reads a piece. A number ends with what follows it, or with the text.
    pub(super) fn read(&mut self, text: &str, is_last: bool) -> Found {
        for (at, byte) in text.bytes().enumerate() {
            match self.inside {
                Inside::Start => match byte {
                    b'{' | b'[' => (self.inside, self.depth) = (Inside::Brackets, 1),
                    b'"' => self.inside = Inside::String,
                    b'-' | b'0'..=b'9' | b't' | b'f' | b'n' => self.inside = Inside::Word,
                    _ => return Found::Nothing,
                },
                Inside::Brackets => match byte {
                    b'{' | b'[' => self.depth = self.depth.saturating_add(1),
                    b'}' | b']' => self.depth -= 1,
                    b'"' => self.inside = Inside::String,
                    _ => {}
                },
                Inside::String => match byte {
                    b'"' => self.inside = Inside::Brackets,
                    b'\\' => self.inside = Inside::Escape,
                    _ => {}
                },
                Inside::Escape => self.inside = Inside::String,
                Inside::Word => {
                    if !(byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.')) {
                        self.inside = Inside::Over;
                        return Found::End(at);
                    }
                }
                Inside::Over => return Found::End(at),
            }
            if self.inside == Inside::Brackets && self.depth == 0 {
                self.inside = Inside::Over;
                return Found::End(at + 1);
            }
        }
        match self.inside {
            Inside::Word if is_last => Found::End(text.len()),
            Inside::Start if is_last => Found::Nothing,
            _ => Found::More(text.len()),
        }
    }
}

/// Reads parameters and writes JSON.
#[derive(Clone, Debug, Default)]
pub(super) struct Parameters {
    at: At,
    count: usize,
}

#[derive(Clone, Debug, Default)]
enum At {
    /// In front of a parameter, or of the end.
    #[default]
    Between,
    Name,
    /// In a value that is written as it is. Whether something of it was read, and line breaks that may belong to the closing tag.
    Text {
        begun: bool,
    },
    /// In front of a value that is JSON.
    BeforeJson,
    Json(JsonEnd),
    /// Behind it.
    AfterJson,
}

/// How far reading got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// So many bytes were read; there may be more to do.
    Read(usize),
    /// What comes next is needed.
    Wait,
    /// The parameters are over.
    Over,
    /// This is no list of parameters.
    Broken,
}

/// A name longer than this is none.
const NAME: usize = 4_096;

impl Parameters {
    /// Takes one step, and appends to the JSON.
    pub(super) fn step(
        &mut self,
        text: &str,
        is_last: bool,
        wire: Wire,
        list: &[Parameter],
        json: &mut String,
    ) -> Progress {
        match &mut self.at {
            At::Between => self.between(text, is_last, wire, json),
            At::Name => self.name(text, is_last, wire, list, json),
            At::Text { .. } => self.text(text, wire, json),
            At::BeforeJson => {
                let blanks = text.len() - text.trim_start().len();
                if blanks < text.len() {
                    self.at = At::Json(JsonEnd::default());
                    return Progress::Read(blanks);
                }
                wait(is_last)
            }
            At::Json(end) => match end.read(text, is_last) {
                Found::Nothing => Progress::Broken,
                Found::More(0) => wait(is_last),
                Found::More(read) => {
                    json.push_str(&text[..read]);
                    Progress::Read(read)
                }
                Found::End(read) => {
                    json.push_str(&text[..read]);
                    self.at = At::AfterJson;
                    Progress::Read(read)
                }
            },
            At::AfterJson => {
                let rest = text.trim_start();
                if rest.starts_with(wire.close) {
                    self.at = At::Between;
                    return Progress::Read(text.len() - rest.len() + wire.close.len());
                }
                if wire.close.starts_with(rest) { wait(is_last) } else { Progress::Broken }
            }
        }
    }

    fn between(&mut self, text: &str, is_last: bool, wire: Wire, json: &mut String) -> Progress {
        let rest = text.trim_start();
        if rest.starts_with(wire.open) {
            self.at = At::Name;
            json.push_str(if self.count == 0 { "{" } else { ", " });
            self.count += 1;
            return Progress::Read(text.len() - rest.len() + wire.open.len());
        }
        if wire.open.starts_with(rest) && !is_last {
            return Progress::Wait;
        }
        json.push_str(if self.count == 0 { "{}" } else { "}" });
        Progress::Over
    }

    fn name(
        &mut self,
        text: &str,
        is_last: bool,
        wire: Wire,
        list: &[Parameter],
        json: &mut String,
    ) -> Progress {
        // What stands behind the name says where it ends, and for some styles what the value is.
        let mut found: Option<(usize, usize, bool)> = None;
        for (behind, is_text) in [(wire.text, true), (wire.json, false)] {
            let (head, tail) = behind.split_at(wire.gap.unwrap_or(behind.len()));
            if let Some(at) = text.find(head) {
                let after = &text[at + head.len()..];
                let gap = if tail.is_empty() { 0 } else { after.len() - after.trim_start().len() };
                if after[gap..].starts_with(tail) {
                    let end = at + head.len() + gap + tail.len();
                    if found.is_none_or(|(known, ..)| at < known) {
                        found = Some((at, end, is_text));
                    }
                } else if !tail.starts_with(&after[gap..]) {
                    return Progress::Broken;
                }
            }
        }
        let Some((at, end, says_text)) = found else {
            return if text.len() > NAME { Progress::Broken } else { wait(is_last) };
        };
        let name = &text[..at];
        let known = list.iter().find(|parameter| parameter.name == name);
        let is_text = match known.map(|parameter| parameter.written) {
            _ if wire.says => says_text,
            Some(Written::Json | Written::Either) => false,
            Some(Written::Text) | None => true,
        };
        json.push('"');
        escape(name, json);
        json.push_str("\": ");
        if is_text {
            json.push('"');
        }
        self.at = if is_text { At::Text { begun: false } } else { At::BeforeJson };
        Progress::Read(end)
    }

    fn text(&mut self, text: &str, wire: Wire, json: &mut String) -> Progress {
        let At::Text { begun } = &mut self.at else { return Progress::Broken };
        if !*begun {
            // A line break behind the opening tag belongs to it.
            if text.is_empty() {
                return Progress::Wait;
            }
            *begun = true;
            if text.starts_with('\n') {
                return Progress::Read(1);
            }
        }
        if let Some(at) = text.find(wire.close) {
            let value = &text[..at];
            escape(value.strip_suffix('\n').unwrap_or(value), json);
            json.push('"');
            self.at = At::Between;
            return Progress::Read(at + wire.close.len());
        }
        let held = held_back(text, core::iter::once(wire.close));
        let mut sure = text.len() - held;
        // So does a line break in front of the closing tag.
        if text[..sure].ends_with('\n') {
            sure -= 1;
        }
        if sure == 0 {
            return Progress::Wait;
        }
        escape(&text[..sure], json);
        Progress::Read(sure)
    }
}

fn wait(is_last: bool) -> Progress {
    if is_last { Progress::Broken } else { Progress::Wait }
}

/// How many bytes at the end of a text may be the beginning of one of these markers.
pub(super) fn held_back<'m>(text: &str, markers: impl Iterator<Item = &'m str>) -> usize {
    let mut held = 0;
    for marker in markers {
        let most = marker.len().saturating_sub(1).min(text.len());
        for length in (held + 1..=most).rev() {
            if marker.is_char_boundary(length) && text.ends_with(&marker[..length]) {
                held = length;
                break;
            }
        }
    }
    held
}

/// Appends a text as the inside of a JSON string.
fn escape(text: &str, json: &mut String) {
    for c in text.chars() {
        match c {
            '"' => json.push_str("\\\""),
            '\\' => json.push_str("\\\\"),
            '\n' => json.push_str("\\n"),
            '\r' => json.push_str("\\r"),
            '\t' => json.push_str("\\t"),
            c if c < ' ' => {
                json.push_str("\\u00");
                json.push(if c as u32 >= 0x10 { '1' } else { '0' });
                json.push(char::from_digit(c as u32 & 0xF, 16).unwrap_or('0'));
            }
            c => json.push(c),
        }
    }
}
