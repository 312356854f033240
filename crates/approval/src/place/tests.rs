//! Places: what is protected is found in every spelling, and what is not is left alone.

use super::*;

fn place(path: &str) -> Place {
    Place::of(path, &directory("/home/ann/project"))
}

fn directory(path: &str) -> Directory {
    Directory::of(Some(&Workspace::parse(path).unwrap()))
}

#[test]
fn the_workspace_ends_at_its_directory() {
    for path in ["src/main.rs", "./a/../b", "/home/ann/project/x", "/HOME/ann//project/./x", "/dev/null", "a~"] {
        assert!(place(path).is_inside(), "{path}");
    }
    for path in ["..", "../x", "a/../../x", "/home/ann/project2/x", "/etc/passwd", "~/x", "$HOME/x", "C:\\x"] {
        assert!(!place(path).is_inside(), "{path}");
    }
}

#[test]
fn without_a_workspace_only_relative_paths_stay_within() {
    for (path, inside) in [("a/b", true), ("a/../b", true), ("../b", false), ("a/../../b", false), ("/a", false)] {
        assert_eq!(Place::of(path, &Directory::of(None)).is_inside(), inside, "{path}");
    }
}

#[test]
fn protected_places_are_known_by_any_spelling() {
    for path in [
        ".git/hooks/pre-commit",
        ".GIT/Hooks/pre-commit",
        ".git//hooks/./x",
        "src/../.git/config",
        ".git\\hooks\\x",
        ".g\u{200c}it/hooks/x",
        ".git/h*/x",
        ".gi?/hooks/x",
        ".[g]it/hooks/x",
        "~/.bashrc",
        "/home/ann/.ZSHRC",
        "$HOME/.bash*",
        ".claude/settings.local.json",
        "../other/.mcp.json",
        "~/.codex/config.toml",
        "/home/ann/.config/toolgate/master.key",
        "~/.local/share/toolgate/ledger.db",
        "toolgate.toml",
        ".claude/agents/reviewer.md",
        ".claude/worktrees/a/CLAUDE.md",
        ".idea/workspace.xml",
        ".devcontainer/devcontainer.json",
        ".pre-commit-config.yaml",
        ".gitattributes",
        "src/.gitattributes",
        ".gitmodules",
        "AGENTS.md",
        "sub/CLAUDE.md",
        "GEMINI.md",
        ".cursorrules",
        ".cursor/rules/a.mdc",
        ".github/copilot-instructions.md",
        "~/Library/Application Support/Toolgate/x",
        "/etc/cron.daily/x",
        "/etc/profile.d/x.sh",
        "file:///home/ann/.ssh/authorized_keys",
    ] {
        assert!(place(path).protection().is_some(), "{path}");
    }
}

#[test]
fn ordinary_places_are_not_protected() {
    for path in [
        "src/main.rs",
        "*",
        "*.rs",
        "src/*",
        ".gitignore",
        "docs/agents.rst",
        ".github/workflows/ci.yml",
        ".git/HEAD",
        "docs/profile",
        "src/hooks/mod.rs",
        "crates/toolgate/src/main.rs",
        "etc/profile",
        ".claude/worktrees/a/src/main.rs",
        ".codex/worktrees/a/src/main.rs",
        ".env",
    ] {
        assert_eq!(place(path).protection(), None, "{path}");
    }
}

#[test]
fn a_path_is_followed_from_the_workspace() {
    let hooks = directory("/home/ann/project/.git");
    assert!(Place::of("hooks/pre-commit", &hooks).protection().is_some());
    let checkout = directory("/home/ann/.codex/worktrees/project");
    assert_eq!(Place::of("src/main.rs", &checkout).protection(), None);
    assert!(Place::of(".git/config", &checkout).protection().is_some());
}

#[test]
fn a_plain_name_can_be_protected_only_in_a_directory_that_matters() {
    for (path, matters) in [("/home/ann/project", false), ("/home/ann/.config", true), ("/etc", true)] {
        assert_eq!(directory(path).matters, matters, "{path}");
    }
    for (paths, _) in table::PROTECTED.iter().chain(table::BELOW_SYSTEM) {
        for path in *paths {
            let first = path.split('/').next().unwrap();
            let alone = first == *path && path.contains('.');
            assert!(alone || directory(&format!("/{first}")).matters, "{path}");
        }
    }
}

#[test]
fn directories_that_hold_something_protected_are_known() {
    for path in [".git", "a/.GIT/", ".hg/.", "x/../.github"] {
        assert!(place(path).holds_protected(), "{path}");
    }
    assert!(!place(".gitignore").holds_protected() && !place("project.git").holds_protected());
}

#[test]
fn secrets_are_known_and_their_templates_are_none() {
    for path in [".env", ".env.production", "~/.aws/credentials", "deploy/id_rsa", "tls/server.key", "/etc/shadow"] {
        assert!(place(path).is_secret(), "{path}");
    }
    for path in [".env.example", "src/token.rs", "src/credentials.rs", "~/.x/id_rsa.pub", "environment", "keys/x"] {
        assert!(!place(path).is_secret(), "{path}");
    }
}

#[test]
fn patterns_take_bounded_time() {
    assert!(fits("*.pem", "a.pem.pem") && fits("a*b?[xy]", "a-b-bcx") && fits("*", "") && !fits("?", ""));
    assert!(!fits(&format!("{}z", "*?".repeat(5_000)), &"a".repeat(40)));
    assert!(!fits(&format!("{}b", "*a".repeat(100)), &"a".repeat(1_000)));
}
