//! The text of a log line, made fit to be kept and shown: no control codes, no terminal colours, no more than its cap.
//!
//! Line breaks and tabs stay. A NUL, which not every database takes, becomes U+FFFD everywhere alike. A cut falls between
//! two characters and is marked, so that nobody takes half a line for a whole one. Lengths are bytes of UTF-8.

use std::borrow::Cow;

/// The most bytes of a line, its mark included.
pub const MAX_LINE_BYTES: usize = 16 * 1024;

/// What a line ends with when it was cut.
pub const CUT_MARK: &str = " … [cut]";

/// `text` without terminal sequences and control codes; `\r\n` and a lone `\r` become line breaks.
#[must_use]
pub fn clean(text: &str) -> Cow<'_, str> {
    if !text.chars().any(|c| c.is_control() && c != '\n' && c != '\t') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\n' | '\t' => out.push(c),
            '\r' if rest.peek() == Some(&'\n') => {}
            '\r' => out.push('\n'),
            '\0' => out.push('\u{FFFD}'),
            '\u{1b}' | '\u{9b}' | '\u{90}' | '\u{9d}' => skip_sequence(c, &mut rest),
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// Skips what follows an escape: colours and cursor moves up to their final letter, titles and links up to their end.
fn skip_sequence(start: char, rest: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    let kind = match (start, rest.peek()) {
        ('\u{9b}', _) => '[',
        ('\u{90}' | '\u{9d}', _) => ']',
        (_, Some('[')) => '[',
        (_, Some(']' | 'P' | 'X' | '^' | '_')) => ']',
        (_, Some(' '..='/')) => '(',
        (_, Some('0'..='~')) => {
            rest.next();
            return;
        }
        _ => return,
    };
    if start == '\u{1b}' {
        rest.next();
    }
    match kind {
        '[' => {
            while rest.next_if(|c| (' '..='?').contains(c)).is_some() {}
            rest.next_if(|c| ('@'..='~').contains(c));
        }
        ']' => {
            // Ends at BEL or ST; a sequence that is never ended takes its line and no more.
            while let Some(c) = rest.next_if(|c| *c != '\n') {
                if c == '\u{7}' || c == '\u{9c}' || (c == '\u{1b}' && rest.next_if_eq(&'\\').is_some()) {
                    return;
                }
            }
        }
        _ => {
            while rest.next_if(|c| (' '..='/').contains(c)).is_some() {}
            rest.next_if(|c| ('0'..='~').contains(c));
        }
    }
}

/// `text` with at most [`MAX_LINE_BYTES`] bytes and without NUL; what is cut is marked.
#[must_use]
pub fn fit(text: String) -> String {
    let mut text = if text.contains('\0') { text.replace('\0', "\u{FFFD}") } else { text };
    if text.len() > MAX_LINE_BYTES {
        text.truncate(text.floor_char_boundary(MAX_LINE_BYTES - CUT_MARK.len()));
        text.push_str(CUT_MARK);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn colours_titles_and_control_codes_go_and_line_breaks_stay() {
        for (text, clean_text) in [
            ("plain, 你好\n\tnext", "plain, 你好\n\tnext"),
            ("\u{1b}[1;31mred\u{1b}[0m \u{1b}[2K\u{1b}[10;5Hx", "red x"),
            ("\u{1b}]0;title\u{7}a\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\", "alink"),
            ("\u{9b}31mred\u{1b}(Bx\u{1b}7y", "redxy"),
            ("a\u{8}b\u{7}c\u{7f}", "abc"),
            ("one\r\ntwo\rthree", "one\ntwo\nthree"),
            ("a\0b", "a\u{FFFD}b"),
            ("end\u{1b}", "end"),
            ("open \u{1b}]0;never ended\nnext", "open \nnext"),
        ] {
            assert_eq!(clean(text), clean_text, "{text:?}");
        }
    }

    #[test]
    fn a_line_at_the_cap_is_kept_and_one_above_is_cut_and_marked() {
        let whole = "x".repeat(MAX_LINE_BYTES);
        assert_eq!(fit(whole.clone()), whole);
        let cut = fit(format!("{whole}x"));
        assert!(cut.len() == MAX_LINE_BYTES && cut.ends_with(CUT_MARK));
    }

    #[test]
    fn a_cut_falls_between_characters() {
        let cut = fit(format!("{}x", "界".repeat(21_845)));
        let body = cut.strip_suffix(CUT_MARK).unwrap();
        assert!(cut.len() <= MAX_LINE_BYTES && cut.len() > MAX_LINE_BYTES - 4);
        assert!(body.chars().all(|c| c == '界'));
    }

    proptest! {
        #[test]
        fn whatever_comes_in_is_harmless_and_bounded(text in "\\PC*|[\\x00-\\x9f]*|(\u{1b}[\\[\\]P(]?[0-9;]*[a-z\u{7}]?)*") {
            let out = fit(clean(&text).into_owned());
            prop_assert!(out.len() <= MAX_LINE_BYTES);
            prop_assert!(out.chars().all(|c| !c.is_control() || c == '\n' || c == '\t'));
            prop_assert_eq!(clean(&out), out.as_str(), "cleaning twice changes nothing");
        }
    }
}
