//! Masks are exact, and tokens are accepted as the mask says.

use super::{Broken, Case, Effort, Look, Rng, Subject, Tally};

/// At every state of a path, every bit of the mask is the oracle's.
pub fn masks_are_exact<S: Subject>(
    case: &Case<'_>,
    fresh: &dyn Fn() -> S,
    rng: &mut Rng,
    effort: &Effort,
) -> Result<Tally, Broken> {
    const LAW: &str = "masks are exact";
    let mut tally = Tally::default();
    for _ in 0..effort.rounds {
        let path = case.path(rng, effort)?;
        let mut subject = fresh();
        let mut state = case.oracle.start();
        for taken in 0..=path.len() {
            let wanted = Look { mask: case.expected(&state), accepting: case.oracle.is_accepting(&state) };
            let got = case.look(&mut subject);
            case.same(LAW, &path[..taken], &wanted, &got, "compared with the oracle")?;
            tally.masks += 1;
            tally.bits += case.tokens.size() as u64;
            if let Some(token) = path.get(taken..=taken) {
                case.follow(LAW, &mut subject, &path[..taken], token)?;
                state = case.oracle.run(&state, &case.spell(token));
            }
        }
        tally.texts += 1;
    }
    Ok(tally)
}

/// A token is accepted if and only if its bit is set; a rejection changes nothing.
///
/// Tokens that end a text are tried as well, and ids without a token.
pub fn accept_follows_the_mask<S: Subject>(
    case: &Case<'_>,
    fresh: &dyn Fn() -> S,
    rng: &mut Rng,
    effort: &Effort,
) -> Result<Tally, Broken> {
    const LAW: &str = "accept follows the mask";
    let mut tally = Tally::default();
    for _ in 0..effort.rounds {
        let whole = case.path(rng, effort)?;
        let path = &whole[..rng.below(whole.len() + 1)];
        let mut subject = fresh();
        case.follow(LAW, &mut subject, &[], path)?;
        let state = case.state_after(path);
        let before = case.look(&mut subject);
        for token in offered(case, &before, rng, effort) {
            tally.accepts += 1;
            let mut tried = subject.fork();
            let accepted = tried.accept(token);
            if accepted != before.mask.contains(token) {
                let what = format!("token {token}: its bit is {}, accept said {accepted}", !accepted);
                return Err(case.broken(LAW, path, &what));
            }
            if !accepted && rng.one_in(16) {
                let when = format!("after token {token} was refused");
                case.same(LAW, path, &before, &case.look(&mut tried), &when)?;
            }
            if let (true, Some(bytes)) = (accepted, case.tokens.bytes(token)) {
                let complete = case.oracle.is_accepting(&case.oracle.run(&state, bytes));
                if tried.is_accepting() != complete {
                    let what = format!("after token {token}: the text is complete ({complete})");
                    return Err(case.broken(LAW, path, &what));
                }
            }
        }
    }
    Ok(tally)
}

/// Returns all tokens, or a sample in which allowed and forbidden ones are balanced.
fn offered(case: &Case<'_>, look: &Look, rng: &mut Rng, effort: &Effort) -> Vec<u32> {
    let size = case.tokens.size() as u32;
    let mut offered: Vec<u32> = if case.tokens.size() <= effort.accepts {
        (0..size).collect()
    } else {
        let allowed: Vec<u32> = look.mask.tokens().collect();
        let half = effort.accepts / 2;
        let mut some: Vec<u32> = (0..half).filter_map(|_| rng.choose(&allowed).copied()).collect();
        some.extend((0..half).map(|_| rng.below(size as usize) as u32));
        some
    };
    offered.extend([size, size + 31, u32::MAX]);
    offered.extend_from_slice(case.tokens.eos());
    offered
}
