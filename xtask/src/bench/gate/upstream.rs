//! The called service: nginx with one fixed response, as fast as a service can be.

use super::nginx::Nginx;
use super::scratch::Scratch;

pub const PATH: &str = "/v1/echo";

/// A text that is only in its response.
pub const MARK: &str = "echo_4711";

#[derive(Debug)]
pub struct Upstream(Nginx);

impl Upstream {
    /// Starts it on a free port.
    pub fn start(scratch: &Scratch) -> Result<Self, String> {
        let server = format!(
            r#"location = {PATH} {{
            default_type application/json;
            return 200 '{{"id":"{MARK}","object":"charge","amount":1999,"currency":"usd","status":"succeeded"}}';
        }}"#
        );
        Nginx::start(scratch, "nginx", "", &server).map(Self)
    }

    /// Its address, as `http://ADDRESS`.
    pub fn url(&self) -> String {
        self.0.url()
    }
}
