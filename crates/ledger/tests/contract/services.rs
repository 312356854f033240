//! The registry of services: versions beside each other, each change counted.

use serde_json::json;
use toolgate_gate::ports::ledger::{ApplyService, CreateCredential, Freshness, Registry, RemoveService};
use toolgate_gate::refusal::Code;
use toolgate_model::canonical::to_canonical;
use toolgate_model::credential::{Credential, ServiceName};
use toolgate_model::merkle::sha256;
use toolgate_model::scope::ScopeSet;
use toolgate_model::service::{ServiceDefinition, ServiceVersion};
use toolgate_testkit::ledger_fixture::{LedgerFixture, TestTenant};

use super::support::refused;

contract!(
    a_tenant_without_services_has_an_empty_registry,
    a_service_reads_back_as_it_was_applied,
    a_version_that_is_there_is_only_replaced_on_request,
    a_replaced_version_keeps_its_beginning_and_its_place,
    versions_coexist_and_the_last_one_to_come_is_first,
    services_are_in_the_order_of_their_names,
    one_version_is_removed,
    all_versions_are_removed,
    what_is_not_there_is_not_removed,
    a_version_that_comes_again_is_the_newest,
    every_change_is_counted_and_recorded,
    the_registries_of_tenants_are_their_own,
    services_applied_at_the_same_time_are_all_there,
    of_many_who_register_one_version_one_does,
    no_two_tools_share_one_full_name,
    of_two_who_make_one_full_name_at_once_one_does,
    of_two_credentials_that_make_one_full_name_at_once_one_is_made,
);

/// A service with one tool.
pub fn definition(service: &str, version: &str) -> ServiceDefinition {
    let definition = json!({
        "service": service, "version": version, "base_url": "https://api.example.com",
        "tools": {"charges.read": {"scope": "charges.read", "estimated_cost_usd": 0.001}}
    });
    ServiceDefinition::from_json(&definition).unwrap()
}

fn apply(tenant: &TestTenant, service: &str, version: &str) -> ApplyService {
    ApplyService { audit: tenant.audit(), definition: definition(service, version), replace: false }
}

async fn put(tenant: &TestTenant, service: &str, version: &str) -> bool {
    let command = ApplyService { replace: true, ..apply(tenant, service, version) };
    tenant.ledger.apply_service(command).await.unwrap()
}

fn remove(tenant: &TestTenant, service: &str, version: Option<&str>) -> RemoveService {
    RemoveService {
        audit: tenant.audit(),
        service: ServiceName::parse(service).unwrap(),
        version: version.map(|version| ServiceVersion::parse(version).unwrap()),
    }
}

/// A service with this one tool.
fn with_tool(tenant: &TestTenant, service: &str, tool: &str) -> ApplyService {
    let definition = json!({"service": service, "version": "1", "tools": {tool: {"scope": "all"}}});
    let definition = ServiceDefinition::from_json(&definition).unwrap();
    ApplyService { audit: tenant.audit(), definition, replace: true }
}

async fn no_two_tools_share_one_full_name(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let ledger = &tenant.ledger;
    ledger.apply_service(with_tool(&tenant, "x", "y.z")).await.unwrap();
    refused(&tenant, Code::AlreadyExists, ledger.apply_service(with_tool(&tenant, "x.y", "z"))).await;
    assert_eq!(registry(&tenant).await.services.len(), 1);
    for (service, tool) in [("x.y", "other"), ("x", "y.z")] {
        ledger.apply_service(with_tool(&tenant, service, tool)).await.unwrap();
    }
    // A tool that a credential defines counts too.
    let vault = tenant.vault().await;
    let of_service = |service: &str| CreateCredential {
        audit: tenant.audit(),
        credential: Credential {
            service: ServiceName::parse(service).unwrap(),
            scopes_available: serde_json::from_value::<ScopeSet>(json!(["z"])).unwrap(),
            version: 0,
            ..tenant.new_credential(vault.id)
        },
        sealed: None,
    };
    refused(&tenant, Code::AlreadyExists, ledger.create_credential(of_service("x.y"))).await;
    ledger.create_credential(of_service("a.b")).await.unwrap();
    refused(&tenant, Code::AlreadyExists, ledger.apply_service(with_tool(&tenant, "a", "b.z"))).await;
    // Names are separate per tenant.
    let other = fixture.tenant().await;
    other.ledger.apply_service(with_tool(&other, "x.y", "z")).await.unwrap();
}

async fn of_two_who_make_one_full_name_at_once_one_does(fixture: &LedgerFixture) {
    let here = fixture.tenant().await;
    let there = here.through(fixture.replica().await);
    for round in 0..8 {
        let (one, other) = (format!("x{round}"), format!("x{round}.y"));
        let commands = (with_tool(&here, &one, "y.z"), with_tool(&there, &other, "z"));
        let (first, second) =
            tokio::join!(here.ledger.apply_service(commands.0), there.ledger.apply_service(commands.1));
        assert_eq!([first.is_ok(), second.is_ok()].into_iter().filter(|made| *made).count(), 1, "{first:?} {second:?}");
    }
}

async fn of_two_credentials_that_make_one_full_name_at_once_one_is_made(fixture: &LedgerFixture) {
    let here = fixture.tenant().await;
    let there = here.through(fixture.replica().await);
    let vaults = [here.vault().await.id, here.vault().await.id];
    for round in 0..8 {
        let (one, other) = (format!("x{round}"), format!("x{round}.y"));
        let [first, second] = [(&one, "y.z", vaults[0]), (&other, "z", vaults[1])].map(|(service, scope, vault)| {
            let scopes_available = serde_json::from_value::<ScopeSet>(json!([scope])).unwrap();
            let service = ServiceName::parse(service).unwrap();
            let credential = Credential { service, scopes_available, version: 0, ..here.new_credential(vault) };
            CreateCredential { audit: here.audit(), credential, sealed: None }
        });
        let (first, second) =
            tokio::join!(here.ledger.create_credential(first), there.ledger.create_credential(second));
        assert_eq!([first.is_ok(), second.is_ok()].into_iter().filter(|made| *made).count(), 1, "{first:?} {second:?}");
    }
}

async fn registry(tenant: &TestTenant) -> std::sync::Arc<Registry> {
    tenant.ledger.registry(&tenant.id, tenant.now(), Freshness::Newest).await.unwrap()
}

/// The services and versions, in the order of the registry.
async fn listed(tenant: &TestTenant) -> Vec<(String, String)> {
    let services = &registry(tenant).await.services;
    let names = services.iter().map(|one| (one.definition.service.to_string(), one.definition.version.to_string()));
    names.collect()
}

fn names(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(service, version)| ((*service).to_owned(), (*version).to_owned())).collect()
}

async fn a_tenant_without_services_has_an_empty_registry(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    assert_eq!(*registry(&tenant).await, Registry { revision: 0, services: vec![] });
}

async fn a_service_reads_back_as_it_was_applied(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;

    assert!(fixture.ledger().apply_service(apply(&tenant, "stripe", "2024-01")).await.unwrap(), "it is new");

    let registry = registry(&tenant).await;
    assert_eq!((registry.revision, registry.services.len()), (1, 1));
    let stored = &registry.services[0];
    assert_eq!((&stored.tenant, &stored.definition), (&tenant.id, &definition("stripe", "2024-01")));
    assert_eq!((stored.created_at, stored.updated_at), (tenant.now(), tenant.now()));
}

async fn a_version_that_is_there_is_only_replaced_on_request(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    fixture.ledger().apply_service(apply(&tenant, "stripe", "1")).await.unwrap();
    let before = registry(&tenant).await;
    tenant.wait(5);

    refused(&tenant, Code::AlreadyExists, fixture.ledger().apply_service(apply(&tenant, "stripe", "1"))).await;

    assert_eq!(registry(&tenant).await, before, "not even counted");
}

async fn a_replaced_version_keeps_its_beginning_and_its_place(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let begun = tenant.now();
    assert!(put(&tenant, "stripe", "1").await, "it is new, although it might have been replaced");
    put(&tenant, "stripe", "2").await;
    tenant.wait(5);
    let mut changed = apply(&tenant, "stripe", "1");
    changed.replace = true;
    changed.definition.description = Some("Zahlungen".to_owned());

    assert!(!fixture.ledger().apply_service(changed.clone()).await.unwrap(), "it is not new");

    let registry = registry(&tenant).await;
    assert_eq!(listed(&tenant).await, names(&[("stripe", "2"), ("stripe", "1")]));
    let stored = &registry.services[1];
    assert_eq!(stored.definition, changed.definition);
    assert_eq!((stored.created_at, stored.updated_at), (begun, tenant.now()));
}

async fn versions_coexist_and_the_last_one_to_come_is_first(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    // Not in the order of their names: the newest must not be guessed from them.
    for version in ["2024-01", "v9", "v10", "beta"] {
        fixture.ledger().apply_service(apply(&tenant, "stripe", version)).await.unwrap();
    }
    let expected = [("stripe", "beta"), ("stripe", "v10"), ("stripe", "v9"), ("stripe", "2024-01")];
    assert_eq!(listed(&tenant).await, names(&expected));
}

async fn services_are_in_the_order_of_their_names(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    for service in ["stripe", "Billing", "github", "a-b", "a.b"] {
        fixture.ledger().apply_service(apply(&tenant, service, "1")).await.unwrap();
    }
    let expected = [("Billing", "1"), ("a-b", "1"), ("a.b", "1"), ("github", "1"), ("stripe", "1")];
    assert_eq!(listed(&tenant).await, names(&expected));
}

async fn one_version_is_removed(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    for version in ["1", "2", "3"] {
        put(&tenant, "stripe", version).await;
    }
    assert_eq!(fixture.ledger().remove_service(remove(&tenant, "stripe", Some("2"))).await.unwrap(), 1);
    assert_eq!(listed(&tenant).await, names(&[("stripe", "3"), ("stripe", "1")]));
}

async fn all_versions_are_removed(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    for (service, version) in [("stripe", "1"), ("stripe", "2"), ("github", "1")] {
        put(&tenant, service, version).await;
    }
    assert_eq!(fixture.ledger().remove_service(remove(&tenant, "stripe", None)).await.unwrap(), 2);
    assert_eq!(listed(&tenant).await, names(&[("github", "1")]));
    assert_eq!(tenant.events_of("service.removed").await.len(), 2);
}

async fn what_is_not_there_is_not_removed(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    put(&tenant, "stripe", "1").await;
    let before = registry(&tenant).await;
    for (service, version) in [("github", None), ("github", Some("1")), ("stripe", Some("2"))] {
        let attempt = fixture.ledger().remove_service(remove(&tenant, service, version));
        refused(&tenant, Code::ServiceNotFound, attempt).await;
    }
    assert_eq!(registry(&tenant).await, before, "not even counted");
}

async fn a_version_that_comes_again_is_the_newest(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    put(&tenant, "stripe", "1").await;
    put(&tenant, "stripe", "2").await;
    fixture.ledger().remove_service(remove(&tenant, "stripe", Some("1"))).await.unwrap();
    tenant.wait(5);

    assert!(put(&tenant, "stripe", "1").await);

    assert_eq!(listed(&tenant).await, names(&[("stripe", "1"), ("stripe", "2")]));
    assert_eq!(registry(&tenant).await.services[0].created_at, tenant.now());
}

async fn every_change_is_counted_and_recorded(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let before = tenant.events().await.len();
    put(&tenant, "stripe", "1").await;
    put(&tenant, "stripe", "1").await;
    assert_eq!(registry(&tenant).await.revision, 2);

    fixture.ledger().remove_service(remove(&tenant, "stripe", None)).await.unwrap();

    assert_eq!(*registry(&tenant).await, Registry { revision: 3, services: vec![] });
    let events = tenant.events().await.split_off(before);
    let kinds: Vec<_> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["service.applied", "service.applied", "service.removed"]);
    let digest = sha256(&to_canonical(&definition("stripe", "1").to_json())).to_hex();
    let applied = json!({"service": "stripe", "version": "1", "tools": 1, "digest": digest});
    assert_eq!((&events[0]["data"], &events[1]["data"]), (&applied, &applied));
    assert_eq!(events[2]["data"], json!({"service": "stripe", "version": "1"}));
    assert_eq!((&events[0]["actor"], &events[0]["agent_id"]), (&json!("admin"), &json!(null)));
}

async fn the_registries_of_tenants_are_their_own(fixture: &LedgerFixture) {
    let (one, other) = (fixture.tenant().await, fixture.tenant().await);
    put(&one, "stripe", "1").await;
    assert!(listed(&other).await.is_empty());
    assert!(put(&other, "stripe", "1").await, "the same name is free there");
    fixture.ledger().remove_service(remove(&one, "stripe", None)).await.unwrap();
    assert_eq!((registry(&one).await.revision, registry(&other).await.revision), (2, 1));
    assert_eq!(listed(&other).await, names(&[("stripe", "1")]));
}

async fn services_applied_at_the_same_time_are_all_there(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let replicas = [tenant.clone(), tenant.through(fixture.replica().await)];
    let applied = (0..32).map(|number| {
        let at = &replicas[number % 2];
        at.ledger.apply_service(apply(at, "stripe", &number.to_string()))
    });
    for outcome in futures_util::future::join_all(applied).await {
        assert!(outcome.unwrap());
    }
    for replica in &replicas {
        let registry = registry(replica).await;
        assert_eq!((registry.revision, registry.services.len()), (32, 32));
    }
}

async fn of_many_who_register_one_version_one_does(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let replicas = [tenant.clone(), tenant.through(fixture.replica().await)];
    let attempts = (0..32).map(|number| replicas[number % 2].ledger.apply_service(apply(&tenant, "stripe", "1")));
    let mut made = 0;
    for outcome in futures_util::future::join_all(attempts).await {
        match outcome {
            Ok(new) => made += usize::from(new),
            Err(refusal) => assert_eq!(refusal.code(), Code::AlreadyExists, "{refusal}"),
        }
    }
    assert_eq!((made, registry(&tenant).await.revision), (1, 1));
}
