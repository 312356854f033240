//! What holds for any guardians, whatever they say about whatever content.

use proptest::prelude::*;
use serde_json::Map;
use toolgate_gate::ports::guardian_link::LinkFailure;
use toolgate_model::guard::{OnFailure, Outcome};

use super::*;
use crate::remote::fixture::{Act, arguments_of, settings};

/// What a scripted guardian says about some arguments.
#[derive(Debug, Clone)]
enum Script {
    Allow,
    Deny,
    DenyIf(&'static str, u8),
    Set(&'static str, u8),
    SetIfMissing(&'static str, u8),
    Replace(&'static str, u8, u8),
    Remove(&'static str),
    Fail,
    Garbage,
    OtherTool,
}

#[derive(Debug, Clone)]
struct Scripted {
    script: Script,
    order: i32,
    mode: GuardMode,
    may_modify: bool,
    on_failure: OnFailure,
}

impl Script {
    fn changed(&self, arguments: &Map<String, Value>) -> Map<String, Value> {
        let mut arguments = arguments.clone();
        match self {
            Self::Set(name, value) => drop(arguments.insert((*name).to_owned(), json!(value))),
            Self::SetIfMissing(name, value) if !arguments.contains_key(*name) => {
                arguments.insert((*name).to_owned(), json!(value));
            }
            Self::Replace(name, from, to) if arguments.get(*name) == Some(&json!(from)) => {
                arguments.insert((*name).to_owned(), json!(to));
            }
            Self::Remove(name) => drop(arguments.remove(*name)),
            _ => {}
        }
        arguments
    }

    fn denies(&self, arguments: &Map<String, Value>) -> bool {
        match self {
            Self::Deny => true,
            Self::DenyIf(name, value) => arguments.get(*name) == Some(&json!(value)),
            _ => false,
        }
    }

    fn act(&self, question: &Value) -> Act {
        let arguments = arguments_of(question);
        match self {
            Self::Fail => return Act::Fail(LinkFailure::Connect),
            Self::Garbage => return Act::result(question, json!({"decision": "maybe"})),
            Self::OtherTool => {
                let mut whole = question.clone();
                whole["params"]["toolCallRequest"]["toolId"] = json!("mail.delete");
                return Act::result(question, json!({"decision": "modify", "modifiedRequest": whole}));
            }
            _ => {}
        }
        if self.denies(&arguments) {
            return Act::deny(question, "scripted");
        }
        match self.changed(&arguments) {
            changed if changed != arguments => Act::modify(question, &changed),
            _ => Act::allow(question),
        }
    }
}

fn names() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["a", "b", "c"])
}

fn scripts() -> impl Strategy<Value = Script> {
    let value = || 0..3_u8;
    prop_oneof![
        3 => Just(Script::Allow),
        1 => Just(Script::Deny),
        3 => (names(), value()).prop_map(|(name, value)| Script::DenyIf(name, value)),
        2 => (names(), value()).prop_map(|(name, value)| Script::Set(name, value)),
        2 => (names(), value()).prop_map(|(name, value)| Script::SetIfMissing(name, value)),
        2 => (names(), value(), value()).prop_map(|(name, from, to)| Script::Replace(name, from, to)),
        2 => names().prop_map(Script::Remove),
        1 => Just(Script::Fail),
        1 => Just(Script::Garbage),
        1 => Just(Script::OtherTool),
    ]
}

fn scripted() -> impl Strategy<Value = Scripted> {
    let mode = prop::sample::select(vec![GuardMode::Enforce, GuardMode::Enforce, GuardMode::Shadow, GuardMode::Off]);
    let posture = prop::sample::select(vec![OnFailure::Deny, OnFailure::Allow]);
    let fields = (scripts(), -1..2_i32, mode, prop::bool::weighted(0.8), posture);
    fields.prop_map(|(script, order, mode, may_modify, on_failure)| Scripted {
        script,
        order,
        mode,
        may_modify,
        on_failure,
    })
}

fn several() -> impl Strategy<Value = Vec<Scripted>> {
    prop::collection::vec(scripted(), 0..5)
}

fn arguments() -> impl Strategy<Value = Value> {
    prop::collection::btree_map(names(), 0..3_u8, 0..3).prop_map(|arguments| json!(arguments))
}

/// What these say together.
fn together(scripted: &[Scripted], arguments: &Value) -> Ruling {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let remote = scripted.iter().enumerate().map(|(number, scripted)| {
        let Scripted { script, order, mode, may_modify, on_failure } = scripted.clone();
        let link = FakeLink::new(move |question| script.act(question));
        let settings = settings(&format!("g{number}"));
        guardian(RemoteSettings { order, mode, may_modify, on_failure, ..settings }, &link)
    });
    runtime.block_on(ruling(remote.collect(), arguments.clone()))
}

/// The same ones with one more.
fn inserted(scripted: &[Scripted], position: prop::sample::Index, one: Scripted) -> Vec<Scripted> {
    let mut more = scripted.to_vec();
    more.insert(position.index(scripted.len() + 1), one);
    more
}

fn is_no(ruling: &Ruling) -> bool {
    ruling.verdict.kind() == VerdictKind::Deny
}

proptest! {
    #[test]
    fn a_no_to_what_came_of_one_that_no_modifier_precedes_is_a_no_whoever_else_is_asked(
        others in several(), arguments in arguments(), mut one in scripted(), position: prop::sample::Index,
    ) {
        one.mode = GuardMode::Enforce;
        one.order = -2;
        if is_no(&together(std::slice::from_ref(&one), &arguments)) {
            prop_assert!(is_no(&together(&inserted(&others, position, one), &arguments)));
        }
    }

    #[test]
    fn one_that_changes_nothing_never_turns_a_no_into_a_yes(
        others in several(), arguments in arguments(), mut one in scripted(), position: prop::sample::Index,
    ) {
        one.may_modify = false;
        if is_no(&together(&others, &arguments)) {
            prop_assert!(is_no(&together(&inserted(&others, position, one), &arguments)));
        }
    }

    #[test]
    fn one_in_shadow_or_off_changes_nothing(
        others in several(), arguments in arguments(), mut one in scripted(), position: prop::sample::Index, off: bool,
    ) {
        one.mode = if off { GuardMode::Off } else { GuardMode::Shadow };
        let (without, with) = (together(&others, &arguments), together(&inserted(&others, position, one), &arguments));
        prop_assert_eq!(without.verdict.kind(), with.verdict.kind());
        if let (Verdict::Pass { content: without, .. }, Verdict::Pass { content: with, .. }) =
            (without.verdict, with.verdict)
        {
            prop_assert_eq!(without, with);
        }
    }

    #[test]
    fn a_yes_has_the_agreement_of_all_to_what_came_out(scripted in several(), arguments in arguments()) {
        let ruling = together(&scripted, &arguments);
        if is_no(&ruling) {
            return Ok(());
        }
        let outcome = changed(&ruling).unwrap_or(arguments);
        let outcome = outcome.as_object().unwrap();
        let records = decision_or_none(&ruling);
        for (number, scripted) in scripted.iter().enumerate().filter(|(_, one)| one.mode == GuardMode::Enforce) {
            let name = format!("g{number}");
            let record = records.iter().find(|record| record.guardian == name).unwrap();
            prop_assert!(!matches!(scripted.script, Script::Garbage | Script::OtherTool), "{:?}", scripted);
            prop_assert!(!scripted.script.denies(outcome), "{:?}", scripted);
            prop_assert_eq!(&scripted.script.changed(outcome), outcome, "{:?}", scripted);
            let failed = matches!(scripted.script, Script::Fail);
            prop_assert_eq!(record.outcome, if failed { Outcome::FailedOpen } else { Outcome::Enforced });
        }
    }

    #[test]
    fn changes_of_different_things_are_all_made(
        values in prop::collection::vec(0..9_u8, 1..4), arguments in arguments(),
    ) {
        let modifier = |(name, value): (&'static str, &u8)| Scripted {
            script: Script::Set(name, *value),
            order: 0,
            mode: GuardMode::Enforce,
            may_modify: true,
            on_failure: OnFailure::Deny,
        };
        let scripted: Vec<_> = ["a", "b", "c"].into_iter().zip(&values).map(modifier).collect();
        let mut expected = arguments.as_object().unwrap().clone();
        for Scripted { script, .. } in &scripted {
            expected = script.changed(&expected);
        }
        let ruling = together(&scripted, &arguments);
        prop_assert_eq!(changed(&ruling).unwrap_or(arguments), Value::Object(expected));
    }
}

fn decision_or_none(ruling: &Ruling) -> Vec<GuardianRecord> {
    ruling.decision.as_ref().map(|decision| decision.guardians.clone()).unwrap_or_default()
}
