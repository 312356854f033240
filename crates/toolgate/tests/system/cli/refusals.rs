//! What the command line says when something is not as it should be, and where the key comes from.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use super::{Person, Said, setup};

#[test]
fn a_refusal_is_a_sentence_for_people_and_the_gates_object_for_programs() {
    let gate = setup().start();
    let person = Person::administrator(&gate);
    let id = "vault_01ARZ3NDEKTSV4RRFFQ69G5FAV";
    let said = person.says(&["vault", "show", id]);
    assert_eq!((said.code, said.stdout.as_str()), (1, ""));
    assert_eq!(said.stderr, format!("toolgate: there is no vault {id} [VAULT_NOT_FOUND]\n"));
    let said = person.says(&["vault", "show", id, "--json"]);
    let refusal: Value = serde_json::from_str(&said.stderr).unwrap();
    assert_eq!((said.code, &refusal["error"]["code"]), (1, &json!("VAULT_NOT_FOUND")));
    assert_eq!(person.says(&["vault", "show", "../agents"]).code, 1);

    let wrong = Person { gate: &gate, key: "tgk_wrong" }.says(&["vault", "list"]);
    assert!(wrong.code == 1 && wrong.stderr.contains("[UNAUTHENTICATED]"), "{}", wrong.all());
    assert!(!wrong.all().contains("tgk_wrong"));
}

#[test]
fn bad_usage_ends_with_two_and_says_how_to_do_better() {
    let setup = setup();
    for arguments in [
        &["nonsense"] as &[&str],
        &["vault"],
        &["vault", "create"],
        &["agent", "create", "x", "--permission", "everything"],
        &["grant", "create", "x", "y", "--constraint", "max=not json"],
        &["grant", "create", "x", "y", "--expires", "tomorrow"],
        &["key", "create", "x", "--expires", "2026-13-01"],
        &["vault", "list", "--limit", "0"],
        &["serve", "--nonsense"],
        &["login", "tgk_a_token_as_argument"],
    ] {
        let mut command = setup.command();
        command.args(arguments);
        let said = Said::of(command, "");
        assert_eq!((said.code, said.stdout.as_str()), (2, ""), "{arguments:?}: {}", said.all());
        assert!(!said.stderr.is_empty());
    }
}

#[test]
fn what_cannot_be_undone_needs_consent() {
    let gate = setup().start();
    let person = Person::administrator(&gate);
    let vault = person.makes(&["vault", "create", "kept"], "");
    for arguments in [["vault", "delete", &vault], ["credential", "revoke", "cred_x"], ["agent", "remove", "admin"]] {
        let said = person.says_with(&arguments, "y\n");
        assert_eq!(said.code, 2, "{}", said.all());
        assert!(said.stderr.contains("--yes"), "{}", said.all());
    }
    assert_eq!(person.gets(&["vault", "show", &vault])["name"], "kept");
}

#[test]
fn a_gate_that_does_not_answer_is_named_with_how_to_start_one() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", free.local_addr().unwrap());
    drop(free);
    let setup = setup();
    let mut command = setup.command();
    command.env("TOOLGATE_TOKEN", "x").args(["vault", "list", "--url", &url]);
    let said = Said::of(command, "");
    assert_eq!(said.code, 1);
    assert!(said.stderr.contains(&url) && said.stderr.contains("toolgate serve"), "{}", said.stderr);

    let mut command = setup.command();
    command.env("TOOLGATE_TOKEN", "x").args(["vault", "list", "--url", "gate.example"]);
    let said = Said::of(command, "");
    assert!(said.code == 1 && said.stderr.contains("not the URL of a gate"), "{}", said.stderr);
}

#[test]
fn what_is_no_gate_is_recognised() {
    let setup = setup();
    for answer in [
        "HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnope",
        "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>",
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0_u8; 4096];
            let _ = stream.read(&mut request).unwrap();
            stream.write_all(answer.as_bytes()).unwrap();
        });
        let mut command = setup.command();
        command.env("TOOLGATE_TOKEN", "x").args(["vault", "list", "--url", &url]);
        let said = Said::of(command, "");
        server.join().unwrap();
        assert!(said.code == 1 && said.stderr.contains("not a response of a Toolgate gate"), "{}", said.stderr);
    }
}

#[test]
fn a_login_keeps_the_key_for_this_gate_only() {
    let gate = setup().start();
    let run = |arguments: &[&str], input: &str| {
        let mut command = gate.setup().command();
        command.env("TOOLGATE_URL", gate.url()).args(arguments);
        Said::of(command, input)
    };
    let without = run(&["vault", "list"], "");
    assert!(without.code == 1 && without.stderr.contains("toolgate login"), "{}", without.stderr);
    let wrong = run(&["login"], "not-the-token\n");
    assert!(wrong.code == 1 && !wrong.all().contains("not-the-token"), "{}", wrong.all());
    let path = gate.setup().configuration_home().join("token");
    assert!(!path.exists(), "a key that is refused is not kept");
    assert_eq!(run(&["login"], "").code, 1);

    let login = run(&["login"], &format!("{}\n", gate.token()));
    assert_eq!(login.code, 0, "{}", login.all());
    assert!(login.stdout.contains("admin of tenant default") && !login.all().contains(gate.token()), "{}", login.all());
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(run(&["vault", "list"], "").code, 0);
    assert_eq!(run(&["login", "--json"], gate.token()).json()["caller"]["id"], "admin");

    let elsewhere = run(&["vault", "list", "--url", "http://127.0.0.1:1"], "");
    assert!(elsewhere.stderr.contains("no key for http://127.0.0.1:1"), "{}", elsewhere.stderr);
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
    let open = run(&["vault", "list"], "");
    assert!(open.code == 1 && open.stderr.contains("chmod 600"), "{}", open.stderr);
}

#[test]
fn completions_and_help_are_there() {
    let setup = setup();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let mut command = setup.command();
        command.args(["completions", shell]);
        let said = Said::of(command, "");
        assert_eq!(said.code, 0);
        assert!(said.stdout.contains("credential"), "{shell}");
    }
    for (arguments, expected) in [
        (&["--help"] as &[&str], "from the first start to a grant"),
        (&["grant", "create", "--help"], "max_invocations_per_hour=100"),
        (&["--version"], env!("CARGO_PKG_VERSION")),
    ] {
        let mut command = setup.command();
        command.args(arguments);
        let said = Said::of(command, "");
        assert!(said.code == 0 && said.stdout.contains(expected), "{arguments:?}: {}", said.all());
    }
}
