//! Revocations under continuous calls, on two replicas: once a revocation is acknowledged nothing is admitted, and it
//! does not wait for the calls to stop.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::task::JoinSet;
use toolgate_gate::ports::ledger::{Admission, Admit, RevokeKey};
use toolgate_gate::refusal::Refusal;
use toolgate_model::grant::{Grant, GrantStatus};
use toolgate_testkit::ledger_fixture::LedgerFixture;

use super::support::calls::{Caller, another};
use super::support::replicas::{Replicas, admitted, many, recorded};

contract!(
    a_revocation_racing_calls_admits_nothing_after_it,
    a_revocation_above_racing_calls_admits_nothing_after_it,
    a_suspension_racing_calls_admits_nothing_after_it,
    the_revocation_of_a_credential_racing_calls_admits_nothing_after_it,
    the_rotation_of_a_credential_racing_calls_admits_nothing_after_it,
    the_revocation_of_a_key_racing_calls_admits_nothing_after_it,
    the_removal_of_an_agent_racing_calls_admits_nothing_after_it,
    an_end_comes_through_while_calls_never_stop,
);

const ROUNDS: usize = 8;
const CALLS: usize = 64;

/// Sends 64 calls through this grant, with `ending` somewhere among them. Every admitted call was recorded when the
/// ending was acknowledged, and none is admitted after it.
async fn race<T: Send + 'static>(
    replicas: &Replicas,
    grant: &Grant,
    round: usize,
    ending: impl Future<Output = Result<T, Refusal>> + Send + 'static,
) {
    let call = replicas.here().call(grant).await;
    let before = recorded(replicas.here()).await;
    let mut attempts = JoinSet::new();
    let mut ending = Some(ending);
    let mut ended = None;
    for number in 0..CALLS {
        // Another position in every round.
        if number == round * 7 % CALLS {
            let (ending, observer) = (ending.take().unwrap(), replicas.turn(round + 1).clone());
            ended = Some(tokio::spawn(async move {
                ending.await.expect("the ending succeeds");
                recorded(&observer).await
            }));
        }
        let (caller, call, grant) = (replicas.turn(number).clone(), another(&call), grant.clone());
        attempts.spawn(async move {
            // Half of them read the grant just before, as after a stale decision.
            let generation = match number % 4 < 2 {
                true => call.generation,
                false => {
                    let held_grant = caller.held_grant(grant.id).await;
                    if held_grant.lineage.standing(call.audit.time).status != GrantStatus::Active {
                        return (call.invocation.id, Admission::Stale);
                    }
                    held_grant.generation
                }
            };
            let call = Admit { generation, ..call };
            (call.invocation.id, caller.send(call).await)
        });
    }
    let written_at_the_end = ended.unwrap().await.unwrap();
    let late = replicas.send(many(&call, 8)).await;
    let outcomes = attempts.join_all().await;

    assert_eq!(admitted(&late), BTreeSet::new(), "after the end");
    assert!(outcomes.iter().all(|(_, outcome)| matches!(outcome, Admission::Admitted | Admission::Stale)));
    let admitted: BTreeSet<_> = admitted(&outcomes).union(&before).copied().collect();
    assert_eq!(recorded(replicas.here()).await, admitted, "what was admitted is written down, and nothing else");
    assert_eq!(written_at_the_end, admitted, "and was so when the end was answered");
}

async fn a_revocation_racing_calls_admits_nothing_after_it(fixture: &LedgerFixture) {
    let replicas = Replicas::of(fixture).await;
    for round in 0..ROUNDS {
        let grant = replicas.here().grant(None).await;
        let (tenant, id) = (replicas.turn(round).tenant.clone(), grant.id);
        race(&replicas, &grant, round, async move { tenant.revoke(id).await }).await;
    }
}

async fn a_revocation_above_racing_calls_admits_nothing_after_it(fixture: &LedgerFixture) {
    let replicas = Replicas::of(fixture).await;
    for round in 0..ROUNDS {
        let root = replicas.here().grant(1000).await;
        let middle = replicas.here().delegate(&root, None).await;
        let leaf = replicas.here().delegate(&middle, 500).await;
        let tenant = replicas.turn(round).tenant.clone();
        race(&replicas, &leaf, round, async move { tenant.revoke(root.id).await }).await;
    }
}

async fn a_suspension_racing_calls_admits_nothing_after_it(fixture: &LedgerFixture) {
    let replicas = Replicas::of(fixture).await;
    let root = replicas.here().grant(None).await;
    let leaf = replicas.here().delegate(&root, None).await;
    for round in 0..ROUNDS {
        let tenant = replicas.turn(round).tenant.clone();
        let id = [root.id, leaf.id][round % 2];
        race(&replicas, &leaf, round, async move { tenant.suspend(id).await }).await;
        replicas.turn(round).tenant.resume(id).await.unwrap();
    }
}

async fn the_revocation_of_a_credential_racing_calls_admits_nothing_after_it(fixture: &LedgerFixture) {
    let replicas = Replicas::of(fixture).await;
    for round in 0..ROUNDS {
        let grant = replicas.here().grant(1000).await;
        let (tenant, id) = (replicas.turn(round).tenant.clone(), grant.credential);
        race(&replicas, &grant, round, async move { tenant.revoke_credential(id).await }).await;
    }
}

async fn the_rotation_of_a_credential_racing_calls_admits_nothing_after_it(fixture: &LedgerFixture) {
    let replicas = Replicas::of(fixture).await;
    let grant = replicas.here().grant(None).await;
    for round in 0..ROUNDS {
        let tenant = replicas.turn(round).tenant.clone();
        let credential = replicas.here().held_grant(grant.id).await.credential.clone();
        // On the only writer, a decision on the newest generation is one on the newest version.
        let rotate = async move { tenant.ledger.rotate_credential(tenant.rotation(&credential)).await };
        race_with_old_decisions(&replicas, &grant, round, rotate).await;
    }
}

/// Like [`race`], for cases in which a new decision would differ.
async fn race_with_old_decisions<T: Send + 'static>(
    replicas: &Replicas,
    grant: &Grant,
    round: usize,
    ending: impl Future<Output = Result<T, Refusal>> + Send + 'static,
) {
    let call = replicas.here().call(grant).await;
    let mut calls = many(&call, CALLS);
    let rest = calls.split_off(round * 7 % CALLS);
    let observer = replicas.turn(round).clone();
    let (first, second, written) = tokio::join!(replicas.send(calls), replicas.send(rest), async move {
        ending.await.expect("the ending succeeds");
        recorded(&observer).await
    });
    let late = replicas.send(many(&call, 8)).await;

    assert_eq!(admitted(&late), BTreeSet::new(), "after the end");
    let admitted: BTreeSet<_> = admitted(&first).union(&admitted(&second)).copied().collect();
    assert!(admitted.is_subset(&written), "written down when the end was answered");
    assert_eq!(recorded(replicas.here()).await, written, "and nothing since");
}

async fn the_revocation_of_a_key_racing_calls_admits_nothing_after_it(fixture: &LedgerFixture) {
    let replicas = Replicas::of(fixture).await;
    let grant = replicas.here().grant(None).await;
    for round in 0..ROUNDS {
        let replicas = replicas.with_fresh_key(round).await;
        let (tenant, id) = (replicas.turn(round).tenant.clone(), replicas.here().key);
        let ending = async move { tenant.ledger.revoke_key(RevokeKey { audit: tenant.audit(), id }).await };
        race(&replicas, &grant, round, ending).await;
    }
}

async fn the_removal_of_an_agent_racing_calls_admits_nothing_after_it(fixture: &LedgerFixture) {
    let replicas = Replicas::of(fixture).await;
    for round in 0..ROUNDS {
        let here = Caller::of(&replicas.here().tenant, &format!("agent-{round}")).await;
        let there = Caller { tenant: replicas.0[1].tenant.clone(), ..here.clone() };
        let replicas = Replicas([here, there]);
        let grant = replicas.here().delegate(&replicas.here().grant(None).await, None).await;
        let (tenant, agent) = (replicas.turn(round).tenant.clone(), replicas.here().agent.clone());
        race(&replicas, &grant, round, async move { tenant.remove(&agent).await }).await;
    }
}

async fn an_end_comes_through_while_calls_never_stop(fixture: &LedgerFixture) {
    let replicas = Replicas::of(fixture).await;
    for round in 0..3 {
        let replicas = replicas.with_fresh_key(round).await;
        let grant = replicas.here().grant(None).await;
        let call = replicas.here().call(&grant).await;
        let stop = Arc::new(AtomicBool::new(false));
        let mut flood = JoinSet::new();
        for number in 0..CALLS {
            let (caller, call, stop) = (replicas.turn(number).clone(), call.clone(), Arc::clone(&stop));
            flood.spawn(async move {
                let mut sent = 0;
                while !stop.load(Ordering::Acquire) {
                    caller.send(another(&call)).await;
                    sent += 1;
                }
                sent
            });
        }
        // Well on its way.
        for _ in 0..20 {
            assert_eq!(replicas.turn(round).send(another(&call)).await, Admission::Admitted);
        }
        let tenant = &replicas.turn(round).tenant;

        match round {
            0 => drop(tenant.revoke(grant.id).await.unwrap()),
            1 => drop(tenant.revoke_credential(grant.credential).await.unwrap()),
            _ => {
                let command = RevokeKey { audit: tenant.audit(), id: replicas.here().key };
                drop(tenant.ledger.revoke_key(command).await.unwrap());
            }
        }

        assert_eq!(replicas.turn(round + 1).send(another(&call)).await, Admission::Stale);
        stop.store(true, Ordering::Release);
        assert!(flood.join_all().await.into_iter().sum::<usize>() > 0);
    }
}
