//! A private PostgreSQL for tests and benchmarks, installed first if the machine has none.

use std::fs;

use crate::cluster::{Binaries, Durability, PrivateCluster};
use crate::debian;

/// The variable with the URL of the private PostgreSQL for tests and benchmarks.
pub const VARIABLE: &str = "TOOLGATE_TEST_POSTGRES";

/// Starts a cluster that ends when the returned value is dropped, or this program dies.
pub fn start(durability: Durability) -> Result<PrivateCluster, String> {
    if Binaries::find().is_none() {
        install()?;
    }
    let cluster = PrivateCluster::create(durability).map_err(|error| error.to_string())?;
    println!("PostgreSQL answers at {}", cluster.url());
    Ok(cluster)
}

/// Debian's settings for the cluster that installing a server creates.
const NEW_CLUSTERS: &str = "/etc/postgresql-common/createcluster.conf";

/// Installs the server but keeps Debian from creating and starting a cluster.
fn install() -> Result<(), String> {
    debian::install(&["postgresql-common"])?;
    let settings = fs::read_to_string(NEW_CLUSTERS).map_err(|error| format!("{NEW_CLUSTERS}: {error}"))?;
    let write = |text: &str| fs::write(NEW_CLUSTERS, text).map_err(|error| format!("{NEW_CLUSTERS}: {error}"));
    write(&format!("{settings}\ncreate_main_cluster = false\n"))?;
    let outcome = debian::install(&["postgresql"]);
    write(&settings)?;
    outcome
}
