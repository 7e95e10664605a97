//! Turns: limit the number of threads for slow work.

use std::{fmt::Display, sync::Arc, time::Instant};

use maskwright::{CancelToken, with_cancel};

use crate::{
    error::{ApiError, Result},
    state::{State, Turn},
};

/// Runs slow work on a separate thread, of which only a few run at the same time. A thread for each of a thousand
/// requests would take processor time from compilations and from the model, and keep its memory.
pub(crate) async fn aside<T: Send + 'static>(
    state: &State,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    in_turn(state, work).await.map(|(value, _)| value)
}

/// Does the same for a request that has more to do before the model can begin, and returns its turn. If a thousand
/// requests arrive at once, the first ones then reach the model while the last ones still wait, instead of all being
/// tokenized and none compiled.
pub(crate) async fn in_turn<T: Send + 'static>(
    state: &State,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<(T, Turn)> {
    let broken =
        |error: &dyn Display| ApiError::internal(format!("internal error, please report it: {error}"));
    let since = Instant::now();
    let place = state.turns.clone().acquire_owned().await.map_err(|error| broken(&error))?;
    let turn = Turn { since, _place: place };
    // If the caller stops waiting, the work is cancelled. That may take a moment, so the turn moves along.
    let cancel_on_drop = CancelOnDrop(CancelToken::new());
    let stop = cancel_on_drop.0.clone();
    let work = move || with_cancel(&stop, work).map(|value| (value, turn));
    let result = tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(broken(&error)));
    drop(cancel_on_drop);
    result
}

/// Cancels some work on drop.
struct CancelOnDrop(Arc<CancelToken>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}
