//! Carrying out: the one credential is unsealed, the source is called, the secret is dropped.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use toolgate_model::credential::Credential;
use toolgate_model::redaction::Redactor;
use toolgate_model::secret::Material;

use super::Admitted;
use super::Pipeline;
use super::admit::AdmittedAction;
use super::eligible::{Action, EligibleGrant};
use crate::ports::clock::pause;
use crate::ports::ledger::{AuditContext, Freshness, HeldGrant, Mandate, NewExpiry, RotateCredential};
use crate::ports::sealer::SealBinding;
use crate::ports::source::{Access, Exchange, Execution, FailureKind, Renewal, ServiceResponse, SourceFailure};
use crate::refusal::{Code, Kind, Refusal};

/// How often, and after what time, a replica looks for what another one may have renewed.
const LOOKS: u32 = 10;
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// How often what was renewed is tried to be kept, and after what times: for about ten minutes.
const TRIES: u32 = 130;
const RETRY_INTERVAL: Duration = Duration::from_millis(20);
const MAX_RETRY_INTERVAL: Duration = Duration::from_secs(5);

/// The credential of a call, unsealed: nothing where it needs none, or why it could not be unsealed.
pub(super) type Opened = Option<Result<Unsealed, Refusal>>;

/// The material of one call's credential, with what finds it. Both end with the call.
pub(super) struct Unsealed {
    pub(super) material: Material,
    pub(super) redactor: Redactor,
}

impl Pipeline {
    /// Opens the one credential of a call.
    pub(super) async fn open(&self, eligible: &EligibleGrant) -> Opened {
        match &eligible.action {
            // A client-executed tool does not use it, but nothing of it may be seen in what is said about the call.
            Action::Connector(connector) | Action::External(Some(connector)) => {
                Some(self.open_credential(&connector.held_grant.credential).await)
            }
            _ => None,
        }
    }

    /// Opens the credential of a call that was refused: nothing of it may stand in the record.
    pub(super) async fn open_refused(&self, held_grant: Option<&Arc<HeldGrant>>) -> Opened {
        let held_grant = held_grant?;
        Some(self.open_credential(&held_grant.credential).await)
    }

    async fn open_credential(&self, credential: &Credential) -> Result<Unsealed, Refusal> {
        let (_, material) = self.unseal_current(credential, Freshness::Recent).await?;
        Ok(Unsealed { redactor: Redactor::new(&material), material })
    }

    /// Carries out an admitted call.
    pub(super) async fn execute(&self, admitted: &Admitted, opened: Opened) -> Execution {
        let refused = |reason| Err(not_sent(FailureKind::Proxy, reason));
        let unsealed = match opened.transpose() {
            Ok(unsealed) => unsealed,
            Err(refusal) => return refused(format!("the credential could not be opened: {}", refusal.reason())),
        };
        // Neither leaves the gate, so that neither needs a source.
        match admitted.action() {
            Some(AdmittedAction::Question { answer }) => {
                return Ok(ServiceResponse::said(answer.map_or(Value::Null, Value::from)));
            }
            Some(AdmittedAction::External) => return Ok(ServiceResponse::said(json!({"decision": "allow"}))),
            _ => {}
        }
        let audit = self.audit(&admitted.call().caller);
        let access = match (unsealed, admitted.action()) {
            (Some(unsealed), Some(AdmittedAction::Connector { credential, .. })) => {
                Some((unsealed, CredentialRenewal { pipeline: self, audit, credential }))
            }
            _ => None,
        };
        match access {
            Some((Unsealed { material, redactor }, renewal)) => {
                self.source.execute(admitted, Some(Access { material, redactor, renewal: &renewal })).await
            }
            None => self.source.execute(admitted, None).await,
        }
    }

    async fn unseal_current(
        &self,
        credential: &Credential,
        mut freshness: Freshness,
    ) -> Result<(u32, Material), Refusal> {
        loop {
            let now = self.clock.now();
            let sealed = self.credentials.sealed_material(&credential.tenant, credential.id, now, freshness).await?;
            let missing = || Refusal::new(Code::CredentialRevoked, "its material is gone");
            let version = sealed.ok_or_else(missing)?;
            let current = version.binding.version() >= credential.version;
            match self.sealer.unseal(&version.binding, &version.sealed).await {
                Ok(material) if current => return Ok((version.binding.version(), material)),
                // What is remembered may be wrapped by a key that is gone by now.
                _ if freshness == Freshness::Recent => freshness = Freshness::Newest,
                outcome => return Ok((version.binding.version(), outcome?)),
            }
        }
    }
}

/// Keeps renewed material of one credential: sealed back into the vault as a new version.
struct CredentialRenewal<'a> {
    pipeline: &'a Pipeline,
    audit: AuditContext,
    credential: &'a Credential,
}

#[async_trait]
impl Renewal for CredentialRenewal<'_> {
    async fn renew(&self, stale: &Material, exchange: &dyn Exchange) -> Result<Material, SourceFailure> {
        // One exchange at a time for one credential; whoever comes later finds what the first one brought.
        let turn = self.pipeline.renewals.turn(self.credential.id);
        let _turn = turn.lock().await;
        let (version, current) = self.current().await?;
        if !same(&current, stale) {
            return Ok(current);
        }
        let renewed = match exchange.exchange(&current).await {
            Ok(renewed) => renewed,
            Err(failure) => return self.renewed_elsewhere(stale).await.ok_or(failure),
        };
        match self.keep_at_last(version, &renewed).await {
            Ok(()) => Ok(renewed),
            // Somebody else, another replica perhaps, put newer material there: that one counts.
            Err(refusal) if refusal.code() == Code::VersionConflict => Ok(self.current().await?.1),
            Err(refusal) => Err(failed(&refusal)),
        }
    }
}

impl CredentialRenewal<'_> {
    async fn current(&self) -> Result<(u32, Material), SourceFailure> {
        let newest = self.pipeline.unseal_current(self.credential, Freshness::Newest).await;
        newest.map_err(|refusal| failed(&refusal))
    }

    /// What another replica has renewed. It may have spent the refresh token a moment before this one tried to, and be
    /// about to keep what it got for it.
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

    /// Keeps what was renewed, however long that takes: the service has taken the old refresh token back, and nobody
    /// else knows the new one. It is sealed anew each time, since the master key may be another one by now.
    async fn keep_at_last(&self, version: u32, renewed: &Material) -> Result<(), Refusal> {
        let mut between = RETRY_INTERVAL;
        for _ in 0..TRIES {
            match self.keep(version, renewed).await {
                Err(refusal) if passes(refusal.code()) => {
                    tracing::warn!(
                        credential = %self.credential.id,
                        reason = refusal.reason(),
                        "a renewed credential could not be kept yet"
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
            // The call was admitted, and what the service rotated for it must be kept whatever became of its caller.
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

/// Whether nobody has renewed it: compared field by field, in constant time.
fn same(current: &Material, stale: &Material) -> bool {
    use subtle::ConstantTimeEq;
    current.names().eq(stale.names())
        && current
            .iter()
            .zip(stale.iter())
            .all(|((_, left), (_, right))| bool::from(left.expose().as_bytes().ct_eq(right.expose().as_bytes())))
}

/// Whether what is in the way of keeping something is so for a while only.
fn passes(code: Code) -> bool {
    code == Code::MasterKeyRetired || code.kind() == Kind::Unavailable
}

fn failed(refusal: &Refusal) -> SourceFailure {
    not_sent(FailureKind::Proxy, format!("the renewed credential could not be kept: {}", refusal.reason()))
}

fn not_sent(kind: FailureKind, reason: String) -> SourceFailure {
    SourceFailure { kind, reason, http_status: None, result: None, truncated: false, sent: false, timed_out: false }
}
