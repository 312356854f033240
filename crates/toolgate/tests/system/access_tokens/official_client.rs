//! The official Python client of the Model Context Protocol, which nobody gives a key: it reads the challenge and the
//! metadata of the gate, and gets a token from the issuer.

use std::path::Path;
use std::process::Command;

use serde_json::json;
use toolgate_testkit::gate_process::GateSetup;
use toolgate_testkit::token_signer::TokenSigner;
use toolgate_testkit::upstream::{CLIENT_ID, CLIENT_SECRET, TokenIssuer};

use super::trusting;
use crate::calls::shop::Shop;
use crate::openintent_sdk::python;
use crate::world::{World, setup};

#[test]
fn the_official_client_finds_the_issuer_and_calls_a_tool_with_its_token() {
    let issuer = TokenIssuer::issuing(TokenSigner::rs256("first"));
    let world = World::of(&at_its_own_url(&issuer.url(), "required_scopes = [\"toolgate\"]"), None);
    let shop = Shop::open(&world);
    shop.grant(json!({}));
    let subject = json!({"token_subject": {"issuer": issuer.url(), "subject": CLIENT_ID}});
    shop.admin.post("/api/v1/agents/billing/keys", &subject).created();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/mcp_oauth_client.py");
    let output = Command::new(python())
        // Nothing of this machine: no proxies, no other packages.
        .env_clear()
        .env("TOOLGATE_URL", format!("http://{}", world.address()))
        .env("ISSUER", issuer.url())
        .env("CLIENT_ID", CLIENT_ID)
        .env("CLIENT_SECRET", CLIENT_SECRET)
        .arg("-B")
        .arg(script)
        .args(["2026-07-28", "legacy"])
        .output()
        .unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}: {said}", output.status);
    for mode in ["2026-07-28", "legacy"] {
        assert!(said.contains(&format!("{mode}: done with scope toolgate")), "{said}");
    }
    assert_eq!(shop.upstream.count(), 2);
}

/// A gate whose public URL is where it listens. The port is one that the system gave an earlier start of it.
pub(super) fn at_its_own_url(issuer: &str, further: &str) -> GateSetup {
    let setup = setup().reaching_loopback();
    let earlier = setup.start();
    let address = earlier.address();
    earlier.stop();
    trusting(setup.listen(address), issuer, &format!("http://{address}"), further)
}
