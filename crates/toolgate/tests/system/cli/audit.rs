//! The audit log by command, and its verification without the gate.

use serde_json::{Value, json};

use super::{Person, Said, rows, setup};

#[test]
fn events_heads_and_proofs_can_be_read() {
    let gate = setup().start();
    let person = Person::administrator(&gate);
    for name in ["one", "two", "three"] {
        person.reads(&["vault", "create", name]);
    }
    let events = person.gets(&["audit", "events", "--type", "vault.created", "--actor", "admin"]);
    assert_eq!(events["events"].as_array().unwrap().len(), 3);
    let said = person.says(&["audit", "events", "--limit", "2"]);
    let table = rows(&said.stdout);
    assert_eq!((&table[0][..1], table.len()), (&["0"][..], 2), "the table and nothing else");
    assert!(said.stderr.contains("--cursor"), "{}", said.all());
    let since = events["events"][1]["timestamp"].as_str().unwrap();
    let later = person.gets(&["audit", "events", "--type", "vault.created", "--since", since]);
    assert!(!later["events"].as_array().unwrap().is_empty());
    assert_eq!(person.gets(&["audit", "events", "--until", "2000-01-01T00:00:00Z"])["events"], json!([]));

    let head = person.gets(&["audit", "head"]);
    let size = head["size"].as_u64().unwrap();
    assert!(size >= 6, "{head}");
    assert!(person.reads(&["audit", "head"]).contains(head["public_key"].as_str().unwrap()));
    let proof = person.gets(&["audit", "proof", "--sequence", "1"]);
    assert_eq!((&proof["kind"], &proof["about"]["sequence"]), (&json!("inclusion"), &json!(1)));
    assert_eq!(person.gets(&["audit", "proof", "--first", "2", "--second", "5"])["kind"], "consistency");
    assert!(person.reads(&["audit", "proof", "--first", "2"]).contains("consistency"));
    for bad in [&["audit", "proof"] as &[&str], &["audit", "proof", "--sequence", "1", "--first", "1"]] {
        assert_eq!(person.says(bad).code, 2, "{bad:?}");
    }
}

#[test]
fn an_export_is_verified_without_the_gate_and_every_forgery_is_named() {
    let gate = setup().start();
    let person = Person::administrator(&gate);
    for number in 0..5 {
        person.reads(&["vault", "create", &format!("vault {number}")]);
    }
    let key = person.gets(&["audit", "head"])["public_key"].as_str().unwrap().to_owned();
    let text = person.reads(&["audit", "export", "-o", "audit.jsonl"]);
    assert!(text.contains("audit.jsonl"), "{text}");
    let written = std::fs::read_to_string(gate.setup().home().join("audit.jsonl")).unwrap();
    assert!(!gate.setup().home().join("audit.jsonl.part").exists());
    let exported = person.reads(&["audit", "export"]);
    assert_eq!(exported.lines().count(), written.lines().count());
    assert_eq!(person.gets(&["audit", "export", "-o", "again.jsonl"])["lines"], json!(written.lines().count()));
    let setup = gate.setup().clone();
    gate.stop();

    let verify = |arguments: &[&str], input: &str| {
        let mut command = setup.command();
        command.args(["audit", "verify"]).args(arguments);
        Said::of(command, input)
    };
    let verified = verify(&["audit.jsonl", "--public-key", &key], "");
    assert_eq!(verified.code, 0, "{}", verified.all());
    assert!(verified.stdout.contains("tenant default"), "{}", verified.stdout);
    std::fs::write(setup.home().join("key.pub"), format!("{key}\n")).unwrap();
    let report = verify(&["-", "--public-key", "key.pub", "--json"], &written).json();
    assert_eq!((&report["verified"], &report["tenant_id"]), (&json!(true), &json!("default")));

    let forged = written.replacen("vault.created", "vault.crested", 1);
    let refused = verify(&["-", "--public-key", &key], &forged);
    assert_eq!((refused.code, refused.stdout.as_str()), (1, ""));
    assert!(refused.stderr.contains("event 3 (line 6) was changed"), "{}", refused.stderr);
    let refused = verify(&["-", "--public-key", &key, "--json"], &forged);
    let report: Value = serde_json::from_str(&refused.stderr).unwrap();
    assert_eq!((&report["sequence"], &report["kind"]), (&json!(3), &json!("changed")));
    let shortened: Vec<&str> =
        written.lines().enumerate().filter(|(line, _)| *line != 4).map(|(_, text)| text).collect();
    let refused = verify(&["-", "--public-key", &key], &(shortened.join("\n") + "\n"));
    assert!(refused.code == 1 && refused.stderr.contains("event 2"), "{}", refused.stderr);

    let wrong = verify(&["audit.jsonl", "--public-key", "nonsense"], "");
    assert!(wrong.code == 1 && wrong.stderr.contains("neither a key nor a file"), "{}", wrong.stderr);
    assert_eq!(verify(&["missing.jsonl", "--public-key", &key], "").code, 1);
    assert_eq!(verify(&["audit.jsonl"], "").code, 2);
}
