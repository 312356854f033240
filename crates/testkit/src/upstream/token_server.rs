//! A service behind OAuth2: a token endpoint whose refresh tokens can be used once, and a resource that accepts only
//! the newest access token.

use std::sync::{Arc, Mutex, MutexGuard};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::{Received, Reply, Upstream};

/// The client that the token endpoint knows.
pub const CLIENT_ID: &str = "client-of-the-tests";

pub const CLIENT_SECRET: &str = "secret-of-the-client-of-the-tests";

/// A token endpoint at `/oauth/token` and a resource at every other path. It starts with one valid token of each kind.
pub struct TokenServer {
    upstream: Upstream,
    tokens: Arc<Mutex<Tokens>>,
}

impl TokenServer {
    /// The endpoint accepts `refresh_token`, where the client may be unnamed but not wrong, and `client_credentials`;
    /// the client authenticates by basic authentication or in the form.
    pub fn start() -> Self {
        let tokens =
            Arc::new(Mutex::new(Tokens { access: 1, is_stale: false, refresh: 1, exchanges: 0, lifetime: 3600 }));
        let upstream = Upstream::start({
            let tokens = Arc::clone(&tokens);
            move |request| {
                let mut tokens = tokens.lock().expect("a lock under which nothing panics");
                if request.path() == "/oauth/token" { tokens.exchange(request) } else { tokens.resource(request) }
            }
        });
        Self { upstream, tokens }
    }

    /// The service, to inspect its requests, or to hold its responses back.
    pub fn upstream(&self) -> &Upstream {
        &self.upstream
    }

    /// Where the token endpoint is.
    pub fn token_url(&self) -> String {
        format!("{}/oauth/token", self.upstream.url())
    }

    /// The access token that the resource accepts, unless it was made stale.
    pub fn access_token(&self) -> String {
        access_token(self.lock().access)
    }

    /// The refresh token that the endpoint accepts next.
    pub fn refresh_token(&self) -> String {
        refresh_token(self.lock().refresh)
    }

    /// The number of issued tokens; refused requests do not count.
    pub fn exchanges(&self) -> usize {
        self.lock().exchanges
    }

    /// The resource refuses the access token of now; the next one will do.
    pub fn expire_access_token(&self) {
        self.lock().is_stale = true;
    }

    /// Later access tokens are announced with this `expires_in`. The service itself reads no clock.
    pub fn announce_lifetime(&self, seconds: u64) {
        self.lock().lifetime = seconds;
    }

    fn lock(&self) -> MutexGuard<'_, Tokens> {
        self.tokens.lock().expect("a lock under which nothing panics")
    }
}

struct Tokens {
    access: usize,
    is_stale: bool,
    refresh: usize,
    exchanges: usize,
    lifetime: u64,
}

impl Tokens {
    fn exchange(&mut self, request: &Received) -> Reply {
        let form = request.form();
        let field = |name: &str| form.iter().find(|(found, _)| found == name).map_or("", |(_, value)| value.as_str());
        let client = client_of_header(request).unwrap_or((field("client_id").into(), field("client_secret").into()));
        let is_known = client == (CLIENT_ID.to_owned(), CLIENT_SECRET.to_owned());
        let is_unnamed = client == (String::new(), String::new());
        match field("grant_type") {
            _ if request.method != "POST" => refused(405, "invalid_request"),
            "client_credentials" if is_known => self.issue(false),
            "refresh_token" if is_known || is_unnamed => {
                let is_current = field("refresh_token") == refresh_token(self.refresh);
                if is_current { self.issue(true) } else { refused(400, "invalid_grant") }
            }
            "client_credentials" | "refresh_token" => refused(401, "invalid_client"),
            _ => refused(400, "unsupported_grant_type"),
        }
    }

    fn issue(&mut self, with_refresh_token: bool) -> Reply {
        self.exchanges += 1;
        self.access += 1;
        self.is_stale = false;
        let mut body = json!({
            "access_token": access_token(self.access),
            "token_type": "Bearer",
            "expires_in": self.lifetime,
        });
        if with_refresh_token {
            self.refresh += 1;
            body["refresh_token"] = refresh_token(self.refresh).into();
        }
        Reply::json(200, body).header("Cache-Control", "no-store")
    }

    fn resource(&self, request: &Received) -> Reply {
        if !self.is_stale && request.bearer() == Some(access_token(self.access).as_str()) {
            return Reply::json(200, json!({"method": request.method, "path": request.path()}));
        }
        refused(401, "invalid_token").header("WWW-Authenticate", "Bearer error=\"invalid_token\"")
    }
}

fn access_token(number: usize) -> String {
    format!("access-token-of-the-tests-{number}")
}

fn refresh_token(number: usize) -> String {
    format!("refresh-token-of-the-tests-{number}")
}

/// The id and the secret of basic authentication, which are form-encoded within it.
pub(super) fn client_of_header(request: &Received) -> Option<(String, String)> {
    let decoded = STANDARD.decode(request.header("authorization")?.strip_prefix("Basic ")?).ok()?;
    let text = String::from_utf8(decoded).ok()?;
    let (id, secret) = text.split_once(':')?;
    let decode = |part: &str| url::form_urlencoded::parse(part.as_bytes()).next().map(|(name, _)| name.into_owned());
    Some((decode(id)?, decode(secret)?))
}

fn refused(status: u16, error: &str) -> Reply {
    Reply::json(status, json!({"error": error}))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::http;

    fn exchange(server: &TokenServer, authorization: Option<&str>, form: &str) -> (u16, Value) {
        let mut headers = vec![("Content-Type", "application/x-www-form-urlencoded")];
        headers.extend(authorization.map(|value| ("Authorization", value)));
        let address = server.upstream().address();
        let answer = http::send(address, "POST", "/oauth/token", &headers, form.as_bytes()).unwrap();
        (answer.status, answer.json())
    }

    fn open(server: &TokenServer, access_token: &str) -> u16 {
        let authorization = format!("Bearer {access_token}");
        let headers = [("Authorization", authorization.as_str())];
        http::send(server.upstream().address(), "GET", "/files", &headers, b"").unwrap().status
    }

    #[test]
    fn a_refresh_token_works_once_and_only_the_newest_access_token_opens() {
        let server = TokenServer::start();
        let (first, old) = (server.refresh_token(), server.access_token());
        assert_eq!(open(&server, &old), 200);
        server.expire_access_token();
        assert_eq!(open(&server, &old), 401);
        let form = format!("grant_type=refresh_token&refresh_token={first}");
        let (status, answer) = exchange(&server, None, &form);
        assert_eq!((status, &answer["refresh_token"]), (200, &Value::from(server.refresh_token())));
        assert_eq!(open(&server, answer["access_token"].as_str().unwrap()), 200);
        assert_eq!(open(&server, &old), 401);
        assert_eq!(exchange(&server, None, &form), (400, json!({"error": "invalid_grant"})));
        assert_eq!(server.exchanges(), 1);
    }

    #[test]
    fn client_credentials_are_checked_in_either_place() {
        let server = TokenServer::start();
        server.announce_lifetime(60);
        let basic = format!("Basic {}", STANDARD.encode(format!("{CLIENT_ID}:{CLIENT_SECRET}")));
        let (status, answer) = exchange(&server, Some(&basic), "grant_type=client_credentials");
        assert_eq!((status, &answer["expires_in"], &answer["refresh_token"]), (200, &json!(60), &Value::Null));
        let form = format!("grant_type=client_credentials&client_id={CLIENT_ID}&client_secret=");
        assert_eq!(exchange(&server, None, &format!("{form}{CLIENT_SECRET}")).0, 200);
        assert_eq!(exchange(&server, None, &format!("{form}wrong")), (401, json!({"error": "invalid_client"})));
        assert_eq!(exchange(&server, None, "grant_type=password"), (400, json!({"error": "unsupported_grant_type"})));
        assert_eq!(server.exchanges(), 2);
    }
}
