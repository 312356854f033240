//! The official Python client of the Model Context Protocol, which nobody gives a key: it reads the challenge and the
//! metadata of the gate, and gets a token from the issuer, which is one of the fixtures or a provider that others wrote.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::json;
use toolgate_testkit::token_signer::TokenSigner;
use toolgate_testkit::upstream::{CLIENT_ID, CLIENT_SECRET, TokenIssuer};

use super::trusting;
use crate::calls::shop::Shop;
use crate::node;
use crate::openintent_sdk::python;
use crate::world::{World, setup};

#[test]
fn the_official_client_finds_the_issuer_and_calls_a_tool_with_its_token() {
    let issuer = TokenIssuer::issuing(TokenSigner::rs256("first"));
    the_official_client_calls_a_tool_with_a_token_of(&issuer.url());
}

#[test]
fn tokens_of_a_widely_used_provider_are_accepted_by_every_algorithm() {
    for algorithm in ["ES256", "EdDSA", "RS256"] {
        let provider = Provider::start(algorithm);
        the_official_client_calls_a_tool_with_a_token_of(&provider.url);
    }
}

fn the_official_client_calls_a_tool_with_a_token_of(issuer: &str) {
    let world = at_its_own_url(issuer);
    let shop = Shop::open(&world);
    shop.grant(json!({}));
    let subject = json!({"token_subject": {"issuer": issuer, "subject": CLIENT_ID}});
    shop.admin.post("/api/v1/agents/billing/keys", &subject).created();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/mcp_oauth_client.py");
    let output = Command::new(python())
        // Nothing of this machine: no proxies, no other packages.
        .env_clear()
        .env("TOOLGATE_URL", format!("http://{}", world.address()))
        .env("ISSUER", issuer)
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
fn at_its_own_url(issuer: &str) -> World {
    let setup = setup().reaching_loopback().on_own_address();
    let earlier = setup.start();
    let address = earlier.address();
    earlier.stop();
    let public_url = format!("http://{address}");
    World::of(&trusting(setup.listen(address), issuer, &public_url, "required_scopes = [\"toolgate\"]"), None)
}

/// `oidc-provider`, unmodified, with one client.
struct Provider {
    process: Child,
    url: String,
}

impl Provider {
    fn start(algorithm: &str) -> Self {
        let mut process = node::script("oidc_provider.cjs")
            .env("ALGORITHM", algorithm)
            .env("CLIENT_ID", CLIENT_ID)
            .env("CLIENT_SECRET", CLIENT_SECRET)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut url = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut url).unwrap();
        assert!(url.starts_with("http://"), "the provider did not start: {url}");
        Self { process, url: url.trim().to_owned() }
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        // Fails only where it has ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
