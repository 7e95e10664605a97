//! A walk that follows masks is never stuck, and finishes.

use super::{Broken, Case, Effort, Rng, Subject, Tally};

/// Random walks under the mask are never stuck, and their texts satisfy the oracle.
///
/// A walk draws any allowed token until it has written `effort.length` bytes or stops early at random. Then it heads
/// for the nearest end, still by tokens of the mask. If the vocabulary cannot spell every text, a walk may get stuck
/// although the mask is right; it is given up if the oracle's mask is empty, too.
pub fn walks_finish<S: Subject>(
    case: &Case<'_>,
    fresh: &dyn Fn() -> S,
    rng: &mut Rng,
    effort: &Effort,
) -> Result<Tally, Broken> {
    let mut tally = Tally::default();
    for _ in 0..effort.rounds {
        tally.texts += u64::from(walk(case, fresh(), rng, effort)?);
    }
    Ok(tally)
}

const LAW: &str = "walks finish";

/// Makes one walk. Returns `false` if it was given up.
fn walk(case: &Case<'_>, mut subject: impl Subject, rng: &mut Rng, effort: &Effort) -> Result<bool, Broken> {
    let (mut path, mut state) = (Vec::new(), case.oracle.start());
    while state.position() < effort.length {
        let look = case.look(&mut subject);
        if look.accepting && rng.one_in(4) {
            break;
        }
        let allowed: Vec<u32> = look.mask.tokens().filter(|t| !case.tokens.eos().contains(t)).collect();
        let Some(&token) = rng.choose(&allowed) else {
            if look.accepting {
                break;
            }
            return stuck(case, &path, &state);
        };
        case.follow(LAW, &mut subject, &path, &[token])?;
        path.push(token);
        state = case.state_after(&path);
        if !case.oracle.is_viable(&state) {
            return Err(case.broken(LAW, &path, "the last token was allowed, but no text begins like this"));
        }
    }
    if !head_for_the_end(case, &mut subject, &mut path, &state)? {
        return Ok(false);
    }
    if !subject.is_accepting() || !case.oracle.accepts(&case.spell(&path)) {
        let what = format!("the walk has arrived, and accepting is {}", subject.is_accepting());
        return Err(case.broken(LAW, &path, &what));
    }
    for &eos in case.tokens.eos() {
        if !subject.fork().accept(eos) {
            return Err(case.broken(LAW, &path, &format!("token {eos} cannot end the complete text")));
        }
    }
    Ok(true)
}

/// Writes a shortest completion in the longest tokens that the mask allows. Returns `false` if tokens cannot spell it.
fn head_for_the_end(
    case: &Case<'_>,
    subject: &mut impl Subject,
    path: &mut Vec<u32>,
    state: &crate::State,
) -> Result<bool, Broken> {
    if subject.is_accepting() {
        return Ok(true);
    }
    let rest = case.oracle.completion(state).unwrap_or_default();
    let mut at = 0;
    while at < rest.len() {
        let mask = case.look(subject).mask;
        let spelling = case.tokens.prefixes_of(&rest[at..]);
        let Some(&token) = spelling.iter().rev().find(|&&token| mask.contains(token)) else {
            if spelling.is_empty() {
                return Ok(false);
            }
            let what = format!("none of the tokens {spelling:?} is allowed, but they lead to the end");
            return Err(case.broken(LAW, path, &what));
        };
        case.follow(LAW, subject, path, &[token])?;
        path.push(token);
        at += case.tokens.bytes(token).map_or(0, <[u8]>::len);
    }
    Ok(true)
}

/// Decides whether a walk without an allowed token is the vocabulary's fault.
fn stuck(case: &Case<'_>, path: &[u32], state: &crate::State) -> Result<bool, Broken> {
    if !case.tokens.spell_everything() && case.oracle.mask(state, case.tokens).is_empty() {
        return Ok(false);
    }
    Err(case.broken(LAW, path, "no token is allowed and the text is not complete: the walk is stuck"))
}
