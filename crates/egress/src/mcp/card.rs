//! The card of a peer agent, from where agents publish it.

use http::{HeaderName, HeaderValue};
use serde_json::{Map, Value};
use toolgate_gate::ports::mount::{McpEra, ServerInfo, ServerOffer};
use toolgate_gate::ports::source::{FailureKind, SourceFailure};
use toolgate_model::a2a::CARD_LIMIT;
use toolgate_model::redaction::Redactor;
use toolgate_model::strict_json;
use url::Url;

use super::http::Endpoint;

/// Where a card is, below a URL: the name since 0.3, and the one before.
const NAMES: [&str; 2] = ["agent-card.json", "agent.json"];
/// More than a card may have, so that one with blanks is not cut.
const BODY_LIMIT: usize = 4 * CARD_LIMIT;
const VERSION: (HeaderName, HeaderValue) = (HeaderName::from_static("a2a-version"), HeaderValue::from_static("1.0"));

/// Fetches a card: below the URL, and at its origin, where most agents have it.
pub(super) async fn fetch(endpoint: &Endpoint<'_>, redactor: &mut Redactor) -> Result<ServerOffer, SourceFailure> {
    let mut tried = Vec::new();
    for url in places(endpoint.url) {
        let response = endpoint.get(&url, &[VERSION], BODY_LIMIT, redactor).await?;
        if response.status == 200 && !response.truncated {
            if let Ok(card @ Value::Object(_)) = strict_json::parse(&response.body) {
                return Ok(offer(card));
            }
            tried.push(format!("{} is not a card", url.path()));
            continue;
        }
        let why =
            if response.truncated { "is too large".to_owned() } else { format!("gave status {}", response.status) };
        tried.push(format!("{} {why}", url.path()));
    }
    let reason = format!("there is no agent card: {}", tried.join(", "));
    Err(SourceFailure { sent: true, ..SourceFailure::not_sent(FailureKind::Service, reason) })
}

fn places(url: &Url) -> Vec<Url> {
    let below = |base: &str, name: &str| {
        let mut place = url.clone();
        place.set_path(&format!("{}/.well-known/{name}", base.trim_end_matches('/')));
        place
    };
    let mut places: Vec<Url> = Vec::new();
    for name in NAMES {
        for base in [url.path(), ""] {
            let place = below(base, name);
            if !places.contains(&place) {
                places.push(place);
            }
        }
    }
    places
}

fn offer(card: Value) -> ServerOffer {
    ServerOffer {
        era: McpEra::Modern,
        protocol_version: String::new(),
        server: ServerInfo::default(),
        instructions: None,
        capabilities: Map::new(),
        tools: Vec::new(),
        command: None,
        card: Some(card),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_is_looked_for_below_the_url_and_at_the_origin() {
        let url = Url::parse("https://agents.example/travel").unwrap();
        let paths: Vec<_> = places(&url).iter().map(|url| url.path().to_owned()).collect();
        let expected = [
            "/travel/.well-known/agent-card.json",
            "/.well-known/agent-card.json",
            "/travel/.well-known/agent.json",
            "/.well-known/agent.json",
        ];
        assert_eq!(paths, expected);
        assert_eq!(places(&Url::parse("https://agents.example").unwrap()).len(), 2);
    }
}
