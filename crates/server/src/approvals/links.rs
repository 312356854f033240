//! One-time links: where one leads, for whoever has a key and may answer. Using a link up takes a POST, so that programs
//! that look at links before people do use none up.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde_json::Value;
use toolgate_gate::refusal::Code;
use toolgate_model::approval::LinkToken;

use super::shapes;
use crate::body::{Nothing, OptionalBody};
use crate::caller::Identified;
use crate::openintent::error::Denied;
use crate::parameters::{FromPath, Id};
use crate::router::App;

impl FromPath for LinkToken {
    const MISSING: Code = Code::ApprovalNotFound;
    const SHAPE: &'static str = "a link ends with 64 digits from 0 to 9 and a to f";

    fn from_path(text: &str) -> Option<Self> {
        Self::parse(text).ok()
    }
}

pub(super) async fn redeem(
    State(app): State<Arc<App>>,
    Identified(caller): Identified,
    Id(token): Id<LinkToken>,
    OptionalBody(Nothing {}): OptionalBody<Nothing>,
) -> Result<Json<Value>, Denied> {
    let approval = app.gate.approvals.redeem_approval_link(&caller, &token).await?;
    Ok(Json(shapes::approval(&approval, &app.gate.approvals.present(&approval).await?)))
}
