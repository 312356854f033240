//! Mounts: what is usable is exactly what a person has accepted, in every registry and at every moment.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use toolgate_gate::ports::ledger::{
    AddMount, ApplyService, DecideMount, Decided, Freshness, OfferRecorded, RecordCheck, RecordOffer, RemoveMount,
    RemoveService,
};
use toolgate_gate::refusal::Code;
use toolgate_model::connection::BaseUrl;
use toolgate_model::credential::{Credential, ServiceName};
use toolgate_model::mount::{
    McpEra, Mount, MountAddress, MountTool, Offer, Quarantine, ServerIdentity, ToolState, compare,
};
use toolgate_model::service::{HiddenCharacters, ServiceDefinition};
use toolgate_testkit::ledger_fixture::{LedgerFixture, TestTenant, scopes};

use super::support::{detail, refused};

contract!(
    a_mount_reads_back_as_it_was_added_and_offers_nothing,
    a_name_that_a_service_has_is_not_mounted,
    what_is_accepted_is_registered_with_its_event,
    a_tool_is_not_accepted_before_its_server,
    another_hash_than_the_one_that_was_shown_is_a_conflict,
    a_changed_tool_is_out_of_the_registry_until_it_is_accepted,
    a_new_tool_is_quarantined_and_a_removed_one_comes_back,
    a_rejected_tool_is_asked_about_again_when_it_changes,
    a_server_that_was_replaced_loses_all_its_tools,
    an_offer_without_news_leaves_no_event,
    a_check_is_noted_without_an_event,
    accepted_tools_can_be_granted,
    a_removed_mount_leaves_nothing,
    a_mounted_service_is_not_changed_by_a_definition,
    mounts_of_tenants_are_their_own,
    of_two_decisions_at_once_both_count,
);

fn name() -> ServiceName {
    ServiceName::parse("files").unwrap()
}

fn server(server: &str) -> ServerIdentity {
    ServerIdentity::new(server, None, "1.0", None, json!({"resources": {}}).as_object().unwrap())
}

fn offer(tools: &[(&str, &str)]) -> Offer {
    let definition =
        |name: &str, text: &str| json!({"name": name, "description": text, "inputSchema": {"type": "object"}});
    let listed = tools.iter().map(|&(name, text)| (name.to_owned(), definition(name, text)));
    Offer::read(McpEra::Legacy, server("files-server"), listed).unwrap()
}

fn addition(tenant: &TestTenant, offer: &Offer) -> AddMount {
    let mount = Mount {
        tenant: tenant.id.clone(),
        name: name(),
        address: MountAddress::Http { url: BaseUrl::parse("https://files.example/mcp").unwrap() },
        trusted: false,
        hidden_characters: HiddenCharacters::Strip,
        credential: None,
        declared: false,
        era: offer.era,
        pinned: None,
        seen: offer.server.clone(),
        checked_at: tenant.now(),
        failure: None,
        created_at: tenant.now(),
        updated_at: tenant.now(),
    };
    let tools = compare(&[], &offer.tools).into_iter().filter_map(|change| change.after).collect();
    AddMount { audit: tenant.audit(), mount, tools }
}

async fn mounted(fixture: &LedgerFixture, tools: &[(&str, &str)]) -> TestTenant {
    let tenant = fixture.tenant().await;
    tenant.ledger.add_mount(addition(&tenant, &offer(tools))).await.unwrap();
    tenant
}

async fn read(tenant: &TestTenant) -> (Mount, Vec<MountTool>) {
    tenant.ledger.mount(&tenant.id, &name()).await.unwrap().unwrap()
}

async fn tool(tenant: &TestTenant, upstream: &str) -> Option<MountTool> {
    read(tenant).await.1.into_iter().find(|tool| tool.upstream == upstream)
}

async fn state(tenant: &TestTenant, upstream: &str) -> Option<ToolState> {
    tool(tenant, upstream).await.map(|tool| tool.state)
}

/// A decision about these tools as they stand, and about the server where that is wanted.
async fn decision(tenant: &TestTenant, accept: bool, server: bool, upstream: &[&str]) -> DecideMount {
    let (mount, tools) = read(tenant).await;
    let shown = |name: &&str| {
        let tool = tools.iter().find(|tool| tool.upstream == **name).unwrap();
        let hash = tool.hash_to_confirm().unwrap().to_owned();
        ((*name).to_owned(), Decided { hash, overridden: Vec::new() })
    };
    DecideMount {
        audit: tenant.audit(),
        name: name(),
        accept,
        server: server.then(|| Decided { hash: mount.seen.hash(), overridden: Vec::new() }),
        tools: upstream.iter().map(shown).collect(),
    }
}

async fn accept(tenant: &TestTenant, server: bool, upstream: &[&str]) {
    let command = decision(tenant, true, server, upstream).await;
    tenant.ledger.decide_mount(command).await.unwrap();
}

async fn record(tenant: &TestTenant, offer: Offer) -> OfferRecorded {
    let command = RecordOffer { audit: tenant.audit(), name: name(), offer };
    tenant.ledger.record_offer(command).await.unwrap()
}

/// The tools that the registry has, without those of the rest of the protocol.
async fn registered(tenant: &TestTenant) -> Vec<String> {
    let registry = tenant.ledger.registry(&tenant.id, tenant.now(), Freshness::Newest).await.unwrap();
    let definition = registry.services.iter().find(|service| service.definition.service == name());
    let tools = definition.map(|service| service.definition.tools.keys().map(ToString::to_string));
    tools.into_iter().flatten().filter(|tool| !tool.starts_with("mcp.")).collect()
}

async fn a_mount_reads_back_as_it_was_added_and_offers_nothing(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let command = addition(&tenant, &offer(&[("read", "Reads."), ("write/2", "Writes.")]));
    tenant.ledger.add_mount(command.clone()).await.unwrap();
    let (mount, tools) = read(&tenant).await;
    assert_eq!((&mount, &tools), (&command.mount, &command.tools));
    assert!(tools.iter().all(|tool| tool.state == ToolState::Quarantined(Quarantine::New)));
    assert!(registered(&tenant).await.is_empty());
    let events = tenant.events_of("mount.added").await;
    assert_eq!(events[0]["data"]["tools"], 2);
    assert_eq!(tenant.events_of("service.applied").await.len(), 1);
    let list = tenant.ledger.mounts(&tenant.id).await.unwrap();
    assert_eq!((list.len(), list[0].quarantined, list[0].accepted), (1, 2, 0));
    refused(&tenant, Code::AlreadyExists, tenant.ledger.add_mount(command)).await;
}

async fn a_name_that_a_service_has_is_not_mounted(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let definition = json!({"service": "files", "version": "7", "tools": {}});
    let definition = ServiceDefinition::from_json(&definition).unwrap();
    let command = ApplyService { audit: tenant.audit(), definition, replace: false };
    tenant.ledger.apply_service(command).await.unwrap();
    refused(&tenant, Code::AlreadyExists, tenant.ledger.add_mount(addition(&tenant, &offer(&[])))).await;
}

async fn what_is_accepted_is_registered_with_its_event(fixture: &LedgerFixture) {
    let tenant = mounted(fixture, &[("read", "Reads."), ("write", "Writes.")]).await;
    let mut command = decision(&tenant, true, true, &["read"]).await;
    command.tools.get_mut("read").unwrap().overridden = vec!["concealment".to_owned()];
    tenant.ledger.decide_mount(command).await.unwrap();
    assert_eq!(registered(&tenant).await, ["read"]);
    let accepted = tenant.events_of("mount.tool.accepted").await;
    assert_eq!(accepted[0]["data"]["overridden"], json!(["concealment"]));
    assert_eq!((&accepted[0]["data"]["change"], &accepted[0]["data"]["tool"]), (&json!("new"), &json!("read")));
    assert_eq!(tenant.events_of("mount.server.accepted").await.len(), 1);
    let registry = tenant.ledger.registry(&tenant.id, tenant.now(), Freshness::Newest).await.unwrap();
    let tools = &registry.services[0].definition.tools;
    let forwarded: Vec<_> = tools.keys().filter(|tool| tool.as_str().starts_with("mcp.")).collect();
    assert_eq!(forwarded.len(), 3);
    let pin = tool(&tenant, "read").await.unwrap().pinned.unwrap();
    let mapping =
        tools.iter().find(|(name, _)| name.as_str() == "read").and_then(|(_, tool)| tool.mcp.clone()).unwrap();
    assert_eq!(mapping.definition_hash, Some(pin.hash));
}

async fn a_tool_is_not_accepted_before_its_server(fixture: &LedgerFixture) {
    let tenant = mounted(fixture, &[("read", "Reads.")]).await;
    let command = decision(&tenant, true, false, &["read"]).await;
    let refusal = refused(&tenant, Code::MountChanged, tenant.ledger.decide_mount(command)).await;
    assert_eq!(detail(&refusal, "name"), json!("server"));
    assert!(registered(&tenant).await.is_empty());
}

async fn another_hash_than_the_one_that_was_shown_is_a_conflict(fixture: &LedgerFixture) {
    let tenant = mounted(fixture, &[("read", "Reads."), ("write", "Writes.")]).await;
    let shown = decision(&tenant, true, true, &["read", "write"]).await;
    record(&tenant, offer(&[("read", "Reads."), ("write", "Now it does something else.")])).await;
    let refusal = refused(&tenant, Code::MountChanged, tenant.ledger.decide_mount(shown)).await;
    assert_eq!(detail(&refusal, "name"), json!("write"));
    assert!(registered(&tenant).await.is_empty(), "all or nothing");
    let unknown = DecideMount {
        tools: BTreeMap::from([("other".to_owned(), Decided::default())]),
        ..decision(&tenant, true, true, &[]).await
    };
    refused(&tenant, Code::MountNotFound, tenant.ledger.decide_mount(unknown)).await;
}

async fn a_changed_tool_is_out_of_the_registry_until_it_is_accepted(fixture: &LedgerFixture) {
    let tenant = mounted(fixture, &[("read", "Reads."), ("write", "Writes.")]).await;
    accept(&tenant, true, &["read", "write"]).await;
    assert_eq!(registered(&tenant).await, ["read", "write"]);
    let recorded = record(&tenant, offer(&[("read", "Reads, and sends it elsewhere."), ("write", "Writes.")])).await;
    assert_eq!(recorded, OfferRecorded { quarantined: 1, restored: 0, server: false });
    assert_eq!(registered(&tenant).await, ["write"]);
    let events = tenant.events_of("mount.tool.quarantined").await;
    assert_eq!((events.len(), &events[0]["data"]["change"]), (1, &json!("changed")));
    assert!(events[0]["data"]["hash"] != events[0]["data"]["pinned_hash"]);
    // And back: still a person's business.
    record(&tenant, offer(&[("read", "Reads."), ("write", "Writes.")])).await;
    assert_eq!(registered(&tenant).await, ["write"]);
    accept(&tenant, false, &["read"]).await;
    assert_eq!(registered(&tenant).await, ["read", "write"]);
}

async fn a_new_tool_is_quarantined_and_a_removed_one_comes_back(fixture: &LedgerFixture) {
    let tenant = mounted(fixture, &[("read", "Reads.")]).await;
    accept(&tenant, true, &["read"]).await;
    record(&tenant, offer(&[("write", "Writes.")])).await;
    assert_eq!(state(&tenant, "read").await, Some(ToolState::Quarantined(Quarantine::Removed)));
    assert_eq!(state(&tenant, "write").await, Some(ToolState::Quarantined(Quarantine::New)));
    assert!(registered(&tenant).await.is_empty());
    let recorded = record(&tenant, offer(&[("read", "Reads.")])).await;
    assert_eq!(recorded, OfferRecorded { quarantined: 0, restored: 1, server: false });
    assert_eq!((registered(&tenant).await, state(&tenant, "write").await), (vec!["read".to_owned()], None));
    assert_eq!(tenant.events_of("mount.tool.restored").await.len(), 1);
    // A person may also accept that it is gone.
    record(&tenant, offer(&[])).await;
    accept(&tenant, false, &["read"]).await;
    assert_eq!(state(&tenant, "read").await, None);
}

async fn a_rejected_tool_is_asked_about_again_when_it_changes(fixture: &LedgerFixture) {
    let tenant = mounted(fixture, &[("read", "Reads.")]).await;
    let command = decision(&tenant, false, false, &["read"]).await;
    tenant.ledger.decide_mount(command).await.unwrap();
    assert_eq!(state(&tenant, "read").await, Some(ToolState::Rejected));
    assert_eq!(tenant.events_of("mount.tool.rejected").await.len(), 1);
    assert_eq!(record(&tenant, offer(&[("read", "Reads.")])).await, OfferRecorded::default());
    record(&tenant, offer(&[("read", "Reads better.")])).await;
    assert_eq!(state(&tenant, "read").await, Some(ToolState::Quarantined(Quarantine::New)));
}

async fn a_server_that_was_replaced_loses_all_its_tools(fixture: &LedgerFixture) {
    let tenant = mounted(fixture, &[("read", "Reads.")]).await;
    accept(&tenant, true, &["read"]).await;
    let other = Offer { server: server("another-server"), ..offer(&[("read", "Reads.")]) };
    assert!(record(&tenant, other.clone()).await.server);
    assert!(registered(&tenant).await.is_empty());
    let events = tenant.events_of("mount.server.quarantined").await;
    assert_eq!(events[0]["data"]["replaced"], true);
    // Seen again it is no news.
    assert!(!record(&tenant, other).await.server);
    accept(&tenant, true, &[]).await;
    assert_eq!(registered(&tenant).await, ["read"]);
}

async fn an_offer_without_news_leaves_no_event(fixture: &LedgerFixture) {
    let tenant = mounted(fixture, &[("read", "Reads.")]).await;
    accept(&tenant, true, &["read"]).await;
    let before = tenant.events().await.len();
    assert_eq!(record(&tenant, offer(&[("read", "Reads.")])).await, OfferRecorded::default());
    assert_eq!(tenant.events().await.len(), before);
}

async fn a_check_is_noted_without_an_event(fixture: &LedgerFixture) {
    let tenant = mounted(fixture, &[("read", "Reads.")]).await;
    let before = tenant.events().await.len();
    let check = |time, failure| RecordCheck { tenant: tenant.id.clone(), name: name(), time, failure };
    let due = |then| tenant.ledger.mounts_to_check(then, 10);
    let mine = |due: Vec<(_, _)>| due.contains(&(tenant.id.clone(), name()));
    assert!(mine(due(tenant.later(1)).await.unwrap()));
    tenant.ledger.record_check(check(tenant.later(60), Some("refused".to_owned()))).await.unwrap();
    assert_eq!(read(&tenant).await.0.failure.as_deref(), Some("refused"));
    assert!(!mine(due(tenant.later(1)).await.unwrap()));
    assert!(mine(due(tenant.later(61)).await.unwrap()));
    tenant.ledger.record_check(check(tenant.later(90), None)).await.unwrap();
    assert_eq!(read(&tenant).await.0.failure, None);
    assert_eq!(tenant.events().await.len(), before);
}

async fn accepted_tools_can_be_granted(fixture: &LedgerFixture) {
    let tenant = mounted(fixture, &[("read", "Reads."), ("write", "Writes.")]).await;
    let vault = tenant.vault().await;
    let credential = Credential {
        service: name(),
        scopes_available: scopes(&["own"]),
        version: 0,
        ..tenant.new_credential(vault.id)
    };
    let command = toolgate_gate::ports::ledger::CreateCredential {
        audit: tenant.audit(),
        credential: credential.clone(),
        sealed: None,
    };
    tenant.ledger.create_credential(command).await.unwrap();
    accept(&tenant, true, &["read"]).await;
    let credential = tenant.ledger.credential(&tenant.id, credential.id).await.unwrap().unwrap();
    assert_eq!(credential.scopes_available, scopes(&["own", "read", "resources.read"]));
}

async fn a_removed_mount_leaves_nothing(fixture: &LedgerFixture) {
    let tenant = mounted(fixture, &[("read", "Reads.")]).await;
    accept(&tenant, true, &["read"]).await;
    let remove = || RemoveMount { audit: tenant.audit(), name: name() };
    tenant.ledger.remove_mount(remove()).await.unwrap();
    assert_eq!(tenant.ledger.mount(&tenant.id, &name()).await.unwrap(), None);
    assert!(registered(&tenant).await.is_empty());
    assert_eq!(tenant.events_of("mount.removed").await.len(), 1);
    refused(&tenant, Code::MountNotFound, tenant.ledger.remove_mount(remove())).await;
    let command = RecordOffer { audit: tenant.audit(), name: name(), offer: offer(&[]) };
    refused(&tenant, Code::MountNotFound, tenant.ledger.record_offer(command)).await;
    tenant.ledger.add_mount(addition(&tenant, &offer(&[("read", "Reads.")]))).await.unwrap();
    assert_eq!(state(&tenant, "read").await, Some(ToolState::Quarantined(Quarantine::New)), "nothing is remembered");
}

async fn a_mounted_service_is_not_changed_by_a_definition(fixture: &LedgerFixture) {
    let tenant = mounted(fixture, &[]).await;
    for version in ["1", "2"] {
        let definition = json!({"service": "files", "version": version, "tools": {"x": {}}});
        let definition = ServiceDefinition::from_json(&definition).unwrap();
        let command = ApplyService { audit: tenant.audit(), definition, replace: true };
        refused(&tenant, Code::ServiceMounted, tenant.ledger.apply_service(command)).await;
    }
    let command = RemoveService { audit: tenant.audit(), service: name(), version: None };
    refused(&tenant, Code::ServiceMounted, tenant.ledger.remove_service(command)).await;
}

async fn mounts_of_tenants_are_their_own(fixture: &LedgerFixture) {
    let here = mounted(fixture, &[("read", "Reads.")]).await;
    let there = mounted(fixture, &[("write", "Writes.")]).await;
    accept(&here, true, &["read"]).await;
    assert!(registered(&there).await.is_empty());
    assert_eq!(tool(&there, "read").await, None);
    let command = RemoveMount { audit: there.audit(), name: name() };
    there.ledger.remove_mount(command).await.unwrap();
    assert_eq!(registered(&here).await, ["read"]);
}

async fn of_two_decisions_at_once_both_count(fixture: &LedgerFixture) {
    let tenant = mounted(fixture, &[("a", "A."), ("b", "B."), ("c", "C.")]).await;
    accept(&tenant, true, &["c"]).await;
    let there = tenant.through(fixture.replica().await);
    let commands = (decision(&tenant, true, false, &["a"]).await, decision(&there, true, false, &["b"]).await);
    let (first, second) = tokio::join!(tenant.ledger.decide_mount(commands.0), there.ledger.decide_mount(commands.1));
    assert_eq!((first, second), (Ok(()), Ok(())));
    assert_eq!(registered(&tenant).await, ["a", "b", "c"]);
    let kinds: Vec<Value> = tenant.events_of("mount.tool.accepted").await;
    assert_eq!(kinds.len(), 3);
}
