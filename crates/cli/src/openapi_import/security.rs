//! Security schemes: the credentials of a service, and the scopes of operations.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use toolgate_model::credential::AuthType;

use super::Import;
use super::finding::Kind;
use super::reference::Part;
use super::text::identifier;

/// A credential that opens operations of the service.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CredentialNeed {
    /// The name of the security scheme.
    pub(crate) scheme: String,
    /// Which kind of credential to add.
    pub(crate) auth_type: AuthType,
    /// The metadata that it needs.
    pub(crate) metadata: Value,
    /// What the document says about it.
    pub(crate) note: String,
    /// How many operations name it.
    pub(crate) operations: usize,
}

/// The security schemes of a document.
#[derive(Debug, Default)]
pub(super) struct Schemes {
    needs: BTreeMap<String, CredentialNeed>,
    places: BTreeSet<(String, String)>,
}

impl<'a> Import<'a> {
    /// Reads the security schemes.
    pub(super) fn read_schemes(&mut self) {
        let root = Part { value: self.document, pointer: String::new() };
        let schemes = root.get("components").and_then(|components| components.get("securitySchemes"));
        for (name, part) in schemes.map(|schemes| schemes.members()).unwrap_or_default() {
            let pointer = part.pointer.clone();
            self.used.insert(pointer.clone());
            let need = self.resolve(part).and_then(|part| self.scheme(name, &part));
            match need {
                Ok(need) => drop(self.schemes.needs.insert(name.to_owned(), need)),
                Err(reason) => self.findings.add(Kind::SecurityScheme, &pointer, reason),
            }
        }
    }

    /// Whether the credential is sent in this part of a request.
    pub(super) fn is_credential_place(&self, place: &str, name: &str) -> bool {
        let place = (place.to_owned(), name.to_ascii_lowercase());
        place == ("header".to_owned(), "authorization".to_owned()) || self.schemes.places.contains(&place)
    }

    /// The credentials that operations need, and how many of them.
    pub(super) fn credential_needs(&mut self) -> Vec<CredentialNeed> {
        let needs = std::mem::take(&mut self.schemes.needs);
        needs.into_values().collect()
    }

    /// The scopes that an operation needs by its security requirements, the first of which the tool gets.
    pub(super) fn required_scope(&mut self, operation: &Part<'a>) -> Option<String> {
        let root = Part { value: self.document, pointer: String::new() };
        let requirements = operation.get("security").or_else(|| root.get("security"))?;
        let alternatives = requirements.elements();
        if alternatives.iter().all(|requirement| requirement.members().is_empty()) {
            self.findings.add(Kind::CredentialNotNeeded, &operation.pointer, "it requires no credential");
        }
        let mut scopes: Vec<(&'a str, String)> = Vec::new();
        for requirement in &alternatives {
            let schemes = requirement.members();
            if schemes.len() > 1 {
                let names: Vec<&str> = schemes.iter().map(|(name, _)| *name).collect();
                self.findings.add(Kind::CredentialChoice, &operation.pointer, names.join(" and "));
            }
            for (name, needed) in schemes {
                match self.schemes.needs.get_mut(name) {
                    Some(need) => need.operations += 1,
                    None => self.findings.add(Kind::SecurityScheme, &needed.pointer, format!("{name} cannot be used")),
                }
                let texts = needed.elements().into_iter().filter_map(|scope| scope.value.as_str());
                scopes.extend(texts.map(|scope| (scope, needed.pointer.clone())));
            }
        }
        let (first, pointer) = scopes.first()?.clone();
        if scopes.iter().any(|(scope, _)| *scope != first) {
            let all: Vec<&str> = scopes.iter().map(|(scope, _)| *scope).collect();
            self.findings.add(Kind::ScopeChoice, &operation.pointer, all.join(", "));
        }
        let plain = first.split_once("://").map_or(first, |(_, rest)| rest);
        let scope = identifier(plain)?;
        if scope != first {
            self.findings.add(Kind::ScopeRewritten, &pointer, format!("{first} is {scope}"));
        }
        Some(scope)
    }

    fn scheme(&mut self, name: &str, part: &Part<'a>) -> Result<CredentialNeed, String> {
        let known = ["bearerFormat", "description", "flows", "in", "name", "openIdConnectUrl", "scheme", "type"];
        self.known_members(part, &known);
        let (auth_type, metadata, mut note) = match (part.text("type"), part.text("scheme")) {
            (Some("apiKey"), _) => self.api_key(part)?,
            (Some("http"), Some(scheme)) if scheme.eq_ignore_ascii_case("bearer") => {
                (AuthType::BearerToken, json!({}), part.text("bearerFormat").unwrap_or_default().to_owned())
            }
            (Some("http"), Some(scheme)) if scheme.eq_ignore_ascii_case("basic") => {
                (AuthType::BasicAuth, json!({}), String::new())
            }
            (Some("oauth2"), _) => {
                for (name, flow) in part.get("flows").map(|flows| flows.members()).unwrap_or_default() {
                    let note = format!("authorization URL and scopes of {name}");
                    self.findings.add(Kind::Information, &flow.pointer, note);
                }
                oauth2(part)
            }
            (Some("openIdConnect"), _) => {
                let url = part.text("openIdConnectUrl").unwrap_or_default();
                (AuthType::OAuth2Token, json!({}), format!("its token_url is in {url}"))
            }
            (kind, scheme) => {
                let words: Vec<&str> = [kind, scheme].into_iter().flatten().collect();
                return Err(format!("no auth type for {}", words.join(" ")));
            }
        };
        if let Some(description) = part.text("description") {
            let first = description.lines().next().unwrap_or_default();
            note = format!("{first} {note}").trim().to_owned();
        }
        Ok(CredentialNeed { scheme: name.to_owned(), auth_type, metadata, note, operations: 0 })
    }

    fn api_key(&mut self, part: &Part<'a>) -> Result<(AuthType, Value, String), String> {
        let name = part.text("name").unwrap_or_default();
        let place = part.text("in").unwrap_or_default();
        self.schemes.places.insert((place.to_owned(), name.to_ascii_lowercase()));
        let auth = match place {
            "header" if name.eq_ignore_ascii_case("authorization") => json!({}),
            "header" => json!({"auth": {"header_name": name}}),
            "query" => json!({"auth": {"location": "query", "query_param": name}}),
            other => return Err(format!("credentials in a {other} are not supported")),
        };
        Ok((AuthType::ApiKey, auth, String::new()))
    }
}

fn oauth2(part: &Part<'_>) -> (AuthType, Value, String) {
    let flows = part.get("flows").map(|flows| flows.members()).unwrap_or_default();
    let names: Vec<&str> = flows.iter().map(|(name, _)| *name).collect();
    let client = flows.iter().find(|(name, _)| *name == "clientCredentials");
    let other = flows.iter().find(|(_, flow)| flow.text("tokenUrl").is_some());
    let auth_type = if client.is_some() { AuthType::OAuth2ClientCredentials } else { AuthType::OAuth2Token };
    let flow = client.or(other).map(|(_, flow)| flow);
    let url = flow.and_then(|flow| flow.text("refreshUrl").or_else(|| flow.text("tokenUrl")));
    let metadata = url.map_or_else(|| json!({}), |url| json!({"token_url": url}));
    (auth_type, metadata, format!("flows: {}", names.join(", ")))
}
