//! Names that cannot be looked up, or whose look-up never ends.

use serde_json::{Value, json};

use super::{Bystander, Engine, Shim, Word, fault};
use crate::tool_user::ToolUser;
use crate::world::World;

fault! {
    names_that_cannot_be_looked_up_fail_their_own_calls_only,
    names_that_are_looked_up_for_ever_hold_nobody_else_up,
}

/// An agent whose service has a name instead of an address.
fn by_name(world: &World) -> ToolUser {
    let credential = json!({
        "auth_type": "bearer_token", "material": {"token": "tok_of_a_service_with_a_name"},
        "metadata": {"base_url": "https://service.example.com"},
    });
    ToolUser::of(world, credential)
}

fn code(answer: &Value) -> &str {
    answer["error"]["code"].as_str().unwrap_or_default()
}

fn names_that_cannot_be_looked_up_fail_their_own_calls_only(engine: Engine) {
    let shim = Shim::new();
    let world = engine.world(|setup| shim.loaded_into(setup));
    let (named, mut bystander) = (by_name(&world), Bystander::of(&world));
    shim.set(Word::NamesFail, 1);
    for _ in 0..20 {
        let reply = named.calls("any", json!({}));
        assert_eq!((reply.status(), code(&reply.json())), (502, "PROXY_ERROR"), "{}", reply.answer.text());
        bystander.is_served();
    }
    assert_eq!(world.gate.request("GET", "/readyz", None).0, 200);
    bystander.has_lost_nothing();
}

fn names_that_are_looked_up_for_ever_hold_nobody_else_up(engine: Engine) {
    const CALLS: usize = 100;
    let shim = Shim::new();
    let world = engine.world(|setup| shim.loaded_into(setup));
    let (named, mut bystander) = (by_name(&world), Bystander::of(&world));
    shim.set(Word::NamesHang, 1);
    std::thread::scope(|scope| {
        let hanging: Vec<_> = (0..CALLS).map(|_| scope.spawn(|| named.calls("any", json!({})))).collect();
        // While all of them hang, others are served.
        for _ in 0..20 {
            bystander.is_served();
        }
        assert_eq!(world.gate.request("GET", "/readyz", None).0, 200);
        // And each ends by itself with a failure that says why.
        let statuses: Vec<u16> = hanging.into_iter().map(|call| call.join().unwrap().status()).collect();
        assert!(statuses.iter().all(|status| [502, 503, 504].contains(status)), "{statuses:?}");
    });
    shim.set(Word::NamesHang, 0);
    bystander.is_served();
    bystander.has_lost_nothing();
}
