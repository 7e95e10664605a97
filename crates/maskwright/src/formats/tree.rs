//! Builds the structural tag for a format and a request.

use maskwright_frontend::{
    json_schema::Strictness,
    tag::{AnyText, Arm, Dispatch, Format, Json, Kind, Marker, Role, Separated, Style, Tag, Then},
};
use serde_json::Value;

use super::{
    Blocks, Choice, Form, FormatError, Input, Message, Messages, ModelFormat, Reasoning, Request, Section,
    Thinking, Tool,
};

/// Builds the tree of everything that a model may write.
pub(super) fn tree(model: &ModelFormat, request: &Request) -> Result<Format, FormatError> {
    let tools = chosen(request)?;
    for tool in &tools {
        check_name(&tool.name)?;
    }
    let has_id_first = |form: &&Form| form.begin.contains("{id}");
    let mut calls = Vec::new();
    for tool in &tools {
        let forms = model.calls.forms.iter().filter(|form| !has_id_first(form));
        calls.extend(forms.map(|form| call(tool, form, request)));
    }
    if !tools.is_empty() {
        let forms = model.calls.forms.iter().filter(has_id_first);
        calls.extend(forms.map(|form| call_after_id(&tools, form, request)));
    }
    let wanted = Wanted {
        must_call: matches!(request.choice, Choice::Required | Choice::Named(_) | Choice::AllowedRequired(_)),
        one_call: request.one_call || matches!(request.choice, Choice::Named(_)),
        request,
    };
    if wanted.must_call && calls.is_empty() {
        let message = "a call is required, but there is no tool; give one, or let the model choose".into();
        return Err(FormatError::Tool { name: String::new(), message });
    }
    Ok(match (&model.messages, &model.blocks) {
        (Some(messages), _) => in_messages(model, messages, calls, &wanted),
        (None, Some(blocks)) => in_blocks(model, blocks, calls, &wanted),
        (None, None) => in_text(model, calls, &wanted),
    })
}

/// The requirements of a request, after the tools were selected.
struct Wanted<'r> {
    must_call: bool,
    one_call: bool,
    request: &'r Request,
}

/// Selects the tools that may be called.
fn chosen(request: &Request) -> Result<Vec<&Tool>, FormatError> {
    let find = |name: &String| {
        let tool = request.tools.iter().find(|tool| tool.name == *name);
        let message = "it is asked for, but not among the tools";
        tool.ok_or_else(|| FormatError::Tool { name: name.clone(), message: message.into() })
    };
    for (i, tool) in request.tools.iter().enumerate() {
        if request.tools[..i].iter().any(|other| other.name == tool.name) {
            let message = "there are two tools of this name".into();
            return Err(FormatError::Tool { name: tool.name.clone(), message });
        }
    }
    match &request.choice {
        Choice::None => Ok(Vec::new()),
        Choice::Auto | Choice::Required => Ok(request.tools.iter().collect()),
        Choice::Named(name) => Ok(vec![find(name)?]),
        Choice::Allowed(names) | Choice::AllowedRequired(names) => {
            let mut tools = names.iter().map(find).collect::<Result<Vec<_>, _>>()?;
            let mut seen = std::collections::HashSet::new();
            tools.retain(|tool| seen.insert(&tool.name));
            Ok(tools)
        }
    }
}

/// Checks a tool name. Names are written between markers and inside JSON, where some characters have another meaning.
fn check_name(name: &str) -> Result<(), FormatError> {
    let is_plain = |c: char| !c.is_control() && !c.is_whitespace() && !"\"\\<>{}[]|".contains(c);
    if name.is_empty() || !name.chars().all(is_plain) {
        let message =
            "a name is made of letters, digits and signs such as `_`, `-` and `.`; rename the tool".into();
        return Err(FormatError::Tool { name: name.into(), message });
    }
    Ok(())
}

/// Builds one tag for all tools, for forms in which the call's id precedes the tool name.
fn call_after_id(tools: &[&Tool], form: &Form, request: &Request) -> Tag {
    let at = "/calls/forms/id";
    let (head, rest) = form.begin.split_once("{id}").unwrap_or_default();
    let (middle, _) = rest.split_once("{name}").unwrap_or_default();
    let pattern = form.id.as_ref().map(|id| id.pattern.clone()).unwrap_or_default();
    let id = Tag {
        at: at.into(),
        begin: Marker::Text(String::new()),
        content: Box::new(Format::new(at, Kind::Regex(pattern))),
        end: vec![Marker::Text(middle.into())],
        role: Role::CallId,
    };
    let rest = Form { begin: rest[middle.len()..].into(), id: None, ..form.clone() };
    let calls = tools.iter().map(|tool| call(tool, &rest, request));
    let calls = calls.map(|tag| Format::new(tag.at.clone(), Kind::Tag(tag))).collect();
    let parts = vec![Format::new(at, Kind::Tag(id)), Format::new("/tools", Kind::Or(calls))];
    Tag {
        at: at.into(),
        begin: Marker::Text(head.into()),
        content: Box::new(Format::new(at, Kind::Sequence(parts))),
        end: vec![Marker::Text(String::new())],
        role: Role::Section,
    }
}

fn call(tool: &Tool, form: &Form, request: &Request) -> Tag {
    let at = format!("/tools/{}", tool.name);
    let style = form.arguments.as_deref().and_then(Style::of_name).unwrap_or_default();
    let json = |schema: &Value, objects: Option<Strictness>| {
        Kind::Json(Json {
            at: format!("{at}/parameters"),
            schema: schema.clone(),
            style,
            any_order: request.any_order,
            max_whitespace: None,
            excludes: Vec::new(),
            objects,
        })
    };
    let input = match &tool.input {
        Input::Schema(schema) => json(schema, None),
        Input::SchemaWith(schema, objects) => json(schema, Some(*objects)),
        Input::Regex(pattern) => Kind::Regex(pattern.clone()),
        Input::Grammar(syntax, source) => Kind::Grammar(*syntax, source.clone()),
        Input::Text => Kind::AnyText(AnyText::default()),
    };
    let input = Format::new(at.clone(), input);
    let content = match &form.id {
        None => input,
        Some(id) => {
            let pattern = Format::new(at.clone(), Kind::Regex(id.pattern.clone()));
            let end = Format::new(at.clone(), Kind::Const(id.end.clone()));
            Format::new(at.clone(), Kind::Sequence(vec![pattern, end, input]))
        }
    };
    let begin = Marker::Text(form.begin.replace("{name}", &tool.name));
    let role = Role::Call(tool.name.clone());
    Tag { at, begin, content: Box::new(content), end: markers(form.end.list()), role }
}

fn markers(texts: &[String]) -> Vec<Marker> {
    texts.iter().cloned().map(Marker::Text).collect()
}

/// Builds free text with calls in it.
fn in_text(model: &ModelFormat, calls: Vec<Tag>, wanted: &Wanted<'_>) -> Format {
    let mut parts = Vec::new();
    if let Some(reasoning) = &model.reasoning {
        parts.extend(thinking(reasoning, wanted.request.thinking));
    }
    let mut excludes = model.text.excludes.clone();
    if let Some(reasoning) = &model.reasoning {
        excludes.push(reasoning.begin.clone());
        excludes.extend(reasoning.end.list().iter().cloned());
    }
    parts.push(answer(model, calls, excludes, wanted));
    one_or_sequence(parts)
}

/// Builds the part that follows the reasoning.
fn answer(model: &ModelFormat, calls: Vec<Tag>, mut excludes: Vec<String>, wanted: &Wanted<'_>) -> Format {
    let at = "/answer";
    if calls.is_empty() {
        if let Some(answer) = &wanted.request.answer {
            return answer.clone();
        }
        // Without tools, the text must not look like a call.
        if !model.calls.has_trigger_for_each() {
            excludes.push(model.calls.trigger.clone());
        }
        return Format::new(at, Kind::AnyText(AnyText { excludes, ..AnyText::default() }));
    }
    let sections = match &model.calls.section {
        Some(section) if model.calls.has_trigger_for_each() => {
            sections_by_first(model, section, &calls, wanted)
        }
        Some(section) => vec![section_tag(model, section, calls.clone(), wanted)],
        None => Vec::new(),
    };
    let must_call = || match &model.calls.section {
        Some(section) => {
            let mut parts = silent(&section.before);
            let tags = sections.iter().map(|tag| Format::new(at, Kind::Tag(tag.clone()))).collect();
            parts.push(one_of(at, tags));
            one_or_sequence(parts)
        }
        None => calls_only(model, &calls, wanted.one_call),
    };
    if wanted.must_call {
        return must_call();
    }
    if let Some(answer) = &wanted.request.answer {
        return Format::new(at, Kind::Or(vec![must_call(), answer.clone()]));
    }
    let tags = if model.calls.section.is_some() { sections } else { calls };
    dispatch(model, tags, &excludes, wanted.one_call)
}

/// Builds calls without any text before, between or after them. Two calls may be separated by a line break.
fn calls_only(model: &ModelFormat, calls: &[Tag], only_one: bool) -> Format {
    let at = "/calls";
    let tags = calls.iter().map(|tag| Format::new(tag.at.clone(), Kind::Tag(tag.clone()))).collect();
    let one = Format::new(at, Kind::Or(tags));
    if only_one {
        return one;
    }
    let mut next = match &*model.calls.separator {
        "" => {
            let content = Box::new(one_or_sequence(silent("\n")));
            vec![Format::new(at, Kind::Repeat { content, min: 0, max: Some(1) })]
        }
        separator => silent(separator),
    };
    next.push(one.clone());
    let content = Box::new(one_or_sequence(next));
    let more = Format::new(at, Kind::Repeat { content, min: 0, max: None });
    Format::new(at, Kind::Sequence(vec![one, more]))
}

/// Builds the wrapper with all calls.
fn section_tag(model: &ModelFormat, section: &Section, calls: Vec<Tag>, wanted: &Wanted<'_>) -> Tag {
    let list = Kind::Separated(Separated {
        tags: calls,
        last: Vec::new(),
        separator: model.calls.separator.clone(),
        at_least_one: true,
        stop_after_first: wanted.one_call,
    });
    Tag {
        at: "/calls/section".into(),
        begin: Marker::Text(section.begin.clone()),
        content: Box::new(Format::new("/calls", list)),
        end: vec![Marker::Text(section.end.clone())],
        role: Role::Section,
    }
}

/// Builds wrappers that begin with the first call: one tag for each tool that may be called first.
///
/// ```text
///   [weather(city="Oslo"), add(numbers=[1])]
///   └begin ─┘└ a call ──┘                 └end
/// ```
fn sections_by_first(model: &ModelFormat, section: &Section, calls: &[Tag], wanted: &Wanted<'_>) -> Vec<Tag> {
    let all: Vec<Format> =
        calls.iter().map(|tag| Format::new(tag.at.clone(), Kind::Tag(tag.clone()))).collect();
    let more = || {
        let mut next = silent(&model.calls.separator);
        next.push(one_of("/calls", all.clone()));
        let content = Box::new(one_or_sequence(next));
        Format::new("/calls", Kind::Repeat { content, min: 0, max: None })
    };
    let begun = calls.iter().map(|call| {
        let begin = match &call.begin {
            Marker::Text(text) => format!("{}{text}", section.begin),
            Marker::Token(_) => section.begin.clone(),
        };
        let first = Tag { begin: Marker::Text(String::new()), ..call.clone() };
        let mut parts = vec![Format::new(call.at.clone(), Kind::Tag(first))];
        if !wanted.one_call {
            parts.push(more());
        }
        Tag {
            at: "/calls/section".into(),
            begin: Marker::Text(begin),
            content: Box::new(one_or_sequence(parts)),
            end: vec![Marker::Text(section.end.clone())],
            role: Role::Section,
        }
    });
    begun.collect()
}

fn one_of(at: &str, mut parts: Vec<Format>) -> Format {
    if parts.len() == 1 { parts.swap_remove(0) } else { Format::new(at, Kind::Or(parts)) }
}

fn dispatch(model: &ModelFormat, tags: Vec<Tag>, excludes: &[String], only_one: bool) -> Format {
    let at = "/calls/trigger";
    let arm = |trigger: Marker, tags: Vec<Tag>| Arm { at: at.into(), trigger, then: Then::Tags(tags) };
    let arms = if model.calls.has_trigger_for_each() {
        tags.into_iter().map(|tag| arm(tag.begin.clone(), vec![tag])).collect()
    } else {
        vec![arm(Marker::Text(model.calls.trigger.clone()), tags)]
    };
    let dispatch = Dispatch {
        arms,
        excludes: markers(excludes),
        at_least_one: false,
        stop_after_first: only_one,
        by_token: false,
    };
    Format::new("/answer", Kind::Dispatch(dispatch))
}

/// Builds the reasoning before an answer, if the request allows it.
fn thinking(reasoning: &Reasoning, thinking: Thinking) -> Option<Format> {
    let begin = match thinking {
        Thinking::Off => return None,
        Thinking::Begun => "",
        Thinking::Optional | Thinking::Required => &reasoning.begin,
    };
    let tag = reasoning_tag(reasoning, begin);
    let mut parts = vec![Format::new("/reasoning", Kind::Tag(tag))];
    parts.extend(silent(&reasoning.after));
    let all = one_or_sequence(parts);
    if thinking != Thinking::Optional {
        return Some(all);
    }
    Some(Format::new("/reasoning", Kind::Repeat { content: Box::new(all), min: 0, max: Some(1) }))
}

fn reasoning_tag(reasoning: &Reasoning, begin: &str) -> Tag {
    Tag {
        at: "/reasoning".into(),
        begin: Marker::Text(begin.into()),
        content: Box::new(Format::new("/reasoning", Kind::AnyText(AnyText::default()))),
        end: markers(reasoning.end.list()),
        role: Role::Reasoning,
    }
}

/// Returns a part for text that must be written but is not reported.
fn silent(text: &str) -> Vec<Format> {
    if text.is_empty() {
        return Vec::new();
    }
    let tag = Tag {
        at: "/layout".into(),
        begin: Marker::Text(text.into()),
        content: Box::new(Format::new("/layout", Kind::Const(String::new()))),
        end: vec![Marker::Text(String::new())],
        role: Role::Section,
    };
    vec![Format::new("/layout", Kind::Tag(tag))]
}

fn one_or_sequence(mut parts: Vec<Format>) -> Format {
    match (parts.len(), parts.pop()) {
        (1, Some(only)) => only,
        (_, last) => {
            parts.extend(last);
            Format::new("", Kind::Sequence(parts))
        }
    }
}

fn text_tag(message: &Message, at: &str, content: Format) -> Tag {
    Tag {
        at: at.into(),
        begin: Marker::Text(message.begin.clone()),
        content: Box::new(content),
        end: markers(message.end.list()),
        role: Role::Text,
    }
}

/// Builds reasoning, a block of text, and the calls. The text may be missing if there are calls.
fn in_blocks(model: &ModelFormat, blocks: &Blocks, calls: Vec<Tag>, wanted: &Wanted<'_>) -> Format {
    let mut parts = Vec::new();
    if let Some(reasoning) = &model.reasoning {
        parts.extend(thinking(reasoning, wanted.request.thinking));
    }
    let excludes = model.text.excludes.clone();
    let any = || Format::new("/answer", Kind::AnyText(AnyText { excludes, ..AnyText::default() }));
    let answer = wanted.request.answer.clone().unwrap_or_else(any);
    let mut text = text_tag(&blocks.text, "/blocks/text", answer);
    let is_begun = blocks.begun && wanted.request.thinking == Thinking::Off;
    if is_begun {
        text.begin = Marker::Text(String::new());
    }
    let text = Format::new("/blocks/text", Kind::Tag(text));
    let optional = |part: Format| {
        Format::new(part.at.clone(), Kind::Repeat { content: Box::new(part), min: 0, max: Some(1) })
    };
    let section = model.calls.section.as_ref().filter(|_| !calls.is_empty());
    let section = section.map(|section| section_tag(model, section, calls, wanted));
    let section = section.map(|tag| Format::new("/calls", Kind::Tag(tag)));
    match section {
        None => parts.push(text),
        Some(section) if wanted.must_call => {
            parts.extend([if is_begun { text } else { optional(text) }, section]);
        }
        Some(section) if is_begun => parts.extend([text, optional(section)]),
        Some(section) => {
            let both = Format::new("/answer", Kind::Sequence(vec![text, optional(section.clone())]));
            parts.push(Format::new("/answer", Kind::Or(vec![both, section])));
        }
    }
    parts.extend(silent(&blocks.end));
    one_or_sequence(parts)
}

/// Builds a list of messages: calls, texts and reasoning.
fn in_messages(model: &ModelFormat, messages: &Messages, calls: Vec<Tag>, wanted: &Wanted<'_>) -> Format {
    let any = || Format::new("/answer", Kind::AnyText(AnyText::default()));
    let answer = wanted.request.answer.clone().unwrap_or_else(any);
    let text = text_tag(&messages.text, "/messages/text", answer);
    // A request for an answer in a given format allows no other text around it.
    let preamble = messages.preamble.as_ref().filter(|_| wanted.request.answer.is_none());
    let preamble = preamble.map(|message| text_tag(message, "/messages/preamble", any()));
    let reasoning = match (&model.reasoning, wanted.request.thinking) {
        (None, _) | (_, Thinking::Off) => None,
        (Some(reasoning), _) => Some(reasoning_tag(reasoning, &reasoning.begin)),
    };
    let list = |tags: Vec<Tag>, last: Vec<Tag>, stop_after_first: bool| {
        let separator = messages.separator.clone();
        Kind::Separated(Separated { tags, last, separator, at_least_one: true, stop_after_first })
    };
    let mut parts = Vec::new();
    if wanted.request.thinking == Thinking::Begun
        && let Some(reasoning) = &model.reasoning
    {
        parts.push(Format::new("/reasoning", Kind::Tag(reasoning_tag(reasoning, ""))));
        parts.extend(silent(&messages.separator));
    }
    if wanted.must_call {
        // All reasoning and preambles come before the calls.
        let message = |tag: &Tag| {
            let mut message = vec![Format::new(tag.at.clone(), Kind::Tag(tag.clone()))];
            message.extend(silent(&messages.separator));
            one_or_sequence(message)
        };
        if wanted.request.thinking == Thinking::Required {
            parts.extend(reasoning.iter().map(message));
        }
        let before: Vec<Format> = reasoning.iter().chain(&preamble).map(message).collect();
        if !before.is_empty() {
            let content = Box::new(Format::new("/messages", Kind::Or(before)));
            parts.push(Format::new("/messages", Kind::Repeat { content, min: 0, max: None }));
        }
        parts.push(Format::new("/calls", list(calls, Vec::new(), wanted.one_call)));
        return one_or_sequence(parts);
    }
    // The final answer ends the list; reasoning does not.
    let mut last = vec![text];
    let mut tags: Vec<Tag> = reasoning.into_iter().chain(preamble).collect();
    if wanted.one_call {
        last.extend(calls);
    } else {
        tags.extend(calls);
    }
    parts.push(Format::new("/messages", list(tags, last, false)));
    one_or_sequence(parts)
}
