//! Answers that are passed on as they come. No stream ends in silence: where the call fails, an error says so.

use std::convert::Infallible;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use http::{StatusCode, header};
use toolgate_model::llm::Api;

use super::attempt::{Answer, Next, Outcome};
use super::error::Failure;
use super::events::{self, Begun};

pub(super) fn response(api: Api, answer: Answer) -> Response {
    let streaming = Streaming { api, answer, begun: Begun::default(), said: false, ended: false };
    let frames = stream::unfold(streaming, |mut streaming| async move {
        let frame = streaming.next().await?;
        Some((Ok::<_, Infallible>(frame), streaming))
    });
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream; charset=utf-8"),
        (header::CACHE_CONTROL, "no-store"),
        // Proxies that buffer responses would delay a stream for ever.
        (header::HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    (headers, Body::from_stream(frames)).into_response()
}

struct Streaming {
    api: Api,
    answer: Answer,
    begun: Begun,
    /// Whether anything of the answer was passed on.
    said: bool,
    ended: bool,
}

impl Streaming {
    async fn next(&mut self) -> Option<Bytes> {
        if self.ended {
            return None;
        }
        match self.answer.next().await {
            Next::Event(event) => {
                self.said = true;
                self.begun.note(self.api, &event);
                Some(events::written(&event))
            }
            Next::Silence => Some(Bytes::from_static(events::COMMENT)),
            Next::Ended(outcome) => {
                self.ended = true;
                let failure = self.failure(outcome)?;
                Some(events::failed(self.api, &failure, &self.begun))
            }
        }
    }

    /// Why the answer is not complete, if it is not.
    fn failure(&self, outcome: Outcome) -> Option<Failure> {
        match outcome {
            Err(denial) => Some(Failure::of_denial(&denial)),
            Ok(result) => match result.outcome.error {
                Some(error) => Some(Failure::of_error(&error, result.outcome.result, result.invocation)),
                None if self.said => None,
                None => {
                    let reason = "the provider answered as a whole, although a stream was asked for";
                    Some(Failure::new(StatusCode::BAD_GATEWAY, "service_error", reason))
                }
            },
        }
    }
}
