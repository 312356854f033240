//! Direct grants: every field and default of §2.1 and §2.2.1.

use std::time::Duration;

use serde_json::{Value, json};
use toolgate_model::time::Timestamp;

use crate::world::{Reply, World, merged, names, on_both_engines, text};

on_both_engines! {
    the_rfcs_grant_is_taken_and_shown_with_all_its_fields,
    a_grant_that_says_little_gets_the_defaults_of_a_standalone_agent,
    scopes_that_the_credential_lacks_are_refused,
    a_grant_without_an_end_must_be_asked_for_twice,
    the_shorthand_of_a_bound_means_the_same_as_the_long_form,
    a_constraint_that_is_not_understood_is_refused_by_name,
}

fn the_rfcs_grant_is_taken_and_shown_with_all_its_fields(world: &World) {
    let admin = world.admin();
    let credential = admin.credential();
    let end = admin.time().plus(Duration::from_secs(28 * 24 * 3600)).to_string();
    // §2.1, but for what the gate itself gives: id, created_at, revoked_at.
    let body = json!({
        "credential_id": credential,
        "agent_id": "agent_billing_01",
        "granted_by": "user_01HABC",
        "scopes": ["charges.read", "charges.create"],
        "constraints": {
            "max_invocations_per_hour": 100,
            "max_cost_per_invocation": null,
            "allowed_parameters": {"currency": ["usd", "eur"], "amount_max": 50000},
            "denied_parameters": {"metadata.test_mode": [true]},
            "ip_allowlist": null
        },
        "delegatable": true,
        "delegation_depth": 1,
        "context": {"intent_id": null, "plan_id": null, "task_id": null},
        "expires_at": end
    });
    let grant = admin.post("/api/v1/grants", &body).created();
    let fields = [
        "agent_id",
        "constraints",
        "context",
        "created_at",
        "credential_id",
        "delegatable",
        "delegated_from",
        "delegation_depth",
        "effective",
        "effective_status",
        "expires_at",
        "granted_by",
        "id",
        "lineage",
        "revoked_at",
        "scopes",
        "service",
        "source",
        "source_grant_id",
        "status",
        "suspended_at",
    ];
    assert_eq!(names(&grant), fields);
    assert!(text(&grant, "/id").starts_with("grant_"));
    for same in ["credential_id", "agent_id", "granted_by", "delegatable", "delegation_depth", "expires_at"] {
        assert_eq!(grant[same], body[same], "{same}");
    }
    assert_eq!(grant["scopes"], json!(["charges.create", "charges.read"]), "a set, in the order of the names");
    let constraints = json!({
        "max_invocations_per_hour": 100,
        "allowed_parameters": {"currency": ["eur", "usd"], "amount_max": 50000},
        "denied_parameters": {"metadata.test_mode": [true]}
    });
    assert_eq!(grant["constraints"], constraints, "what is null is not set");
    assert_eq!(grant["context"], json!({}));
    assert_eq!(
        (&grant["service"], &grant["source"], &grant["status"]),
        (&json!("stripe"), &json!("direct"), &json!("active"))
    );
    for nothing in ["delegated_from", "source_grant_id", "revoked_at", "suspended_at"] {
        assert_eq!(grant[nothing], Value::Null, "{nothing}");
    }
    assert_eq!((&grant["effective_status"], &grant["lineage"]), (&json!("active"), &json!([])));
    assert_eq!(grant["effective"]["constraints"], constraints);
    assert_eq!(grant["effective"]["scopes"], grant["scopes"]);
    let mut shown = admin.grant(&grant);
    let revision = shown.as_object_mut().unwrap().remove("revision");
    assert!(revision.unwrap().is_u64());
    assert_eq!(shown, grant);

    let bound = json!({"intent_id": "intent_01HABC", "plan_id": "plan_1", "task_id": "task_01HXYZ"});
    let grant = admin.grants(&credential, "agent_billing_01", json!({"context": bound}));
    assert_eq!(grant["context"], bound);
}

fn a_grant_that_says_little_gets_the_defaults_of_a_standalone_agent(world: &World) {
    let admin = world.admin();
    let credential = admin.credential();
    let grant = admin.post("/api/v1/grants", &json!({"credential_id": credential, "agent_id": "a"})).created();
    assert_eq!((&grant["delegatable"], &grant["delegation_depth"]), (&json!(false), &json!(0)));
    assert_eq!((&grant["scopes"], &grant["constraints"], &grant["context"]), (&json!([]), &json!({}), &json!({})));
    assert_eq!(grant["granted_by"], "admin", "whoever asks, unless another is named");
    let made = Timestamp::parse(text(&grant, "/created_at")).unwrap();
    let month = Duration::from_secs(30 * 24 * 3600);
    assert_eq!(text(&grant, "/expires_at"), made.plus(month).to_string(), "thirty days");

    // §2.2.1 writes the same defaults out.
    let written = json!({
        "constraints": {"max_invocations_per_hour": 100}, "delegatable": false, "delegation_depth": 0, "context": {}
    });
    let direct = admin.grants(&credential, "agent_billing_01", written.clone());
    for field in ["constraints", "delegatable", "delegation_depth", "context"] {
        assert_eq!(direct[field], written[field], "{field}");
    }

    let once = admin.grants(&credential, "a", json!({"delegatable": true}));
    assert_eq!(once["delegation_depth"], 1, "delegatable without a depth is once");
    let endless = admin.grants(&credential, "a", json!({"delegatable": true, "delegation_depth": null}));
    assert_eq!(endless["delegation_depth"], Value::Null, "null is unlimited");
    let zero = admin.grants(&credential, "a", json!({"delegatable": true, "delegation_depth": 0}));
    assert_eq!(zero["delegation_depth"], 0);
    for depth in [json!(-1), json!(1.5), json!("1"), json!(4_294_967_296_u64)] {
        let body = json!({"credential_id": credential, "agent_id": "a", "delegation_depth": depth});
        let error = admin.post("/api/v1/grants", &body).refused(400, "INVALID_FIELD");
        assert_eq!(error["path"], "delegation_depth");
    }
}

fn scopes_that_the_credential_lacks_are_refused(world: &World) {
    let admin = world.admin();
    let credential = admin.credential();
    let body = json!({"credential_id": credential, "agent_id": "a", "scopes": ["charges.read", "payouts.create"]});
    let error = admin.post("/api/v1/grants", &body).refused(400, "SCOPE_UNAVAILABLE");
    assert_eq!(error["unavailable_scopes"], json!(["payouts.create"]));
    assert_eq!(error["available_scopes"].as_array().unwrap().len(), 5);
    let body = json!({"credential_id": credential, "agent_id": "a", "scopes": ["charges.*"]});
    admin.post("/api/v1/grants", &body).refused(400, "INVALID_FIELD");
    let twice = admin.grants(&credential, "a", json!({"scopes": ["charges.read", "charges.read"]}));
    assert_eq!(twice["scopes"], json!(["charges.read"]));
    assert_eq!(admin.get("/api/v1/grants").ok()["grants"].as_array().unwrap().len(), 1);
}

fn a_grant_without_an_end_must_be_asked_for_twice(world: &World) {
    let admin = world.admin();
    let credential = admin.credential();
    let with = |more: Value| -> Reply {
        let least = json!({"credential_id": credential, "agent_id": "a", "scopes": ["charges.read"]});
        admin.post("/api/v1/grants", &merged(least, more))
    };
    assert_eq!(with(json!({"expires_at": null})).refused(400, "INVALID_FIELD")["path"], "expires_at");
    assert_eq!(
        with(json!({"expires_at": null, "allow_indefinite": false})).refused(400, "INVALID_FIELD")["path"],
        "expires_at"
    );
    let endless = with(json!({"expires_at": null, "allow_indefinite": true})).created();
    assert_eq!((&endless["expires_at"], &endless["effective"]["expires_at"]), (&Value::Null, &Value::Null));
    let bounded = with(json!({"allow_indefinite": true})).created();
    assert!(bounded["expires_at"].is_string(), "leave alone does not make a grant endless");
    for past in ["2020-01-01T00:00:00Z", "1970-01-01T00:00:00+00:00", "-009999-01-02T00:00:00Z"] {
        let error = with(json!({"expires_at": past})).refused(400, "INVALID_FIELD");
        assert_eq!(error["path"], "expires_at");
    }
    for odd in
        [json!("tomorrow"), json!("2099-01-01"), json!("2099-01-01T00:00:00"), json!(4_102_444_800_u64), json!({})]
    {
        with(json!({"expires_at": odd})).refused(400, "INVALID_FIELD");
    }
    let offset = with(json!({"expires_at": "2099-06-01T12:00:00.1239+02:00"})).created();
    assert_eq!(offset["expires_at"], "2099-06-01T10:00:00.123+00:00");
    assert!(with(json!({"expires_at": "9999-12-31T23:59:59.999Z"})).status() < 500);
}

fn the_shorthand_of_a_bound_means_the_same_as_the_long_form(world: &World) {
    let admin = world.admin();
    let credential = admin.credential();
    // §2.3 and §9 write it directly under `constraints`, §2.1 inside `allowed_parameters`.
    let short = json!({"constraints": {"max_invocations_per_hour": 50, "amount_max": 10000}});
    let long = json!({"constraints": {"max_invocations_per_hour": 50, "allowed_parameters": {"amount_max": 10000}}});
    let object =
        json!({"constraints": {"max_invocations_per_hour": 50, "allowed_parameters": {"amount": {"max": 10000}}}});
    let grants = [short, long, object].map(|more| admin.grants(&credential, "a", more));
    let expected = json!({"max_invocations_per_hour": 50, "allowed_parameters": {"amount_max": 10000}});
    for grant in &grants {
        assert_eq!(grant["constraints"], expected);
        assert_eq!(admin.grant(grant)["constraints"], expected);
    }
    let both = json!({"amount_max": 5, "allowed_parameters": {"amount_max": 7}});
    let body = json!({"credential_id": credential, "agent_id": "a", "constraints": both});
    admin.post("/api/v1/grants", &body).refused(400, "INVALID_FIELD");
}

fn a_constraint_that_is_not_understood_is_refused_by_name(world: &World) {
    let admin = world.admin();
    let credential = admin.credential();
    let refused = [
        (json!({"max_calls": 5}), "constraints.max_calls"),
        (json!({"max_invocations_per_min": 5}), "constraints.max_invocations_per_min"),
        (json!({"max_invocations_per_hour": -1}), "constraints.max_invocations_per_hour"),
        (json!({"max_invocations_per_hour": 1.5}), "constraints.max_invocations_per_hour"),
        (json!({"max_invocations_per_hour": "100"}), "constraints.max_invocations_per_hour"),
        (json!({"max_cost_per_invocation": -0.01}), "constraints.max_cost_per_invocation"),
        (json!({"max_cost_per_invocation": 0.000_000_1}), "constraints.max_cost_per_invocation"),
        (json!({"allowed_parameters": {"amount": 5}}), "constraints.allowed_parameters.amount"),
        (json!({"allowed_parameters": {"amount": {"maximum": 5}}}), "constraints.allowed_parameters.amount.maximum"),
        (json!({"allowed_parameters": {"name": {"pattern": "("}}}), "constraints.allowed_parameters.name.pattern"),
        (json!({"denied_parameters": {"amount": []}}), "constraints.denied_parameters.amount"),
        (json!({"ip_allowlist": ["10.0.0.1/8"]}), "constraints.ip_allowlist"),
        (json!({"ip_allowlist": "10.0.0.0/8"}), "constraints.ip_allowlist"),
        (json!({"allowed_hosts": ["https://example.com/"]}), "constraints.allowed_hosts"),
        (json!(["max_invocations_per_hour"]), "constraints"),
    ];
    for (constraints, path) in refused {
        let body = json!({"credential_id": credential, "agent_id": "a", "constraints": constraints});
        let error = admin.post("/api/v1/grants", &body).refused(400, "INVALID_FIELD");
        assert_eq!(error["path"], path, "{constraints}");
        assert!(text(&error, "/message").contains(path), "{error}");
    }
    assert_eq!(admin.get("/api/v1/grants").ok()["grants"], json!([]));
}
