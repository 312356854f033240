//! Modern servers that interrupt a call of a session: its client is asked while the call is open, and the server gets what it
//! sends with the same request again.

use std::borrow::Cow;

use tokio::time::Instant;
use toolgate_gate::call::Admitted;
use toolgate_gate::ports::source::SourceFailure;
use toolgate_model::client_input::{ClientInput, InputOrigin};
use toolgate_model::redaction::Redactor;
use toolgate_model::service::McpMapping;

use super::input;
use super::message::Request;
use super::questions::Questions;
use super::result::Raw;

/// How often a server may interrupt one call.
pub(crate) const ROUNDS: usize = 8;

/// A call that a modern server interrupts, and whose client is asked at once, because it belongs to a session.
pub(crate) struct Rounds<'a> {
    pub(crate) call: &'a Admitted,
    pub(crate) mapping: &'a McpMapping,
    pub(crate) questions: &'a Questions<'a>,
    pub(crate) deadline: Instant,
}

impl<'a> Rounds<'a> {
    /// The same request with what the client has sent; `None` where nothing is asked, or the client does not respond.
    pub(crate) async fn next(&self, raw: &Result<Raw, SourceFailure>, redactor: &Redactor) -> Option<Request<'a>> {
        let Self { call, mapping, questions, deadline } = *self;
        let declared = questions.capabilities();
        let (requests, asked) = input::checked(raw.as_ref().ok()?, redactor, mapping.hidden_characters, declared)?;
        let responses = questions.gather(&requests, deadline).await?;
        let origin = InputOrigin {
            service: call.invocation().service.clone()?,
            endpoint: None,
            credential: call.credential()?.credential.id,
            asked: Vec::new(),
            state: asked.state,
        };
        let input = ClientInput { capabilities: declared, responses, origin: Some(origin) };
        let message = mapping.message(call.parameters().as_object()?, Some(&input)).ok()?;
        let mut request = Request::rendered(mapping, Cow::Owned(message), call.parameters());
        request.observed = call.is_observed();
        request.mirrored = call.parameters().as_object().map(|arguments| (call.mirrored(), arguments));
        request.input = Some(declared);
        Some(request)
    }
}
