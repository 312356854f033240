//! Names that were mistyped: a warning where they may be registered later, an error with the right name where they never
//! could work; and durations where a time is wanted.

use serde_json::json;

use super::{Person, setup};

#[test]
fn a_mistyped_name_is_told_with_the_one_that_was_meant() {
    let gate = setup().start();
    let person = Person::administrator(&gate);
    let definition = json!({
        "service": "payments", "version": "1", "base_url": "https://payments.example.com",
        "tools": {
            "charges.create": {"http": {"method": "POST", "path": "/v1/charges"}},
            "charges.read": {"http": {"method": "GET", "path": "/v1/charges"}},
        },
    });
    assert_eq!(person.says_with(&["service", "apply", "-"], &definition.to_string()).code, 0);
    person.reads(&["agent", "create", "billing", "--permission", "tools.invoke", "--permission", "tools.delegate"]);
    let warned = |arguments: &[&str], input: &str, warning: &str| {
        let said = person.says_with(arguments, input);
        assert_eq!(said.code, 0, "{arguments:?}: {}", said.all());
        assert!(said.stderr.contains(&format!("toolgate: warning: {warning}\n")), "{arguments:?}: {}", said.all());
    };
    let refused = |arguments: &[&str], meant: &str| {
        let said = person.says(arguments);
        assert!(said.code == 1 && said.stderr.contains(meant), "{arguments:?}: {}", said.all());
    };
    let vault = person.makes(&["vault", "create", "main"], "");
    warned(
        &["credential", "add", &vault, "payment", "Payments"],
        "secret",
        "no service payment; did you mean payments?",
    );
    let add =
        ["credential", "add", &vault, "payments", "Payments", "--scope", "charges.reed", "--scope", "charges.read"];
    let scopes = "no tool of payments requires the scope charges.reed; did you mean charges.read?";
    warned(&add, "secret", scopes);
    let credential = person.makes(&add, "secret");
    warned(
        &["grant", "create", "biling", &credential, "--scope", "charges.read"],
        "",
        "no agent biling; did you mean billing?",
    );
    warned(&["grant", "create", "billing", &credential, "--scope", "charges.reed"], "", scopes);
    warned(
        &["agent", "update", "billing", "--scope", "tools:paiments:*"],
        "",
        "no service paiments; did you mean payments?",
    );
    warned(&["grant", "list", "--agent", "bilings"], "", "no agent bilings; did you mean billing?");
    warned(&["invocation", "list", "--agent", "teller"], "", "no agent teller");
    warned(&["tool", "list", "--service", "paymets"], "", "no service paymets; did you mean payments?");
    refused(&["key", "create", "biling"], "did you mean billing?");
    refused(&["agent", "update", "biling", "--name", "x"], "did you mean billing?");
    refused(&["service", "show", "paymets"], "did you mean payments?");
    refused(&["tool", "call", "payments.charges.crate"], "did you mean payments.charges.create?");

    let delegated = ["grant", "create", "billing", &credential, "--scope", "charges.read", "--delegatable"];
    let grant = person.makes(&delegated, "");
    let key = person.gets(&["key", "create", "billing"])["key"].as_str().unwrap().to_owned();
    let billing = Person { gate: &gate, key: &key };
    let made = billing.reads(&["grant", "delegate", &grant, "helper", "--scope", "charges.read"]);
    assert!(made.contains("created for helper"), "whoever cannot see agents is told nothing about them: {made}");
}

#[test]
fn times_are_given_as_durations_too() {
    let gate = setup().start();
    let person = Person::administrator(&gate);
    person.reads(&["agent", "create", "billing", "--rate-limit", "*=100/1m"]);
    let limits = &person.gets(&["agent", "show", "billing"])["rate_limits"]["*"];
    assert_eq!((&limits["requests"], &limits["per_seconds"]), (&json!(100), &json!(60)));
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let day = |expires: &str| {
        let key = person.gets(&["key", "create", "billing", "--expires", expires]);
        text(&key["expires_at"])
    };
    assert!(day("1d") < day("2d") && day("2d") < day("90d"), "later and later");
    let wrong = person.says(&["key", "create", "billing", "--expires", "soon"]);
    assert!(wrong.code == 2 && wrong.stderr.contains("8h"), "{}", wrong.all());
    let events = |since: &str| person.gets(&["audit", "events", "--since", since])["events"].as_array().unwrap().len();
    assert!(events("1h") > 3);
    let until = person.gets(&["audit", "events", "--until", "1h"]);
    assert_eq!(until["events"], json!([]));
    let checked =
        setup().environment("TOOLGATE_IDLE_TIMEOUT_SECONDS", "2m").configuration("[server]\ndrain = \"9s\"\n");
    let mut command = checked.command();
    command.args(["config", "check", "--json"]);
    let shown = super::Said::of(command, "").json().to_string();
    assert!(shown.contains("120") && shown.contains("\"value\":9"), "{shown}");
}
