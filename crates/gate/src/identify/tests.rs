//! Callers with access tokens, on ports in memory.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicI64, Ordering};

use async_trait::async_trait;
use toolgate_model::principal::PrincipalKind;
use toolgate_model::token_subject::{IssuerUrl, SubjectName, TokenSubject};

use super::*;
use crate::ports::ledger::{
    CreateKey, CreatePrincipal, Page, PageRequest, RemovePrincipal, Removed, RevokeKey, UpdatePrincipal,
};

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const THERE: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

/// One agent, one registered subject, and an issuer whose tokens say what is to be made of them.
struct Office {
    seconds: AtomicI64,
    key: Mutex<KeyRecord>,
    agent: Principal,
}

impl Office {
    fn open() -> (Arc<Self>, Authenticator) {
        let now = at(0);
        let agent = PrincipalId::parse("billing").unwrap();
        let key = KeyRecord {
            id: KeyId::new(now, [1; 10]),
            principal: agent.clone(),
            label: None,
            hint: String::new(),
            created_at: now,
            expires_at: None,
            revoked_at: None,
            last_used_at: None,
        };
        let agent =
            Principal::new(TenantId::default_tenant(), agent, PrincipalKind::Agent, PermissionSet::of_an_agent(), now);
        let office = Arc::new(Self { seconds: AtomicI64::new(0), key: Mutex::new(key), agent });
        let authenticator = Authenticator::new(office.clone(), office.clone(), office.clone());
        (office.clone(), authenticator.with_tokens(Some(office)))
    }
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(1_770_000_000_000 + seconds * 1000).unwrap()
}

fn subject(name: &str) -> TokenSubject {
    let issuer = IssuerUrl::parse("https://login.example.com").unwrap();
    TokenSubject { issuer, subject: SubjectName::parse(name).unwrap() }
}

impl Clock for Office {
    fn now(&self) -> Timestamp {
        at(self.seconds.load(Ordering::SeqCst))
    }
}

#[async_trait]
impl TokenVerifier for Office {
    fn recognizes(&self, presented: &str) -> bool {
        presented.starts_with("token ")
    }

    fn tenant_of(&self, _: &IssuerUrl) -> Option<&TenantId> {
        None
    }

    async fn verify(&self, token: &str, _: &KeyDigest, _: Timestamp) -> Result<Arc<VerifiedToken>, Refusal> {
        let (name, tenant) = match token {
            "token forged" => return Err(Refusal::new(Code::TokenInvalid, "no")),
            "token narrow" => return Err(Refusal::new(Code::TokenScopeInsufficient, "no")),
            "token unverifiable" => return Err(Refusal::new(Code::IssuerUnavailable, "no")),
            "token elsewhere" => ("billing", TenantId::parse("acme").unwrap()),
            name => (name.trim_start_matches("token "), TenantId::default_tenant()),
        };
        let subject = subject(name);
        Ok(Arc::new(VerifiedToken { identity: subject.digest(), subject, tenant, ends_at: at(60) }))
    }

    fn verified(&self, _: &KeyDigest, _: Timestamp) -> Option<Arc<VerifiedToken>> {
        None
    }
}

fn unused<T>() -> Result<T, Refusal> {
    Err(Refusal::new(Code::Internal, "not used here"))
}

#[async_trait]
impl Keys for Office {
    async fn create_key(&self, _: CreateKey) -> Result<KeyRecord, Refusal> {
        unused()
    }
    async fn keys(&self, _: &TenantId, _: &PrincipalId) -> Result<Vec<KeyRecord>, Refusal> {
        unused()
    }
    async fn key(&self, _: &TenantId, _: KeyId) -> Result<Option<KeyRecord>, Refusal> {
        Ok(Some(self.key.lock().unwrap().clone()))
    }
    async fn revoke_key(&self, _: RevokeKey) -> Result<KeyRecord, Refusal> {
        unused()
    }
    fn generation(&self) -> Generation {
        0
    }
    async fn identify(
        &self,
        digest: &KeyDigest,
        _: Timestamp,
        _: Freshness,
    ) -> Result<Option<Arc<(Arc<Principal>, KeyRecord)>>, Refusal> {
        let found = || Arc::new((Arc::new(self.agent.clone()), self.key.lock().unwrap().clone()));
        Ok((*digest == subject("billing").digest()).then(found))
    }
    async fn note_key_use(&self, _: BTreeMap<KeyId, Timestamp>) -> Result<(), Refusal> {
        unused()
    }
}

#[async_trait]
impl Principals for Office {
    async fn create_principal(&self, _: CreatePrincipal) -> Result<(), Refusal> {
        unused()
    }
    async fn principal(&self, _: &TenantId, _: &PrincipalId) -> Result<Option<Principal>, Refusal> {
        Ok(Some(self.agent.clone()))
    }
    async fn principals(&self, _: &TenantId, _: PageRequest) -> Result<Page<Principal>, Refusal> {
        unused()
    }
    async fn update_principal(&self, _: UpdatePrincipal) -> Result<Principal, Refusal> {
        unused()
    }
    async fn remove_principal(&self, _: RemovePrincipal) -> Result<Removed, Refusal> {
        unused()
    }
}

async fn code(authenticator: &Authenticator, presented: &str, source: IpAddr) -> Option<Code> {
    authenticator.identify(Some(presented), source, Freshness::Newest).await.err().map(|refusal| refusal.code())
}

#[tokio::test]
async fn a_token_is_attributed_to_the_key_of_its_subject_and_ends_with_it() {
    let (office, authenticator) = Office::open();
    let caller = authenticator.identify(Some("token billing"), HERE, Freshness::Newest).await.unwrap();
    assert_eq!((caller.id().as_str(), caller.key()), ("billing", office.key.lock().unwrap().id));
    assert!(authenticator.key_uses.lock().unwrap().contains_key(&caller.key()));
    assert_eq!(code(&authenticator, "token stranger", HERE).await, Some(Code::Unauthenticated));
    assert_eq!(code(&authenticator, "token elsewhere", HERE).await, Some(Code::Unauthenticated));
    office.key.lock().unwrap().revoked_at = Some(at(0));
    assert_eq!(code(&authenticator, "token billing", HERE).await, Some(Code::KeyRevoked));
}

#[tokio::test]
async fn a_long_response_ends_with_the_token() {
    let (office, authenticator) = Office::open();
    let caller = authenticator.identify(Some("token billing"), HERE, Freshness::Newest).await.unwrap();
    office.seconds.store(59, Ordering::SeqCst);
    let again = authenticator.identify_again(&caller).await.unwrap();
    office.seconds.store(60, Ordering::SeqCst);
    let refusal = authenticator.identify_again(&again).await.unwrap_err();
    assert_eq!(refusal.code(), Code::TokenExpired);
}

#[tokio::test]
async fn wrong_tokens_count_against_the_address_and_an_issuer_that_is_down_does_not() {
    let (_, authenticator) = Office::open();
    for _ in 0..100 {
        assert_eq!(code(&authenticator, "token unverifiable", HERE).await, Some(Code::IssuerUnavailable));
        assert_eq!(code(&authenticator, "token narrow", HERE).await, Some(Code::TokenScopeInsufficient));
    }
    assert_eq!(code(&authenticator, "token billing", HERE).await, None);
    for number in 0..20 {
        let wrong = if number % 2 == 0 { "token forged" } else { "token stranger" };
        assert!(matches!(code(&authenticator, wrong, HERE).await, Some(Code::TokenInvalid | Code::Unauthenticated)));
    }
    assert_eq!(code(&authenticator, "token forged", HERE).await, Some(Code::TooManyAttempts));
    assert_eq!(code(&authenticator, "token billing", HERE).await, None, "it was accepted before");
    assert_eq!(code(&authenticator, "token forged", THERE).await, Some(Code::TokenInvalid));
}
