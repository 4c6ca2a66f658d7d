//! The token by which the handler of a chunk may call back while the chunk runs.
//!
//! It names one chunk under one fencing token, is sealed by the key that signs the calls of the action, and needs no
//! table: every node that shares the configuration can check it. It says who calls; whether that chunk is still the current
//! one only the database tells, so that the token is dead the moment its chunk is over.
//!
//! Its form is `tbc_TASK.TOKEN.CHUNK.EXPIRY.SEAL.ACTION`; the key of an action may hold dots, so it stands last.

use super::ids::{FencingToken, TaskId};
use super::signing::SigningKeys;
use super::task::Task;
use super::time::Millis;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// What a token begins with; nothing else that is taken as a bearer does.
pub const TOKEN_PREFIX: &str = "tbc_";
/// What is sealed under the keys of an action beside calls.
const PURPOSE: &str = "taskbell callback";
/// How long after the longest time of its chunk a token is refused whatever the database says, ms. Clocks of nodes differ.
const SLACK_MS: i64 = 120_000;

/// One chunk that is being worked on, as its token names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkName {
    /// The task.
    pub task: TaskId,
    /// The fencing token of the claim.
    pub token: FencingToken,
    /// The number of the chunk.
    pub chunk: i64,
    /// The action, whose keys seal.
    pub action: String,
    /// When the token is refused in any case.
    pub expires_at: Millis,
}

impl ChunkName {
    /// The name of a chunk that starts now and may take so long.
    #[must_use]
    pub fn of(task: TaskId, token: FencingToken, chunk: i64, action: &str, now: Millis, longest_ms: i64) -> Self {
        let expires_at = now.plus(longest_ms.saturating_add(SLACK_MS));
        Self { task, token, chunk, action: action.to_owned(), expires_at }
    }

    fn sealed_part(&self) -> String {
        let Self { task, token, chunk, action, expires_at } = self;
        format!("{task}.{token}.{chunk}.{}.{action}", expires_at.0)
    }

    /// The token.
    #[must_use]
    pub fn seal(&self, keys: &SigningKeys) -> String {
        let seal = URL_SAFE_NO_PAD.encode(keys.seal(PURPOSE, &self.sealed_part()));
        let Self { task, token, chunk, action, expires_at } = self;
        format!("{TOKEN_PREFIX}{task}.{token}.{chunk}.{}.{seal}.{action}", expires_at.0)
    }

    /// The chunk that a token names, if it is sealed by the keys of its action and has not expired.
    #[must_use]
    pub fn proven(text: &str, now: Millis, keys_of: impl FnOnce(&str) -> Option<SigningKeys>) -> Option<Self> {
        let mut parts = text.strip_prefix(TOKEN_PREFIX)?.splitn(6, '.');
        let mut part = || parts.next();
        let (task, token, chunk) = (part()?.parse().ok()?, part()?.parse().ok()?, part()?.parse().ok()?);
        let expires_at = Millis(part()?.parse().ok()?);
        let seal = URL_SAFE_NO_PAD.decode(part()?).ok()?;
        let name = Self { task, token: FencingToken(token), chunk, action: part()?.to_owned(), expires_at };
        let sealed = keys_of(&name.action)?.sealed(PURPOSE, &name.sealed_part(), &seal);
        (sealed && now < expires_at).then_some(name)
    }

    /// Whether this is the chunk that is under way.
    #[must_use]
    pub fn is_current(&self, task: &Task) -> bool {
        task.id == self.task
            && task.fencing_token == self.token
            && task.under_way()
            && task.chunks + 1 == self.chunk
            && task.action == self.action
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(letter: char) -> SigningKeys {
        SigningKeys::parse([format!("whsec_{}", letter.to_string().repeat(32)).as_str()]).unwrap()
    }

    fn name() -> ChunkName {
        ChunkName::of(TaskId::new(), FencingToken(7), 3, "erp.import-v2", Millis(1_000_000), 30_000)
    }

    #[test]
    fn a_token_names_its_chunk_until_it_expires() {
        let (name, keys) = (name(), keys('a'));
        let text = name.seal(&keys);
        let read = |now| ChunkName::proven(&text, now, |action| (action == "erp.import-v2").then(|| keys.clone()));
        assert_eq!(read(Millis(1_000_000)), Some(name.clone()));
        assert_eq!(read(name.expires_at.plus(-1)), Some(name.clone()));
        assert_eq!(read(name.expires_at), None);
    }

    #[test]
    fn a_token_with_any_part_changed_or_of_another_key_proves_nothing() {
        let (keys, text) = (keys('a'), name().seal(&keys('a')));
        let parts: Vec<&str> = text.splitn(6, '.').collect();
        for (at, other) in [
            (0, format!("tbc_{}", TaskId::new())),
            (1, "8".into()),
            (2, "4".into()),
            (3, "9999999999999".into()),
            (4, "AAAA".into()),
            (4, String::new()),
            (5, "other".into()),
        ] {
            let mut changed = parts.clone();
            changed[at] = &other;
            assert_eq!(ChunkName::proven(&changed.join("."), Millis(0), |_| Some(keys.clone())), None, "{other}");
        }
        let other = super::tests::keys('b');
        assert_eq!(ChunkName::proven(&text, Millis(0), |_| Some(other.clone())), None);
        assert_eq!(ChunkName::proven(&text, Millis(0), |_| None), None);
        for odd in ["", "tbc_", "tb_x", "tbc_.....", "tbc_a.b.c.d.e.f", &text[..text.len() - 14], "tbc_é"] {
            assert_eq!(ChunkName::proven(odd, Millis(0), |_| Some(keys.clone())), None, "{odd}");
        }
    }
}
