//! Rules of tasks, dependencies, requirements, contexts and guardrails.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::context::{ContextId, GrantContext};
use crate::credential::ServiceName;
use crate::id::{GrantId, IntentId, PlanId, TaskId};
use crate::scope::{Scope, ScopeSet};
use crate::time::Timestamp;
use crate::work::{
    AgentWork, DependencyError, Guardrails, HeldAccess, LeaseScope, RunningTask, StatePatch, TaskStatus,
    ToolRequirement, check_dependencies, match_requirements,
};

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(1_770_544_800_000 + millis).unwrap()
}

fn task(number: u8) -> TaskId {
    TaskId::new(at(0), [number; 10])
}

fn intent(number: u8) -> IntentId {
    IntentId::new(at(0), [number; 10])
}

fn plan(number: u8) -> PlanId {
    PlanId::new(at(0), [number; 10])
}

fn context(intent: Option<IntentId>, plan: Option<PlanId>, task: Option<TaskId>) -> GrantContext {
    let id = |text: String| ContextId::parse(&text).unwrap();
    GrantContext {
        intent_id: intent.map(|intent| id(intent.to_string())),
        plan_id: plan.map(|plan| id(plan.to_string())),
        task_id: task.map(|task| id(task.to_string())),
    }
}

#[test]
fn an_ended_task_stays_as_it_is_except_a_failed_one() {
    for status in TaskStatus::ALL {
        let may_go_on = !status.next().is_empty();
        assert_eq!(may_go_on, !status.has_ended() || *status == TaskStatus::Failed, "{status}");
        assert!(status.require(*status).is_err(), "{status}");
        assert_eq!(TaskStatus::parse(status.as_str()).as_ref(), Ok(status));
    }
    let reachable_from = |to| TaskStatus::ALL.iter().copied().filter(move |from| from.require(to).is_ok());
    assert_eq!(Vec::from_iter(reachable_from(TaskStatus::Running)), [TaskStatus::Claimed, TaskStatus::Blocked]);
    assert_eq!(Vec::from_iter(reachable_from(TaskStatus::Completed)), [TaskStatus::Claimed, TaskStatus::Running]);
    let refused = TaskStatus::Running.require(TaskStatus::Ready).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "a task that is running cannot become ready; it can become blocked, completed, failed, cancelled"
    );
}

#[test]
fn dependencies_name_tasks_of_the_intent_and_form_no_cycle() {
    let existing = BTreeSet::from([task(1)]);
    let check = |new: &[(u8, &[u8])]| {
        let new = new.iter().map(|(id, on)| (task(*id), on.iter().copied().map(task).collect()));
        check_dependencies(&existing, &new.collect::<BTreeMap<_, Vec<_>>>())
    };
    assert_eq!(check(&[(2, &[1]), (3, &[1, 2, 2]), (4, &[3])]), Ok(()));
    assert_eq!(check(&[(2, &[9])]), Err(DependencyError::Unknown(task(9))));
    assert_eq!(check(&[(2, &[2])]), Err(DependencyError::Cycle(task(2))));
    assert_eq!(check(&[(2, &[4]), (3, &[2]), (4, &[3])]), Err(DependencyError::Cycle(task(2))));
}

#[test]
fn one_grant_must_have_all_scopes_of_a_requirement_in_a_context_that_allows_the_task() {
    let scopes = |names: &[&str]| -> ScopeSet { names.iter().map(|name| Scope::parse(name).unwrap()).collect() };
    let service = |name| ServiceName::parse(name).unwrap();
    let held = |number: u8, names: &[&str], context: GrantContext| HeldAccess {
        grant: GrantId::new(at(0), [number; 10]),
        service: service("stripe"),
        scopes: scopes(names),
        context,
    };
    let needs =
        |name, names: &[&str], required| ToolRequirement { service: service(name), scopes: scopes(names), required };
    let here = context(Some(intent(1)), None, Some(task(1)));
    let elsewhere = context(None, None, Some(task(2)));
    let two_halves = [
        held(1, &["read"], GrantContext::default()),
        held(2, &["write"], here.clone()),
        held(3, &["read", "write"], elsewhere),
    ];
    let report = match_requirements(&[needs("stripe", &["read", "write"], true)], &two_halves, &here);
    assert!(!report.is_sufficient());
    assert_eq!(report.missing[0].scopes, [Scope::parse("write").unwrap()]);
    let report = match_requirements(
        &[needs("stripe", &["write"], true), needs("stripe", &[], true), needs("mail", &["send"], false)],
        &two_halves,
        &here,
    );
    assert!(report.is_sufficient());
    assert_eq!(
        report.met.iter().map(|(_, grant)| *grant).collect::<Vec<_>>(),
        [two_halves[1].grant, two_halves[0].grant]
    );
    assert_eq!(report.optional_missing[0].scopes, [Scope::parse("send").unwrap()]);
}

#[test]
fn a_call_may_claim_only_running_tasks_and_open_intents_of_its_agent() {
    let whole = context(Some(intent(1)), Some(plan(1)), Some(task(1)));
    let work = AgentWork {
        running: BTreeMap::from([
            (task(1), RunningTask { context: whole.clone(), due: Some(at(100)) }),
            (task(2), RunningTask { context: context(Some(intent(1)), None, Some(task(2))), due: None }),
        ]),
        intents: BTreeSet::from([intent(1)]),
        plans: BTreeMap::from([(plan(1), intent(1))]),
        coordinators: Vec::new(),
    };
    let bound = work.bind(&context(None, None, Some(task(1))), at(99)).unwrap();
    assert_eq!((&bound.context, bound.task, bound.until), (&whole, Some(task(1)), Some(at(100))));
    assert_eq!(work.bind(&context(None, Some(plan(1)), None), at(0)).unwrap().context.intent(), Some(intent(1)));
    assert!(work.bind(&context(Some(intent(1)), None, None), at(0)).is_ok());
    for (claimed, now) in [
        (context(None, None, Some(task(1))), 100),
        (context(None, None, Some(task(9))), 0),
        (context(Some(intent(2)), None, Some(task(1))), 0),
        (context(None, Some(plan(2)), Some(task(1))), 0),
        (context(None, Some(plan(1)), Some(task(2))), 0),
        (context(Some(intent(2)), None, None), 0),
        (context(Some(intent(2)), Some(plan(1)), None), 0),
        (context(None, Some(plan(2)), None), 0),
    ] {
        assert!(work.bind(&claimed, at(now)).is_err(), "{claimed:?}");
    }
    let foreign: GrantContext = serde_json::from_value(json!({"intent_id": "intent_01HX", "task_id": "t-1"})).unwrap();
    assert!(!foreign.names_work());
    assert_eq!(AgentWork::default().bind(&foreign, at(0)).unwrap().context, foreign);
}

#[test]
fn a_guardrail_that_is_not_enforced_is_accepted_only_as_the_client_sends_it_by_default() {
    let read = |value: Value| Guardrails::from_json(value.as_object().unwrap());
    let all = json!({
        "max_tool_invocations": 500, "max_tool_cost_usd": 25.5, "max_budget_usd": 10, "allowed_services": ["stripe", "github"],
        "denied_services": ["aws"], "require_approval_for": ["stripe.refunds.create"], "auto_delegate": true,
        "max_tasks_per_plan": 20, "max_delegation_depth": 3, "max_concurrent_tasks": 10, "warn_at_percentage": 80,
        "on_exceed": "pause_and_escalate", "max_plan_versions": 5, "checkpoint_timeout_hours": 24,
        "requires_plan_review": false, "requires_replan_review": false, "auto_escalate_after_failures": 3,
        "require_human_for_capabilities": [], "memory_archive_required": true, "max_task_wait_hours": null
    });
    let guardrails = read(all).unwrap();
    assert_eq!(guardrails.cost_limit().unwrap().micros(), 10_000_000);
    assert_eq!(serde_json::from_value::<Guardrails>(json!(guardrails)).unwrap(), guardrails);
    for (member, value) in [
        ("warn_at_percentage", json!(50)),
        ("requires_plan_review", json!(true)),
        ("max_task_wait_hours", json!(1)),
        ("max_tool_invocations", json!(-1)),
        ("max_tool_cost_usd", json!(0.000_000_1)),
        ("denied_services", json!("aws")),
        ("colour", json!(1)),
    ] {
        let error = read(Value::Object(Map::from_iter([(member.to_owned(), value)]))).unwrap_err();
        assert_eq!(error.member, member);
    }
    let asks = |tool, service, scope| guardrails.asks_for(tool, service, scope);
    assert!(asks("stripe.refunds.create", "stripe", "refunds"));
    assert!(asks("stripe.refund", "stripe", "refunds.create"));
    assert!(!asks("stripe.charges.read", "stripe", "charges.read"));
}

#[test]
fn narrower_guardrails_allow_nothing_more() {
    let read = |value: Value| Guardrails::from_json(value.as_object().unwrap()).unwrap();
    let wide = read(json!({"max_tool_invocations": 5, "denied_services": ["aws"], "allowed_services": ["a", "b"]}));
    let narrow = read(json!({
        "max_tool_invocations": 4, "denied_services": ["aws", "gcp"], "allowed_services": ["a"], "max_tool_cost_usd": 1
    }));
    assert_eq!(narrow.first_widening(&wide), None);
    assert_eq!(wide.first_widening(&narrow), Some("max_tool_invocations"));
    assert_eq!(Guardrails::default().first_widening(&wide), Some("max_tool_invocations"));
    let undenied = Guardrails { denied_services: BTreeSet::new(), ..wide.clone() };
    assert_eq!(undenied.first_widening(&wide), Some("denied_services"));
}

#[test]
fn a_state_is_patched_member_by_member() {
    let mut state = json!({"a": {"b": 1}, "c.d": 2}).as_object().cloned().unwrap();
    let patches: Vec<StatePatch> = serde_json::from_value(json!([
        {"op": "set", "path": "a.x", "value": [1]}, {"op": "set", "path": "c.d", "value": 3},
        {"op": "replace", "path": "/n/m", "value": null}, {"op": "remove", "path": "/a/b"}
    ]))
    .unwrap();
    for patch in &patches {
        patch.apply(&mut state).unwrap();
    }
    assert_eq!(Value::Object(state.clone()), json!({"a": {"x": [1]}, "c.d": 3, "n": {"m": null}}));
    let through = StatePatch::Set { path: "a.x.y".to_owned(), value: json!(1) };
    assert!(through.apply(&mut state).is_err());
}

#[test]
fn the_scope_of_a_lease_may_be_a_task() {
    let id = task(1);
    assert_eq!(LeaseScope::of(&id.to_string()), LeaseScope::Task(id));
    assert_eq!(LeaseScope::of(&format!("task:{id}")), LeaseScope::Task(id));
    assert_eq!(LeaseScope::of("research"), LeaseScope::Free);
}
