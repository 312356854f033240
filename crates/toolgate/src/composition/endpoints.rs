//! Where the gate listens: an address, with or without TLS, and a socket file.

use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::net::{TcpListener, UnixListener, UnixStream};
use toolgate_server::Endpoint;
use toolgate_server::listener::Tls;

use super::StartError;
use crate::configuration::NetworkSettings;

/// Endpoints that are open.
pub struct Endpoints {
    pub all: Vec<Endpoint>,
    /// The address that was bound.
    pub address: SocketAddr,
    /// The TLS of that address, where it has any.
    pub tls: Option<Arc<Tls>>,
    /// The socket file; it is removed with this.
    pub socket: Option<SocketFile>,
}

/// A socket file that is removed when the gate ends.
pub struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        // A file that cannot be removed is replaced at the next start.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Opens everything that the settings name.
pub async fn open(settings: &NetworkSettings) -> Result<Endpoints, StartError> {
    let tls = settings.tls.clone().map(Tls::open).transpose()?.map(Arc::new);
    let address = settings.listen;
    let listener = TcpListener::bind(address).await.map_err(|reason| StartError::Listen { address, reason })?;
    let address = listener.local_addr()?;
    let mut all = vec![Endpoint::Tcp { listener, tls: tls.clone(), proxy_protocol: settings.proxy_protocol }];
    let socket = match &settings.unix_socket {
        None => None,
        Some(path) => {
            let failed = |reason| StartError::Socket { path: path.display().to_string(), reason };
            all.push(Endpoint::Unix(bind_socket(path).await.map_err(failed)?));
            Some(SocketFile(path.clone()))
        }
    };
    Ok(Endpoints { all, address, tls, socket })
}

/// Binds a socket file that only this user can connect to, from its first moment on.
async fn bind_socket(path: &Path) -> std::io::Result<UnixListener> {
    match std::fs::symlink_metadata(path) {
        Ok(found) if !found.file_type().is_socket() => {
            return Err(std::io::Error::other("the path exists and is not a socket"));
        }
        // Left by a gate that was killed, unless a process listens there.
        Ok(_) if UnixStream::connect(path).await.is_ok() => {
            return Err(std::io::Error::other("another program listens on it"));
        }
        _ => {}
    }
    let hidden = path.with_extension(format!("{}.new", std::process::id()));
    let _ = std::fs::remove_file(&hidden);
    let listener = UnixListener::bind(&hidden)?;
    let placed = std::fs::set_permissions(&hidden, std::fs::Permissions::from_mode(0o600))
        .and_then(|()| std::fs::rename(&hidden, path));
    if let Err(error) = placed {
        let _ = std::fs::remove_file(&hidden);
        return Err(error);
    }
    Ok(listener)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_socket_is_private_replaces_a_dead_one_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("gate.sock");
        let first = bind_socket(&path).await.unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let error = bind_socket(&path).await.unwrap_err().to_string();
        assert_eq!(error, "another program listens on it");
        drop(first);
        bind_socket(&path).await.unwrap();
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "data").unwrap();
        assert_eq!(bind_socket(&path).await.unwrap_err().to_string(), "the path exists and is not a socket");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}
