//! Identities and counters as types of their own, so that one cannot be passed for another.
//!
//! Ids are UUIDv7 in lower case (time-ordered, so that an id also sorts by creation). Counters only grow.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use utoipa::ToSchema;
use uuid::Uuid;

/// One accepted request. UUIDv7, made by the node that accepts it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(transparent)]
#[schema(value_type = String, format = "uuid")]
pub struct TaskId(Uuid);

impl TaskId {
    /// A fresh id, from the wall clock and the thread's random source.
    #[must_use]
    pub fn new() -> Self {
        Self(fresh())
    }
}

/// A fresh UUIDv7 for what is no task: files, requests. The only place that makes one.
#[must_use]
pub fn fresh() -> Uuid {
    Uuid::now_v7()
}

impl Default for TaskId {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.hyphenated().fmt(f)
    }
}

impl fmt::Debug for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for TaskId {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Uuid::try_parse(text).map(Self)
    }
}

macro_rules! counter {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
        #[serde(transparent)]
        pub struct $name(pub i64);

        impl $name {
            /// The value after this one.
            #[must_use]
            pub fn next(self) -> Self {
                Self(self.0 + 1)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

counter!(
    /// Raised by each claim, by each takeover and by a forced end. A write that carries an older one changes nothing.
    FencingToken
);
counter!(
    /// Of one task: + 1 in the transaction of any change that a user can see.
    Revision
);
counter!(
    /// Of one owner: + 1 in each transaction that changes one of the owner's tasks. Follows commit order.
    Head
);
