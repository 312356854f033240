//! Environment variables of Toolgate, and the directories of the user.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use toolgate_model::secret::Secret;

/// The variables that Toolgate reads.
pub struct Environment(BTreeMap<String, OsString>);

impl Environment {
    pub fn of_process() -> Self {
        Self::new(std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value))))
    }

    /// An empty variable counts as not set, as deployment files often have it.
    pub fn new(variables: impl IntoIterator<Item = (String, OsString)>) -> Self {
        let matters = |name: &str| name.starts_with("TOOLGATE_") || name == "HOME" || name.starts_with("XDG_");
        Self(variables.into_iter().filter(|(name, value)| matters(name) && !value.is_empty()).collect())
    }

    pub fn text(&self, name: &str) -> Result<Option<&str>, NotText> {
        self.0.get(name).map(|value| value.to_str().ok_or(NotText)).transpose()
    }

    /// Removes and returns a secret.
    pub fn take_secret(&mut self, name: &str) -> Result<Option<Secret>, NotText> {
        let text = self.0.remove(name).map(|value| value.into_string().map_err(|_| NotText));
        Ok(text.transpose()?.map(Secret::new))
    }

    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// The data directory of Toolgate.
    pub fn data_home(&self) -> Option<PathBuf> {
        self.home("XDG_DATA_HOME", ".local/share")
    }

    /// The configuration directory of Toolgate.
    pub fn configuration_home(&self) -> Option<PathBuf> {
        self.home("XDG_CONFIG_HOME", ".config")
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    fn home(&self, variable: &str, below_home: &str) -> Option<PathBuf> {
        // The XDG specification requires that relative paths are ignored.
        let absolute = |name: &str| self.0.get(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let home = absolute(variable).or_else(|| absolute("HOME").map(|home| home.join(below_home)));
        home.map(|home| home.join("toolgate"))
    }
}

/// A variable is not valid UTF-8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotText;

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(variables: &[(&str, &str)]) -> Environment {
        Environment::new(variables.iter().map(|(name, value)| ((*name).to_owned(), OsString::from(value))))
    }

    #[test]
    fn the_homes_are_those_of_the_xdg_standard() {
        let plain = environment(&[("HOME", "/home/ann")]);
        assert_eq!(plain.data_home(), Some(PathBuf::from("/home/ann/.local/share/toolgate")));
        assert_eq!(plain.configuration_home(), Some(PathBuf::from("/home/ann/.config/toolgate")));
        let set = environment(&[("HOME", "/home/ann"), ("XDG_DATA_HOME", "/data"), ("XDG_CONFIG_HOME", "relative")]);
        assert_eq!(set.data_home(), Some(PathBuf::from("/data/toolgate")));
        assert_eq!(set.configuration_home(), Some(PathBuf::from("/home/ann/.config/toolgate")));
        assert_eq!(environment(&[]).data_home(), None);
    }

    #[test]
    fn a_variable_set_to_nothing_is_not_set() {
        let environment = environment(&[("TOOLGATE_DATA", ""), ("TOOLGATE_LISTEN", "x"), ("PATH", "y")]);
        assert_eq!(environment.text("TOOLGATE_DATA"), Ok(None));
        assert_eq!(environment.names().collect::<Vec<_>>(), ["TOOLGATE_LISTEN"]);
    }
}
