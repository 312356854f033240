//! The file of saved logins: a line `profile NAME URL PRINCIPAL TENANT KEY` for each, and a line `current NAME`. A key is
//! sent only to the gate that it was saved for.
//!
//! Earlier versions wrote a line `URL KEY` for each gate. Such a login is read as a profile named after the host of the gate,
//! and converted by the next change.

use std::path::Path;

use http::Uri;
use toolgate_model::secret::Secret;
use zeroize::Zeroizing;

use crate::client::DEFAULT_URL;
use crate::private_file::{self, PrivateFileError};

pub const FILE_NAME: &str = "token";

/// Written for a principal and a tenant that are not known.
const UNKNOWN: &str = "-";

const NAME_LIMIT: usize = 100;

pub struct Profile {
    /// Unique in the file.
    pub name: String,
    pub url: String,
    /// `None` for a login of an earlier version.
    pub owner: Option<Owner>,
    pub key: Secret,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    pub principal: String,
    pub tenant: String,
}

#[derive(Default)]
pub struct Logins {
    profiles: Vec<Profile>,
    current: Option<String>,
}

impl Logins {
    /// Reads the file; a missing file contains no logins.
    pub fn read(path: &Path) -> Result<Self, PrivateFileError> {
        let Some(text) = private_file::read(path)? else { return Ok(Self::default()) };
        let mut logins = Self::default();
        let mut earlier = None;
        for line in text.lines() {
            if let Some(profile) = line.strip_prefix("profile ") {
                logins.profiles.extend(parsed(profile));
            } else if let Some(name) = line.strip_prefix("current ") {
                logins.current = Some(name.to_owned());
            } else if let Some((url, key)) = line.split_once(' ') {
                let name = logins.free_name([host_of(url)]);
                if earlier.is_none() || url == DEFAULT_URL {
                    earlier = Some(name.clone());
                }
                let key = Secret::new(key.to_owned());
                logins.profiles.push(Profile { name, url: url.to_owned(), owner: None, key });
            }
        }
        if logins.current().is_none() {
            logins.current = earlier;
        }
        Ok(logins)
    }

    /// Writes the file, with mode 0600.
    pub fn write(&self, path: &Path) -> Result<(), PrivateFileError> {
        let unknown = Owner { principal: UNKNOWN.to_owned(), tenant: UNKNOWN.to_owned() };
        let current = self.current().map(|profile| format!("current {}\n", profile.name)).unwrap_or_default();
        let parts = self.profiles.iter().flat_map(|profile| {
            let owner = profile.owner.as_ref().unwrap_or(&unknown);
            let words = [&profile.name, &profile.url, &owner.principal, &owner.tenant];
            let words = words.into_iter().flat_map(|word| [word.as_str(), " "]);
            std::iter::once("profile ").chain(words).chain([profile.key.expose(), "\n"])
        });
        let parts: Vec<&str> = std::iter::once(current.as_str()).chain(parts).collect();
        // Allocated once: a reallocation would leave a copy that is not wiped.
        let mut text = Zeroizing::new(String::with_capacity(parts.iter().map(|part| part.len()).sum()));
        parts.into_iter().for_each(|part| text.push_str(part));
        private_file::replace(path, &text)
    }

    /// In the order in which they were saved.
    pub fn profiles(&self) -> &[Profile] {
        &self.profiles
    }

    /// The login that is used if none is named.
    pub fn current(&self) -> Option<&Profile> {
        self.named(self.current.as_deref()?)
    }

    pub fn named(&self, name: &str) -> Option<&Profile> {
        self.profiles.iter().find(|profile| profile.name == name)
    }

    /// The login of an earlier version for this gate, whose principal is not known.
    pub fn unowned(&self, url: &str) -> Option<&Profile> {
        self.profiles.iter().find(|profile| profile.url == url && profile.owner.is_none())
    }

    /// The default name of a login: its principal, unless another login has that name.
    pub fn name_for(&self, url: &str, owner: &Owner) -> String {
        let same = |profile: &&Profile| profile.url == url && profile.owner.as_ref() == Some(owner);
        if let Some(profile) = self.profiles.iter().find(same) {
            return profile.name.clone();
        }
        let (principal, host) = (&owner.principal, host_of(url));
        let beside = format!("{principal}@{host}");
        self.free_name([principal.clone(), beside, format!("{principal}@{}@{host}", owner.tenant)])
    }

    /// Adds a login, replacing one of the same name. The first login becomes the current one.
    pub fn save(&mut self, profile: Profile) {
        if self.current().is_none() {
            self.current = Some(profile.name.clone());
        }
        self.add(profile);
    }

    /// Adds a login that is used only where it is named, replacing one of the same name.
    pub fn add(&mut self, profile: Profile) {
        match self.profiles.iter_mut().find(|saved| saved.name == profile.name) {
            Some(saved) => *saved = profile,
            None => self.profiles.push(profile),
        }
    }

    /// Makes a login the current one. Returns false if there is no such profile.
    pub fn select(&mut self, name: &str) -> bool {
        let known = self.named(name).is_some();
        if known {
            self.current = Some(name.to_owned());
        }
        known
    }

    pub fn remove(&mut self, name: &str) -> Option<Profile> {
        let place = self.profiles.iter().position(|profile| profile.name == name)?;
        Some(self.profiles.remove(place))
    }

    /// The first of these names that is not used, or else the last one with a number.
    fn free_name<const N: usize>(&self, names: [String; N]) -> String {
        let free = |name: &String| self.named(name).is_none();
        if let Some(name) = names.iter().find(|name| free(name)) {
            return name.clone();
        }
        let last = names.last().map_or("login", String::as_str);
        (2_u64..).map(|number| format!("{last}-{number}")).find(free).unwrap_or_default()
    }
}

pub fn parse_name(text: &str) -> Result<String, String> {
    let strange = |letter: char| letter.is_whitespace() || letter.is_control();
    let short = (1..=NAME_LIMIT).contains(&text.len());
    if short && !text.starts_with('-') && !text.contains(strange) {
        return Ok(text.to_owned());
    }
    Err(format!("a profile name is one word of at most {NAME_LIMIT} bytes that does not start with -"))
}

fn parsed(line: &str) -> Option<Profile> {
    let mut words = line.splitn(5, ' ').map(str::to_owned);
    let (name, url, principal, tenant, key) =
        (words.next()?, words.next()?, words.next()?, words.next()?, words.next()?);
    let owner = (principal != UNKNOWN).then_some(Owner { principal, tenant });
    Some(Profile { name, url, owner, key: Secret::new(key) })
}

fn host_of(url: &str) -> String {
    let uri = url.parse::<Uri>().ok();
    uri.as_ref().and_then(Uri::authority).map_or_else(|| url.to_owned(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn owner(principal: &str) -> Owner {
        Owner { principal: principal.to_owned(), tenant: "default".to_owned() }
    }

    fn login(logins: &mut Logins, url: &str, principal: &str, key: &str) -> String {
        let owner = owner(principal);
        let name = logins.name_for(url, &owner);
        let key = Secret::new(key.to_owned());
        logins.save(Profile { name: name.clone(), url: url.to_owned(), owner: Some(owner), key });
        name
    }

    fn key<'a>(logins: &'a Logins, name: &str) -> &'a str {
        logins.named(name).unwrap().key.expose()
    }

    #[test]
    fn a_login_replaces_only_that_of_the_same_principal_at_the_same_gate() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("toolgate/token");
        let mut logins = Logins::read(&path).unwrap();
        assert_eq!(login(&mut logins, "http://a", "admin", "one"), "admin");
        assert_eq!(login(&mut logins, "http://a", "billing", "two"), "billing");
        assert_eq!(login(&mut logins, "http://b", "admin", "three"), "admin@b");
        assert_eq!(login(&mut logins, "http://a", "admin", "four"), "admin");
        logins.write(&path).unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);

        let mut logins = Logins::read(&path).unwrap();
        assert_eq!(logins.current().unwrap().name, "admin");
        assert_eq!(key(&logins, "admin"), "four");
        assert_eq!(key(&logins, "billing"), "two");
        assert_eq!(key(&logins, "admin@b"), "three");
        assert_eq!(logins.named("billing").unwrap().owner, Some(owner("billing")));
        assert!(logins.select("billing") && !logins.select("nobody"));
        assert_eq!(logins.current().unwrap().name, "billing");
        assert!(logins.remove("billing").is_some() && logins.remove("billing").is_none());
        assert!(logins.current().is_none(), "nobody is chosen in place of the one that was logged out");
        logins.write(&path).unwrap();
        assert!(Logins::read(&path).unwrap().current().is_none());
    }

    #[test]
    fn the_file_of_an_earlier_version_keeps_working() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("token");
        private_file::replace(&path, "http://10.0.0.1:7300 one\nhttp://127.0.0.1:7300 two\n").unwrap();
        let logins = Logins::read(&path).unwrap();
        assert_eq!(logins.current().unwrap().name, "127.0.0.1:7300");
        assert_eq!(key(&logins, "10.0.0.1:7300"), "one");
        assert!(logins.unowned("http://10.0.0.1:7300").is_some());
        logins.write(&path).unwrap();
        let logins = Logins::read(&path).unwrap();
        assert_eq!(logins.current().unwrap().key.expose(), "two");
        assert_eq!(key(&logins, "10.0.0.1:7300"), "one");
        assert!(logins.named("10.0.0.1:7300").unwrap().owner.is_none());
    }

    #[test]
    fn names_of_profiles_are_one_word() {
        for good in ["admin", "admin@127.0.0.1:7300", "a", "agent:claude", "admin@[::1]:7300"] {
            assert!(parse_name(good).is_ok(), "{good}");
        }
        for bad in ["", "-", "a b", "a\nb", &"x".repeat(101)] {
            assert!(parse_name(bad).is_err(), "{bad}");
        }
    }
}
