//! The template of a concurrency key: which placeholders there are, and whether a text uses only those.
//!
//! Filling it in is the submit's business; here it is only made sure that it can be filled.

use super::fault::nearest;

/// The placeholders, but for `{params.NAME}`.
pub const PLACEHOLDERS: &[&str] = &["tenant", "owner", "action", "record.type", "record.id", "request"];

/// Whether every placeholder of `template` exists; a lone brace is refused, so that a typing error never becomes a key.
pub(super) fn check(template: &str) -> Result<(), String> {
    let mut rest = template;
    while let Some(open) = rest.find(['{', '}']) {
        let tail = &rest[open..];
        let inside =
            tail.strip_prefix('{').and_then(|inside| inside.split_once('}')).filter(|(name, _)| !name.contains('{'));
        let Some((name, after)) = inside else {
            return Err("has a brace without its partner".to_owned());
        };
        if !PLACEHOLDERS.contains(&name) && !is_params_path(name) {
            let guess = nearest(name, PLACEHOLDERS.iter().copied()).map(|near| format!("; did you mean {{{near}}}?"));
            return Err(format!(
                "has no placeholder {{{name}}}{}; there are {{tenant}} {{owner}} {{action}} {{record.type}} {{record.id}} {{request}} {{params.NAME}}",
                guess.unwrap_or_default()
            ));
        }
        rest = after;
    }
    Ok(())
}

/// Whether `path` is `params.` and a name, or a path of names.
pub(super) fn is_params_path(path: &str) -> bool {
    path.strip_prefix("params.").is_some_and(|names| {
        names.split('.').all(|name| {
            !name.is_empty() && !name.contains(|c: char| c.is_control() || c.is_whitespace() || "{}".contains(c))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_placeholders_and_whole_braces_make_a_template() {
        for good in [
            "catalogue",
            "import:{tenant}",
            "{request}",
            "{record.type}/{record.id}",
            "{params.file}-{owner}",
            "x{params.a.b}",
        ] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for bad in ["{tennant}", "{params.}", "{params}", "{", "}", "a{b", "{a{tenant}", "{}", "{record}", "{ tenant }"]
        {
            assert!(check(bad).is_err(), "{bad}");
        }
        assert!(check("{tennant}").unwrap_err().contains("did you mean {tenant}?"));
    }
}
