//! `tools/list`: the tools that the caller may call, by name. A page begins behind the name that its cursor holds.

use std::sync::Arc;

use toolgate_gate::Caller;
use toolgate_gate::catalog::Tool;
use toolgate_gate::refusal::Refusal;
use toolgate_model::tool_alias;

use super::era::Era;
use super::message::Params;
use super::reply::{Reply, RpcError, SERVER_INFO, server_info};
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
    if after.as_deref().is_some_and(|after| tool_alias::read(after).is_none()) {
        return Err(RpcError::invalid_params("`params.cursor` is not one that a list gave"));
    }
    let tools = visible(app, caller).await.map_err(|refusal| RpcError::of_refusal(&refusal))?;
    let start = after.map_or(0, |after| tools.partition_point(|tool| tool.alias().as_str() <= after.as_str()));
    let rest = tools.get(start..).unwrap_or_default();
    Ok(Reply::Written(written(rest, era)))
}

/// One page. The text of each tool is there already: a list is put together, not built.
fn written(tools: &[Arc<Tool>], era: Era) -> String {
    let page = tools.get(..PAGE).unwrap_or(tools);
    let length: usize = page.iter().map(|tool| tool.listing().len() + 1).sum();
    let mut text = String::with_capacity(length + 256);
    text.push_str("{\"tools\":[");
    for (number, tool) in page.iter().enumerate() {
        if number > 0 {
            text.push(',');
        }
        text.push_str(tool.listing());
    }
    text.push(']');
    if let Some(last) = page.last().filter(|_| tools.len() > page.len()) {
        // INVARIANT: an alias needs no escaping.
        text.push_str(&format!(",\"nextCursor\":\"{}\"", last.alias()));
    }
    if era.is_modern() {
        text.push_str(&format!(
            ",\"resultType\":\"complete\",\"ttlMs\":{LIFETIME},\"cacheScope\":\"private\",\"_meta\":{{\"{SERVER_INFO}\":{}}}",
            server_info()
        ));
    }
    text.push('}');
    text
}
