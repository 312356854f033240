//! Connecting: settings gain the hook and lose nothing, and are given back as they were.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use super::change::read;
use super::settings::{connected, disconnected};
use super::*;
use crate::hook::HookClient;

mod clients;

const CLIENTS: [HookClient; 4] = [HookClient::ClaudeCode, HookClient::Codex, HookClient::Gemini, HookClient::Cursor];

fn wiring(client: HookClient) -> Wiring {
    Wiring::new(client, "/usr/bin/toolgate", &Target::default())
}

fn target(url: &str, agent: Option<&str>) -> Target {
    Target { url: Some(url.to_owned()), profile: Some("agent".to_owned()), agent: agent.map(str::to_owned) }
}

fn planned(file: PathBuf, wiring: &Wiring, remove: bool) -> Result<Change, Failure> {
    let mut change = Change::of(file)?;
    if remove {
        hooks::remove(&mut change, wiring)?
    } else {
        hooks::add(&mut change, wiring)?
    }
    Ok(change)
}

#[track_caller]
fn in_and_out(client: HookClient, text: &str) -> Value {
    let with = connected(text, &wiring(client)).unwrap();
    assert_eq!(connected(&with, &wiring(client)).unwrap(), with, "twice is once");
    assert_eq!(disconnected(&with, &wiring(client)).unwrap().as_deref(), Some(text), "{with}");
    settings::checked(&with).unwrap()
}

#[test]
fn new_settings_are_those_of_the_clients_documentation() {
    for (client, expected) in [
        (
            HookClient::ClaudeCode,
            r#"{
  "hooks": {
    "PreToolUse": [
      {
        "matcher": "*",
        "hooks": [
          {
            "type": "command",
            "command": "/usr/bin/toolgate hook claude-code || exit 2",
            "timeout": 3660
          }
        ]
      }
    ]
  }
}
"#,
        ),
        (
            HookClient::Codex,
            r#"{
  "hooks": {
    "PreToolUse": [
      {
        "matcher": "*",
        "hooks": [
          {
            "type": "command",
            "command": "/usr/bin/toolgate hook codex || exit 2",
            "timeout": 3660
          }
        ]
      }
    ],
    "PermissionRequest": [
      {
        "matcher": "*",
        "hooks": [
          {
            "type": "command",
            "command": "/usr/bin/toolgate hook codex || exit 2",
            "timeout": 3660
          }
        ]
      }
    ]
  }
}
"#,
        ),
        (
            HookClient::Gemini,
            r#"{
  "hooks": {
    "BeforeTool": [
      {
        "matcher": "*",
        "hooks": [
          {
            "name": "toolgate",
            "type": "command",
            "command": "/usr/bin/toolgate hook gemini || exit 2",
            "timeout": 3660000
          }
        ]
      }
    ]
  }
}
"#,
        ),
        (
            HookClient::Cursor,
            r#"{
  "version": 1,
  "hooks": {
    "preToolUse": [
      {
        "command": "/usr/bin/toolgate hook cursor || exit 2",
        "timeout": 3660,
        "failClosed": true
      }
    ]
  }
}
"#,
        ),
    ] {
        for empty in ["", " \n", "{}\n"] {
            assert_eq!(connected(empty, &wiring(client)).unwrap(), expected, "{empty:?}");
        }
        assert_eq!(disconnected(expected, &wiring(client)).unwrap(), None, "nothing else is left");
    }
}

#[test]
fn everything_else_stays_as_it_was_and_comes_back_as_it_was() {
    let foreign = r#"{ "matcher":"Bash", "hooks": [ {"type": "command", "command": "./audit.sh"} ] }"#;
    for client in CLIENTS {
        for text in [
            "{\n    \"z\": 1,\n    \"a\": [ 1,2 , 3 ],  \"π\": 1e2\n}\n".to_owned(),
            "{\"model\":\"opus\"}".to_owned(),
            "{\r\n\t\"version\": 1,\r\n\t\"permissions\": {\r\n\t\t\"deny\": [\"Read(.env)\"]\r\n\t}\r\n}\r\n"
                .to_owned(),
            format!("{{\n  \"version\": 1,\n  \"hooks\": {{\n    \"Stop\": [{foreign}]\n  }}\n}}"),
            format!(
                "{{\"version\":1,\"hooks\":{{\"PreToolUse\":[\n{foreign}\n], \"BeforeTool\": [{foreign}],\n \"preToolUse\": [{{\"command\": \"./x.sh\"}}], \"PermissionRequest\": [ {foreign} , {foreign} ]}},\"last\":null}}"
            ),
        ] {
            // Only Cursor wants a version, which would stay behind where there was none.
            if client == HookClient::Cursor && !text.contains("version") {
                continue;
            }
            let settings = in_and_out(client, &text);
            let before = settings::checked(&text).unwrap();
            for (name, value) in before.as_object().unwrap().iter().filter(|(name, _)| *name != "hooks") {
                assert_eq!(settings.get(name), Some(value));
            }
        }
    }
}

#[test]
fn an_entry_of_an_older_program_is_replaced_and_not_doubled() {
    for client in CLIENTS {
        let old = Wiring::new(client, "/opt/old place/toolgate", &target("http://127.0.0.1:1", None));
        let text = connected("{\n  \"version\": 1,\n  \"keep\": true\n}\n", &old).unwrap();
        assert!(text.contains("'/opt/old place/toolgate' hook"), "{text}");
        let text = connected(&text, &wiring(client)).unwrap();
        assert!(!text.contains("old place"), "{text}");
        assert_eq!(text.matches("toolgate hook").count(), wiring(client).entries().len(), "{text}");
        assert_eq!(disconnected(&text, &old).unwrap().unwrap(), "{\n  \"version\": 1,\n  \"keep\": true\n}\n");
    }
}

#[test]
fn a_handler_in_a_group_of_others_is_taken_out_of_it_alone() {
    let text = r#"{"hooks": {"PreToolUse": [{"matcher": "*", "hooks": [
        {"type": "command", "command": "./a.sh"},
        {"type": "command", "command": "/usr/local/bin/toolgate hook claude-code"}
    ]}]}}"#;
    let without = disconnected(text, &wiring(HookClient::ClaudeCode)).unwrap().unwrap();
    assert!(without.contains("./a.sh") && !without.contains("toolgate"), "{without}");
    let text = connected(text, &wiring(HookClient::ClaudeCode)).unwrap();
    assert_eq!(text.matches("toolgate hook").count(), 1, "{text}");
}

#[test]
fn hooks_of_others_are_never_taken_for_own_ones() {
    let wiring = wiring(HookClient::ClaudeCode);
    for own in ["toolgate hook claude-code", "'/a b/toolgate' hook claude-code --url x || exit 2"] {
        assert!(wiring.is_own(own), "{own}");
    }
    for other in
        ["toolgate hook codex", "mytoolgate hook claude-code", "toolgate", "echo toolgate hook", "./hook claude-code"]
    {
        assert!(!wiring.is_own(other), "{other}");
    }
}

#[test]
fn settings_that_are_not_understood_are_left_alone() {
    for client in CLIENTS {
        for text in [
            "{",
            "// comment\n{}",
            "{\"a\": 1,}",
            "{\"a\": 1, \"a\": 2}",
            "[]",
            "{\"hooks\": []}",
            "{\"hooks\": null}",
            "{\"hooks\": {\"PreToolUse\": {}, \"BeforeTool\": {}, \"preToolUse\": {}}}",
        ] {
            assert!(connected(text, &wiring(client)).is_err(), "{text}");
        }
        assert!(disconnected("{", &wiring(client)).is_err());
        assert_eq!(disconnected("{\"a\": 1}", &wiring(client)).unwrap().unwrap(), "{\"a\": 1}");
    }
}

#[test]
fn the_program_and_its_options_are_words_of_the_shell() {
    let wiring =
        Wiring::new(HookClient::Codex, "/o'brien/toolgate", &target("https://gate.example/a", Some("x; rm -r /")));
    assert_eq!(
        wiring.command(),
        r"'/o'\''brien/toolgate' hook codex --url https://gate.example/a --profile agent --agent 'x; rm -r /' || exit 2"
    );
}

#[test]
fn the_files_are_where_the_clients_look() {
    let variable = |name: &str| match name {
        "HOME" => Some("/home/ann".into()),
        "CODEX_HOME" => Some("/srv/codex".into()),
        _ => None,
    };
    let file = |client, place: &Place| wiring(client).file(place, variable).unwrap().display().to_string();
    let project = Place::Project("/shop".into());
    for (client, of_user, of_project) in [
        (HookClient::ClaudeCode, "/home/ann/.claude/settings.json", "/shop/.claude/settings.json"),
        (HookClient::Codex, "/srv/codex/hooks.json", "/shop/.codex/hooks.json"),
        (HookClient::Gemini, "/home/ann/.gemini/settings.json", "/shop/.gemini/settings.json"),
        (HookClient::Cursor, "/home/ann/.cursor/hooks.json", "/shop/.cursor/hooks.json"),
    ] {
        assert_eq!((file(client, &Place::User).as_str(), file(client, &project).as_str()), (of_user, of_project));
    }
    assert_eq!(wiring(HookClient::Cursor).file(&Place::User, |_| None), None);
}

#[test]
fn a_switch_that_keeps_hooks_from_running_is_noticed() {
    let off = |client, text: &str| wiring(client).switched_off(&settings::checked(text).unwrap());
    assert_eq!(off(HookClient::ClaudeCode, r#"{"disableAllHooks": true}"#), Some("disableAllHooks"));
    assert_eq!(off(HookClient::ClaudeCode, r#"{"disableAllHooks": false}"#), None);
    assert_eq!(off(HookClient::Gemini, r#"{"hooksConfig": {"enabled": false}}"#), Some("hooksConfig/enabled"));
}

#[test]
fn files_are_written_whole_through_links_and_with_their_permissions() {
    let directory = tempfile::tempdir().unwrap();
    let (real, link) = (directory.path().join("real.json"), directory.path().join("settings.json"));
    fs::write(&real, "{\"a\": 1}").unwrap();
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let change = planned(link.clone(), &wiring(HookClient::ClaudeCode), false).unwrap();
    assert!(change.diff().contains("-{\"a\": 1}\n+{\"a\": 1, \"hooks\""), "{}", change.diff());
    change.write().unwrap();
    assert!(link.is_symlink());
    assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
    assert_eq!(Some(fs::read_to_string(&real).unwrap()), change.new);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2, "nothing is left behind");
}

#[test]
fn a_file_that_changed_after_it_was_shown_is_not_written() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("new/.claude/settings.json");
    let change = planned(file.clone(), &wiring(HookClient::ClaudeCode), false).unwrap();
    assert!(change.diff().starts_with("--- /dev/null\n"), "{}", change.diff());
    change.write().unwrap();
    assert!(matches!(change.write(), Err(Failure::Said(said)) if said.contains("in the meantime")));
    let change = planned(file.clone(), &wiring(HookClient::ClaudeCode), true).unwrap();
    change.write().unwrap();
    assert!(!file.exists());
    let change = planned(file, &wiring(HookClient::ClaudeCode), true).unwrap();
    assert!(change.old.is_none() && change.new.is_none());
}

#[test]
fn what_is_no_small_text_file_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    assert!(read(directory.path()).is_err());
    let file = directory.path().join("settings.json");
    fs::write(&file, b"\xff").unwrap();
    assert!(planned(file, &wiring(HookClient::Gemini), false).is_err());
}
