//! Who calls, and what that caller may see and do.
//!
//! Nothing of another tenant, or of another user below operator, can be told from something that does not exist.

use super::task::Task;
use serde::{Deserialize, Serialize};

/// What a principal is, from the least to the most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Sees and controls own tasks.
    User,
    /// Sees and controls the tenant's tasks.
    Operator,
    /// Of a tenant: also what is configured there.
    Admin,
    /// Of all tenants.
    Platform,
}

impl Role {
    /// All roles, least first.
    pub const ALL: [Self; 4] = [Self::User, Self::Operator, Self::Admin, Self::Platform];

    /// The word used in configuration, SQL and JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Operator => "operator",
            Self::Admin => "admin",
            Self::Platform => "platform",
        }
    }

    /// Reads the word.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|r| r.as_str() == text)
    }
}

/// A right of an API key, inside what its role allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Scope {
    /// Read tasks, logs, files.
    #[serde(rename = "tasks:read")]
    TasksRead,
    /// Submit and control tasks.
    #[serde(rename = "tasks:write")]
    TasksWrite,
    /// Submit for another owner.
    #[serde(rename = "tasks:submit-as")]
    SubmitAs,
    /// Act as a pull worker.
    #[serde(rename = "worker")]
    Worker,
    /// Manage schedules.
    #[serde(rename = "schedules")]
    Schedules,
    /// Use the admin API.
    #[serde(rename = "admin")]
    Admin,
}

impl Scope {
    /// All scopes.
    pub const ALL: [Self; 6] =
        [Self::TasksRead, Self::TasksWrite, Self::SubmitAs, Self::Worker, Self::Schedules, Self::Admin];

    /// The word used on the command line and in SQL.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::TasksRead => "tasks:read",
            Self::TasksWrite => "tasks:write",
            Self::SubmitAs => "tasks:submit-as",
            Self::Worker => "worker",
            Self::Schedules => "schedules",
            Self::Admin => "admin",
        }
    }

    /// Reads the word.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|s| s.as_str() == text)
    }

    /// What a key of a role gets when nothing is asked for: all that the role allows, except to submit for others and to
    /// act as a worker.
    #[must_use]
    pub fn default_for(role: Role) -> Vec<Self> {
        let mut scopes = vec![Self::TasksRead, Self::TasksWrite];
        if role >= Role::Admin {
            scopes.extend([Self::Schedules, Self::Admin]);
        }
        scopes
    }
}

/// A caller whose identity is proven.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Principal {
    /// The tenant; `*` for platform.
    pub tenant: String,
    /// The user's name in that tenant.
    pub user: String,
    /// What it is.
    pub role: Role,
    /// What it may do inside that.
    pub scopes: Vec<Scope>,
}

impl Principal {
    /// Whether the key or session carries a right.
    #[must_use]
    pub fn has(&self, scope: Scope) -> bool {
        self.scopes.contains(&scope)
    }

    /// Operators and above see what belongs to others in the tenant.
    #[must_use]
    pub fn is_operator(&self) -> bool {
        self.role >= Role::Operator
    }

    /// Whether the task exists for this caller.
    #[must_use]
    pub fn sees(&self, task: &Task) -> bool {
        (self.role == Role::Platform || self.tenant == task.tenant) && (self.is_operator() || self.user == task.owner)
    }
}
