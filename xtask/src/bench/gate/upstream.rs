//! The called service: nginx with one worker and one fixed response, as fast as a service can be.

use std::ffi::OsStr;
use std::net::SocketAddr;

use super::programs::{self, Process};
use super::scratch::Scratch;

pub const PATH: &str = "/v1/echo";

/// A text that is only in its response.
pub const MARK: &str = "echo_4711";

#[derive(Debug)]
pub struct Upstream {
    address: SocketAddr,
    _process: Process,
}

impl Upstream {
    /// Starts it on a free port.
    pub fn start(scratch: &Scratch) -> Result<Self, String> {
        let address = programs::free_address()?;
        let directory = scratch.path().join("nginx");
        std::fs::create_dir_all(&directory).map_err(|error| format!("{}: {error}", directory.display()))?;
        let settings = scratch.write("nginx/nginx.conf", &settings(address))?;
        let log = directory.join("nginx.log");
        let program = crate::programs::find("nginx").ok_or("nginx is not installed")?;
        let arguments = [
            OsStr::new("-p"),
            directory.as_os_str(),
            OsStr::new("-c"),
            settings.as_os_str(),
            OsStr::new("-e"),
            log.as_os_str(),
        ];
        let mut process = Process::start(&program, &arguments, &[], directory.join("stderr.log"))?;
        if !programs::listens(address, || process.ended().is_some()) {
            return Err(format!("nginx did not start:\n{}", process.complaints()));
        }
        Ok(Self { address, _process: process })
    }

    /// Its address, as `http://ADDRESS`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

/// One process without a master, so that ending it ends all. A connection lives as long as the run.
fn settings(address: SocketAddr) -> String {
    format!(
        r#"
daemon off;
master_process off;
pid nginx.pid;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    keepalive_requests 1000000000;
    keepalive_timeout 1h;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    server {{
        listen {address} backlog=1024;
        location = {PATH} {{
            default_type application/json;
            return 200 '{{"id":"{MARK}","object":"charge","amount":1999,"currency":"usd","status":"succeeded"}}';
        }}
    }}
}}
"#
    )
}
