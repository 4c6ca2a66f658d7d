//! The words of the pages, from the message catalogues that the browser's modules use too.
//!
//! `static/i18n/<language>.json` maps a key to a text with `{name}` places, or to texts by plural category chosen by `n`
//! (`"type": "ordinal"` for 1st, 2nd, 3rd). Both catalogues are compiled in and have the same keys and places; a test
//! holds them to it. Must never build a sentence from parts, and never escape: the templates do that.

use serde::Deserialize;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

/// The languages there are, as BCP 47 tags with their own names; the first is the fallback.
pub const LANGUAGES: [(&str, &str); 2] = [("en", "English"), ("zh-CN", "简体中文")];

static ENGLISH: LazyLock<Catalogue> = LazyLock::new(|| read(include_str!("../../../static/i18n/en.json")));
static CHINESE: LazyLock<Catalogue> = LazyLock::new(|| read(include_str!("../../../static/i18n/zh-CN.json")));

type Catalogue = HashMap<String, Message>;

fn read(json: &str) -> Catalogue {
    serde_json::from_str(json).expect("the catalogues are compiled in, and a test reads them")
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Message {
    Plain(String),
    Forms(BTreeMap<String, String>),
}

/// What is put into a place of a message.
pub enum Arg<'a> {
    /// A whole number, grouped.
    Count(i64),
    /// A number with at most one decimal.
    Real(f64),
    /// A text, as it is.
    Text(Cow<'a, str>),
}

impl From<i64> for Arg<'_> {
    fn from(n: i64) -> Self {
        Self::Count(n)
    }
}

impl From<f64> for Arg<'_> {
    fn from(n: f64) -> Self {
        Self::Real(n)
    }
}

impl<'a> From<&'a str> for Arg<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

impl From<String> for Arg<'_> {
    fn from(text: String) -> Self {
        Self::Text(Cow::Owned(text))
    }
}

/// The catalogue of one language.
#[derive(Clone, Copy)]
pub struct Words {
    lang: &'static str,
    catalogue: &'static Catalogue,
}

impl Words {
    /// The catalogue that fits a language tag best; English when none does.
    #[must_use]
    pub fn of(tag: &str) -> Self {
        if tag.to_ascii_lowercase().starts_with("zh") {
            Self { lang: "zh-CN", catalogue: &CHINESE }
        } else {
            Self { lang: "en", catalogue: &ENGLISH }
        }
    }

    /// The language as a BCP 47 tag, for `<html lang>`.
    #[must_use]
    pub fn lang(&self) -> &'static str {
        self.lang
    }

    /// Whether the catalogue has a key.
    #[must_use]
    pub fn has(&self, key: &str) -> bool {
        self.catalogue.contains_key(key)
    }

    /// A message without places. A missing key shows as the key.
    #[must_use]
    pub fn t<'k>(&self, key: &'k str) -> Cow<'k, str> {
        match self.catalogue.get(key) {
            Some(Message::Plain(text)) => Cow::Borrowed(text.as_str()),
            Some(Message::Forms(_)) => Cow::Owned(self.fill(key, &[("n", Arg::Count(0))])),
            None => Cow::Borrowed(key),
        }
    }

    /// A message with its places filled; a plural one is chosen by `n`.
    #[must_use]
    pub fn fill(&self, key: &str, args: &[(&str, Arg<'_>)]) -> String {
        let text = match self.catalogue.get(key) {
            Some(Message::Plain(text)) => text.as_str(),
            Some(Message::Forms(forms)) => self.form(forms, args),
            None => key,
        };
        let mut out = String::with_capacity(text.len() + 16);
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            let Some((name, after)) = after.split_once('}') else { break };
            out.push_str(before);
            match args.iter().find(|(given, _)| *given == name) {
                Some((_, arg)) => push(&mut out, arg),
                None => out.push_str(name),
            }
            rest = after;
        }
        out.push_str(rest);
        out
    }

    /// A message with a text in its one place.
    #[must_use]
    pub fn with(&self, key: &str, name: &str, text: &str) -> String {
        self.fill(key, &[(name, text.into())])
    }

    /// A message about `n` things.
    #[must_use]
    pub fn count(&self, key: &str, n: i64) -> String {
        self.fill(key, &[("n", n.into())])
    }

    fn form<'f>(&self, forms: &'f BTreeMap<String, String>, args: &[(&str, Arg<'_>)]) -> &'f str {
        let n = args.iter().find_map(|(name, arg)| match arg {
            Arg::Count(n) if *name == "n" => Some(*n),
            _ => None,
        });
        let ordinal = forms.get("type").is_some_and(|kind| kind == "ordinal");
        let category = category(self.lang, n.unwrap_or(0), ordinal);
        forms.get(category).or_else(|| forms.get("other")).map_or("", String::as_str)
    }

    /// The noun for `n` of a unit; a unit without an entry is shown as it is.
    #[must_use]
    pub fn unit(&self, unit: Option<&str>, n: i64) -> String {
        let Some(unit) = unit else { return String::new() };
        let key = format!("unit.{unit}");
        if self.has(&key) { self.fill(&key, &[("n", n.into())]) } else { unit.to_owned() }
    }
}

/// The plural category (CLDR) of a whole number in a language that has a catalogue.
fn category(lang: &str, n: i64, ordinal: bool) -> &'static str {
    match (lang, ordinal) {
        ("en", false) if n == 1 => "one",
        ("en", true) => match (n % 10, n % 100) {
            (1, tens) if tens != 11 => "one",
            (2, tens) if tens != 12 => "two",
            (3, tens) if tens != 13 => "few",
            _ => "other",
        },
        _ => "other",
    }
}

fn push(out: &mut String, arg: &Arg<'_>) {
    match arg {
        Arg::Count(n) => out.push_str(&grouped(*n)),
        Arg::Real(x) => {
            let tenths = (x * 10.0).round() / 10.0;
            let whole = tenths.trunc();
            out.push_str(&grouped(whole as i64));
            let tenth = ((tenths - whole).abs() * 10.0).round() as u8;
            if tenth > 0 {
                out.push('.');
                out.push(char::from(b'0' + tenth));
            }
        }
        Arg::Text(text) => out.push_str(text),
    }
}

/// A whole number with a comma between thousands, as both languages write it.
#[must_use]
pub fn grouped(n: i64) -> String {
    let digits = n.unsigned_abs().to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3 + 1);
    if n < 0 {
        out.push('-');
    }
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn places(message: &Message) -> BTreeSet<String> {
        let texts: Vec<&String> = match message {
            Message::Plain(text) => vec![text],
            Message::Forms(forms) => forms.iter().filter(|(form, _)| *form != "type").map(|(_, text)| text).collect(),
        };
        texts
            .iter()
            .flat_map(|text| text.split('{').skip(1).filter_map(|rest| rest.split_once('}')))
            .map(|(name, _)| name.to_owned())
            .collect()
    }

    #[test]
    fn both_catalogues_have_the_same_keys_and_places() {
        let keys = |c: &'static Catalogue| c.keys().collect::<BTreeSet<_>>();
        assert_eq!(keys(&ENGLISH), keys(&CHINESE));
        for (key, message) in ENGLISH.iter() {
            assert_eq!(places(message), places(&CHINESE[key]), "places of {key}");
            assert_eq!(
                matches!(message, Message::Forms(_)),
                matches!(CHINESE[key], Message::Forms(_)),
                "kind of {key}"
            );
        }
    }

    #[test]
    fn every_plural_message_has_the_form_other() {
        for catalogue in [&*ENGLISH, &*CHINESE] {
            for (key, message) in catalogue {
                if let Message::Forms(forms) = message {
                    assert!(forms.contains_key("other"), "{key}");
                }
            }
        }
    }

    #[test]
    fn counts_choose_their_form_and_are_grouped() {
        let en = Words::of("en-GB");
        assert_eq!(en.fill("bell.running", &[("n", 1.into())]), "1 running");
        assert_eq!(en.unit(Some("rows"), 1), "row");
        assert_eq!(en.unit(Some("rows"), 1_250_000), "rows");
        assert_eq!(en.unit(Some("crates"), 2), "crates");
        let lines: Vec<String> = [1, 2, 3, 4, 11, 22].map(|n| en.fill("say.position", &[("n", n.into())])).into();
        assert_eq!(lines.join(", "), "1st in line, 2nd in line, 3rd in line, 4th in line, 11th in line, 22nd in line");
        assert_eq!(grouped(1_250_000), "1,250,000");
        assert_eq!(grouped(-999), "-999");
        assert_eq!(en.fill("eta.hours", &[("n", 2.5.into())]), "2.5 h");
        assert_eq!(en.fill("eta.hours", &[("n", 3.0.into())]), "3 h");
    }

    #[test]
    fn the_fixed_chinese_terms_are_used() {
        let zh = Words::of("zh-Hans-CN");
        let terms = [
            ("state.queued", "排队中"),
            ("state.blocked", "等待同组任务"),
            ("state.running", "后台处理中"),
            ("state.pausing", "暂停中"),
            ("state.paused", "已暂停"),
            ("state.cancelling", "取消中"),
            ("state.cancelled", "已取消"),
            ("state.failed", "失败"),
            ("state.succeeded", "已完成"),
            ("state.retrying", "等待重试"),
            ("eta.estimating", "估算中"),
            ("do.resume", "继续"),
            ("do.retry", "重试"),
            ("do.cancel", "取消任务"),
            ("live.live", "实时"),
            ("live.reconnecting", "重连中"),
            ("live.offline", "已离线"),
            ("list.none.title", "还没有任务"),
            ("page.notifications", "通知中心"),
        ];
        for (key, term) in terms {
            assert_eq!(zh.t(key), term, "{key}");
        }
    }

    #[test]
    fn a_key_without_a_message_shows_itself() {
        assert_eq!(Words::of("en").t("no.such.key"), "no.such.key");
    }
}
