//! Heads and proofs, checked with nothing but the public key and the events themselves.

use serde_json::{Value, json};
use toolgate_model::canonical::to_canonical;
use toolgate_model::checkpoint::{self, PublicKey, TreeHead};
use toolgate_model::event::event_leaf;
use toolgate_model::merkle::{Hash, root_of, verify_consistency, verify_inclusion};

use crate::world::{Actor, World, names, on_both_engines, text};

on_both_engines! {
    a_head_is_signed_and_covers_what_was_answered_before,
    every_event_is_proved_to_be_in_the_log,
    every_log_is_proved_to_be_the_beginning_of_the_later_one,
    every_tenant_has_a_log_of_its_own,
}

/// Fetches the head and believes only what is signed.
fn head(actor: &Actor) -> TreeHead {
    let shown = actor.get("/api/v1/audit/head").ok();
    assert_eq!(names(&shown), ["checkpoint", "public_key", "root_hash", "size", "tenant_id", "timestamp"]);
    let key = PublicKey::parse(text(&shown, "/public_key")).unwrap();
    let head = checkpoint::verify(text(&shown, "/checkpoint"), &key).unwrap();
    assert_eq!(shown["size"], head.size);
    assert_eq!(text(&shown, "/root_hash"), head.root.to_string());
    assert_eq!(text(&shown, "/tenant_id"), head.tenant.as_str());
    assert_eq!(text(&shown, "/timestamp"), head.time.to_string());
    head
}

/// The leaf of an event as it was shown: its canonical JSON without its place.
fn leaf(event: &Value) -> Hash {
    let mut event = event.clone();
    event.as_object_mut().unwrap().remove("sequence");
    event_leaf(&to_canonical(&event))
}

fn hashes(proof: &Value) -> Vec<Hash> {
    proof["hashes"].as_array().unwrap().iter().map(|hash| Hash::parse(hash.as_str().unwrap()).unwrap()).collect()
}

fn a_head_is_signed_and_covers_what_was_answered_before(world: &World) {
    let admin = world.admin();
    let before = head(&admin);
    admin.vault();
    let after = head(&admin);
    assert_eq!(after.size, before.size + 1, "what was answered is in the next head");
    assert!(after.time >= before.time);
    let leaves: Vec<Hash> = admin.events("").iter().map(leaf).collect();
    assert_eq!(root_of(&leaves), after.root, "the head is the root over exactly these events");
    let shown = admin.get("/api/v1/audit/head").ok();
    let forged = text(&shown, "/checkpoint").replacen(&after.size.to_string(), "1", 1);
    assert!(checkpoint::verify(&forged, &PublicKey::parse(text(&shown, "/public_key")).unwrap()).is_err());
}

fn every_event_is_proved_to_be_in_the_log(world: &World) {
    let admin = world.admin();
    for _ in 0..6 {
        admin.vault();
    }
    let head = head(&admin);
    let events = admin.events("");
    for (sequence, event) in (0_u64..).zip(&events) {
        let proof = admin.get(&format!("/api/v1/audit/proof?sequence={sequence}")).ok();
        assert_eq!(names(&proof), ["about", "hashes", "head", "kind"]);
        assert_eq!(
            (&proof["kind"], &proof["about"]),
            (&json!("inclusion"), &json!({"sequence": sequence, "size": head.size}))
        );
        assert_eq!(text(&proof, "/head/root_hash"), head.root.to_string());
        verify_inclusion(&leaf(event), sequence, head.size, &hashes(&proof), &head.root).unwrap();
        let other = leaf(&events[(usize::try_from(sequence).unwrap() + 1) % events.len()]);
        assert!(verify_inclusion(&other, sequence, head.size, &hashes(&proof), &head.root).is_err());
    }
    let leaves: Vec<Hash> = events.iter().map(leaf).collect();
    for size in 1..=head.size {
        let proof = admin.get(&format!("/api/v1/audit/proof?sequence=0&size={size}")).ok();
        let root = root_of(&leaves[..usize::try_from(size).unwrap()]);
        verify_inclusion(&leaves[0], 0, size, &hashes(&proof), &root).unwrap();
    }
}

fn every_log_is_proved_to_be_the_beginning_of_the_later_one(world: &World) {
    let admin = world.admin();
    let mut heads = vec![head(&admin)];
    for _ in 0..5 {
        admin.vault();
        heads.push(head(&admin));
    }
    for (number, old) in heads.iter().enumerate() {
        for new in &heads[number..] {
            let proof = admin.get(&format!("/api/v1/audit/proof?first={}&second={}", old.size, new.size)).ok();
            assert_eq!(
                (&proof["kind"], &proof["about"]),
                (&json!("consistency"), &json!({"first": old.size, "second": new.size}))
            );
            verify_consistency(old.size, new.size, &old.root, &new.root, &hashes(&proof)).unwrap();
        }
    }
    let newest = heads.last().unwrap();
    let proof = admin.get(&format!("/api/v1/audit/proof?first={}", heads[0].size)).ok();
    assert_eq!(proof["about"]["second"], newest.size, "without a second size it leads to the newest head");
}

fn every_tenant_has_a_log_of_its_own(world: &World) {
    let acme = world.tenant("acme");
    let platform = head(&world.admin());
    let own = head(&acme);
    assert_eq!((own.tenant.as_str(), platform.tenant.as_str()), ("acme", "default"));
    assert_eq!(own.size, 3, "its making, its administrator, and the key");
    acme.vault();
    assert_eq!(head(&acme).size, 4);
    assert_eq!(head(&world.admin()), platform, "what one tenant does moves no other log");
    assert_eq!(acme.events("")[3]["sequence"], 3);
}
