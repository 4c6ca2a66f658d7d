//! Why a call has no answer, told apart by what whoever called can do about it. Never holds the address, which may carry
//! a secret in its query.

use crate::core::hosts::Refusal;
use std::error::Error;

/// Why a call has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallFault {
    /// It may not be made; nothing was sent.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// No connection: the name has no address, nobody listens, TLS does not fit.
    #[error("no connection: {0}")]
    Unreachable(String),
    /// It was not over in its time.
    #[error("no whole answer in time")]
    TimedOut,
    /// The connection broke, or what came is no HTTP; the other side may or may not have acted on the call.
    #[error("the answer broke off: {0}")]
    Broken(String),
    /// The body is longer than its reader takes.
    #[error("the answer has more than {limit_bytes} bytes")]
    TooLarge {
        /// How long it may be.
        limit_bytes: usize,
    },
}

impl CallFault {
    /// Whether the same call may have an answer later.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Unreachable(_) | Self::TimedOut | Self::Broken(_))
    }

    pub(super) fn of(error: reqwest::Error) -> Self {
        let (unreachable, mut innermost) = (error.is_connect() || error.is_builder(), String::new());
        let error = error.without_url();
        let mut cause: Option<&(dyn Error + 'static)> = Some(&error);
        while let Some(at) = cause {
            if let Some(refusal) = at.downcast_ref::<Refusal>() {
                return Self::Refused(refusal.clone());
            }
            innermost = at.to_string();
            cause = at.source();
        }
        if unreachable { Self::Unreachable(innermost) } else { Self::Broken(innermost) }
    }
}
