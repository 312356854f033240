//! `toolgate approvals decide`, and the request of every decision from the terminal.

use clap::{ArgGroup, Args, ValueEnum};
use serde_json::{Value, json};
use toolgate_api::approvals::{ApprovalScope, DecideApproval, DecisionRequest, Extent, PrefixExtent, ScopeWord};
use toolgate_model::approval::{Channel, Decision, RequestedReach};
use toolgate_model::invocation::IdempotencyKey;

use super::approval::Approval;
use crate::client::{Client, ClientError};
use crate::command::Failure;
use crate::command::values::typed_option;
use crate::durations::parse_seconds;
use crate::output::{Report, clean};

#[derive(Args)]
#[command(group(ArgGroup::new("decision").required(true).args(["approve", "deny", "overriding"])))]
pub(crate) struct Decide {
    /// Approval id
    id: String,
    /// Approve the call
    #[arg(long)]
    approve: bool,
    /// Deny the call
    #[arg(long, conflicts_with_all = ["scope", "prefix", "answer", "expires_in", "max_uses"])]
    deny: bool,
    /// Approve although the requirements are not met, if the rule permits it; requires --reason
    #[arg(long = "override", requires = "reason", conflicts_with_all = ["scope", "prefix", "expires_in", "max_uses"])]
    overriding: bool,
    /// Scope of the approval: this call, or also later calls of the same tool by the same agent
    #[arg(long, value_enum)]
    scope: Option<Scope>,
    /// Cover only commands that start with these words
    #[arg(long, value_name = "WORDS")]
    prefix: Option<String>,
    /// Reason, for the agent and the audit log
    #[arg(long)]
    reason: Option<String>,
    /// Answer, if the call is a question
    #[arg(long)]
    answer: Option<String>,
    /// Expiry of the standing approval: a duration such as 8h or 30m, or a number of seconds
    #[arg(long, value_name = "DURATION", value_parser = seconds)]
    expires_in: Option<u32>,
    /// Maximum number of later calls
    #[arg(long, value_name = "N")]
    max_uses: Option<u32>,
    /// Idempotency key: the decision counts once per key
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Scope {
    /// Only this call
    Once,
    /// Also later calls, in the session of this call if it has one
    Always,
    /// Also later calls in the same session
    Session,
    /// Also later calls in the same directory
    Workspace,
    /// Also later calls from anywhere
    User,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct StandingRequest {
    /// A prefix of commands; without one, every call of the tool is covered.
    pub(super) prefix: Option<String>,
    /// Chosen by the gate if absent.
    pub(super) reach: Option<RequestedReach>,
    pub(super) expires_in_seconds: Option<u32>,
    pub(super) max_uses: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct ApproverDecision {
    pub(super) approve: bool,
    /// Approves although the requirements are not met.
    pub(super) overriding: bool,
    pub(super) standing: Option<StandingRequest>,
    pub(super) reason: Option<String>,
    pub(super) answer: Option<String>,
    pub(super) idempotency_key: Option<IdempotencyKey>,
}

impl ApproverDecision {
    /// Returns the approval after the decision.
    pub(super) async fn send(&self, client: &Client, id: &str) -> Result<Value, ClientError> {
        client.to::<DecideApproval>().named(id).body(&self.body()).send_as().await
    }

    fn body(&self) -> DecisionRequest {
        let once = || ApprovalScope::Word(ScopeWord::Once);
        let scope = self.approve.then(|| self.standing.as_ref().map_or_else(once, StandingRequest::scope));
        DecisionRequest {
            decision: match (self.overriding, self.approve) {
                (true, _) => Decision::Override,
                (false, true) => Decision::Approve,
                (false, false) => Decision::Deny,
            },
            scope: scope.map(|scope| json!(scope)),
            reason: self.reason.clone(),
            answer: self.answer.clone(),
            idempotency_key: self.idempotency_key.clone(),
            channel: Some(Channel::Terminal),
        }
    }
}

impl StandingRequest {
    fn scope(&self) -> ApprovalScope {
        let extent = Extent { reach: self.reach, expires_in_seconds: self.expires_in_seconds, max_uses: self.max_uses };
        match &self.prefix {
            Some(prefix) => ApprovalScope::AlwaysPrefix {
                always_prefix: PrefixExtent {
                    prefix: prefix.clone(),
                    reach: self.reach,
                    expires_in_seconds: self.expires_in_seconds,
                    max_uses: self.max_uses,
                },
            },
            None if extent == Extent::default() => ApprovalScope::Word(ScopeWord::Always),
            None => ApprovalScope::Always { always: extent },
        }
    }
}

impl Decide {
    pub(super) async fn run(self, client: &Client) -> Result<Report, Failure> {
        let (id, decision) = self.decision()?;
        let value = decision.send(client, &id).await?;
        let text = described(&value);
        Ok(Report::new(value, text))
    }

    fn decision(self) -> Result<(String, ApproverDecision), Failure> {
        let request = StandingRequest {
            reach: match self.scope {
                Some(Scope::Session) => Some(RequestedReach::Session),
                Some(Scope::Workspace) => Some(RequestedReach::Workspace),
                Some(Scope::User) => Some(RequestedReach::User),
                Some(Scope::Once | Scope::Always) | None => None,
            },
            prefix: self.prefix,
            expires_in_seconds: self.expires_in,
            max_uses: self.max_uses,
        };
        let later = self.scope.is_some_and(|scope| scope != Scope::Once);
        let standing = match () {
            () if self.scope == Some(Scope::Once) && request != StandingRequest::default() => {
                let sentence = "--scope once covers no later calls; remove it, or remove --prefix, --expires-in and \
                    --max-uses";
                return Err(Failure::Usage(sentence.to_owned()));
            }
            () if !later && request.prefix.is_none() && request != StandingRequest::default() => {
                let sentence = "--expires-in and --max-uses require a decision that covers later calls; pass --scope or \
                    --prefix";
                return Err(Failure::Usage(sentence.to_owned()));
            }
            () if later || request.prefix.is_some() => Some(request),
            () => None,
        };
        let decision = ApproverDecision {
            approve: self.approve,
            overriding: self.overriding,
            standing,
            reason: self.reason,
            answer: self.answer,
            idempotency_key: typed_option("idempotency_key", self.idempotency_key)?,
        };
        Ok((self.id, decision))
    }
}

fn seconds(text: &str) -> Result<u32, String> {
    u32::try_from(parse_seconds(text)?).map_err(|_| "it must be at most 136 years".to_owned())
}

pub(super) fn described(value: &Value) -> String {
    let Ok(approval) = Approval::read(value) else { return "the decision was recorded".to_owned() };
    let mut text = match approval.approvers {
        Some(approvers) if approval.is_pending() => {
            format!("{}: the decision was counted; {} of {} approvals", approval.id, approvers.given, approvers.needed)
        }
        _ => format!("{} is {}", approval.id, approval.ending()),
    };
    if let Some(standing) = &approval.standing_approval_id {
        text.push_str(&format!("; later calls are covered by {standing}"));
    }
    if let Some(notice) = &approval.notice {
        text.push_str(&format!("; {notice}"));
    }
    clean(&text)
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, FromArgMatches, Parser};

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        decide: Decide,
    }

    fn body(arguments: &[&str]) -> Result<Value, String> {
        let words = ["decide", "appr_1"].iter().chain(arguments);
        let matches = Line::command().try_get_matches_from(words).map_err(|error| error.to_string())?;
        let line = Line::from_arg_matches(&matches).map_err(|error| error.to_string())?;
        line.decide.decision().map(|(_, decision)| json!(decision.body())).map_err(|failure| failure.to_string())
    }

    #[test]
    fn a_yes_covers_one_call_unless_more_is_said() {
        let scope = |arguments: &[&str]| body(&[&["--approve"], arguments].concat()).unwrap()["scope"].clone();
        assert_eq!(scope(&[]), "once");
        assert_eq!(scope(&["--scope", "once"]), "once");
        assert_eq!(scope(&["--scope", "always"]), "always");
        assert_eq!(scope(&["--scope", "workspace"]), json!({"always": {"reach": "workspace"}}));
        assert_eq!(scope(&["--scope", "always", "--max-uses", "3"]), json!({"always": {"max_uses": 3}}));
        assert_eq!(scope(&["--prefix", "cargo "]), json!({"always_prefix": {"prefix": "cargo "}}));
        assert_eq!(
            scope(&["--prefix", "cargo", "--scope", "session", "--expires-in", "60"]),
            json!({"always_prefix": {"prefix": "cargo", "reach": "session", "expires_in_seconds": 60}})
        );
    }

    #[test]
    fn an_answer_names_its_channel_and_keeps_its_words() {
        assert_eq!(
            body(&["--deny", "--reason", "not now", "--idempotency-key", "k"]).unwrap(),
            json!({"decision": "deny", "reason": "not now", "idempotency_key": "k", "channel": "terminal"})
        );
        assert_eq!(body(&["--approve", "--answer", "blue"]).unwrap()["answer"], "blue");
    }

    #[test]
    fn what_would_be_ignored_is_refused() {
        for arguments in [
            &[][..],
            &["--approve", "--deny"],
            &["--deny", "--scope", "always"],
            &["--deny", "--prefix", "cargo"],
            &["--deny", "--answer", "x"],
            &["--approve", "--scope", "once", "--prefix", "cargo"],
            &["--approve", "--scope", "once", "--max-uses", "1"],
            &["--approve", "--expires-in", "60"],
            &["--approve", "--max-uses", "1"],
        ] {
            assert!(body(arguments).is_err(), "{arguments:?}");
        }
    }
}
