//! The base URL of the service. A definition has one; a document may have several, with variables, and one per operation.

use serde_json::Value;
use toolgate_model::connection::BaseUrl;

use super::Import;
use super::finding::Kind;
use super::operation::Operation;
use super::reference::{Part, below};

impl<'a> Import<'a> {
    /// The address of the service: the first server, unless the caller knows better.
    pub(super) fn base_url(&mut self, wanted: Option<&BaseUrl>) -> Option<BaseUrl> {
        let root = Part { value: self.document, pointer: String::new() };
        let servers = root.get("servers").map(|servers| servers.elements()).unwrap_or_default();
        let mut chosen = None;
        for (position, server) in servers.iter().enumerate() {
            self.known_members(server, &["description", "name", "url", "variables"]);
            for (name, remark) in
                server.members().into_iter().filter(|(name, _)| matches!(*name, "description" | "name"))
            {
                self.findings.add(Kind::Information, &remark.pointer, name);
            }
            let url = server.text("url").unwrap_or_default();
            if position > 0 {
                self.findings.add(Kind::Server, &server.pointer, url);
                continue;
            }
            let address = self.with_defaults(server);
            self.server = Some(address.trim_end_matches('/').to_owned());
            match BaseUrl::parse(&address) {
                Ok(base) => chosen = Some(base),
                Err(_) if wanted.is_some() => {}
                Err(reason) => {
                    let note =
                        format!("{url} {reason}; pass --base-url, or set base_url in the metadata of the credential");
                    self.findings.add(Kind::Server, &server.pointer, note);
                }
            }
            if let Some(wanted) = wanted.filter(|wanted| chosen.as_ref() != Some(*wanted)) {
                self.findings.add(Kind::Server, &server.pointer, format!("{url}; {wanted} was requested"));
            }
        }
        wanted.cloned().or(chosen)
    }

    /// The address of a service whose document leaves it to the operations, if all of them say the same.
    pub(super) fn common_server(&mut self, operations: &[Operation<'a>]) -> Option<BaseUrl> {
        if self.document.get("servers").is_some() {
            return None;
        }
        let mut common: Option<String> = None;
        for operation in operations {
            let server = operation.server_holder().get("servers")?.elements().into_iter().next()?;
            let address = self.with_defaults(&server).trim_end_matches('/').to_owned();
            if common.get_or_insert_with(|| address.clone()) != &address {
                return None;
            }
        }
        self.server = common;
        BaseUrl::parse(self.server.as_deref()?).ok()
    }

    /// Refuses operations that are somewhere else: a call would go to the wrong place, with the credential.
    pub(super) fn check_server(&mut self, holder: &Part<'a>) -> Result<(), String> {
        let Some(servers) = holder.get("servers") else { return Ok(()) };
        let elements = servers.elements();
        let Some(first) = elements.first() else { return Ok(()) };
        let address = self.with_defaults(first);
        if self.server.as_deref() != Some(address.trim_end_matches('/')) {
            return Err(format!(
                "it is at {address}, not at the base URL of the service; import it as a separate service"
            ));
        }
        for other in elements.iter().skip(1) {
            self.findings.add(Kind::Server, &other.pointer, other.text("url").unwrap_or_default());
        }
        Ok(())
    }

    /// The address with the default of each variable.
    fn with_defaults(&mut self, server: &Part<'a>) -> String {
        let mut address = server.text("url").unwrap_or_default().to_owned();
        for (name, variable) in server.get("variables").map(|variables| variables.members()).unwrap_or_default() {
            let default = variable.value.get("default").map(plain).unwrap_or_default();
            self.findings.add(
                Kind::ServerVariable,
                &below(&variable.pointer, "default"),
                format!("{name} is {default}"),
            );
            address = address.replace(&format!("{{{name}}}"), &default);
        }
        if address.starts_with("//") {
            self.findings.add(
                Kind::ServerVariable,
                &below(&server.pointer, "url"),
                "its scheme is assumed to be https",
            );
            address.insert_str(0, "https:");
        }
        address
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
