//! Mounted MCP servers: adding, checking, reviewing, deciding. A mount says where credentials are sent, so changing one takes
//! what changing a service takes.
//!
//! Nothing that a server offers can be used before a person has accepted it by the hash that was shown.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use toolgate_model::a2a::check_card;
use toolgate_model::connection::AuthPlacement;
use toolgate_model::credential::{AuthType, Credential, ServiceName};
use toolgate_model::id::{CredentialId, VaultId};
use toolgate_model::mount::{Mount, MountAddress, MountTool, Offer, OfferedDefinition, ServerIdentity, compare};
use toolgate_model::permission::Permission;
use toolgate_model::principal::{PrincipalId, TenantId};
use toolgate_model::scope::ScopeSet;
use toolgate_model::secret::Material;
use toolgate_model::service::HiddenCharacters;
use toolgate_model::text::Line;

pub use self::declared::{Declaration, DeclaredMount, DeclaredSecret};
pub use self::review::{MountReview, ServerReview, ToolReview};

use super::credentials::NewCredential;
use super::services::require_registrar;
use crate::authority::Administration;
use crate::builtin;
use crate::call::Pipeline;
use crate::gate::Ports;
use crate::identify::Caller;
use crate::ports::clock::Clock;
use crate::ports::ledger::{
    AddMount, AuditContext, DecideMount, Decided, Mandate, MountSummary, Mounts, OfferRecorded, RecordCheck,
    RecordOffer, RemoveMount, Services,
};
use crate::ports::mount::{MountCredential, MountLink, MountTarget, MountTransport, ServerOffer};
use crate::refusal::{Code, Refusal};

mod declared;
mod review;

/// How much of the reason of a failed check is kept.
const REASON_LIMIT: usize = 500;

/// A mount to be added.
pub struct NewMount {
    pub name: ServiceName,
    pub address: MountAddress,
    pub trusted: bool,
    pub hidden_characters: HiddenCharacters,
    pub access: MountAccess,
}

/// What is stored of a new mount, besides what its server offers.
struct NewRow<'a> {
    name: &'a ServiceName,
    address: &'a MountAddress,
    trusted: bool,
    hidden_characters: HiddenCharacters,
    credential: Option<CredentialId>,
    declared: bool,
}

/// What a server is reached with.
pub enum MountAccess {
    /// This credential, which is one of the mount's service.
    Credential(CredentialId),
    /// Nothing, and grants rest on a credential without material that is made in this vault.
    Open(VaultId),
    /// Nothing, and nothing can be granted until there is a credential.
    None,
}

/// What a person decides about a mount. Everything is named with the hash that was shown.
#[derive(Default)]
pub struct MountDecision {
    /// What the server says about itself.
    pub server: Option<String>,
    /// Tools by their names at the server.
    pub tools: BTreeMap<String, String>,
    /// Whether blocking findings are overridden.
    pub override_findings: bool,
}

/// A mount with its tools.
pub type MountedServer = (Mount, Vec<MountTool>);

pub struct MountAdministration {
    mounts: Arc<dyn Mounts>,
    services: Arc<dyn Services>,
    link: Arc<dyn MountLink>,
    clock: Arc<dyn Clock>,
    pipeline: Arc<Pipeline>,
    administration: Arc<Administration>,
}

impl MountAdministration {
    pub(crate) fn new(ports: &Ports, pipeline: Arc<Pipeline>, administration: Arc<Administration>) -> Self {
        Self {
            mounts: ports.ledger.clone(),
            services: ports.ledger.clone(),
            link: Arc::clone(&ports.mounts),
            clock: Arc::clone(&ports.clock),
            pipeline,
            administration,
        }
    }

    /// Adds a mount: looks at what the server offers and stores it, quarantined.
    pub async fn add(&self, caller: &Caller, new: NewMount) -> Result<MountedServer, Refusal> {
        require_registrar(caller)?;
        refuse_own_name(&new.name)?;
        if self.mounts.mount(caller.tenant(), &new.name).await?.is_some() {
            let reason = format!("there is a mount `{}` already; choose another name", new.name);
            return Err(Refusal::new(Code::AlreadyExists, reason));
        }
        let credential = match new.access {
            MountAccess::Credential(id) => Some(self.credential_of(caller, id, &new.name).await?),
            MountAccess::Open(_) | MountAccess::None => None,
        };
        let audit = caller.audit(self.clock.now());
        let inspected = self.inspect(&audit, &new.name, &new.address, credential.as_ref()).await;
        let offer = inspected.map_err(|reason| failed(&new.name, &reason))?;
        let created = match new.access {
            MountAccess::Open(vault) => Some(self.open_credential(caller, vault, &new.name).await?),
            MountAccess::Credential(_) | MountAccess::None => None,
        };
        let mount = NewRow {
            name: &new.name,
            address: &new.address,
            trusted: new.trusted,
            hidden_characters: new.hidden_characters,
            credential: credential.or_else(|| created.clone()).map(|credential| credential.id),
            declared: false,
        };
        let added = self.store(caller.mandate(self.clock.now()), mount, &offer).await;
        if let (Err(_), Some(created)) = (&added, created) {
            // Nothing rests on it.
            self.administration.revoke_credential(caller, created.id, None).await?;
        }
        added?;
        self.mount(caller, &new.name).await
    }

    /// Stores a mount with what its server offers, quarantined.
    async fn store(&self, audit: Mandate, new: NewRow<'_>, offer: &Offer) -> Result<(), Refusal> {
        let mount = Mount {
            tenant: audit.tenant().clone(),
            name: new.name.clone(),
            address: new.address.clone(),
            trusted: new.trusted,
            hidden_characters: new.hidden_characters,
            credential: new.credential,
            declared: new.declared,
            era: offer.era,
            pinned: None,
            seen: offer.server.clone(),
            checked_at: audit.time(),
            failure: None,
            created_at: audit.time(),
            updated_at: audit.time(),
        };
        let tools = compare(&[], &offer.tools).into_iter().filter_map(|change| change.after).collect();
        self.mounts.add_mount(AddMount { audit, mount, tools }).await
    }

    /// The mounts of the caller's tenant.
    pub async fn mounts(&self, caller: &Caller) -> Result<Vec<MountSummary>, Refusal> {
        caller.require(Permission::ManageTools)?;
        self.mounts.mounts(caller.tenant()).await
    }

    /// The card of a peer agent as it was accepted, for callers that may use something of it; `None` for all others.
    pub async fn accepted_card(&self, caller: &Caller, peer: &ServiceName) -> Result<Option<Value>, Refusal> {
        let callable = self.administration.callable_tools(caller).await?;
        if !callable.iter().any(|tool| tool.service == *peer) {
            return Ok(None);
        }
        let known = self.mounts.mount(caller.tenant(), peer).await?;
        let accepted = known.map(|(mount, _)| mount).filter(|mount| !mount.is_server_quarantined());
        Ok(accepted.and_then(|mount| mount.pinned?.card))
    }

    /// A mount with its tools.
    pub async fn mount(&self, caller: &Caller, name: &ServiceName) -> Result<MountedServer, Refusal> {
        if !caller.may(Permission::ManageTools) {
            return Err(not_found(name));
        }
        self.mounts.mount(caller.tenant(), name).await?.ok_or_else(|| not_found(name))
    }

    /// Removes a mount. Its credentials and their grants stay, without tools.
    pub async fn remove(&self, caller: &Caller, name: ServiceName) -> Result<(), Refusal> {
        self.mount(caller, &name).await?;
        require_registrar(caller)?;
        self.mounts.remove_mount(RemoveMount { audit: caller.mandate(self.clock.now()), name }).await
    }

    /// Looks at a server again and quarantines what changed.
    pub async fn check(&self, caller: &Caller, name: &ServiceName) -> Result<(MountedServer, OfferRecorded), Refusal> {
        let known = self.mount(caller, name).await?;
        require_registrar(caller)?;
        let recorded = self.check_known(caller.mandate(self.clock.now()), known).await?;
        Ok((self.mount(caller, name).await?, recorded))
    }

    /// What waits for a person.
    pub async fn review(&self, caller: &Caller, name: &ServiceName) -> Result<MountReview, Refusal> {
        let (mount, tools) = self.mount(caller, name).await?;
        let surroundings = self.surroundings(&mount, &tools).await?;
        Ok(MountReview::of(mount, tools, &surroundings))
    }

    /// Accepts what was shown. Blocking findings need an override, which is recorded with their codes.
    pub async fn accept(
        &self,
        caller: &Caller,
        name: ServiceName,
        decision: MountDecision,
    ) -> Result<MountedServer, Refusal> {
        let (mount, tools) = self.mount(caller, &name).await?;
        require_registrar(caller)?;
        let surroundings = self.surroundings(&mount, &tools).await?;
        let accepted = review::accepted(&mount, &tools, &decision, &surroundings)?;
        self.decide(caller, name, true, accepted).await
    }

    /// Rejects tools as they were shown: they stay hidden until they change.
    pub async fn reject(
        &self,
        caller: &Caller,
        name: ServiceName,
        tools: BTreeMap<String, String>,
    ) -> Result<MountedServer, Refusal> {
        self.mount(caller, &name).await?;
        require_registrar(caller)?;
        let decided = |(upstream, hash)| (upstream, Decided { hash, overridden: Vec::new() });
        self.decide(caller, name, false, (None, tools.into_iter().map(decided).collect())).await
    }

    async fn decide(
        &self,
        caller: &Caller,
        name: ServiceName,
        accept: bool,
        (server, tools): (Option<Decided>, BTreeMap<String, Decided>),
    ) -> Result<MountedServer, Refusal> {
        if server.is_none() && tools.is_empty() {
            let reason = "name what is decided: `server`, `tools`, or both, each with the hash that was shown";
            return Err(Refusal::new(Code::InvalidField, reason).with("path", "tools"));
        }
        let audit = caller.mandate(self.clock.now());
        self.mounts.decide_mount(DecideMount { audit, name: name.clone(), accept, server, tools }).await?;
        self.mount(caller, &name).await
    }

    /// Looks at mounts without a caller, and records what changed. The reason why a server cannot be looked at is recorded
    /// with the mount and is no failure here.
    pub async fn check_unasked(&self, tenant: &TenantId, name: &ServiceName) -> Result<(), Refusal> {
        let Some(known) = self.mounts.mount(tenant, name).await? else { return Ok(()) };
        let audit = AuditContext { tenant: tenant.clone(), actor: PrincipalId::system(), time: self.clock.now() };
        match self.check_known(Mandate::own(audit), known).await {
            Err(refusal) if matches!(refusal.code(), Code::MountFailed | Code::MountNotFound) => Ok(()),
            outcome => outcome.map(drop),
        }
    }

    /// Records what starts the process of a mount from now on, before it is started for anybody. Where that is not what was
    /// accepted, none of its tools is usable until a person has accepted it. Returns whether that is news.
    pub async fn note_command(&self, tenant: &TenantId, name: &ServiceName, command: &str) -> Result<bool, Refusal> {
        let Some((mount, tools)) = self.mounts.mount(tenant, name).await? else { return Ok(false) };
        if mount.address != MountAddress::Stdio || mount.seen.command.as_deref() == Some(command) {
            return Ok(false);
        }
        let listed = |tool: MountTool| tool.seen.map(|seen| OfferedDefinition { name: tool.upstream, seen });
        let offer = Offer {
            era: mount.era,
            server: mount.seen.started_by(Some(command.to_owned())),
            tools: tools.into_iter().filter_map(listed).collect(),
            ignored: Vec::new(),
        };
        let audit = AuditContext { tenant: tenant.clone(), actor: PrincipalId::system(), time: self.clock.now() };
        let command = RecordOffer { audit: Mandate::own(audit), name: name.clone(), offer };
        self.mounts.record_offer(command).await.map(|_| true)
    }

    /// Ends connections to servers that nobody uses any more.
    pub fn sweep_connections(&self) {
        self.link.sweep();
    }

    /// The mounts that were not looked at for this long.
    pub async fn due(&self, after: std::time::Duration, limit: usize) -> Result<Vec<(TenantId, ServiceName)>, Refusal> {
        self.mounts.mounts_to_check(self.clock.now().minus(after), limit).await
    }

    async fn check_known(&self, audit: Mandate, (mount, tools): MountedServer) -> Result<OfferRecorded, Refusal> {
        let credential = match mount.credential {
            Some(id) => self.administration.credential_of_mount(&mount.tenant, id).await?,
            None => None,
        };
        let (context, _) = audit.parts();
        let inspected = self.inspect(context, &mount.name, &mount.address, credential.as_ref()).await;
        let checked = |failure| RecordCheck {
            tenant: mount.tenant.clone(),
            name: mount.name.clone(),
            time: audit.time(),
            failure,
        };
        let offer = match inspected {
            Ok(offer) => offer,
            Err(reason) => {
                self.mounts.record_check(checked(Some(reason.clone()))).await?;
                return Err(failed(&mount.name, &reason));
            }
        };
        let is_same = offer.era == mount.era && offer.server == mount.seen;
        if is_same && mount.failure.is_none() && compare(&tools, &offer.tools).is_empty() {
            self.mounts.record_check(checked(None)).await?;
            return Ok(OfferRecorded::default());
        }
        self.mounts.record_offer(RecordOffer { audit: audit.clone(), name: mount.name.clone(), offer }).await
    }

    /// What a server offers, or why that is not known.
    async fn inspect(
        &self,
        audit: &AuditContext,
        name: &ServiceName,
        address: &MountAddress,
        credential: Option<&Credential>,
    ) -> Result<Offer, String> {
        let transport = match address {
            MountAddress::Http { url } | MountAddress::Agent { url } => {
                let credential = credential.cloned().map(MountCredential::of).transpose();
                let credential = credential.map_err(|refusal| refusal.reason().to_owned())?;
                let credential = credential.filter(|used| used.placement != AuthPlacement::Nowhere).map(Box::new);
                match address {
                    MountAddress::Agent { .. } => MountTransport::Agent { url: url.clone(), credential },
                    _ => MountTransport::Http { url: url.clone(), credential },
                }
            }
            MountAddress::Stdio => {
                // One without material is there to be granted only.
                let credential = credential.filter(|credential| !credential.material_fields.is_empty());
                MountTransport::Stdio { name: name.to_string(), credential: credential.cloned().map(Box::new) }
            }
        };
        let target = MountTarget { tenant: audit.tenant.clone(), service: name.clone(), transport };
        let inspected = self.pipeline.inspect_mount(&*self.link, &target, credential, audit).await;
        let shown =
            |reason: &str| toolgate_model::visible::visible(reason).chars().take(REASON_LIMIT).collect::<String>();
        let offer = inspected.map_err(|failure| shown(&failure.reason))?;
        read_offer(offer).map_err(|reason| shown(&reason))
    }

    /// The credential with which a server is inspected: the caller must manage it, and it must be one of this service.
    async fn credential_of(
        &self,
        caller: &Caller,
        id: CredentialId,
        service: &ServiceName,
    ) -> Result<Credential, Refusal> {
        let credential = self.administration.credential(caller, id).await?;
        if credential.service == *service {
            return Ok(credential);
        }
        let reason =
            format!("credential {id} is one of service `{}`; the mount needs one of `{service}`", credential.service);
        Err(Refusal::new(Code::InvalidField, reason).with("path", "credential_id"))
    }

    /// Makes the credential of a server that needs none, so that there is something to grant.
    async fn open_credential(
        &self,
        caller: &Caller,
        vault: VaultId,
        service: &ServiceName,
    ) -> Result<Credential, Refusal> {
        let metadata = serde_json::json!({"auth": {"location": "none"}});
        let label = format!("{service} (no secret)");
        let new = NewCredential {
            vault,
            service: service.clone(),
            label: Line::parse(&label)
                .map_err(|error| Refusal::new(Code::InvalidField, error.to_string()).with("path", "name"))?,
            auth_type: AuthType::ApiKey,
            scopes_available: ScopeSet::default(),
            metadata: metadata.as_object().cloned().unwrap_or_default(),
            material: Material::default(),
            expires_at: None,
        };
        self.administration.create_credential(caller, new).await
    }
}

fn read_offer(offer: ServerOffer) -> Result<Offer, String> {
    let ServerOffer { era, server, instructions, capabilities, tools, command, protocol_version: _, card } = offer;
    if let Some(card) = card {
        check_card(&card)?;
        return Offer::read(era, ServerIdentity::of_card(card), []);
    }
    let identity = ServerIdentity::new(
        &server.name,
        server.title.as_deref(),
        &server.version,
        instructions.as_deref(),
        &capabilities,
    );
    let identity = identity.started_by(command);
    Offer::read(era, identity, tools.into_iter().map(|tool| (tool.name, tool.definition)))
}

fn refuse_own_name(name: &ServiceName) -> Result<(), Refusal> {
    if name.as_str() != builtin::WORKSPACE {
        return Ok(());
    }
    let reason = format!("`{}` is the name of Toolgate's own tools; choose another", builtin::WORKSPACE);
    Err(Refusal::new(Code::InvalidField, reason).with("path", "name"))
}

fn failed(name: &ServiceName, reason: &str) -> Refusal {
    Refusal::new(Code::MountFailed, format!("the server of mount `{name}` could not be inspected: {reason}"))
}

fn not_found(name: &ServiceName) -> Refusal {
    Refusal::new(Code::MountNotFound, format!("there is no mount `{name}`"))
}
