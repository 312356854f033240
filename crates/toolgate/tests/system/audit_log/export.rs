//! Exports, verified offline by `toolgate audit verify`: whole they pass, and whatever is changed in them is named.

use std::path::Path;

use serde_json::{Value, json};
use toolgate_model::audit_export::verify;
use toolgate_model::checkpoint::PublicKey;

use crate::world::{Actor, World, on_both_engines, setup, text};

on_both_engines! {
    an_export_verifies_offline_and_any_change_to_it_is_named,
    every_single_damaged_byte_is_found,
}

/// The export as lines, and the key that verifies it.
fn export(actor: &Actor) -> (Vec<String>, String) {
    let reply = actor.get("/api/v1/audit/export");
    assert_eq!(reply.status(), 200);
    assert_eq!(reply.answer.header("content-type"), Some("application/x-ndjson"));
    let lines = reply.answer.text().lines().map(str::to_owned).collect();
    let head = actor.get("/api/v1/audit/head").ok();
    (lines, text(&head, "/public_key").to_owned())
}

fn joined(lines: &[String]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Runs `toolgate audit verify` where no gate is, and answers whether it was content, and what it said.
fn verify_by_command(home: &Path, export: &str, key: &str) -> (bool, Value) {
    let file = home.join("export.jsonl");
    std::fs::write(&file, export).unwrap();
    let offline = setup();
    let mut command = offline.command();
    command.args(["audit", "verify", "--json", "--public-key", key]).arg(&file);
    let output = command.output().unwrap();
    let said = if output.status.success() { &output.stdout } else { &output.stderr };
    assert!(matches!(output.status.code(), Some(0 | 1)), "{output:?}");
    let said = serde_json::from_slice(said).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    (output.status.success(), said)
}

/// The place of an event among the lines: behind the header, and one block line for every 256 events.
fn line_of(sequence: usize) -> usize {
    1 + sequence / 256 + 1 + sequence
}

fn an_export_verifies_offline_and_any_change_to_it_is_named(world: &World) {
    let admin = world.admin();
    let credential = admin.credential();
    // Two blocks and a half: events that cascades write are the cheapest.
    let top = admin.grants(&credential, "one", json!({"delegatable": true, "delegation_depth": null}));
    for _ in 0..300 {
        admin.delegates(&top, "two", json!({}));
    }
    admin.delete(&format!("/api/v1/grants/{}", text(&top, "/id"))).ok();
    let (lines, key) = export(&admin);
    let size = lines.len() - 2 - 3;
    assert!(size > 600, "{size} events make three blocks");
    let home = tempfile::tempdir().unwrap();
    let (verified, said) = verify_by_command(home.path(), &joined(&lines), &key);
    assert!(verified, "{said}");
    assert_eq!((&said["verified"], &said["size"], &said["tenant_id"]), (&json!(true), &json!(size), &json!("default")));
    let head = admin.get("/api/v1/audit/head").ok();
    assert_eq!(said["root_hash"], head["root_hash"]);

    type Change = fn(&mut Vec<String>);
    let changes: [(&str, usize, &str, Change); 9] = [
        ("an actor changed", 7, "changed", |lines| {
            let line = &mut lines[line_of(7)];
            *line = line.replace("\"actor\":\"admin\"", "\"actor\":\"adnin\"");
        }),
        ("the first removed", 0, "missing", |lines| drop(lines.remove(line_of(0)))),
        ("one removed from a later block", 300, "missing", |lines| drop(lines.remove(line_of(300)))),
        ("two swapped", 20, "out_of_order", |lines| lines.swap(line_of(20), line_of(25))),
        ("two swapped across blocks", 200, "changed", |lines| lines.swap(line_of(200), line_of(400))),
        ("a copy inserted", 42, "inserted", |lines| {
            let copy = lines[line_of(3)].clone();
            lines.insert(line_of(42), copy);
        }),
        ("renumbered", 99, "changed", |lines| {
            let line = &mut lines[line_of(99)];
            *line = line.replace("\"sequence\":99", "\"sequence\":98");
        }),
        ("a hash of a block exchanged", 256, "block_forged", |lines| {
            let (first, second) = (lines[1].clone(), &mut lines[line_of(256) - 1]);
            let stolen: Value = serde_json::from_str(&first).unwrap();
            let mut block: Value = serde_json::from_str(second).unwrap();
            block["leaves"][5] = stolen["leaves"][5].clone();
            *second = block.to_string();
        }),
        ("cut off", 500, "truncated", |lines| lines.truncate(line_of(500))),
    ];
    for (what, sequence, kind, change) in changes {
        let mut damaged = lines.clone();
        change(&mut damaged);
        assert_ne!(damaged, lines, "{what}");
        let (verified, said) = verify_by_command(home.path(), &joined(&damaged), &key);
        assert!(!verified, "{what}");
        assert_eq!((&said["verified"], &said["sequence"]), (&json!(false), &json!(sequence)), "{what}: {said}");
        assert_eq!(said["kind"], kind, "{what}: {said}");
    }
    let other = World::sqlite().admin().get("/api/v1/audit/head").ok();
    let (verified, said) = verify_by_command(home.path(), &joined(&lines), text(&other, "/public_key"));
    assert!(!verified, "another gate's key vouches for nothing here: {said}");
}

fn every_single_damaged_byte_is_found(world: &World) {
    let admin = world.admin();
    for _ in 0..4 {
        admin.vault();
    }
    let (lines, key) = export(&admin);
    let key = PublicKey::parse(&key).unwrap();
    let whole = joined(&lines);
    verify(whole.as_bytes(), &key).unwrap();
    let mut start = 0;
    for (number, line) in lines.iter().enumerate() {
        for position in start..=start + line.len() {
            let mut damaged = whole.clone().into_bytes();
            damaged[position] ^= 1;
            let Err(error) = verify(damaged.as_slice(), &key) else {
                // The one part that is only information: the header's copy of the key.
                let before = line.get(..position - start).unwrap();
                assert!(number == 0 && before.contains("\"public_key\":"), "byte {position}: {line}");
                continue;
            };
            // A damaged line end spoils the line behind it as well; the first of the two is named.
            if let (Some(sequence), true) = (error.sequence(), number >= 2) {
                assert_eq!(Some(sequence), u64::try_from(number - 2).ok(), "byte {position} of line {number}: {error}");
            }
        }
        start += line.len() + 1;
    }
}
