//! Mounted MCP servers: the gate's source for their tools, over streamable HTTP and to processes of this machine, in both
//! eras of the protocol. Messages are passed on as bytes; what servers send is untrusted.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use serde_json::{Map, Value};
use tokio::sync::Semaphore;
use tokio::time::Instant;
use toolgate_gate::call::{Admitted, CallCredential};
use toolgate_gate::ports::clock::Clock;
use toolgate_gate::ports::mount::MountWatch;
use toolgate_gate::ports::source::{Access, Execution, FailureKind, Reservation, Source, SourceFailure};
use toolgate_gate::{Action, Refusal};
use toolgate_model::credential::ServiceName;
use toolgate_model::principal::TenantId;
use toolgate_model::redaction::Redactor;
use toolgate_model::service::McpMapping;

use self::http::Endpoint;
use self::listing::{Listing, Peer};
use self::message::Request;
use self::reporter::Reporter;
use self::result::{Raw, conclude, malformed};
use self::servers::{HttpPeer, ServerKey, Servers};
use self::stdio::{ProcessPeer, Processes};
use crate::adapter::not_executable;
use crate::client::GuardedClient;
use crate::connectors::{Connectors, LARGE, reserve};
use crate::offload::{Late, Offload};
use crate::time::deadline_after;

pub use self::stdio::StdioMount;

mod events;
mod greeting;
mod headers;
mod http;
mod inspection;
mod listing;
mod message;
mod reporter;
mod result;
mod servers;
mod stdio;

#[cfg(test)]
mod tests;

/// Calls mounted MCP servers.
pub struct McpMounts {
    client: Arc<GuardedClient>,
    clock: Arc<dyn Clock>,
    places: Arc<Semaphore>,
    most: usize,
    offload: Arc<Offload>,
    servers: Servers,
    processes: Processes,
    next_id: AtomicU64,
    watch: Arc<dyn MountWatch>,
}

impl McpMounts {
    /// Over the client of these connectors, within the same number of calls in flight; with the processes that the
    /// operator has configured.
    pub fn beside(connectors: &Connectors, processes: Vec<StdioMount>, watch: Arc<dyn MountWatch>) -> Self {
        Self {
            client: Arc::clone(&connectors.client),
            clock: Arc::clone(&connectors.clock),
            places: Arc::clone(&connectors.places),
            most: connectors.most,
            offload: Arc::clone(&connectors.offload),
            servers: Servers::default(),
            processes: Processes::new(processes, Arc::clone(&watch)),
            next_id: AtomicU64::new(1),
            watch,
        }
    }

    fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }
}

#[async_trait]
impl Source for McpMounts {
    fn executes(&self, action: Action) -> bool {
        action == Action::Mcp
    }

    fn reserve(&self) -> Result<Reservation, Refusal> {
        reserve(&self.places, self.most)
    }

    async fn execute(&self, call: &Admitted, access: Option<Access<'_>>) -> Execution {
        let deadline = deadline_after(call.deadline());
        // INVARIANT: the gate passes a mapping and the credential of the call.
        let (Some(mapping), Some((used, access))) = (&call.definition().mcp, call.credential().zip(access)) else {
            return Err(not_executable("the tool has no `mcp` mapping, or its credential's metadata is wrong"));
        };
        let concluded = match call.request() {
            Some(_) => self.call_server(call, mapping, used, access, deadline).await,
            None => self.call_process(call, mapping, &used, access, deadline).await,
        };
        let response = concluded?;
        check_result(call, mapping, &response.result).map_err(|reason| {
            let failure = malformed(response.http_status, &reason);
            SourceFailure { kind: FailureKind::Service, ..failure }
        })?;
        Ok(response)
    }
}

impl McpMounts {
    async fn call_server(
        &self,
        call: &Admitted,
        mapping: &McpMapping,
        used: CallCredential<'_>,
        access: Access<'_>,
        deadline: Instant,
    ) -> Execution {
        let Some((url, body)) = call.request().and_then(|request| Some((&request.url, request.body.as_ref()?))) else {
            return Err(not_executable("the call has no request"));
        };
        let mut redactor = access.redactor;
        let (invocation, hosts) = (call.invocation(), call.allowed_hosts());
        let sink = |progress| call.report(progress);
        let reporter = Reporter::new(&sink);
        let pool = used.credential.id.into();
        let endpoint = Endpoint {
            client: &self.client,
            url,
            invocation: invocation.id,
            tool: call.tool(),
            adapter: used.adapter,
            pool,
            auth_type: used.credential.auth_type,
            connection: used.connection,
            placement: used.placement,
            hosts: &hosts,
            deadline,
            now: self.clock.now(),
            material: &access.material,
            renewal: access.renewal,
            traced: call.traced(),
            reporter: Some(&reporter).filter(|_| call.is_observed()),
        };
        let server = self.servers.of(ServerKey { tenant: &invocation.tenant, url, pool });
        let mut request = Request::rendered(mapping, Cow::Borrowed(&body.bytes), call.parameters());
        request.observed = call.is_observed();
        request.mirrored = call.parameters().as_object().map(|arguments| (call.mirrored(), arguments));
        let ids = || self.next_id();
        let announced = || {
            if let Some(service) = &invocation.service {
                self.watch.changed(&invocation.tenant, service);
            }
        };
        let mut peer = HttpPeer {
            endpoint: &endpoint,
            server: &server,
            agent: Some(&invocation.agent),
            redactor: &mut redactor,
            ids: &ids,
            announced: &announced,
        };
        let raw = self.ask(call, mapping, (&server.listing, deadline), &mut peer, &request).await;
        self.conclude(call, mapping, raw, redactor, deadline).await
    }

    async fn call_process(
        &self,
        call: &Admitted,
        mapping: &McpMapping,
        used: &CallCredential<'_>,
        access: Access<'_>,
        deadline: Instant,
    ) -> Execution {
        let nothing = Map::new();
        let message = mapping.message(call.parameters().as_object().unwrap_or(&nothing));
        let message =
            message.map_err(|unknown| not_executable(format!("`{unknown}` is no parameter of the method")))?;
        let invocation = call.invocation();
        let service = invocation.service.as_ref().map(ServiceName::as_str).unwrap_or_default();
        let ids = || self.next_id();
        let sink = |progress| call.report(progress);
        let reporter = Reporter::new(&sink);
        let starting = self.processes.of(
            (&invocation.tenant, service, Some(&invocation.agent)),
            (Some(used.credential), &access.material),
            deadline,
            &ids,
        );
        let raw = match starting.await {
            Ok(process) => {
                let mut request = Request::rendered(mapping, Cow::Owned(message), call.parameters());
                request.observed = call.is_observed();
                let mut peer = ProcessPeer {
                    process: &process,
                    agent: Some(&invocation.agent),
                    deadline,
                    traced: call.traced(),
                    reporter: Some((&reporter, &access.redactor)).filter(|_| call.is_observed()),
                    ids: &ids,
                };
                self.ask(call, mapping, (process.listing(), deadline), &mut peer, &request).await
            }
            Err(failure) => Err(failure),
        };
        self.conclude(call, mapping, raw, access.redactor, deadline).await
    }

    /// Sends a request, unless the server lists another definition than the accepted one.
    async fn ask(
        &self,
        call: &Admitted,
        mapping: &McpMapping,
        (listing, deadline): (&Listing, Instant),
        peer: &mut dyn Peer,
        request: &Request<'_>,
    ) -> Result<Raw, SourceFailure> {
        if let Err(differs) = listing.check(mapping, peer, deadline).await? {
            let invocation = call.invocation();
            if let Some(service) = invocation.service.as_ref().filter(|_| differs.is_news) {
                self.tell_changed(&invocation.tenant, service);
            }
            return Err(differs.failure);
        }
        peer.ask(request).await
    }

    fn tell_changed(&self, tenant: &TenantId, service: &ServiceName) {
        tracing::warn!(%tenant, %service, "a mounted server has changed a tool since it was accepted");
        self.watch.changed(tenant, service);
    }

    async fn conclude(
        &self,
        call: &Admitted,
        mapping: &McpMapping,
        raw: Result<Raw, SourceFailure>,
        redactor: Redactor,
        deadline: Instant,
    ) -> Execution {
        let raw = raw.map_err(|mut failure| {
            redactor.redact_text(&mut failure.reason);
            failure
        })?;
        let rule = mapping.hidden_characters;
        if raw.message.len() <= LARGE {
            return conclude(&raw, &redactor, rule);
        }
        // A large result, above all one made to be hard to read, must not keep other calls waiting.
        let invocation = call.invocation();
        let status = raw.http_status;
        let work = move || conclude(&raw, &redactor, rule);
        self.offload.run((&invocation.tenant, &invocation.agent), deadline, work).await.unwrap_or_else(|late| {
            let failure = malformed(status, "the server's result was not redacted in time; ask for less");
            Err(SourceFailure { timed_out: late == Late::Deadline, ..failure })
        })
    }
}

/// Checks the structured content of a result against the schema that was accepted with the tool.
fn check_result(call: &Admitted, mapping: &McpMapping, result: &Value) -> Result<(), String> {
    if call.definition().returns.is_none() || mapping.name.is_none() {
        return Ok(());
    }
    let Some(structured) = result.get("structuredContent") else {
        return Err("the server's result has no structured content, which the tool declares".to_owned());
    };
    call.check_result(structured)
        .map_err(|_| "the server's structured content does not have the form that the tool declares".to_owned())
}
