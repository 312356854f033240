//! Tools at the command line: listed, called, refused with advice, and found again among the invocations.

use serde_json::{Value, json};
use toolgate_testkit::gate_process::GateProcess;
use toolgate_testkit::upstream::Upstream;

use super::{Person, rows, setup};

const SECRET: &str = "sk_test_of_the_command_line";

/// A gate with the payments service registered, and a grant of `billing` over part of it; answers the grant.
fn prepare(upstream: &Upstream, constraints: &[&str]) -> (GateProcess, String) {
    let gate = setup().environment("TOOLGATE_EGRESS_ALLOW", "127.0.0.1/32").start();
    let person = Person::administrator(&gate);
    let definition = json!({
        "service": "payments", "version": "1", "base_url": upstream.url(),
        "tools": {
            "charges.create": {
                "description": "Charge a card",
                "parameters": {
                    "amount": {"type": "integer", "required": true}, "currency": {"type": "string", "required": true},
                },
                "estimated_cost_usd": 0.02,
                "http": {"method": "POST", "path": "/v1/charges"},
            },
            "refunds.create": {"http": {"method": "POST", "path": "/v1/refunds"}},
            "broken": {"scope": "charges.create", "http": {"method": "GET", "path": "/nowhere"}},
        },
    });
    let applied = person.says_with(&["service", "apply", "-"], &definition.to_string());
    assert_eq!(applied.code, 0, "{}", applied.all());
    let vault = person.makes(&["vault", "create", "main"], "");
    let add = ["credential", "add", &vault, "payments", "Payments", "--auth-type", "bearer_token"];
    let credential =
        person.makes(&[&add[..], &["--scope", "charges.create", "--scope", "refunds.create"]].concat(), SECRET);
    person.reads(&["agent", "create", "billing"]);
    let grant = ["grant", "create", "billing", &credential, "--scope", "charges.create"];
    let constraints: Vec<&str> = constraints.iter().flat_map(|constraint| ["--constraint", constraint]).collect();
    let grant = person.makes(&[&grant[..], &constraints].concat(), "");
    (gate, grant)
}

const CALL: [&str; 7] = ["tool", "call", "payments.charges.create", "--agent", "billing", "--param", "currency=usd"];

#[test]
fn a_tool_is_found_called_and_its_record_shown() {
    let upstream = Upstream::payments();
    let (gate, grant) = prepare(&upstream, &["amount_max=5000"]);
    let person = Person::administrator(&gate);
    let all = person.reads(&["tool", "list"]);
    assert_eq!(rows(&all).len(), 3, "{all}");
    assert!(all.contains("payments.charges.create") && all.contains("amount*, currency*"), "{all}");
    assert_eq!(person.reads(&["tool", "list", "--service", "payments"]), all);
    assert_eq!(person.reads(&["tool", "list", "--agent", "billing", "--service", "wiki"]).trim(), "none");

    let (result, aside) = person.calls(&[&CALL[..], &["--param", "amount:=700"]].concat());
    assert_eq!(result["amount"], 700, "only the result is on standard output");
    assert!(aside.starts_with("payments.charges.create succeeded in ") && aside.contains(&grant), "{aside}");
    assert!(!aside.contains(SECRET) && !result.to_string().contains(SECRET), "{aside}");
    let arguments = [&CALL[..], &["--json-params", r#"{"amount": 800}"#, "--task", "t-1", "--grant", &grant]].concat();
    let answer = person.gets(&arguments);
    assert_eq!((&answer["status"], &answer["result"]["amount"]), (&json!("success"), &json!(800)));
    let given = person.says_with(&[&CALL[..], &["--params-file", "-"]].concat(), r#"{"amount": 900}"#);
    assert!(given.stdout.contains("900"), "{}", given.all());
    let bodies: Vec<Value> =
        upstream.received().iter().map(|request| serde_json::from_slice(&request.body).unwrap()).collect();
    let sent = |amount: u64| json!({"amount": amount, "currency": "usd"});
    assert_eq!(bodies, [sent(700), sent(800), sent(900)]);
    let authorization = format!("Bearer {SECRET}");
    assert!(upstream.received().iter().all(|request| request.header("authorization") == Some(&authorization)));

    let list = person.reads(&["invocation", "list", "--agent", "billing", "--status", "success"]);
    assert_eq!(rows(&list).len(), 3, "{list}");
    let found = person.gets(&["invocation", "list", "--task", "t-1", "--tool", "charges.create", "--grant", &grant]);
    assert_eq!(found["invocations"].as_array().unwrap().len(), 1, "{found}");
    let id = answer["invocation_id"].as_str().unwrap();
    assert_eq!(found["invocations"][0]["id"], id);
    assert!(person.reads(&["invocation", "show", id]).contains("t-1"));
    let first = person.gets(&["invocation", "list", "--limit", "2"]);
    let cursor = first["next_cursor"].as_str().unwrap();
    assert_eq!(person.gets(&["invocation", "list", "--cursor", cursor])["invocations"].as_array().unwrap().len(), 1);
}

#[test]
fn a_list_shows_at_a_glance_what_an_agent_still_needs() {
    let upstream = Upstream::payments();
    let (gate, grant) = prepare(&upstream, &[]);
    let person = Person::administrator(&gate);
    let mail = json!({
        "service": "mail", "version": "1", "base_url": upstream.url(),
        "tools": {"send": {"safety_tier": "write", "approval": "always", "required_scopes": ["tools:mail:send"]}},
    });
    assert_eq!(person.says_with(&["service", "apply", "-"], &mail.to_string()).code, 0);
    let list = person.reads(&["tool", "list", "--agent", "billing"]);
    let rows = rows(&list);
    let cells: Vec<&[&str]> = rows.iter().map(|row| &row[..5]).collect();
    assert_eq!(
        cells,
        [
            ["mail.send", "1", "write", "always", "scope tools:mail:send, no credential"],
            ["payments.broken", "1", "write", "-", "-"],
            ["payments.charges.create", "1", "write", "-", "-"],
            ["payments.refunds.create", "1", "write", "-", "no grant"],
        ],
        "{list}"
    );
    let listed = person.gets(&["tool", "list", "--agent", "billing"]);
    assert_eq!((&listed["agent_id"], &listed["tools"][2]["grants"]), (&json!("billing"), &json!([grant])));
    let missing = json!([{"kind": "scope", "scope": "tools:mail:send"}, {"kind": "credential"}]);
    assert_eq!(listed["tools"][0]["missing"], missing);
    let key = person.gets(&["key", "create", "billing"])["key"].as_str().unwrap().to_owned();
    let billing = Person { gate: &gate, key: &key };
    let own = billing.reads(&["tool", "list"]);
    assert_eq!(super::rows(&own).len(), 2, "what it may not use it does not see: {own}");

    let shown = person.reads(&["tool", "show", "mail.send", "--agent", "billing"]);
    assert!(shown.starts_with("mail.send 1\n") && shown.contains("connector:mail.send"), "{shown}");
    assert!(shown.contains("billing lacks:") && shown.contains("always"), "{shown}");
    let shown = person.reads(&["tool", "show", "charges.create", "--agent", "billing"]);
    assert!(shown.contains(&format!("{grant}, direct, until ")) && shown.contains("\"currency\""), "{shown}");
    let nothing = person.says(&["tool", "show", "payments.charges.melt"]);
    assert!(nothing.code == 1 && nothing.stderr.contains("toolgate tool list"), "{}", nothing.all());
    assert_eq!(person.says(&["tool", "list", "--agent", "nobody"]).code, 1, "a name that was mistyped is told");
}

#[test]
fn why_explains_step_by_step_and_ends_with_the_verdict() {
    let upstream = Upstream::payments();
    let (gate, grant) = prepare(&upstream, &["amount_max=5000"]);
    let person = Person::administrator(&gate);
    let why = ["tool", "why", "payments.charges.create", "--agent", "billing"];
    let allowed = person.reads(&why);
    assert!(allowed.starts_with("✓  identify ") && allowed.ends_with("\nbilling can call payments.charges.create.\n"));
    let fits = person.gets(&[&why[..], &["--parameters", r#"{"amount": 5000, "currency": "usd"}"#]].concat());
    assert_eq!(fits["allowed"], true);
    let beyond = person.says(&[&why[..], &["--parameters", r#"{"amount": 5001, "currency": "usd"}"#]].concat());
    assert_eq!((beyond.code, beyond.stderr.as_str()), (1, ""), "{}", beyond.all());
    for words in ["✗  constrain  the parameters through grant ", "[GRANT_PARAMETER_DENIED]", &grant] {
        assert!(beyond.stdout.contains(words), "{words}: {}", beyond.stdout);
    }
    assert!(beyond.stdout.ends_with("billing cannot call payments.charges.create.\n"), "{}", beyond.stdout);
    let denied = person.says(&["tool", "why", "payments.refunds.create", "--agent", "billing", "--json"]);
    let told: Value = serde_json::from_str(&denied.stdout).unwrap();
    assert_eq!((denied.code, &told["allowed"]), (1, &json!(false)));
    assert_eq!(person.says(&["tool", "why", "payments.refunds.create", "--agent", "nobody"]).code, 1);
    assert_eq!(upstream.count(), 0, "nothing was called");
}

#[test]
fn lint_lists_what_tools_leave_undeclared() {
    let upstream = Upstream::payments();
    let (gate, _) = prepare(&upstream, &[]);
    let person = Person::administrator(&gate);
    let text = person.reads(&["tool", "lint"]);
    assert!(text.ends_with("3 of 3 tools have undeclared attributes (-). An undeclared tier counts as write.\n"));
    let found = person.gets(&["tool", "lint", "payments"]);
    let of_create = &found["tools"][1];
    assert_eq!(of_create["tool"], "payments.charges.create");
    let undeclared = ["safety_tier", "approval", "egress", "replay_policy", "required_scopes", "rate_limit"];
    assert_eq!(of_create["undeclared"], json!(undeclared));
    let strict = person.says(&["tool", "lint", "--strict"]);
    assert_eq!((strict.code, strict.stdout, strict.stderr.as_str()), (1, text, ""));
    let unknown = person.says(&["tool", "lint", "wiki"]);
    assert!(unknown.code == 1 && unknown.stderr.contains("[SERVICE_NOT_FOUND]"), "{}", unknown.all());
}

#[test]
fn a_repeated_call_gets_the_stored_answer() {
    let upstream = Upstream::payments();
    let (gate, _) = prepare(&upstream, &[]);
    let person = Person::administrator(&gate);
    let call = [&CALL[..], &["-p", "amount:=700", "--idempotency-key", "order-1"]].concat();
    let (_, first) = person.calls(&call);
    let (_, again) = person.calls(&call);
    assert!(!first.contains("stored result") && again.contains("the service was not called again"), "{again}");
    assert_eq!(upstream.count(), 1);
    let other = person.says(&[&CALL[..], &["-p", "amount:=701", "--idempotency-key", "order-1"]].concat());
    assert!(other.code == 1 && other.stderr.contains("[IDEMPOTENCY_CONFLICT]"), "{}", other.all());
    assert!(other.stderr.contains("another --idempotency-key"), "{}", other.all());
    let listed = person.gets(&["invocation", "list", "--idempotency-key", "order-1", "--status", "success"]);
    assert_eq!(listed["invocations"].as_array().unwrap().len(), 1);
}

#[test]
fn a_refused_call_says_where_why_and_what_to_do() {
    let upstream = Upstream::payments();
    let (gate, grant) = prepare(&upstream, &["amount_max=5000", "max_invocations_per_hour=2"]);
    let person = Person::administrator(&gate);
    let show = format!("toolgate grant show {grant}");
    for (arguments, words) in [
        (
            &["tool", "call", "payments.refunds.create", "--agent", "billing"][..],
            &["[GRANT_SCOPE_INSUFFICIENT]", "available scopes:", "charges.create"][..],
        ),
        (&[&CALL[..], &["-p", "amount:=9000"]].concat(), &["[GRANT_PARAMETER_DENIED]", "parameters.amount", &show]),
        (&[&CALL[..], &["-p", "amount=9000"]].concat(), &["[PARAMETERS_INVALID]", "parameters.amount", "NAME:=NUMBER"]),
        (&CALL, &["[PARAMETERS_INVALID]", "parameters.amount", "is missing"]),
        (&["tool", "call", "payments.charges.create"], &["[TOOL_NOT_FOUND]", "--agent"]),
        (
            &["tool", "call", "payments.broken", "--agent", "billing"],
            &["[SERVICE_ERROR]", "http status:", "404", "service returned:"],
        ),
    ] {
        let said = person.says(arguments);
        assert_eq!((said.code, said.stdout.as_str()), (1, ""), "{}", said.all());
        assert!(said.stderr.contains("recorded as:"), "{}", said.all());
        for word in words {
            assert!(said.stderr.contains(word), "{word}: {}", said.all());
        }
    }
    person.calls(&[&CALL[..], &["-p", "amount:=1"]].concat());
    let limited = person.says(&[&CALL[..], &["-p", "amount:=2"]].concat());
    assert!(limited.code == 1 && limited.stderr.contains("[GRANT_RATE_LIMITED]"), "{}", limited.all());
    assert!(limited.stderr.contains("retry after seconds:"), "{}", limited.all());
    let limited = person.says(&[&CALL[..], &["-p", "amount:=2", "--json"]].concat());
    let body: Value = serde_json::from_str(&limited.stderr).unwrap();
    assert_eq!((limited.code, &body["error"]["code"]), (1, &json!("GRANT_RATE_LIMITED")));
    assert_eq!(upstream.count(), 2, "of all of these only two reached the service");
    assert!(!gate.stop().stderr.contains(SECRET));
}

#[test]
fn parameters_that_cannot_be_understood_are_bad_usage() {
    let setup = setup();
    for arguments in [
        &["tool", "call", "x", "--param", "amount"][..],
        &["tool", "call", "x", "--param", "amount:=usd"],
        &["tool", "call", "x", "--json-params", "[1]"],
        &["tool", "call", "x", "--json-params", "{}", "--params-file", "f"],
        &["tool", "call", "x", "--param", "a=1", "--param", "a=2"],
        &["tool", "call"],
        &["tool", "why", "x", "--parameters", "[1]"],
        &["tool", "show"],
        &["invocation", "list", "--status", "well"],
    ] {
        let mut command = setup.command();
        command.args(arguments);
        let said = super::Said::of(command, "");
        assert_eq!((said.code, said.stdout.as_str()), (2, ""), "{arguments:?}: {}", said.all());
    }
}
