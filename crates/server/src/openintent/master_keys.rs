//! Which master key wraps what, and changing it.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use serde_json::{Value, json};
use toolgate_gate::maintenance::master_keys::KeyStatus;

use super::error::Denied;
use crate::body::{Nothing, OptionalBody};
use crate::caller::Identified;
use crate::router::App;

pub(super) async fn status(State(app): State<Arc<App>>, Identified(caller): Identified) -> Result<Json<Value>, Denied> {
    Ok(Json(shape(&app.gate.maintenance.key_status(&caller).await?)))
}

/// Answers at once; the work goes on in the background, and `remaining` tells how much is left.
pub(super) async fn rekey(
    State(app): State<Arc<App>>,
    Identified(caller): Identified,
    OptionalBody(Nothing {}): OptionalBody<Nothing>,
) -> Result<(StatusCode, Json<Value>), Denied> {
    Ok((StatusCode::ACCEPTED, Json(shape(&app.gate.maintenance.begin_rekey(&caller).await?))))
}

fn shape(status: &KeyStatus) -> Value {
    let keys = status.usage.iter().map(|usage| {
        json!({
            "key_id": usage.key.0,
            "current": usage.key == status.current,
            "wraps": usage.wraps,
            "retired_at": usage.retired_at,
        })
    });
    json!({"current": status.current.0, "remaining": status.remaining(), "keys": keys.collect::<Vec<_>>()})
}
