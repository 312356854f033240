//! Databases for tests: each test gets its own, on the PostgreSQL that `cargo xtask test` started, or else on one that
//! this process starts for the first test and that ends with the process.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::LazyLock;
use std::time::Duration;

use tokio::sync::OnceCell;
use tokio_postgres::NoTls;
use toolgate_ledger::PostgresEngine;

pub use crate::cluster::{Durability, PrivateCluster};

/// The variable with which `cargo xtask test` passes the URL of its PostgreSQL, ending with a slash and the name of a
/// database.
pub const VARIABLE: &str = "TOOLGATE_TEST_POSTGRES";

/// An empty database of one's own, dropped with this value.
#[derive(Debug)]
pub struct TestDatabase {
    name: String,
    url: String,
}

impl TestDatabase {
    /// Creates the database; panics with advice if there is no PostgreSQL.
    pub async fn create() -> Self {
        let name = format!("test_{:016x}", RandomState::new().build_hasher().finish());
        execute(&format!("CREATE DATABASE {name}")).await.expect("a database for the test");
        let url = server_url(&name);
        Self { name, url }
    }

    /// A database with the tables of an empty ledger: a copy of one that is migrated once on the server.
    pub async fn migrated() -> Self {
        static TEMPLATE: OnceCell<()> = OnceCell::const_new();
        TEMPLATE.get_or_init(migrate_template).await;
        Self::copy_of(TEMPLATE_NAME).await
    }

    /// A copy of its present state, under another name. No client may be connected.
    pub async fn copy(&self) -> Self {
        Self::copy_of(&self.name).await
    }

    async fn copy_of(template: &str) -> Self {
        let name = format!("test_{:016x}", RandomState::new().build_hasher().finish());
        execute(&format!("CREATE DATABASE {name} TEMPLATE {template}")).await.expect("a copy of the database");
        let url = server_url(&name);
        Self { name, url }
    }

    /// Replaces it by a copy, as a restore does; clients are disconnected.
    pub async fn restore(&self, copy: Self) {
        execute(&format!("DROP DATABASE {} WITH (FORCE)", self.name)).await.expect("a database to be replaced");
        execute(&format!("ALTER DATABASE {} RENAME TO {}", copy.name, self.name)).await.expect("a copy to be restored");
    }

    pub fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        let statement = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name);
        // A separate thread, because the test's runtime cannot be awaited from inside. Best effort: what remains is
        // removed with the cluster.
        let dropping = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.map(|runtime| runtime.block_on(execute(&statement)))
        });
        let _ = dropping.join();
    }
}

/// The URL of the server for all databases of this process.
static SERVER: LazyLock<String> = LazyLock::new(|| std::env::var(VARIABLE).unwrap_or_else(|_| OWN_CLUSTER.url()));

/// Never dropped, as statics are not; its guard sees the process end.
static OWN_CLUSTER: LazyLock<PrivateCluster> = LazyLock::new(|| {
    PrivateCluster::create(Durability::Memory)
        .unwrap_or_else(|error| panic!("{error}: run cargo xtask test, which installs PostgreSQL"))
});

/// The database that [`TestDatabase::migrated`] copies; it ends with the cluster.
const TEMPLATE_NAME: &str = "migrated_ledger";
/// The lock under which test programs on one server migrate it once.
const TEMPLATE_LOCK: i64 = 0x7467_7465_7374;

fn server_url(database: &str) -> String {
    let (server, _) = SERVER.rsplit_once('/').expect("a URL that ends with a database's name");
    format!("{server}/{database}")
}

async fn migrate_template() {
    let (client, connection) = tokio_postgres::connect(&SERVER, NoTls).await.expect("the server of the tests");
    let connection = tokio::spawn(connection);
    client.execute("SELECT pg_advisory_lock($1)", &[&TEMPLATE_LOCK]).await.expect("the lock of the template");
    let exists = client.query("SELECT 1 FROM pg_database WHERE datname = $1", &[&TEMPLATE_NAME]).await;
    if exists.expect("the databases of the server").is_empty() {
        // Under another name until it is complete: a program that is killed in between leaves nothing that would be
        // used.
        let begun = format!("{TEMPLATE_NAME}_begun");
        let leftover = format!("DROP DATABASE IF EXISTS {begun} WITH (FORCE)");
        client.batch_execute(&leftover).await.expect("what another program has left");
        client.batch_execute(&format!("CREATE DATABASE {begun}")).await.expect("the template");
        drop(PostgresEngine::open(&server_url(&begun), 4, Duration::from_secs(60)).await.expect("a migration"));
        let disconnect = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1";
        client.execute(disconnect, &[&begun]).await.expect("the end of its connections");
        let rename = format!("ALTER DATABASE {begun} RENAME TO {TEMPLATE_NAME}");
        client.batch_execute(&rename).await.expect("a finished template");
    }
    drop(client);
    let _ = connection.await;
}

async fn execute(statement: &str) -> Result<(), tokio_postgres::Error> {
    let (client, connection) = tokio_postgres::connect(&SERVER, NoTls).await?;
    let connection = tokio::spawn(connection);
    let outcome = client.batch_execute(statement).await;
    drop(client);
    let _ = connection.await;
    outcome
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Read};
    use std::process::{Command, Stdio};

    use super::*;

    async fn connect(url: &str) -> tokio_postgres::Client {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
        tokio::spawn(connection);
        client
    }

    #[tokio::test]
    async fn every_test_gets_an_empty_database_of_its_own() {
        let (one, other) = (TestDatabase::create().await, TestDatabase::create().await);
        let client = connect(one.url()).await;
        client.batch_execute("CREATE TABLE marks (mark INT); INSERT INTO marks VALUES (1)").await.unwrap();
        assert_eq!(client.query_one("SELECT mark FROM marks", &[]).await.unwrap().get::<_, i32>(0), 1);
        assert!(connect(other.url()).await.query("SELECT mark FROM marks", &[]).await.is_err());
    }

    #[tokio::test]
    async fn a_dropped_database_is_gone_even_if_somebody_was_connected() {
        let database = TestDatabase::create().await;
        let _client = connect(database.url()).await;
        let url = database.url().to_owned();
        drop(database);
        assert!(tokio_postgres::connect(&url, NoTls).await.is_err());
    }

    #[tokio::test]
    async fn a_private_cluster_keeps_what_was_committed_over_a_crash_and_a_restart() {
        let mut cluster = PrivateCluster::create(Durability::Disk).unwrap();
        let url = cluster.url();
        let client = connect(&url).await;
        client.batch_execute("CREATE TABLE marks (mark INT); INSERT INTO marks VALUES (7)").await.unwrap();
        assert_eq!(client.query_one("SHOW fsync", &[]).await.unwrap().get::<_, &str>(0), "on");
        cluster.stop().unwrap();
        cluster.stop().unwrap();
        assert!(client.query("SELECT 1", &[]).await.is_err());
        assert!(tokio_postgres::connect(&url, NoTls).await.is_err());
        cluster.start().unwrap();
        cluster.start().unwrap();
        assert_eq!(cluster.url(), url);
        let row = connect(&url).await.query_one("SELECT mark FROM marks", &[]).await.unwrap();
        assert_eq!(row.get::<_, i32>(0), 7);
        drop(cluster);
        assert!(tokio_postgres::connect(&url, NoTls).await.is_err());
    }

    /// The test runs itself a second time as the process that dies.
    #[tokio::test]
    async fn a_cluster_ends_with_its_owner_even_if_that_is_killed() {
        const DYING: &str = "TOOLGATE_TEST_DYING_OWNER";
        if std::env::var_os(DYING).is_some() {
            let cluster = PrivateCluster::create(Durability::Memory).unwrap();
            println!("serving {}", cluster.url());
            std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
            panic!("it should be killed while it waits");
        }
        let name = "postgres::tests::a_cluster_ends_with_its_owner_even_if_that_is_killed";
        let mut owner = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture"])
            .env(DYING, "yes")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(owner.stdout.take().unwrap());
        let url = output
            .lines()
            .find_map(|line| line.unwrap().split_once("serving ").map(|(_, url)| url.to_owned()))
            .expect("the owner starts its cluster");
        let (_client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
        owner.kill().unwrap();
        owner.wait().unwrap();
        // This side does not close the connection: it ends when the server does.
        let _ = connection.await;
        assert!(tokio_postgres::connect(&url, NoTls).await.is_err());
    }
}
