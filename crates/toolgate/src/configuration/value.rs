//! The values of keys: parsed from TOML or from plain text, and shown with secrets masked.

use std::net::SocketAddr;
use std::path::PathBuf;

use ipnet::IpNet;
use serde_json::json;
use toml::de::DeValue;
use toolgate_model::principal::TenantId;
use toolgate_model::secret::Secret;
use tracing_subscriber::filter::{LevelFilter, Targets};
use url::Url;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An IP address and a port.
    Address,
    /// One of some words.
    Choice(&'static [&'static str]),
    /// The URL of a PostgreSQL database; it may contain a password.
    DatabaseUrl,
    /// The URL for messages; its path may be as sensitive as a password.
    HookUrl,
    Integer {
        least: u64,
        most: u64,
    },
    /// A level, or levels by part.
    LogLevel,
    Networks,
    /// Origins of web pages.
    Origins,
    /// A file or a directory.
    Path,
    /// Where people reach this gate.
    PublicUrl,
    Switch,
    Tenants,
    /// A program and its arguments.
    Words,
}

pub enum Value {
    /// For [`Kind::Address`].
    Address(SocketAddr),
    /// For [`Kind::HookUrl`].
    HookUrl(Url),
    /// For [`Kind::Integer`].
    Integer(u64),
    /// For [`Kind::Path`].
    Path(PathBuf),
    /// For [`Kind::DatabaseUrl`].
    Secret(Secret),
    /// For [`Kind::Switch`].
    Switch(bool),
    /// For [`Kind::Choice`], [`Kind::LogLevel`] and, without the slash at its end, [`Kind::PublicUrl`].
    Text(String),
    /// For [`Kind::Words`], [`Kind::Networks`], [`Kind::Origins`] and [`Kind::Tenants`].
    Words(Vec<String>),
}

impl Kind {
    /// The expected form, for errors.
    pub fn expected(&self) -> String {
        match self {
            Self::Address => "an address and a port, as in \"127.0.0.1:7300\"".to_owned(),
            Self::Choice(words) => format!("one of {}", words.join(", ")),
            Self::DatabaseUrl => "a URL, as in \"postgres://user@host:5432/name\"".to_owned(),
            Self::HookUrl => "an http or https URL without user name, as in \"https://hooks.example.com/a\"".to_owned(),
            Self::Integer { least, most } => format!("a whole number from {least} to {most}"),
            Self::LogLevel => "error, warn, info, debug or trace, or levels by module".to_owned(),
            Self::Networks => "networks, as in [\"127.0.0.1/32\"]".to_owned(),
            Self::Origins => "origins without a path, as in [\"https://chat.example.com\"]".to_owned(),
            Self::Path => "a path".to_owned(),
            Self::PublicUrl => {
                "an http or https URL without user name, query and fragment, as in \"https://gate.example.com\""
                    .to_owned()
            }
            Self::Switch => "true or false (a variable also takes on or off)".to_owned(),
            Self::Tenants => "ids of tenants, as in [\"default\"]".to_owned(),
            Self::Words => "a program and its arguments, as in [\"/usr/bin/wrap\", \"--key\", \"1\"]".to_owned(),
        }
    }

    /// Reads a flag or a variable; `None` where it is something else.
    pub fn read_text(&self, text: &str) -> Option<Value> {
        match self {
            Self::Integer { .. } => self.integer(text.parse().ok()?),
            Self::Switch => match text {
                "on" | "true" => Some(Value::Switch(true)),
                "off" | "false" => Some(Value::Switch(false)),
                _ => None,
            },
            Self::Words => self.words(text.split_whitespace().map(str::to_owned).collect()),
            Self::Networks | Self::Origins | Self::Tenants => {
                self.words(text.split(',').map(|word| word.trim().to_owned()).collect())
            }
            Self::Address
            | Self::Choice(_)
            | Self::DatabaseUrl
            | Self::HookUrl
            | Self::LogLevel
            | Self::Path
            | Self::PublicUrl => self.line(text),
        }
    }

    /// Reads a value of the file; `None` where it is something else.
    pub fn read_toml(&self, value: &DeValue<'_>) -> Option<Value> {
        match self {
            Self::Integer { .. } => {
                let number = value.as_integer()?;
                self.integer(u64::from_str_radix(number.as_str(), number.radix()).ok()?)
            }
            Self::Switch => value.as_bool().map(Value::Switch),
            Self::Words | Self::Networks | Self::Origins | Self::Tenants => {
                let words = value.as_array()?.iter().map(|word| word.get_ref().as_str().map(str::to_owned));
                self.words(words.collect::<Option<_>>()?)
            }
            Self::Address
            | Self::Choice(_)
            | Self::DatabaseUrl
            | Self::HookUrl
            | Self::LogLevel
            | Self::Path
            | Self::PublicUrl => self.line(value.as_str()?),
        }
    }

    fn integer(&self, number: u64) -> Option<Value> {
        match self {
            Self::Integer { least, most } if (*least..=*most).contains(&number) => Some(Value::Integer(number)),
            _ => None,
        }
    }

    fn words(&self, words: Vec<String>) -> Option<Value> {
        let fits = match self {
            Self::Networks => words.iter().all(|word| word.parse::<IpNet>().is_ok()),
            Self::Origins => words.iter().all(|word| is_origin(word)),
            Self::Tenants => words.iter().all(|word| TenantId::parse(word).is_ok()),
            _ => words.first().is_some_and(|program| !program.is_empty()),
        };
        fits.then_some(Value::Words(words))
    }

    fn line(&self, text: &str) -> Option<Value> {
        match self {
            Self::Address => text.parse().ok().map(Value::Address),
            Self::Choice(words) => words.contains(&text).then(|| Value::Text(text.to_owned())),
            Self::DatabaseUrl => {
                let is_url = text.starts_with("postgres://") || text.starts_with("postgresql://");
                is_url.then(|| Value::Secret(Secret::new(text.to_owned())))
            }
            Self::HookUrl => web_url(text).map(Value::HookUrl),
            Self::PublicUrl => {
                let url = web_url(text).filter(|url| url.query().is_none() && url.fragment().is_none())?;
                Some(Value::Text(url.as_str().trim_end_matches('/').to_owned()))
            }
            Self::LogLevel => is_log_level(text).then(|| Value::Text(text.to_owned())),
            _ => (!text.is_empty()).then(|| Value::Path(PathBuf::from(text))),
        }
    }
}

/// As browsers write it: nothing stands behind host and port.
fn is_origin(text: &str) -> bool {
    web_url(text).is_some_and(|url| url.origin().ascii_serialization() == text)
}

impl Value {
    /// The value as JSON, with secrets masked.
    pub fn shown(&self) -> serde_json::Value {
        match self {
            Self::Address(address) => json!(address.to_string()),
            Self::HookUrl(url) => json!(mask_hook(url)),
            Self::Integer(number) => json!(number),
            Self::Path(path) => json!(path.display().to_string()),
            Self::Secret(url) => json!(mask_url(url.expose())),
            Self::Switch(on) => json!(on),
            Self::Text(text) => json!(text),
            Self::Words(words) => json!(words),
        }
    }
}

/// The filter itself accepts a bare word that is not a level as the name of a module, all of which is then logged.
fn is_log_level(text: &str) -> bool {
    let level = |part: &str| part.rsplit_once('=').map_or(part, |(_, level)| level).parse::<LevelFilter>().is_ok();
    text.split(',').all(level) && text.parse::<Targets>().is_ok()
}

/// An http or https URL with a host and without user name or password.
fn web_url(text: &str) -> Option<Url> {
    let url = Url::parse(text).ok()?;
    let is_web = matches!(url.scheme(), "http" | "https") && url.has_host();
    (is_web && url.username().is_empty() && url.password().is_none()).then_some(url)
}

/// The host of an address for messages: some services put a token behind it.
fn mask_hook(url: &Url) -> String {
    let is_bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
    let origin = url.origin().ascii_serialization();
    if is_bare { origin } else { format!("{origin}/{MASK}") }
}

/// Replaces a secret.
pub const MASK: &str = "***";

/// A URL without its password. A URL that is hard to read loses rather more than less.
pub fn mask_url(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    // The last at sign: an unescaped one in the password would otherwise show its end.
    let (credentials, place) = match rest.rsplit_once('@') {
        Some((credentials, place)) => (Some(credentials), place),
        None => (None, rest),
    };
    let credentials = match credentials.map(|text| text.split_once(':').ok_or(text)) {
        Some(Ok((user, _))) => format!("{user}:{MASK}@"),
        Some(Err(user)) => format!("{user}@"),
        None => String::new(),
    };
    let (place, options) = place.split_once('?').map_or((place, None), |(place, options)| (place, Some(options)));
    let options = options.map(|options| {
        let options = options.split('&').map(|option| match option.split_once('=') {
            Some((name, _)) if name.contains("pass") => format!("{name}={MASK}"),
            _ => option.to_owned(),
        });
        format!("?{}", options.collect::<Vec<_>>().join("&"))
    });
    format!("{scheme}://{credentials}{place}{}", options.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_in_a_url_is_masked_wherever_it_stands() {
        for (url, shown) in [
            ("postgres://ann@host/db", "postgres://ann@host/db"),
            ("postgres://host/db", "postgres://host/db"),
            ("postgres://ann:geheim@host:5432/db", "postgres://ann:***@host:5432/db"),
            ("postgres://ann:ge:he@im/x@host/db?a=b", "postgres://ann:***@host/db?a=b"),
            (
                "postgresql://host/db?user=ann&password=geheim&sslmode=require",
                "postgresql://host/db?user=ann&password=***&sslmode=require",
            ),
        ] {
            assert_eq!(mask_url(url), shown);
        }
    }

    #[test]
    fn numbers_outside_their_range_and_other_words_are_not_taken() {
        let kind = Kind::Integer { least: 1, most: 10 };
        for text in ["0", "11", "-1", "1.5", "", " 1", "99999999999999999999"] {
            assert!(kind.read_text(text).is_none(), "{text}");
        }
        assert!(matches!(kind.read_text("10"), Some(Value::Integer(10))));
        assert!(Kind::Choice(&["a", "b"]).read_text("c").is_none());
        assert!(Kind::Address.read_text("localhost").is_none());
        assert!(Kind::DatabaseUrl.read_text("mysql://host/db").is_none());
        assert!(Kind::LogLevel.read_text("loud").is_none());
        assert!(Kind::LogLevel.read_text("warn,toolgate_ledger=debug").is_some());
        assert!(Kind::Words.read_text(" ").is_none());
    }

    #[test]
    fn addresses_on_the_web_are_read_strictly_and_shown_without_what_may_be_a_token() {
        for bad in ["ftp://host/a", "host", "https://ann:geheim@host/", "https://ann@host/", "", "https://"] {
            assert!(Kind::HookUrl.read_text(bad).is_none() && Kind::PublicUrl.read_text(bad).is_none(), "{bad}");
        }
        for (url, shown) in [
            ("https://host/geheim?key=geheim", "https://host/***"),
            ("http://127.0.0.1:8080/geheim", "http://127.0.0.1:8080/***"),
            ("https://host", "https://host"),
        ] {
            assert_eq!(Kind::HookUrl.read_text(url).unwrap().shown(), json!(shown));
        }
        for (url, shown) in [("https://gate/", "https://gate"), ("http://gate:81/base/", "http://gate:81/base")] {
            assert_eq!(Kind::PublicUrl.read_text(url).unwrap().shown(), json!(shown));
        }
        for bad in ["https://gate/?a=b", "https://gate/#a"] {
            assert!(Kind::PublicUrl.read_text(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn switches_and_lists_can_be_written_in_variables() {
        assert!(matches!(Kind::Switch.read_text("on"), Some(Value::Switch(true))));
        assert!(Kind::Switch.read_text("yes").is_none());
        let Some(Value::Words(networks)) = Kind::Networks.read_text("127.0.0.1/32, ::1/128") else {
            panic!("two networks")
        };
        assert_eq!(networks, ["127.0.0.1/32", "::1/128"]);
        assert!(Kind::Networks.read_text("127.0.0.1").is_none());
        let Some(Value::Words(words)) = Kind::Words.read_text("wrap --key 1") else { panic!("three words") };
        assert_eq!(words, ["wrap", "--key", "1"]);
    }
}
