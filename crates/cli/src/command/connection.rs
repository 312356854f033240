//! Selects the gate and the key of a command: from its arguments, then the environment, then the saved logins.

use std::path::PathBuf;

use clap::Args;
use toolgate_model::secret::Secret;

use super::Failure;
use crate::client::{self, Client, DEFAULT_URL};
use crate::environment::Environment;
use crate::logins::{self, Logins, Profile};
use crate::output;

#[cfg(test)]
mod tests;

/// The options of every command that is a client of a gate.
#[derive(Args, Default)]
pub(crate) struct Connection {
    /// URL of the gate [env: TOOLGATE_URL] [default: URL of the login, or http://127.0.0.1:7300]
    #[arg(long, global = true)]
    pub(crate) url: Option<String>,
    /// Saved login to use [env: TOOLGATE_PROFILE] [default: the current one, see `toolgate profile list`]
    #[arg(long, global = true, value_name = "NAME", value_parser = logins::parse_name)]
    pub(crate) profile: Option<String>,
    /// Print JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

pub(crate) struct Access {
    pub(crate) url: String,
    pub(crate) key: Secret,
    /// The login that the key is from; `None` for a key from the environment.
    pub(crate) profile: Option<String>,
}

/// The variables of the environment.
#[derive(Default)]
struct Surroundings {
    url: Option<String>,
    profile: Option<String>,
    key: Option<Secret>,
}

impl Connection {
    pub(crate) fn client(&self) -> Result<Client, Failure> {
        self.access()?.client()
    }

    pub(crate) fn access(&self) -> Result<Access, Failure> {
        self.choose(Surroundings::of_process()?, saved)
    }

    /// The URL of the gate, for a command that needs no key.
    pub(crate) fn gate(&self) -> Result<String, Failure> {
        let surroundings = Surroundings::of_process()?;
        let profile = self.profile.as_ref().or(surroundings.profile.as_ref());
        if let Some(url) = self.url.as_ref() {
            return Ok(client::checked_url(url)?);
        }
        let logins = saved()?;
        let named = |name: &String| logins.named(name).map(|profile| profile.url.clone());
        // A profile that is about to be saved has no URL yet.
        match self.profile.as_ref().and_then(named).or(surroundings.url).or_else(|| profile.and_then(named)) {
            Some(url) => Ok(client::checked_url(&url)?),
            None => Ok(logins.current().map_or(DEFAULT_URL, |profile| &profile.url).to_owned()),
        }
    }

    fn choose(
        &self,
        surroundings: Surroundings,
        saved: impl Fn() -> Result<Logins, Failure>,
    ) -> Result<Access, Failure> {
        let checked = |url: Option<&String>| url.map(|url| client::checked_url(url)).transpose();
        let said = checked(self.url.as_ref())?;
        if let Some(name) = &self.profile {
            return named(&saved()?, name, said.as_deref(), "--url");
        }
        let url = match said.clone() {
            Some(url) => Some(url),
            None => checked(surroundings.url.as_ref())?,
        };
        if let Some(key) = surroundings.key {
            let url = match (url, &surroundings.profile) {
                (Some(url), _) => url,
                (None, Some(name)) => named(&saved()?, name, None, "")?.url,
                (None, None) => saved()?.current().map_or(DEFAULT_URL, |profile| &profile.url).to_owned(),
            };
            return Ok(Access { url, key, profile: None });
        }
        let logins = saved()?;
        if let Some(name) = &surroundings.profile {
            let elsewhere =
                said.is_some() && logins.named(name).is_some_and(|profile| Some(&profile.url) != said.as_ref());
            if !elsewhere {
                return named(&logins, name, url.as_deref(), "TOOLGATE_URL");
            }
        }
        let Some(url) = url else {
            return logins.current().map(Access::from).ok_or_else(|| no_login(&logins));
        };
        let here: Vec<&Profile> = logins.profiles().iter().filter(|profile| profile.url == url).collect();
        match (logins.current().filter(|profile| profile.url == url), here.as_slice()) {
            (Some(current), _) => Ok(current.into()),
            (None, [only]) => Ok((*only).into()),
            (None, []) => Err(Failure::Said(format!(
                "no key for {url}: set TOOLGATE_TOKEN, or save a login with `toolgate login --url {url}`"
            ))),
            (None, several) => Err(Failure::Said(format!(
                "several logins for {url}; select one with --profile: {}",
                names(several.iter().copied())
            ))),
        }
    }
}

impl Access {
    pub(crate) fn client(&self) -> Result<Client, Failure> {
        if client::is_exposed(&self.url) {
            output::say(&format!("toolgate: warning: the key is sent to {} without TLS", output::clean(&self.url)));
        }
        Ok(Client::new(&self.url, &self.key)?)
    }
}

impl From<&Profile> for Access {
    fn from(profile: &Profile) -> Self {
        let key = Secret::new(profile.key.expose().to_owned());
        Self { url: profile.url.clone(), key, profile: Some(profile.name.clone()) }
    }
}

impl Surroundings {
    fn of_process() -> Result<Self, Failure> {
        let mut environment = Environment::of_process();
        let text = |name: &str| match environment.text(name) {
            Ok(text) => Ok(text.map(str::to_owned)),
            Err(_) => Err(not_text(name)),
        };
        let (url, profile) = (text("TOOLGATE_URL")?, text("TOOLGATE_PROFILE")?);
        let mut key = None;
        for name in KEY_VARIABLES {
            let found = environment.take_secret(name).map_err(|_| not_text(name))?;
            key = key.or(found);
        }
        Ok(Self { url, profile, key })
    }
}

/// The variables that can contain a key, in order of precedence.
pub(crate) const KEY_VARIABLES: [&str; 2] = ["TOOLGATE_TOKEN", "TOOLGATE_ADMIN_TOKEN"];

/// The file of the saved logins; `None` without a home directory.
pub(crate) fn logins_file() -> Option<PathBuf> {
    Some(Environment::of_process().configuration_home()?.join(logins::FILE_NAME))
}

pub(crate) fn names<'a>(profiles: impl IntoIterator<Item = &'a Profile>) -> String {
    profiles.into_iter().map(|profile| output::clean(&profile.name)).collect::<Vec<_>>().join(", ")
}

pub(crate) fn unknown_profile(logins: &Logins, name: &str) -> Failure {
    let name = output::clean(name);
    Failure::Said(match names(logins.profiles()) {
        none if none.is_empty() => {
            format!("no profile {name}; create it with `toolgate login --profile {name}`")
        }
        known => {
            format!("no profile {name}; known profiles: {known}; create it with `toolgate login --profile {name}`")
        }
    })
}

fn saved() -> Result<Logins, Failure> {
    Ok(logins_file().map_or_else(|| Ok(Logins::default()), |path| Logins::read(&path))?)
}

/// The login of this name. A key is sent only to the gate that it was saved for.
fn named(logins: &Logins, name: &str, url: Option<&str>, source: &str) -> Result<Access, Failure> {
    let profile = logins.named(name).ok_or_else(|| unknown_profile(logins, name))?;
    match url {
        Some(url) if url != profile.url => Err(Failure::Usage(format!(
            "profile {} is for {}, but {source} is {url}; remove one of them",
            output::clean(name),
            profile.url
        ))),
        _ => Ok(profile.into()),
    }
}

fn no_login(logins: &Logins) -> Failure {
    Failure::Said(match names(logins.profiles()) {
        none if none.is_empty() => {
            format!("no key for {DEFAULT_URL}: set TOOLGATE_TOKEN, or save a login with `toolgate login`")
        }
        known => format!("no current login; select one with --profile or `toolgate profile use NAME`: {known}"),
    })
}

fn not_text(variable: &str) -> Failure {
    Failure::Said(format!("{variable} is not valid UTF-8"))
}
