//! `/static/`: scripts, styles, icons and catalogues, compiled into the binary.
//!
//! Served with an ETag of their bytes and asked for again on each load, so that a new binary never meets an old script. The
//! table below lists every file; a test holds it to the folder. Must never read a file at run time.

use crate::web::error::{ApiError, Code};
use axum::extract::Path;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::LazyLock;

struct Asset {
    bytes: &'static [u8],
    kind: &'static str,
    etag: HeaderValue,
}

macro_rules! assets {
    ($($name:literal)*) => {
        /// Name → bytes.
        const FILES: &[(&str, &[u8])] = &[$(($name, include_bytes!(concat!("../../../static/", $name)))),*];
    };
}

assets! {
    "acts.js" "api.js" "bell.js" "buttons.js" "center.js" "connection.js" "dialog.js" "dom.js" "element.js" "favicon.svg"
    "form.js" "groups.js" "i18n.js" "i18n/en.json" "i18n/zh-CN.json" "icons.svg" "list.js" "live.js" "log.js" "page.js"
    "pages.css" "progress.js" "record.js" "row.js" "task.js" "taskbell.css" "taskbell.js" "tasks.js" "tell.js" "time.js"
    "words.js"
}

static ASSETS: LazyLock<HashMap<&'static str, Asset>> = LazyLock::new(|| {
    let asset = |(name, bytes): &(&'static str, &'static [u8])| {
        let etag = format!("\"{}\"", hex::encode(&Sha256::digest(bytes)[..12]));
        let etag = HeaderValue::from_str(&etag).expect("hex is a valid header value");
        (*name, Asset { bytes, kind: kind(name), etag })
    };
    FILES.iter().map(asset).collect()
});

fn kind(name: &str) -> &'static str {
    match name.rsplit('.').next() {
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "application/json",
    }
}

/// `GET /static/{*path}`
pub async fn serve(Path(name): Path<String>, headers: HeaderMap) -> Result<Response, ApiError> {
    let asset = ASSETS.get(name.as_str()).ok_or_else(|| ApiError::new(Code::NotFound))?;
    let fresh = [(header::ETAG, asset.etag.clone()), (header::CACHE_CONTROL, HeaderValue::from_static("no-cache"))];
    if headers.get(header::IF_NONE_MATCH) == Some(&asset.etag) {
        return Ok((StatusCode::NOT_MODIFIED, fresh).into_response());
    }
    let kind = [(header::CONTENT_TYPE, HeaderValue::from_static(asset.kind))];
    Ok((fresh, kind, asset.bytes).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    fn names(folder: &Path, prefix: &str, out: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{prefix}{}", entry.file_name().to_str().unwrap());
            if entry.path().is_dir() {
                names(&entry.path(), &format!("{name}/"), out);
            } else {
                out.insert(name);
            }
        }
    }

    #[test]
    fn every_file_of_the_folder_is_served() {
        let mut there = BTreeSet::new();
        names(&Path::new(env!("CARGO_MANIFEST_DIR")).join("static"), "", &mut there);
        let served: BTreeSet<String> = FILES.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(served, there);
    }

    #[test]
    fn scripts_import_only_what_is_served() {
        for (name, bytes) in FILES.iter().filter(|(name, _)| name.ends_with(".js")) {
            let text = std::str::from_utf8(bytes).unwrap();
            for import in text.split("from './").skip(1).filter_map(|rest| rest.split('\'').next()) {
                assert!(ASSETS.contains_key(import), "{name} imports {import}");
            }
        }
    }

    #[test]
    fn every_icon_that_is_used_is_drawn() {
        let sprite = std::str::from_utf8(ASSETS["icons.svg"].bytes).unwrap();
        for (name, bytes) in FILES.iter().filter(|(name, _)| name.ends_with(".js")) {
            let text = std::str::from_utf8(bytes).unwrap();
            for icon in text.split(" icon('").skip(1).filter_map(|rest| rest.split('\'').next()) {
                assert!(sprite.contains(&format!("id=\"{icon}\"")), "{name} uses {icon}");
            }
        }
    }
}
