//! Scripts and styles without what only their readers need: comments, indentation, and white space between tokens.
//!
//! Renames private names alone, which nothing outside their class can name, and joins no statements: a line break stays wherever it could end a statement, so a script means the
//! same whether or not it ends them by semicolons. Texts, templates and regular expressions are kept byte for byte. A
//! slash begins a regular expression unless a value stands before it; one directly after `)` or `}` counts as a division,
//! and inside `${…}` of a template none is looked for.

use std::collections::HashMap;

/// Words after which a slash begins a regular expression, since they are no values.
const BEFORE_REGEX: [&str; 12] =
    ["return", "typeof", "case", "in", "of", "await", "yield", "void", "delete", "throw", "else", "do"];
/// After these, and before those, a line break ends nothing.
const OPEN: &str = "{([;,=:?&|>";
const CLOSE: &str = "})].,;:?&|=";

/// A script, smaller.
#[must_use]
pub fn script(source: &str) -> String {
    code(source, &mut HashMap::new())
}

/// Code, with the short forms of the private names so far.
fn code<'a>(source: &'a str, privates: &mut HashMap<&'a str, String>) -> String {
    let mut out = String::with_capacity(source.len());
    let (mut rest, mut word) = (source, "");
    let (mut space, mut broken) = (false, false);
    while let Some(c) = rest.chars().next() {
        let blank = blank(rest);
        if blank > 0 {
            broken |= rest[..blank].contains('\n');
            (space, rest) = (true, &rest[blank..]);
            continue;
        }
        if let Some(before) = out.chars().next_back() {
            let breaks = broken && !OPEN.contains(before) && !CLOSE.contains(c);
            let apart = is_word(before) && is_word(c)
                || before == c && matches!(c, '+' | '-' | '/')
                || before.is_ascii_digit() && c == '.';
            if space && (breaks || apart) {
                out.push(if breaks { '\n' } else { ' ' });
            }
        }
        (space, broken) = (false, false);
        let value = out.chars().next_back().is_some_and(|before| is_word(before) || ")]}'\"`".contains(before));
        let regex = c == '/' && (!value || BEFORE_REGEX.contains(&word));
        let length = if regex { pattern(rest) } else { token(rest) };
        word = if is_word(c) { &rest[..length] } else { "" };
        match c {
            '#' => {
                let next = privates.len();
                out.push_str(privates.entry(&rest[..length]).or_insert_with(|| short(next)));
            }
            '`' => template_into(&mut out, &rest[..length], privates),
            _ => out.push_str(&rest[..length]),
        }
        rest = &rest[length..];
    }
    out
}

/// The n-th private name: `#a` to `#z`, `#aa`, …
fn short(n: usize) -> String {
    let letter = char::from(b'a' + u8::try_from(n % 26).expect("below 26"));
    if n < 26 { format!("#{letter}") } else { format!("{}{letter}", short(n / 26 - 1)) }
}

/// A template as it is, but for the code in it.
fn template_into<'a>(out: &mut String, text: &'a str, privates: &mut HashMap<&'a str, String>) {
    let mut rest = text;
    while let Some((before, inner)) = rest.split_once("${") {
        let length = braces(inner);
        let Some(inside) = inner[..length].strip_suffix('}') else { break };
        out.push_str(before);
        out.push_str("${");
        out.push_str(&code(inside, privates));
        out.push('}');
        rest = &inner[length..];
    }
    out.push_str(rest);
}

/// A style sheet, smaller. It must not hold the signs of a comment, or runs of spaces, inside a text.
#[must_use]
pub fn style(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some((before, comment)) = rest.split_once("/*") {
        out.push_str(before);
        rest = comment.split_once("*/").map_or("", |(_, after)| after);
    }
    out.push_str(rest);
    let lines: Vec<&str> = out.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines.join("\n").replace("{\n", "{").replace(";\n", ";").replace(",\n", ",")
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '$' | '#') || !c.is_ascii()
}

/// The length of the white space or comment that `text` begins with.
fn blank(text: &str) -> usize {
    if text.starts_with("//") {
        return text.find('\n').unwrap_or(text.len());
    }
    if let Some(comment) = text.strip_prefix("/*") {
        return comment.find("*/").map_or(text.len(), |end| end + 4);
    }
    text.len() - text.trim_start().len()
}

/// The length of the token that `text` begins with.
fn token(text: &str) -> usize {
    let first = text.chars().next().unwrap_or_default();
    match first {
        '\'' | '"' => quoted(text, first),
        '`' => template(text),
        _ if is_word(first) => text.find(|c| !is_word(c)).unwrap_or(text.len()),
        _ => first.len_utf8(),
    }
}

/// A text up to its closing quote.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// A template up to its closing backtick, with what stands in its `${…}`.
fn template(text: &str) -> usize {
    let mut at = 1;
    while at < text.len() {
        let rest = &text[at..];
        if rest.starts_with('`') {
            return at + 1;
        }
        at += if let Some(escaped) = rest.strip_prefix('\\') {
            1 + escaped.chars().next().map_or(0, char::len_utf8)
        } else if let Some(code) = rest.strip_prefix("${") {
            2 + braces(code)
        } else {
            rest.chars().next().map_or(1, char::len_utf8)
        };
    }
    text.len()
}

/// Code up to the brace that closes it.
fn braces(text: &str) -> usize {
    let (mut at, mut depth) = (0, 1);
    while at < text.len() {
        match text.as_bytes()[at] {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            _ => {}
        }
        at += token(&text[at..]);
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

/// A regular expression without its flags, which are a word.
fn pattern(text: &str) -> usize {
    let (mut escaped, mut class) = (false, false);
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '[' => class = true,
            ']' => class = false,
            '/' if !class => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_means_the_same_without_what_only_readers_need() {
        for (source, small) in [
            ("/** Why. */\nconst a = 1; // so\n\nlet b = a + 1;\n", "const a=1;let b=a+1;"),
            ("a = b\n+c\n(d)", "a=b\n+c\n(d)"),
            ("return a\n", "return a"),
            ("f(\n  x,\n  y,\n);\n", "f(x,y,);"),
            (
                "class A {\n  static #b = 1;\n  get c() {\n    return this.#b;\n  }\n}\nnew A();",
                "class A{static #a=1;get c(){return this.#a;}}\nnew A();",
            ),
            ("a + +b - -c", "a+ +b- -c"),
            ("const s = 'it''s // no', t = \"/* x */\"", "const s='it''s // no',t=\"/* x */\""),
            (
                "return /[/'\"]\\/  x/gi.test(s) ? a / b / c : `  ${ f(`}`, { a: '`' }) }  `",
                "return/[/'\"]\\/  x/gi.test(s)?a/b/c:`  ${f(`}`,{a:'`'})}  `",
            ),
            ("x = a[1] / 2 / y; // 'half", "x=a[1]/2/y;"),
            ("list\n  .map((a) => a)\n  .filter(Boolean)", "list.map((a)=>a).filter(Boolean)"),
            ("i++\nj--", "i++\nj--"),
            ("'多\\'字' + 名", "'多\\'字'+名"),
            ("a /* b\nc */ d", "a\nd"),
        ] {
            assert_eq!(script(source), small);
            assert_eq!(script(small), small, "once is enough");
        }
    }

    #[test]
    fn a_style_keeps_its_rules() {
        let sheet =
            "/* Why.\n */\n.a :not(.b) {\n  margin: 0 1px;\n  inset: calc(1px + 2px);\n}\n\n.c,\n.d { color: red; }\n";
        assert_eq!(style(sheet), ".a :not(.b) {margin: 0 1px;inset: calc(1px + 2px);}\n.c,.d { color: red; }");
    }

    #[test]
    fn what_is_cut_short_ends_where_it_ends() {
        for text in ["'a", "`a${b", "`a\\", "/a", "/* a", "a = /[", "//", "`${`"] {
            assert!(script(text).len() <= text.len(), "{text}");
        }
    }
}
