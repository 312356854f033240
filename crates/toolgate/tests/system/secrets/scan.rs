//! Looking everywhere: answers, both outputs, the export and every other way to read, every file and every table.

use std::path::Path;

use super::needles::Needles;
use crate::world::{Reply, World, block_on};

/// Ends the gate. None of the needles is in what was answered, nor in what it can be asked, said or kept.
pub fn assert_found_nowhere(world: World, answers: &[Reply], all: &[&Needles]) {
    assert_clean_answers(answers, all);
    let admin = world.admin();
    let paths =
        ["/api/v1/audit/export", "/api/v1/audit/events?limit=1000", "/api/v1/invocations?limit=1000", "/metrics"];
    assert_clean_answers(&paths.map(|path| admin.get(path)), all);
    let export = admin.get("/api/v1/export");
    export.ok();
    assert_clean_answers(&[export], all);
    assert_clean_database(&world, all);
    assert_clean_files(world.gate.setup().home(), all);
    let setup = world.gate.setup().clone();
    let (ended, database) = world.stop();
    assert!(ended.status.success());
    assert!(ended.stderr.lines().count() > 50, "the log was talkative:\n{}", ended.stderr);
    for needles in all {
        needles.assert_absent("standard output", ended.stdout.as_bytes());
        needles.assert_absent("standard error", ended.stderr.as_bytes());
    }
    assert_clean_files(setup.home(), all);
    drop(database);
}

fn assert_clean_answers(answers: &[Reply], all: &[&Needles]) {
    for reply in answers {
        for needles in all {
            needles.assert_absent(&reply.asked, &reply.answer.body);
            for (name, value) in &reply.answer.headers {
                needles.assert_absent(name, value.as_bytes());
            }
        }
    }
}

/// Every file below the directory, by name and content.
pub fn assert_clean_files(directory: &Path, all: &[&Needles]) {
    let mut seen = 0;
    let mut waiting = vec![directory.to_owned()];
    while let Some(next) = waiting.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                waiting.push(path);
                continue;
            }
            // A journal of the running ledger may go away while this looks.
            let Ok(bytes) = std::fs::read(&path) else { continue };
            for needles in all {
                needles.assert_absent(&path.display().to_string(), path.display().to_string().as_bytes());
                needles.assert_absent(&path.display().to_string(), &bytes);
            }
            seen += 1;
        }
    }
    assert!(seen > 0, "there were files to look into");
}

/// Every row of every table, where the ledger is PostgreSQL; SQLite's are files.
fn assert_clean_database(world: &World, all: &[&Needles]) {
    let Some(url) = world.database() else { return };
    let rows = block_on(async {
        let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        let tables = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'";
        let mut rows = Vec::new();
        for table in client.query(tables, &[]).await.unwrap() {
            let table: String = table.get(0);
            for row in client.query(&format!("SELECT CAST(t AS TEXT) FROM {table} AS t"), &[]).await.unwrap() {
                rows.push((table.clone(), row.get::<_, String>(0)));
            }
        }
        rows
    });
    assert!(rows.iter().any(|(table, _)| table == "credential_versions"), "all tables were read");
    for (table, row) in rows {
        for needles in all {
            needles.assert_absent(&table, row.as_bytes());
        }
    }
}
