//! Checkpoints: the write-ahead log is copied into the database. A separate thread does most of it while the writer
//! continues; between two transactions only the last part is left, after which the log restarts.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};

use rusqlite::hooks::Wal;
use rusqlite::wal::CheckpointMode;
use rusqlite::{Connection, ErrorCode};

/// Lengths of the log, in pages.
#[derive(Clone, Copy)]
struct Marks {
    /// After so many more it is worked off.
    stride: usize,
    /// From this size the log should restart.
    full: usize,
    /// At this size the writer waits for the other thread: only a long read lets the log grow further.
    overfull: usize,
}

const MARKS: Marks = Marks { stride: 1_000, full: 4_000, overfull: 16_000 };

/// The writer's side of it.
pub(super) struct Checkpoints {
    marks: Marks,
    /// The size of the log: SQLite reports it after each commit.
    pages: Arc<AtomicUsize>,
    /// The size at the last check.
    seen: usize,
    /// The size at which the next checkpoint starts.
    next: usize,
    begin: Sender<()>,
    ended: Receiver<()>,
    /// Whether the other thread is at it.
    in_flight: bool,
}

impl Checkpoints {
    /// Takes over the checkpoints of the writer's connection, with another connection to the same database.
    pub(super) fn start(writer: &mut Connection, other: Connection) -> io::Result<Self> {
        let pages = Arc::new(AtomicUsize::new(0));
        let shared_pages = Arc::clone(&pages);
        let hook = move |_: &mut Wal, pages| {
            shared_pages.store(usize::try_from(pages).unwrap_or(0), Ordering::Relaxed);
            Ok(())
        };
        // It replaces SQLite's automatic checkpoints, which run before a commit returns.
        writer.wal_hook(Some(hook)).map_err(io::Error::other)?;
        let (begin, begun) = channel();
        let (end, ended) = channel();
        std::thread::Builder::new().name("ledger-log".to_owned()).spawn(move || {
            while begun.recv().is_ok() {
                work_off(&other);
                if end.send(()).is_err() {
                    break;
                }
            }
        })?;
        Ok(Self { marks: MARKS, pages, seen: 0, next: MARKS.stride, begin, ended, in_flight: false })
    }

    /// Called between two transactions, after the last one was acknowledged.
    pub(super) fn between_transactions(&mut self, writer: &Connection) {
        let Marks { stride, full, overfull } = self.marks;
        let pages = self.pages.load(Ordering::Relaxed);
        if pages < self.seen {
            self.next = stride;
        }
        self.seen = pages;
        if !self.in_flight {
            if pages < self.next {
                return;
            }
            self.in_flight = self.begin.send(()).is_ok();
        }
        // A thread that has ended is not waited for.
        let ended = match self.ended.try_recv() {
            Err(TryRecvError::Empty) if pages < overfull => false,
            Err(TryRecvError::Empty) => {
                let _ = self.ended.recv();
                true
            }
            Ok(()) | Err(TryRecvError::Disconnected) => true,
        };
        if ended {
            self.in_flight = false;
            self.next = pages + stride;
            if pages >= full {
                work_off(writer);
            }
        }
    }
}

/// Copies as much into the database as concurrent readers allow.
fn work_off(connection: &Connection) {
    match connection.wal_checkpoint_v2(Some(rusqlite::MAIN_DB), CheckpointMode::PASSIVE) {
        // Where another process, such as the shell of SQLite, is at it, it is done as well.
        Err(error) if error.sqlite_error_code() != Some(ErrorCode::DatabaseBusy) => {
            // Nothing is lost: everything is in the log, which grows until a checkpoint succeeds.
            tracing::warn!(%error, "could not checkpoint the write-ahead log of the ledger");
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    const SMALL: Marks = Marks { stride: 10, full: 40, overfull: 160 };

    /// A database with its writer, its checkpoints, and a reader.
    struct Fixture {
        _directory: TempDir,
        writer: Connection,
        checkpoints: Checkpoints,
        reader: Connection,
    }

    impl Fixture {
        fn new() -> Self {
            let directory = TempDir::new().unwrap();
            let path = directory.path().join("database");
            let connect = || {
                let connection = Connection::open(&path).unwrap();
                connection.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF").unwrap();
                connection
            };
            let mut writer = connect();
            writer.execute_batch("CREATE TABLE lines (text TEXT)").unwrap();
            let checkpoints = Checkpoints::start(&mut writer, connect()).unwrap();
            let reader = connect();
            Self {
                _directory: directory,
                writer,
                checkpoints: Checkpoints { marks: SMALL, next: SMALL.stride, ..checkpoints },
                reader,
            }
        }

        /// Writes a page and a little more; returns the size of the log.
        fn write(&mut self) -> usize {
            self.writer.execute("INSERT INTO lines VALUES (?1)", ["x".repeat(5_000)]).unwrap();
            self.checkpoints.between_transactions(&self.writer);
            self.checkpoints.seen
        }
    }

    #[test]
    fn the_log_begins_anew_however_much_is_written() {
        let mut fixture = Fixture::new();

        let lengths: Vec<_> = (0..2_000).map(|_| fixture.write()).collect();

        let longest = lengths.iter().max().unwrap();
        assert!(*longest < SMALL.overfull + 20, "{longest} pages");
        let anew = lengths.windows(2).filter(|pair| pair[1] < pair[0]).count();
        assert!(anew >= 2, "it began anew {anew} times");
        let kept: u32 = fixture.writer.query_row("SELECT COUNT(*) FROM lines", [], |row| row.get(0)).unwrap();
        assert_eq!(kept, 2_000);
    }

    #[test]
    fn who_reads_keeps_the_log_and_it_begins_anew_when_they_are_through() {
        let mut fixture = Fixture::new();
        fixture.write();
        fixture.reader.execute_batch("BEGIN; SELECT COUNT(*) FROM lines").unwrap();

        let lengths: Vec<_> = (0..300).map(|_| fixture.write()).collect();
        assert!(lengths.is_sorted(), "it was not begun anew under a reader");
        let read: u32 = fixture.reader.query_row("SELECT COUNT(*) FROM lines", [], |row| row.get(0)).unwrap();
        assert_eq!(read, 1, "the reader sees what was there when it began");

        fixture.reader.execute_batch("COMMIT").unwrap();
        assert!((0..300).any(|_| fixture.write() < SMALL.full));
    }

    #[test]
    fn the_writer_does_without_the_other_thread_where_that_is_gone() {
        let mut fixture = Fixture::new();
        (fixture.checkpoints.begin, _) = channel();
        (_, fixture.checkpoints.ended) = channel();

        let lengths: Vec<_> = (0..200).map(|_| fixture.write()).collect();

        let longest = lengths.iter().max().unwrap();
        assert!(*longest < SMALL.full + 20, "{longest} pages");
    }
}
