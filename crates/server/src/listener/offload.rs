//! Work on another thread, which is abandoned when its caller is dropped.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::response::{IntoResponse, Response};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use toolgate_gate::refusal::{Code, Refusal};

use crate::openintent::error::Denied;

/// A response computed on another thread. It is abandoned when it is no longer awaited, as on the connection's own
/// thread, but not before it was started.
pub(super) struct Offloaded {
    response: JoinHandle<Option<Result<Response, Infallible>>>,
    _waiting: oneshot::Sender<()>,
}

impl Offloaded {
    pub(super) fn new(
        to: &Handle,
        response: impl Future<Output = Result<Response, Infallible>> + Send + 'static,
    ) -> Self {
        let (waiting, gone) = oneshot::channel();
        let response = to.spawn(async move {
            tokio::select! {
                biased;
                response = response => Some(response),
                _ = gone => None,
            }
        });
        Self { response, _waiting: waiting }
    }
}

impl Future for Offloaded {
    type Output = Result<Response, Infallible>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let given_up = match ready!(Pin::new(&mut self.response).poll(context)) {
            Ok(Some(response)) => return Poll::Ready(response),
            Ok(None) => None,
            Err(error) => error.try_into_panic().ok(),
        };
        if let Some(panic) = given_up {
            std::panic::resume_unwind(panic);
        }
        let reason = "the gate is shutting down and dropped this request; check whether it was executed";
        Poll::Ready(Ok(Denied::from(Refusal::new(Code::LedgerUnavailable, reason)).into_response()))
    }
}
