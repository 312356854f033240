//! A pooled connection for one transaction. It goes back to the pool only when nothing is left on it: what was abandoned is
//! waited for apart, and what hangs is closed.

use std::time::Duration;

use deadpool_postgres::Object;
use tokio::runtime::Handle;

/// How long what was abandoned may take to end before its connection is closed.
const LAST_STATEMENT: Duration = Duration::from_secs(2);

/// A connection that is not in the pool.
pub(super) struct Lease(Option<Object>);

impl Lease {
    pub(super) fn new(client: Object) -> Self {
        Self(Some(client))
    }

    /// `None` only once it was given back or closed, after which nobody has it.
    pub(super) fn client(&mut self) -> Option<&mut Object> {
        self.0.as_mut()
    }

    /// Gives it back: its transaction has ended.
    pub(super) fn give_back(mut self) {
        drop(self.0.take());
    }

    /// Closes it: the server did not respond in time.
    pub(super) fn close(mut self) {
        self.0.take().map(Object::take);
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let Some(client) = self.0.take() else { return };
        // Abandoned in the middle of a transaction. Nobody else may wait for the statement that is running there.
        let Ok(runtime) = Handle::try_current() else {
            drop(Object::take(client));
            return;
        };
        runtime.spawn(async move {
            match tokio::time::timeout(LAST_STATEMENT, client.simple_query("ROLLBACK")).await {
                Ok(Ok(_)) => drop(client),
                _ => drop(Object::take(client)),
            }
        });
    }
}
