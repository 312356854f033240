//! A body whose beginning was read to find out its size.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::time::timeout;

/// The timeout for the beginning of a body.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The part of a body that was read, and the rest.
pub(super) struct Prefetched<B = Incoming>
where
    B: Body<Data = Bytes>,
{
    read: VecDeque<Result<Frame<Bytes>, B::Error>>,
    /// `None` where the end was read.
    rest: Option<B>,
}

impl<B: Body<Data = Bytes> + Unpin> Prefetched<B> {
    /// Reads a body up to its end, until it has so many bytes, or until it has taken as long as a small one never does.
    pub(super) async fn read(mut body: B, most: u64) -> Self {
        let mut read = VecDeque::new();
        let has_ended = timeout(TIMEOUT, read_up_to(&mut body, most, &mut read)).await;
        Self { read, rest: (!has_ended.unwrap_or(false)).then_some(body) }
    }

    /// Whether all of it was read.
    pub(super) fn is_whole(&self) -> bool {
        self.rest.is_none()
    }
}

/// Reads up to this many bytes; true if the body has ended or failed before.
async fn read_up_to<B: Body<Data = Bytes> + Unpin>(
    body: &mut B,
    most: u64,
    read: &mut VecDeque<Result<Frame<Bytes>, B::Error>>,
) -> bool {
    let mut size = 0_u64;
    while size < most {
        let Some(frame) = body.frame().await else { return true };
        let bytes = frame.as_ref().ok().and_then(Frame::data_ref).map_or(0, Bytes::len);
        size = size.saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX));
        let is_broken = frame.is_err();
        read.push_back(frame);
        if is_broken {
            return true;
        }
    }
    false
}

impl<B: Body<Data = Bytes> + Unpin> Body for Prefetched<B>
where
    B::Error: Unpin,
{
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if let Some(frame) = self.read.pop_front() {
            return Poll::Ready(Some(frame));
        }
        match &mut self.rest {
            Some(rest) => Pin::new(rest).poll_frame(context),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.read.is_empty() && self.rest.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures_util::stream;
    use http_body_util::StreamBody;

    use super::*;

    fn chunks(sizes: &[usize]) -> impl Body<Data = Bytes, Error = Infallible> + Unpin {
        let frames: Vec<_> = sizes.iter().map(|size| Ok(Frame::data(Bytes::from(vec![b'x'; *size])))).collect();
        StreamBody::new(stream::iter(frames))
    }

    #[tokio::test]
    async fn a_body_is_whole_if_it_ends_before_it_is_large_and_nothing_of_it_is_lost() {
        for (sizes, is_whole) in [(vec![], true), (vec![3, 4], true), (vec![3, 5], false), (vec![20, 1], false)] {
            let body = Prefetched::read(chunks(&sizes), 8).await;
            assert_eq!(body.is_whole(), is_whole, "{sizes:?}");
            assert_eq!(body.collect().await.unwrap().to_bytes().len(), sizes.iter().sum::<usize>());
        }
    }
}
