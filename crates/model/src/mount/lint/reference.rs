//! References of schemas. The gate never fetches one, and a model or a client that does would read a definition that
//! nobody has seen.

use super::{Findings, LintCode};

/// Checks the value of a member that refers to something.
pub(super) fn check(text: &str, path: &str, findings: &mut Findings) {
    let member = path.rsplit('.').next().unwrap_or_default();
    if matches!(member, "$ref" | "$dynamicRef" | "$recursiveRef") && !text.starts_with('#') {
        findings.add(LintCode::RemoteReference, path, "refers to something outside the schema");
    }
}
