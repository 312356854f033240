//! The configuration file: TOML, in which nothing is ignored. Whatever is wrong is named with its line; never a value,
//! since it may be a password.

use std::collections::BTreeMap;

use toml::Spanned;
use toml::de::{DeTable, DeValue};
use toolgate_cli::durations::ADVICE;

use super::keys::KEYS;
use super::value::Value;

/// The value of a key in the file.
pub struct Given {
    pub value: Value,
    pub line: usize,
}

/// Something wrong with the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// On which line, counted from one.
    pub line: usize,
    /// What is wrong, and what to do.
    pub message: String,
}

/// Parses the file; returns all problems, not only the first one.
pub fn read(text: &str) -> Result<BTreeMap<&'static str, Given>, Vec<Fault>> {
    let line_of = |offset: usize| text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1;
    let document = DeTable::parse(text).map_err(|error| {
        let line = error.span().map_or(1, |span| line_of(span.start));
        vec![Fault { line, message: error.message().replace('\n', ", ") }]
    })?;
    let mut given = BTreeMap::new();
    let mut faults = Vec::new();
    for (path, value) in leaves(document.get_ref()) {
        let line = line_of(value.span().start);
        let named = KEYS.iter().find(|key| key.path == path);
        let Some(key) = named.or_else(|| KEYS.iter().find(|key| key.duration_path() == Some(path.as_str()))) else {
            faults.push(Fault { line, message: unknown(&path) });
            continue;
        };
        let read = match named {
            Some(key) => key.read_toml(value.get_ref()),
            // Without a unit in the name of the key, a bare number could be anything.
            None => value.get_ref().as_str().and_then(|text| key.read_duration(text)),
        };
        let message = match read.map(|value| given.insert(key.path, Given { value, line })) {
            Some(None) => continue,
            Some(Some(_)) => format!("`{path}` is set twice, with and without its unit; remove one of them"),
            None if named.is_some() => format!("`{path}` must be {}", key.expected()),
            None => {
                format!("`{path}` must be {} in quotes, which is for `{}` {}", ADVICE, key.path, key.kind.expected())
            }
        };
        faults.push(Fault { line, message });
    }
    faults.sort_by_key(|fault| fault.line);
    if faults.is_empty() { Ok(given) } else { Err(faults) }
}

/// The candidate most like a misspelt name, if one is alike at all.
pub fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    const ALIKE: f64 = 0.6;
    let scored = candidates.map(|candidate| (strsim::normalized_damerau_levenshtein(name, candidate), candidate));
    scored.filter(|(score, _)| *score >= ALIKE).max_by(|left, right| left.0.total_cmp(&right.0)).map(|(_, name)| name)
}

/// Every path of the document, with its value. An empty table is a leaf only if it is not one of ours.
fn leaves<'a, 'i>(document: &'a DeTable<'i>) -> Vec<(String, &'a Spanned<DeValue<'i>>)> {
    let mut found = Vec::new();
    let members = |prefix: &str, table: &'a DeTable<'i>| -> Vec<(String, &'a Spanned<DeValue<'i>>)> {
        table.iter().map(|(name, value)| (format!("{prefix}{}", name.get_ref()), value)).collect()
    };
    let mut rest = members("", document);
    while let Some((path, value)) = rest.pop() {
        let is_key = KEYS.iter().any(|key| key.path == path);
        let below = format!("{path}.");
        let is_ours = KEYS.iter().any(|key| key.path.starts_with(&below));
        match value.get_ref() {
            DeValue::Table(table) if !is_key && (is_ours || !table.is_empty()) => rest.extend(members(&below, table)),
            _ => found.push((path, value)),
        }
    }
    found
}

fn unknown(path: &str) -> String {
    // A key without its group or its section is as common a mistake as a misspelt one.
    let section = path.split_once('.').map(|(section, _)| section);
    let without_group = KEYS.iter().find(|key| Some(key.section()) == section && last(key.path) == last(path));
    let by_name = || {
        let near = nearest(last(path), KEYS.iter().map(|key| last(key.path)))?;
        KEYS.iter().find(|key| last(key.path) == near).map(|key| key.path)
    };
    let near = without_group.map(|key| key.path).or_else(|| nearest(path, KEYS.iter().map(|key| key.path)));
    match near.or_else(by_name) {
        Some(near) => format!("the key `{path}` is not known; did you mean `{near}`?"),
        None => format!("the key `{path}` is not known; `toolgate config example` shows every key"),
    }
}

fn last(path: &str) -> &str {
    path.rsplit_once('.').map_or(path, |(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(text: &str) -> Vec<(usize, String)> {
        read(text).err().unwrap().into_iter().map(|fault| (fault.line, fault.message)).collect()
    }

    #[test]
    fn values_are_read_with_their_lines() {
        let given = read("[server]\nlisten = \"127.0.0.1:1\"\n\nmax_body_bytes = 0x1000\n").ok().unwrap();
        assert_eq!(given["server.listen"].line, 2);
        assert!(matches!(given["server.max_body_bytes"].value, Value::Integer(4096)));
        assert!(read("").ok().unwrap().is_empty());
        assert!(read("[server]\n").ok().unwrap().is_empty());
        assert_eq!(read("server.listen = '127.0.0.1:1'").ok().unwrap().len(), 1);
    }

    #[test]
    fn an_unknown_key_is_named_with_the_nearest_and_its_line() {
        for (text, line, near) in [
            ("[server]\nlisen = \"x\"\n", 2, "`server.listen`"),
            ("[sever]\nlisten = \"x\"\n", 2, "`server.listen`"),
            ("listen = \"x\"\n", 1, "`server.listen`"),
            ("[ledger]\n\ndatabase = \"x\"\n", 3, "`ledger.database_url`"),
            ("[database]\nurl = \"x\"\n", 2, "config example"),
            ("[other]\n", 1, "config example"),
            ("[server.rate_limit]\nrequest = 1\n", 2, "`server.rate_limit.requests`"),
            ("[server]\nburst = 1\n", 2, "`server.rate_limit.burst`"),
            ("[server]\nrate_limit = 1\n", 2, "`server.rate_limit.burst`"),
        ] {
            let found = faults(text);
            assert_eq!(found.len(), 1, "{found:?}");
            assert_eq!(found[0].0, line, "{found:?}");
            assert!(found[0].1.contains(near), "{found:?}");
        }
    }

    #[test]
    fn a_group_of_keys_is_written_in_any_form_of_toml() {
        for text in [
            "[server]\nrate_limit.requests = 1\n",
            "[server.rate_limit]\nrequests = 1\n",
            "server = { rate_limit = { requests = 1 } }\n",
        ] {
            let given = read(text).ok().unwrap();
            assert!(matches!(given["server.rate_limit.requests"].value, Value::Integer(1)), "{text}");
        }
        assert!(read("[server.rate_limit]\n").ok().unwrap().is_empty());
        assert_eq!(faults("[server]\nlisten = { port = 1 }\n")[0].0, 2);
    }

    #[test]
    fn a_wrong_type_names_the_key_and_what_it_takes_but_not_the_value() {
        let found = faults("[ledger]\nconnections = \"geheim\"\ndatabase_url = \"mysql://ann:geheim@host/db\"\n");
        assert_eq!(found[0], (2, "`ledger.connections` must be a whole number from 3 to 1000".to_owned()));
        assert_eq!(found[1].0, 3);
        assert!(found.iter().all(|(_, message)| !message.contains("geheim")), "{found:?}");
        assert_eq!(faults("server = 1\n")[0].0, 1);
    }

    #[test]
    fn durations_are_written_with_their_unit_or_as_a_number_of_the_unit_in_the_name() {
        for (text, path, number) in [
            ("[server]\nidle_timeout = \"2m\"\n", "server.idle_timeout_seconds", 120),
            ("[server]\nidle_timeout_seconds = \"2m\"\n", "server.idle_timeout_seconds", 120),
            ("[server]\nidle_timeout_seconds = 120\n", "server.idle_timeout_seconds", 120),
            ("[server.rate_limit]\nper = \"1h\"\n", "server.rate_limit.per_seconds", 3600),
            ("[grants]\ndefault_lifetime = \"7d\"\n", "grants.default_lifetime_days", 7),
            ("[audit]\nintegrate = \"1s\"\n", "audit.integrate_milliseconds", 1000),
        ] {
            let given = read(text).ok().unwrap();
            assert!(matches!(given[path].value, Value::Integer(found) if found == number), "{text}");
        }
        for (text, words) in [
            ("[server]\nidle_timeout = 75\n", "as 90s"),
            ("[server]\nidle_timeout = \"75\"\n", "as 90s"),
            ("[server]\nidle_timeout = \"2d\"\n", "from 1 to 86400"),
            ("[grants]\ndefault_lifetime = \"8h\"\n", "from 1 to 36500"),
            ("[server]\nidle_timeout = \"1m\"\nidle_timeout_seconds = 60\n", "set twice"),
            ("[server]\nmax_connections = \"2m\"\n", "must be a whole number from 1 to 1000000"),
        ] {
            let found = faults(text);
            assert!(found.len() == 1 && found[0].1.contains(words), "{text}: {found:?}");
        }
    }

    #[test]
    fn what_is_no_toml_is_refused_with_its_line() {
        assert_eq!(faults("[server]\nlisten = \n")[0].0, 2);
        assert_eq!(faults("[server]\nlisten = 'a'\nlisten = 'b'\n")[0].0, 3);
        assert_eq!(faults("[server]\n[server]\n")[0].0, 2);
    }
}
