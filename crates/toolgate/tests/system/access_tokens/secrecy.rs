//! A token is for the gate: no service, log, event or error ever has it.

use serde_json::json;

use super::Trusting;
use crate::calls::shop::Shop;
use crate::secrets::needles::Needles;
use crate::secrets::scan::assert_found_nowhere;
use crate::world::setup;

#[test]
fn the_callers_token_never_goes_upstream_and_is_kept_nowhere() {
    let gate = Trusting::of(setup().environment("TOOLGATE_LOG", "trace"), None, "");
    let shop = Shop::open(&gate.world);
    shop.grant(json!({}));
    gate.register("billing", "workload-1");
    let bearer = gate.bearer("workload-1");
    let invoked = bearer
        .post("/api/v1/tools/invoke", &json!({"tool": "payments.charges.read", "parameters": {"charge_id": "ch_7"}}));
    assert_eq!(invoked.ok()["result"]["id"], "ch_7");
    let received = shop.upstream.received();
    assert_eq!((received.len(), received[0].bearer()), (1, Some(crate::calls::shop::TOKEN)));
    for request in &received {
        let whole = format!("{request:?}");
        assert!(!bearer.key.split('.').any(|part| whole.contains(part)), "the service has a part of the token");
    }
    for _ in 0..50 {
        bearer.get("/api/v1/whoami").ok();
    }
    // A token that is refused is no more repeated than one that is accepted.
    let ended = gate.signer.token(&json!({"iss": gate.issuer.url(), "sub": "workload-1", "exp": 1}));
    let refused = gate.world.actor("billing", &ended).get("/api/v1/whoami");
    refused.refused(401, "TOKEN_EXPIRED");

    let signatures = [&bearer.key, &ended].map(|token| token.rsplit('.').next().unwrap().to_owned());
    let needles = Needles::of(signatures.iter().map(|signature| ("access token", signature.as_str())));
    assert_found_nowhere(gate.world, &[invoked, refused], &[&needles]);
}
