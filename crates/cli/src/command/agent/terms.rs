//! The attributes of a principal: permissions, scopes, rate limits, tool allowlist, labels.

use std::collections::BTreeMap;

use clap::Args;
use toolgate_api::agents::{AgentChanges, AgentRequest};
use toolgate_model::permission::Permission;
use toolgate_model::rate_limit::RateLimit;

use crate::command::Failure;
use crate::command::values::{typed, typed_option};
use crate::durations::parse_seconds;

#[derive(Args)]
pub(crate) struct Terms {
    /// A permission; may be repeated
    #[arg(long = "permission", value_name = "PERMISSION", value_parser = permissions())]
    permissions: Vec<String>,
    /// A scope that it holds, such as tools:mail:send or tools:mail:*; may be repeated
    #[arg(long = "scope", value_name = "SCOPE")]
    scopes: Vec<String>,
    /// A rate limit for a tool, or for * (all other tools); may be repeated
    #[arg(long = "rate-limit", value_name = "TOOL=REQUESTS/PERIOD[/BURST]", value_parser = parse_rate_limit)]
    rate_limits: Vec<(String, RateLimit)>,
    /// The id of a tool on its allowlist; with any, it sees no other tools; may be repeated
    #[arg(long = "allow-tool", value_name = "TOOL_ID")]
    allow_tools: Vec<String>,
    /// A label that policies can read; may be repeated
    #[arg(long = "label", value_name = "NAME")]
    labels: Vec<String>,
    /// Detach calls that wait for an approver: the response is 202, and the call continues without the connection
    #[arg(long)]
    detach_calls: bool,
    /// Give its MCP clients tools to search for tools, instead of all tools at once
    #[arg(long)]
    progressive_discovery: bool,
}

#[derive(Args)]
pub(crate) struct Withdrawals {
    /// Remove the name
    #[arg(long, conflicts_with = "name")]
    no_name: bool,
    /// Remove all permissions
    #[arg(long, conflicts_with = "permissions")]
    no_permissions: bool,
    /// Remove all scopes
    #[arg(long, conflicts_with = "scopes")]
    no_scopes: bool,
    /// Remove all rate limits
    #[arg(long, conflicts_with = "rate_limits")]
    no_rate_limits: bool,
    /// Remove the allowlist: it sees every tool that it has a grant for
    #[arg(long, conflicts_with = "allow_tools")]
    any_tool: bool,
    /// Remove all labels
    #[arg(long, conflicts_with = "labels")]
    no_labels: bool,
    /// Let calls wait for an approver on their connection
    #[arg(long, conflicts_with = "detach_calls")]
    no_detach_calls: bool,
    /// Give its MCP clients all tools at once
    #[arg(long, conflicts_with = "progressive_discovery")]
    no_progressive_discovery: bool,
}

impl Terms {
    pub(super) fn scopes(&self) -> &[String] {
        &self.scopes
    }

    pub(super) fn request(&self, id: &str, kind: &str, name: Option<String>) -> Result<AgentRequest, Failure> {
        Ok(AgentRequest {
            id: typed("id", id)?,
            kind: Some(typed("kind", kind)?),
            name: typed_option("name", name)?,
            scopes: typed("scopes", &self.scopes)?,
            permissions: typed_option("permissions", given(&self.permissions))?,
            rate_limits: typed("rate_limits", self.limits()?)?,
            tool_allowlist: typed_option("tool_allowlist", given(&self.allow_tools))?,
            labels: typed("labels", &self.labels)?,
            detach_calls: self.detach_calls,
            progressive_discovery: self.progressive_discovery,
            budget: None,
        })
    }

    /// Options that were not given change nothing.
    pub(super) fn changes(&self, name: Option<String>, withdrawals: &Withdrawals) -> Result<AgentChanges, Failure> {
        let limits = self.limits()?;
        let limits = (!limits.is_empty() || withdrawals.no_rate_limits).then_some(limits);
        let list = |texts: &[String], withdrawn: bool| (!texts.is_empty() || withdrawn).then(|| texts.to_vec());
        Ok(AgentChanges {
            name: match typed_option("name", name)? {
                Some(name) => Some(Some(name)),
                None => withdrawals.no_name.then_some(None),
            },
            scopes: typed_option("scopes", list(&self.scopes, withdrawals.no_scopes))?,
            permissions: typed_option("permissions", list(&self.permissions, withdrawals.no_permissions))?,
            rate_limits: typed_option("rate_limits", limits)?,
            tool_allowlist: match typed_option("tool_allowlist", given(&self.allow_tools))? {
                Some(tools) => Some(Some(tools)),
                None => withdrawals.any_tool.then_some(None),
            },
            labels: typed_option("labels", list(&self.labels, withdrawals.no_labels))?,
            detach_calls: (self.detach_calls || withdrawals.no_detach_calls).then_some(self.detach_calls),
            progressive_discovery: (self.progressive_discovery || withdrawals.no_progressive_discovery)
                .then_some(self.progressive_discovery),
            // Set by `toolgate budget`.
            budget: None,
        })
    }

    fn limits(&self) -> Result<BTreeMap<&str, RateLimit>, Failure> {
        let mut limits = BTreeMap::new();
        for (tool, limit) in &self.rate_limits {
            if limits.insert(tool.as_str(), *limit).is_some() {
                return Err(Failure::Usage(format!("--rate-limit names `{tool}` twice")));
            }
        }
        Ok(limits)
    }
}

fn given(texts: &[String]) -> Option<&[String]> {
    (!texts.is_empty()).then_some(texts)
}

fn permissions() -> clap::builder::PossibleValuesParser {
    Permission::ALL.iter().map(|permission| permission.as_str()).into()
}

/// Parses `TOOL=REQUESTS/PERIOD[/BURST]`; the period is a duration or a number of seconds.
fn parse_rate_limit(text: &str) -> Result<(String, RateLimit), String> {
    let advice = "use TOOL=REQUESTS/PERIOD or TOOL=REQUESTS/PERIOD/BURST, such as stripe.charges.create=100/1m/20";
    let (tool, limit) = text.split_once('=').filter(|(tool, _)| !tool.is_empty()).ok_or(advice)?;
    let number = |text: &str| text.parse::<u64>().map_err(|_| advice);
    let limit = match limit.split('/').collect::<Vec<_>>().as_slice() {
        [requests, period] => RateLimit::new(number(requests)?, parse_seconds(period)?, None),
        [requests, period, burst] => RateLimit::new(number(requests)?, parse_seconds(period)?, Some(number(burst)?)),
        _ => return Err(advice.to_owned()),
    };
    Ok((tool.to_owned(), limit.map_err(|error| error.to_string())?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_rate_limit_is_a_tool_and_two_or_three_numbers() {
        let read = |text| parse_rate_limit(text).map(|(tool, limit)| (tool, json!(limit)));
        let plain = json!({"requests": 100, "per_seconds": 60});
        assert_eq!(read("stripe.charges.create=100/60"), Ok(("stripe.charges.create".to_owned(), plain.clone())));
        assert_eq!(read("*=100/60/100"), Ok(("*".to_owned(), plain.clone())));
        assert_eq!(read("*=100/1m"), Ok(("*".to_owned(), plain)));
        let small = json!({"requests": 100, "per_seconds": 60, "burst": 5});
        assert_eq!(read("*=100/60/5"), Ok(("*".to_owned(), small)));
        for bad in ["", "a.b", "=1/1", "a.b=", "a.b=1", "a.b=1/", "a.b=1/1/1/1", "a.b=x/1", "a.b=-1/1", "a.b=0/1"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
