//! Two hundred workers on two gates that share one PostgreSQL: the coordinator's guardrail of one hundred calls holds to the
//! call, and its cost to the cent.

use serde_json::{Value, json};
use toolgate_testkit::postgres::TestDatabase;

use super::team::{Team, needs};
use crate::world::{Actor, World, block_on, id, setup};

const WORKERS: usize = 200;
const CALLS: usize = 100;
/// What each call costs, in millionths of a US dollar.
const COST: usize = 20_000;

#[test]
fn two_hundred_workers_on_two_gates_make_exactly_the_hundred_calls_of_their_coordinator() {
    let database = block_on(TestDatabase::migrated());
    let setup = setup().reaching_loopback().database(database.url());
    let (one, other) = (World::of(&setup, Some(database)), World::of(&setup, None));
    let guardrails = json!({"auto_delegate": true, "max_tool_invocations": CALLS, "max_tool_cost_usd": 2.0});
    let team = Team::within(&one, guardrails);

    // Given two hundred running tasks, each with a worker that holds the grant of its task alone.
    let gates = [one.admin(), other.admin()];
    let workers: Vec<(Actor, Value)> = std::thread::scope(|scope| {
        let (team, gates) = (&team, &gates);
        let starting: Vec<_> = (0..8)
            .map(|lane| {
                scope.spawn(move || {
                    let numbers = (0..WORKERS).filter(|number| number % 8 == lane);
                    numbers.map(|number| started(team, &gates[number % 2], number)).collect::<Vec<_>>()
                })
            })
            .collect();
        starting.into_iter().flat_map(|lane| lane.join().unwrap()).collect()
    });
    assert_eq!(workers.len(), WORKERS);

    // When all of them call at once, half of them at each gate.
    let replies: Vec<_> = std::thread::scope(|scope| {
        let calls: Vec<_> =
            workers.iter().map(|(worker, task)| scope.spawn(move || worker.invokes(charging(task)))).collect();
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    });

    // Then exactly one hundred calls were made, and every other one was refused for the budget.
    let (made, refused): (Vec<_>, Vec<_>) = replies.iter().partition(|reply| reply.status() == 200);
    assert_eq!((made.len(), team.shop.upstream.count()), (CALLS, CALLS));
    for reply in refused {
        let error = reply.refused(403, "BUDGET_EXCEEDED");
        assert_eq!(error["account_id"], json!(team.coordinator), "{error}");
    }
    // And the ledger adds up, whichever way it is asked.
    for world in [&one, &other] {
        let admin = world.admin();
        let summary = &admin.get(&team.path("/costs")).ok()["summary"];
        assert_eq!(summary["total"], json!(CALLS * COST), "{summary}");
        for sums in ["by_task", "by_agent", "by_service"] {
            let sums = summary[sums].as_object().unwrap();
            assert_eq!(sums.values().filter_map(Value::as_u64).sum::<u64>(), (CALLS * COST) as u64, "{summary}");
        }
        assert_eq!(admin.events("&type=tool.invoked").len(), CALLS);
        assert_eq!(admin.events("&type=tool.denied").len(), WORKERS - CALLS);
    }
}

/// A worker with a task of its own, running, at the gate of this administrator.
fn started(team: &Team, admin: &Actor, number: usize) -> (Actor, Value) {
    let name = format!("worker-{number}");
    let worker = admin.registers(&name, &["tools.invoke"]);
    let task = team.task(&name, needs(&["charges.create"]));
    team.assign(&task, &name);
    worker.changes_task(&task, json!({"status": "claimed"})).ok();
    worker.changes_task(&task, json!({"status": "running"})).ok();
    (worker, task)
}

fn charging(task: &Value) -> Value {
    let parameters = json!({"amount": 1200, "currency": "usd"});
    json!({"tool": "payments.charges.create", "parameters": parameters, "context": {"task_id": id(task)}})
}
