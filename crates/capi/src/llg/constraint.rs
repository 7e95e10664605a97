//! `LlgConstraint`: the older form of a matcher, in which a mask and a token take turns.

use core::ffi::c_char;
use core::ptr;

use maskwright::TokenId;

use super::ConstraintInit;
use super::matcher::Matcher;
use crate::guard::{catch, discard};
use crate::pointer::{Given, Mut, Out, Owned, Ref};
use crate::status::Failure;

/// `LlgConstraint`.
#[derive(Debug)]
pub struct Constraint {
    matcher: Matcher,
    /// Whether forced tokens are wanted.
    forces: bool,
    /// Whether it was said that the text is over.
    has_stopped: bool,
    /// The tokens of the last commit.
    committed: Vec<u32>,
}

/// `LlgMaskResult`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct MaskResult {
    sample_mask: *const u32,
    temperature: f32,
    is_stop: bool,
}

/// `LlgCommitResult`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct CommitResult {
    tokens: *const u32,
    n_tokens: u32,
    is_stop: bool,
}

/// A constraint from a Lark grammar, or a list of grammars in JSON.
#[unsafe(no_mangle)]
pub extern "C" fn llg_new_constraint(
    init: Ref<'_, ConstraintInit<'_>>,
    llguidance: Ref<'_, c_char>,
) -> Given<Constraint> {
    Constraint::give(init, || Ok(("llguidance", llguidance.c_text("llguidance")?)))
}

/// A constraint from a regular expression.
#[unsafe(no_mangle)]
pub extern "C" fn llg_new_constraint_regex(
    init: Ref<'_, ConstraintInit<'_>>,
    regex: Ref<'_, c_char>,
) -> Given<Constraint> {
    Constraint::give(init, || Ok(("regex", regex.c_text("regex")?)))
}

/// A constraint from a JSON Schema.
#[unsafe(no_mangle)]
pub extern "C" fn llg_new_constraint_json(
    init: Ref<'_, ConstraintInit<'_>>,
    json_schema: Ref<'_, c_char>,
) -> Given<Constraint> {
    Constraint::give(init, || Ok(("json_schema", json_schema.c_text("json_schema")?)))
}

/// A constraint from a Lark grammar.
#[unsafe(no_mangle)]
pub extern "C" fn llg_new_constraint_lark(
    init: Ref<'_, ConstraintInit<'_>>,
    lark: Ref<'_, c_char>,
) -> Given<Constraint> {
    Constraint::give(init, || Ok(("lark", lark.c_text("lark")?)))
}

/// A constraint of a type that is named.
#[unsafe(no_mangle)]
pub extern "C" fn llg_new_constraint_any(
    init: Ref<'_, ConstraintInit<'_>>,
    constraint_type: Ref<'_, c_char>,
    data: Ref<'_, c_char>,
) -> Given<Constraint> {
    Constraint::give(init, || Ok((constraint_type.c_text("constraint_type")?, data.c_text("data")?)))
}

/// The error, or null.
#[unsafe(no_mangle)]
pub extern "C" fn llg_get_error(cc: Ref<'_, Constraint>) -> *const c_char {
    match cc.get("cc") {
        Ok(constraint) => constraint.matcher.error_text(),
        Err(_) => c"cc is null".as_ptr(),
    }
}

/// 0: temperatures in grammars are read and do nothing.
#[unsafe(no_mangle)]
pub extern "C" fn llg_get_temperature(_cc: Ref<'_, Constraint>) -> f32 {
    0.0
}

/// Whether it was said that the text is over, or there is an error.
#[unsafe(no_mangle)]
pub extern "C" fn llg_is_stopped(cc: Ref<'_, Constraint>) -> bool {
    cc.get("cc")
        .map_or(true, |constraint| constraint.has_stopped || !constraint.matcher.error_text().is_null())
}

/// Works the mask out, or says that the text is over.
#[unsafe(no_mangle)]
pub extern "C" fn llg_compute_mask(cc: Mut<'_, Constraint>, res_p: Out<'_, MaskResult>) -> i32 {
    run(cc, |constraint| {
        let result = res_p.get("res_p")?;
        let (sample_mask, is_stop) = constraint.mask()?;
        result.write(MaskResult { sample_mask, temperature: 0.0, is_stop });
        Ok(())
    })
}

/// Takes the token that was sampled, and tells which tokens to append.
#[unsafe(no_mangle)]
pub extern "C" fn llg_commit_token(cc: Mut<'_, Constraint>, token: u32, res_p: Out<'_, CommitResult>) -> i32 {
    run(cc, |constraint| {
        let result = res_p.get("res_p")?;
        constraint.commit(TokenId(token))?;
        let tokens = &constraint.committed;
        let first = if tokens.is_empty() { ptr::null() } else { tokens.as_ptr() };
        result.write(CommitResult {
            tokens: first,
            n_tokens: tokens.len() as u32,
            is_stop: constraint.has_stopped,
        });
        Ok(())
    })
}

/// An independent constraint at the same place.
#[unsafe(no_mangle)]
pub extern "C" fn llg_clone_constraint(cc: Ref<'_, Constraint>) -> Given<Constraint> {
    let copy = catch(|| {
        let Constraint { matcher, forces, has_stopped, .. } = cc.get("cc")?;
        let (forces, has_stopped) = (*forces, *has_stopped);
        Ok(Constraint { matcher: matcher.copy(), forces, has_stopped, committed: Vec::new() })
    });
    Given::new(copy.unwrap_or_else(|failure| Constraint::of(Matcher::failed(&failure), false)))
}

/// Gives a constraint back.
#[unsafe(no_mangle)]
pub extern "C" fn llg_free_constraint(cc: Owned<Constraint>) {
    discard(cc);
}

/// An empty text: there are no logs.
#[unsafe(no_mangle)]
pub extern "C" fn llg_flush_logs(_cc: Mut<'_, Constraint>) -> *const c_char {
    c"".as_ptr()
}

impl Constraint {
    fn of(matcher: Matcher, forces: bool) -> Self {
        Self { matcher, forces, has_stopped: false, committed: Vec::new() }
    }

    fn give<'c>(
        init: Ref<'_, ConstraintInit<'_>>,
        texts: impl FnOnce() -> Result<(&'c str, &'c str), Failure>,
    ) -> Given<Self> {
        let forces = init.get("init").is_ok_and(|init| init.ff_tokens_ok != 0);
        Given::new(Self::of(Matcher::new(init, texts), forces))
    }

    /// The mask, or that the text is over.
    fn mask(&mut self) -> Result<(*const u32, bool), Failure> {
        self.has_stopped = self.matcher.is_stopped();
        if self.has_stopped {
            return Ok((ptr::null(), true));
        }
        Ok((self.matcher.compute_mask()?.as_ptr(), false))
    }

    /// Takes a token and, if they are wanted, those that are forced behind it. Where the text is over nothing is taken.
    fn commit(&mut self, token: TokenId) -> Result<(), Failure> {
        self.committed.clear();
        if self.has_stopped {
            return Ok(());
        }
        self.matcher.consume(token)?;
        self.committed.push(token.0);
        if self.forces {
            for token in self.matcher.forced()? {
                self.matcher.consume(token)?;
                self.committed.push(token.0);
            }
        }
        Ok(())
    }
}

fn run(cc: Mut<'_, Constraint>, body: impl FnOnce(&mut Constraint) -> Result<(), Failure>) -> i32 {
    let Ok(constraint) = cc.get("cc") else { return -1 };
    if !constraint.matcher.error_text().is_null() {
        return -1;
    }
    match catch(|| body(constraint)) {
        Ok(()) => 0,
        Err(failure) => {
            constraint.matcher.fail(&failure);
            -1
        }
    }
}
