//! A private PostgreSQL cluster: created in a temporary directory, listening on a free loopback port, removed with its
//! owner. It uses only the standard library, because `xtask` compiles the same file. It never installs PostgreSQL.

use std::fmt;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// The oldest PostgreSQL that Toolgate supports.
pub const OLDEST_VERSION: u32 = 15;

/// Whether a commit waits for the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// It waits, as in production. Figures are only true with this.
    Disk,
    /// It does not: a crash of the server loses nothing, a crash of the machine may. Enough for tests, and much faster.
    Memory,
}

#[derive(Debug)]
pub enum ClusterError {
    /// No directory with the server's programs was found.
    NotInstalled,
    /// The system refused something.
    Io(io::Error),
    /// The owner is root, as whom PostgreSQL refuses to run, and there is no other account to run it.
    NoAccount,
    /// PostgreSQL did not start; the end of its output.
    Refused(String),
}

/// The directory that holds `initdb`, `pg_ctl` and `postgres` of one installed version.
#[derive(Debug, Clone)]
pub struct Binaries(PathBuf);

/// A running cluster of one's own, with the superuser `toolgate` and no password. Stopped and removed when dropped, and
/// also when the owning process dies in any way.
#[derive(Debug)]
pub struct PrivateCluster {
    binaries: Binaries,
    home: Home,
    port: u16,
    durability: Durability,
    guard: Option<Guard>,
}

impl Binaries {
    /// Finds a supported version: first on `PATH`, then the newest in Debian's directories.
    pub fn find() -> Option<Self> {
        let mut installed: Vec<(u32, PathBuf)> = fs::read_dir("/usr/lib/postgresql")
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path().join("bin"))))
            .collect();
        installed.sort();
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path)
            .chain(installed.into_iter().rev().map(|(_, directory)| directory))
            .find_map(|directory| Self::within(&directory))
    }

    /// The binaries in `directory`, or where its `postgres` is a link to; a wrapper script's directory lacks the others.
    fn within(directory: &Path) -> Option<Self> {
        let server = directory.join("postgres").canonicalize().ok()?;
        let real = server.parent()?;
        let complete = ["initdb", "pg_ctl", "postgres"].iter().all(|name| real.join(name).is_file());
        let output = if complete { Command::new(&server).arg("--version").output().ok()? } else { return None };
        let version = major_version(&String::from_utf8_lossy(&output.stdout))?;
        (version >= OLDEST_VERSION).then(|| Self(real.to_owned()))
    }
}

impl PrivateCluster {
    /// Creates a cluster and starts it.
    pub fn create(durability: Durability) -> Result<Self, ClusterError> {
        let binaries = Binaries::find().ok_or(ClusterError::NotInstalled)?;
        let mut cluster = Self { binaries, home: Home::make()?, port: 0, durability, guard: None };
        // Between finding a free port and the server's taking it, another program may take it: then others are tried.
        cluster
            .start_on_free_port()
            .or_else(|_| cluster.start_on_free_port())
            .or_else(|_| cluster.start_on_free_port())
            .map(|()| cluster)
    }

    /// Where it listens, as a connection URL of the database `postgres`.
    pub fn url(&self) -> String {
        format!("postgres://toolgate@{}:{}/postgres", Ipv4Addr::LOCALHOST, self.port)
    }

    /// Stops the server as a crash would, keeping the data; nothing happens if it is stopped.
    pub fn stop(&mut self) -> Result<(), ClusterError> {
        match self.guard.take() {
            Some(guard) => Ok(guard.end(Data::Keep)?),
            None => Ok(()),
        }
    }

    /// Starts the server again on the same port; nothing happens if it runs.
    pub fn start(&mut self) -> Result<(), ClusterError> {
        if self.guard.is_none() {
            // On shutdown the server waits this long for clients that have connected and not authenticated yet.
            let timeout = "-c authentication_timeout=10";
            let fsync = if self.durability == Durability::Disk { "on" } else { "off" };
            let options = format!(
                "-p {} -c listen_addresses={} -c unix_socket_directories= -c max_connections=200 -c fsync={fsync} {timeout}",
                self.port,
                Ipv4Addr::LOCALHOST,
            );
            self.guard = Some(Guard::start(&self.binaries, &self.home, &options)?);
        }
        Ok(())
    }

    fn start_on_free_port(&mut self) -> Result<(), ClusterError> {
        self.port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        self.start()
    }
}

impl Drop for PrivateCluster {
    fn drop(&mut self) {
        // The worst that a failure leaves behind is files in the temporary directory.
        if let Some(guard) = self.guard.take() {
            let _ = guard.end(Data::Remove);
        }
        let _ = fs::remove_dir_all(&self.home.path);
    }
}

impl fmt::Display for ClusterError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotInstalled => write!(formatter, "PostgreSQL {OLDEST_VERSION} or later is not installed"),
            Self::Io(error) => write!(formatter, "the private PostgreSQL cluster could not be created: {error}"),
            Self::NoAccount => write!(formatter, "PostgreSQL does not run as root: add an account named nobody"),
            Self::Refused(log) => write!(formatter, "PostgreSQL did not start:\n{log}"),
        }
    }
}

impl std::error::Error for ClusterError {}

impl From<io::Error> for ClusterError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// A small shell between the owner and the server. It waits on a pipe from the owner, and the system closes that pipe
/// however the owner ends, even by `kill -9`; the shell then stops the server and removes the files.
#[derive(Debug)]
struct Guard {
    process: Child,
    pipe: ChildStdin,
}

/// What happens to the files when the server stops.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Data {
    Keep,
    Remove,
}

/// Signals meant for the owner (Ctrl-C, a closed terminal) are not the guard's business: it ends after the owner.
const GUARD: &str = r#"
trap '' HUP INT PIPE TERM
binaries=$1 home=$2 options=$3
exec 2>>"$home/log"
initialise() {
    [ -s "$home/data/PG_VERSION" ] || "$binaries/initdb" --no-sync --no-instructions --auth=trust --username=toolgate \
        --encoding=UTF8 --locale=C --pgdata="$home/data" >&2
}
start() {
    "$binaries/pg_ctl" start --silent --wait --timeout=60 --pgdata="$home/data" --log="$home/log" --options="$options" >&2
}
if initialise && start; then
    echo ready
    read -r data
else
    tail -n 20 "$home/log"
    data=keep
fi
"$binaries/pg_ctl" stop --silent --wait --mode=immediate --pgdata="$home/data" >&2
[ "$data" = keep ] || rm -rf "$home"
"#;

impl Guard {
    /// Returns when the server responds.
    fn start(binaries: &Binaries, home: &Home, options: &str) -> Result<Self, ClusterError> {
        let mut command = Command::new("sh");
        command.args(["-c", GUARD, "guard"]).arg(&binaries.0).arg(&home.path).arg(options);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        command.current_dir(&home.path).process_group(0);
        if let Some(Account { user, group }) = home.account {
            command.uid(user).gid(group);
        }
        let mut process = command.spawn()?;
        let (Some(pipe), Some(output)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(io::Error::from(io::ErrorKind::BrokenPipe).into());
        };
        let mut output = BufReader::new(output);
        let mut answer = String::new();
        output.read_line(&mut answer)?;
        if answer == "ready\n" {
            return Ok(Self { process, pipe });
        }
        output.read_to_string(&mut answer)?;
        process.wait()?;
        Err(ClusterError::Refused(answer))
    }

    fn end(mut self, data: Data) -> io::Result<()> {
        if data == Data::Keep {
            self.pipe.write_all(b"keep\n")?;
        }
        drop(self.pipe);
        self.process.wait().map(|_| ())
    }
}

/// The directory of one cluster.
#[derive(Debug)]
struct Home {
    path: PathBuf,
    /// The owner of the files and the server, if not the owner of this process.
    account: Option<Account>,
}

#[derive(Debug, Clone, Copy)]
struct Account {
    user: u32,
    group: u32,
}

impl Home {
    fn make() -> Result<Self, ClusterError> {
        let path = Self::make_directory()?;
        let mut home = Self { path, account: None };
        if fs::metadata(&home.path)?.uid() == 0 {
            let account = Account::unprivileged().ok_or(ClusterError::NoAccount)?;
            std::os::unix::fs::chown(&home.path, Some(account.user), Some(account.group))?;
            home.account = Some(account);
        }
        Ok(home)
    }

    fn make_directory() -> io::Result<PathBuf> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = std::env::temp_dir().join(format!("toolgate-postgres-{}-{number}", std::process::id()));
            match fs::DirBuilder::new().mode(0o700).create(&path) {
                // Left by an earlier process with the same id whose guard was killed with it.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                outcome => return outcome.map(|()| path),
            }
        }
    }
}

impl Account {
    /// `postgres`, else `nobody`.
    fn unprivileged() -> Option<Self> {
        let accounts = fs::read_to_string("/etc/passwd").ok()?;
        ["postgres", "nobody"].iter().find_map(|name| accounts.lines().find_map(|line| Self::named(name, line)))
    }

    /// The account in one line of `/etc/passwd`, if it has this name.
    fn named(name: &str, line: &str) -> Option<Self> {
        let mut fields = line.split(':');
        let user = fields.next().filter(|field| *field == name).and_then(|_| fields.nth(1))?.parse().ok()?;
        Some(Self { user, group: fields.next()?.parse().ok()? })
    }
}

/// `15` from `postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)`, and from `postgres (PostgreSQL) 19beta1` 19.
fn major_version(text: &str) -> Option<u32> {
    let number = text.split_once("(PostgreSQL) ")?.1;
    number.split(|character: char| !character.is_ascii_digit()).next()?.parse().ok()
}
