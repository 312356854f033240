//! The context of a hook: the agent, the conversation and the user. AOS requires steps to name the agent; its own
//! examples of MCP and A2A do not, so it is optional there.

use toolgate_model::guard::Dialect;
use toolgate_model::time::Timestamp;

use super::fields::{InvalidMember, Object};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Context {
    pub(crate) agent: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) session: Option<String>,
    pub(crate) turn: Option<String>,
    pub(crate) step: Option<String>,
    pub(crate) user: Option<String>,
    pub(crate) dialect: Dialect,
}

/// Reads `context` of a step, which must name the agent.
pub(crate) fn read_step(outer: &Object<'_>) -> Result<Context, InvalidMember> {
    let context = outer.object("context")?;
    context.object("agent")?.name("id")?;
    read(outer)
}

/// Reads `context` of a hook on another protocol, which may lack it.
pub(crate) fn read(outer: &Object<'_>) -> Result<Context, InvalidMember> {
    let Some(context) = outer.optional_object("context")? else {
        return Ok(Context { dialect: Dialect::Aos, ..Context::default() });
    };
    if let Some(time) = context.optional_text("timestamp")? {
        // Checked but not used: the sender's clock is not trusted.
        Timestamp::parse(time).map_err(|_| context.invalid_member("timestamp", "must be an RFC 3339 timestamp"))?;
    }
    let id_of = |name: &str| -> Result<Option<String>, InvalidMember> {
        let Some(object) = context.optional_object(name)? else { return Ok(None) };
        Ok(object.optional_text("id")?.map(str::to_owned))
    };
    let mut read = Context {
        session: id_of("session")?,
        turn: context.optional_text("turnId")?.map(str::to_owned),
        step: context.optional_text("stepId")?.map(str::to_owned),
        user: id_of("user")?,
        dialect: Dialect::Aos,
        ..Context::default()
    };
    if let Some(agent) = observed(&context)? {
        read.agent = agent.has("id").then(|| agent.name("id")).transpose()?.map(str::to_owned);
        read.name = agent.optional_text("name")?.map(str::to_owned);
        read.dialect = if agent.has("url") || agent.has("instructions") { Dialect::Aos } else { Dialect::Joch };
    }
    Ok(read)
}

/// The agent that asks: `agent`, or the more detailed one of the two A2A sides, because a peer is known only by its
/// card.
fn observed<'v>(context: &Object<'v>) -> Result<Option<Object<'v>>, InvalidMember> {
    if let Some(agent) = context.optional_object("agent")? {
        return Ok(Some(agent));
    }
    let side = |name: &str| -> Result<Option<Object<'v>>, InvalidMember> {
        context.optional_object(name)?.map(|side| side.object("agent")).transpose()
    };
    let (from, to) = (side("from")?, side("to")?);
    let detail = |agent: &Object<'_>| (agent.has("instructions") || agent.has("provider"), agent.has("id"));
    Ok(match (from, to) {
        (Some(from), Some(to)) if detail(&to) > detail(&from) => Some(to),
        (Some(from), _) => Some(from),
        (None, to) => to,
    })
}
