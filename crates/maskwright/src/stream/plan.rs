//! Compiles a [`Format`] to the steps of a reader.
//!
//! As in the lowering to a grammar, parts are planned from back to front: what follows a part is known when the part is
//! planned. It is described by the markers that it can begin with, and by at most one step that begins without a
//! marker. If two such steps were possible, no reader could distinguish them; such trees are refused here, although
//! they are valid constraints.

use core::fmt;

use maskwright_frontend::tag::{
    self, Arm, Dispatch, Format, Json, Kind, Marker, Others, Parameter, Role, Separated, Style, Tag, Then,
    Wire,
};
use maskwright_grammar::TokenRef;

/// The index of a step.
pub(super) type StepId = usize;

/// One step of a reader.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// Expects one of these markers; otherwise continues with something without a marker.
    Expect { arms: Vec<Way>, otherwise: Option<StepId>, fallback: Option<Fallback> },
    /// Reads everything up to one of these markers, or to the end of the text if it may end.
    Until { arms: Vec<Way>, what: What, may_end: bool },
    /// Reads a JSON value.
    Json { ends: Vec<String>, next: StepId },
    /// Reads a document as parameters.
    Parameters { wire: Wire, list: Vec<Parameter>, others: Others, json: Box<Json>, next: StepId },
    /// Reads a document as arguments of a call.
    Literal { style: Style, ends: Vec<String>, next: StepId },
    /// Begins a tag.
    Begin { role: Role, begin: String, with_json: bool, resume: Option<StepId>, next: StepId },
    /// Ends a tag.
    End { next: StepId },
    /// Reports text that was read as a marker, but is part of the content.
    Say { text: String, next: StepId },
    /// Ends the text.
    Done,
    /// The reader has lost track: everything is text.
    Lost,
}

/// How the reader treats free text and quoted languages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// Free text.
    Free,
    /// The content of a pattern or a grammar.
    Content,
}

/// A marker and the step that follows it.
#[derive(Clone, Debug)]
pub(super) struct Way {
    pub(super) marker: String,
    pub(super) next: StepId,
}

/// The step to continue with if the text after a trigger does not fit.
#[derive(Clone, Debug)]
pub(super) struct Fallback {
    /// The text that was already read, and is reported as text.
    pub(super) text: String,
    pub(super) next: StepId,
}

/// The reason why no reader can follow a tree. It may still be valid as a constraint.
///
/// ```
/// use maskwright::stream::Reader;
/// use maskwright::tag;
///
/// // Where the first part ends and the second begins cannot be told from the text.
/// let tag = r#"{"type": "structural_tag", "format": {"type": "sequence", "elements": [{"type": "any_text"}, {"type": "any_text"}]}}"#;
/// let tree = tag::parse(tag, &tag::Options::default()).expect("as a constraint it is fine");
/// assert!(Reader::new(&tree).is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanError {
    /// The place in the tree.
    pub at: String,
    /// What is wrong, and a way to fix it.
    pub message: String,
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.at.is_empty() { "(root)" } else { &self.at };
        write!(f, "{place}: {}", self.message)
    }
}

impl core::error::Error for PlanError {}

/// What follows a part: the markers that it can begin with, and the step to take without a marker.
#[derive(Clone, Debug, Default)]
struct Follow {
    arms: Vec<Way>,
    otherwise: Option<StepId>,
}

/// The steps of a tree; `start` is the first one.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) steps: Vec<Step>,
    pub(super) start: StepId,
}

/// The step for the end of the text.
pub(super) const DONE: StepId = 0;
/// The step for a reader that has lost track.
pub(super) const LOST: StepId = 1;

impl Plan {
    pub(super) fn new(format: &Format) -> Result<Self, PlanError> {
        let mut planner = Planner { steps: vec![Step::Done, Step::Lost], depth: 0 };
        let end = Follow { arms: Vec::new(), otherwise: Some(DONE) };
        let all = planner.format(format, end, None)?;
        let start = planner.node(all);
        Ok(Self { steps: planner.steps, start })
    }
}

struct Planner {
    steps: Vec<Step>,
    depth: usize,
}

/// The maximum nesting of parts; the frontend allows less.
const MAX_DEPTH: usize = 200;

type Planned<T> = Result<T, PlanError>;

impl Planner {
    fn push(&mut self, step: Step) -> StepId {
        self.steps.push(step);
        self.steps.len() - 1
    }

    /// Adds a step that is filled in later.
    fn reserve(&mut self) -> StepId {
        self.push(Step::Lost)
    }

    /// Returns one step for everything that may follow.
    fn node(&mut self, follow: Follow) -> StepId {
        match (follow.arms.is_empty(), follow.otherwise) {
            (true, Some(step)) => step,
            (_, otherwise) => self.push(Step::Expect { arms: follow.arms, otherwise, fallback: None }),
        }
    }

    fn format(&mut self, format: &Format, next: Follow, resume: Option<StepId>) -> Planned<Follow> {
        let at = &*format.at;
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(refused(at, "parts are nested too deeply; remove a level"));
        }
        let planned = self.kind(format, next, resume);
        self.depth -= 1;
        planned
    }

    fn kind(&mut self, format: &Format, next: Follow, resume: Option<StepId>) -> Planned<Follow> {
        let at = &*format.at;
        match &format.kind {
            Kind::Const(text) => self.said(&Marker::Text(text.clone()), at, next),
            Kind::Token(token) => self.said(&Marker::Token(token.clone()), at, next),
            Kind::Json(json) => self.json(json, at, next),
            Kind::Regex(_) | Kind::Grammar(..) => self.until(What::Content, at, next),
            Kind::AnyText(_) | Kind::AnyTokens(_) | Kind::ExcludeToken(_) => self.until(What::Free, at, next),
            Kind::Sequence(parts) => {
                let mut next = next;
                for part in parts.iter().rev() {
                    next = self.format(part, next, resume)?;
                }
                Ok(next)
            }
            Kind::Or(parts) => {
                let mut either = Follow::default();
                for part in parts {
                    let one = self.format(part, next.clone(), resume)?;
                    either = merged(either, one, at)?;
                }
                Ok(either)
            }
            Kind::Repeat { content, min, max } => self.repeat(content, *min, *max, at, next, resume),
            Kind::Tag(tag) => self.tag(tag, next, resume),
            Kind::Separated(separated) => self.separated(separated, at, next, resume),
            Kind::Dispatch(dispatch) => self.dispatch(dispatch, at, next),
            _ => Err(refused(at, "no reader knows this format yet")),
        }
    }

    /// Plans a marker whose text is part of the content.
    fn said(&mut self, marker: &Marker, at: &str, next: Follow) -> Planned<Follow> {
        if marker.is_empty() {
            return Ok(next);
        }
        let text = text_of(marker, at)?;
        let next = self.node(next);
        let next = self.push(Step::Say { text: text.clone(), next });
        Ok(Follow { arms: vec![Way { marker: text, next }], otherwise: None })
    }

    fn json(&mut self, json: &Json, at: &str, next: Follow) -> Planned<Follow> {
        if let Some(way) = next.arms.iter().find(|way| json.may_go_on_with(&way.marker)) {
            let message = format!(
                "a number can contain {:?}, so its end cannot be recognized; put another text after it",
                way.marker
            );
            return Err(refused(at, message));
        }
        let ends =
            next.arms.iter().map(|way| &way.marker).filter(|end| tag::is_of_numbers(end)).cloned().collect();
        let literal_ends: Vec<String> = next.arms.iter().map(|way| way.marker.clone()).collect();
        let is_part =
            |end: &String| end.starts_with(|c: char| c.is_alphanumeric() || "+-._ \n,\"'<".contains(c));
        let is_literal = matches!(json.style, Style::Python | Style::Gemma4);
        if is_literal
            && (next.otherwise.is_some()
                || literal_ends.iter().any(|end| is_part(end) && !end.starts_with("</")))
        {
            let message =
                "the end of arguments is recognized by a sign such as `)`; put such a text after them";
            return Err(refused(at, message));
        }
        let next = self.node(next);
        let step = match (json.style, tag::wire(json.style)) {
            (style @ (Style::Python | Style::Gemma4), _) => Step::Literal { style, ends: literal_ends, next },
            (_, None) => Step::Json { ends, next },
            (_, Some(wire)) => {
                let list = tag::parameters(json).map_err(|error| refused(at, error.to_string()))?;
                let others = tag::others(json).map_err(|error| refused(at, error.to_string()))?;
                Step::Parameters { wire, list, others, json: Box::new(json.clone()), next }
            }
        };
        Ok(Follow { arms: Vec::new(), otherwise: Some(self.push(step)) })
    }

    /// Plans everything up to a marker that follows.
    fn until(&mut self, what: What, at: &str, next: Follow) -> Planned<Follow> {
        if next.otherwise.is_some_and(|step| step != DONE) {
            let message = "what follows begins with no marker, so the end of this part cannot be recognized; put a `const_string` or a tag after it";
            return Err(refused(at, message));
        }
        let may_end = next.otherwise.is_some();
        let step = self.push(Step::Until { arms: next.arms, what, may_end });
        Ok(Follow { arms: Vec::new(), otherwise: Some(step) })
    }

    fn repeat(
        &mut self,
        content: &Format,
        min: u32,
        max: Option<u32>,
        at: &str,
        next: Follow,
        resume: Option<StepId>,
    ) -> Planned<Follow> {
        if max == Some(0) {
            return Ok(next);
        }
        if max == Some(1) {
            let once = self.format(content, next.clone(), resume)?;
            return if min == 1 { Ok(once) } else { merged(once, next, at) };
        }
        // The grammar checks the number of repetitions; here the markers decide whether there is one more.
        let again = self.reserve();
        let behind = Follow { arms: Vec::new(), otherwise: Some(again) };
        let once = self.format(content, behind, resume)?;
        let either = merged(once.clone(), next, at)?;
        self.steps[again] =
            Step::Expect { arms: either.arms.clone(), otherwise: either.otherwise, fallback: None };
        Ok(if min == 0 { either } else { once })
    }

    fn tag(&mut self, tag: &Tag, next: Follow, resume: Option<StepId>) -> Planned<Follow> {
        let begun = self.inside(tag, next, resume)?;
        let begin = text_of(&tag.begin, &tag.at)?;
        if begin.is_empty() {
            return Ok(Follow { arms: Vec::new(), otherwise: Some(begun) });
        }
        Ok(Follow { arms: vec![Way { marker: begin, next: begun }], otherwise: None })
    }

    /// Plans the steps after the begin marker of a tag.
    fn inside(&mut self, tag: &Tag, next: Follow, resume: Option<StepId>) -> Planned<StepId> {
        let next = self.node(next);
        let ended = self.push(Step::End { next });
        let mut ends = Follow::default();
        for end in &tag.end {
            let marker = text_of(end, &tag.at)?;
            let end = if marker.is_empty() {
                Follow { arms: Vec::new(), otherwise: Some(ended) }
            } else {
                Follow { arms: vec![Way { marker, next: ended }], otherwise: None }
            };
            ends = merged(ends, end, &tag.at)?;
        }
        let content = self.format(&tag.content, ends, None)?;
        let next = self.node(content);
        let begin = text_of(&tag.begin, &tag.at)?;
        let with_json = holds_json(&tag.content);
        Ok(self.push(Step::Begin { role: tag.role.clone(), begin, with_json, resume, next }))
    }

    fn separated(
        &mut self,
        separated: &Separated,
        at: &str,
        next: Follow,
        resume: Option<StepId>,
    ) -> Planned<Follow> {
        let behind = self.reserve();
        let after = Follow { arms: Vec::new(), otherwise: Some(behind) };
        let after = if separated.stop_after_first { next.clone() } else { after };
        let mut first = Follow::default();
        let tags = separated.tags.iter().map(|tag| (tag, &after));
        for (tag, after) in tags.chain(separated.last.iter().map(|tag| (tag, &next))) {
            let one = self.tag(tag, after.clone(), resume)?;
            first = merged(first, one, &tag.at)?;
        }
        let another = if separated.separator.is_empty() {
            first.clone()
        } else {
            let next = self.node(first.clone());
            Follow { arms: vec![Way { marker: separated.separator.clone(), next }], otherwise: None }
        };
        let either = merged(another, next.clone(), at)?;
        self.steps[behind] = Step::Expect { arms: either.arms, otherwise: either.otherwise, fallback: None };
        if separated.at_least_one { Ok(first) } else { merged(first, next, at) }
    }

    fn dispatch(&mut self, dispatch: &Dispatch, at: &str, next: Follow) -> Planned<Follow> {
        let free = self.reserve();
        let after = Follow { arms: Vec::new(), otherwise: Some(free) };
        let after = if dispatch.stop_after_first { next.clone() } else { after };
        let mut arms = Vec::new();
        let mut first = Follow::default();
        for arm in &dispatch.arms {
            let ways = self.arm(arm, &after, free, &mut first)?;
            arms.extend(ways);
        }
        let arms = merged(Follow { arms, otherwise: None }, next, at)?;
        if arms.otherwise.is_some_and(|step| step != DONE) {
            let message = "what follows the free text begins with no marker, so the end of the free text cannot be recognized; put a `const_string` or a tag after it";
            return Err(refused(at, message));
        }
        let may_end = arms.otherwise.is_some();
        self.steps[free] = Step::Until { arms: arms.arms, what: What::Free, may_end };
        Ok(if dispatch.at_least_one { first } else { Follow { arms: Vec::new(), otherwise: Some(free) } })
    }

    /// Returns the ways that one trigger opens out of free text.
    fn arm(&mut self, arm: &Arm, after: &Follow, free: StepId, first: &mut Follow) -> Planned<Vec<Way>> {
        let trigger = text_of(&arm.trigger, &arm.at)?;
        match &arm.then {
            Then::Format(format) => {
                let then = self.format(format, after.clone(), Some(free))?;
                let then = self.node(then);
                let next = self.push(Step::Say { text: trigger.clone(), next: then });
                let way = Way { marker: trigger, next };
                *first = merged(
                    core::mem::take(first),
                    Follow { arms: vec![way.clone()], otherwise: None },
                    &arm.at,
                )?;
                Ok(vec![way])
            }
            Then::Tags(tags) => {
                let mut rests = Follow::default();
                for tag in tags {
                    let next = self.inside(tag, after.clone(), Some(free))?;
                    let begin = text_of(&tag.begin, &tag.at)?;
                    let rest = begin.get(trigger.len()..).unwrap_or_default().to_owned();
                    let whole = Follow { arms: vec![Way { marker: begin, next }], otherwise: None };
                    *first = merged(core::mem::take(first), whole, &tag.at)?;
                    let rest = if rest.is_empty() {
                        Follow { arms: Vec::new(), otherwise: Some(next) }
                    } else {
                        Follow { arms: vec![Way { marker: rest, next }], otherwise: None }
                    };
                    rests = merged(rests, rest, &tag.at)?;
                }
                let fallback = Some(Fallback { text: trigger.clone(), next: free });
                let next = match (rests.arms.is_empty(), rests.otherwise) {
                    (true, Some(only)) => only,
                    (_, otherwise) => self.push(Step::Expect { arms: rests.arms, otherwise, fallback }),
                };
                Ok(vec![Way { marker: trigger, next }])
            }
        }
    }
}

/// Merges both, if a reader can distinguish them.
fn merged(mut a: Follow, b: Follow, at: &str) -> Planned<Follow> {
    let otherwise = match (a.otherwise, b.otherwise) {
        (Some(x), Some(y)) if x != y => {
            let message = "two parts may follow here that begin with no marker, so they cannot be distinguished; give one of them a marker";
            return Err(refused(at, message));
        }
        (x, y) => x.or(y),
    };
    for way in b.arms {
        match a.arms.iter().find(|known| known.marker == way.marker) {
            Some(known) if known.next == way.next => {}
            Some(_) => {
                let message =
                    format!("two parts begin with {:?}, so they cannot be distinguished", way.marker);
                return Err(refused(at, message));
            }
            None => a.arms.push(way),
        }
    }
    Ok(Follow { arms: a.arms, otherwise })
}

/// Returns the text of a marker as the reader sees it.
fn text_of(marker: &Marker, at: &str) -> Planned<String> {
    match marker {
        Marker::Text(text) => Ok(text.clone()),
        Marker::Token(TokenRef::Name(name)) => Ok(name.to_string()),
        Marker::Token(TokenRef::Ids(..)) => Err(refused(
            at,
            "a reader knows tokens by their names; write the name of the token instead of its number",
        )),
    }
}

/// Whether a part contains a document, which is then all that a call reports.
fn holds_json(format: &Format) -> bool {
    match &format.kind {
        Kind::Json(_) => true,
        Kind::Sequence(parts) | Kind::Or(parts) => parts.iter().any(holds_json),
        Kind::Repeat { content, .. } => holds_json(content),
        Kind::Tag(tag) => holds_json(&tag.content),
        _ => false,
    }
}

fn refused(at: &str, message: impl Into<String>) -> PlanError {
    PlanError { at: at.into(), message: message.into() }
}
