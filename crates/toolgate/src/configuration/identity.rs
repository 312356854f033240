//! The file of identity: the issuers whose access tokens are accepted besides keys. TOML, in which nothing is ignored.

use std::collections::BTreeSet;
use std::path::Path;

use serde::Deserialize;
use toolgate_identity::{IssuerSettings, SignatureAlgorithm};
use toolgate_model::principal::TenantId;
use toolgate_model::token_subject::IssuerUrl;
use url::Url;

use super::ConfigurationError;

/// More issuers than any gate trusts.
const MAX_ISSUERS: usize = 32;

/// An issuer whose access tokens are accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssuerEntry {
    pub settings: IssuerSettings,
    /// The hosts of its documents that may be private.
    pub private_hosts: BTreeSet<String>,
    /// PEM text of the only CAs to trust; without it, the system's.
    pub ca_certificate: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    issuers: Vec<Issuer>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Issuer {
    issuer: String,
    audiences: Option<Vec<String>>,
    algorithms: Option<Vec<String>>,
    jwks_uri: Option<String>,
    subject_claim: Option<String>,
    #[serde(default)]
    required_scopes: Vec<String>,
    tenant: Option<String>,
    #[serde(default)]
    private_hosts: BTreeSet<String>,
    ca_certificate_file: Option<std::path::PathBuf>,
}

/// Reads the file. Tokens are for the gate at its public URL, which must therefore be known.
pub(super) fn read(path: &Path, public_url: Option<&str>) -> Result<Vec<IssuerEntry>, ConfigurationError> {
    let place = path.display();
    let at = |problem: String| ConfigurationError::one(format!("{place}: {problem}"));
    let text = std::fs::read_to_string(path).map_err(|error| at(format!("cannot be read: {error}")))?;
    let base = path.parent().unwrap_or(Path::new("."));
    parse(&text, base, public_url).map_err(|problems| {
        ConfigurationError(problems.into_iter().map(|problem| format!("{place}: {problem}")).collect())
    })
}

fn parse(text: &str, base: &Path, public_url: Option<&str>) -> Result<Vec<IssuerEntry>, Vec<String>> {
    let file: File = toml::from_str(text).map_err(|error| {
        let line =
            error.span().map_or(1, |span| text.bytes().take(span.start).filter(|byte| *byte == b'\n').count() + 1);
        vec![format!("line {line}: {}", error.message().lines().next().unwrap_or_default())]
    })?;
    if file.issuers.is_empty() {
        return Ok(Vec::new());
    }
    if file.issuers.len() > MAX_ISSUERS {
        return Err(vec![format!("there are more than {MAX_ISSUERS} issuers")]);
    }
    let Some(public_url) = public_url else {
        let problem = "access tokens are issued for the URL of this gate: set server.public_url";
        return Err(vec![problem.to_owned()]);
    };
    let mut problems = Vec::new();
    let mut issuers: Vec<IssuerEntry> = Vec::new();
    for issuer in file.issuers {
        let name = issuer.issuer.clone();
        match entry(issuer, base, public_url) {
            Ok(entry) if issuers.iter().any(|other| other.settings.issuer == entry.settings.issuer) => {
                problems.push(format!("issuer `{name}` is there twice"));
            }
            Ok(entry) => issuers.push(entry),
            Err(problem) => problems.push(format!("issuer `{name}`: {problem}")),
        }
    }
    if problems.is_empty() { Ok(issuers) } else { Err(problems) }
}

fn entry(given: Issuer, base: &Path, public_url: &str) -> Result<IssuerEntry, String> {
    let issuer = IssuerUrl::parse(&given.issuer).map_err(|reason| format!("`issuer`: {reason}"))?;
    fetchable("issuer", issuer.as_str(), &given.private_hosts)?;
    if let Some(address) = &given.jwks_uri {
        fetchable("jwks_uri", address, &given.private_hosts)?;
    }
    let usual = || vec![format!("{public_url}/mcp"), public_url.to_owned(), format!("{public_url}/")];
    let audiences = given.audiences.unwrap_or_else(usual);
    if audiences.is_empty() || audiences.iter().any(String::is_empty) {
        return Err("`audiences` must list the names of this gate in tokens".to_owned());
    }
    let algorithms = match given.algorithms {
        None => SignatureAlgorithm::USUAL.to_vec(),
        Some(names) => names.iter().map(|name| algorithm(name)).collect::<Result<_, _>>()?,
    };
    if algorithms.is_empty() {
        return Err("`algorithms` must list at least one".to_owned());
    }
    // They stand between quotation marks in a header.
    let is_scope = |scope: &String| {
        !scope.is_empty() && scope.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\')
    };
    if !given.required_scopes.iter().all(is_scope) {
        return Err("`required_scopes` must be scopes of OAuth, without spaces and quotation marks".to_owned());
    }
    let subject_claim = given.subject_claim.unwrap_or_else(|| "sub".to_owned());
    if subject_claim.is_empty() {
        return Err("`subject_claim` must be the name of a claim".to_owned());
    }
    let tenant = given.tenant.map_or_else(|| Ok(TenantId::default_tenant()), |tenant| TenantId::parse(&tenant));
    let certificate = |file: std::path::PathBuf| {
        std::fs::read_to_string(base.join(file))
            .map_err(|error| format!("`ca_certificate_file` cannot be read: {error}"))
    };
    Ok(IssuerEntry {
        settings: IssuerSettings {
            issuer,
            audiences,
            algorithms,
            jwks_uri: given.jwks_uri,
            subject_claim,
            required_scopes: given.required_scopes,
            tenant: tenant.map_err(|error| format!("`tenant` {error}"))?,
        },
        private_hosts: given.private_hosts,
        ca_certificate: given.ca_certificate_file.map(certificate).transpose()?,
    })
}

/// Refuses an address that the gate would not fetch.
fn fetchable(member: &str, address: &str, private_hosts: &BTreeSet<String>) -> Result<(), String> {
    let url = Url::parse(address).map_err(|_| format!("`{member}` is not a valid URL"))?;
    let is_private = url.host_str().is_some_and(|host| private_hosts.contains(host));
    match url.scheme() {
        "https" => Ok(()),
        "http" if is_private => Ok(()),
        _ => Err(format!("`{member}` must be an https URL; http is allowed for hosts in `private_hosts` only")),
    }
}

fn algorithm(name: &str) -> Result<SignatureAlgorithm, String> {
    let names: Vec<_> = SignatureAlgorithm::ALL.iter().map(|algorithm| algorithm.as_str()).collect();
    SignatureAlgorithm::parse(name).ok_or_else(|| format!("`algorithms` must be some of {}", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PUBLIC: Option<&str> = Some("https://gate.example.com");

    fn read(text: &str) -> Result<Vec<IssuerEntry>, Vec<String>> {
        parse(text, Path::new("."), PUBLIC)
    }

    fn with(further: &str) -> String {
        format!("[[issuers]]\nissuer = \"https://login.example.com\"\n{further}\n")
    }

    #[test]
    fn an_issuer_is_read_with_safe_defaults() {
        let [entry] = read(&with("")).unwrap().try_into().unwrap();
        let IssuerSettings { audiences, algorithms, subject_claim, required_scopes, tenant, .. } = entry.settings;
        assert_eq!(
            audiences,
            ["https://gate.example.com/mcp", "https://gate.example.com", "https://gate.example.com/"]
        );
        assert_eq!((algorithms, subject_claim.as_str()), (SignatureAlgorithm::USUAL.to_vec(), "sub"));
        assert_eq!((required_scopes, tenant), (Vec::new(), TenantId::default_tenant()));
        assert!(entry.private_hosts.is_empty() && entry.ca_certificate.is_none());
        assert_eq!(read(""), Ok(Vec::new()));
    }

    #[test]
    fn every_key_is_taken() {
        let text = "[[issuers]]\nissuer = \"http://kubernetes.default.svc\"\naudiences = [\"toolgate\"]\n\
            algorithms = [\"RS256\"]\njwks_uri = \"http://kubernetes.default.svc/openid/v1/jwks\"\n\
            subject_claim = \"client_id\"\nrequired_scopes = [\"toolgate\", \"tools:call\"]\ntenant = \"acme\"\n\
            private_hosts = [\"kubernetes.default.svc\"]\n";
        let [entry] = read(text).unwrap().try_into().unwrap();
        assert_eq!((entry.settings.audiences, entry.settings.tenant.as_str()), (vec!["toolgate".to_owned()], "acme"));
        assert_eq!(entry.settings.required_scopes, ["toolgate", "tools:call"]);
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_its_issuer() {
        for (text, expected) in [
            (with("audience = \"x\""), "unknown field `audience`"),
            (with("algorithms = [\"HS256\"]"), "`algorithms` must be some of RS256"),
            (with("algorithms = [\"none\"]"), "`algorithms` must be some of"),
            (with("algorithms = []"), "at least one"),
            (with("audiences = []"), "`audiences` must list"),
            (with("jwks_uri = \"http://login.example.com/keys\""), "`jwks_uri` must be an https URL"),
            (with("jwks_uri = \"file:///etc/keys\"\nprivate_hosts = [\"\"]"), "`jwks_uri` must be an https URL"),
            (with("required_scopes = [\"a b\"]"), "`required_scopes`"),
            (with("required_scopes = [\"a\\\"\"]"), "`required_scopes`"),
            (with("subject_claim = \"\""), "`subject_claim`"),
            (with("tenant = \"a b\""), "`tenant`"),
            (with("ca_certificate_file = \"nowhere/at/all\""), "`ca_certificate_file` cannot be read"),
            (format!("{}{}", with(""), with("")), "is there twice"),
            ("[[issuers]]\nissuer = \"http://login.example.com\"\n".to_owned(), "`issuer` must be an https URL"),
            ("[[issuers]]\nissuer = \"login.example.com\"\n".to_owned(), "`issuer`: an issuer must be"),
            ("[[issuer]]\n".to_owned(), "unknown field `issuer`"),
        ] {
            let problems = read(&text).unwrap_err().join("; ");
            assert!(problems.contains(expected), "{text}: {problems}");
        }
        let problems = parse(&with(""), Path::new("."), None).unwrap_err().join("; ");
        assert!(problems.contains("set server.public_url"), "{problems}");
    }
}
