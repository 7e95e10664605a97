//! Connections: accepts them, closes slow ones, and shuts down gracefully.
//!
//! ```text
//! accept ─▶ a task for each connection ─▶ router
//!    ▲            │ headers in time, or the connection is closed
//!    └─ a permit ◀┘
//! stop ─▶ no more connections, no more requests ─▶ answers continue until they end or the time is over
//! ```

use std::{io, sync::Arc, time::Duration};

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
    service::TowerToHyperService,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    time,
};

use crate::{patient::Patient, settings::Settings};

/// How long to wait if connections cannot be accepted, for example for lack of file handles.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// Serves until the stop signal, and then until all answers are finished or the timeout expires.
pub(crate) async fn serve(
    router: Router,
    listener: TcpListener,
    settings: Settings,
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    let permits = Arc::new(Semaphore::new(settings.max_connections.max(1)));
    let graceful = GracefulShutdown::new();
    let mut stop = std::pin::pin!(stop);
    loop {
        let accepted = tokio::select! {
            accepted = accept(&listener, &permits) => accepted,
            () = &mut stop => break,
        };
        let Some((stream, permit)) = accepted else { continue };
        let stream = Patient::new(stream, settings.send_timeout);
        let mut builder = http1::Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(settings.receive_timeout);
        let service = TowerToHyperService::new(router.clone());
        let connection = graceful.watch(builder.serve_connection(TokioIo::new(stream), service));
        tokio::spawn(async move {
            // A broken connection is not an error of the server.
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection ended early");
            }
            drop(permit);
        });
    }
    drop(listener);
    tracing::info!(connections = graceful.count(), "stopping");
    if time::timeout(settings.stop_timeout, graceful.shutdown()).await.is_err() {
        tracing::warn!("answers were cut off: they took longer than the time to stop");
    }
    Ok(())
}

async fn accept(
    listener: &TcpListener,
    permits: &Arc<Semaphore>,
) -> Option<(TcpStream, OwnedSemaphorePermit)> {
    // The semaphore is never closed.
    let permit = permits.clone().acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, _)) => {
            // Tokens are small packets and should be sent at once.
            let _ = stream.set_nodelay(true);
            Some((stream, permit))
        }
        Err(error) => {
            tracing::warn!(%error, "a connection could not be accepted");
            time::sleep(ACCEPT_RETRY).await;
            None
        }
    }
}
