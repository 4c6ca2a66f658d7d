//! An answer whose head has arrived: its body is read within what is left of the call's time, and never beyond a limit.

use super::CallFault;
use bytes::{Bytes, BytesMut};
use reqwest::header::HeaderMap;
use reqwest::{Response, StatusCode};
use std::pin::Pin;
use tokio::time::Sleep;

/// An answer whose head has arrived.
#[derive(Debug)]
pub struct Reply {
    response: Response,
    over: Pin<Box<Sleep>>,
}

impl Reply {
    pub(super) fn new(response: Response, over: Pin<Box<Sleep>>) -> Self {
        Self { response, over }
    }

    /// Its status.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.response.status()
    }

    /// Its headers.
    #[must_use]
    pub fn headers(&self) -> &HeaderMap {
        self.response.headers()
    }

    /// The whole body.
    ///
    /// # Errors
    /// `TooLarge` above the limit, whether the sender said so or not; `TimedOut`; `Broken` when it ended too early.
    pub async fn body(mut self, limit_bytes: usize) -> Result<Bytes, CallFault> {
        let too_large = CallFault::TooLarge { limit_bytes };
        if self.response.content_length().is_some_and(|length| length > limit_bytes as u64) {
            return Err(too_large);
        }
        let mut body = BytesMut::new();
        while let Some(part) = self.next().await? {
            if body.len() + part.len() > limit_bytes {
                return Err(too_large);
            }
            body.extend_from_slice(&part);
        }
        Ok(body.freeze())
    }

    /// What the body begins with, as text, for an error message. Whatever goes wrong is the end of it.
    pub async fn excerpt(mut self, limit_bytes: usize) -> String {
        let mut body = BytesMut::new();
        while body.len() < limit_bytes
            && let Ok(Some(part)) = self.next().await
        {
            body.extend_from_slice(&part[..part.len().min(limit_bytes - body.len())]);
        }
        String::from_utf8_lossy(&body).trim().to_owned()
    }

    async fn next(&mut self) -> Result<Option<Bytes>, CallFault> {
        tokio::select! {
            part = self.response.chunk() => part.map_err(CallFault::of),
            () = &mut self.over => Err(CallFault::TimedOut),
        }
    }
}
