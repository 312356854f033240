//! nginx as a server beside the gate: one worker, no logs, connections that live as long as the run.

use std::ffi::OsStr;
use std::net::SocketAddr;

use super::programs::{self, Process};
use super::scratch::Scratch;

#[derive(Debug)]
pub struct Nginx {
    address: SocketAddr,
    process: Process,
}

impl Nginx {
    /// Starts it on a free port, with these directives besides its server, and these in it. `name` is that of its
    /// directory.
    pub fn start(scratch: &Scratch, name: &str, beside: &str, server: &str) -> Result<Self, String> {
        let address = programs::free_address()?;
        let directory = scratch.path().join(name);
        std::fs::create_dir_all(&directory).map_err(|error| format!("{}: {error}", directory.display()))?;
        let settings = scratch.write(&format!("{name}/nginx.conf"), &settings(address, beside, server))?;
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
            let log = std::fs::read_to_string(&log).unwrap_or_default();
            return Err(format!("nginx did not start:\n{}{log}", process.complaints()));
        }
        Ok(Self { address, process })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its address, as `http://ADDRESS`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The number of its process.
    pub fn process(&self) -> u32 {
        self.process.id()
    }
}

/// One process without a master, so that ending it ends all. A connection lives as long as the run.
fn settings(address: SocketAddr, beside: &str, server: &str) -> String {
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
    {beside}
    server {{
        listen {address} backlog=1024;
        {server}
    }}
}}
"#
    )
}
