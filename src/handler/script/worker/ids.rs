//! Ids that a script may ask for: random ones, and ones that sort by the instant that they were made at.

use std::time::{SystemTime, UNIX_EPOCH};

/// The letters of a ULID, five bits each.
const LETTERS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// A random UUID in lower case.
pub(super) fn guid() -> String {
    uuid::Builder::from_random_bytes(rand::random()).into_uuid().to_string()
}

/// A ULID: 48 bits of milliseconds since 1970, then 80 random ones, as 26 letters.
pub(super) fn ulid() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let random = rand::random::<u128>() >> 48;
    let bits = (since << 80) | random;
    (0..26).rev().map(|n| char::from(LETTERS[(bits >> (n * 5)) as usize & 31])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_their_form_and_later_ulids_sort_after_earlier_ones() {
        let (one, other) = (guid(), guid());
        assert!(one != other && uuid::Uuid::parse_str(&one).unwrap().get_version_num() == 4);
        let first = ulid();
        assert!(first.len() == 26 && first.bytes().all(|letter| LETTERS.contains(&letter)), "{first}");
        assert!(first.as_bytes()[0] <= b'7', "128 bits in 26 letters of five");
        let began = SystemTime::now();
        while began.elapsed().unwrap().as_millis() < 2 {}
        assert!(ulid() > first);
    }
}
