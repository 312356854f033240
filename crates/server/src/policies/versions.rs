//! The versions of a tenant's policies.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};
use toolgate_api::parameters::Paging;
use toolgate_gate::refusal::Code;

use super::active::with_rules;
use super::shapes;
use crate::caller::{Asked, Identified};
use crate::openintent::error::Denied;
use crate::parameters::{FromPath, Id, page};
use crate::router::App;

/// The number of a version in a path.
pub(super) struct VersionNumber(u64);

impl FromPath for VersionNumber {
    const MISSING: Code = Code::PolicyNotFound;
    const SHAPE: &'static str = "the version of policies is a number from 1";

    fn from_path(text: &str) -> Option<Self> {
        let plain = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
        text.parse().ok().filter(|_| plain).map(Self)
    }
}

pub(super) async fn list(
    State(app): State<Arc<App>>,
    Asked(caller, paging): Asked<Paging>,
) -> Result<Json<Value>, Denied> {
    let found = app.gate.policy_versions(&caller, page(paging.limit, paging.cursor)?).await?;
    let versions: Vec<Value> = found.items.iter().map(|version| Value::Object(shapes::version(version))).collect();
    Ok(Json(json!({"versions": versions, "next_cursor": found.next})))
}

pub(super) async fn show(
    State(app): State<Arc<App>>,
    Identified(caller): Identified,
    Id(VersionNumber(number)): Id<VersionNumber>,
) -> Result<Json<Value>, Denied> {
    let version = Arc::new(app.gate.policy_version(&caller, number).await?);
    let mut shape = with_rules(&app, Arc::clone(&version)).await?;
    shape.insert("files".to_owned(), version.files.iter().map(shapes::file).collect());
    Ok(Json(Value::Object(shape)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_number_names_a_version() {
        for (text, number) in [("1", Some(1)), ("42", Some(42)), ("18446744073709551615", Some(u64::MAX))] {
            assert_eq!(VersionNumber::from_path(text).map(|version| version.0), number);
        }
        for text in ["", "0", "01", "+1", "-1", "1.0", "v3", " 1", "18446744073709551616"] {
            assert!(VersionNumber::from_path(text).is_none(), "{text}");
        }
    }
}
