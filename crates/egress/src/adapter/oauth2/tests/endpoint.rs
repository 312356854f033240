//! Requests to token endpoints, and the handling of their responses.

use super::*;

/// The client of these tests has characters that mean something in a header or a form.
const ID: &str = "client:with/colon";
const SECRET: &str = "s&cret+with blanks=é";

fn stale_shelf() -> Shelf {
    Shelf::new(material(&[("access_token", "stale-token"), ("refresh_token", "refresh-token"), ("region", "eu")]))
}

/// The requests that the token endpoint got.
fn asked(upstream: &Upstream) -> Vec<Received> {
    upstream.received().into_iter().filter(|request| request.path() == "/oauth/token").collect()
}

fn form_of(request: &Received) -> Vec<(String, String)> {
    assert_eq!(request.header("content-type"), Some("application/x-www-form-urlencoded"));
    assert_eq!((request.method.as_str(), request.header("accept")), ("POST", Some("application/json")));
    request.form()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[tokio::test]
async fn the_client_names_itself_by_basic_authentication_of_form_encoded_parts() {
    let upstream = refusing_service(|_| Reply::json(200, json!({"access_token": "fresh-token"})));
    let shelf = Shelf::new(material(&[("client_id", ID), ("client_secret", SECRET)]));
    let outcome = call(&fixture_at(&upstream, &[("token_scope", "read write")]), &shelf).await;
    assert_eq!(outcome.status(), 401);
    let request = asked(&upstream).remove(0);
    assert_eq!(form_of(&request), pairs(&[("grant_type", "client_credentials"), ("scope", "read write")]));
    // "client%3Awith%2Fcolon:s%26cret%2Bwith+blanks%3D%C3%A9", by another program's base64.
    let basic = "Basic Y2xpZW50JTNBd2l0aCUyRmNvbG9uOnMlMjZjcmV0JTJCd2l0aCtibGFua3MlM0QlQzMlQTk=";
    assert_eq!(request.header("authorization"), Some(basic));
    assert!(outcome.redactor.hides(basic), "an endpoint that echoes the header gives nothing away");
}

#[tokio::test]
async fn an_endpoint_that_misses_the_client_gets_it_in_the_form() {
    for (status, error) in [(401, "invalid_client"), (400, "invalid_client"), (400, "invalid_request")] {
        let upstream = refusing_service(move |request| match request.header("authorization") {
            Some(_) => Reply::json(status, json!({"error": error})),
            None => Reply::json(200, json!({"access_token": "fresh-token"})),
        });
        let shelf = Shelf::new(material(&[("client_id", ID), ("client_secret", SECRET)]));
        assert_eq!(call(&fixture_at(&upstream, &[]), &shelf).await.status(), 401);
        let requests = asked(&upstream);
        let expected = [("grant_type", "client_credentials"), ("client_id", ID), ("client_secret", SECRET)];
        assert_eq!((requests.len(), form_of(&requests[1])), (2, pairs(&expected)));
        assert_eq!(shelf.kept("access_token").await.as_deref(), Some("fresh-token"));
    }
}

#[tokio::test]
async fn a_client_that_is_unknown_in_both_places_is_asked_for_no_third_time() {
    let upstream = refusing_service(|_| Reply::json(401, json!({"error": "invalid_client"})));
    let shelf = Shelf::new(material(&[("client_id", ID), ("client_secret", SECRET)]));
    let outcome = call(&fixture_at(&upstream, &[]), &shelf).await;
    assert!(outcome.failure().reason.contains("invalid_client"));
    assert_eq!(asked(&upstream).len(), 2);
}

#[tokio::test]
async fn a_refresh_token_goes_out_with_whatever_client_there_is() {
    for (client, expected) in [
        (vec![], vec![]),
        (vec![("client_id", "public")], vec![("client_id", "public")]),
        (vec![("client_id", ID), ("client_secret", SECRET)], vec![]),
    ] {
        let upstream = refusing_service(|_| Reply::json(200, json!({"access_token": "fresh-token"})));
        let fields = [vec![("refresh_token", "refresh-token")], client.clone()].concat();
        call(&fixture_at(&upstream, &[]), &Shelf::new(material(&fields))).await;
        let request = asked(&upstream).remove(0);
        let grant = vec![("grant_type", "refresh_token"), ("refresh_token", "refresh-token")];
        assert_eq!(form_of(&request), pairs(&[grant, expected].concat()));
        assert_eq!(request.header("authorization").is_some(), client.len() == 2);
    }
}

#[tokio::test]
async fn the_grant_type_can_be_chosen() {
    let upstream = refusing_service(|_| Reply::json(200, json!({"access_token": "fresh", "refresh_token": "new"})));
    let fields = [("refresh_token", "refresh-token"), ("client_id", ID), ("client_secret", SECRET)];
    let shelf = Shelf::new(material(&fields));
    call(&fixture_at(&upstream, &[("token_grant_type", "client_credentials")]), &shelf).await;
    assert_eq!(form_of(&asked(&upstream)[0]), pairs(&[("grant_type", "client_credentials")]));
    // A refresh token that was not requested is ignored.
    assert_eq!(shelf.kept("refresh_token").await.as_deref(), Some("refresh-token"));
}

#[tokio::test]
async fn fields_that_the_endpoint_does_not_renew_stay() {
    let upstream =
        refusing_service(|_| Reply::json(200, json!({"access_token": "fresh-token", "token_type": "bEARER"})));
    let shelf = stale_shelf();
    call(&fixture_at(&upstream, &[]), &shelf).await;
    let kept = shelf.current().await;
    let kept: Vec<_> = kept.iter().map(|(name, secret)| (name, secret.expose())).collect();
    assert_eq!(kept, [("access_token", "fresh-token"), ("refresh_token", "refresh-token"), ("region", "eu")]);
}

#[tokio::test]
async fn an_expiry_that_the_endpoint_does_not_tell_is_forgotten() {
    let upstream = refusing_service(|_| Reply::json(200, json!({"access_token": "fresh-token"})));
    let expired = in_seconds(0);
    let fields = [("access_token", "stale-token"), ("refresh_token", "refresh-token"), (EXPIRY_FIELD, &expired)];
    let shelf = Shelf::new(material(&fields));
    call(&fixture_at(&upstream, &[]), &shelf).await;
    assert_eq!(shelf.kept(EXPIRY_FIELD).await, None);
}

#[tokio::test]
async fn lifetimes_are_read_as_endpoints_write_them() {
    const YEAR: u64 = 366 * 86_400;
    let client = local_client();
    for (said, seconds) in [
        (json!(3600), Some(3600)),
        (json!(59.0), Some(59)),
        (json!("1800"), Some(1800)),
        (json!(0), Some(0)),
        (json!(1e300), Some(YEAR)),
        (json!(u64::MAX), Some(YEAR)),
        (json!("inf"), Some(YEAR)),
        (json!(-1), None),
        (json!("NaN"), None),
        (json!("soon"), None),
        (json!(null), None),
        (json!([60]), None),
    ] {
        let response = json!({"access_token": "fresh-token", "expires_in": said});
        let upstream = refusing_service(move |_| Reply::json(200, response.clone()));
        let shelf = stale_shelf();
        call_by(&client, &fixture_at(&upstream, &[]), &shelf).await;
        assert_eq!(shelf.kept(EXPIRY_FIELD).await, seconds.map(in_seconds), "{said}");
    }
}

#[tokio::test]
async fn every_refusal_of_an_endpoint_is_told_with_what_to_do() {
    let client = local_client();
    let too_long = json!({"access_token": "x".repeat(70_000)});
    for (reply, expected) in [
        (Reply::json(400, json!({"error": "invalid_grant"})), "returned invalid_grant; authorise"),
        (Reply::json(401, json!({"error": "invalid_client"})), "returned invalid_client; check"),
        (Reply::json(400, json!({"error": "invalid_request"})), "returned invalid_request; check"),
        (Reply::json(400, json!({"error": "invalid_scope"})), "returned invalid_scope; correct"),
        (Reply::json(400, json!({"error": "unauthorized_client"})), "returned unauthorized_client; allow"),
        (Reply::json(400, json!({"error": "unsupported_grant_type"})), "returned unsupported_grant_type; correct"),
        // Some endpoints refuse with a success.
        (Reply::json(200, json!({"error": "invalid_grant"})), "returned invalid_grant"),
        (Reply::json(400, json!({"error": "refresh-token is spent"})), "status 400; check"),
        (Reply::json(400, json!({"error": {"code": "invalid_grant"}})), "status 400; check"),
        (Reply::text(404, "no such page"), "status 404; check"),
        (Reply::redirect("http://127.0.0.1/elsewhere"), "status 302; check"),
        (Reply::text(429, "slow down"), "status 429; try again later"),
        (Reply::json(503, json!({"error": "temporarily_unavailable"})), "status 503; try again later"),
        (Reply::text(200, "access_token=form-token&token_type=bearer"), "no access token"),
        (Reply::json(200, json!(["access_token"])), "no access token"),
        (Reply::json(200, json!({"access_token": ""})), "no access token"),
        (Reply::json(200, json!({"access_token": 17})), "no access token"),
        (Reply::json(200, json!({"access_token": "line\r\nX-Evil: 1"})), "is not valid in a request"),
        (
            Reply::json(200, json!({"access_token": "fresh-token", "token_type": "DPoP"})),
            "a token type other than bearer",
        ),
        (Reply::json(200, json!({"access_token": "fresh-token", "token_type": 1})), "a token type other than bearer"),
        (Reply::json(200, too_long), "too long"),
        (Reply::raw("garbage"), "the token endpoint returned no access token"),
        (Reply::Close, "the token endpoint returned no access token"),
    ] {
        let told = reply.clone();
        let upstream = refusing_service(move |_| reply.clone());
        let fixture = fixture_at(&upstream, &[]);
        let tokens = [("access_token", "stale-token"), ("refresh_token", "refresh-token")];
        for is_expired in [true, false] {
            let expiry = in_seconds(if is_expired { 0 } else { 3600 });
            let shelf = Shelf::new(material(&[tokens[0], tokens[1], (EXPIRY_FIELD, &expiry)]));
            let outcome = call_by(&client, &fixture, &shelf).await;
            let failure = outcome.failure();
            assert_eq!(failure.kind, FailureKind::Proxy, "{told:?}");
            assert!(failure.reason.contains(expected), "{}: {told:?}", failure.reason);
            // The service has seen the call only where its refusal was the reason to renew.
            let service_saw = (failure.sent, failure.http_status);
            assert_eq!(service_saw, if is_expired { (false, None) } else { (true, Some(401)) }, "{told:?}");
            assert_eq!((&failure.result, failure.timed_out), (&None, false));
            assert_eq!(shelf.kept("access_token").await.as_deref(), Some("stale-token"), "{told:?}");
        }
    }
}

#[tokio::test]
async fn no_token_stands_in_a_failure_and_all_are_hidden() {
    let tokens = ["stale-token", "refresh-token", "client-secret", "fresh-token", "fresher-token", "identity-token"];
    for status in [200, 400, 500] {
        let response = json!({
            "error": "fresh-token refresh-token client-secret",
            "error_description": "refresh-token of client-secret is spent, take fresh-token",
            "error_uri": "https://127.0.0.1/?token=refresh-token",
            "access_token": "fresh-token",
            "refresh_token": "fresher-token",
            "id_token": "identity-token",
            "token_type": "refresh-token",
        });
        let upstream = refusing_service(move |_| Reply::json(status, response.clone()));
        let fields = [
            ("access_token", "stale-token"),
            ("refresh_token", "refresh-token"),
            ("client_id", "client"),
            ("client_secret", "client-secret"),
        ];
        let outcome = call(&fixture_at(&upstream, &[]), &Shelf::new(material(&fields))).await;
        let told = format!("{:?}", outcome.failure());
        for token in tokens {
            assert!(!told.contains(token), "{told}");
            assert!(outcome.redactor.hides(token), "{token}");
        }
    }
}

#[tokio::test]
async fn an_endpoint_that_is_not_there_is_told_apart_from_the_service() {
    let upstream = refusing_service(|_| Reply::Close);
    let gone = Upstream::start(|_| Reply::Close).url();
    let fixture = Fixture::new(json!({"base_url": upstream.url(), "token_url": format!("{gone}/oauth/token")}));
    let outcome = call(&fixture, &Shelf::new(material(&[("refresh_token", "refresh-token")]))).await;
    let failure = outcome.failure();
    assert!(
        failure.reason.starts_with("the token endpoint returned no access token: could not connect to `127.0.0.1`")
    );
    assert_eq!((failure.kind, failure.sent, upstream.count()), (FailureKind::Proxy, false, 0));
}
