//! Random texts under the mask, and comparing masks with trying every token.
//!
//! Choosing uniformly among allowed tokens writes long strings and rarely reaches interesting cases. So walks have a
//! style, and the longer a text gets, the more often they take a token that closes something.

use core::ops::{Range, RangeInclusive};
use std::sync::Arc;

use maskwright::{
    Budget, BudgetError, CompiledConstraint, Matcher, Strategy, TokenId, Vocabulary, VocabularyBuilder,
};
use maskwright_oracle::generate::Rng;
use serde_json::Value;

use crate::find::Fault;
use crate::schema::mentions;

/// Texts whose parts become tokens: keys and values next to each other, with and without white space.
const STRUCTURES: [&str; 2] = [
    r#"{"":{"a":[{"b":"","c":[]}],"":""},"ab":["",{}],"b":[[],[1,{"":1}]],"d":-1}"#,
    r#"{"a": {"": ""}, "b": [{}, 1, ""]}"#,
];
/// The lengths of these parts in bytes.
const PARTS: RangeInclusive<usize> = 2..=4;

/// Returns a vocabulary of all bytes, and of tokens with parts of words, several values, or the end of one value and
/// the beginning of the next.
pub fn vocabulary() -> Arc<Vocabulary> {
    const PIECES: [&str; 72] = [
        "\",\"", "\":", "\": ", "\":\"", ", \"", ",\"", "\"a\"", "\"a", "a\"", "\"b", "\"a\":", "\"b\":",
        "\"c\":", "{\"", "{\"a\":", "\"}", "\"}]", "},{", "\":1,\"", "\":{", "\":[", "\":[]", "{}", "[]",
        "[[", "]]", "}}", "],[", "[{", "}]", "[],[]", "[1", "1,1", "1,2", "0,", "10", "12", "-1", ".5", ".0",
        "00", "e1", "1e", "1]", "1}", "5,", "aa", "ab", "abc", "bc", "bbb", "ba", "é", "\\u00", "\\u0061",
        "\\n", "\\\"", "\\\\", "null", "null,", "true", "false", "tr", "nu", "2024", "-01", ", ", "\n  ",
        "\n", "  ", ":", "::",
    ];
    let mut builder = VocabularyBuilder::new();
    let mut tokens: Vec<Vec<u8>> = (0..=u8::MAX).map(|byte| vec![byte]).collect();
    let parts = STRUCTURES.iter().flat_map(|text| PARTS.flat_map(|length| text.as_bytes().windows(length)));
    for piece in PIECES.iter().map(|piece| piece.as_bytes()).chain(parts) {
        if !tokens.iter().any(|token| token == piece) {
            tokens.push(piece.to_vec());
        }
    }
    for (id, token) in (0..).zip(&tokens) {
        builder.token(TokenId(id), token).expect("ids are distinct");
    }
    let end = TokenId(tokens.len() as u32);
    builder.special(end, "<end>").expect("the id is free").eos(end);
    Arc::new(builder.finish().expect("there are tokens"))
}

/// How a walk chooses tokens.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The tokens that are preferred.
    pub style: Style,
    /// The number of tokens after which a budget is set, and by how many tokens it exceeds the minimum.
    pub budget: Option<(usize, u32)>,
    /// The steps at which the mask is compared with trying tokens.
    pub compared: Range<usize>,
    /// The tokens that are tried.
    pub tried: Tried,
}

/// The tokens that a mask is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tried {
    /// None.
    None,
    /// Those of several bytes that contain a bracket, a quote, a comma or a colon; this allows comparing many more
    /// masks.
    Joints,
    /// All of them, in every way.
    All,
}

/// The tokens that a walk prefers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// None.
    Uniform,
    /// Brackets, commas, colons and quotes, so that keys and values run out.
    Structure,
    /// Those that were taken least often in the walks of this constraint.
    Rare,
}

/// Draws a plan.
pub fn plan(rng: &mut Rng, tried: Tried) -> Plan {
    let style = [Style::Uniform, Style::Structure, Style::Rare, Style::Rare][rng.below(4)];
    let budget = rng.one_in(3).then(|| (rng.below(12), rng.below(20) as u32));
    let start = rng.below(4);
    let compared = match tried {
        Tried::None => 0..0,
        Tried::Joints => 0..40,
        Tried::All => start..start + 24,
    };
    // A budget makes masks expensive, and is tested by other walks.
    Plan { style, budget: budget.filter(|_| tried != Tried::Joints), compared, tried }
}

/// The state that walks under one constraint share.
#[derive(Debug)]
pub struct Walker<'a> {
    compiled: &'a CompiledConstraint,
    vocabulary: Arc<Vocabulary>,
    /// See [`Tried::Joints`].
    joints: Vec<TokenId>,
    /// How often each token was taken.
    taken: Vec<u32>,
    /// The number of tokens after which a walk tries to end. After twice as many it is given up.
    long: usize,
    /// The number of masks that were compared.
    pub masks: u64,
    /// The number of walks that ended because a mask with a budget exceeded the limit of steps, which `docs/budgets.md`
    /// describes.
    pub limited: u64,
}

/// The value of [`Walker::long`], and a lower one if every token needs a search for a new value.
const LONG: usize = 100;
const LONG_WITH_SEARCHES: usize = 25;

impl<'a> Walker<'a> {
    /// Creates a walker for a constraint.
    pub fn new(compiled: &'a CompiledConstraint) -> Self {
        let vocabulary = compiled.vocabulary().clone();
        let is_joint = |bytes: &[u8]| bytes.len() > 1 && bytes.iter().any(|byte| b"[]{},:\"".contains(byte));
        let joints =
            vocabulary.ordinary().filter(|(_, bytes)| is_joint(bytes)).map(|(token, _)| token).collect();
        let taken = vec![0; vocabulary.size()];
        Self { compiled, vocabulary, joints, taken, long: LONG, masks: 0, limited: 0 }
    }

    /// Creates a walker for a schema.
    pub fn of_schema(compiled: &'a CompiledConstraint, schema: &Value) -> Self {
        let long = if mentions(schema, &["uniqueItems"]) { LONG_WITH_SEARCHES } else { LONG };
        Self { long, ..Self::new(compiled) }
    }

    /// Writes a text; returns `None` if it gets too long. After a fault that does not concern a budget, `prefix` is the
    /// text before it.
    pub fn walk(
        &mut self,
        plan: &Plan,
        rng: &mut Rng,
        prefix: &mut Option<Vec<u8>>,
    ) -> Result<Option<Vec<u8>>, Fault> {
        let (mut text, mut left) = (Vec::new(), None);
        let result = self.go(plan, rng, &mut text, &mut left);
        *prefix = (result.is_err() && left.is_none()).then(|| text.clone());
        result.map(|finished| finished.then_some(text))
    }

    /// Returns whether the walk has finished. `left` is the rest of the budget.
    fn go(
        &mut self,
        plan: &Plan,
        rng: &mut Rng,
        text: &mut Vec<u8>,
        left: &mut Option<u32>,
    ) -> Result<bool, Fault> {
        let mut matcher = self.compiled.matcher();
        let mut counted = Counted::default();
        for step in 0..self.long * 2 {
            if let Some((_, more)) = plan.budget.filter(|&(after, _)| after == step) {
                *left = set_budget(&mut matcher, more, text)?;
                counted = Counted { budget: left.unwrap_or_default(), tokens: Vec::new() };
            }
            if plan.compared.contains(&step) {
                self.masks += 1;
                match plan.tried {
                    Tried::None => {}
                    Tried::Joints => compare_some(&mut matcher, text, &self.joints)?,
                    Tried::All => compare(&mut matcher, text, *left)?,
                }
            }
            let mask = match matcher.mask() {
                Err(error) if left.is_some() && error.is_limit() => {
                    self.limited += 1;
                    return Ok(false);
                }
                mask => mask.map_err(|error| Fault::MaskLies(shown(text, &error.to_string())))?,
            };
            let allowed: Vec<TokenId> = mask.iter().collect();
            if allowed.is_empty() {
                return Err(if left.is_some() {
                    Fault::Budget(shown(text, &format!("nothing is allowed under the budget{counted}")))
                } else {
                    Fault::Stuck(shown(text, "nothing is allowed"))
                });
            }
            let token = self.choose(&allowed, step, plan.style, rng);
            matcher.accept(token).map_err(|error| {
                let token = self.vocabulary.spelling(token).escape_ascii();
                Fault::MaskLies(shown(text, &format!("the mask allows {token}, but: {error}")))
            })?;
            if let Some(left) = left {
                *left = left
                    .checked_sub(1)
                    .ok_or_else(|| Fault::Budget(shown(text, "the budget is spent, and the text goes on")))?;
            }
            if self.vocabulary.eos().contains(&token) {
                return Ok(true);
            }
            self.taken[token.index()] += 1;
            counted.tokens.push(self.vocabulary.spelling(token).escape_ascii().to_string());
            text.extend_from_slice(self.vocabulary.bytes(token));
        }
        Ok(false)
    }

    fn choose(&self, allowed: &[TokenId], step: usize, style: Style, rng: &mut Rng) -> TokenId {
        let vocabulary = &self.vocabulary;
        let hurry = step > self.long || rng.below(self.long * 4) < step;
        let end = allowed.iter().find(|&token| vocabulary.eos().contains(token));
        if let Some(&end) = end.filter(|_| hurry || rng.one_in(6)) {
            return end;
        }
        let of = |bytes: &[u8], all: &[u8]| !bytes.is_empty() && bytes.iter().all(|byte| all.contains(byte));
        let some: Vec<TokenId> = if hurry {
            allowed.iter().copied().filter(|&token| of(vocabulary.bytes(token), b"\"]}")).collect()
        } else if style == Style::Structure && !rng.one_in(3) {
            allowed.iter().copied().filter(|&token| of(vocabulary.bytes(token), b"[]{},:\"")).collect()
        } else {
            Vec::new()
        };
        let among = if some.is_empty() { allowed } else { &some[..] };
        let tries = if style == Style::Rare { 6 } else { 1 };
        let drawn = (0..tries).map(|_| among[rng.below(among.len())]);
        drawn.min_by_key(|token| self.taken[token.index()]).unwrap_or(among[0])
    }
}

/// A budget, and the tokens that were taken from it.
#[derive(Default)]
struct Counted {
    budget: u32,
    tokens: Vec<String>,
}

impl core::fmt::Display for Counted {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, " of {}, of which were taken: {}", self.budget, self.tokens.join(" | "))
    }
}

/// Sets a budget of `more` tokens above the minimum. Returns its size, including the end, or `None` if the constraint
/// is one of the documented kinds without budgets.
fn set_budget(matcher: &mut Matcher, more: u32, text: &[u8]) -> Result<Option<u32>, Fault> {
    let Some(need) = matcher.shortest_completion() else { return Ok(None) };
    let tokens = need + more;
    match matcher.set_budget(Some(Budget::new(tokens))) {
        Ok(()) => Ok(Some(tokens)),
        Err(BudgetError::Values | BudgetError::NoWay | BudgetError::Cut { .. }) => Ok(None),
        Err(error) => Err(Fault::Budget(shown(text, &error.to_string()))),
    }
}

/// Returns the fault at the current state: nothing is allowed, or a token of the mask is refused; with `masks`, also a
/// wrong bit of the mask.
pub fn look(matcher: &mut Matcher, text: &[u8], masks: bool) -> Result<(), Fault> {
    if masks {
        compare(matcher, text, None)?;
    }
    let mask = matcher.mask().map_err(|error| Fault::MaskLies(shown(text, &error.to_string())))?;
    let allowed: Vec<TokenId> = mask.iter().collect();
    if allowed.is_empty() {
        return Err(Fault::Stuck(shown(text, "nothing is allowed")));
    }
    for token in allowed {
        if let Err(error) = matcher.fork().accept(token) {
            let token = matcher.bound().vocabulary().spelling(token).escape_ascii();
            return Err(Fault::MaskLies(shown(text, &format!("the mask allows {token}, but: {error}"))));
        }
    }
    Ok(())
}

/// Checks some bits of the mask by trying these tokens on a fork.
fn compare_some(matcher: &mut Matcher, text: &[u8], tokens: &[TokenId]) -> Result<(), Fault> {
    let unasked = matcher.fork();
    let mask = matcher.mask().map_err(|error| Fault::Mask(shown(text, &error.to_string())))?;
    for &token in tokens {
        let (bit, accepted) = (mask.contains(token), unasked.fork().accept(token).is_ok());
        if bit != accepted {
            let token = unasked.bound().vocabulary().spelling(token).escape_ascii();
            let what = format!("mask {bit}, accept {accepted} for the token {token}");
            return Err(Fault::Mask(shown(text, &what)));
        }
    }
    Ok(())
}

/// Checks the mask bit by bit: against the reference strategy, and by trying every token on a fork. `budget` is the
/// number of tokens that are left, if there is a budget.
pub fn compare(matcher: &mut Matcher, text: &[u8], budget: Option<u32>) -> Result<(), Fault> {
    let wrong = |what: String| {
        let left = budget.map_or(String::new(), |left| format!(", with {left} tokens left"));
        Fault::Mask(shown(text, &format!("{what}{left}")))
    };
    let error = |error: maskwright::MatchError| Fault::Mask(shown(text, &error.to_string()));
    let is_limited = |error: &maskwright::MatchError| budget.is_some() && error.is_limit();
    // A matcher accepts tokens that its own mask has found to be in time without checking again. A fork without a mask
    // does check.
    let unasked = matcher.fork();
    let mut plain = matcher.fork();
    plain.set_strategy(Strategy::Reference);
    let (mask, plain) = match (matcher.mask(), plain.mask()) {
        (Err(limit), _) | (_, Err(limit)) if is_limited(&limit) => return Ok(()),
        (mask, plain) => (mask.map_err(error)?.clone(), plain.map_err(error)?.clone()),
    };
    let vocabulary = matcher.bound().vocabulary().clone();
    for token in (0..vocabulary.size() as u32).map(TokenId) {
        let bit = mask.contains(token);
        let name = || vocabulary.spelling(token).escape_ascii().to_string();
        if plain.contains(token) != bit {
            return Err(wrong(format!("fast {bit}, plain {} for the token {}", !bit, name())));
        }
        let accepted = match unasked.fork().accept(token) {
            Err(limit) if is_limited(&limit) => return Ok(()),
            accepted => accepted.is_ok(),
        };
        if accepted != bit {
            return Err(wrong(format!("mask {bit}, accept {accepted} for the token {}", name())));
        }
        // A budget counts tokens, but bytes are not tokens.
        if budget.is_none() && !vocabulary.is_special(token) {
            let taken = matcher.fork().accept_bytes(vocabulary.bytes(token)).is_ok();
            if taken != bit {
                return Err(wrong(format!("mask {bit}, bytes accepted {taken} for the token {}", name())));
            }
        }
    }
    Ok(())
}

fn shown(text: &[u8], what: &str) -> String {
    format!("after {}: {what}", String::from_utf8_lossy(text))
}
