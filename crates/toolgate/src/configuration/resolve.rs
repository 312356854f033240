//! Finding the value of every key among flags, variables, file and defaults.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use toml::de::DeValue;
use toolgate_cli::environment::Environment;
use toolgate_model::secret::Secret;
use url::Url;
use zeroize::Zeroizing;

use super::file::{self, Given};
use super::keys::{self, Fallback, KEYS, Key};
use super::value::{MASK, Value};
use super::{ConfigurationError, Described, FILE_NAME, Flags, Origin, missing};

/// Every key with its value, if it has one, and its origin.
pub(super) struct Resolved {
    values: BTreeMap<&'static str, (Option<Value>, Origin)>,
    file: Option<PathBuf>,
    warnings: Vec<String>,
}

/// Finds every value, or everything that is wrong.
pub(super) fn resolve(flags: &Flags, environment: &Environment) -> Result<Resolved, ConfigurationError> {
    let (file, mut given, warnings) = read_file(flags, environment)?;
    let mut values: BTreeMap<&'static str, (Option<Value>, Origin)> = BTreeMap::new();
    let mut problems = Vec::new();
    for key in KEYS {
        let found = match explicit(key, flags, environment) {
            Err(problem) => {
                problems.push(problem);
                continue;
            }
            Ok(Some(found)) => found,
            Ok(None) => match given.remove(key.path) {
                Some(Given { value, line }) => (Some(value), Origin::File(line)),
                None => (fallback(key, environment, &values), Origin::Default),
            },
        };
        values.insert(key.path, found);
    }
    if problems.is_empty() { Ok(Resolved { values, file, warnings }) } else { Err(ConfigurationError(problems)) }
}

impl Resolved {
    pub(super) fn file(&self) -> Option<&PathBuf> {
        self.file.as_ref()
    }

    pub(super) fn warnings(&self) -> impl Iterator<Item = &str> {
        self.warnings.iter().map(String::as_str)
    }

    pub(super) fn described(&self) -> Vec<Described> {
        let described = KEYS.iter().filter_map(|key| {
            let (value, origin) = self.values.get(key.path)?;
            let value = value.as_ref().map_or(serde_json::Value::Null, Value::shown);
            Some(Described { path: key.path, value, origin: *origin })
        });
        described.collect()
    }

    pub(super) fn address(&mut self, key: &Key) -> Result<SocketAddr, ConfigurationError> {
        match self.take(key) {
            Some(Value::Address(address)) => Ok(address),
            _ => Err(missing(key)),
        }
    }

    pub(super) fn integer(&mut self, key: &Key) -> Result<u64, ConfigurationError> {
        self.optional_integer(key).ok_or_else(|| missing(key))
    }

    /// A number that may be left out.
    pub(super) fn optional_integer(&mut self, key: &Key) -> Option<u64> {
        match self.take(key) {
            Some(Value::Integer(number)) => Some(number),
            _ => None,
        }
    }

    pub(super) fn count(&mut self, key: &Key) -> Result<usize, ConfigurationError> {
        self.integer(key).map(|number| usize::try_from(number).unwrap_or(usize::MAX))
    }

    pub(super) fn seconds(&mut self, key: &Key) -> Result<Duration, ConfigurationError> {
        self.integer(key).map(Duration::from_secs)
    }

    pub(super) fn text(&mut self, key: &Key) -> Result<String, ConfigurationError> {
        match self.take(key) {
            Some(Value::Text(text)) => Ok(text),
            _ => Err(missing(key)),
        }
    }

    pub(super) fn path(&mut self, key: &Key) -> Result<PathBuf, ConfigurationError> {
        match self.take(key) {
            Some(Value::Path(path)) => Ok(path),
            _ => Err(missing(key)),
        }
    }

    pub(super) fn optional_path(&mut self, key: &Key) -> Option<PathBuf> {
        match self.take(key) {
            Some(Value::Path(path)) => Some(path),
            _ => None,
        }
    }

    pub(super) fn optional_text(&mut self, key: &Key) -> Option<String> {
        match self.take(key) {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        }
    }

    pub(super) fn hook_url(&mut self, key: &Key) -> Option<Url> {
        match self.take(key) {
            Some(Value::HookUrl(url)) => Some(url),
            _ => None,
        }
    }

    pub(super) fn switch(&mut self, key: &Key) -> bool {
        matches!(self.take(key), Some(Value::Switch(true)))
    }

    pub(super) fn words(&mut self, key: &Key) -> Option<Vec<String>> {
        match self.take(key) {
            Some(Value::Words(words)) => Some(words),
            _ => None,
        }
    }

    pub(super) fn secret(&mut self, key: &Key) -> Option<Secret> {
        match self.take(key) {
            Some(Value::Secret(secret)) => Some(secret),
            _ => None,
        }
    }

    fn take(&mut self, key: &Key) -> Option<Value> {
        self.values.remove(key.path).and_then(|(value, _)| value)
    }
}

/// The value of a flag or a variable.
fn explicit(
    key: &'static Key,
    flags: &Flags,
    environment: &Environment,
) -> Result<Option<(Option<Value>, Origin)>, String> {
    let wrong = |name: &str| format!("{name} must be {}", key.expected());
    if let (Some(text), Some(flag)) = (flags.values.get(key.path), key.flag) {
        let value = key.read_text(text).ok_or_else(|| wrong(flag))?;
        return Ok(Some((Some(value), Origin::Flag(flag))));
    }
    match environment.text(key.variable).map_err(|_| format!("{} is not UTF-8 text", key.variable))? {
        None => Ok(None),
        Some(text) => {
            let value = key.read_text(text).ok_or_else(|| wrong(key.variable))?;
            Ok(Some((Some(value), Origin::Variable(key.variable))))
        }
    }
}

fn fallback(
    key: &Key,
    environment: &Environment,
    found: &BTreeMap<&'static str, (Option<Value>, Origin)>,
) -> Option<Value> {
    match key.fallback {
        Fallback::Nothing => None,
        Fallback::Example => key.kind.read_toml(DeValue::parse(key.example).ok()?.get_ref()),
        Fallback::DataHome => environment.data_home().map(Value::Path),
        Fallback::ConfigurationHome(name) => environment.configuration_home().map(|home| Value::Path(home.join(name))),
        Fallback::BesideMasterKey(name) => match found.get(keys::KEY_FILE.path) {
            Some((Some(Value::Path(path)), _)) => Some(Value::Path(path.with_file_name(name))),
            _ => None,
        },
        Fallback::DirectoryOfAuditKey => match found.get(keys::AUDIT_KEY_FILE.path) {
            Some((Some(Value::Path(path)), _)) => Some(Value::Path(path.parent()?.to_path_buf())),
            _ => None,
        },
    }
}

type FileContents = (Option<PathBuf>, BTreeMap<&'static str, Given>, Vec<String>);

/// The file that a flag or a variable names must be there; the one in the configuration home may be.
fn read_file(flags: &Flags, environment: &Environment) -> Result<FileContents, ConfigurationError> {
    let variable = environment
        .text("TOOLGATE_CONFIG")
        .map_err(|_| ConfigurationError::one("TOOLGATE_CONFIG is not UTF-8 text"))?;
    let named = flags.file.clone().or_else(|| variable.map(PathBuf::from));
    let Some(path) = named.clone().or_else(|| Some(environment.configuration_home()?.join(FILE_NAME))) else {
        return Ok((None, BTreeMap::new(), Vec::new()));
    };
    let text = match std::fs::read_to_string(&path).map(Zeroizing::new) {
        Ok(text) => text,
        Err(error) if named.is_none() && error.kind() == std::io::ErrorKind::NotFound => {
            return Ok((None, BTreeMap::new(), Vec::new()));
        }
        Err(error) => return Err(ConfigurationError::one(format!("{} cannot be read: {error}", path.display()))),
    };
    let given = file::read(&text).map_err(|faults| {
        let problems = faults.iter().map(|fault| format!("{}, line {}: {}", path.display(), fault.line, fault.message));
        ConfigurationError(problems.collect())
    })?;
    let warnings = exposed_password(&path, &given).into_iter().collect();
    Ok((Some(path), given, warnings))
}

fn exposed_password(path: &Path, given: &BTreeMap<&'static str, Given>) -> Option<String> {
    let url = given.get(keys::DATABASE_URL.path)?.value.shown();
    let open = std::fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & 0o077 != 0);
    let path = path.display();
    (open && url.as_str()?.contains(MASK))
        .then(|| format!("{path} holds the database's password and other users can read it; run: chmod 600 {path}"))
}
