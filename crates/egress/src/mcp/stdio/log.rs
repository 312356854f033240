//! What a process says about itself on its standard error: passed on without its secret, up to a limit, and read only so
//! fast.

use std::io;

use tokio::io::AsyncRead;
use toolgate_model::redaction::Redactor;
use toolgate_model::secret::{Material, Secret};

use super::lines::Lines;
use super::throttle::Throttle;

/// The longest line, and how many lines are passed on.
const LINE_LIMIT: usize = 4 * 1024;
const LINES: usize = 1_000;

/// Reads the log of a process of this mount until it ends.
pub(super) fn log(
    stderr: impl AsyncRead + Unpin + Send + 'static,
    mount: String,
    secret: Option<&str>,
) -> impl Future<Output = ()> + Send + 'static {
    let redactor = redactor_of(secret);
    async move {
        let (mut lines, mut throttle) = (Lines::new(stderr, LINE_LIMIT), Throttle::new());
        let mut count = 0;
        loop {
            let length = match lines.next().await {
                Ok(Some(mut line)) => {
                    let length = line.len();
                    count += 1;
                    if count <= LINES {
                        redactor.redact_bytes(&mut line);
                        let line = String::from_utf8_lossy(&line);
                        tracing::debug!(%mount, line = %line.escape_debug(), "a mounted server says");
                    }
                    length
                }
                // A line without end is not kept, and what follows it is read on.
                Err(error) if error.kind() == io::ErrorKind::FileTooLarge => lines.skip(),
                Ok(None) | Err(_) => return,
            };
            throttle.spend(length).await;
        }
    }
}

fn redactor_of(secret: Option<&str>) -> Redactor {
    let mut material = Material::new();
    if let Some(secret) = secret {
        material.insert("secret".to_owned(), Secret::new(secret.to_owned()));
    }
    Redactor::new(&material)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::AsyncWriteExt;
    use tokio::time::timeout;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_process_that_floods_its_log_is_slowed_down_by_its_pipe() {
        for noise in ["x\n".repeat(32 * 1024), "\n".repeat(64 * 1024), "x".repeat(64 * 1024)] {
            let (mut writer, reader) = tokio::io::duplex(64 * 1024);
            let reading = tokio::spawn(log(reader, "mount".to_owned(), None));
            let mut written = 0;
            let flood = async {
                loop {
                    writer.write_all(noise.as_bytes()).await.unwrap();
                    written += noise.len();
                }
            };
            let _: Result<(), _> = timeout(Duration::from_secs(10), flood).await;
            assert!((64 * 1024..=4 * 1024 * 1024).contains(&written), "{written} bytes in ten seconds");
            drop(writer);
            reading.await.unwrap();
        }
    }
}
