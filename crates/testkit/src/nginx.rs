//! A real nginx in front of gates, with its default timeouts.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

/// The protocol of nginx to the gates behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Upstreams {
    /// As it does where nothing is configured: HTTP/1.0, and a connection for each request.
    Default,
    /// HTTP/1.1 with keep-alive, as in `docs/configuration.md`.
    KeepAlive,
}

/// A running nginx, which ends with this value.
#[derive(Debug)]
pub struct Nginx {
    process: Child,
    address: SocketAddr,
    _directory: TempDir,
}

impl Nginx {
    /// Starts nginx in front of these gates; panics with its output if it does not start.
    pub fn start(gates: &[SocketAddr], upstreams: Upstreams) -> Self {
        let directory = TempDir::with_prefix("toolgate-nginx-").expect("a temporary directory");
        // Between finding a free port and nginx's taking it, another program may take it: then others are tried.
        let started = (0..5).find_map(|_| {
            let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
            let address = address.expect("a free port");
            Some((run(&directory, &settings(address, gates, upstreams), address)?, address))
        });
        let (process, address) = started.unwrap_or_else(|| {
            let log = fs::read_to_string(directory.path().join("error.log")).unwrap_or_default();
            panic!("nginx did not start:\n{log}")
        });
        Self { process, address, _directory: directory }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // Both fail only if the process has ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Starts nginx and waits until it listens; `None` where it ends before that.
fn run(directory: &TempDir, settings: &str, address: SocketAddr) -> Option<Child> {
    let file = directory.path().join("nginx.conf");
    fs::write(&file, settings).expect("the configuration of nginx");
    // The system kills it when this process dies in any way.
    let mut process = Command::new("setpriv")
        .args(["--pdeathsig", "KILL"])
        .arg(program())
        .arg("-p")
        .arg(directory.path())
        .arg("-c")
        .arg(file)
        .args(["-e", "error.log"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("a process for nginx");
    loop {
        if TcpStream::connect(address).is_ok() {
            return Some(process);
        }
        if process.try_wait().expect("the state of nginx").is_some() {
            return None;
        }
        std::thread::yield_now();
    }
}

/// Servers are often outside the `PATH` of an ordinary user.
fn program() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut directories = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/usr/local/sbin".into()]);
    let found = directories.find_map(|directory| Some(directory.join("nginx")).filter(|place| place.is_file()));
    found.expect("nginx is not installed: run cargo xtask test, which does that")
}

/// Timeouts, buffering and retries are nginx's own defaults.
fn settings(address: SocketAddr, gates: &[SocketAddr], upstreams: Upstreams) -> String {
    let servers: String = gates.iter().map(|gate| format!("server {gate} max_fails=0; ")).collect();
    let (keepalive, http) = match upstreams {
        Upstreams::Default => ("", ""),
        Upstreams::KeepAlive => ("keepalive 32;", "proxy_http_version 1.1; proxy_set_header Connection \"\";"),
    };
    format!(
        "daemon off; master_process off; pid nginx.pid;
        events {{ worker_connections 2048; }}
        http {{
            access_log off;
            client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi;
            scgi_temp_path scgi;
            upstream gates {{ {servers} {keepalive} }}
            server {{
                listen {address};
                location / {{
                    proxy_pass http://gates;
                    proxy_set_header Host $http_host;
                    proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
                    {http}
                }}
            }}
        }}
        "
    )
}
