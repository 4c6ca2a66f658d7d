//! What the command line does with users and keys: it opens the database as the server would, does one thing and ends. Works
//! while the server runs, which sees the change at its next look.

use super::open::open_store;
use crate::config::Settings;
use crate::core::account::{check_name, check_password, check_tenant};
use crate::core::principal::{Principal, Role};
use crate::store::{ApiKey, Store, User, UserChange};
use crate::web::auth::password::hash_password;
use crate::web::auth::{KEY_PREFIX, key_hash, new_api_key};
use std::sync::Arc;

/// The fewest characters by which a key may be named.
const ID_CHARS: usize = 8;

/// A user to be made.
#[derive(Clone, Debug)]
pub struct NewUser {
    /// The name.
    pub name: String,
    /// The role.
    pub role: Role,
    /// The tenant.
    pub tenant: String,
}

impl NewUser {
    /// Looks at all that can be looked at before a password is asked for.
    ///
    /// # Errors
    /// The rule that is broken.
    pub fn check(&self) -> Result<(), String> {
        check_name(&self.name)?;
        check_tenant(&self.tenant, self.role)
    }
}

/// Users and keys of a database.
pub struct Accounts {
    store: Arc<dyn Store>,
}

impl Accounts {
    /// Opens those of a configuration.
    ///
    /// # Errors
    /// In words.
    pub async fn open(settings: &Settings) -> Result<Self, String> {
        Ok(Self { store: open_store(settings, None).await.map_err(words)?.store })
    }

    /// Whether there is a user of a name.
    ///
    /// # Errors
    /// In words.
    pub async fn has_user(&self, name: &str) -> Result<bool, String> {
        Ok(self.store.user(name).await.map_err(words)?.is_some())
    }

    /// Makes a user.
    ///
    /// # Errors
    /// In words: a rule is broken, the name is taken.
    pub async fn add_user(&self, new: NewUser, password: &str) -> Result<(), String> {
        new.check()?;
        check_password(password)?;
        let (password, now) = (hash_password(password)?, self.store.now().await.map_err(words)?);
        let NewUser { name, role, tenant } = new;
        let user = User { name: name.clone(), tenant, role, password, created_at: now, updated_at: now };
        if self.store.add_user(user).await.map_err(words)? { Ok(()) } else { Err(taken(&name)) }
    }

    /// Sets a password; all sessions of the user end.
    ///
    /// # Errors
    /// In words: a rule is broken, there is no such user.
    pub async fn set_password(&self, name: &str, password: &str) -> Result<(), String> {
        check_password(password)?;
        let password = Some(hash_password(password)?);
        self.change(name, UserChange { password, role: None }).await
    }

    /// Sets a role; all sessions of the user end.
    ///
    /// # Errors
    /// In words: there is no such user, or the role does not go with the user's tenant.
    pub async fn set_role(&self, name: &str, role: Role) -> Result<(), String> {
        let user = self.store.user(name).await.map_err(words)?.ok_or_else(|| missing(name))?;
        check_tenant(&user.tenant, role)?;
        self.change(name, UserChange { password: None, role: Some(role) }).await
    }

    async fn change(&self, name: &str, change: UserChange) -> Result<(), String> {
        let now = self.store.now().await.map_err(words)?;
        if self.store.change_user(name, change, now).await.map_err(words)? { Ok(()) } else { Err(missing(name)) }
    }

    /// Removes a user, whose sessions end.
    ///
    /// # Errors
    /// In words: there is no such user.
    pub async fn remove_user(&self, name: &str) -> Result<(), String> {
        if self.store.remove_user(name).await.map_err(words)? { Ok(()) } else { Err(missing(name)) }
    }

    /// All users, by name.
    ///
    /// # Errors
    /// In words.
    pub async fn users(&self) -> Result<Vec<User>, String> {
        self.store.users().await.map_err(words)
    }

    /// Makes an API key; its text, which is shown once and stored nowhere.
    ///
    /// # Errors
    /// In words: the scopes go beyond the role.
    pub async fn create_key(&self, who: Principal, life_ms: Option<i64>) -> Result<String, String> {
        let (key, row) = new_api_key(who, life_ms, self.store.now().await.map_err(words)?)?;
        self.store.put_api_key(row).await.map_err(words)?;
        Ok(key)
    }

    /// All keys, the oldest first.
    ///
    /// # Errors
    /// In words.
    pub async fn keys(&self) -> Result<Vec<ApiKey>, String> {
        self.store.api_keys().await.map_err(words)
    }

    /// Takes a key back, named by its text or by the beginning of its hash. Answers whose it was.
    ///
    /// # Errors
    /// In words: there is none, or more than one.
    pub async fn revoke_key(&self, named: &str) -> Result<Principal, String> {
        let hash = if named.starts_with(KEY_PREFIX) { key_hash(named) } else { named.to_owned() };
        if hash.len() < ID_CHARS {
            return Err(format!("name the key by its text or by at least {ID_CHARS} characters of its id"));
        }
        let mut found: Vec<ApiKey> = self.keys().await?.into_iter().filter(|k| k.hash.starts_with(&hash)).collect();
        match (found.pop(), found.is_empty()) {
            (Some(key), true) => {
                self.store.delete_api_key(&key.hash).await.map_err(words)?;
                Ok(key.principal)
            }
            (Some(_), false) => Err("more than one key begins so: give more characters of its id".into()),
            (None, _) => Err("there is no such key".into()),
        }
    }
}

fn words(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// The refusal of a name that is taken.
#[must_use]
pub fn taken(name: &str) -> String {
    format!(
        "there is a user `{name}` already: names are unique over all tenants. Change the password by `taskbell user passwd`, or choose another name"
    )
}

fn missing(name: &str) -> String {
    format!("there is no user `{name}`")
}
