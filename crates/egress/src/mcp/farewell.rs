//! Tells a server of the legacy era that nobody waits for a response any more, where a request is given up: its client is gone,
//! or the calls of its agent were stopped. For a modern server the end of the connection is enough.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use toolgate_gate::ports::mount::McpEra;
use toolgate_model::constraint::HostSet;
use toolgate_model::redaction::Redactor;

use super::http::{Endpoint, Session};
use super::inspection::NoRenewal;
use super::message;
use crate::time::now;

/// How long telling a server may take.
pub(crate) const FAREWELL_TIMEOUT: Duration = Duration::from_secs(1);
/// How many cancellations are sent at a time. A client that gives up calls without end must not make the gate send without end.
static FAREWELLS: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(64)));

/// A request that was sent or is about to be. Dropped before it has ended, it tells the server.
pub(crate) struct InFlight<'e, 'a> {
    endpoint: &'e Endpoint<'a>,
    session: &'e Arc<Session>,
    id: u64,
    has_ended: bool,
}

impl<'e, 'a> InFlight<'e, 'a> {
    pub(crate) fn of(endpoint: &'e Endpoint<'a>, session: &'e Arc<Session>, id: u64) -> Self {
        Self { endpoint, session, id, has_ended: session.greeting.era == McpEra::Modern }
    }

    /// There is a response, or a reason why there is none.
    pub(crate) fn end(mut self) {
        self.has_ended = true;
    }
}

impl Drop for InFlight<'_, '_> {
    fn drop(&mut self) {
        if self.has_ended {
            return;
        }
        let (Ok(runtime), Ok(permit)) = (Handle::try_current(), Arc::clone(&FAREWELLS).try_acquire_owned()) else {
            return;
        };
        let Endpoint { url, invocation, adapter, pool, auth_type, deadline, now: time, .. } = *self.endpoint;
        let (client, material) = (Arc::clone(self.endpoint.client), Arc::clone(self.endpoint.material));
        let (url, tool, connection) = (url.clone(), self.endpoint.tool.clone(), self.endpoint.connection.clone());
        let placement = self.endpoint.placement.clone();
        let hosts: Vec<HostSet> = self.endpoint.hosts.iter().map(|hosts| (*hosts).clone()).collect();
        let (session, id) = (Arc::clone(self.session), self.id);
        runtime.spawn(async move {
            let hosts: Vec<&HostSet> = hosts.iter().collect();
            let endpoint = Endpoint {
                client: &client,
                url: &url,
                invocation,
                tool: &tool,
                adapter,
                pool,
                auth_type,
                connection: &connection,
                placement: &placement,
                hosts: &hosts,
                deadline,
                now: time,
                material: &material,
                // The call has ended: a token that is not valid any more is not renewed for this.
                renewal: &NoRenewal,
                traced: None,
                reporter: None,
                questions: None,
            };
            // What the server says to it is shown to nobody.
            let mut redactor = Redactor::none();
            let limit = now() + FAREWELL_TIMEOUT;
            let _ = endpoint.notify(message::cancelled(id), &session, limit, &mut redactor).await;
            drop(permit);
        });
    }
}
