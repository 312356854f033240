//! Batches: commands that arrive while the last batch is in flight are sent together as the next one, so that the row
//! of a busy grant is locked once for all of them.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use tokio::sync::{mpsc, oneshot};
use toolgate_gate::distribution::Counted;
use toolgate_gate::refusal::{Code, Refusal};

use crate::batch_sizes::{BatchSizes, batch_sizes};
use crate::sql::unavailable;

/// The maximum number of commands per transaction.
const BATCH: usize = 128;
/// The maximum queue length; beyond it callers wait for a slot.
const QUEUE: usize = 4096;

/// Sends commands in batches.
pub(super) struct Batches<C, A> {
    queue: mpsc::Sender<Waiting<C, A>>,
    sizes: Arc<BatchSizes>,
}

struct Waiting<C, A> {
    command: C,
    reply: oneshot::Sender<Result<A, Refusal>>,
}

impl<C: Clone + Send + 'static, A: Send + 'static> Batches<C, A> {
    /// Starts sending with `run`, which returns a result for each command of a batch in order, or refuses them all.
    pub(super) fn start<F, R>(run: F) -> Self
    where
        F: Fn(Vec<C>) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Vec<A>, Refusal>> + Send + 'static,
    {
        let (sender, mut queue) = mpsc::channel::<Waiting<C, A>>(QUEUE);
        let (run, sizes) = (Arc::new(run), Arc::new(batch_sizes()));
        let counted = Arc::clone(&sizes);
        tokio::spawn(async move {
            let mut waiting = Vec::with_capacity(BATCH);
            while queue.recv_many(&mut waiting, BATCH).await > 0 {
                counted.add(u64::try_from(waiting.len()).unwrap_or(u64::MAX));
                // The callers of the batch get LEDGER_UNAVAILABLE; the next batch is sent.
                let sent = AssertUnwindSafe(send(&*run, std::mem::take(&mut waiting))).catch_unwind().await;
                if sent.is_err() {
                    tracing::error!("a ledger batch panicked");
                }
            }
        });
        Self { queue: sender, sizes }
    }

    pub(super) fn queued(&self) -> u64 {
        u64::try_from(self.queue.max_capacity().saturating_sub(self.queue.capacity())).unwrap_or(u64::MAX)
    }

    /// The number of commands per batch.
    pub(super) fn sizes(&self) -> Counted {
        self.sizes.counted()
    }

    /// Submits one command, which is batched with others that wait.
    pub(super) async fn submit(&self, command: C) -> Result<A, Refusal> {
        let (reply, received) = oneshot::channel();
        self.queue.send(Waiting { command, reply }).await.map_err(|_| unavailable())?;
        received.await.unwrap_or_else(|_| Err(unavailable()))
    }
}

async fn send<C: Clone, A, F, R>(run: &F, waiting: Vec<Waiting<C, A>>)
where
    F: Fn(Vec<C>) -> R,
    R: Future<Output = Result<Vec<A>, Refusal>>,
{
    let outcome = run(waiting.iter().map(|one| one.command.clone()).collect()).await;
    let alone = waiting.len() == 1;
    match outcome {
        Ok(replies) => {
            for (one, reply) in waiting.into_iter().zip(replies) {
                // A caller that has disconnected does not need the result.
                let _ = one.reply.send(Ok(reply));
            }
        }
        // One of them may be the cause: each gets its own transaction.
        Err(refusal) if !alone && matches!(refusal.code(), Code::Internal | Code::VersionConflict) => {
            for one in waiting {
                let reply =
                    run(vec![one.command]).await.and_then(|replies| replies.into_iter().next().ok_or_else(unavailable));
                let _ = one.reply.send(reply);
            }
        }
        Err(refusal) => {
            for one in waiting {
                let _ = one.reply.send(Err(refusal.clone()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_command_that_conflicts_does_not_fail_the_others_of_its_batch() {
        let run = |commands: Vec<u32>| async move {
            match commands.contains(&13) {
                true => Err(Refusal::new(Code::VersionConflict, "taken")),
                false => Ok(commands),
            }
        };
        let (replies, received): (Vec<_>, Vec<_>) = (0..3).map(|_| oneshot::channel()).unzip();
        let waiting = [1, 13, 2].into_iter().zip(replies).map(|(command, reply)| Waiting { command, reply });
        send(&run, waiting.collect()).await;
        let mut outcomes = Vec::new();
        for one in received {
            outcomes.push(one.await.unwrap().map_err(|refusal| refusal.code()));
        }
        assert_eq!(outcomes, [Ok(1), Err(Code::VersionConflict), Ok(2)]);
    }

    #[tokio::test]
    async fn a_batch_that_panics_fails_and_the_next_one_is_sent() {
        let batches = Batches::start(|commands: Vec<u32>| async move {
            assert!(!commands.contains(&13), "a fault of the program");
            Ok(commands)
        });
        assert_eq!(batches.submit(1).await, Ok(1));
        assert!(batches.submit(13).await.is_err());
        assert_eq!(batches.submit(2).await, Ok(2));
    }
}
