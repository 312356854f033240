//! The first start: creates the tenant `default`, its administrator, and the administrator's token.

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
/// The setting of the ledger with the key that signs its log.
pub const AUDIT_KEY_SETTING: &str = "audit_public_key";

/// The origin of the administrator's token.
pub enum Bootstrap {
    /// The ledger was already set up; nothing was changed.
    Existing,
    /// The operator chose the token.
    Given,
    /// A token was generated: to be shown once.
    Generated(ApiKey),
}

impl Maintenance {
    /// Sets up a new ledger; for an existing one, checks that the audit key is the one that its log was started with.
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
            tenant: Tenant::new(id, None, now),
            administrator,
            key,
        };
        match self.tenants.create_tenant(command).await {
            // Another replica was faster: its token is valid.
            Err(refusal) if refusal.code() == Code::AlreadyExists => Ok(Bootstrap::Existing),
            other => other.map(|()| outcome),
        }
    }

    /// Creates a key for the administrator of the tenant `default`, for operators with access to the ledger itself.
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

/// The refusal of an audit key other than the one that a ledger's log was started with.
pub fn other_audit_key(own: &str, begun_with: &str) -> Refusal {
    let reason = format!(
        "the audit key is {own}, but the log of this ledger was started with {begun_with}; restore that key file"
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
            // A token that looks like a key and is not one would be rejected as mistyped whenever it is presented.
            if text.starts_with(key::PREFIX) && ApiKey::parse(text).is_none() {
                let reason = format!(
                    "the administrator's token begins with {}, the prefix of generated keys, but is not one; choose \
                    another prefix",
                    key::PREFIX
                );
                return Err(Refusal::new(Code::InvalidField, reason));
            }
            let key = stored_key(ids, administrator, now, digest_of(text), "chosen".to_owned())?;
            Ok((key, Bootstrap::Given))
        }
    }
}
