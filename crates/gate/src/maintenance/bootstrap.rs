//! The first start: the tenant `default`, its administrator, and the token that opens everything else.

use toolgate_model::key::{self, ApiKey, digest_of};
use toolgate_model::permission::PermissionSet;
use toolgate_model::principal::{Principal, PrincipalId, PrincipalKind, Tenant, TenantId};
use toolgate_model::secret::Secret;
use toolgate_model::time::Timestamp;

use super::Maintenance;
use crate::authority::principals::{new_key, stored_key};
use crate::ids::Ids;
use crate::ports::ledger::{AuditContext, CreateKey, CreateTenant, Mandate, NewKey};
use crate::refusal::{Code, Refusal};

/// A shorter token could be guessed.
const MIN_TOKEN: usize = 16;
/// Where the ledger says by which key its log is signed.
pub const AUDIT_KEY_SETTING: &str = "audit_public_key";

/// How the administrator's token came about.
pub enum Bootstrap {
    /// The ledger was set up before; nothing was changed.
    Existing,
    /// The operator chose the token.
    Given,
    /// A token was made: to be shown once.
    Generated(ApiKey),
}

impl Maintenance {
    /// Sets a new ledger up; on one that is, checks that the audit key is the one that its log was begun with.
    pub async fn bootstrap(&self, chosen: Option<&Secret>) -> Result<Bootstrap, Refusal> {
        self.check_audit_key().await?;
        let id = TenantId::default_tenant();
        if self.tenants.tenant(&id).await?.is_some() {
            return Ok(Bootstrap::Existing);
        }
        let now = self.clock.now();
        let (key, outcome) = token(&self.ids, chosen, now)?;
        let administrator = Principal::new(
            id.clone(),
            PrincipalId::administrator(),
            PrincipalKind::User,
            PermissionSet::of_the_platform_administrator(),
            now,
        );
        let command = CreateTenant {
            audit: Mandate::own(AuditContext { tenant: id.clone(), actor: PrincipalId::system(), time: now }),
            tenant: Tenant { id, name: None, created_at: now },
            administrator,
            key,
        };
        match self.tenants.create_tenant(command).await {
            // Another replica was faster: its token holds.
            Err(refusal) if refusal.code() == Code::AlreadyExists => Ok(Bootstrap::Existing),
            other => other.map(|()| outcome),
        }
    }

    /// Makes a new key for the administrator of the tenant `default`, for whoever has the ledger itself in hand.
    pub async fn recover_administrator(&self) -> Result<ApiKey, Refusal> {
        self.check_audit_key().await?;
        let now = self.clock.now();
        let (key, secret) = new_key(&self.ids, PrincipalId::administrator(), now)?;
        let audit = AuditContext { tenant: TenantId::default_tenant(), actor: PrincipalId::system(), time: now };
        self.keys.create_key(CreateKey { audit: Mandate::own(audit), key }).await?;
        Ok(secret)
    }

    async fn check_audit_key(&self) -> Result<(), Refusal> {
        let own = self.audit_key.public_key().to_string();
        let begun_with = self.state.set_setting_once(AUDIT_KEY_SETTING, &own).await?;
        if begun_with == own { Ok(()) } else { Err(other_audit_key(&own, &begun_with)) }
    }
}

/// The refusal of another key than the one that a ledger's log was begun with.
pub fn other_audit_key(own: &str, begun_with: &str) -> Refusal {
    let reason = format!(
        "the audit key is {own}, and this ledger's log was begun with {begun_with}; give back the key file of that one"
    );
    Refusal::new(Code::VersionConflict, reason)
}

fn token(ids: &Ids, chosen: Option<&Secret>, now: Timestamp) -> Result<(NewKey, Bootstrap), Refusal> {
    let administrator = PrincipalId::administrator();
    match chosen {
        None => {
            let (key, secret) = new_key(ids, administrator, now)?;
            Ok((key, Bootstrap::Generated(secret)))
        }
        Some(chosen) => {
            let text = chosen.expose();
            if text.len() < MIN_TOKEN || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
                let reason = format!(
                    "the administrator's token must have at least {MIN_TOKEN} printable characters without spaces"
                );
                return Err(Refusal::new(Code::InvalidField, reason));
            }
            // One that looks like a key and is none would be taken for mistyped whenever it is shown.
            if text.starts_with(key::PREFIX) && ApiKey::parse(text).is_none() {
                let reason = format!(
                    "the administrator's token begins with {} like the keys that Toolgate makes, and is none; choose \
                     another beginning",
                    key::PREFIX
                );
                return Err(Refusal::new(Code::InvalidField, reason));
            }
            let key = stored_key(ids, administrator, now, digest_of(text), "chosen".to_owned())?;
            Ok((key, Bootstrap::Given))
        }
    }
}
