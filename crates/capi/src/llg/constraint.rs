//! `LlgConstraint`: the older interface of a matcher, in which masks and tokens alternate.

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
    /// Whether the caller wants forced tokens.
    forces: bool,
    /// Whether the end of the text was reported.
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

/// Creates a constraint from a Lark grammar, or a list of grammars in JSON.
#[unsafe(no_mangle)]
pub extern "C" fn llg_new_constraint(
    init: Ref<'_, ConstraintInit<'_>>,
    llguidance: Ref<'_, c_char>,
) -> Given<Constraint> {
    Constraint::give(init, || Ok(("llguidance", llguidance.c_text("llguidance")?)))
}

/// Creates a constraint from a regular expression.
#[unsafe(no_mangle)]
pub extern "C" fn llg_new_constraint_regex(
    init: Ref<'_, ConstraintInit<'_>>,
    regex: Ref<'_, c_char>,
) -> Given<Constraint> {
    Constraint::give(init, || Ok(("regex", regex.c_text("regex")?)))
}

/// Creates a constraint from a JSON Schema.
#[unsafe(no_mangle)]
pub extern "C" fn llg_new_constraint_json(
    init: Ref<'_, ConstraintInit<'_>>,
    json_schema: Ref<'_, c_char>,
) -> Given<Constraint> {
    Constraint::give(init, || Ok(("json_schema", json_schema.c_text("json_schema")?)))
}

/// Creates a constraint from a Lark grammar.
#[unsafe(no_mangle)]
pub extern "C" fn llg_new_constraint_lark(
    init: Ref<'_, ConstraintInit<'_>>,
    lark: Ref<'_, c_char>,
) -> Given<Constraint> {
    Constraint::give(init, || Ok(("lark", lark.c_text("lark")?)))
}

/// Creates a constraint of the given type.
#[unsafe(no_mangle)]
pub extern "C" fn llg_new_constraint_any(
    init: Ref<'_, ConstraintInit<'_>>,
    constraint_type: Ref<'_, c_char>,
    data: Ref<'_, c_char>,
) -> Given<Constraint> {
    Constraint::give(init, || Ok((constraint_type.c_text("constraint_type")?, data.c_text("data")?)))
}

/// Returns the error, or null.
#[unsafe(no_mangle)]
pub extern "C" fn llg_get_error(cc: Ref<'_, Constraint>) -> *const c_char {
    match cc.get("cc") {
        Ok(constraint) => constraint.matcher.error_text(),
        Err(_) => c"cc is null".as_ptr(),
    }
}

/// Returns 0: temperatures in grammars are read but have no effect.
#[unsafe(no_mangle)]
pub extern "C" fn llg_get_temperature(_cc: Ref<'_, Constraint>) -> f32 {
    0.0
}

/// Returns whether the end of the text was reported, or there is an error.
#[unsafe(no_mangle)]
pub extern "C" fn llg_is_stopped(cc: Ref<'_, Constraint>) -> bool {
    cc.get("cc")
        .map_or(true, |constraint| constraint.has_stopped || !constraint.matcher.error_text().is_null())
}

/// Computes the mask, or reports the end of the text.
#[unsafe(no_mangle)]
pub extern "C" fn llg_compute_mask(cc: Mut<'_, Constraint>, res_p: Out<'_, MaskResult>) -> i32 {
    run(cc, |constraint| {
        let result = res_p.get("res_p")?;
        let (sample_mask, is_stop) = constraint.mask()?;
        result.write(MaskResult { sample_mask, temperature: 0.0, is_stop });
        Ok(())
    })
}

/// Accepts the sampled token, and returns the tokens to append.
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

/// Creates an independent constraint in the same state.
#[unsafe(no_mangle)]
pub extern "C" fn llg_clone_constraint(cc: Ref<'_, Constraint>) -> Given<Constraint> {
    let copy = catch(|| {
        let Constraint { matcher, forces, has_stopped, .. } = cc.get("cc")?;
        let (forces, has_stopped) = (*forces, *has_stopped);
        Ok(Constraint { matcher: matcher.copy(), forces, has_stopped, committed: Vec::new() })
    });
    Given::new(copy.unwrap_or_else(|failure| Constraint::of(Matcher::failed(&failure), false)))
}

/// Frees a constraint.
#[unsafe(no_mangle)]
pub extern "C" fn llg_free_constraint(cc: Owned<Constraint>) {
    discard(cc);
}

/// Returns an empty text, because there are no logs.
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

    /// Returns the mask, or null and `true` at the end of the text.
    fn mask(&mut self) -> Result<(*const u32, bool), Failure> {
        self.has_stopped = self.matcher.is_stopped();
        if self.has_stopped {
            return Ok((ptr::null(), true));
        }
        Ok((self.matcher.compute_mask()?.as_ptr(), false))
    }

    /// Accepts a token and, if they are wanted, the tokens that are forced after it. After the end of the text nothing
    /// is accepted.
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
