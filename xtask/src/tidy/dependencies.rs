//! The direction of dependencies between the crates of the workspace: what each of them may depend on. The manifests
//! say what it does depend on. Dependencies of tests are not limited.

use super::{File, Finding};

/// Each crate with the crates that it may depend on.
const ALLOWED: &[(&str, &[&str])] = &[
    ("toolgate-model", &[]),
    ("toolgate-api", &["model"]),
    ("toolgate-dialect", &["model"]),
    ("toolgate-workspace", &[]),
    ("toolgate-gate", &["model"]),
    ("toolgate-approval", &["gate", "model"]),
    ("toolgate-cli", &["api", "approval", "model", "workspace"]),
    ("toolgate-egress", &["gate", "model"]),
    ("toolgate-guardian", &["dialect", "gate", "model"]),
    ("toolgate-identity", &["gate", "model"]),
    ("toolgate-ledger", &["gate", "model"]),
    ("toolgate-vault", &["gate", "model"]),
    ("toolgate-server", &["api", "dialect", "gate", "model"]),
    ("toolgate-testkit", &["gate", "ledger", "model", "vault"]),
    (
        "toolgate",
        &[
            "api",
            "approval",
            "cli",
            "dialect",
            "egress",
            "gate",
            "guardian",
            "identity",
            "ledger",
            "model",
            "server",
            "vault",
            "workspace",
        ],
    ),
    ("xtask", &[]),
];

/// The file to change, for findings.
const TABLE: &str = "xtask/src/tidy/dependencies.rs";

/// Dependencies that the table does not allow, and crates that it does not have.
pub fn check(file: &File) -> Vec<Finding> {
    if file.name() != "Cargo.toml" || file.path == "Cargo.toml" {
        return Vec::new();
    }
    let Some(name) = name_of(file) else { return Vec::new() };
    let Some((_, allowed)) = ALLOWED.iter().find(|(known, _)| *known == name) else {
        return vec![file.finding(1, format!("list `{name}` in {TABLE} with the crates that it may depend on"))];
    };
    let is_allowed =
        |dependency: &str| dependency.strip_prefix("toolgate-").is_some_and(|dependency| allowed.contains(&dependency));
    dependencies(file)
        .filter(|(_, dependency)| !is_allowed(dependency))
        .map(|(line, dependency)| {
            file.finding(line, format!("`{name}` may not depend on `{dependency}`: {TABLE} has the direction"))
        })
        .collect()
}

fn name_of(file: &File) -> Option<&str> {
    let value = file.text.lines().find_map(|line| line.strip_prefix("name = \""))?;
    value.strip_suffix('"')
}

/// The crates of this workspace that a manifest names outside its tests, each with its line.
fn dependencies(file: &File) -> impl Iterator<Item = (usize, &str)> {
    let mut counts = false;
    file.lines().filter_map(move |(number, line)| {
        if let Some(section) = line.strip_prefix('[') {
            // `[dependencies]`, `[build-dependencies]`, `[target.'...'.dependencies]`, `[dependencies.NAME]`
            counts = section.contains("dependencies") && !section.contains("dev-dependencies");
            let named = section.split_once("dependencies.").map(|(_, name)| name.trim_end_matches(']'));
            return named.filter(|name| counts && is_own(name)).map(|name| (number, name));
        }
        let name = line.split(['.', ' ', '=']).next().filter(|name| counts && is_own(name))?;
        Some((number, name))
    })
}

fn is_own(name: &str) -> bool {
    name == "toolgate" || name == "xtask" || name.starts_with("toolgate-")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(manifest: &str) -> Vec<String> {
        let file = File::new("crates/some/Cargo.toml", manifest);
        check(&file).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_dependency_in_the_direction_of_the_table_passes() {
        let manifest = "[package]\nname = \"toolgate-ledger\"\n\n[dependencies]\ntoolgate-gate.workspace = true\n\
                        toolgate-model = { workspace = true }\nserde.workspace = true\n";
        assert_eq!(findings(manifest), [""; 0]);
    }

    #[test]
    fn a_dependency_against_the_direction_is_found_however_it_is_written() {
        for dependency in [
            "[dependencies]\ntoolgate-ledger.workspace = true\n",
            "[dependencies]\ntoolgate-ledger = { path = \"../ledger\" }\n",
            "[dependencies.toolgate-ledger]\nworkspace = true\n",
            "[target.'cfg(unix)'.dependencies]\ntoolgate-ledger.workspace = true\n",
            "[build-dependencies]\ntoolgate-ledger.workspace = true\n",
            "[dependencies]\ntoolgate = \"0.1\"\n",
        ] {
            let found = findings(&format!("[package]\nname = \"toolgate-gate\"\n\n{dependency}"));
            assert_eq!(found.len(), 1, "{dependency} {found:?}");
            assert!(found[0].contains("`toolgate-gate` may not depend on `toolgate"), "{found:?}");
        }
    }

    #[test]
    fn tests_may_use_any_crate() {
        let manifest =
            "[package]\nname = \"toolgate-gate\"\n\n[dev-dependencies]\ntoolgate-guardian.workspace = true\n";
        assert_eq!(findings(manifest), [""; 0]);
    }

    #[test]
    fn a_crate_that_the_table_does_not_have_is_found() {
        assert_eq!(findings("[package]\nname = \"toolgate-new\"\n").len(), 1);
    }

    #[test]
    fn the_table_has_no_circle() {
        for (at, (name, allowed)) in ALLOWED.iter().enumerate() {
            let earlier: Vec<&str> = ALLOWED[..at].iter().map(|(name, _)| *name).collect();
            for dependency in *allowed {
                assert!(earlier.contains(&format!("toolgate-{dependency}").as_str()), "{name} {dependency}");
            }
        }
    }
}
