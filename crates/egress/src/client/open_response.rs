//! A response whose head was read: read to its end, or piece by piece where it is a stream of events.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use http::{HeaderMap, Response, header};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use tokio::time::{Instant, timeout};

use super::timeout_at;
use crate::body::{self, InboundResponse};
use crate::error::{SendError, Stage};
use crate::pool::{Connection, Pool};

/// How long the end of a stream is waited for whose last event was read, so that its connection can be used again.
const END_TIMEOUT: Duration = Duration::from_millis(250);

/// A response of which only the head was read. Dropping it closes its connection.
pub(crate) struct OpenResponse {
    pub(super) response: Response<Incoming>,
    pub(super) connection: Connection,
    pub(super) pool: Arc<Pool>,
    pub(super) deadline: Instant,
}

impl OpenResponse {
    pub(crate) fn status(&self) -> u16 {
        self.response.status().as_u16()
    }

    pub(crate) fn headers(&self) -> &HeaderMap {
        self.response.headers()
    }

    /// Whether it is a stream of server-sent events. One that is compressed, which nobody asked for, is read as a whole.
    pub(crate) fn is_event_stream(&self) -> bool {
        let content_type = self.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let essence = content_type.and_then(|value| value.split(';').next()).unwrap_or_default();
        self.status() == 200
            && essence.trim().eq_ignore_ascii_case("text/event-stream")
            && !self.headers().contains_key(header::CONTENT_ENCODING)
            && body::check_framing(self.status(), self.headers()).is_ok()
    }

    /// Reads it to its end or to the limit.
    pub(crate) async fn read(self, limit: usize) -> Result<InboundResponse, SendError> {
        let Self { response, connection, pool, deadline } = self;
        let response = timeout_at(deadline, body::read(response, limit))
            .await
            .map_err(|_| SendError::TimedOut { stage: Stage::Body })??;
        // What is left of a truncated answer would be taken for the next one: that connection is dropped.
        if !response.truncated {
            pool.put(connection);
        }
        Ok(response)
    }

    /// The next piece of the body; `None` at its end.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, SendError> {
        loop {
            let frame = timeout_at(self.deadline, self.response.body_mut().frame()).await;
            match frame.map_err(|_| SendError::TimedOut { stage: Stage::Body })? {
                None => return Ok(None),
                Some(Err(error)) => return Err(body::broken(&error)),
                // A frame without data holds trailers, which nobody asked for.
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) if !data.is_empty() => return Ok(Some(data)),
                    _ => {}
                },
            }
        }
    }

    /// Gives the connection back after the last event that anybody wants, if the stream ends soon.
    pub(crate) fn release(mut self) {
        if self.response.body().is_end_stream() || matches!(self.response.body_mut().frame().now_or_never(), Some(None))
        {
            self.pool.put(self.connection);
            return;
        }
        tokio::spawn(async move {
            let ends = async { self.response.body_mut().frame().await.is_none() };
            if timeout(END_TIMEOUT, ends).await.unwrap_or(false) {
                self.pool.put(self.connection);
            }
        });
    }
}
