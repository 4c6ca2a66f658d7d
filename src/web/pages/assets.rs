//! `/static/`: scripts, styles, icons and catalogues, compiled into the binary.
//!
//! Served with an ETag of their bytes and asked for again on each load, so that a new binary never meets an old script. A
//! debug build reads the folder itself, so that a changed script shows without another build; a release build reads no file
//! at run time.

use crate::web::error::{ApiError, Code};
use axum::extract::Path;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use rust_embed::Embed;

#[derive(Embed)]
#[folder = "static/"]
struct Assets;

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
    let asset = Assets::get(&name).ok_or_else(|| ApiError::new(Code::NotFound))?;
    let etag = format!("\"{}\"", hex::encode(&asset.metadata.sha256_hash()[..12]));
    let etag = HeaderValue::from_str(&etag).expect("hex is a valid header value");
    let same = headers.get(header::IF_NONE_MATCH) == Some(&etag);
    let fresh = [(header::ETAG, etag), (header::CACHE_CONTROL, HeaderValue::from_static("no-cache"))];
    if same {
        return Ok((StatusCode::NOT_MODIFIED, fresh).into_response());
    }
    let kind = [(header::CONTENT_TYPE, HeaderValue::from_static(kind(&name)))];
    Ok((fresh, kind, asset.data).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Name → text of each script.
    fn scripts() -> impl Iterator<Item = (String, String)> {
        Assets::iter().filter(|name| name.ends_with(".js")).map(|name| (name.to_string(), text(&name)))
    }

    fn text(name: &str) -> String {
        String::from_utf8(Assets::get(name).unwrap().data.into_owned()).unwrap()
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
    fn every_icon_that_is_used_is_drawn() {
        let sprite = text("icons.svg");
        for (name, text) in scripts() {
            for icon in text.split(" icon('").skip(1).filter_map(|rest| rest.split('\'').next()) {
                assert!(sprite.contains(&format!("id=\"{icon}\"")), "{name} uses {icon}");
            }
        }
    }
}
