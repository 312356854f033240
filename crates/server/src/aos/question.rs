//! Converts what a runtime sends into a hook request: identifies the agent, and rejects what no record could contain.

use std::borrow::Cow;

use toolgate_dialect::aos;
use toolgate_dialect::jsonrpc::RpcError;
use toolgate_gate::call::HookQuestion;
use toolgate_model::guard::{Hook, HookEvent};
use toolgate_model::principal::PrincipalId;

use super::asking::Asking;
use super::profile::HookProfile;

/// The maximum length of an id or a name, in bytes. They all appear in the record.
const NAME_LIMIT: usize = 512;

/// Creates the hook request, or reports which part of the message is not valid.
pub(super) fn question(
    asked: &aos::HookQuestion,
    asking: &Asking,
    profile: &HookProfile,
) -> Result<HookQuestion, RpcError> {
    let named = asked.agent_named.then_some(asked.event.agent.id.as_ref());
    let agent = agent(asked.event.hook, named, asking.agent.as_ref(), asking.caller.id())?;
    let request = asked.id.to_string();
    if !is_name(&request) {
        let reason = format!("`id` must be {}", name_shape());
        return Err(RpcError::invalid_request(reason));
    }
    require_names(&asked.event)?;
    let mut event = asked.event.clone();
    event.agent.id = Cow::Owned(agent.as_str().to_owned());
    Ok(HookQuestion {
        agent,
        event,
        dialect: asked.dialect,
        request: Some(request),
        terms: profile.terms.clone(),
        address: asking.address,
    })
}

/// The agent of a hook request: the one that it names, else the one of the headers, else the caller. The gate decides
/// whether the caller may act for it, and records a refusal.
fn agent(
    hook: Hook,
    named: Option<&str>,
    header: Option<&PrincipalId>,
    caller: &PrincipalId,
) -> Result<PrincipalId, RpcError> {
    let Some(named) = named else { return Ok(header.unwrap_or(caller).clone()) };
    let path = match hook {
        // Such a message has two agents; which of them is meant depends on what is known of each.
        Hook::A2aSend
        | Hook::A2aStream
        | Hook::A2aCancel
        | Hook::A2aGetTask
        | Hook::A2aNotificationConfig
        | Hook::A2aOther => "params.context",
        _ => "params.context.agent.id",
    };
    let named = PrincipalId::parse(named)
        .map_err(|_| RpcError::invalid_params(path, "must be the id of an agent that this gate knows"))?;
    if header.is_some_and(|header| *header != named) {
        return Err(RpcError::invalid_params(path, "differs from the agent in the header X-Agent-ID"));
    }
    Ok(named)
}

fn require_names(event: &HookEvent<'_>) -> Result<(), RpcError> {
    let (tool, execution) = match event.hook {
        Hook::ToolCallRequest => ("params.toolCallRequest.toolId", "params.toolCallRequest.executionId"),
        Hook::ToolCallResult => ("params.toolCallResult.toolId", "params.toolCallResult.executionId"),
        _ => ("params.message.params.name", "params.message"),
    };
    let names = [
        ("params.context.agent.name", &event.agent.name),
        ("params.context.session.id", &event.session),
        ("params.context.turnId", &event.turn),
        ("params.context.stepId", &event.step),
        ("params.context.user.id", &event.user),
        (tool, &event.tool),
        (execution, &event.execution),
    ];
    match names.into_iter().find(|(_, name)| name.as_deref().is_some_and(|name| !is_name(name))) {
        Some((path, _)) => Err(RpcError::invalid_params(path, &format!("must be {}", name_shape()))),
        None => Ok(()),
    }
}

fn is_name(text: &str) -> bool {
    text.len() <= NAME_LIMIT && !text.chars().any(char::is_control)
}

fn name_shape() -> String {
    format!("at most {NAME_LIMIT} bytes without control characters")
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolgate_model::guard::Direction;
    use toolgate_model::time::Timestamp;

    use super::*;

    fn id(text: &str) -> PrincipalId {
        PrincipalId::parse(text).unwrap()
    }

    fn event(session: &str) -> HookEvent<'static> {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "steps/memoryStore", "params": {
            "memory": ["one"], "context": {"agent": {"id": "a"}, "session": {"id": session}}
        }});
        match aos::read(body.to_string().as_bytes(), Timestamp::EPOCH).unwrap() {
            aos::Incoming::Single(aos::Message::Hook(asked)) => asked.event,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_question_is_about_the_agent_that_it_names_or_else_about_whoever_asks() {
        let (runtime, worker) = (id("runtime"), id("worker"));
        let hook = Hook::Mcp(Direction::Outbound);
        assert_eq!(agent(hook, Some("worker"), None, &runtime), Ok(worker.clone()));
        assert_eq!(agent(hook, Some("worker"), Some(&worker), &runtime), Ok(worker.clone()));
        assert_eq!(agent(hook, None, Some(&worker), &runtime), Ok(worker.clone()));
        assert_eq!(agent(hook, None, None, &runtime), Ok(runtime.clone()));
    }

    #[test]
    fn an_agent_that_cannot_be_or_that_the_header_contradicts_is_refused_by_its_path() {
        let (runtime, worker) = (id("runtime"), id("worker"));
        for (named, header) in [("not an id", None), ("other", Some(&worker))] {
            let error = agent(Hook::MemoryStore, Some(named), header, &runtime).unwrap_err();
            assert_eq!((error.code, error.data), (-32602, Some(json!({"path": "params.context.agent.id"}))));
            assert!(!error.message.contains(named));
        }
    }

    #[test]
    fn a_name_that_no_record_could_hold_is_refused_by_its_path() {
        require_names(&event("84c36ebb-83aa-4bc9-8670-7aba4cedc70f")).unwrap();
        for bad in ["x".repeat(NAME_LIMIT + 1), "\u{0}".to_owned(), "\u{1b}[2J".to_owned()] {
            let error = require_names(&event(&bad)).unwrap_err();
            assert_eq!((error.code, error.data), (-32602, Some(json!({"path": "params.context.session.id"}))));
        }
    }
}
