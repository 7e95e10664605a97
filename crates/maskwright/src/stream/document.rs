//! Documents inside a text: finds where a JSON value ends, and converts lists of parameters to JSON.

use maskwright_frontend::tag::{self, Inside as Content, Json, Others, Parameter, Types, Wire};

/// Follows a JSON value to its end. It checks no more than it needs for that.
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
    Number,
    /// `true`, `false` or `null`, and the number of missing letters.
    Word(u8),
    Over,
}

/// The result of reading a piece of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// This many bytes belong to the value, which continues.
    More(usize),
    /// This many bytes belong to the value, which is complete.
    End(usize),
    /// No value begins here.
    Nothing,
}

impl JsonEnd {
    /// Reads a piece of text. A number ends at the next other character or at the end of the text; it contains none of
    /// the `ends`.
    pub(super) fn read(&mut self, text: &str, ends: &[String], is_last: bool) -> Found {
        for (at, byte) in text.bytes().enumerate() {
            match self.inside {
                Inside::Start => match byte {
                    b'{' | b'[' => (self.inside, self.depth) = (Inside::Brackets, 1),
                    b'"' => self.inside = Inside::String,
                    b'-' | b'0'..=b'9' => self.inside = Inside::Number,
                    b't' | b'n' => self.inside = Inside::Word(3),
                    b'f' => self.inside = Inside::Word(4),
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
                Inside::Number => {
                    let rest = &text.as_bytes()[at..];
                    if ends.iter().any(|end| rest.starts_with(end.as_bytes())) {
                        self.inside = Inside::Over;
                        return Found::End(at);
                    }
                    if !is_last && ends.iter().any(|end| end.as_bytes().starts_with(rest)) {
                        return Found::More(at);
                    }
                    if !matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E') {
                        self.inside = Inside::Over;
                        return Found::End(at);
                    }
                }
                Inside::Word(missing) => {
                    self.inside = if missing > 1 { Inside::Word(missing - 1) } else { Inside::Over };
                    match (byte.is_ascii_alphabetic(), self.inside) {
                        (true, Inside::Over) => return Found::End(at + 1),
                        (true, _) => {}
                        (false, _) => {
                            self.inside = Inside::Over;
                            return Found::End(at);
                        }
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
            Inside::Number if is_last => Found::End(text.len()),
            Inside::Start if is_last => Found::Nothing,
            _ => Found::More(text.len()),
        }
    }
}

/// Reads a document that is written value by value, and writes it as JSON.
#[derive(Clone, Debug)]
pub(super) struct Parameters {
    at: At,
    /// The open objects and lists; the first is the document.
    open: Vec<Container>,
    /// The marker that ends the current value.
    close: String,
}

/// An object or a list.
#[derive(Clone, Debug)]
struct Container {
    is_list: bool,
    /// The number of values that have begun in it.
    count: usize,
    /// The marker that ends it.
    close: String,
    /// The content that the schema describes, for values whose tags do not give their type. `None` for the document.
    content: Option<Content>,
}

#[derive(Clone, Debug, Default)]
enum At {
    /// Before a value, or before the end.
    #[default]
    Between,
    Name,
    /// In a value that is written verbatim, and whether some of it was read.
    Text {
        begun: bool,
    },
    /// In a value that is either a verbatim string or JSON.
    Mixed(Types),
    /// Before a value that may be written as nested values.
    Nested(Box<Parameter>),
    /// Before a value that is JSON.
    BeforeJson,
    Json(JsonEnd),
    /// After a value that is JSON.
    AfterJson,
}

/// How the parameters are written, and what is known about them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Named<'p> {
    pub(super) wire: Wire,
    pub(super) list: &'p [Parameter],
    pub(super) others: &'p Others,
    pub(super) json: &'p Json,
}

/// The result of one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// This many bytes were read; there may be more to do.
    Read(usize),
    /// More text is needed.
    Wait,
    /// The parameters are complete.
    Over,
    /// The text is not a list of parameters.
    Broken,
}

/// The maximum length of a name in bytes.
const MAX_NAME_BYTES: usize = 4_096;

impl Default for Parameters {
    fn default() -> Self {
        let document = Container { is_list: false, count: 0, close: String::new(), content: None };
        Self { at: At::Between, open: vec![document], close: String::new() }
    }
}

impl Parameters {
    /// Takes one step, and appends to the JSON.
    pub(super) fn step(
        &mut self,
        text: &str,
        is_last: bool,
        named: Named<'_>,
        json: &mut String,
    ) -> Progress {
        let wire = named.wire;
        match &mut self.at {
            At::Between => self.between(text, is_last, wire, json),
            At::Name => self.name(text, is_last, named, json),
            At::Text { .. } => self.text(text, wire, json),
            At::Mixed(types) => {
                let types = *types;
                self.mixed(text, is_last, types, wire, json)
            }
            At::Nested(_) => self.nested(text, is_last, named, json),
            At::BeforeJson => {
                let blanks = text.len() - text.trim_start().len();
                if blanks < text.len() {
                    self.at = At::Json(JsonEnd::default());
                    return Progress::Read(blanks);
                }
                wait(is_last)
            }
            At::Json(end) => match end.read(text, &[], is_last) {
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
                let close = &*self.close;
                if rest.starts_with(close) {
                    self.at = At::Between;
                    return Progress::Read(text.len() - rest.len() + close.len());
                }
                if close.starts_with(rest) { wait(is_last) } else { Progress::Broken }
            }
        }
    }

    fn between(&mut self, text: &str, is_last: bool, wire: Wire, json: &mut String) -> Progress {
        let rest = text.trim_start();
        let blanks = text.len() - rest.len();
        let is_inside = self.open.len() > 1;
        let Some(container) = self.open.last_mut() else { return Progress::Broken };
        let open = wire.item.filter(|_| container.is_list).unwrap_or(wire.open);
        let close = &*container.close;
        // A closing tag that contains a name may have the same beginning as an opening tag.
        let is_closing =
            wire.closes_by_name && rest.strip_prefix(open).is_some_and(|rest| rest.starts_with('/'));
        if wire.closes_by_name && rest == open && !is_last {
            return Progress::Wait;
        }
        if rest.starts_with(open) && !is_closing {
            let begin = if is_inside { "" } else { "{" };
            json.push_str(if container.count == 0 { begin } else { ", " });
            container.count += 1;
            self.at = At::Name;
            return Progress::Read(blanks + open.len());
        }
        if is_inside && rest.starts_with(close) {
            let read = blanks + close.len();
            json.push(if container.is_list { ']' } else { '}' });
            self.open.pop();
            return Progress::Read(read);
        }
        if (open.starts_with(rest) || is_inside && close.starts_with(rest)) && !is_last {
            return Progress::Wait;
        }
        if is_inside {
            return Progress::Broken;
        }
        if blanks > 0 && wire.item.is_some() {
            // If tags may be indented, the white space after the last one is part of the document.
            return Progress::Read(blanks);
        }
        json.push_str(if container.count == 0 { "{}" } else { "}" });
        Progress::Over
    }

    /// Reads the name of a value and the text after it, which determines the value's type. Items of lists have no name.
    fn name(&mut self, text: &str, is_last: bool, named: Named<'_>, json: &mut String) -> Progress {
        let Named { wire, list, others, json: whole } = named;
        let is_item = wire.item.is_some() && self.open.last().is_some_and(|container| container.is_list);
        let mut found: Option<(usize, usize, Types)> = None;
        let mut is_open = false;
        for &(types, after_name) in wire.behind {
            let after_name = if is_item { after_name.trim_start_matches('"') } else { after_name };
            let (head, tail) = after_name.split_at(wire.gap.unwrap_or(after_name.len()));
            let at = if is_item { text.starts_with(head).then_some(0) } else { text.find(head) };
            is_open |= !is_item || head.starts_with(text);
            let Some(at) = at else { continue };
            let after = &text[at + head.len()..];
            let gap = if tail.is_empty() { 0 } else { after.len() - after.trim_start().len() };
            if after[gap..].starts_with(tail) {
                let end = at + head.len() + gap + tail.len();
                if found.is_none_or(|(known, ..)| at < known) {
                    found = Some((at, end, types));
                }
            } else if !tail.starts_with(&after[gap..]) {
                return Progress::Broken;
            }
        }
        let Some((at, end, said)) = found else {
            return if text.len() > MAX_NAME_BYTES || !is_open { Progress::Broken } else { wait(is_last) };
        };
        let name = wire.unescape(&text[..at]);
        if !is_item {
            json.push('"');
            escape(&name, json);
            json.push_str("\": ");
        }
        self.close = format!("{}{}", wire.close, wire.tail((!is_item).then_some(&*wire.escape(&name))));
        // If the style does not give the type, the schema does; an unknown value is a string.
        let container = self.open.last().and_then(|container| container.content.as_ref());
        let described = match container {
            None => list.iter().find(|parameter| parameter.name == name),
            Some(Content::Object(members)) => members.iter().find(|parameter| parameter.name == name),
            Some(Content::List { item, .. }) => Some(&**item),
        };
        let known = described.map(|parameter| parameter.types);
        let known = known.or_else(|| others.types(&name).filter(|_| container.is_none()));
        let types = if said == Types::ALL { known.unwrap_or(Types::TEXT) } else { said };
        let has_content = |parameter: &&Parameter| {
            [Types::OBJECT, Types::ARRAY].into_iter().any(|which| content(parameter, which, whole).is_some())
        };
        let nested = described.filter(|_| wire.item.is_some() && said == Types::ALL).filter(has_content);
        self.at = if let Some(parameter) = nested {
            At::Nested(Box::new(parameter.clone()))
        } else {
            self.scalar(types, said, wire, json)
        };
        Progress::Read(end)
    }

    /// Chooses how to read a value with known types.
    fn scalar(&mut self, types: Types, said: Types, wire: Wire, json: &mut String) -> At {
        if types == Types::TEXT {
            json.push('"');
            At::Text { begun: false }
        } else if said == Types::ALL && !types.and(Types::TEXT).is_empty() {
            At::Mixed(types)
        } else if wire.item.is_some()
            && wire.says_types()
            && (types == Types::OBJECT || types == Types::ARRAY)
        {
            self.begin(types == Types::ARRAY, None, json);
            At::Between
        } else {
            At::BeforeJson
        }
    }

    /// Begins an object or a list.
    fn begin(&mut self, is_list: bool, content: Option<Content>, json: &mut String) {
        json.push(if is_list { '[' } else { '{' });
        self.open.push(Container { is_list, count: 0, close: self.close.clone(), content });
    }

    /// Decides from the next tag whether a value of unknown type contains nested values.
    fn nested(&mut self, text: &str, is_last: bool, named: Named<'_>, json: &mut String) -> Progress {
        let At::Nested(parameter) = &self.at else { return Progress::Broken };
        let (wire, types) = (named.wire, parameter.types);
        let rest = text.trim_start();
        let blanks = text.len() - rest.len();
        let close = &*self.close;
        let is_short = |marker: &str| rest.len() < marker.len() && marker.starts_with(rest);
        let item = format!("{}>", wire.item.unwrap_or(wire.open));
        if !is_last && (is_short(close) || is_short(&item) || rest == wire.open || is_short(wire.open)) {
            return Progress::Wait;
        }
        let list = content(parameter, Types::ARRAY, named.json);
        let object = content(parameter, Types::OBJECT, named.json);
        let is_closed = rest.starts_with(close);
        let is_text = !types.and(Types::TEXT).is_empty();
        let has_values = rest.starts_with(wire.open) && !rest[wire.open.len()..].starts_with('/');
        let is_list = list.is_some() && (rest.starts_with(&item) || object.is_none());
        if has_values || is_closed && !is_text {
            self.begin(is_list, if is_list { list } else { object }, json);
            self.at = At::Between;
            return Progress::Read(blanks);
        }
        let types = parameter.types;
        self.at = self.scalar(types, Types::ALL, wire, json);
        Progress::Read(0)
    }

    /// Decides how to read a value with several types: if it begins like JSON of one of the types, or is a word or
    /// number of one of them, it is JSON; otherwise it is a string.
    fn mixed(&mut self, text: &str, is_last: bool, types: Types, wire: Wire, json: &mut String) -> Progress {
        let rest = text.trim_start_matches([' ', '\t', '\n', '\r']);
        let begins = match rest.bytes().next() {
            None => return wait(is_last),
            Some(b'"') => Types::TEXT,
            Some(b'{') => Types::OBJECT,
            Some(b'[') => Types::ARRAY,
            Some(_) => Types::NONE,
        };
        if !types.and(begins).is_empty() {
            self.at = At::Json(JsonEnd::default());
            return Progress::Read(text.len() - rest.len());
        }
        let Some(at) = text.find(&*self.close) else { return wait(is_last) };
        let mut value = &text[..at];
        if wire.trims {
            value = value.strip_prefix('\n').unwrap_or(value);
            value = value.strip_suffix('\n').unwrap_or(value);
        }
        let word = value.trim_matches([' ', '\t', '\n', '\r']);
        let read = match serde_json::from_str(word) {
            Ok(serde_json::Value::Null) => Types::NULL,
            Ok(serde_json::Value::Bool(_)) => Types::BOOLEAN,
            Ok(serde_json::Value::Number(_)) => Types::NUMBER,
            _ => Types::NONE,
        };
        if types.and(read).is_empty() {
            json.push('"');
            escape(value, json);
            json.push('"');
        } else {
            json.push_str(word);
        }
        self.at = At::Between;
        Progress::Read(at + self.close.len())
    }

    fn text(&mut self, text: &str, wire: Wire, json: &mut String) -> Progress {
        let At::Text { begun } = &mut self.at else { return Progress::Broken };
        if !*begun && wire.trims {
            // A line break after the opening tag belongs to the tag.
            if text.is_empty() {
                return Progress::Wait;
            }
            *begun = true;
            if text.starts_with('\n') {
                return Progress::Read(1);
            }
        }
        if let Some(at) = text.find(&*self.close) {
            let value = &text[..at];
            let trimmed = if wire.trims { value.strip_suffix('\n') } else { None };
            escape(trimmed.unwrap_or(value), json);
            json.push('"');
            self.at = At::Between;
            return Progress::Read(at + self.close.len());
        }
        let held = held_back(text, core::iter::once(&*self.close));
        let mut sure = text.len() - held;
        // A line break before the closing tag belongs to that tag, too.
        if wire.trims && text[..sure].ends_with('\n') {
            sure -= 1;
        }
        if sure == 0 {
            return Progress::Wait;
        }
        escape(&text[..sure], json);
        Progress::Read(sure)
    }
}

/// Returns the content of values of one type, if they are written as nested values.
fn content(parameter: &Parameter, which: Types, json: &Json) -> Option<Content> {
    if parameter.types.and(which).is_empty() { None } else { tag::inside(parameter, which, json) }
}

fn wait(is_last: bool) -> Progress {
    if is_last { Progress::Broken } else { Progress::Wait }
}

/// Returns the number of bytes at the end of a text that may be the beginning of one of these markers.
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

/// Appends a text as the content of a JSON string.
pub(super) fn escape(text: &str, json: &mut String) {
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
