//! Models of providers through the real binary: the official clients of OpenAI and of Anthropic, unmodified, against a
//! provider that plays a script. The scenarios are in `tests/python/models`, one function each.

use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::guardians::third_party::ThirdParty;
use crate::openintent_sdk::python;
use crate::world::{World, on_both_engines, setup};

on_both_engines! {
    through_the_gate_everything_is_as_it_is_without_it,
    usage_becomes_cost_exactly_and_no_budget_is_exceeded,
}

fn through_the_gate_everything_is_as_it_is_without_it(world: &World) {
    play(world, "allowed", None);
}

fn usage_becomes_cost_exactly_and_no_budget_is_exceeded(world: &World) {
    play(world, "costs", None);
}

#[test]
fn what_is_refused_reaches_no_provider_and_is_not_tried_again() {
    play(&World::sqlite(), "refused", None);
}

#[test]
fn the_failure_of_a_provider_is_passed_on_and_no_stream_ends_in_silence() {
    play(&World::sqlite(), "failures", None);
}

#[test]
fn another_provider_is_asked_only_before_an_answer_has_begun() {
    play(&World::sqlite(), "failing_over", None);
}

#[test]
fn a_stream_begins_while_a_person_is_asked_and_ends_with_what_was_decided() {
    play(&World::sqlite(), "approved", None);
}

#[test]
fn nothing_of_keys_and_of_what_is_said_stays_in_the_log() {
    let world = World::sqlite();
    play(&world, "log", None);
    let (ended, _) = world.stop();
    for output in [&ended.stdout, &ended.stderr] {
        assert!(!output.contains("heist") && !output.contains("sk-of-the-provider"), "{output}");
    }
}

#[test]
fn a_guardian_denies_modifies_and_allows_what_models_are_told_and_what_they_say() {
    let guardian = ThirdParty::start(json!([]));
    let setup = setup().reaching_loopback().environment("TOOLGATE_GUARDIANS_BUDGET_MILLISECONDS", "60000");
    let file = setup.home().join("guardians.toml");
    // Who inspects the results of the model's own tool sees streams only as a whole: this one sees those of the client's tools.
    let table = |name: &str, selected: &str| {
        let url = guardian.url();
        format!(
            "[[guardian]]\nname = \"{name}\"\nurl = \"{url}\"\ndialect = \"aos\"\ntimeout_milliseconds = 20000\n\
             may_modify = true\n{selected}\n"
        )
    };
    let hooks = "[\"agent_trigger\", \"user_message\", \"agent_response\", \"tool_call_request\"]";
    let table = table("texts", &format!("hooks = {hooks}"))
        + &table("results", "hooks = [\"tool_call_result\"]\ntools = [\"agent.*\"]");
    std::fs::write(&file, table).unwrap();
    let world = World::of(&setup.environment("TOOLGATE_GUARDIANS_FILE", &file), None);
    play(&world, "guarded", Some(&guardian));
    for method in ["steps/agentTrigger", "steps/message", "steps/toolCallRequest", "steps/toolCallResult"] {
        assert!(!guardian.asked_about(method).is_empty(), "{method}");
    }
}

/// Plays a scenario against a gate.
fn play(world: &World, scenario: &str, guardian: Option<&ThirdParty>) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/models/scenarios.py");
    let mut command = Command::new(python());
    // Nothing of this machine: no proxies, no other packages.
    command
        .env_clear()
        .env("TOOLGATE_URL", format!("http://{}", world.address()))
        .env("ADMIN_KEY", world.admin().key)
        .env("TOOLGATE_BINARY", env!("CARGO_BIN_EXE_toolgate"))
        .envs(guardian.map(|guardian| ("GUARDIAN_URL", guardian.url().trim_end_matches("/hooks").to_owned())))
        .arg("-B")
        .arg(script)
        .arg(scenario);
    let output = command.output().unwrap();
    let (said, failed) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && said.contains(&format!("{scenario}: done")), "{said}{failed}");
}
