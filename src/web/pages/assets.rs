//! `/static/`: scripts, styles, icons and catalogues, compiled into the binary.
//!
//! Served with an ETag of their bytes and asked for again on each load, so that a new binary never meets an old script;
//! compressed once, for whoever takes it so. `taskbell.js` and `i18n/*.widgets.json` are what a page of another application
//! loads; `embed/build.mjs` makes them from the other files, and they are committed. A debug build reads the folder itself, so that a changed script shows without another build; a release build reads no
//! file at run time. Nothing here is secret, yet the rule of origins holds here too: a page that is not listed gets no
//! script of ours, and so no half-working widgets.

use crate::web::error::{ApiError, Code};
use axum::extract::Path;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use rust_embed::Embed;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::io::Write;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

#[derive(Embed)]
#[folder = "static/"]
struct Assets;

/// A file as it goes over the wire.
struct Asset {
    etag: HeaderValue,
    plain: Bytes,
    packed: Bytes,
}

static KEPT: LazyLock<Mutex<HashMap<String, Arc<Asset>>>> = LazyLock::new(Mutex::default);

/// A file by its name, compressed once; in a debug build again when it has changed.
fn find(name: &str) -> Option<Arc<Asset>> {
    let kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
    if kept.is_some() && !cfg!(debug_assertions) {
        return kept;
    }
    let plain = content(name)?;
    let etag = format!("\"{}\"", hex::encode(&Sha256::digest(&plain)[..12]));
    let etag = HeaderValue::from_str(&etag).expect("hex is a valid header value");
    if let Some(kept) = kept.filter(|kept| kept.etag == etag) {
        return Some(kept);
    }
    let asset = Arc::new(Asset { etag, packed: pack(&plain), plain });
    KEPT.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), asset.clone());
    Some(asset)
}

fn content(name: &str) -> Option<Bytes> {
    Assets::get(name).map(|file| match file.data {
        std::borrow::Cow::Borrowed(bytes) => Bytes::from_static(bytes),
        std::borrow::Cow::Owned(bytes) => bytes.into(),
    })
}

fn pack(plain: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(plain).and_then(|()| encoder.finish()).expect("a vector takes what is written to it").into()
}

/// Whether the client takes gzip: it is named, or all are, and not with the weight 0.
fn takes_gzip(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|each| {
        let (name, weight) = each.split_once(';').unwrap_or((each, "q=1"));
        let zero = weight.trim().strip_prefix("q=").is_some_and(|q| q.parse() == Ok(0.0_f32));
        matches!(name.trim(), "gzip" | "*") && !zero
    })
}

fn kind(name: &str) -> &'static str {
    match name.rsplit('.').next() {
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("ts") => "text/plain; charset=utf-8",
        _ => "application/json",
    }
}

/// Pages that isolate themselves (COEP) may load these too; which pages may is said by CORS.
const SHARED: (HeaderName, HeaderValue) =
    (HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("cross-origin"));

/// `GET /static/{*path}`
pub async fn serve(Path(name): Path<String>, headers: HeaderMap) -> Result<Response, ApiError> {
    let asset = find(&name).ok_or_else(|| ApiError::new(Code::NotFound))?;
    let always = [
        (header::ETAG, asset.etag.clone()),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        (header::VARY, HeaderValue::from_static("accept-encoding")),
        SHARED,
    ];
    if headers.get(header::IF_NONE_MATCH) == Some(&asset.etag) {
        return Ok((StatusCode::NOT_MODIFIED, always).into_response());
    }
    let kind = [(header::CONTENT_TYPE, HeaderValue::from_static(kind(&name)))];
    if !takes_gzip(&headers) {
        return Ok((always, kind, asset.plain.clone()).into_response());
    }
    let packed = [(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"))];
    Ok((always, kind, packed, asset.packed.clone()).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(name: &str) -> Option<String> {
        String::from_utf8(Assets::get(name)?.data.into_owned()).ok()
    }

    /// Name → text of each script.
    fn scripts() -> impl Iterator<Item = (String, String)> {
        Assets::iter().filter(|name| name.ends_with(".js")).map(|name| (name.to_string(), text(&name).unwrap()))
    }

    #[test]
    fn scripts_import_only_what_is_served() {
        for (name, text) in scripts() {
            for import in text.split("from './").skip(1).filter_map(|rest| rest.split('\'').next()) {
                assert!(Assets::get(import).is_some(), "{name} imports {import}");
            }
        }
    }

    #[test]
    fn styles_know_no_left_and_no_right() {
        // Bars, ribbons and badges stand at the inline start or end, so that a page from right to left needs no rule of its own.
        let sides = regex::Regex::new(
            r"(?:margin|padding|border|inset)-(?:left|right)|[;{\s](?:left|right|float)\s*:|text-align:\s*(?:left|right)",
        );
        let sides = sides.unwrap();
        assert!(sides.is_match("a { left: 0 }") && sides.is_match("margin-right: 1px"));
        for name in Assets::iter().filter(|name| name.ends_with(".css")) {
            // What a screen cuts off is told by its physical sides alone.
            let text = text(&name).unwrap().replace("safe-area-inset", "");
            assert_eq!(sides.find(&text).map(|found| found.as_str()), None, "{name}");
        }
    }

    #[test]
    fn every_icon_that_is_used_is_drawn() {
        let sprite = text("icons.svg").unwrap();
        for (name, text) in scripts() {
            for icon in text.split(" icon('").skip(1).filter_map(|rest| rest.split('\'').next()) {
                assert!(sprite.contains(&format!("id=\"{icon}\"")), "{name} uses {icon}");
            }
        }
    }

    /// What a host page may cost over the wire, in bytes: the script with all three widgets, their style and their drawings,
    /// and the words of one language with it.
    const SCRIPT_BYTES: usize = 25 * 1024;
    const ALL_BYTES: usize = 28 * 1024;

    #[test]
    fn what_a_host_page_loads_is_small() {
        let size = |name: &str| find(name).unwrap().packed.len();
        let (script, types) = (size("taskbell.js"), size("taskbell.d.ts"));
        let words = ["en", "zh-CN"].map(|language| size(&format!("i18n/{language}.widgets.json")));
        let told = format!("script {script}, words {words:?}, types {types}");
        assert!(script <= SCRIPT_BYTES, "{told}");
        assert!(script + words.into_iter().max().unwrap() <= ALL_BYTES, "{told}");
    }

    #[test]
    fn gzip_is_sent_to_those_who_take_it() {
        let takes =
            |value: &str| takes_gzip(&HeaderMap::from_iter([(header::ACCEPT_ENCODING, value.parse().unwrap())]));
        assert!(!takes_gzip(&HeaderMap::new()));
        for value in ["gzip", "gzip, deflate, br", "br;q=1.0, gzip;q=0.8", "*"] {
            assert!(takes(value), "{value}");
        }
        for value in ["", "br", "gzip;q=0", "gzip; q=0.0", "identity"] {
            assert!(!takes(value), "{value}");
        }
    }
}
