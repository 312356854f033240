//! Execution: unseals the one credential, calls the source, drops the secret.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use toolgate_model::credential::Credential;
use toolgate_model::redaction::Redactor;
use toolgate_model::secret::Material;
use toolgate_model::service::RenderedRequest;

use super::Admitted;
use super::Pipeline;
use super::admit::CallCredential;
use super::client::GuardedClient;
use super::eligible::EligibleGrant;
use super::stream::{GuardedStream, Streamed};
use crate::action::Action;
use crate::ports::client_link::ClientLink;
use crate::ports::clock::pause;
use crate::ports::event_stream::EventStream;
use crate::ports::ledger::{AuditContext, Freshness, HeldGrant, Mandate, NewExpiry, RotateCredential};
use crate::ports::mount::{MountLink, MountTarget, ServerOffer};
use crate::ports::sealer::SealBinding;
use crate::ports::source::{Access, Exchange, Execution, FailureKind, Renewal, ServiceResponse, Source, SourceFailure};
use crate::refusal::{Code, Kind, Refusal};

#[cfg(test)]
mod tests;

/// How often, and at which interval, a replica checks whether another one has renewed the material.
const LOOKS: u32 = 10;
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// How often, and at which intervals, storing renewed material is retried: for about ten minutes.
const TRIES: u32 = 130;
const RETRY_INTERVAL: Duration = Duration::from_millis(20);
const MAX_RETRY_INTERVAL: Duration = Duration::from_secs(5);

/// The unsealed credential of a call: `None` if it needs none, or why it could not be unsealed.
pub(super) type Opened = Option<Result<Unsealed, Refusal>>;

/// The material of one call's credential, with its redactor. Both are dropped with the call.
pub(super) struct Unsealed {
    pub(super) material: Material,
    pub(super) redactor: Redactor,
}

/// The outcome of an execution.
pub(super) struct Executed {
    pub(super) execution: Execution,
    /// Set if the result was a stream that the caller has received the events of.
    pub(super) streamed: Option<Streamed>,
}

impl Executed {
    pub(super) fn of(execution: Execution) -> Self {
        Self { execution, streamed: None }
    }
}

impl Pipeline {
    /// Unseals the one credential of a call.
    pub(super) async fn open(&self, eligible: &EligibleGrant) -> Opened {
        // A client-executed tool does not use it, but its secret must be redacted from everything said about the call.
        let used = eligible.credential.as_deref()?;
        Some(self.open_credential(&used.held_grant.credential).await)
    }

    /// Unseals the credential of a refused call: its secret must not appear in the record.
    pub(super) async fn open_refused(&self, held_grant: Option<&Arc<HeldGrant>>) -> Opened {
        let held_grant = held_grant?;
        Some(self.open_credential(&held_grant.credential).await)
    }

    async fn open_credential(&self, credential: &Credential) -> Result<Unsealed, Refusal> {
        // A service that needs no secret has a credential without material: `constrain` lets no other such pass.
        let material = match credential.version {
            0 => Material::new(),
            _ => self.unseal_current(credential, Freshness::Recent).await?.1,
        };
        Ok(Unsealed { redactor: Redactor::new(&material), material })
    }

    /// Executes an admitted call.
    pub(super) async fn execute(&self, admitted: &Admitted, opened: Opened) -> Executed {
        let stream = match admitted.candidate().step() {
            Some(step) => GuardedStream::open(self, admitted, step).await,
            None => Ok(None),
        };
        let stream = match stream {
            Ok(stream) => stream,
            Err(refusal) => {
                let reason = format!("guardians could not be consulted about its result: {}", refusal.reason());
                return Executed::of(Err(SourceFailure::not_sent(FailureKind::Proxy, reason)));
            }
        };
        let execution = self.execute_into(admitted, opened, stream.as_ref()).await;
        let mut streamed = stream.and_then(GuardedStream::finish);
        if let Some(streamed) = streamed.as_mut().filter(|streamed| streamed.is_denied) {
            self.cancel_task(admitted, streamed).await;
        }
        Executed { execution, streamed }
    }

    async fn execute_into(&self, admitted: &Admitted, opened: Opened, stream: Option<&GuardedStream<'_>>) -> Execution {
        let refused = |reason| Err(SourceFailure::not_sent(FailureKind::Proxy, reason));
        let unsealed = match opened.transpose() {
            Ok(unsealed) => unsealed,
            Err(refusal) => return refused(format!("the credential could not be unsealed: {}", refusal.reason())),
        };
        let (source, used) = (admitted.source(), admitted.credential());
        // A client-executed tool uses no secret of the gate.
        match unsealed.zip(used).filter(|_| admitted.action() != Action::ClientExecuted) {
            Some((Unsealed { material, redactor }, CallCredential { credential, .. })) => {
                let audit = self.audit(&admitted.call().caller);
                let renewal = CredentialRenewal::new(self, audit, credential);
                let messages = self.messages_of_call(admitted);
                let client = admitted.call().client.as_deref();
                let client = client.map(|link| GuardedClient { pipeline: self, admitted, link });
                let client = client.as_ref().map(|client| client as &dyn ClientLink);
                let guarded = stream;
                let stream = stream.map(|stream| stream as &dyn EventStream);
                let access = Access { material, redactor, renewal: &renewal, messages: &messages, client, stream };
                let executing = source.execute(admitted, Some(access));
                let is_renewing = || renewal.renewing.load(Ordering::Acquire);
                self.unless_stopped(admitted, guarded, executing, is_renewing).await
            }
            None => self.unless_stopped(admitted, stream, source.execute(admitted, None), || false).await,
        }
    }

    /// Sends one more request of an admitted call, with its credential.
    pub(super) async fn follow_up(&self, admitted: &Admitted, request: &RenderedRequest) -> Execution {
        let failed = |reason: &str| SourceFailure::not_sent(FailureKind::Proxy, reason);
        let opened = self.open(admitted.eligible()).await.and_then(Result::ok);
        let Some((Unsealed { material, redactor }, used)) = opened.zip(admitted.credential()) else {
            return Err(failed("the credential could not be unsealed"));
        };
        let renewal = CredentialRenewal::new(self, self.audit(&admitted.call().caller), used.credential);
        let messages = self.messages_of_call(admitted);
        let access = Access { material, redactor, renewal: &renewal, messages: &messages, client: None, stream: None };
        admitted.source().follow_up(admitted, access, request).await
    }

    /// Cuts the execution off when the calls of the agent are stopped, or its caller is gone and nobody can get its result:
    /// dropping it closes its connection or cancels its request. A stream also ends when its authority does. While it
    /// renews its credential it continues, because a service that has rotated a secret returns it once.
    async fn unless_stopped(
        &self,
        admitted: &Admitted,
        stream: Option<&GuardedStream<'_>>,
        executing: impl Future<Output = Execution>,
        is_renewing: impl Fn() -> bool,
    ) -> Execution {
        let call = admitted.call();
        tokio::pin!(executing);
        let ended = async {
            match stream {
                Some(stream) => (stream, stream.ended().await),
                None => std::future::pending().await,
            }
        };
        let (kind, reason) = tokio::select! {
            biased;
            execution = &mut executing => return execution,
            stopped = self.stops.wait(call) => {
                let reason = stopped.refusal().reason().to_owned();
                (FailureKind::Stopped, format!("{reason}; the call was cut off, and the service may have executed it"))
            }
            () = abandoned(admitted) => {
                let reason = "the client cancelled the call or closed its connection; the server was told so, and may \
                              have executed it";
                (FailureKind::Abandoned, reason.to_owned())
            }
            (stream, refusal) = ended => {
                let reason = refusal.reason().to_owned();
                stream.end_for(refusal);
                (FailureKind::Cut, reason)
            }
        };
        if is_renewing() {
            return executing.await;
        }
        Err(SourceFailure { sent: true, ..SourceFailure::not_sent(kind, reason) })
    }

    /// Looks at a mounted server, with its credential where it has material.
    pub(crate) async fn inspect_mount(
        &self,
        link: &dyn MountLink,
        target: &MountTarget,
        credential: Option<&Credential>,
        audit: &AuditContext,
    ) -> Result<ServerOffer, SourceFailure> {
        let messages = self.own_messages(&audit.tenant);
        let Some(credential) = credential.filter(|credential| credential.version > 0) else {
            return link.inspect(target, None, &messages).await;
        };
        let unusable = |refusal: Refusal| {
            let reason = format!("the credential could not be opened: {}", refusal.reason());
            SourceFailure::not_sent(FailureKind::Proxy, reason)
        };
        let Unsealed { material, redactor } = self.open_credential(credential).await.map_err(unusable)?;
        let renewal = CredentialRenewal::new(self, audit.clone(), credential);
        let access = Access { material, redactor, renewal: &renewal, messages: &messages, client: None, stream: None };
        link.inspect(target, Some(access), &messages).await
    }

    async fn unseal_current(
        &self,
        credential: &Credential,
        mut freshness: Freshness,
    ) -> Result<(u32, Material), Refusal> {
        loop {
            let now = self.clock.now();
            let sealed = self.credentials.sealed_material(&credential.tenant, credential.id, now, freshness).await?;
            let missing = || Refusal::new(Code::CredentialRevoked, "its material no longer exists");
            let version = sealed.ok_or_else(missing)?;
            let current = version.binding.version() >= credential.version;
            match self.sealer.unseal(&version.binding, &version.sealed).await {
                Ok(material) if current => return Ok((version.binding.version(), material)),
                // Cached material may be wrapped by a key that no longer exists.
                _ if freshness == Freshness::Recent => freshness = Freshness::Newest,
                outcome => return Ok((version.binding.version(), outcome?)),
            }
        }
    }
}

/// Completes when the caller of a call to a mounted server is gone: the protocol has a way to tell the server. The result of
/// a call with an idempotency key is there for a caller that repeats it, so that one continues.
async fn abandoned(admitted: &Admitted) {
    let call = admitted.call();
    // The key of a continuation is one of the gate, which nobody can repeat.
    let is_continuation = call.input.as_ref().is_some_and(|input| input.origin.is_some());
    if admitted.action() == Action::Mcp && (call.idempotency_key.is_none() || is_continuation) {
        call.presence.clone().gone().await;
    } else {
        std::future::pending().await
    }
}

/// Executes what does not leave the gate: a question returns the answer of its approver, a client-executed tool the
/// permission to execute it.
pub(crate) struct GateSource;

#[async_trait]
impl Source for GateSource {
    fn executes(&self, action: Action) -> bool {
        matches!(action, Action::Question | Action::ClientExecuted)
    }

    async fn execute(&self, call: &Admitted, _: Option<Access<'_>>) -> Execution {
        Ok(ServiceResponse::said(match call.action() {
            Action::Question => call.answer().map_or(Value::Null, Value::from),
            _ => json!({"decision": "allow"}),
        }))
    }
}

/// Stores renewed material of one credential, sealed into the vault as a new version.
struct CredentialRenewal<'a> {
    pipeline: &'a Pipeline,
    audit: AuditContext,
    credential: &'a Credential,
    /// Whether the service may have rotated material that is not stored yet.
    renewing: AtomicBool,
}

#[async_trait]
impl Renewal for CredentialRenewal<'_> {
    async fn renew(&self, stale: &Material, exchange: &dyn Exchange) -> Result<Material, SourceFailure> {
        // One exchange at a time per credential; later calls find the result of the first.
        let turn = self.pipeline.renewals.turn(self.credential.id);
        let _turn = turn.lock().await;
        let (version, current) = self.current().await?;
        if !same(&current, stale) {
            return Ok(current);
        }
        self.renewing.store(true, Ordering::Release);
        let renewed = match exchange.exchange(&current).await {
            Ok(renewed) => renewed,
            Err(failure) => return self.renewed_elsewhere(stale).await.ok_or(failure),
        };
        match self.keep_at_last(version, &renewed).await {
            Ok(()) => Ok(renewed),
            // Another call, perhaps on another replica, stored newer material: that counts.
            Err(refusal) if refusal.code() == Code::VersionConflict => Ok(self.current().await?.1),
            Err(refusal) => Err(failed(&refusal)),
        }
    }
}

impl<'a> CredentialRenewal<'a> {
    fn new(pipeline: &'a Pipeline, audit: AuditContext, credential: &'a Credential) -> Self {
        Self { pipeline, audit, credential, renewing: AtomicBool::new(false) }
    }

    async fn current(&self) -> Result<(u32, Material), SourceFailure> {
        let newest = self.pipeline.unseal_current(self.credential, Freshness::Newest).await;
        newest.map_err(|refusal| failed(&refusal))
    }

    /// What another replica has renewed. It may have used the refresh token just before this one tried to, and be about
    /// to store the new one.
    async fn renewed_elsewhere(&self, stale: &Material) -> Option<Material> {
        for _ in 0..LOOKS {
            let (_, newest) = self.current().await.ok()?;
            if !same(&newest, stale) {
                return Some(newest);
            }
            pause(POLL_INTERVAL).await;
        }
        None
    }

    /// Stores renewed material, however long that takes: the service has invalidated the old refresh token, and nobody
    /// else knows the new one. It is sealed again for each attempt, since the master key may have changed.
    async fn keep_at_last(&self, version: u32, renewed: &Material) -> Result<(), Refusal> {
        let mut between = RETRY_INTERVAL;
        for _ in 0..TRIES {
            match self.keep(version, renewed).await {
                Err(refusal) if passes(refusal.code()) => {
                    tracing::warn!(
                        credential = %self.credential.id,
                        reason = refusal.reason(),
                        "could not store a renewed credential yet"
                    );
                }
                outcome => return outcome,
            }
            pause(between).await;
            between = (between * 2).min(MAX_RETRY_INTERVAL);
        }
        self.keep(version, renewed).await
    }

    async fn keep(&self, version: u32, renewed: &Material) -> Result<(), Refusal> {
        let (credential, now) = (self.credential, self.pipeline.clock.now());
        let binding = SealBinding::of_credential(&credential.tenant, credential.id, version + 1);
        let command = RotateCredential {
            // The call was admitted, and what the service rotated for it must be stored whatever happened to its
            // caller.
            audit: Mandate::own(AuditContext { time: now, ..self.audit.clone() }),
            id: credential.id,
            expected_version: version,
            sealed: self.pipeline.sealer.seal(&binding, renewed).await?,
            material_fields: renewed.names().map(str::to_owned).collect(),
            metadata: None,
            end: NewExpiry::Same,
            retire_until: now.plus(self.pipeline.settings.retire_after),
        };
        self.pipeline.credentials.rotate_credential(command).await.map(drop)
    }
}

/// Whether the material is unchanged: compared field by field, in constant time.
fn same(current: &Material, stale: &Material) -> bool {
    use subtle::ConstantTimeEq;
    current.names().eq(stale.names())
        && current
            .iter()
            .zip(stale.iter())
            .all(|((_, left), (_, right))| bool::from(left.expose().as_bytes().ct_eq(right.expose().as_bytes())))
}

/// Whether the obstacle to storing it is temporary.
fn passes(code: Code) -> bool {
    code == Code::MasterKeyRetired || code.kind() == Kind::Unavailable
}

fn failed(refusal: &Refusal) -> SourceFailure {
    SourceFailure::not_sent(
        FailureKind::Proxy,
        format!("the renewed credential could not be stored: {}", refusal.reason()),
    )
}
