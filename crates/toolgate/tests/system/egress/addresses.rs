//! Private addresses in many spellings. Nothing is connected to unless the operator names it.

use serde_json::{Value, json};
use toolgate_testkit::upstream::{Reply, Upstream};

use crate::tool_user::{TOKEN, ToolUser, bearer, failure};
use crate::world::{Reply as Answer, World, setup};

/// Spellings of the address that the service listens on; `PORT` is its port.
const LOOPBACK: [&str; 19] = [
    "http://127.0.0.1:PORT",
    "http://127.1:PORT",
    "http://127.0.1:PORT",
    "http://2130706433:PORT",
    "http://0x7f000001:PORT",
    "http://0x7f.1:PORT",
    "http://017700000001:PORT",
    "http://0177.0.0.01:PORT",
    "http://0x7F.0.0x0.1:PORT",
    "http://127.0.0.1.:PORT",
    "http://127%2e0.0.1:PORT",
    "http://①②⑦.⓪.⓪.①:PORT",
    "http://127。0。0。1:PORT",
    "http://[::ffff:127.0.0.1]:PORT",
    "http://[::ffff:7f00:1]:PORT",
    "http://[0:0:0:0:0:ffff:127.0.0.1]:PORT",
    "HTTP://127.0.0.1:PORT/",
    "http://127.0.0.1:PORT/v1/./x",
    "https://127.0.0.1:PORT",
];

/// Other addresses and names that are nobody's business.
const PRIVATE: [&str; 35] = [
    "http://127.0.0.2:PORT",
    "http://0.0.0.0:PORT",
    "http://0:PORT",
    "http://[::]:PORT",
    "http://[::1]:PORT",
    "http://[0:0:0:0:0:0:0:1]:PORT",
    "http://[::127.0.0.1]:PORT",
    "http://[64:ff9b::7f00:1]:PORT",
    "http://[64:ff9b:1::7f00:1]:PORT",
    "http://[2002:7f00:1::]:PORT",
    "http://[2001:0:0:0:0:0:80ff:fffe]:PORT",
    "http://10.0.0.1",
    "http://172.16.0.1",
    "http://172.31.255.254",
    "http://192.168.1.1",
    "http://100.64.0.1",
    "http://169.254.1.1",
    "http://169.254.169.254/latest/meta-data",
    "http://0xa9fea9fe",
    "http://2852039166",
    "http://[::ffff:a9fe:a9fe]",
    "http://100.100.100.200",
    "http://168.63.129.16",
    "http://192.0.0.192",
    "http://[fd00:ec2::254]",
    "http://[fe80::1]",
    "http://[fc00::1]",
    "http://[fec0::1]",
    "http://[ff02::1]",
    "http://224.0.0.1",
    "http://255.255.255.255",
    "http://240.0.0.1",
    "http://198.18.0.1",
    "http://192.0.2.1",
    "http://[2001:db8::1]",
];

/// Names of this machine, its network and its cloud.
const NAMES: [&str; 8] = [
    "http://localhost:PORT",
    "http://LOCALHOST:PORT",
    "http://localhost.:PORT",
    "http://service.localhost:PORT",
    "http://ip6-localhost:PORT",
    "http://instance-data:PORT",
    "http://metadata.google.internal/computeMetadata/v1",
    "http://printer.local",
];

/// What is no address of a service at all.
const REFUSED: [&str; 16] = [
    "ftp://127.0.0.1",
    "file:///etc/passwd",
    "gopher://127.0.0.1:6379/_x",
    "unix:///run/x.sock",
    "javascript:alert(1)",
    "//127.0.0.1",
    "127.0.0.1",
    "http://",
    "http://user@127.0.0.1",
    "http://user:password@127.0.0.1",
    "http://@127.0.0.1",
    "http://a.example#@127.0.0.1",
    "http://a.example\\@127.0.0.1",
    "http://127.0.0.1:99999",
    "http://256.256.256.256",
    "http://a.example/\r\nHost: b.example",
];

#[test]
fn nothing_private_is_connected_to_unless_it_is_allowed() {
    let world = World::of(&setup(), None);
    let upstream = Upstream::start(|_| Reply::json(200, json!({"reached": true})));
    for spelling in LOOPBACK.iter().chain(&PRIVATE).chain(&NAMES) {
        let Some(reply) = call(&world, &upstream, spelling) else { continue };
        let error = failure(&reply, 502, "PROXY_ERROR");
        let reason = error["message"].as_str().unwrap();
        assert!(reason.contains("egress.allow"), "{spelling}: {reason}");
    }
    assert_eq!(upstream.connections(), 0);
}

#[test]
fn an_allowed_address_is_reached_by_its_own_spellings_and_nothing_beside_it() {
    let world = World::sqlite();
    let upstream = Upstream::start(|_| Reply::json(200, json!({"reached": true})));
    let mut reached = 0;
    for spelling in LOOPBACK.iter().filter(|spelling| !spelling.starts_with("https")) {
        let Some(reply) = call(&world, &upstream, spelling) else { continue };
        assert_eq!(reply.ok()["result"], json!({"reached": true}), "{spelling}");
        reached += 1;
        assert_eq!(upstream.count(), reached, "{spelling}");
    }
    assert!(reached > 15);
    let connections = upstream.connections();
    for spelling in PRIVATE {
        let Some(reply) = call(&world, &upstream, spelling) else { continue };
        assert_eq!(reply.json()["error"]["code"], "PROXY_ERROR", "{spelling}");
    }
    assert_eq!(upstream.connections(), connections);
}

#[test]
fn what_is_no_address_of_a_service_is_refused_with_its_credential() {
    let world = World::sqlite();
    let (admin, vault) = (world.admin(), world.admin().vault());
    for address in REFUSED {
        let body = json!({"service": "service", "label": "l", "auth_type": "bearer_token", "material": {"token": TOKEN},
            "metadata": {"base_url": address}});
        let error = admin.post(&format!("/api/v1/vaults/{vault}/credentials"), &body).refused(400, "INVALID_FIELD");
        assert_eq!(error["path"], "metadata.base_url", "{address}: {error}");
    }
}

#[test]
fn a_service_that_does_not_speak_tls_is_not_told_the_credential() {
    let world = World::sqlite();
    let upstream = Upstream::start(|_| Reply::json(200, json!({})));
    let mut credential = bearer(&upstream);
    credential["metadata"]["base_url"] = json!(upstream.url().replace("http:", "https:"));
    failure(&ToolUser::of(&world, credential).calls("any", json!({})), 502, "PROXY_ERROR");
    for request in upstream.received() {
        assert!(request.is_malformed() && !format!("{request:?}").contains(TOKEN), "{request:?}");
    }
}

/// A call to a service there; `None` where the address was refused already when the credential was made.
fn call(world: &World, upstream: &Upstream, spelling: &str) -> Option<Answer> {
    let address = spelling.replace("PORT", &upstream.address().port().to_string());
    let admin = world.admin();
    let body = json!({"service": "service", "label": "l", "auth_type": "bearer_token", "material": {"token": TOKEN},
        "scopes_available": ["any"], "metadata": {"base_url": address, "timeout_ms": 1000}});
    let made = admin.post(&format!("/api/v1/vaults/{}/credentials", admin.vault()), &body);
    if made.status() == 400 {
        assert_eq!(made.refused(400, "INVALID_FIELD")["path"], "metadata.base_url", "{spelling}");
        return None;
    }
    let grant = admin.grants(made.created()["id"].as_str().unwrap(), "admin", json!({"scopes": ["any"]}));
    let call: Value = json!({"tool": "service.any", "grant_id": grant["id"]});
    Some(admin.post("/api/v1/tools/invoke", &call))
}
