//! Where tokens may be exchanged.

use toolgate_model::constraint::HostSet;

use super::*;

fn service() -> Upstream {
    Upstream::start(|request| match request.path() {
        "/oauth/token" => Reply::json(200, json!({"access_token": "fresh-token"})),
        _ => Reply::json(200, json!({})),
    })
}

/// A service and a token endpoint of different names on the same port.
fn fixture_by_name(upstream: &Upstream, allowed_hosts: Value) -> Fixture {
    let port = upstream.address().port();
    let mut metadata = json!({
        "base_url": format!("http://api.example.com:{port}"),
        "token_url": format!("http://login.example.org:{port}/oauth/token"),
    });
    if !allowed_hosts.is_null() {
        metadata["allowed_hosts"] = allowed_hosts;
    }
    Fixture::new(metadata)
}

async fn call_granted(fixture: &Fixture, hosts: &[&HostSet]) -> Result<u16, SourceFailure> {
    let shelf = Shelf::new(material(&[("refresh_token", "refresh-token")]));
    let material = shelf.current().await;
    let outbound = OutboundCall { hosts, ..fixture.outbound(&material, &shelf) };
    let mut redactor = Redactor::new(&material);
    OAuth2.carry_out(&local_client(), outbound, &mut redactor).await.map(|response| response.status)
}

#[tokio::test]
async fn the_hosts_of_a_grant_bind_the_call_and_not_the_token_endpoint() {
    let upstream = service();
    let fixture = fixture_by_name(&upstream, Value::Null);
    let granted = HostSet::parse(["api.example.com"]).unwrap();
    assert_eq!(call_granted(&fixture, &[&granted]).await, Ok(200));
    let hosts: Vec<_> = upstream.received().iter().map(|request| request.header("host").map(str::to_owned)).collect();
    let port = upstream.address().port();
    assert_eq!(hosts, [Some(format!("login.example.org:{port}")), Some(format!("api.example.com:{port}"))]);
}

#[tokio::test]
async fn the_hosts_of_a_credential_bind_its_token_endpoint_too() {
    let upstream = service();
    let hosts = json!(["api.example.com", "login.example.org"]);
    let fixture = fixture_by_name(&upstream, hosts);
    let own = fixture.connection.allowed_hosts.as_ref().unwrap();
    assert_eq!(call_granted(&fixture, &[own]).await, Ok(200));

    let upstream = service();
    let fixture = fixture_by_name(&upstream, json!(["api.example.com"]));
    let own = fixture.connection.allowed_hosts.as_ref().unwrap();
    let failure = call_granted(&fixture, &[own]).await.unwrap_err();
    assert!(failure.reason.contains("`login.example.org` is not among the hosts"), "{}", failure.reason);
    assert_eq!((failure.sent, upstream.connections()), (false, 0));
}

#[tokio::test]
async fn a_token_endpoint_inside_the_network_is_refused_like_any_service() {
    let upstream = service();
    let metadata = json!({"base_url": upstream.url(), "token_url": "http://169.254.169.254/latest/meta-data/token"});
    let failure = call_granted(&Fixture::new(metadata), &[]).await.unwrap_err();
    assert_eq!((failure.kind, failure.sent), (FailureKind::Blocked, false));
    assert_eq!(upstream.connections(), 0);
}
