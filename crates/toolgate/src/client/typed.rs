//! Requests by the declarations of `toolgate-api`: method, path, query, body and reply are those of the endpoint.

use std::collections::BTreeMap;

use serde_json::Value;
use toolgate_api::{Endpoint, PathParameter, RequestBody};
use zeroize::Zeroizing;

use super::{Client, ClientError, with_query};

impl Client {
    /// Sends a request to an endpoint.
    pub async fn call<E: Endpoint>(
        &self,
        path: &E::Path,
        query: &E::Query,
        body: &E::Body,
    ) -> Result<E::Reply, ClientError> {
        let (status, reply) = self.send(E::METHOD, &target::<E>(path, query), content(body)).await?;
        serde_json::from_value(reply).map_err(|_| ClientError::UnexpectedServer { url: self.url.clone(), status })
    }
}

/// The path with its placeholder filled and its query.
fn target<E: Endpoint>(path: &E::Path, query: &E::Query) -> String {
    let parameters: BTreeMap<String, Value> = match serde_json::to_value(query) {
        Ok(Value::Object(members)) => members.into_iter().collect(),
        _ => BTreeMap::new(),
    };
    let texts: Vec<(&str, Option<String>)> = parameters
        .iter()
        .map(|(name, value)| (name.as_str(), Some(value.as_str().map_or_else(|| value.to_string(), str::to_owned))))
        .collect();
    with_query(&path.fill(E::PATH), &texts)
}

/// The body as it is sent; nothing where it says no more than its absence.
fn content<B: RequestBody>(body: &B) -> Option<Zeroizing<Vec<u8>>> {
    let bytes = Zeroizing::new(serde_json::to_vec(body).unwrap_or_default());
    let absent = B::absent().and_then(|absent| serde_json::to_vec(&absent).ok());
    if absent.is_some_and(|absent| absent == *bytes) { None } else { Some(bytes) }
}

#[cfg(test)]
mod tests {
    use toolgate_api::Nothing;
    use toolgate_api::credentials::Reason;
    use toolgate_api::grants::{GrantQuery, ListGrants};
    use toolgate_api::parameters::{Cursor, Limit};
    use toolgate_api::vaults::{ShowVault, VaultRequest};
    use toolgate_model::id::VaultId;
    use toolgate_model::text::Line;

    use super::*;

    #[test]
    fn a_path_and_a_query_are_written_as_the_endpoint_declares_them() {
        let id = VaultId::parse("vault_01ARZ3NDEKTSV4RRFFQ69G5FAV").unwrap();
        assert_eq!(target::<ShowVault>(&id, &Nothing {}), "/api/v1/vaults/vault_01ARZ3NDEKTSV4RRFFQ69G5FAV");
        let query =
            GrantQuery { limit: Some(Limit(5)), cursor: Some(Cursor("a&b".to_owned())), ..GrantQuery::default() };
        assert_eq!(target::<ListGrants>(&(), &query), "/api/v1/grants?cursor=a%26b&limit=5");
        assert_eq!(target::<ListGrants>(&(), &GrantQuery::default()), "/api/v1/grants");
    }

    #[test]
    fn a_body_that_says_nothing_is_not_sent() {
        assert_eq!(content(&Nothing {}), None);
        assert_eq!(content(&Reason::default()), None);
        let reason = Reason { reason: Some(Line::parse("done").unwrap()) };
        assert_eq!(content(&reason).unwrap().as_slice(), br#"{"reason":"done"}"#);
        let vault = VaultRequest { owner_id: None, name: Line::parse("main").unwrap() };
        assert_eq!(content(&vault).unwrap().as_slice(), br#"{"name":"main"}"#);
    }
}
