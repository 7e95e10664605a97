//! The reader: a plan, the current step, and the text that was not processed yet.

use core::mem;
use std::sync::Arc;

use maskwright_frontend::tag::{Format, Role};
use maskwright_vocab::{TokenId, Vocabulary};

use super::document::{Found, JsonEnd, Named, Parameters, Progress, held_back};
use super::literal::Literal;
use super::plan::{DONE, LOST, Plan, PlanError, Step, StepId, Way, What};
use crate::stop::unfinished;

/// Something that a reader has recognized.
///
/// ```
/// use maskwright::stream::Event;
///
/// /// What a chat shows of an answer.
/// fn shown(events: &[Event]) -> String {
///     events.iter().filter_map(|event| if let Event::Text(text) = event { Some(text.as_str()) } else { None }).collect()
/// }
/// assert_eq!(shown(&[Event::Reasoning("hm".into()), Event::Text("4".into()), Event::Text("2".into())]), "42");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// More text of the answer.
    Text(String),
    /// More text of the reasoning.
    Reasoning(String),
    /// A tool call has begun. Calls are counted from 0.
    CallBegun {
        /// The index of the call.
        index: usize,
        /// The name of the tool.
        name: String,
    },
    /// The id that the model gives the call, if its format has ids, such as Kimi K2.
    CallId {
        /// The index of the call.
        index: usize,
        /// The id.
        id: String,
    },
    /// More of the arguments of a call. Parameters in other notations are converted to JSON.
    ArgumentDelta {
        /// The index of the call.
        index: usize,
        /// The next part.
        delta: String,
    },
    /// A call is complete.
    CallDone {
        /// The index of the call.
        index: usize,
        /// The name of the tool.
        name: String,
        /// The concatenation of all deltas.
        arguments: String,
    },
    /// A call that had begun turned out not to be a call, or was cut off.
    CallFailed {
        /// The index of the call.
        index: usize,
        /// The name of the tool.
        name: String,
        /// All text that was read of it, including the marker that it begins with.
        text: String,
    },
    /// A tag without a role has begun. Tags are counted from 0.
    TagBegun {
        /// The index of the tag.
        index: usize,
        /// The marker that it begins with.
        begin: String,
    },
    /// More of the content of a tag.
    TagDelta {
        /// The index of the tag.
        index: usize,
        /// The next part.
        delta: String,
    },
    /// A tag is complete.
    TagDone {
        /// The index of the tag.
        index: usize,
        /// The concatenation of all deltas.
        content: String,
    },
    /// A tag that had begun turned out not to be a tag, or was cut off.
    TagFailed {
        /// The index of the tag.
        index: usize,
        /// All text that was read of it, including the marker that it begins with.
        text: String,
    },
}

impl Event {
    /// Returns the kind of event as a word: `text`, `reasoning`, `call`, `call_id`, `arguments`, `call_done`,
    /// `call_failed`, `tag`, `tag_text`, `tag_done` or `tag_failed`.
    ///
    /// ```
    /// use maskwright::stream::Event;
    ///
    /// let done = Event::CallDone { index: 0, name: "now".into(), arguments: "{}".into() };
    /// assert_eq!((done.kind(), done.index(), done.name(), done.text()), ("call_done", Some(0), Some("now"), "{}"));
    /// ```
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "text",
            Self::Reasoning(_) => "reasoning",
            Self::CallBegun { .. } => "call",
            Self::CallId { .. } => "call_id",
            Self::ArgumentDelta { .. } => "arguments",
            Self::CallDone { .. } => "call_done",
            Self::CallFailed { .. } => "call_failed",
            Self::TagBegun { .. } => "tag",
            Self::TagDelta { .. } => "tag_text",
            Self::TagDone { .. } => "tag_done",
            Self::TagFailed { .. } => "tag_failed",
        }
    }

    /// Returns the index of the call or tag; `None` for text and reasoning.
    pub fn index(&self) -> Option<usize> {
        match self {
            Self::Text(_) | Self::Reasoning(_) => None,
            Self::CallBegun { index, .. }
            | Self::CallId { index, .. }
            | Self::ArgumentDelta { index, .. }
            | Self::CallDone { index, .. }
            | Self::CallFailed { index, .. }
            | Self::TagBegun { index, .. }
            | Self::TagDelta { index, .. }
            | Self::TagDone { index, .. }
            | Self::TagFailed { index, .. } => Some(*index),
        }
    }

    /// Returns the name of the tool, when a call begins and when it ends.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::CallBegun { name, .. } | Self::CallDone { name, .. } | Self::CallFailed { name, .. } => {
                Some(name)
            }
            _ => None,
        }
    }

    /// Returns the text of the event; it is empty when a call begins.
    pub fn text(&self) -> &str {
        match self {
            Self::CallBegun { .. } => "",
            Self::Text(text)
            | Self::Reasoning(text)
            | Self::CallId { id: text, .. }
            | Self::ArgumentDelta { delta: text, .. }
            | Self::CallDone { arguments: text, .. }
            | Self::CallFailed { text, .. }
            | Self::TagBegun { begin: text, .. }
            | Self::TagDelta { delta: text, .. }
            | Self::TagDone { content: text, .. }
            | Self::TagFailed { text, .. } => text,
        }
    }
}

/// How a text ended.
///
/// ```
/// use maskwright::stream::{Finish, Reader};
/// use maskwright::tag;
///
/// let format = tag::parse(r#"{"type": "tag", "begin": "<a>", "content": {"type": "any_text"}, "end": "</a>"}"#, &tag::Options::default())?;
/// let mut reader = Reader::new(&format)?;
/// reader.feed("<a>half", &mut Vec::new());
/// assert_eq!(reader.finish(&mut Vec::new()), Finish::Cut);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Finish {
    /// The text is complete according to the tree.
    Complete,
    /// The text ended too early.
    Cut,
    /// A part of the text did not fit the tree.
    Strayed,
}

impl Finish {
    /// Returns it as a word: `complete`, `cut` or `strayed`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Cut => "cut",
            Self::Strayed => "strayed",
        }
    }

    /// Whether it is [`Finish::Complete`].
    pub fn is_complete(self) -> bool {
        self == Self::Complete
    }
}

/// Reads a text, piece by piece.
///
/// ```
/// use maskwright::formats::{ModelFormat, Request, Tool};
/// use maskwright::stream::{Event, Reader};
///
/// let tools = vec![Tool::function("now", serde_json::json!({"type": "object", "properties": {}}))];
/// let tree = ModelFormat::named("hermes")?.tag(&Request { tools, ..Request::default() })?;
/// let mut reader = Reader::new(&tree)?; // `fresh` makes another for the next answer
/// let mut events = Vec::new();
/// reader.feed("One moment. <tool_", &mut events);
/// assert_eq!(events, [Event::Text("One moment. ".into())]); // what may become a marker is held back
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Reader {
    plan: Arc<Plan>,
    step: StepId,
    /// The text that was not processed yet, and how many bytes of it are done.
    buffer: String,
    read: usize,
    /// The bytes of an incomplete character.
    bytes: Vec<u8>,
    open: Vec<Open>,
    document: Document,
    calls: usize,
    tags: usize,
    /// The id of the next call.
    id: String,
    strayed: bool,
    /// Whether a line break may come here: the one after the last parameter.
    may_break: bool,
    /// The number of steps since something was read. It detects a plan that loops without reading.
    idle: usize,
}

/// An open tag.
#[derive(Clone, Debug)]
struct Open {
    what: Channel,
    resume: Option<StepId>,
    /// All text that was read since it began.
    text: String,
    /// The text that was reported.
    content: String,
    id: String,
}

/// The channel that the content of a tag is reported to.
#[derive(Clone, Debug)]
enum Channel {
    Text,
    Reasoning,
    Call {
        index: usize,
        name: String,
        with_json: bool,
    },
    Tag {
        index: usize,
    },
    /// The id of the next call.
    Id,
}

/// The document that is being read.
#[derive(Clone, Debug, Default)]
enum Document {
    #[default]
    None,
    Json(JsonEnd),
    Parameters(Parameters),
    Literal(Literal),
}

/// Whether a step made progress.
enum Advance {
    Done,
    Waiting,
}

impl Reader {
    /// Creates a reader for texts that a tree describes.
    pub fn new(format: &Format) -> Result<Self, PlanError> {
        Ok(Self::at_start(Arc::new(Plan::new(format)?)))
    }

    /// Returns a reader with the same plan at the beginning of another text.
    #[must_use]
    pub fn fresh(&self) -> Self {
        Self::at_start(self.plan.clone())
    }

    fn at_start(plan: Arc<Plan>) -> Self {
        Self {
            step: plan.start,
            plan,
            buffer: String::new(),
            read: 0,
            bytes: Vec::new(),
            open: Vec::new(),
            document: Document::None,
            calls: 0,
            tags: 0,
            id: String::new(),
            strayed: false,
            may_break: false,
            idle: 0,
        }
    }

    /// Reads a piece of text.
    pub fn feed(&mut self, text: &str, events: &mut Vec<Event>) {
        self.flush_bytes();
        self.buffer.push_str(text);
        self.advance(false, events);
    }

    /// Reads bytes, which may end inside a character.
    pub fn feed_bytes(&mut self, bytes: &[u8], events: &mut Vec<Event>) {
        self.bytes.extend_from_slice(bytes);
        let end = self.bytes.len() - unfinished(&self.bytes);
        self.buffer.push_str(&String::from_utf8_lossy(&self.bytes[..end]));
        self.bytes.drain(..end);
        self.advance(false, events);
    }

    /// Reads a token: its bytes, or the name of a special token. Tokens without text are ignored.
    pub fn feed_token(&mut self, token: TokenId, vocabulary: &Vocabulary, events: &mut Vec<Event>) {
        match vocabulary.special_name(token) {
            Some(name) => self.feed(name, events),
            None => self.feed_bytes(vocabulary.bytes(token), events),
        }
    }

    /// Ends the text.
    pub fn finish(&mut self, events: &mut Vec<Event>) -> Finish {
        self.flush_bytes();
        self.advance(true, events);
        self.end(false, events)
    }

    /// Ends a text that was cut off, for example by a limit on tokens. A possible beginning of a marker is not
    /// reported, nor is text of a call whose name is not known yet. A call that lacks only its end marker is complete.
    ///
    /// ```
    /// use maskwright::formats::{ModelFormat, Request, Tool};
    /// use maskwright::stream::{Event, Finish, Reader};
    ///
    /// let tools = vec![Tool::function("now", serde_json::json!({"type": "object", "properties": {}}))];
    /// let tree = ModelFormat::named("hermes")?.tag(&Request { tools, ..Request::default() })?;
    /// let mut reader = Reader::new(&tree)?;
    /// let mut events = Vec::new();
    /// reader.feed("One moment. <tool_call>\n{\"na", &mut events);
    /// reader.cut(&mut events);
    /// assert_eq!(events, [Event::Text("One moment. ".into())]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn cut(&mut self, events: &mut Vec<Event>) -> Finish {
        self.bytes.clear();
        self.end(true, events)
    }

    fn end(&mut self, is_cut: bool, events: &mut Vec<Event>) -> Finish {
        let plan = self.plan.clone();
        let mut is_over = match &plan.steps[self.step] {
            Step::Done => true,
            Step::Until { may_end, .. } => *may_end,
            _ => false,
        };
        // A marker that ends the text is often not part of the text that the reader gets.
        let rest = self.rest().to_owned();
        let ends =
            |way: &Way| way.marker.starts_with(&rest) && matches!(plan.steps[way.next], Step::End { .. });
        let is_closed = match &plan.steps[self.step] {
            Step::Expect { arms, .. } => !arms.is_empty() && arms.iter().all(ends),
            // If the text was cut off, an end marker is really missing.
            Step::Until { arms, what: What::Content | What::Free, .. } => !is_cut && arms.iter().any(ends),
            _ => false,
        };
        if is_closed && !self.rest().is_empty() {
            self.skip(rest.len());
        }
        while let Some(open) = self.open.pop() {
            is_over = false;
            if is_closed { self.close(open, events) } else { Self::fail_one(open, events) }
        }
        if !self.rest().is_empty() {
            is_over = false;
            if !is_cut {
                events.push(Event::Text(self.rest().to_owned()));
            }
            self.skip(self.rest().len());
        }
        self.step = DONE;
        match (self.strayed, is_over) {
            (true, _) => Finish::Strayed,
            (false, true) => Finish::Complete,
            (false, false) => Finish::Cut,
        }
    }

    /// Replaces an incomplete character before new text with U+FFFD.
    fn flush_bytes(&mut self) {
        if !self.bytes.is_empty() {
            self.buffer.push(char::REPLACEMENT_CHARACTER);
            self.bytes.clear();
        }
    }

    /// Advances as far as the text allows.
    fn advance(&mut self, is_last: bool, events: &mut Vec<Event>) {
        let plan = self.plan.clone();
        self.idle = 0;
        while let Advance::Done = self.go(&plan, is_last, events) {
            self.idle += 1;
            if self.idle > plan.steps.len() + 8 {
                self.stray(events);
                self.idle = 0;
            }
        }
        self.buffer.drain(..self.read);
        self.read = 0;
    }

    fn go(&mut self, plan: &Plan, is_last: bool, events: &mut Vec<Event>) -> Advance {
        match &plan.steps[self.step] {
            Step::Done | Step::Lost => {
                if self.rest().is_empty() {
                    return Advance::Waiting;
                }
                self.strayed = true;
                let text = self.rest().to_owned();
                self.skip(text.len());
                events.push(Event::Text(text));
                Advance::Waiting
            }
            Step::Begin { role, begin, with_json, resume, next } => {
                self.begin(role, begin, *with_json, *resume, events);
                self.step = *next;
                Advance::Done
            }
            Step::End { next } => {
                if let Some(open) = self.open.pop() {
                    self.close(open, events);
                }
                self.step = *next;
                Advance::Done
            }
            Step::Say { text, next } => {
                if !matches!(self.open.last(), Some(Open { what: Channel::Call { .. }, .. })) {
                    self.report(text, What::Free, events);
                }
                self.step = *next;
                Advance::Done
            }
            Step::Until { arms, what, .. } => self.until(arms, *what, is_last, events),
            Step::Expect { arms, otherwise, fallback } => {
                let found = self.expected(arms, is_last);
                match (found, otherwise, fallback) {
                    (Expected::Wait, ..) => return Advance::Waiting,
                    (Expected::Way { next, length, exact }, ..) => {
                        self.strayed |= !exact;
                        self.may_break = false;
                        self.skip(length);
                        self.step = next;
                    }
                    (Expected::None, Some(next), _) => self.step = *next,
                    // The end of the text is not an error; `finish` reports what it cut off.
                    (Expected::None, None, _) if is_last && self.may_be_cut(arms) => return Advance::Waiting,
                    (Expected::None, None, Some(fallback)) => {
                        self.strayed = true;
                        self.report(&fallback.text, What::Free, events);
                        self.step = fallback.next;
                    }
                    (Expected::None, None, None) => self.stray(events),
                }
                Advance::Done
            }
            Step::Json { ends, next } => self.json(ends, *next, is_last, events),
            Step::Parameters { .. } | Step::Literal { .. } => {
                let mut json = String::new();
                let (progress, next) = match &plan.steps[self.step] {
                    Step::Parameters { wire, list, others, json: whole, next } => {
                        let mut state = match mem::take(&mut self.document) {
                            Document::Parameters(state) => state,
                            _ => Parameters::default(),
                        };
                        let named = Named { wire: *wire, list, others, json: whole };
                        let progress = state.step(self.rest(), is_last, named, &mut json);
                        self.document = Document::Parameters(state);
                        (progress, next)
                    }
                    Step::Literal { style, ends, next } => {
                        let mut state = match mem::take(&mut self.document) {
                            Document::Literal(state) => state,
                            _ => Literal::new(*style),
                        };
                        let progress = state.step(self.rest(), ends, is_last, &mut json);
                        self.strayed |= state.has_strayed();
                        self.document = Document::Literal(state);
                        (progress, next)
                    }
                    _ => return Advance::Waiting,
                };
                self.report(&json, What::Content, events);
                match progress {
                    Progress::Read(length) => self.skip(length),
                    Progress::Wait => return Advance::Waiting,
                    Progress::Over => {
                        self.document = Document::None;
                        self.may_break = matches!(plan.steps[self.step], Step::Parameters { .. });
                        self.step = *next;
                    }
                    Progress::Broken if is_last => return Advance::Waiting,
                    Progress::Broken => self.stray(events),
                }
                Advance::Done
            }
        }
    }

    fn json(&mut self, ends: &[String], next: StepId, is_last: bool, events: &mut Vec<Event>) -> Advance {
        let mut end = if let Document::Json(end) = mem::take(&mut self.document) {
            end
        } else {
            // No grammar allows white space here, but models that write without a mask add it.
            let blanks = self.rest().len() - self.rest().trim_start().len();
            self.strayed |= blanks > 0;
            self.skip(blanks);
            if self.rest().is_empty() {
                return Advance::Waiting;
            }
            JsonEnd::default()
        };
        let (length, is_over) = match end.read(self.rest(), ends, is_last) {
            Found::More(length) => (length, false),
            Found::End(length) => (length, true),
            Found::Nothing => {
                if is_last {
                    return Advance::Waiting;
                }
                self.stray(events);
                return Advance::Done;
            }
        };
        let text = self.rest()[..length].to_owned();
        self.skip(length);
        self.report(&text, What::Content, events);
        if is_over {
            self.step = next;
            return Advance::Done;
        }
        self.document = Document::Json(end);
        Advance::Waiting
    }

    /// Reads text up to the first complete marker.
    fn until(&mut self, arms: &[Way], what: What, is_last: bool, events: &mut Vec<Event>) -> Advance {
        let rest = self.rest();
        let ends = arms
            .iter()
            .filter_map(|way| rest.find(&*way.marker).map(|at| (at + way.marker.len(), at, way.next)));
        if let Some((end, at, next)) = ends.min() {
            let text = rest[..at].to_owned();
            self.report(&text, what, events);
            self.skip(end);
            self.step = next;
            return Advance::Done;
        }
        let held = if is_last { 0 } else { held_back(rest, arms.iter().map(|way| &*way.marker)) };
        let held = if is_last && self.is_cut_marker(arms) {
            held_back(rest, arms.iter().map(|way| &*way.marker))
        } else {
            held
        };
        let text = rest[..rest.len() - held].to_owned();
        self.report(&text, what, events);
        self.skip(text.len());
        Advance::Waiting
    }

    /// Whether the text was cut inside a required marker.
    fn is_cut_marker(&self, arms: &[Way]) -> bool {
        let plan = &self.plan;
        match &plan.steps[self.step] {
            Step::Until { may_end, .. } => !may_end && !arms.is_empty(),
            _ => false,
        }
    }

    /// Whether the rest may be the beginning of a marker.
    fn may_be_cut(&self, arms: &[Way]) -> bool {
        arms.iter().any(|way| way.marker.starts_with(self.rest()))
    }

    /// Finds the marker that comes next, preferring the longest.
    fn expected(&self, arms: &[Way], is_last: bool) -> Expected {
        match self.expected_at(arms, 0, is_last) {
            Expected::None => {
                // White space that no grammar allows, but that models add when they write without a mask.
                let blanks = self.rest().len() - self.rest().trim_start().len();
                if blanks == 0 { Expected::None } else { self.expected_at(arms, blanks, is_last) }
            }
            found => found,
        }
    }

    fn expected_at(&self, arms: &[Way], skipped: usize, is_last: bool) -> Expected {
        let rest = &self.rest()[skipped..];
        let mut longest: Option<&Way> = None;
        for way in arms {
            if rest.starts_with(&way.marker) {
                if longest.is_none_or(|known| known.marker.len() < way.marker.len()) {
                    longest = Some(way);
                }
            } else if way.marker.starts_with(rest) && !is_last {
                return Expected::Wait;
            }
        }
        longest.map_or(Expected::None, |way| Expected::Way {
            next: way.next,
            length: skipped + way.marker.len(),
            exact: skipped == 0 || self.may_break && &self.rest()[..skipped] == "\n",
        })
    }

    fn begin(
        &mut self,
        role: &Role,
        begin: &str,
        with_json: bool,
        resume: Option<StepId>,
        events: &mut Vec<Event>,
    ) {
        let what = match role {
            Role::Reasoning => Channel::Reasoning,
            Role::Text | Role::Section => Channel::Text,
            Role::CallId => Channel::Id,
            Role::Call(name) => {
                let (index, name) = (self.calls, name.clone());
                self.calls += 1;
                events.push(Event::CallBegun { index, name: name.clone() });
                if !self.id.is_empty() {
                    events.push(Event::CallId { index, id: mem::take(&mut self.id) });
                }
                Channel::Call { index, name, with_json }
            }
            Role::Plain => {
                let index = self.tags;
                self.tags += 1;
                events.push(Event::TagBegun { index, begin: begin.into() });
                Channel::Tag { index }
            }
        };
        let text = begin.to_owned();
        self.open.push(Open { what, resume, text, content: String::new(), id: String::new() });
    }

    fn close(&mut self, open: Open, events: &mut Vec<Event>) {
        match open.what {
            Channel::Call { index, name, .. } => {
                events.push(Event::CallDone { index, name, arguments: open.content });
            }
            Channel::Tag { index } => events.push(Event::TagDone { index, content: open.content }),
            Channel::Id => self.id = open.content,
            Channel::Text | Channel::Reasoning => {}
        }
    }

    fn fail_one(open: Open, events: &mut Vec<Event>) {
        match open.what {
            Channel::Call { index, name, .. } => {
                events.push(Event::CallFailed { index, name, text: open.text });
            }
            Channel::Tag { index } => events.push(Event::TagFailed { index, text: open.text }),
            Channel::Text | Channel::Reasoning | Channel::Id => {}
        }
    }

    /// Handles text that does not fit: continues where free text is allowed.
    fn stray(&mut self, events: &mut Vec<Event>) {
        self.strayed = true;
        self.document = Document::None;
        self.step = LOST;
        while let Some(open) = self.open.pop() {
            let resume = open.resume;
            Self::fail_one(open, events);
            if let Some(step) = resume {
                self.step = step;
                break;
            }
        }
    }

    /// Reports content to its channel.
    fn report(&mut self, text: &str, what: What, events: &mut Vec<Event>) {
        if text.is_empty() {
            return;
        }
        let Some(open) = self.open.last_mut() else {
            events.push(Event::Text(text.into()));
            return;
        };
        match &open.what {
            Channel::Text => events.push(Event::Text(text.into())),
            Channel::Reasoning => events.push(Event::Reasoning(text.into())),
            Channel::Id => open.content.push_str(text),
            Channel::Tag { index } => {
                open.content.push_str(text);
                events.push(Event::TagDelta { index: *index, delta: text.into() });
            }
            Channel::Call { index, with_json, .. } => {
                let is_document = matches!(
                    self.plan.steps[self.step],
                    Step::Json { .. } | Step::Parameters { .. } | Step::Literal { .. }
                );
                if *with_json && !is_document {
                    if what == What::Content {
                        open.id.push_str(text);
                    }
                    return;
                }
                if !open.id.is_empty() {
                    events.push(Event::CallId { index: *index, id: mem::take(&mut open.id) });
                }
                open.content.push_str(text);
                events.push(Event::ArgumentDelta { index: *index, delta: text.into() });
            }
        }
    }

    fn rest(&self) -> &str {
        &self.buffer[self.read..]
    }

    /// Marks text as read.
    fn skip(&mut self, length: usize) {
        if length == 0 {
            return;
        }
        self.idle = 0;
        let text = &self.buffer[self.read..self.read + length];
        for open in &mut self.open {
            if matches!(open.what, Channel::Call { .. } | Channel::Tag { .. }) {
                open.text.push_str(text);
            }
        }
        self.read += length;
    }
}

/// The result of looking for a marker.
enum Expected {
    /// A marker, and its length including the white space before it.
    Way {
        next: StepId,
        length: usize,
        exact: bool,
    },
    Wait,
    None,
}
