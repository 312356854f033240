//! Qualified names of tools are unique within a tenant. Service `x` with tool `y.z` and service `x.y` with tool `z`
//! would both be `x.y.z`, and policies, allowlists, limits and events of one would apply to the other. So the second
//! one is refused, in the transaction that would create it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::credential::ServiceName;
use toolgate_model::principal::TenantId;

use super::listing::padded;
use crate::sql::{Failure, Value};
use crate::transaction::{Transaction, values};

/// Refuses tools of a service whose qualified names are those of tools of another service, registered or defined by a
/// credential.
pub async fn require_unique<'a, T: Transaction>(
    transaction: &mut T,
    tenant: &TenantId,
    service: &ServiceName,
    tools: impl Iterator<Item = &'a str>,
) -> Result<(), Failure> {
    let others = other_readings(service, tools);
    if others.is_empty() {
        return Ok(());
    }
    // Transactions that create tools are serialized here, so that two cannot miss each other.
    let lock = format!("SELECT tenant FROM registries WHERE tenant = $1{}", T::FOR_UPDATE);
    transaction.query(&lock, values![tenant]).await?;
    let (places, mut parameters) = padded(others.keys().map(|service| Value::from(service.as_str())).collect());
    parameters.push(Value::from(tenant));
    let last = parameters.len();
    let services = format!("SELECT service, definition FROM services WHERE service IN ({places}) AND tenant = ${last}");
    for row in transaction.query(&services, &parameters).await? {
        let definition: Json = row.json(1)?;
        let defined = definition.get("tools").and_then(Json::as_object);
        refuse_shared(&others, row.text(0)?, defined.into_iter().flat_map(|tools| tools.keys().map(String::as_str)))?;
    }
    let credentials = format!(
        "SELECT service, scopes_available FROM credentials WHERE service IN ({places}) AND tenant = ${last} \
         AND revoked_at IS NULL"
    );
    for row in transaction.query(&credentials, &parameters).await? {
        let scopes: Vec<String> = row.json(1)?;
        refuse_shared(&others, row.text(0)?, scopes.iter().map(String::as_str))?;
    }
    Ok(())
}

/// The services and tools that the full names could also be read as.
fn other_readings<'a>(
    service: &ServiceName,
    tools: impl Iterator<Item = &'a str>,
) -> BTreeMap<String, BTreeSet<String>> {
    let mut others: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for name in tools.map(|tool| service.with_tool(tool)) {
        for (place, _) in name.match_indices('.').filter(|(place, _)| *place != service.as_str().len()) {
            let (other, tool) = name.split_at(place);
            others.entry(other.to_owned()).or_default().insert(tool.trim_start_matches('.').to_owned());
        }
    }
    others
}

fn refuse_shared<'a>(
    others: &BTreeMap<String, BTreeSet<String>>,
    service: &str,
    mut tools: impl Iterator<Item = &'a str>,
) -> Result<(), Refusal> {
    let Some(taken) = others.get(service) else { return Ok(()) };
    match tools.find(|tool| taken.contains(*tool)) {
        None => Ok(()),
        Some(tool) => {
            let reason = format!(
                "the qualified name `{service}.{tool}` already belongs to a tool of service `{service}`; choose another name \
                 for the service or the tool"
            );
            Err(Refusal::new(Code::AlreadyExists, reason))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_name_is_read_with_its_dots_in_every_place_but_its_own() {
        let readings = |service: &str, tool: &str| {
            let others = other_readings(&ServiceName::parse(service).unwrap(), std::iter::once(tool));
            others
                .into_iter()
                .map(|(service, tools)| (service, tools.into_iter().collect::<Vec<_>>()))
                .collect::<Vec<_>>()
        };
        let reading = |service: &str, tool: &str| (service.to_owned(), vec![tool.to_owned()]);
        assert_eq!(readings("x", "y"), []);
        assert_eq!(readings("x", "y.z"), [reading("x.y", "z")]);
        assert_eq!(readings("x.y", "z"), [reading("x", "y.z")]);
        assert_eq!(readings("a.b", "c.d"), [reading("a", "b.c.d"), reading("a.b.c", "d")]);
    }
}
