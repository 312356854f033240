//! Events of mounts.

use super::*;
use crate::service::ToolName;

pub(super) fn mounts() -> Vec<EventPayload> {
    let mount = ServiceName::parse("files").unwrap();
    let tool = ToolName::parse("read_file").unwrap();
    let (upstream, hash) = ("read_file".to_owned(), format!("sha256:{}", "ab".repeat(32)));
    let other = || Some(format!("sha256:{}", "cd".repeat(32)));
    let accepted = |change: &str, overridden: &[&str], previous_hash| {
        EventPayload::MountToolAccepted(MountToolAccepted {
            change: change.to_owned(),
            hash: hash.clone(),
            mount: mount.clone(),
            overridden: overridden.iter().map(|&code| code.to_owned()).collect(),
            previous_hash,
            tool: tool.clone(),
            upstream: upstream.clone(),
        })
    };
    let quarantined = |change: &str, hash, pinned_hash| {
        EventPayload::MountToolQuarantined(MountToolQuarantined {
            change: change.to_owned(),
            hash,
            mount: mount.clone(),
            pinned_hash,
            tool: tool.clone(),
            upstream: upstream.clone(),
        })
    };
    vec![
        EventPayload::MountAdded(MountAdded {
            address: "https://files.example/mcp".to_owned(),
            mount: mount.clone(),
            tools: 3,
            trusted: false,
        }),
        EventPayload::MountRemoved(MountRemoved { mount: mount.clone() }),
        EventPayload::MountServerAccepted(MountServerAccepted {
            hash: hash.clone(),
            mount: mount.clone(),
            overridden: Vec::new(),
            previous_hash: None,
        }),
        EventPayload::MountServerAccepted(MountServerAccepted {
            hash: hash.clone(),
            mount: mount.clone(),
            overridden: vec!["concealment".to_owned()],
            previous_hash: other(),
        }),
        EventPayload::MountServerQuarantined(MountServerQuarantined {
            hash: hash.clone(),
            mount: mount.clone(),
            pinned_hash: other().unwrap(),
            replaced: true,
        }),
        accepted("new", &[], None),
        accepted("changed", &["hidden_characters", "secret_place"], other()),
        quarantined("new", Some(hash.clone()), None),
        quarantined("removed", None, other()),
        EventPayload::MountToolRejected(MountToolRejected {
            hash: hash.clone(),
            mount: mount.clone(),
            tool: tool.clone(),
            upstream: upstream.clone(),
        }),
        EventPayload::MountToolRestored(MountToolRestored {
            hash: hash.clone(),
            mount: mount.clone(),
            tool: tool.clone(),
            upstream: upstream.clone(),
        }),
    ]
}
