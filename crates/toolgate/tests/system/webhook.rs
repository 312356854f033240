//! Webhooks through the real binary, received by somebody who knows the secret and checks the signatures by hand.

use std::collections::BTreeSet;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use toolgate_model::merkle::sha256;
use toolgate_testkit::upstream::{Received, Reply, Upstream};

use crate::tool_user::ToolUser;
use crate::world::{World, on_both_engines, text};

on_both_engines! {
    a_message_is_signed_over_the_bytes_that_arrive,
}

const SECRET: &str = "a signing sécret/of+the\\tests";

fn a_message_is_signed_over_the_bytes_that_arrive(world: &World) {
    let upstream = Upstream::start(|_| Reply::json(202, json!({"taken": true})));
    let user = ToolUser::of(world, webhook(&format!("{}/hook", upstream.url()), SECRET));
    let before = world.admin().time().as_millis();
    let mut ids = BTreeSet::new();
    for parameters in [
        json!({}),
        json!({"a": 1, "z": {"nested": [1, 2.5, null, true]}, "text": "é \"quoted\" \\ \u{2028} 😀 </script>"}),
        json!({"big": 9_007_199_254_740_993_u64, "long": "x".repeat(100_000)}),
    ] {
        let answer = user.calls("any", parameters.clone()).ok();
        assert_eq!(answer["result"], json!({"taken": true}));
        let received = upstream.received().pop().unwrap();
        assert_eq!((received.method.as_str(), received.target.as_str()), ("POST", "/hook"));
        assert_signed(&received, SECRET.as_bytes(), SECRET.as_bytes());

        let message = received.json();
        assert_eq!((&message["tool_name"], &message["parameters"]), (&json!("any"), &parameters));
        let id = text(&answer, "/invocation_id");
        assert_eq!((message["invocation_id"].as_str(), received.header("webhook-id")), (Some(id), Some(id)));
        // A receiver that keeps ids and looks at the time takes no message twice.
        assert!(ids.insert(id.to_owned()));
        let seconds: i64 = received.header("webhook-timestamp").unwrap().parse().unwrap();
        assert!((before / 1000..before / 1000 + 600).contains(&seconds), "{seconds}");
        assert!(!received.text().contains(SECRET));
    }
    // A message that was changed on its way is noticed.
    let mut received = upstream.received().pop().unwrap();
    received.body.push(b' ');
    assert_ne!(received.header("x-openintent-signature").unwrap(), plain_signature(&received, SECRET.as_bytes()));
}

#[test]
fn a_secret_of_the_standard_is_decoded_for_the_standards_signature_only() {
    let world = World::sqlite();
    let upstream = Upstream::start(|_| Reply::json(200, json!({})));
    let (key, secret) = (b"the 24 bytes of a secret", "whsec_dGhlIDI0IGJ5dGVzIG9mIGEgc2VjcmV0");
    ToolUser::of(&world, webhook(&upstream.url(), secret)).calls("any", json!({"a": 1})).ok();
    assert_signed(&upstream.received()[0], secret.as_bytes(), key);
}

#[test]
fn hmac_of_the_test_is_the_one_of_rfc_4231() {
    let hex = |bytes: [u8; 32]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    assert_eq!(
        hex(hmac(b"Jefe", b"what do ya want for nothing?")),
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
    );
    assert_eq!(
        hex(hmac(&[0xaa; 131], b"Test Using Larger Than Block-Size Key - Hash Key First")),
        "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
    );
}

fn webhook(address: &str, secret: &str) -> Value {
    json!({"auth_type": "webhook", "material": {"signing_secret": secret}, "metadata": {"base_url": address}})
}

#[track_caller]
fn assert_signed(received: &Received, plain: &[u8], standard: &[u8]) {
    assert_eq!(received.header("x-openintent-signature").unwrap(), plain_signature(received, plain));
    let mut signed = Vec::new();
    for part in ["webhook-id", "webhook-timestamp"] {
        signed.extend_from_slice(received.header(part).unwrap().as_bytes());
        signed.push(b'.');
    }
    signed.extend_from_slice(&received.body);
    let expected = format!("v1,{}", STANDARD.encode(hmac(standard, &signed)));
    assert_eq!(received.header("webhook-signature").unwrap(), expected);
}

fn plain_signature(received: &Received, key: &[u8]) -> String {
    let digits: String = hmac(key, &received.body).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256={digits}")
}

/// HMAC-SHA256 as RFC 2104 writes it down.
pub fn hmac(key: &[u8], message: &[u8]) -> [u8; 32] {
    let mut block = [0_u8; 64];
    let key = if key.len() > block.len() { sha256(key).as_bytes().to_vec() } else { key.to_vec() };
    block[..key.len()].copy_from_slice(&key);
    let inner = [&block.map(|byte| byte ^ 0x36)[..], message].concat();
    let outer = [&block.map(|byte| byte ^ 0x5c)[..], sha256(&inner).as_bytes()].concat();
    *sha256(&outer).as_bytes()
}
