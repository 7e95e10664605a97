//! Turns: what takes a while is done on few threads at the same time.

use std::{fmt::Display, sync::Arc, time::Instant};

use maskwright::{CancelToken, with_cancel};

use crate::{
    error::{ApiError, Result},
    state::{State, Turn},
};

/// Runs something that takes a while where it disturbs nobody: on a thread of its own, and on few of them at the same time. A thread for
/// each of a thousand requests would take its share of the processor from the compiles and from the model, and keep its memory.
pub(crate) async fn aside<T: Send + 'static>(
    state: &State,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    in_turn(state, work).await.map(|(value, _)| value)
}

/// The same for a request that has more to do before the model can begin: it keeps its turn. Of a thousand requests that come at once the first are then with
/// the model while the last still wait, instead of all of them having been cut into tokens and none compiled.
pub(crate) async fn in_turn<T: Send + 'static>(
    state: &State,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<(T, Turn)> {
    let broken =
        |error: &dyn Display| ApiError::internal(format!("internal error, please report it: {error}"));
    let since = Instant::now();
    let place = state.turns.clone().acquire_owned().await.map_err(|error| broken(&error))?;
    let turn = Turn { since, _place: place };
    // Whoever stops waiting asks the work to end. That may take a moment, so the turn goes along.
    let leash = Leash(CancelToken::new());
    let stop = leash.0.clone();
    let work = move || with_cancel(&stop, work).map(|value| (value, turn));
    let result = tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(broken(&error)));
    drop(leash);
    result
}

/// Whoever drops it asks some work to end.
struct Leash(Arc<CancelToken>);

impl Drop for Leash {
    fn drop(&mut self) {
        self.0.cancel();
    }
}
