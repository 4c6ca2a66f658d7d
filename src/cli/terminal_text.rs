//! Text from a server on a terminal: titles, messages and log lines are hostile until their control codes are gone.

/// `text` without control characters, without terminal sequences and without marks that turn the direction of reading.
/// Line breaks and tabs become spaces.
pub(crate) fn plain(text: &str) -> String {
    lines(text).collect::<Vec<_>>().join(" ")
}

/// The lines of a text, each plain.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = String> {
    text.lines().map(plain_line)
}

fn plain_line(line: &str) -> String {
    let mut shown = String::with_capacity(line.len());
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            '\t' => shown.push(' '),
            // ESC [ … up to a letter; ESC ] … (titles, links) up to its BEL or ESC \; else ESC and one character.
            '\u{1b}' => match chars.next() {
                Some('[') => {
                    chars.by_ref().find(|c| ('@'..='~').contains(c));
                }
                Some(']') => {
                    if let Some('\u{1b}') = chars.by_ref().find(|c| matches!(c, '\u{7}' | '\u{1b}')) {
                        chars.next();
                    }
                }
                _ => {}
            },
            c if c.is_control() => {}
            '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {}
            c => shown.push(c),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_obeys_comes_through() {
        for (text, shown) in [
            ("plain 导入 text", "plain 导入 text"),
            ("\u{1b}[31;1mred\u{1b}[0m", "red"),
            ("\u{1b}]0;title\u{7}after", "after"),
            ("\u{1b}]8;;http://x\u{1b}\\link", "link"),
            ("a\u{9b}31mb\u{8}c\0d", "a31mbcd"),
            ("\u{202e}gpj.exe", "gpj.exe"),
            ("a\tb\r\nc\u{1b}", "a b c"),
        ] {
            assert_eq!(plain(text), shown, "{text:?}");
        }
    }
}
