//! The ids of tools, unique over all sources: a scope for the source of the tool, a colon, and its name there
//! (`connector:stripe.charges.create`).

use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::SourceKind;
use crate::credential::ServiceName;
use crate::service::ToolName;

const CONNECTOR: &str = "connector";
const CORE: &str = "openwop";
const MCP: &str = "mcp";
/// The prefix of the scope of a host extension, followed by its service.
const HOST_EXTENSION: &str = "x-host-";
/// Replaces, in the name of a service, the character that ends it in the id. No name contains it.
const ESCAPE: &str = "~";

/// The id of a tool.
///
/// INVARIANT: two tools of one tenant never have the same id. The separator of service and tool does not occur in the
/// service's part: service `a.b` with tool `c` is `connector:a~b.c`, service `a` with tool `b.c` is `connector:a.b.c`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct ToolId(String);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("must be a tool id: connector:SERVICE.TOOL, mcp:SERVER.TOOL, x-host-SERVICE:TOOL or openwop:TOOL")]
pub struct ToolIdError;

impl ToolId {
    /// The id of a service's tool; `None` for sources without services.
    pub fn of_service(source: SourceKind, service: &ServiceName, tool: &ToolName) -> Option<Self> {
        let service = service.as_str();
        Some(Self(match source {
            SourceKind::Connector => format!("{CONNECTOR}:{}.{tool}", service.replace('.', ESCAPE)),
            SourceKind::Mcp => format!("{MCP}:{}.{tool}", service.replace('.', ESCAPE)),
            SourceKind::HostExtension => format!("{HOST_EXTENSION}{}:{tool}", service.replace(':', ESCAPE)),
            SourceKind::NodePack | SourceKind::Workflow => return None,
        }))
    }

    /// The id of a tool in the protocol's own scope, such as `openwop:http.fetch`.
    pub fn core(tool: &ToolName) -> Self {
        Self(format!("{CORE}:{tool}"))
    }

    pub fn parse(text: &str) -> Result<Self, ToolIdError> {
        read(text).map(|_| Self(text.to_owned())).ok_or(ToolIdError)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The service and the tool, for sources with services.
    pub fn service_and_tool(&self) -> Option<(SourceKind, ServiceName, ToolName)> {
        match read(&self.0)? {
            Read::Service(source, service, tool) => Some((source, service, tool)),
            Read::Core => None,
        }
    }

    /// Whether a tool with this id can come from this source.
    pub fn fits(&self, source: SourceKind) -> bool {
        match read(&self.0) {
            Some(Read::Service(own, ..)) => own == source,
            Some(Read::Core) => matches!(source, SourceKind::NodePack | SourceKind::Workflow),
            None => false,
        }
    }
}

impl fmt::Display for ToolId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl fmt::Debug for ToolId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for ToolId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

enum Read {
    Service(SourceKind, ServiceName, ToolName),
    Core,
}

fn read(text: &str) -> Option<Read> {
    let (scope, name) = text.split_once(':')?;
    let service = |source, service: &str, separator, tool| {
        let service = ServiceName::parse(&service.replace(ESCAPE, separator)).ok()?;
        Some(Read::Service(source, service, ToolName::parse(tool).ok()?))
    };
    if let Some(extension) = scope.strip_prefix(HOST_EXTENSION) {
        return service(SourceKind::HostExtension, extension, ":", name);
    }
    let source = match scope {
        CORE => return ToolName::parse(name).ok().map(|_| Read::Core),
        CONNECTOR => SourceKind::Connector,
        MCP => SourceKind::Mcp,
        _ => return None,
    };
    let (own, tool) = name.split_once('.')?;
    service(source, own, ".", tool)
}
