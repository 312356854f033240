//! Writes to standard output, and knows what the reader has consumed: data in a pipe is lost if the reader ends.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::sync::mpsc::{Sender, channel};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ioctl_fionread};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// How often the pipe of a slow reader is polled.
const POLL_INTERVAL_MS: u32 = 32;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taken {
    All,
    /// The reader is gone, and has consumed this many bytes.
    Gone(usize),
}

/// Writes on its own thread, because a reader can block it while signals must be handled.
pub(crate) struct OutputWriter {
    batches: Sender<Vec<u8>>,
    outcomes: UnboundedReceiver<io::Result<Taken>>,
}

impl OutputWriter {
    pub(crate) fn of_stdout() -> io::Result<Self> {
        let sink = Sink::new(File::from(io::stdout().as_fd().try_clone_to_owned()?))?;
        let (batches, received) = channel::<Vec<u8>>();
        let (sender, outcomes) = unbounded_channel();
        std::thread::Builder::new().name("output".to_owned()).spawn(move || {
            let mut sink = sink;
            for batch in received {
                if sender.send(sink.deliver(&batch)).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self { batches, outcomes })
    }

    /// Waits until the reader has consumed the bytes.
    pub(crate) async fn write(&mut self, bytes: Vec<u8>) -> io::Result<Taken> {
        let ended = || io::Error::other("the writer thread has ended");
        self.batches.send(bytes).map_err(|_| ended())?;
        self.outcomes.recv().await.ok_or_else(ended)?
    }
}

/// Unbuffered.
struct Sink {
    file: File,
    kind: SinkKind,
}

enum SinkKind {
    /// Data is consumed when it is on disk.
    File,
    /// Data that was not read is lost with the reader.
    Pipe,
    /// A terminal or a socket, of which nothing more is known than that data was written.
    Other,
}

impl Sink {
    fn new(file: File) -> io::Result<Self> {
        let found = file.metadata()?.file_type();
        let kind = match () {
            () if found.is_fifo() => SinkKind::Pipe,
            () if found.is_file() => SinkKind::File,
            () => SinkKind::Other,
        };
        Ok(Self { file, kind })
    }

    /// INVARIANT: returns [`Taken::All`] only if the reader, or the disk, has every byte.
    fn deliver(&mut self, bytes: &[u8]) -> io::Result<Taken> {
        let mut written = 0;
        while let Some(rest) = bytes.get(written..).filter(|rest| !rest.is_empty()) {
            match self.file.write(rest) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => written += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::BrokenPipe => return self.gone(written),
                Err(error) => return Err(error),
            }
        }
        match self.kind {
            SinkKind::File => self.file.sync_data().map(|()| Taken::All),
            SinkKind::Pipe => self.wait_for_reader(written),
            SinkKind::Other => Ok(Taken::All),
        }
    }

    fn wait_for_reader(&self, written: usize) -> io::Result<Taken> {
        let mut pause_ms = 1;
        while ioctl_fionread(&self.file)? > 0 {
            // poll reports that the reader is gone, but not that the pipe is empty.
            let mut watched = [PollFd::new(&self.file, PollFlags::empty())];
            let pause = Timespec { tv_sec: 0, tv_nsec: i64::from(pause_ms) * 1_000_000 };
            match poll(&mut watched, Some(&pause)) {
                Ok(0) | Err(Errno::INTR) => pause_ms = (pause_ms * 2).min(POLL_INTERVAL_MS),
                Ok(_) => return self.gone(written),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Taken::All)
    }

    /// Subtracts what is still in the pipe.
    fn gone(&self, written: usize) -> io::Result<Taken> {
        let unread = match self.kind {
            SinkKind::Pipe => usize::try_from(ioctl_fionread(&self.file)?).unwrap_or(usize::MAX),
            SinkKind::File | SinkKind::Other => 0,
        };
        Ok(Taken::Gone(written.saturating_sub(unread)))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::fd::OwnedFd;

    use super::*;

    fn sink(end: impl Into<OwnedFd>) -> Sink {
        Sink::new(File::from(end.into())).unwrap()
    }

    #[test]
    fn bytes_count_when_the_reader_has_taken_them() {
        let (mut reader, writer) = io::pipe().unwrap();
        let bytes = vec![b'x'; 300_000];
        let expected = bytes.clone();
        let delivered = std::thread::spawn(move || sink(writer).deliver(&bytes).unwrap());
        let mut read = Vec::new();
        reader.read_to_end(&mut read).unwrap();
        assert_eq!((delivered.join().unwrap(), read), (Taken::All, expected));
    }

    #[test]
    fn what_lies_in_the_pipe_of_a_reader_that_is_gone_does_not_count() {
        for length in [2_000, 300_000] {
            let (mut reader, writer) = io::pipe().unwrap();
            let delivered = std::thread::spawn(move || sink(writer).deliver(&vec![b'x'; length]).unwrap());
            reader.read_exact(&mut [0; 1_234]).unwrap();
            drop(reader);
            assert_eq!(delivered.join().unwrap(), Taken::Gone(1_234), "{length}");
        }
    }

    #[test]
    fn a_file_has_what_was_written() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("lines");
        assert_eq!(sink(File::create(&path).unwrap()).deliver(b"one\n").unwrap(), Taken::All);
        assert_eq!(std::fs::read(path).unwrap(), b"one\n");
    }
}
