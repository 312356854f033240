//! A pooled connection for one transaction. It returns to the pool only if nothing is left on it: an abandoned
//! transaction is awaited separately, and a hanging connection is closed.

use std::pin::pin;
use std::time::Duration;

use deadpool_postgres::Object;
use tokio::runtime::Handle;
use tokio::time::timeout;
use tokio_postgres::NoTls;
use tokio_postgres_rustls::MakeRustlsConnect;

/// How long an abandoned statement may take before it is cancelled.
const LAST_STATEMENT: Duration = Duration::from_millis(100);
/// How long the cancellation may take before the connection is closed.
const CANCELLED: Duration = Duration::from_secs(2);

/// A connection that is not in the pool.
pub(super) struct Lease {
    client: Option<Object>,
    tls: Option<MakeRustlsConnect>,
}

impl Lease {
    /// `tls` opens the second connection that cancels a statement on this one.
    pub(super) fn new(client: Object, tls: Option<MakeRustlsConnect>) -> Self {
        Self { client: Some(client), tls }
    }

    /// `None` only after it was returned or closed, when nothing uses it any more.
    pub(super) fn client(&mut self) -> Option<&mut Object> {
        self.client.as_mut()
    }

    /// Gives it back: its transaction has ended.
    pub(super) fn give_back(mut self) {
        drop(self.client.take());
    }

    /// Closes it: the server did not respond in time.
    pub(super) fn close(mut self) {
        self.client.take().map(Object::take);
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let Some(client) = self.client.take() else { return };
        // Abandoned in the middle of a transaction. No other task may wait for the statement that runs there.
        let Ok(runtime) = Handle::try_current() else {
            drop(Object::take(client));
            return;
        };
        let tls = self.tls.take();
        runtime.spawn(async move {
            match end(&client, tls).await {
                Some(()) => drop(client),
                None => drop(Object::take(client)),
            }
        });
    }
}

/// Ends the transaction on a connection; `None` if that fails.
async fn end(client: &Object, tls: Option<MakeRustlsConnect>) -> Option<()> {
    let token = client.cancel_token();
    let mut rollback = pin!(client.simple_query("ROLLBACK"));
    if let Ok(ended) = timeout(LAST_STATEMENT, &mut rollback).await {
        return ended.ok().map(drop);
    }
    let cancelled = async {
        match tls {
            Some(tls) => token.cancel_query(tls).await,
            None => token.cancel_query(NoTls).await,
        }
        .ok()?;
        rollback.await.ok().map(drop)
    };
    timeout(CANCELLED, cancelled).await.ok()?
}
