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
use toolgate_gate::ports::client_link::ClientLink;
use toolgate_gate::ports::clock::Clock;
use toolgate_gate::ports::mount::{MessageGuard, MountSessions, MountWatch};
use toolgate_gate::ports::source::{Access, Execution, FailureKind, Reservation, Source, SourceFailure};
use toolgate_gate::{Action, Refusal};
use toolgate_model::client_input::InputCapabilities;
use toolgate_model::credential::ServiceName;
use toolgate_model::invocation::Invocation;
use toolgate_model::principal::TenantId;
use toolgate_model::redaction::Redactor;
use toolgate_model::service::McpMapping;

use self::guarded::GuardedPeer;
use self::http::Endpoint;
use self::listing::{Listing, Peer};
use self::message::Request;
use self::questions::Questions;
use self::reporter::Reporter;
use self::result::{Raw, conclude, malformed};
use self::rounds::{ROUNDS, Rounds};
use self::servers::{HttpPeer, PeerUser, ServerKey, Servers};
use self::stdio::{CallListener, ProcessPeer, Processes};
use crate::adapter::not_executable;
use crate::client::GuardedClient;
use crate::connectors::{Connectors, LARGE, reserve};
use crate::offload::{Late, Offload};
use crate::time::deadline_after;

pub use self::stdio::StdioMount;

mod greeting;
mod guarded;
mod headers;
mod http;
mod incoming;
mod input;
mod inspection;
mod listing;
mod message;
mod pruning;
mod questions;
mod reporter;
mod result;
mod rounds;
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
    /// Records the state that servers keep for principals.
    sessions: Arc<dyn MountSessions>,
}

impl McpMounts {
    /// Over the client of these connectors, within the same number of calls in flight; with the processes that the
    /// operator has configured.
    pub fn beside(
        connectors: &Connectors,
        processes: Vec<StdioMount>,
        watch: Arc<dyn MountWatch>,
        sessions: Arc<dyn MountSessions>,
    ) -> Self {
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
            sessions,
        }
    }

    /// The principal of a call, for whom its server may keep state.
    fn user_of<'a>(&'a self, call: &'a Admitted, guard: &'a dyn MessageGuard) -> Result<PeerUser<'a>, SourceFailure> {
        let Invocation { tenant, agent, service, .. } = call.invocation();
        // INVARIANT: tools of mounted servers belong to a service.
        let service = service.as_ref().ok_or_else(|| not_executable("the tool belongs to no service"))?;
        Ok(PeerUser { tenant, service, principal: Some(agent), guard, sessions: &*self.sessions })
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
        let questions = access.client.map(|client| Questions::new(client, mapping.hidden_characters));
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
            questions: questions.as_ref(),
        };
        let server = self.servers.of(ServerKey { tenant: &invocation.tenant, url, pool });
        let mut request = Request::rendered(mapping, Cow::Borrowed(&body.bytes), call.parameters());
        request.observed = call.is_observed();
        request.mirrored = call.parameters().as_object().map(|arguments| (call.mirrored(), arguments));
        let declared = asked_for(call, mapping, access.client);
        request.input = declared;
        let ids = || self.next_id();
        let announced = || {
            if let Some(service) = &invocation.service {
                self.watch.changed(&invocation.tenant, service);
            }
        };
        let user = self.user_of(call, access.messages)?;
        let mut peer = HttpPeer {
            endpoint: &endpoint,
            server: &server,
            user: &user,
            redactor: &mut redactor,
            ids: &ids,
            announced: &announced,
        };
        let mut raw = self.ask(call, mapping, (&server.listing, access.messages, deadline), &mut peer, &request).await;
        if let (Some(questions), Some(_)) = (&questions, declared) {
            let rounds = Rounds { call, mapping, questions, deadline };
            for _ in 0..ROUNDS {
                let Some(request) = rounds.next(&raw, peer.redactor).await else { break };
                // The server has begun with the call in the round before.
                raw = peer.ask(&request).await.map_err(|failure| SourceFailure { sent: true, ..failure });
            }
        }
        self.conclude(call, (mapping, declared), raw, redactor, deadline).await
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
        let message = mapping.message(call.parameters().as_object().unwrap_or(&nothing), call.input());
        let message =
            message.map_err(|unknown| not_executable(format!("`{unknown}` is no parameter of the method")))?;
        let invocation = call.invocation();
        let ids = || self.next_id();
        let sink = |progress| call.report(progress);
        let reporter = Reporter::new(&sink);
        let user = self.user_of(call, access.messages)?;
        let starting = self.processes.of(
            &user,
            (Some(used.credential), &access.material),
            access.client.map(ClientLink::capabilities).unwrap_or_default(),
            deadline,
            &ids,
        );
        let raw = match starting.await {
            Ok(process) => {
                let mut request = Request::rendered(mapping, Cow::Owned(message), call.parameters());
                request.observed = call.is_observed();
                request.input = asked_for(call, mapping, access.client);
                let questions = access.client.filter(|_| process.is_exclusive());
                let questions = questions.map(|client| Questions::new(client, mapping.hidden_characters));
                let reporter = Some(&reporter).filter(|_| call.is_observed());
                let listener = CallListener { reporter, questions: questions.as_ref(), redactor: &access.redactor };
                let mut peer = ProcessPeer {
                    process: &process,
                    agent: Some(&invocation.agent),
                    deadline,
                    traced: call.traced(),
                    listener: Some(listener).filter(|_| reporter.is_some() || questions.is_some()),
                    ids: &ids,
                };
                self.ask(call, mapping, (process.listing(), access.messages, deadline), &mut peer, &request).await
            }
            Err(failure) => Err(failure),
        };
        let declared = asked_for(call, mapping, access.client);
        self.conclude(call, (mapping, declared), raw, access.redactor, deadline).await
    }

    /// Sends a request, unless the server lists another definition than the accepted one.
    async fn ask(
        &self,
        call: &Admitted,
        mapping: &McpMapping,
        (listing, guard, deadline): (&Listing, &dyn MessageGuard, Instant),
        peer: &mut dyn Peer,
        request: &Request<'_>,
    ) -> Result<Raw, SourceFailure> {
        let mut guarded = GuardedPeer { peer: &mut *peer, guard };
        if let Err(differs) = listing.check(mapping, &mut guarded, deadline).await? {
            let invocation = call.invocation();
            if let Some(service) = invocation.service.as_ref().filter(|_| differs.is_news) {
                self.notify_changed(&invocation.tenant, service);
            }
            return Err(differs.failure);
        }
        peer.ask(request).await
    }

    fn notify_changed(&self, tenant: &TenantId, service: &ServiceName) {
        tracing::warn!(%tenant, %service, "a mounted server has changed a tool since it was accepted");
        self.watch.changed(tenant, service);
    }

    async fn conclude(
        &self,
        call: &Admitted,
        (mapping, input): (&McpMapping, Option<InputCapabilities>),
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
            return conclude(&raw, &redactor, rule, input);
        }
        // A large result, above all one made to be hard to read, must not keep other calls waiting.
        let invocation = call.invocation();
        let status = raw.http_status;
        let work = move || conclude(&raw, &redactor, rule, input);
        self.offload.run((&invocation.tenant, &invocation.agent), deadline, work).await.unwrap_or_else(|late| {
            let failure = malformed(status, "the server's result was not redacted in time; ask for less");
            Err(SourceFailure { timed_out: late == Late::Deadline, ..failure })
        })
    }
}

/// What the server may ask the client of a call for; `None` where the protocol does not let it ask.
fn asked_for(call: &Admitted, mapping: &McpMapping, client: Option<&dyn ClientLink>) -> Option<InputCapabilities> {
    let declared = || client.map(ClientLink::capabilities).or(call.input().map(|input| input.capabilities));
    mapping.method.asks().then(|| declared().unwrap_or_default())
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
