//! Different ways to the same state: other segmentations, rollback, fork, reset.

use super::{Broken, Case, Effort, Look, Rng, Subject, Tally};
use crate::generate;

/// An accepted text is accepted and ends alike in any segmentation. Bytes that no text begins with are rejected as a
/// whole, without side effects.
pub fn segmentation_is_free<S: Subject>(
    case: &Case<'_>,
    fresh: &dyn Fn() -> S,
    rng: &mut Rng,
    effort: &Effort,
) -> Result<Tally, Broken> {
    const LAW: &str = "segmentation is free";
    const CUTS: usize = 4;
    let mut tally = Tally::default();
    for _ in 0..effort.rounds {
        let text = case.text(rng, effort)?;
        let mut whole = fresh();
        refuse_unless(whole.accept_bytes(&text), case, LAW, &text, "all bytes at once were refused")?;
        let end = case.look(&mut whole);
        refuse_unless(end.accepting, case, LAW, &text, "the text is complete, but not accepting")?;
        for _ in 0..CUTS {
            let (path, complete) = case.cut(rng, &text);
            if complete {
                let mut subject = fresh();
                case.follow(LAW, &mut subject, &[], &path)?;
                case.same(LAW, &path, &end, &case.look(&mut subject), "compared with all bytes at once")?;
            }
            let mut subject = fresh();
            let pieces = feed_pieces(&mut subject, rng, &text);
            let refused = format!("the text in pieces was refused: {pieces:?}");
            refuse_unless(pieces.is_ok(), case, LAW, &text, &refused)?;
            case.same(LAW, &path, &end, &case.look(&mut subject), &format!("in pieces {pieces:?}"))?;
        }
        check_mistake(LAW, case, fresh, &generate::mutate(rng, &text))?;
        tally.texts += 1;
    }
    Ok(tally)
}

/// Feeds a text in random pieces. Returns the lengths of all of them, or as an error the lengths up to the rejected
/// one.
fn feed_pieces(subject: &mut impl Subject, rng: &mut Rng, text: &[u8]) -> Result<Vec<usize>, Vec<usize>> {
    let (mut lengths, mut at) = (Vec::new(), 0);
    while at < text.len() {
        let length = 1 + rng.below((text.len() - at).min(5));
        lengths.push(length);
        if !subject.accept_bytes(&text[at..at + length]) {
            return Err(lengths);
        }
        at += length;
    }
    Ok(lengths)
}

/// Checks that bytes are accepted if and only if some text begins with them.
fn check_mistake<S: Subject>(
    law: &str,
    case: &Case<'_>,
    fresh: &dyn Fn() -> S,
    bytes: &[u8],
) -> Result<(), Broken> {
    let mut subject = fresh();
    let before = case.look(&mut subject);
    let (accepted, viable) = (subject.accept_bytes(bytes), case.oracle.is_prefix(bytes));
    let what = format!("some text begins with these bytes ({viable}), but accept_bytes said {accepted}");
    refuse_unless(accepted == viable, case, law, bytes, &what)?;
    if !accepted {
        let when = format!("after \"{}\" was refused", bytes.escape_ascii());
        case.same(law, &[], &before, &case.look(&mut subject), &when)?;
    }
    Ok(())
}

fn refuse_unless(holds: bool, case: &Case<'_>, law: &str, text: &[u8], what: &str) -> Result<(), Broken> {
    if holds {
        Ok(())
    } else {
        Err(case.broken(law, &[], &format!("given the bytes \"{}\": {what}", text.escape_ascii())))
    }
}

/// Taking tokens back restores the state before them, any number of times.
pub fn rollback_is_replay<S: Subject>(
    case: &Case<'_>,
    fresh: &dyn Fn() -> S,
    rng: &mut Rng,
    effort: &Effort,
) -> Result<Tally, Broken> {
    const LAW: &str = "rollback is replay";
    const JUMPS: usize = 6;
    let mut tally = Tally::default();
    for _ in 0..effort.rounds {
        let path = case.path(rng, effort)?;
        let mut subject = fresh();
        let looks = looks_along(LAW, case, &mut subject, &path)?;
        let mut at = path.len();
        for _ in 0..JUMPS {
            let back = rng.below(at + 1);
            if subject.rollback(at + 1) {
                let what = format!("{} tokens were taken back, but there were only {at}", at + 1);
                return Err(case.broken(LAW, &path[..at], &what));
            }
            if !subject.rollback(back) {
                return Err(case.broken(LAW, &path[..at], &format!("rollback({back}) was refused")));
            }
            at -= back;
            case.same(LAW, &path[..at], &looks[at], &case.look(&mut subject), &format!("rollback({back})"))?;
            let on = at + rng.below(path.len() - at + 1);
            case.follow(LAW, &mut subject, &path[..at], &path[at..on])?;
            at = on;
            case.same(LAW, &path[..at], &looks[at], &case.look(&mut subject), "the same tokens again")?;
        }
        tally.texts += 1;
    }
    Ok(tally)
}

/// Follows a path and records every state, including the first and the last.
fn looks_along(
    law: &str,
    case: &Case<'_>,
    subject: &mut impl Subject,
    path: &[u32],
) -> Result<Vec<Look>, Broken> {
    let mut looks = vec![case.look(subject)];
    for (i, token) in path.chunks(1).enumerate() {
        case.follow(law, subject, &path[..i], token)?;
        looks.push(case.look(subject));
    }
    Ok(looks)
}

/// A fork behaves as its original would, forwards and backwards, and neither sees what the other does.
pub fn fork_is_a_copy<S: Subject>(
    case: &Case<'_>,
    fresh: &dyn Fn() -> S,
    rng: &mut Rng,
    effort: &Effort,
) -> Result<Tally, Broken> {
    const LAW: &str = "fork is a copy";
    let mut tally = Tally::default();
    for _ in 0..effort.rounds {
        let path = case.path(rng, effort)?;
        let at = rng.below(path.len() + 1);
        let mut plain = fresh();
        let looks = looks_along(LAW, case, &mut plain, &path)?;
        let mut original = fresh();
        case.follow(LAW, &mut original, &[], &path[..at])?;
        let mut fork = original.fork();
        case.same(LAW, &path[..at], &looks[at], &case.look(&mut fork), "a new fork")?;
        case.follow(LAW, &mut fork, &path[..at], &path[at..])?;
        let moved = case.look(&mut original);
        case.same(LAW, &path[..at], &looks[at], &moved, "the original, after its fork went on")?;
        if !original.rollback(at) {
            return Err(case.broken(
                LAW,
                &path[..at],
                &format!("rollback({at}) of the original was refused"),
            ));
        }
        let end = case.look(&mut fork);
        case.same(LAW, &path, &looks[path.len()], &end, "the fork, after its original was taken back")?;
        case.follow(LAW, &mut original, &[], &path)?;
        if !fork.rollback(path.len()) {
            return Err(case.broken(LAW, &path, "the fork cannot be taken back behind where it was made"));
        }
        case.same(LAW, &[], &looks[0], &case.look(&mut fork), "the fork, taken back to the beginning")?;
        let end = case.look(&mut original);
        case.same(LAW, &path, &looks[path.len()], &end, "the original, after its fork was taken back")?;
        tally.texts += 1;
    }
    Ok(tally)
}

/// After a reset nothing of the earlier state remains: neither masks nor history.
pub fn reset_is_fresh<S: Subject>(
    case: &Case<'_>,
    fresh: &dyn Fn() -> S,
    rng: &mut Rng,
    effort: &Effort,
) -> Result<Tally, Broken> {
    const LAW: &str = "reset is fresh";
    let mut tally = Tally::default();
    for _ in 0..effort.rounds {
        let (path, other) = (case.path(rng, effort)?, case.path(rng, effort)?);
        let looks = looks_along(LAW, case, &mut fresh(), &path)?;
        let mut subject = fresh();
        case.follow(LAW, &mut subject, &[], &other[..rng.below(other.len() + 1)])?;
        subject.reset();
        if subject.rollback(1) {
            return Err(case.broken(LAW, &[], "a token from before the reset could be taken back"));
        }
        let again = looks_along(LAW, case, &mut subject, &path)?;
        for (taken, (wanted, got)) in looks.iter().zip(&again).enumerate() {
            case.same(LAW, &path[..taken], wanted, got, &format!("reset after {other:?}"))?;
        }
        tally.texts += 1;
    }
    Ok(tally)
}
