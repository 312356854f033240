//! `tools/list`: the tools that the caller may call, by name. A page begins behind the name that its cursor holds.

use std::sync::Arc;

use serde_json::json;
use toolgate_gate::Caller;
use toolgate_gate::catalog::Tool;
use toolgate_gate::refusal::Refusal;

use super::era::Era;
use super::message::Params;
use super::progressive;
use super::reply::{Reply, RpcError, SERVER_INFO, ServerInfo};
use crate::router::App;

/// The most tools of one page.
const PAGE: usize = 1_000;
/// How long a client may rely on a list, in milliseconds. It hears of changes earlier where it listens for them.
const LIFETIME: u64 = 10_000;

/// The tools that a caller sees.
pub(super) async fn visible(app: &App, caller: &Caller) -> Result<Vec<Arc<Tool>>, Refusal> {
    let mut tools = app.gate.administration.callable_tools(caller).await?;
    tools.retain(|tool| !tool.forwards_protocol());
    Ok(tools)
}

pub(super) async fn tools(app: &App, caller: &Caller, era: Era, params: &mut Params) -> Result<Reply, RpcError> {
    let after = params.take_optional_text("cursor")?;
    if progressive::is_on(caller) {
        if after.is_some() {
            return Err(RpcError::unknown_cursor());
        }
        let listings = progressive::listings().map(|listing| listing.to_string());
        return Ok(Reply::Written(written(listings.iter().map(String::as_str), None, era)));
    }
    let tools = visible(app, caller).await.map_err(|refusal| RpcError::of_refusal(&refusal))?;
    let start = match after {
        None => 0,
        Some(after) => {
            let start = tools.partition_point(|tool| tool.alias().as_str() <= after.as_str());
            // Where the last tool of a page is gone meanwhile, the client begins again.
            let last = start.checked_sub(1).and_then(|last| tools.get(last));
            last.filter(|last| last.alias().as_str() == after).ok_or_else(RpcError::unknown_cursor)?;
            start
        }
    };
    let rest = tools.get(start..).unwrap_or_default();
    let page = rest.get(..PAGE).unwrap_or(rest);
    let next = page.last().filter(|_| rest.len() > page.len()).map(|last| last.alias().as_str());
    Ok(Reply::Written(written(page.iter().map(|tool| tool.listing()), next, era)))
}

/// One page. The text of each tool is there already: a list is put together, not built.
fn written<'a>(page: impl Iterator<Item = &'a str> + Clone, next: Option<&str>, era: Era) -> String {
    let length: usize = page.clone().map(|listing| listing.len() + 1).sum();
    let mut text = String::with_capacity(length + 256);
    text.push_str("{\"tools\":[");
    for (number, listing) in page.enumerate() {
        if number > 0 {
            text.push(',');
        }
        text.push_str(listing);
    }
    text.push(']');
    if let Some(next) = next {
        // INVARIANT: an alias needs no escaping.
        text.push_str(&format!(",\"nextCursor\":\"{next}\""));
    }
    if era.is_modern() {
        text.push_str(&format!(
            ",\"resultType\":\"complete\",\"ttlMs\":{LIFETIME},\"cacheScope\":\"private\",\"_meta\":{{\"{SERVER_INFO}\":{}}}",
            json!(ServerInfo::OWN)
        ));
    }
    text.push('}');
    text
}
