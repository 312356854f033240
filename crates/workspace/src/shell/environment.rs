//! The environment of a command: the listed variables, except those of Toolgate and those named like a secret.

use std::ffi::OsString;

/// Parts of names that indicate a secret.
const SECRET: [&str; 8] = ["API_KEY", "APIKEY", "CREDENTIAL", "PASSPHRASE", "PASSWD", "PASSWORD", "SECRET", "TOKEN"];

/// Filters the variables of Toolgate for a command.
pub fn inherited(
    own: impl Iterator<Item = (OsString, OsString)>,
    names: &[String],
) -> impl Iterator<Item = (OsString, OsString)> {
    own.filter(|(name, _)| name.to_str().is_some_and(|name| passes(name, names)))
}

fn passes(name: &str, names: &[String]) -> bool {
    let upper = name.to_ascii_uppercase();
    let never = upper.starts_with("TOOLGATE_") || SECRET.iter().any(|part| upper.contains(part));
    !never
        && names.iter().any(|listed| match listed.strip_suffix('*') {
            Some(beginning) => name.starts_with(beginning),
            None => name == listed,
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;

    #[test]
    fn only_listed_names_pass() {
        let names = Limits::default().environment;
        for name in ["PATH", "HOME", "LC_ALL", "LC_TIME", "CARGO_HOME"] {
            assert!(passes(name, &names), "{name}");
        }
        for name in ["AWS_PROFILE", "SSH_AUTH_SOCK", "LD_PRELOAD", "BASH_ENV", "PATHS", "PAT", ""] {
            assert!(!passes(name, &names), "{name}");
        }
    }

    #[test]
    fn what_is_toolgates_or_a_secrets_never_passes_even_if_listed() {
        let names = ["*".to_owned(), "TOOLGATE_DATA".to_owned(), "GITHUB_TOKEN".to_owned()];
        for name in ["TOOLGATE_DATA", "toolgate_admin", "GITHUB_TOKEN", "Db_Password", "LC_SECRET", "OPENAI_API_KEY"] {
            assert!(!passes(name, &names), "{name}");
        }
        assert!(passes("EDITOR", &names));
    }
}
