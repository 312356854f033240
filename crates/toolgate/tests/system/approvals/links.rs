//! One-time links: the page is the same for everybody and knows nothing; looking at it decides nothing and uses nothing
//! up; a link is used once, with a key that may answer.

use serde_json::json;
use toolgate_testkit::http::Answer;
use toolgate_testkit::upstream::Upstream;

use super::office::{Office, Waiting, person};
use super::webhooks::{PUBLIC_URL, listener, telling, worlds};
use crate::world::{World, send, setup, text};

/// A call that waits, and the token of the link that was sent for it.
fn asked(office: &Office, hook: &Upstream) -> (Waiting, String) {
    let before = hook.count();
    let waiting = office.asks("transfer", 1200);
    hook.wait_for(before + 1);
    let told = hook.received()[before].json();
    let token = text(&told, "/link").strip_prefix(&format!("{PUBLIC_URL}/approvals/open/")).unwrap().to_owned();
    (waiting, token)
}

fn page(world: &World, token: &str) -> Answer {
    send(world.gate.address(), "GET", &format!("/approvals/open/{token}"), &[], &[]).answer
}

fn redeem(token: &str) -> String {
    format!("/api/v1/approvals/links/{token}/redeem")
}

#[test]
fn the_page_is_the_same_for_every_link_and_keeps_to_itself() {
    let hook = listener();
    let world = World::of(&telling(setup().reaching_loopback(), &hook), None);
    let office = Office::open(&world);
    let (_waiting, token) = asked(&office, &hook);
    let real = page(&world, &token);
    assert_eq!(real.status, 200);
    for other in ["nothing", &"0".repeat(64), "%00", "a%2Fb"] {
        let shown = page(&world, other);
        assert_eq!((shown.status, &shown.body), (200, &real.body), "{other}");
    }
    assert!(!real.text().contains(&token) && !real.text().contains("bank.transfer"));
    let header = |name: &str| real.header(name).unwrap();
    assert_eq!(header("content-type"), "text/html; charset=utf-8");
    assert_eq!((header("cache-control"), header("referrer-policy")), ("no-store", "no-referrer"));
    assert_eq!((header("x-content-type-options"), header("x-frame-options")), ("nosniff", "DENY"));
    let policy = header("content-security-policy");
    for part in ["default-src 'none'", "script-src 'sha256-", "connect-src 'self'", "frame-ancestors 'none'"] {
        assert!(policy.contains(part), "{policy}");
    }
    assert!(!policy.contains("unsafe-inline"), "{policy}");
}

#[test]
fn looking_neither_decides_nor_uses_the_link_up_and_using_it_up_decides_nothing() {
    let hook = listener();
    for world in worlds(&hook) {
        let office = Office::open(&world);
        let (waiting, token) = asked(&office, &hook);
        for _ in 0..3 {
            assert_eq!(page(&world, &token).status, 200);
            office.clerk.get(&redeem(&token)).refused(405, "METHOD_NOT_ALLOWED");
        }
        let shown = office.clerk.ask("POST", &redeem(&token), None).ok();
        assert_eq!((text(&shown, "/id"), text(&shown, "/status")), (waiting.approval.as_str(), "pending"));
        assert_eq!(shown["arguments"], json!({"amount": 1200, "to": "ann"}));
        assert!(shown["risk"]["level"].is_string());
        let again = office.clerk.ask("POST", &redeem(&token), None).refused(410, "APPROVAL_ENDED");
        assert!(text(&again, "/message").contains("already been used"), "{again}");
        assert_eq!((office.approval(&waiting.approval)["status"].as_str(), office.bank.count()), (Some("pending"), 0));

        let decided = office.clerk.decides(&waiting.approval, "approve", json!({"channel": "web"})).ok();
        assert_eq!(decided["votes"][0]["channel"], "web");
        waiting.answer().ok();
        assert_eq!(office.bank.count(), 1);
    }
}

#[test]
fn whoever_may_not_answer_cannot_use_a_link_up() {
    let hook = listener();
    for world in worlds(&hook) {
        let office = Office::open(&world);
        let (waiting, token) = asked(&office, &hook);
        let unknown = redeem(&"0".repeat(64));
        let foreign = world.tenant("globex");
        let bystander = person(&office.admin, "bystander", &[], &[]);
        send(world.gate.address(), "POST", &redeem(&token), &[], &[]).refused(401, "UNAUTHENTICATED");
        office.agent.ask("POST", &redeem(&token), None).refused(403, "PERMISSION_DENIED");
        bystander.ask("POST", &redeem(&token), None).refused(403, "PERMISSION_DENIED");
        let other_tenant = foreign.ask("POST", &redeem(&token), None).refused(404, "APPROVAL_NOT_FOUND");
        assert_eq!(other_tenant, office.clerk.ask("POST", &unknown, None).refused(404, "APPROVAL_NOT_FOUND"));
        office.clerk.ask("POST", &redeem("no-token"), None).refused(404, "APPROVAL_NOT_FOUND");

        assert_eq!(text(&office.clerk.ask("POST", &redeem(&token), None).ok(), "/id"), waiting.approval);
    }
}

#[test]
fn the_token_is_kept_nowhere() {
    let hook = listener();
    let setup = telling(setup().reaching_loopback(), &hook);
    let world = World::of(&setup, None);
    let office = Office::open(&world);
    let (waiting, token) = asked(&office, &hook);
    office.clerk.ask("POST", &redeem(&token), None).ok();
    office.clerk.decides(&waiting.approval, "deny", json!({})).ok();
    let ended = world.gate.stop();
    assert!(!ended.stderr.contains(&token));
    for file in std::fs::read_dir(setup.data()).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        assert!(!bytes.windows(token.len()).any(|window| window == token.as_bytes()));
    }
}
