//! Rust text with comments and the insides of strings taken out, so that a rule sees code alone. Line breaks stay, so that
//! a place can be told by its line. Must stay linear in the length of the text.

/// `text` without comments and without what stands inside string and character literals.
pub(super) fn code_of(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let end = match bytes[at] {
            b'/' if bytes.get(at + 1) == Some(&b'/') => until(bytes, at, b"\n"),
            b'/' if bytes.get(at + 1) == Some(&b'*') => (until(bytes, at + 2, b"*/") + 2).min(bytes.len()),
            b'r' if !at.checked_sub(1).is_some_and(|before| is_word(bytes[before])) => raw_string(bytes, at),
            b'"' => quoted(bytes, at, b'"'),
            b'\'' if bytes.get(at + 1) == Some(&b'\\') => quoted(bytes, at, b'\''),
            b'\'' if bytes.get(at + 2) == Some(&b'\'') => at + 3,
            _ => at,
        };
        if end == at {
            out.push(bytes[at]);
            at += 1;
        } else {
            out.extend(bytes[at..end].iter().filter(|byte| **byte == b'\n'));
            out.push(b' ');
            at = end;
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Where `mark` next stands, or the end.
fn until(bytes: &[u8], from: usize, mark: &[u8]) -> usize {
    bytes[from..].windows(mark.len()).position(|part| part == mark).map_or(bytes.len(), |found| from + found)
}

/// The end of a literal that may hold escapes.
fn quoted(bytes: &[u8], from: usize, quote: u8) -> usize {
    let mut at = from + 1;
    while at < bytes.len() && bytes[at] != quote {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(bytes.len())
}

/// The end of a raw string that begins with the `r` at `from`; `from` itself when there is none.
fn raw_string(bytes: &[u8], from: usize) -> usize {
    let hashes = bytes[from + 1..].iter().take_while(|byte| **byte == b'#').count();
    if bytes.get(from + 1 + hashes) != Some(&b'"') {
        return from;
    }
    let mark: Vec<u8> = std::iter::once(b'"').chain(std::iter::repeat_n(b'#', hashes)).collect();
    (until(bytes, from + hashes + 2, &mark) + mark.len()).min(bytes.len())
}
