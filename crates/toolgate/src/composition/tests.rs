//! The whole gate in one process, on both ledgers, with a scripted clock and service: what happens between two steps of
//! one call or one response.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Map, json};
use toolgate_approval::{ApprovalBroker, NoLinks};
use toolgate_gate::authority::approvals::DecisionRequest;
use toolgate_gate::authority::credentials::NewCredential;
use toolgate_gate::authority::grants::NewGrant;
use toolgate_gate::call::{Admitted, CallRequest, Progress};
use toolgate_gate::ports::clock::Clock;
use toolgate_gate::ports::entropy::random;
use toolgate_gate::ports::ledger::{ApplyService, Freshness, InvocationFilter, Ledger, PageRequest, RevokeKey};
use toolgate_gate::ports::sealer::{MasterKeyId, SealBinding, SealError, SealedMaterial, Sealer};
use toolgate_gate::ports::source::{Access, Exchange, Execution, ServiceResponse, Source, SourceFailure, Sources};
use toolgate_gate::ports::telemetry::NoTelemetry;
use toolgate_gate::refusal::Code;
use toolgate_gate::{Action, Caller, Gate, Ports, Settings};
use toolgate_guardian::composition::{Guardians, LogAlarm};
use toolgate_guardian::policy::{CedarBook, PolicyEngine};
use toolgate_model::approval::{Channel, Decision};
use toolgate_model::constraint::Constraints;
use toolgate_model::context::GrantContext;
use toolgate_model::credential::{AuthType, Credential, ServiceName};
use toolgate_model::guard::PolicyFile;
use toolgate_model::id::ProcessId;
use toolgate_model::invocation::InvocationStatus;
use toolgate_model::permission::PermissionSet;
use toolgate_model::principal::Principal;
use toolgate_model::secret::{Material, Secret};
use toolgate_model::service::ServiceDefinition;
use toolgate_model::text::Line;
use toolgate_model::time::Timestamp;
use toolgate_testkit::clock::TestClock;
use toolgate_testkit::ledger_fixture::{LedgerFixture, TestTenant, scopes};
use toolgate_vault::{FileProvider, VaultSealer};

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// A service whose token endpoint accepts each refresh token once.
struct Rotating {
    clock: TestClock,
    /// How long the exchange takes.
    lasts: Duration,
}

#[async_trait]
impl Source for Rotating {
    fn executes(&self, action: Action) -> bool {
        action == Action::Http
    }

    async fn execute(&self, _: &Admitted, access: Option<Access<'_>>) -> Execution {
        let access = access.expect("the call has a credential");
        let renewed = access.renewal.renew(&access.material, self).await?;
        let token = renewed.get("access_token").expect("an access token").expose().to_owned();
        Ok(ServiceResponse::said(json!({"renewed": token == "second"})))
    }
}

#[async_trait]
impl Exchange for Rotating {
    async fn exchange(&self, _: &Material) -> Result<Material, SourceFailure> {
        self.clock.advance(self.lasts);
        Ok(tokens("second"))
    }
}

fn tokens(which: &str) -> Material {
    let mut material = Material::new();
    for name in ["access_token", "refresh_token"] {
        assert!(material.insert(name.to_owned(), Secret::new(which.to_owned())));
    }
    material
}

/// Seals, and has the master key changed by another replica between sealing and storing, so many times.
struct Overtaken {
    sealer: VaultSealer,
    ledger: Arc<dyn Ledger>,
    clock: TestClock,
    times: std::sync::atomic::AtomicU32,
}

#[async_trait]
impl Sealer for Overtaken {
    async fn seal(&self, binding: &SealBinding, material: &Material) -> Result<SealedMaterial, SealError> {
        use std::sync::atomic::Ordering::SeqCst;
        let sealed = self.sealer.seal(binding, material).await?;
        if self.times.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1)).is_ok() {
            let before = self.current_key().await?;
            self.renew_key().await?;
            for version in self.ledger.sealed_under_other_keys(&self.current_key().await?, None, 100).await.unwrap() {
                let sealed = self.rewrap(&version.binding, &version.sealed).await?;
                let (binding, replaced) = (version.binding, version.sealed.wrapped_key);
                let command = toolgate_gate::ports::ledger::Rewrap { binding, replaced, sealed };
                assert!(self.ledger.rewrap(command).await.unwrap());
            }
            assert!(self.ledger.retire_key(&before, self.clock.now()).await.unwrap());
        }
        Ok(sealed)
    }

    async fn unseal(&self, binding: &SealBinding, sealed: &SealedMaterial) -> Result<Material, SealError> {
        self.sealer.unseal(binding, sealed).await
    }

    async fn rewrap(&self, binding: &SealBinding, sealed: &SealedMaterial) -> Result<SealedMaterial, SealError> {
        self.sealer.rewrap(binding, sealed).await
    }

    async fn current_key(&self) -> Result<MasterKeyId, SealError> {
        self.sealer.current_key().await
    }

    async fn renew_key(&self) -> Result<MasterKeyId, SealError> {
        self.sealer.renew_key().await
    }

    async fn forget_key(&self, key: &MasterKeyId) -> Result<(), SealError> {
        self.sealer.forget_key(key).await
    }

    async fn check(&self) -> Result<(), SealError> {
        self.sealer.check().await
    }
}

/// A call of the tool that every house has.
fn request() -> CallRequest {
    CallRequest::new("crm.contacts.read".to_owned(), Map::new(), HERE)
}

/// A gate with a tenant.
struct House {
    gate: Arc<Gate>,
    sealer: Arc<Overtaken>,
    tenant: TestTenant,
    _keys: tempfile::TempDir,
}

impl House {
    async fn new(fixture: &LedgerFixture, exchange_lasts: Duration) -> Self {
        let keys = tempfile::tempdir().unwrap();
        let provider = FileProvider::open(&keys.path().join("master.key"), None).unwrap();
        let (ledger, clock) = (Arc::clone(fixture.ledger()), fixture.clock().clone());
        let shared_clock: Arc<dyn Clock> = Arc::new(clock.clone());
        let sealer = Arc::new(Overtaken {
            sealer: VaultSealer::new(Arc::new(provider)),
            ledger: Arc::clone(&ledger),
            clock: clock.clone(),
            times: 0.into(),
        });
        let policy = Arc::new(PolicyEngine::new(ledger.clone(), Arc::clone(&shared_clock)));
        let process = ProcessId::new(clock.now(), random().unwrap());
        let ports = Ports {
            approver: Arc::new(ApprovalBroker::new(
                ledger.clone(),
                ledger.clone(),
                Arc::clone(&shared_clock),
                process,
                Arc::new(NoLinks),
            )),
            ledger,
            sealer: Arc::clone(&sealer) as Arc<dyn Sealer>,
            clock: shared_clock,
            mounts: Arc::new(toolgate_gate::ports::mount::NoMounts),
            sources: Sources::default().with(Rotating { clock, lasts: exchange_lasts }),
            guardian: Arc::new(Guardians::new(policy, Vec::new(), Arc::new(LogAlarm::default()))),
            policy_book: Arc::new(CedarBook),
            telemetry: Arc::new(NoTelemetry),
            tokens: None,
            process,
        };
        // None of the refusals of a test is only counted.
        let settings = Settings { refusals_per_second: 10_000, ..Settings::default() };
        let gate = Arc::new(Gate::new(ports, Arc::clone(fixture.signer()), settings));
        Self { gate, sealer, tenant: fixture.tenant().await, _keys: keys }
    }

    async fn administrator(&self) -> Caller {
        let key = format!("first key of {}", self.tenant.id);
        self.gate.authenticator.identify(Some(&key), HERE, Freshness::Newest).await.unwrap()
    }

    /// An OAuth2 credential that ends after these seconds, with a grant for the administrator.
    async fn credential(&self, seconds: u64) -> Credential {
        let administrator = self.administrator().await;
        let line = |text: &str| Line::parse(text).unwrap();
        let vault = self.gate.administration.create_vault(&administrator, None, line("vault")).await.unwrap();
        let new = NewCredential {
            vault: vault.id,
            service: ServiceName::parse("crm").unwrap(),
            label: line("crm"),
            auth_type: AuthType::OAuth2Token,
            scopes_available: scopes(&["contacts.read"]),
            metadata: Map::from_iter([("base_url".to_owned(), json!("https://api.example.com"))]),
            material: tokens("first"),
            expires_at: Some(self.tenant.later(seconds)),
        };
        let credential = self.gate.administration.create_credential(&administrator, new).await.unwrap();
        let grant = NewGrant {
            credential: credential.id,
            agent: administrator.id().clone(),
            granted_by: None,
            scopes: scopes(&["contacts.read"]),
            constraints: Constraints::default(),
            context: GrantContext::default(),
            delegatable: false,
            delegation_depth: None,
            expires_at: None,
            allow_indefinite: false,
        };
        self.gate.administration.create_grant(&administrator, grant).await.unwrap();
        credential
    }

    /// Makes a call in which the service renews its tokens.
    async fn call(&self) {
        let answer = self.gate.pipeline.invoke(self.administrator().await, request()).await;
        let answer = answer.unwrap_or_else(|denial| panic!("{}", denial.refusal));
        assert_eq!(answer.outcome.status, InvocationStatus::Success, "{:?}", answer.outcome);
        assert_eq!(answer.outcome.result, Some(json!({"renewed": true})));
    }

    async fn stored(&self, credential: &Credential) -> (Credential, Material) {
        let (ledger, tenant) = (&self.tenant.ledger, &self.tenant.id);
        let now = ledger.credential(tenant, credential.id).await.unwrap().unwrap();
        let sealed = ledger.sealed_material(tenant, credential.id, self.tenant.now(), Freshness::Newest).await;
        let sealed = sealed.unwrap().unwrap();
        (now, self.sealer.unseal(&sealed.binding, &sealed.sealed).await.unwrap())
    }
}

/// Runs a rule on both engines.
macro_rules! on_both_ledgers {
    ($($rule:ident),+ $(,)?) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $rule() {
                super::$rule(&super::LedgerFixture::sqlite().await).await;
            })+
        }
        mod postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $rule() {
                super::$rule(&super::LedgerFixture::postgres().await).await;
            })+
        }
    };
}

on_both_ledgers!(
    a_renewal_at_the_moment_of_expiry_keeps_the_end,
    what_a_service_has_rotated_is_kept_although_the_master_key_changes_meanwhile,
    an_export_ends_with_the_key_that_it_was_begun_with,
    a_clock_that_is_set_wrong_ends_nothing_for_good,
    a_clock_that_steps_back_hides_nothing_from_lists,
);

async fn a_renewal_at_the_moment_of_expiry_keeps_the_end(fixture: &LedgerFixture) {
    let house = House::new(fixture, Duration::from_secs(60)).await;
    let credential = house.credential(60).await;
    house.call().await;
    let (now, material) = house.stored(&credential).await;
    assert_eq!((now.version, now.expires_at), (2, credential.expires_at));
    assert_eq!(material.get("refresh_token").unwrap().expose(), "second");
}

async fn what_a_service_has_rotated_is_kept_although_the_master_key_changes_meanwhile(fixture: &LedgerFixture) {
    let house = House::new(fixture, Duration::ZERO).await;
    let credential = house.credential(600).await;
    house.sealer.times.store(3, std::sync::atomic::Ordering::SeqCst);
    house.call().await;
    let (now, material) = house.stored(&credential).await;
    assert_eq!(now.version, 2);
    assert_eq!(material.get("refresh_token").unwrap().expose(), "second", "nobody else knows it");
}

async fn a_clock_that_is_set_wrong_ends_nothing_for_good(fixture: &LedgerFixture) {
    let house = House::new(fixture, Duration::ZERO).await;
    let credential = house.credential(600).await;
    let right = fixture.clock().now();
    fixture.clock().set_stepped(true);
    fixture.clock().advance(Duration::from_secs(40 * 24 * 3600));
    house.gate.maintenance.sweep().await.unwrap();
    house.gate.maintenance.close_calls().await.unwrap();
    house.gate.maintenance.close_sessions().await.unwrap();
    fixture.clock().set(right);
    fixture.clock().set_stepped(false);
    house.gate.maintenance.sweep().await.unwrap();
    assert!(house.tenant.events_of("credential.expired").await.is_empty());

    fixture.clock().advance(Duration::from_secs(40 * 24 * 3600));
    house.gate.maintenance.sweep().await.unwrap();
    assert_eq!(house.tenant.events_of("credential.expired").await[0]["data"]["credential_id"], json!(credential.id));
}

async fn a_clock_that_steps_back_hides_nothing_from_lists(fixture: &LedgerFixture) {
    let mut house = House::new(fixture, Duration::ZERO).await;
    house.credential(7200).await;
    let right = fixture.clock().now();
    let back = Timestamp::from_millis(right.as_millis() - 3_600_000).unwrap();
    let make = async |house: &House, name: &str| {
        let administrator = house.administrator().await;
        house.gate.administration.create_vault(&administrator, None, Line::parse(name).unwrap()).await.unwrap().id
    };
    let calls = async |house: &House| {
        let administrator = house.administrator().await;
        let page = PageRequest::first(100);
        house.gate.administration.invocations(&administrator, InvocationFilter::default(), page).await.unwrap().items
    };
    make(&house, "first").await;
    house.call().await;
    let before = calls(&house).await;
    fixture.clock().set(back);
    house.call().await;
    let after = calls(&house).await;
    assert_eq!(after.get(1..), Some(before.as_slice()), "the newest call comes first");
    assert!(after[0].created_at < before[0].created_at, "although its time is an earlier one");
    fixture.clock().set(right);
    let administrator = house.administrator().await;
    let vaults = async |house: &House, after: Option<String>| {
        let page = house.gate.administration.vaults(&administrator, PageRequest { after, limit: 100 }).await.unwrap();
        page.items.into_iter().map(|(vault, _)| vault.id).collect::<Vec<_>>()
    };
    let mut known = vaults(&house, None).await;

    // A clock that is set back, and then a process that starts with such a clock.
    for restarted in [false, true] {
        fixture.clock().set(back);
        if restarted {
            let tenant = house.tenant.clone();
            house = House { tenant, ..House::new(fixture, Duration::ZERO).await };
            house.gate.maintenance.begin_ids().await.unwrap();
        }
        let cursor = known.last().unwrap().to_string();
        let new = make(&house, "later").await;
        assert_eq!(vaults(&house, Some(cursor)).await, [new], "who goes on from a cursor sees what came after");
        known.push(new);
        fixture.clock().set(right);
    }
}

async fn an_export_ends_with_the_key_that_it_was_begun_with(fixture: &LedgerFixture) {
    let house = House::new(fixture, Duration::ZERO).await;
    let administrator = house.administrator().await;
    let (mut export, _) = house.gate.audit.begin_export(&administrator).await.unwrap();
    assert!(house.gate.audit.continue_export(&mut export).await.unwrap().is_some());

    let (mut export, _) = house.gate.audit.begin_export(&administrator).await.unwrap();
    let command = RevokeKey { audit: house.tenant.audit(), id: administrator.key() };
    house.tenant.ledger.revoke_key(command).await.unwrap();

    assert_eq!(house.gate.audit.continue_export(&mut export).await.unwrap_err().code(), Code::KeyRevoked);
}

fn draft() -> Vec<PolicyFile> {
    let text = "@id(\"none\")\nforbid (principal, action, resource);".to_owned();
    vec![PolicyFile { name: "rules.cedar".to_owned(), text }]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_simulation_tells_how_far_it_has_come_and_reaches_the_end_of_a_long_log() {
    let fixture = LedgerFixture::sqlite().await;
    let house = House::new(&fixture, Duration::ZERO).await;
    let administrator = house.administrator().await;
    let since = fixture.clock().now();
    for _ in 0..6 {
        // Refused calls are forgiven by the clock.
        fixture.clock().advance(Duration::from_secs(3600));
        let calls = (0..1000).map(|_| {
            let request = CallRequest::new("no.such.tool".to_owned(), Map::new(), HERE);
            house.gate.pipeline.invoke(administrator.clone(), request)
        });
        assert!(futures_util::future::join_all(calls).await.iter().all(Result::is_err));
    }

    let mut simulating = house.gate.policies.begin_simulation(&administrator, draft(), since).await.unwrap();
    let mut steps = Vec::new();
    while let Some(step) = house.gate.policies.continue_simulation(&mut simulating).await.unwrap() {
        steps.push(step);
    }
    let simulation = simulating.finish();

    assert_eq!((simulation.calls, simulation.changed), (6000, 0), "none of them reached the policies");
    assert!(steps.len() > 1 && steps.windows(2).all(|pair| pair[0].reached < pair[1].reached), "{steps:?}");
    let last = steps.last().unwrap();
    assert_eq!((last.calls, last.reached + 1), (6000, last.size));
    let recent = house.gate.policies.simulate_policies(&administrator, draft(), fixture.clock().now()).await.unwrap();
    assert_eq!(recent.calls, 1000);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_principal_has_one_simulation_at_a_time_and_a_gate_a_few() {
    let fixture = LedgerFixture::sqlite().await;
    let house = House::new(&fixture, Duration::ZERO).await;
    let administrator = house.administrator().await;
    let since = fixture.clock().now();
    let first = house.gate.policies.begin_simulation(&administrator, draft(), since).await.unwrap();
    let second = house.gate.policies.begin_simulation(&administrator, draft(), since).await.err().unwrap();
    assert_eq!(second.code(), Code::TooManySimulations);
    assert_eq!(
        house.gate.policies.shadow_report(&administrator, since).await.unwrap_err().code(),
        Code::TooManySimulations
    );

    let mut running = vec![first];
    for number in 0.. {
        let name = toolgate_testkit::ledger_fixture::principal(&format!("author-{number}"));
        let permissions = PermissionSet::of_the_platform_administrator();
        let author = Principal { permissions, ..house.tenant.new_principal(&name) };
        house.tenant.ledger.create_principal(house.tenant.registration(author)).await.unwrap();
        house.tenant.key(&name, &format!("the key of {name}")).await;
        let key = format!("the key of {name}");
        let author = house.gate.authenticator.identify(Some(&key), HERE, Freshness::Newest).await.unwrap();
        match house.gate.policies.begin_simulation(&author, draft(), since).await {
            Ok(one) => running.push(one),
            Err(refusal) => {
                assert_eq!(refusal.code(), Code::TooManySimulations);
                break;
            }
        }
    }
    assert_eq!(running.len(), 4);
    running.remove(0);
    assert!(
        house.gate.policies.begin_simulation(&administrator, draft(), since).await.is_ok(),
        "a place was given back"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approver_is_told_that_the_process_of_the_call_died_on_postgresql() {
    let fixture = LedgerFixture::postgres().await;
    let house = House::new(&fixture, Duration::ZERO).await;
    house.credential(600).await;
    let tools = json!({"contacts.read": {"approval": "always"}});
    let definition = ServiceDefinition::from_json(&json!({"service": "crm", "version": "1", "tools": tools})).unwrap();
    let command = ApplyService { audit: house.tenant.audit(), definition, replace: false };
    house.tenant.ledger.apply_service(command).await.unwrap();
    let (observer, mut progress) = tokio::sync::mpsc::unbounded_channel();
    let (gate, caller) = (Arc::clone(&house.gate), house.administrator().await);
    let calling = tokio::spawn(async move {
        let request = CallRequest { observer: Some(observer), ..request() };
        gate.pipeline.invoke(caller, request).await
    });
    let Some(Progress::Asked(asked)) = progress.recv().await else { panic!("the call needs an approval") };
    let approver = toolgate_testkit::ledger_fixture::principal("approver");
    let permissions = PermissionSet::of_a_tenant_administrator();
    let approver = Principal { permissions, ..house.tenant.new_principal(&approver) };
    house.tenant.ledger.create_principal(house.tenant.registration(approver.clone())).await.unwrap();
    house.tenant.key(&approver.id, "the key of the approver").await;
    let approver =
        house.gate.authenticator.identify(Some("the key of the approver"), HERE, Freshness::Newest).await.unwrap();

    // The process gives no sign of life for longer than one that lives.
    house.tenant.wait(60);
    let answer = DecisionRequest {
        decision: Decision::Approve,
        standing: None,
        reason: None,
        answer: None,
        idempotency_key: None,
        channel: Channel::Http,
    };
    let told = house.gate.approvals.decide(&approver, asked.id, answer).await.unwrap_err();

    assert_eq!(told.code(), Code::ApprovalEnded);
    assert!(told.reason().contains("was not made"), "{told}");
    assert_eq!(calling.await.unwrap().unwrap_err().refusal.code(), Code::ApprovalCancelled);
}
