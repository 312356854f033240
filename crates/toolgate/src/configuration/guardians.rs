//! The guardians file: the external guardians that the gate consults, and the settings of the runtimes that send hook
//! requests. TOML; nothing unknown is ignored. Secrets are in separate files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use toolgate_cli::durations;
use toolgate_dialect::aos::ModifiedForm;
use toolgate_gate::call::{AskForm, HookTerms, UnknownTools};
use toolgate_guardian::detector::{DetectorKind, Detectors, FieldSelector};
use toolgate_guardian::remote::{BreakerSettings, Redaction, RemoteSettings, SHADOW_TIMEOUT};
use toolgate_guardian::selector::{NamePattern, Selector};
use toolgate_model::approval::MAX_WAIT;
use toolgate_model::descriptor::SafetyTier;
use toolgate_model::guard::{Dialect, GuardMode, Hook, OnFailure};
use toolgate_model::principal::{PrincipalId, TenantId};
use toolgate_model::secret::Secret;
use toolgate_model::text::{Label, check_identifier};
use toolgate_server::aos::{HookProfile, HookSettings};
use url::Url;

use super::ConfigurationError;

/// The maximum timeout of a guardian.
const MAX_TIMEOUT: u64 = 60_000;

#[derive(Default)]
pub struct GuardianSettings {
    /// The external guardians.
    pub guardians: Vec<GuardianEntry>,
    /// The settings of runtimes that send hook requests.
    pub hooks: HookSettings,
    /// The file itself, and those that it names for secrets.
    pub files: Vec<PathBuf>,
}

/// An external guardian.
pub struct GuardianEntry {
    pub url: Url,
    pub settings: RemoteSettings,
    /// How the gate authenticates to it.
    pub authentication: GuardianAuthentication,
    /// The maximum size of its responses.
    pub max_response_bytes: usize,
    /// The only CAs of its certificate, in PEM.
    pub ca_certificate: Option<String>,
}

/// How the gate authenticates to a guardian.
pub enum GuardianAuthentication {
    None,
    /// By a bearer token.
    Bearer(Secret),
    /// By a header of the guardian's own.
    Header {
        name: String,
        value: Secret,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    guardian: Vec<Guardian>,
    #[serde(default)]
    hooks: Option<Terms>,
    #[serde(default)]
    caller: Vec<Caller>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Guardian {
    name: String,
    url: String,
    #[serde(default)]
    dialect: Option<String>,
    #[serde(default)]
    hooks: Vec<String>,
    #[serde(default)]
    agents: Vec<String>,
    #[serde(default)]
    tools: Vec<String>,
    #[serde(default)]
    tiers: Vec<String>,
    #[serde(default)]
    labels: Vec<String>,
    #[serde(default)]
    principal_labels: Vec<String>,
    #[serde(default)]
    tenants: Vec<String>,
    #[serde(default)]
    order: i32,
    #[serde(default)]
    mode: Option<String>,
    #[serde(default)]
    may_modify: bool,
    #[serde(default, deserialize_with = "durations::milliseconds")]
    timeout_milliseconds: Option<u64>,
    #[serde(default)]
    on_failure: Option<String>,
    #[serde(default)]
    max_concurrency: Option<usize>,
    #[serde(default)]
    retries: u32,
    #[serde(default)]
    breaker_failures: Option<u32>,
    #[serde(default, deserialize_with = "durations::seconds")]
    breaker_seconds: Option<u64>,
    #[serde(default)]
    max_request_bytes: Option<usize>,
    #[serde(default, rename = "max_answer_bytes")]
    max_response_bytes: Option<usize>,
    #[serde(default)]
    redact: Vec<String>,
    #[serde(default)]
    leave_out: Vec<String>,
    #[serde(default)]
    bearer_token_file: Option<PathBuf>,
    #[serde(default)]
    header: Option<String>,
    #[serde(default)]
    header_value_file: Option<PathBuf>,
    #[serde(default)]
    ca_certificate_file: Option<PathBuf>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Terms {
    ask: Option<String>,
    unknown_tools: Option<String>,
    modified_request: Option<String>,
    #[serde(default, deserialize_with = "durations::seconds")]
    wait_seconds: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Caller {
    id: String,
    ask: Option<String>,
    unknown_tools: Option<String>,
    modified_request: Option<String>,
    #[serde(default, deserialize_with = "durations::seconds")]
    wait_seconds: Option<u64>,
}

pub(super) fn read(path: &Path) -> Result<GuardianSettings, ConfigurationError> {
    let place = path.display();
    let at = |problem: String| ConfigurationError::one(format!("{place}: {problem}"));
    let text = std::fs::read_to_string(path).map_err(|error| at(format!("cannot be read: {error}")))?;
    let base = path.parent().unwrap_or(Path::new("."));
    let read = parse(&text, base).map(|mut settings| {
        settings.files.push(path.to_path_buf());
        settings
    });
    read.map_err(|problems| {
        ConfigurationError(problems.into_iter().map(|problem| format!("{place}: {problem}")).collect())
    })
}

fn parse(text: &str, base: &Path) -> Result<GuardianSettings, Vec<String>> {
    // TOML's error would quote a wrong value, which may be a misplaced secret.
    let file: File = toml::from_str(text).map_err(|error| {
        let line =
            error.span().map_or(1, |span| text.bytes().take(span.start).filter(|byte| *byte == b'\n').count() + 1);
        vec![format!("line {line}: {}", error.message().lines().next().unwrap_or_default())]
    })?;
    let secrets = |guardian: &Guardian| [guardian.bearer_token_file.clone(), guardian.header_value_file.clone()];
    let files = file.guardian.iter().flat_map(secrets).flatten().map(|file| base.join(file)).collect();
    let mut problems = Vec::new();
    let mut guardians = Vec::new();
    let mut names = BTreeSet::new();
    for guardian in &file.guardian {
        if !names.insert(guardian.name.clone()) {
            problems.push(format!("guardian `{}` appears twice", guardian.name));
        }
        match entry(guardian, base) {
            Ok(entry) => guardians.push(entry),
            Err(problem) => problems.push(format!("guardian `{}`: {problem}", guardian.name)),
        }
    }
    let usual = HookProfile::default();
    let default = profile(file.hooks.unwrap_or_default(), &usual).unwrap_or_else(|problem| {
        problems.push(format!("hooks: {problem}"));
        HookProfile::default()
    });
    let mut callers = BTreeMap::new();
    for Caller { id, ask, unknown_tools, modified_request, wait_seconds } in file.caller {
        let terms = Terms { ask, unknown_tools, modified_request, wait_seconds };
        let read = PrincipalId::parse(&id).map_err(|error| format!("`id` {error}"));
        match read.and_then(|caller| Ok((caller, profile(terms, &default)?))) {
            Ok((caller, profile)) => {
                if callers.insert(caller, profile).is_some() {
                    problems.push(format!("caller `{id}` appears twice"));
                }
            }
            Err(problem) => problems.push(format!("caller `{id}`: {problem}")),
        }
    }
    match problems.is_empty() {
        true => Ok(GuardianSettings { guardians, hooks: HookSettings { default, callers }, files }),
        false => Err(problems),
    }
}

fn profile(terms: Terms, usual: &HookProfile) -> Result<HookProfile, String> {
    let ask = word(terms.ask.as_deref(), "ask", &[("hold", AskForm::Hold), ("deny", AskForm::Deny)])?;
    let unknown = [("ask", UnknownTools::Ask), ("judge", UnknownTools::Judge), ("deny", UnknownTools::Deny)];
    let unknown = word(terms.unknown_tools.as_deref(), "unknown_tools", &unknown)?;
    let forms = [("whole", ModifiedForm::Whole), ("fragment", ModifiedForm::Fragment)];
    let form = word(terms.modified_request.as_deref(), "modified_request", &forms)?;
    let wait = match terms.wait_seconds.map(Duration::from_secs) {
        Some(wait) if wait.is_zero() || wait > MAX_WAIT => {
            return Err(format!("`wait_seconds` must be from 1 to {}", MAX_WAIT.as_secs()));
        }
        wait => wait,
    };
    Ok(HookProfile {
        form: form.unwrap_or(usual.form),
        terms: HookTerms {
            ask: ask.unwrap_or(usual.terms.ask),
            unknown_tools: unknown.unwrap_or(usual.terms.unknown_tools),
            wait: wait.or(usual.terms.wait),
        },
    })
}

fn entry(given: &Guardian, base: &Path) -> Result<GuardianEntry, String> {
    check_identifier(&given.name).map_err(|error| format!("`name` {error}"))?;
    if ["policy", "gate"].contains(&given.name.as_str()) {
        return Err("this name is reserved for the gate; choose another".to_owned());
    }
    let url = Url::parse(&given.url).map_err(|_| "`url` is not a valid URL")?;
    if !matches!(url.scheme(), "http" | "https") || !url.username().is_empty() || url.password().is_some() {
        return Err("`url` must be http or https, without a user name".to_owned());
    }
    let dialects: Vec<_> = toolgate_dialect::of_guardians().map(|dialect| (dialect.as_str(), dialect)).collect();
    let dialect = word(given.dialect.as_deref(), "dialect", &dialects)?.unwrap_or(Dialect::Aos);
    let mut settings = RemoteSettings::new(given.name.clone(), dialect);
    settings.selector = selector(given)?;
    settings.order = given.order;
    let modes = [GuardMode::Enforce, GuardMode::Shadow, GuardMode::Off].map(|mode| (mode.as_str(), mode));
    settings.mode = word(given.mode.as_deref(), "mode", &modes)?.unwrap_or_default();
    if settings.mode == GuardMode::Shadow {
        settings.timeout = SHADOW_TIMEOUT;
    }
    settings.may_modify = given.may_modify;
    let postures = [OnFailure::Deny, OnFailure::Allow].map(|posture| (posture.as_str(), posture));
    settings.on_failure = word(given.on_failure.as_deref(), "on_failure", &postures)?.unwrap_or_default();
    if let Some(timeout) = given.timeout_milliseconds {
        if !(1..=MAX_TIMEOUT).contains(&timeout) {
            return Err(format!("`timeout_milliseconds` must be from 1 to {MAX_TIMEOUT}"));
        }
        settings.timeout = Duration::from_millis(timeout);
    }
    if let Some(places) = given.max_concurrency {
        settings.max_concurrency = places;
    }
    settings.retries_connecting = match given.retries {
        0 => false,
        1 => true,
        _ => return Err("`retries` must be 0 or 1".to_owned()),
    };
    let usual = BreakerSettings::default();
    settings.breaker = BreakerSettings {
        failures: given.breaker_failures.unwrap_or(usual.failures),
        rest: given.breaker_seconds.map_or(usual.rest, Duration::from_secs),
    };
    if given.max_concurrency == Some(0) || settings.breaker.failures == 0 {
        return Err("`max_concurrency` and `breaker_failures` must be at least 1".to_owned());
    }
    if let Some(limit) = given.max_request_bytes {
        settings.max_request_bytes = limit;
    }
    settings.redaction = redaction(given)?;
    let certificate = |file: &PathBuf| {
        std::fs::read_to_string(base.join(file))
            .map_err(|error| format!("`ca_certificate_file` cannot be read: {error}"))
    };
    Ok(GuardianEntry {
        url,
        settings,
        authentication: authentication(given, base)?,
        max_response_bytes: given.max_response_bytes.unwrap_or(1024 * 1024),
        ca_certificate: given.ca_certificate_file.as_ref().map(certificate).transpose()?,
    })
}

fn selector(given: &Guardian) -> Result<Selector, String> {
    let hook = |name: &String| Hook::parse(name).ok_or_else(|| format!("`hooks`: there is no hook `{name}`"));
    let tier = |name: &String| SafetyTier::parse(name).ok_or_else(|| format!("`tiers`: there is no tier `{name}`"));
    let patterns = |member: &str, names: &[String]| -> Result<Vec<NamePattern>, String> {
        names.iter().map(|name| NamePattern::parse(name).map_err(|error| format!("`{member}`: {error}"))).collect()
    };
    let labels = |member: &str, names: &[String]| -> Result<BTreeSet<Label>, String> {
        names.iter().map(|name| Label::parse(name).map_err(|error| format!("`{member}`: a label {error}"))).collect()
    };
    let tenant = |name: &String| TenantId::parse(name).map_err(|error| format!("`tenants`: a tenant {error}"));
    Ok(Selector {
        hooks: given.hooks.iter().map(hook).collect::<Result<_, _>>()?,
        agents: patterns("agents", &given.agents)?,
        tools: patterns("tools", &given.tools)?,
        tiers: given.tiers.iter().map(tier).collect::<Result<_, _>>()?,
        tool_labels: labels("labels", &given.labels)?,
        principal_labels: labels("principal_labels", &given.principal_labels)?,
        tenants: given.tenants.iter().map(tenant).collect::<Result<_, _>>()?,
    })
}

fn redaction(given: &Guardian) -> Result<Redaction, String> {
    let kinds = given.redact.iter().map(|name| DetectorKind::parse(name)).collect::<Result<Vec<_>, _>>();
    let kinds = kinds.map_err(|error| format!("`redact`: {error}"))?;
    let detectors = match kinds.is_empty() {
        true => None,
        false => Some(Detectors::new(&kinds).map_err(|error| format!("`redact`: {error}"))?),
    };
    let fields = match given.leave_out.is_empty() {
        true => None,
        false => {
            let fields = FieldSelector::parse(&given.leave_out.join(","));
            Some(fields.map_err(|error| format!("`leave_out`: {error}"))?)
        }
    };
    Ok(Redaction { fields, detectors })
}

fn authentication(given: &Guardian, base: &Path) -> Result<GuardianAuthentication, String> {
    let secret = |member: &str, file: &PathBuf| -> Result<Secret, String> {
        let text = std::fs::read_to_string(base.join(file));
        let text = text.map_err(|error| format!("`{member}` cannot be read: {error}"))?;
        Ok(Secret::new(text.trim_end_matches(['\r', '\n']).to_owned()))
    };
    match (&given.bearer_token_file, &given.header, &given.header_value_file) {
        (None, None, None) => Ok(GuardianAuthentication::None),
        (Some(file), None, None) => Ok(GuardianAuthentication::Bearer(secret("bearer_token_file", file)?)),
        (None, Some(name), Some(file)) => {
            Ok(GuardianAuthentication::Header { name: name.clone(), value: secret("header_value_file", file)? })
        }
        _ => Err("give `bearer_token_file`, or `header` with `header_value_file`, or none of them".to_owned()),
    }
}

fn word<T: Copy>(given: Option<&str>, member: &str, words: &[(&str, T)]) -> Result<Option<T>, String> {
    let Some(given) = given else { return Ok(None) };
    let found = words.iter().find(|(word, _)| *word == given).map(|(_, meaning)| *meaning);
    let expected: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
    found.map(Some).ok_or_else(|| format!("`{member}` must be one of {}", expected.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> Vec<String> {
        parse(text, Path::new(".")).err().unwrap()
    }

    const SECURITY: &str = "[[guardian]]\nname = \"security\"\nurl = \"https://guardian.example/aos\"\n";

    #[test]
    fn what_is_not_said_is_the_strictest() {
        let settings = parse(SECURITY, Path::new(".")).ok().unwrap();
        let [guardian] = settings.guardians.as_slice() else { panic!("one guardian") };
        assert_eq!(guardian.settings.on_failure, OnFailure::Deny);
        assert_eq!(guardian.settings.mode, GuardMode::Enforce);
        assert!(!guardian.settings.may_modify);
        assert_eq!(settings.hooks, HookSettings::default());
    }

    #[test]
    fn a_guardian_in_shadow_has_little_time_unless_it_is_given_more() {
        for (lines, timeout) in [
            ("", Duration::from_secs(1)),
            ("mode = \"shadow\"\n", SHADOW_TIMEOUT),
            ("mode = \"shadow\"\ntimeout_milliseconds = 3000\n", Duration::from_secs(3)),
            ("timeout_milliseconds = \"3s\"\n", Duration::from_secs(3)),
        ] {
            let settings = parse(&format!("{SECURITY}{lines}"), Path::new(".")).ok().unwrap();
            assert_eq!(settings.guardians[0].settings.timeout, timeout, "{lines}");
        }
    }

    #[test]
    fn tools_that_the_gate_does_not_know_ask_unless_it_is_agreed_otherwise() {
        let agreed = |text: &str| parse(text, Path::new(".")).ok().unwrap().hooks.default.terms.unknown_tools;
        assert_eq!(agreed(""), UnknownTools::Ask);
        assert_eq!(agreed("[hooks]\nunknown_tools = \"judge\"\n"), UnknownTools::Judge);
        assert_eq!(agreed("[hooks]\nunknown_tools = \"deny\"\n"), UnknownTools::Deny);
    }

    #[test]
    fn whatever_is_wrong_is_named_and_nothing_is_ignored() {
        for (line, expected) in [
            ("timeout = 5", "timeout"),
            ("mode = \"observe\"", "`mode` must be one of enforce, shadow, off"),
            ("hooks = [\"toolCall\"]", "there is no hook `toolCall`"),
            ("retries = 2", "`retries` must be 0 or 1"),
            ("redact = [\"mail\"]", "`redact`"),
            ("tools = [\"a*b\"]", "`tools`"),
            ("header = \"X-Key\"", "header_value_file"),
            ("bearer_token_file = \"nowhere/at/all\"", "`bearer_token_file` cannot be read"),
            ("max_concurrency = 0", "at least 1"),
        ] {
            let found = problems(&format!("{SECURITY}{line}\n"));
            assert!(found.iter().any(|problem| problem.contains(expected)), "{line}: {found:?}");
        }
        assert!(problems(&format!("{SECURITY}{SECURITY}"))[0].contains("twice"));
        assert!(problems("[[guardian]]\nname = \"policy\"\nurl = \"https://a.example/\"\n")[0].contains("reserved"));
        assert!(problems("[hooks]\nask = \"maybe\"\n")[0].contains("`ask` must be one of hold, deny"));
    }

    #[test]
    fn a_caller_differs_only_in_what_is_said_of_it() {
        let text =
            "[hooks]\nwait_seconds = 30\n[[caller]]\nid = \"joch\"\nmodified_request = \"fragment\"\nask = \"deny\"\n";
        let hooks = parse(text, Path::new(".")).ok().unwrap().hooks;
        let joch = hooks.of(&PrincipalId::parse("joch").unwrap());
        assert_eq!((joch.form, joch.terms.ask), (ModifiedForm::Fragment, AskForm::Deny));
        assert_eq!(joch.terms.wait, Some(Duration::from_secs(30)));
        assert_eq!(hooks.default.terms.ask, AskForm::Hold);
    }
}
