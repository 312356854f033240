//! The table of who may do what: for every operation the permission that it needs, tried with each permission alone.

use serde_json::{Value, json};
use toolgate_model::permission::Permission;

use crate::world::{Actor, World, id, on_both_engines};

on_both_engines! {
    every_operation_needs_its_permission_and_no_other,
}

/// What an operation needs.
#[derive(Clone, Copy)]
enum Needs {
    /// Only to be known.
    Nothing,
    /// This permission.
    One(&'static str),
    /// More than any single permission gives.
    More,
}

/// An operation, tried by somebody who has one permission only.
struct Operation {
    name: &'static str,
    needs: Needs,
    /// The status for whoever lacks it.
    otherwise: u16,
    method: &'static str,
    path: String,
    body: Option<Value>,
}

fn every_operation_needs_its_permission_and_no_other(world: &World) {
    let admin = world.admin();
    world.tenant("other");
    let credential = admin.credential();
    let mut sets: Vec<Vec<&str>> = Permission::ALL.iter().map(|permission| vec![permission.as_str()]).collect();
    sets.push(Vec::new());
    for (number, set) in sets.iter().enumerate() {
        let actor = world.agent(&format!("actor-{number}"), set);
        for operation in operations(world, &admin, &actor, &credential, number) {
            let reply = actor.ask(operation.method, &operation.path, operation.body.as_ref());
            let allowed = match operation.needs {
                Needs::Nothing => true,
                Needs::One(permission) => set.contains(&permission),
                Needs::More => false,
            };
            let what = format!("{} with {set:?}: {}", operation.name, reply.answer.text());
            if allowed {
                assert!((200..300).contains(&reply.status()), "{what}");
            } else {
                // Whoever may keep vaults gets further, and finds nothing of its own there.
                let keeper = set.contains(&"tools.manage") && matches!(operation.needs, Needs::More);
                let expected = if keeper { 404 } else { operation.otherwise };
                assert_eq!(reply.status(), expected, "{what}");
                reply.error();
            }
        }
    }
}

fn operations(world: &World, admin: &Actor, actor: &Actor, credential: &str, number: usize) -> Vec<Operation> {
    let bystander = format!("bystander-{number}");
    world.agent(&bystander, &[]);
    let key = id(&admin.get(&format!("/api/v1/agents/{bystander}/keys")).ok()["keys"][0]);
    let victim = format!("victim-{number}");
    world.agent(&victim, &[]);
    let vault = admin.get(&format!("/api/v1/credentials/{credential}")).ok()["vault_id"].as_str().unwrap().to_owned();
    let held = admin.grants(credential, &actor.id, json!({"delegatable": true}));
    let below = admin.delegates(&held, "anybody", json!({}));
    let foreign = id(&admin.grants(credential, "anybody", json!({"delegatable": true})));
    let (held, below) = (id(&held), id(&below));
    let own = &actor.id;
    let delegation = json!({"target_agent_id": "anybody", "scopes": ["charges.read"]});
    let new_grant = json!({"credential_id": credential, "agent_id": own, "scopes": ["charges.read"]});
    let platform = Needs::One("tenants.manage");
    let agents = Needs::One("agents.manage");
    let vaults = Needs::One("tools.manage");
    let audit = Needs::One("audit.read");
    let delegate = Needs::One("tools.delegate");
    let operation =
        |name, needs, otherwise, method, path: String, body| Operation { name, needs, otherwise, method, path, body };
    let of = |what: &str| format!("/api/v1/{what}");
    vec![
        operation("whoami", Needs::Nothing, 0, "GET", of("whoami"), None),
        operation(
            "make a tenant",
            platform,
            403,
            "POST",
            of("tenants"),
            Some(json!({"id": format!("tenant-{number}")})),
        ),
        operation("list tenants", platform, 403, "GET", of("tenants"), None),
        operation("see its tenant", Needs::Nothing, 0, "GET", of("tenants/default"), None),
        operation("see another tenant", platform, 404, "GET", of("tenants/other"), None),
        operation("see the master keys", platform, 403, "GET", of("master-keys"), None),
        operation("change the master key", platform, 403, "POST", of("master-keys/rekey"), None),
        operation(
            "register",
            agents,
            403,
            "POST",
            of("agents"),
            Some(json!({"id": format!("made-{number}"), "permissions": []})),
        ),
        operation("list agents", agents, 403, "GET", of("agents"), None),
        operation("see itself", Needs::Nothing, 0, "GET", of(&format!("agents/{own}")), None),
        operation("see another agent", agents, 404, "GET", of(&format!("agents/{bystander}")), None),
        operation("list its keys", Needs::Nothing, 0, "GET", of(&format!("agents/{own}/keys")), None),
        operation("list other keys", agents, 404, "GET", of(&format!("agents/{bystander}/keys")), None),
        operation("make a key", agents, 403, "POST", of(&format!("agents/{bystander}/keys")), None),
        operation("revoke a key", agents, 404, "DELETE", of(&format!("keys/{key}")), None),
        operation(
            "change an agent",
            agents,
            403,
            "PATCH",
            of(&format!("agents/{bystander}")),
            Some(json!({"name": "Somebody"})),
        ),
        operation("remove an agent", agents, 403, "DELETE", of(&format!("agents/{victim}")), None),
        operation("make a vault", vaults, 403, "POST", of("vaults"), Some(json!({"name": "own"}))),
        operation("list vaults", vaults, 403, "GET", of("vaults"), None),
        operation("see another's vault", Needs::More, 404, "GET", of(&format!("vaults/{vault}")), None),
        operation("list its credentials", Needs::More, 404, "GET", of(&format!("vaults/{vault}/credentials")), None),
        operation("delete it", Needs::More, 404, "DELETE", of(&format!("vaults/{vault}")), None),
        operation("see its credential", Needs::More, 404, "GET", of(&format!("credentials/{credential}")), None),
        operation("verify it", Needs::More, 404, "POST", of(&format!("credentials/{credential}/verify")), None),
        operation("revoke it", Needs::More, 404, "DELETE", of(&format!("credentials/{credential}")), None),
        operation("give itself a grant", Needs::More, 403, "POST", of("grants"), Some(new_grant)),
        operation("list its grants", Needs::Nothing, 0, "GET", of(&format!("grants?agent_id={own}")), None),
        operation(
            "list its grants, as the SDK does",
            Needs::Nothing,
            0,
            "GET",
            of(&format!("agents/{own}/grants")),
            None,
        ),
        operation("list others' grants", vaults, 403, "GET", of("grants?agent_id=anybody"), None),
        operation("see its grant", Needs::Nothing, 0, "GET", of(&format!("grants/{held}")), None),
        operation("see what is below", Needs::Nothing, 0, "GET", of(&format!("grants/{below}")), None),
        operation("see the tree below", Needs::Nothing, 0, "GET", of(&format!("grants/{held}/tree")), None),
        operation("see a foreign grant", Needs::More, 404, "GET", of(&format!("grants/{foreign}")), None),
        operation("revoke a foreign grant", Needs::More, 404, "DELETE", of(&format!("grants/{foreign}")), None),
        operation("delegate", delegate, 403, "POST", of(&format!("grants/{held}/delegate")), Some(delegation)),
        operation("suspend what is below", delegate, 403, "PATCH", of(&format!("grants/{below}/suspend")), None),
        operation("resume what is below", delegate, 403, "PATCH", of(&format!("grants/{below}/resume")), None),
        operation("revoke what is below", delegate, 403, "DELETE", of(&format!("grants/{below}")), None),
        operation("give its grant back", Needs::Nothing, 0, "DELETE", of(&format!("grants/{held}")), None),
        operation("read events", audit, 403, "GET", of("audit/events"), None),
        operation("read the head", audit, 403, "GET", of("audit/head"), None),
        operation("ask for a proof", audit, 403, "GET", of("audit/proof?sequence=0"), None),
        operation("export the log", audit, 403, "GET", of("audit/export"), None),
    ]
}
