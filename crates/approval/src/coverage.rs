//! What a decision covers besides its call: the standing approval that it may create, the later calls that one covers,
//! and the calls that are never covered.

mod protected;
#[cfg(test)]
mod tests;

use serde_json::Value;
use toolgate_gate::ports::approver::Covered;
use toolgate_model::approval::{
    Approval, ApprovalSession, AskSource, Category, Coverage, Reach, RequestedCoverage, RequestedReach,
    StandingApproval, StandingRequest,
};
use toolgate_model::id::StandingApprovalId;

pub(crate) use self::protected::runs_protected;
pub use self::protected::{is_protected, is_protected_place};
use crate::arguments::{command_line, directories};
use crate::links::{Links, Site, joined};
use crate::shell::{Prefix, Surroundings, covered, read};
use toolgate_model::visible::visible;

/// What a standing request would cover, or why it cannot be granted; the approval of the single call stays valid.
pub fn standing(
    approval: &Approval,
    request: &StandingRequest,
    links: &dyn Links,
) -> Result<(Coverage, Reach), String> {
    require_coverable(approval, links)?;
    let coverage = match &request.coverage {
        RequestedCoverage::Tool => Coverage::Tool,
        RequestedCoverage::Prefix(text) => Coverage::Prefix(words_for(approval, text)?),
    };
    Ok((coverage, reach(approval.session.as_ref(), request.reach)?))
}

/// The standing approvals that are needed to cover a call; or why they do not. They are assumed to be active and the
/// agent's own.
pub fn covering(
    standing: &[StandingApproval],
    call: &Covered<'_>,
    links: &dyn Links,
) -> Result<Vec<StandingApprovalId>, String> {
    let workspace = call.session.and_then(|session| session.workspace.as_ref());
    if let Some(reason) = is_protected(call.tool, call.arguments, workspace, links) {
        return Err(format!("no standing approval covers this call: {reason}"));
    }
    let mut here: Vec<&StandingApproval> = standing.iter().filter(|one| is_for(one, call)).collect();
    // Permanent ones first, so that those with a limited number of uses are not used up.
    here.sort_by_key(|one| one.max_uses.is_some());
    if here.is_empty() {
        return Err(format!("no standing approval covers calls of {} here", call.tool));
    }
    if let Some(whole) = here.iter().find(|one| one.coverage == Coverage::Tool) {
        return Ok(vec![whole.id]);
    }
    let Some(command) = command_line(call.arguments) else {
        return Err(format!("the standing approvals of {} are for command lines, and this call has none", call.tool));
    };
    let (ids, prefixes): (Vec<_>, Vec<_>) = here.iter().filter_map(|one| Some((one.id, prefix(one)?))).unzip();
    let judged = covered(command, &prefixes, surroundings(call.arguments, call.session));
    let site = Site { tool: call.tool, workspace, links };
    if judged.approve && leads_out(command, call.arguments, site) {
        return Err(
            "no standing approval covers this command line: a path in it leads out of the workspace through a link"
                .to_owned(),
        );
    }
    if judged.approve {
        return Ok(judged.used.iter().filter_map(|&place| ids.get(place)).copied().collect());
    }
    Err(format!("no standing approval covers this command line: {}", judged.why))
}

/// Whether a standing approval is for this tool and this action, executed on the same side, and includes this session.
pub(crate) fn is_for(standing: &StandingApproval, call: &Covered<'_>) -> bool {
    standing.tool == call.tool
        && standing.external == call.external
        && standing.is_for_action(call.action)
        && standing.reach.reaches(call.session)
}

/// The prefix of a standing approval. One that would no longer be accepted covers nothing.
pub(crate) fn prefix(standing: &StandingApproval) -> Option<Prefix> {
    let Coverage::Prefix(words) = &standing.coverage else { return None };
    Prefix::parse(&words.join(" ")).ok().filter(|prefix| prefix.words() == words)
}

/// Whether a word of a covered line is a path that leads out of the workspace through a link.
fn leads_out(line: &str, arguments: &Value, site: Site<'_>) -> bool {
    let mut directory = directories(arguments).first().copied().unwrap_or_default().to_owned();
    for command in read(line).unwrap_or_default() {
        let words: Vec<&str> = command.words.iter().map(|word| word.text.as_str()).collect();
        // An absolute path was checked by its text, and so was one that the prefix names.
        let is_path = |word: &&&str| !word.is_empty() && !word.starts_with(['-', '/']);
        if words.iter().skip(1).filter(is_path).any(|word| site.leads_out(&directory, word)) {
            return true;
        }
        if let (Some(&"cd" | &"pushd"), Some(to)) = (words.first(), words.get(1)) {
            directory = joined(&directory, to);
        }
    }
    false
}

/// Where the commands of a call run.
pub(crate) fn surroundings<'a>(arguments: &'a Value, session: Option<&'a ApprovalSession>) -> Surroundings<'a> {
    let around = Surroundings { workspace: session.and_then(|session| session.workspace.as_ref()), directory: None };
    let directory = directories(arguments).into_iter().find(|directory| !around.is_workspace(directory));
    Surroundings { directory, ..around }
}

/// Where the commands of a pending call run.
pub(crate) fn of_approval(approval: &Approval) -> Surroundings<'_> {
    surroundings(approval.arguments.as_ref().unwrap_or(&Value::Null), approval.session.as_ref())
}

/// Whether a decision on this call may cover others.
pub(crate) fn require_coverable(approval: &Approval, links: &dyn Links) -> Result<(), String> {
    if approval.is_question() {
        return Err("a question needs an answer every time".to_owned());
    }
    if approval.rule.approvers > 1 {
        return Err("each of these calls needs several approvers, so a decision covers this call only".to_owned());
    }
    if !approval.rule.standing {
        return Err("the rule of this tool requires a decision on every call".to_owned());
    }
    let workspace = approval.session.as_ref().and_then(|session| session.workspace.as_ref());
    let arguments = approval.arguments.as_ref().unwrap_or(&Value::Null);
    if let Some(reason) = is_protected(&approval.tool, arguments, workspace, links) {
        return Err(format!("{reason}, so a decision covers this call only"));
    }
    if let Some(reason) = approval.reasons.iter().find(|reason| reason.source == AskSource::Guardian) {
        return Err(format!(
            "a policy or guardian asks about every such call (\"{}\"), so a decision covers this call only",
            visible(&reason.text)
        ));
    }
    if !approval.coverable {
        return Err(
            "the reason for this approval requires a decision on every call, so a decision covers this call only"
                .to_owned(),
        );
    }
    Ok(())
}

/// The reach of a decision; by default the session, if there is one.
pub(crate) fn reach(session: Option<&ApprovalSession>, request: Option<RequestedReach>) -> Result<Reach, String> {
    let of_session =
        |session: &ApprovalSession| Reach::Session { owner: session.owner.clone(), name: session.name.clone() };
    match request {
        None => Ok(session.map_or(Reach::User, of_session)),
        Some(RequestedReach::User) => Ok(Reach::User),
        Some(RequestedReach::Session) => {
            session.map(of_session).ok_or_else(|| "the call has no session; choose another reach".to_owned())
        }
        Some(RequestedReach::Workspace) => session
            .and_then(|session| session.workspace.clone())
            .map(Reach::Workspace)
            .ok_or_else(|| "the session of the call has no workspace; choose another reach".to_owned()),
    }
}

fn words_for(approval: &Approval, text: &str) -> Result<Vec<String>, String> {
    let command = approval.arguments.as_ref().and_then(command_line).filter(|_| approval.category == Category::Exec);
    let Some(command) = command else {
        return Err(format!("a prefix requires a command line, and this call of {} has none", approval.tool));
    };
    let prefix = Prefix::parse(text).map_err(|error| error.to_string())?;
    let judged = covered(command, std::slice::from_ref(&prefix), of_approval(approval));
    if !judged.approve {
        return Err(format!("the prefix `{prefix}` does not cover this call: {}", judged.why));
    }
    Ok(prefix.words().to_vec())
}
