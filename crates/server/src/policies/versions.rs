//! The versions of a tenant's policies.

use std::sync::Arc;

use toolgate_api::policies::{
    ListPolicyVersions, PolicyFile, PolicyFiles, PolicyVersion, PolicyVersionFiles, PolicyVersionNumber,
    PolicyVersionPage, ShowPolicyVersion,
};
use toolgate_api::reading::Object;
use toolgate_api::reply::NextCursor;
use toolgate_gate::refusal::Code;

use super::active::with_rules;
use crate::mount::TypedRequest;
use crate::openintent::error::Denied;
use crate::parameters::{FromPath, page};

impl FromPath for PolicyVersionNumber {
    const MISSING: Code = Code::PolicyNotFound;
    const SHAPE: &'static str = "a policy version is a number from 1";

    fn from_path(text: &str) -> Option<Self> {
        let plain = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
        text.parse().ok().filter(|_| plain).map(Self)
    }
}

pub(super) async fn list(request: TypedRequest<ListPolicyVersions>) -> Result<PolicyVersionPage, Denied> {
    let TypedRequest { app, caller, query, .. } = request;
    let found = app.gate.policies.policy_versions(&caller, page(query.limit, query.cursor)?).await?;
    let versions = found.items.iter().map(PolicyVersion::from).collect();
    Ok(PolicyVersionPage { versions, next_cursor: NextCursor(found.next) })
}

pub(super) async fn show(request: TypedRequest<ShowPolicyVersion>) -> Result<PolicyVersionFiles, Denied> {
    let TypedRequest { app, caller, path: PolicyVersionNumber(number), .. } = request;
    let version = Arc::new(app.gate.policies.policy_version(&caller, number).await?);
    let files =
        version.files.iter().map(|file| Object(PolicyFile { name: file.name.clone(), text: file.text.clone() }));
    let files = PolicyFiles(files.collect());
    Ok(PolicyVersionFiles { version: with_rules(&app, version).await?, files })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_number_names_a_version() {
        for (text, number) in [("1", Some(1)), ("42", Some(42)), ("18446744073709551615", Some(u64::MAX))] {
            assert_eq!(PolicyVersionNumber::from_path(text).map(|version| version.0), number);
        }
        for text in ["", "0", "01", "+1", "-1", "1.0", "v3", " 1", "18446744073709551616"] {
            assert!(PolicyVersionNumber::from_path(text).is_none(), "{text}");
        }
    }
}
