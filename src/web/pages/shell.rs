//! The frame of every page: who looks, in which language and zone, and what the scripts have to know.
//!
//! Built once per request from the session and the cookies `tb_lang`, `tb_zone`, `tb_zone_chosen` and the session's own. Data for scripts
//! goes into `<script type="application/json">`, which no browser executes; [`script_json`] makes it inert inside markup.

use super::when::Watch;
use super::words::{LANGUAGES, Words};
use crate::core::principal::{Principal, Role};
use crate::core::time::Millis;
use askama::filters::HtmlSafe;
use serde::Serialize;
use serde_json::json;
use std::borrow::Cow;
use std::fmt;

/// The cookie with the chosen language.
pub const LANG_COOKIE: &str = "tb_lang";
/// The cookie with the viewer's zone, written by the browser's script.
pub const ZONE_COOKIE: &str = "tb_zone";

/// The cookie with the zone that a person chose; it goes before the browser's.
pub const CHOSEN_ZONE_COOKIE: &str = "tb_zone_chosen";

/// The frame of one page.
pub struct Shell {
    /// The words of the viewer's language.
    pub w: Words,
    /// The viewer's clock.
    pub watch: Watch,
    /// The zone that the viewer chose, by its IANA name; none = the browser's.
    pub chosen_zone: Option<String>,
    /// Who is signed in; nobody on the sign-in page.
    pub viewer: Option<Principal>,
    /// What plain forms carry; empty when nobody is signed in.
    pub csrf: String,
    /// Whether the banner of the demo shows.
    pub demo: bool,
    /// The path and query of this page, for the way back after a change of language.
    pub here: String,
}

impl Shell {
    /// A message without places.
    #[must_use]
    pub fn t<'k>(&self, key: &'k str) -> Cow<'k, str> {
        self.w.t(key)
    }

    /// The symbol for the viewer.
    #[must_use]
    pub fn viewer_icon(&self) -> &'static str {
        if self.viewer.as_ref().is_some_and(|v| v.role >= Role::Admin) { "admin" } else { "user" }
    }

    /// "Signed in as alice".
    #[must_use]
    pub fn signed_in(&self) -> String {
        let user = self.viewer.as_ref().map_or("", |v| v.user.as_str());
        self.w.fill("app.signed_in", &[("user", user.into())])
    }

    /// The languages that this page is not in: tag and own name.
    #[must_use]
    pub fn other_languages(&self) -> Vec<(&'static str, &'static str)> {
        LANGUAGES.into_iter().filter(|(tag, _)| *tag != self.w.lang()).collect()
    }

    /// Whether a path is the one of this page, for the navigation.
    #[must_use]
    pub fn is_at(&self, path: &str) -> bool {
        self.here.split('?').next() == Some(path)
    }

    /// What the scripts have to know: who looks, and what the server's clock shows.
    #[must_use]
    pub fn page_json(&self) -> ScriptJson {
        let viewer = self.viewer.as_ref();
        script_json(&json!({
            "user": viewer.map(|v| &v.user),
            "tenant": viewer.map(|v| &v.tenant),
            "role": viewer.map(|v| v.role),
            "lang": self.w.lang(),
            "now": self.watch.now(),
        }))
    }
}

/// The language of a request: the cookie's, else the first of Accept-Language that has a catalogue.
#[must_use]
pub fn language(cookie: Option<&str>, accept: Option<&str>) -> Words {
    let known = |tag: &str| LANGUAGES.iter().any(|(known, _)| base(known) == base(tag));
    let tags = accept.unwrap_or_default().split(',').map(|part| part.split(';').next().unwrap_or_default().trim());
    let chosen = cookie.into_iter().chain(tags).find(|tag| known(tag));
    Words::of(chosen.unwrap_or(LANGUAGES[0].0))
}

fn base(tag: &str) -> String {
    tag.split('-').next().unwrap_or_default().to_ascii_lowercase()
}

/// The frame for a request's language, zone and moment.
#[must_use]
pub fn watch(zone: Option<&str>, now: Millis, w: Words) -> Watch {
    Watch::new(zone.unwrap_or("UTC"), now, w)
}

/// JSON that can stand inside a script element: nothing in it can close the element or open a comment. The one value that
/// a template writes as it is, because a script element knows no entities.
#[derive(Clone, Debug)]
pub struct ScriptJson(String);

impl fmt::Display for ScriptJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl HtmlSafe for ScriptJson {}

/// A view as data for scripts.
#[must_use]
pub fn script_json(value: &impl Serialize) -> ScriptJson {
    let json = serde_json::to_string(value).expect("views have text keys and finite numbers");
    ScriptJson(json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026"))
}

/// The page of a business record: type and id as path segments.
#[must_use]
pub fn record_path(kind: &str, id: &str) -> String {
    let encode = |text| percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC);
    format!("/records/{}/{}", encode(kind), encode(id))
}

/// A link that may be followed: http, https, or a path of ours; nothing for anything else.
#[must_use]
pub fn safe_link(url: &str) -> Option<&str> {
    let http = url.starts_with("https://") || url.starts_with("http://");
    let path = url.starts_with('/') && !url.starts_with("//");
    // Browsers drop tabs and line ends, and read a backslash as a slash: `/<tab>/host` would lead away.
    let plain = !url.contains(|c: char| c.is_control() || c == '\\');
    ((http || path) && plain).then_some(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_language_is_the_chosen_one_then_the_browsers() {
        let lang = |cookie, accept| language(cookie, accept).lang();
        assert_eq!(lang(None, None), "en");
        assert_eq!(lang(None, Some("fr-FR, zh;q=0.9, en;q=0.8")), "zh-CN");
        assert_eq!(lang(None, Some("en-GB,zh")), "en");
        assert_eq!(lang(Some("zh-CN"), Some("en")), "zh-CN");
        assert_eq!(lang(Some("<script>"), Some("de")), "en");
    }

    #[test]
    fn data_for_scripts_cannot_leave_its_element() {
        let json = script_json(&"</script><svg onload=alert(1)> & <!--").to_string();
        assert!(!json.contains(['<', '>', '&']), "{json}");
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), "</script><svg onload=alert(1)> & <!--");
    }

    #[test]
    fn only_web_links_and_own_paths_are_followed() {
        assert_eq!(safe_link("https://erp.example.com/42"), Some("https://erp.example.com/42"));
        assert_eq!(safe_link("/imports/42"), Some("/imports/42"));
        for hostile in [
            "javascript:alert(1)",
            "data:text/html,x",
            "//evil.test",
            "/\\evil.test",
            "/\t/evil.test",
            "/\n/evil.test",
            "/x\u{7f}",
            " https://x",
            "",
        ] {
            assert_eq!(safe_link(hostile), None, "{hostile}");
        }
    }

    #[test]
    fn a_record_path_keeps_its_two_segments() {
        assert_eq!(record_path("customer-import", "a/../b?c"), "/records/customer%2Dimport/a%2F%2E%2E%2Fb%3Fc");
    }
}
