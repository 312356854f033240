//! Everything in a document besides operations: used for the service, or reported.

use toolgate_model::credential::ServiceName;
use toolgate_model::service::ServiceVersion;

use super::finding::Kind;
use super::reference::{Part, below};
use super::text::{description, identifier, slug};
use super::{Import, ImportError, ImportOptions};

const ROOT: [&str; 9] =
    ["components", "externalDocs", "info", "jsonSchemaDialect", "openapi", "paths", "security", "servers", "tags"];
const COMPONENTS: [&str; 10] = [
    "callbacks",
    "examples",
    "headers",
    "links",
    "parameters",
    "pathItems",
    "requestBodies",
    "responses",
    "schemas",
    "securitySchemes",
];

type About = (ServiceName, ServiceVersion, Option<String>);

impl<'a> Import<'a> {
    /// What the document says about itself.
    pub(super) fn information(&mut self, root: &Part<'a>, options: &ImportOptions) -> Result<About, ImportError> {
        let info = root.get("info").unwrap_or_else(|| root.clone());
        let title = info.text("title").unwrap_or_default();
        let service = match &options.service {
            Some(service) => service.clone(),
            None => slug(title).and_then(|name| ServiceName::parse(&name).ok()).ok_or(ImportError::NoName)?,
        };
        let written = info.get("version").map(|version| version.value);
        let written = written.map(|version| version.as_str().map_or_else(|| version.to_string(), str::to_owned));
        let version = match &options.version {
            Some(version) => version.clone(),
            None => {
                let version = written.as_deref().and_then(identifier);
                version.and_then(|text| ServiceVersion::parse(&text).ok()).ok_or(ImportError::NoVersion)?
            }
        };
        let said = info.text("description").filter(|text| !text.trim().is_empty());
        let (text, changed) = description(said.unwrap_or(title));
        if changed {
            self.findings.add(Kind::Text, &below(&info.pointer, "description"), "description");
        }
        for (name, part) in root.get("info").map(|info| info.members()).unwrap_or_default() {
            let is_taken = match name {
                "description" => true,
                "title" => said.is_none(),
                "version" => written.as_deref() == Some(version.as_str()),
                _ => false,
            };
            if !is_taken {
                self.findings.add(Kind::Information, &part.pointer, name);
            }
        }
        Ok((service, version, text))
    }

    /// What is left when all operations are done.
    pub(super) fn leftover(&mut self, root: &Part<'a>) {
        for (name, webhook) in root.get("webhooks").map(|webhooks| webhooks.members()).unwrap_or_default() {
            self.findings.add(Kind::Webhook, &webhook.pointer, name);
        }
        self.known_members(root, &[&ROOT[..], &["webhooks"]].concat());
        for name in ["externalDocs", "jsonSchemaDialect"] {
            if let Some(part) = root.get(name) {
                self.findings.add(Kind::Information, &part.pointer, name);
            }
        }
        for tag in root.get("tags").map(|tags| tags.elements()).unwrap_or_default() {
            // A tag that has no more than its name says nothing of its own.
            if tag.members().iter().any(|(name, _)| *name != "name") {
                self.findings.add(Kind::Tag, &tag.pointer, tag.text("name").unwrap_or_default());
            }
        }
        let components = root.get("components");
        if let Some(components) = &components {
            self.known_members(components, &COMPONENTS);
        }
        for (section, parts) in components.map(|components| components.members()).unwrap_or_default() {
            for (name, part) in parts.members() {
                let inside = below(&part.pointer, "");
                let is_used = self.used.contains(&part.pointer)
                    || self.used.range(inside.clone()..).next().is_some_and(|pointer| pointer.starts_with(&inside));
                if !is_used && COMPONENTS.contains(&section) {
                    self.findings.add(Kind::ComponentUnused, &part.pointer, name);
                }
            }
        }
    }
}
