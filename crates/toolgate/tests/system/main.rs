//! System tests: the real binary, in processes and homes of its own, spoken to over HTTP and by its command line.

mod cli;
mod configuration;
mod crash;
mod database_down;
mod disk_full;
mod documentation;
mod drain;
mod first_start;
mod grants_and_delegation;
mod keys_and_files;
mod rekey;
mod routes;
mod tenants_and_keys;
mod unauthorized;
mod vaults_and_credentials;
mod world;
