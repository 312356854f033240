//! Paged lists: nothing is missed and nothing appears twice, whatever is added in the meantime.

use std::fmt::Debug;

use toolgate_gate::ports::ledger::{EventFilter, GrantFilter, Page, PageRequest};
use toolgate_gate::refusal::Refusal;
use toolgate_testkit::ledger_fixture::{LedgerFixture, principal};

contract!(
    tenants_are_paged,
    principals_are_paged,
    vaults_are_paged,
    credentials_are_paged,
    grants_are_paged,
    events_are_paged,
    the_last_page_has_no_next_even_if_it_is_full,
);

/// Reads all pages of two, calling `between` after each.
async fn read_all<T: Debug>(
    read: impl AsyncFn(PageRequest) -> Result<Page<T>, Refusal>,
    between: impl AsyncFn(usize),
) -> Vec<T> {
    let mut all = Vec::new();
    let mut page = PageRequest::first(2);
    for number in 0.. {
        let Page { items, next } = read(page).await.unwrap();
        assert!(items.len() == 2 || next.is_none(), "only the last page is short");
        all.extend(items);
        between(number).await;
        let Some(next) = next else { break };
        page = PageRequest { after: Some(next), limit: 2 };
    }
    all
}

/// Asserts that these are in order, each once, and include all of the expected ones.
fn assert_complete<T: Ord + Debug>(found: &[T], expected: &[T]) {
    assert!(found.windows(2).all(|pair| pair[0] < pair[1]), "in order, each once: {found:?}");
    for one in expected {
        assert!(found.contains(one), "{one:?} is missing from {found:?}");
    }
}

async fn tenants_are_paged(fixture: &LedgerFixture) {
    let mut expected = Vec::new();
    for _ in 0..5 {
        expected.push(fixture.tenant().await.id);
    }
    let read = async |page| fixture.ledger().tenants(page).await;
    let found = read_all(read, async |number| {
        if number < 3 {
            fixture.tenant().await;
        }
    });
    let found: Vec<_> = found.await.into_iter().map(|tenant| tenant.id).collect();
    assert_complete(&found, &expected);
}

async fn principals_are_paged(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let mut expected = vec![tenant.administrator.clone()];
    for name in ["b", "B", "c-1", "c.2", "c:3", "d@e"] {
        expected.push(tenant.agent(name).await);
    }
    let removed = tenant.agent("c_removed").await;
    tenant.remove(&removed).await.unwrap();
    let read = async |page| fixture.ledger().principals(&tenant.id, page).await;
    let found = read_all(read, async |number| {
        // One before and one behind the cursor, wherever that is.
        if number < 3 {
            tenant.agent(&format!("-{number}")).await;
            tenant.agent(&format!("z{number}")).await;
        }
    });
    let found: Vec<_> = found.await.into_iter().map(|principal| principal.id).collect();
    assert_complete(&found, &expected);
    assert!(!found.contains(&removed) && found.contains(&principal("z0")));
}

async fn vaults_are_paged(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let mut expected = Vec::new();
    for _ in 0..5 {
        expected.push(tenant.vault().await.id);
    }
    let read = async |page| fixture.ledger().vaults(&tenant.id, Some(&tenant.administrator), page).await;
    let found = read_all(read, async |number| {
        if number < 3 {
            tenant.vault().await;
        }
    });
    let found: Vec<_> = found.await.into_iter().map(|(vault, _)| vault.id).collect();
    assert_complete(&found, &expected);
}

async fn credentials_are_paged(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let vault = tenant.vault().await;
    let mut expected = Vec::new();
    for _ in 0..5 {
        expected.push(tenant.store_credential(tenant.new_credential(vault.id)).await.id);
    }
    let read = async |page| fixture.ledger().credentials(&tenant.id, Some(vault.id), page).await;
    let found = read_all(read, async |number| {
        if number < 3 {
            tenant.store_credential(tenant.new_credential(vault.id)).await;
        }
    });
    let found: Vec<_> = found.await.into_iter().map(|credential| credential.id).collect();
    assert_complete(&found, &expected);
}

async fn grants_are_paged(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let root = tenant.grant("worker").await;
    let mut expected = vec![root.id];
    for _ in 0..5 {
        expected.push(tenant.delegate(&root, "worker").await.unwrap().id);
    }
    tenant.delegate(&root, "somebody-else").await.unwrap();
    let filter = || GrantFilter { agent: Some(principal("worker")), ..GrantFilter::all(tenant.now()) };
    let read = async |page| fixture.ledger().grants(&tenant.id, filter(), page).await;
    let found = read_all(read, async |number| {
        if number < 3 {
            tenant.delegate(&root, "worker").await.unwrap();
        }
    });
    let found: Vec<_> = found.await.into_iter().map(|lineage| lineage.grant().id).collect();
    assert_complete(&found, &expected);
}

async fn events_are_paged(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    for number in 0..5 {
        tenant.agent(&format!("agent-{number}")).await;
    }
    tenant.integrate().await;
    let filter = || EventFilter { kinds: vec!["agent.created".to_owned()], ..EventFilter::default() };
    let read = async |page| fixture.ledger().events(&tenant.id, filter(), page).await;
    let found = read_all(read, async |number| {
        if number < 3 {
            tenant.agent(&format!("late-{number}")).await;
            tenant.vault().await;
            tenant.integrate().await;
        }
    });
    let found: Vec<_> = found.await.into_iter().map(|event| event.sequence).collect();
    // Later events only come after: nine agents in total, including the administrator.
    assert_eq!(found.len(), 9);
    assert_complete(&found, &[1, 3, 4, 5, 6, 7]);
}

async fn the_last_page_has_no_next_even_if_it_is_full(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    for _ in 0..4 {
        tenant.vault().await;
    }
    let read = async |page| fixture.ledger().vaults(&tenant.id, None, page).await;
    let first = read(PageRequest::first(2)).await.unwrap();
    let last = read(PageRequest { after: first.next, limit: 2 }).await.unwrap();
    assert_eq!((first.items.len(), last.items.len(), last.next), (2, 2, None));
}
