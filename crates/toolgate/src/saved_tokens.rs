//! The tokens that `toolgate login` keeps: one line `URL TOKEN` for each gate. A token is shown only to the gate that it
//! was saved for.

use std::path::Path;

use toolgate_model::secret::Secret;
use zeroize::Zeroizing;

use crate::private_file::{self, PrivateFileError};

/// The name of the file in the configuration home.
pub const FILE_NAME: &str = "token";

/// The token for this gate, if one was saved.
pub fn find(path: &Path, url: &str) -> Result<Option<Secret>, PrivateFileError> {
    let Some(text) = private_file::read(path)? else { return Ok(None) };
    let found = text.lines().filter_map(|line| line.split_once(' ')).find(|(saved, _)| *saved == url);
    Ok(found.map(|(_, token)| Secret::new(token.to_owned())))
}

/// Saves the token for this gate, in place of an earlier one.
pub fn save(path: &Path, url: &str, token: &Secret) -> Result<(), PrivateFileError> {
    let before = private_file::read(path)?.unwrap_or_default();
    // Grown once: a reallocation would leave an unwiped copy behind.
    let mut text = Zeroizing::new(String::with_capacity(before.len() + url.len() + token.expose().len() + 2));
    for line in before.lines().filter(|line| line.split_once(' ').is_none_or(|(saved, _)| saved != url)) {
        text.push_str(line);
        text.push('\n');
    }
    for part in [url, " ", token.expose(), "\n"] {
        text.push_str(part);
    }
    private_file::replace(path, &text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(text: &str) -> Secret {
        Secret::new(text.to_owned())
    }

    #[test]
    fn each_gate_has_its_own_token_and_the_newest_counts() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("toolgate/token");
        assert!(find(&path, "http://a").unwrap().is_none());
        save(&path, "http://a", &secret("one")).unwrap();
        save(&path, "http://b", &secret("two")).unwrap();
        save(&path, "http://a", &secret("three")).unwrap();
        assert_eq!(find(&path, "http://a").unwrap().unwrap().expose(), "three");
        assert_eq!(find(&path, "http://b").unwrap().unwrap().expose(), "two");
        assert!(find(&path, "http://a:80").unwrap().is_none());
        assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 2);
    }
}
