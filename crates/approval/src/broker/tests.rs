//! Calls that wait, on real ledgers.

use serde_json::json;
use toolgate_gate::ports::entropy::random;
use toolgate_gate::ports::ledger::DecideApproval;
use toolgate_model::approval::{Category, Channel, Decision, Vote};
use toolgate_testkit::ledger_fixture::{LedgerFixture, TestTenant};

use super::*;
use crate::NoLinks;
use crate::fixture::approval;

fn ask(tenant: &TestTenant) -> Ask {
    let approval = Approval {
        tenant: tenant.id.clone(),
        session: None,
        created_at: tenant.now(),
        expires_at: tenant.later(3600),
        ..approval("bank.transfer", Category::Exec, json!({"amount": 1}))
    };
    Ask {
        audit: tenant.audit_of(&approval.agent),
        approval,
        attended: false,
        waits: true,
        grants: Vec::new(),
        most_of_agent: 20,
        parks: None,
        detach: false,
    }
}

/// Stores an approval whose approver disconnects before this process is notified.
async fn approve_and_disconnect(tenant: &TestTenant, approval: &Approval) {
    let by = tenant.administrator.clone();
    let vote = Vote {
        by: by.clone(),
        decision: Decision::Approve,
        channel: Channel::Http,
        reason: None,
        answer: None,
        wish: None,
        at: tenant.now(),
    };
    let command = DecideApproval {
        audit: tenant.audit_of(&by),
        id: approval.id,
        vote,
        standing: None,
        notice: None,
        idempotency_key: None,
        request_digest: String::new(),
    };
    tenant.ledger.decide_approval(command).await.unwrap();
}

async fn a_decision_is_heard(fixture: LedgerFixture) {
    let tenant = fixture.tenant().await;
    tenant.agent("agent").await;
    let process = ProcessId::new(tenant.now(), random().unwrap());
    let broker = Arc::new(ApprovalBroker::new(
        tenant.ledger.clone(),
        tenant.ledger.clone(),
        Arc::new(tenant.clock.clone()),
        process,
        Arc::new(NoLinks),
    ));
    broker.heartbeat().await.unwrap();
    let ask = ask(&tenant);
    let approval = ask.approval.clone();
    let (asked, mut waits) = tokio::sync::mpsc::unbounded_channel();
    let waiting = tokio::spawn({
        let broker = Arc::clone(&broker);
        async move {
            let tell = |_: &Approval| asked.send(()).unwrap();
            broker.approve(ask, &tell, Box::pin(std::future::pending())).await
        }
    });
    waits.recv().await.unwrap();

    approve_and_disconnect(&tenant, &approval).await;
    broker.collect().await.unwrap();

    assert_eq!(broker.waiting(), 0, "nobody has told the call");
    let consent = Consent { approval: Some(approval.id), ..Consent::default() };
    assert_eq!(waiting.await.unwrap().unwrap(), ApprovalOutcome::Consent(consent));
    assert_eq!(tenant.events_of("approval.granted").await[0]["actor"], json!(tenant.administrator));
}

#[tokio::test]
async fn a_decision_whose_approver_disconnects_is_heard_on_sqlite() {
    a_decision_is_heard(LedgerFixture::sqlite().await).await;
}

#[tokio::test]
async fn a_decision_whose_approver_disconnects_is_heard_on_postgresql() {
    a_decision_is_heard(LedgerFixture::postgres().await).await;
}
