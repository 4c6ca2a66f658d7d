//! Files: up and down, whole and for their owner.

use crate::support::api::{Api, send};
use reqwest::Method;
use serde_json::json;
use sha2::{Digest, Sha256};
use taskbell::store::files::FILE_BYTES;

const OCTETS: &str = "application/octet-stream";

#[tokio::test]
async fn what_was_uploaded_comes_back_as_an_attachment() {
    let api = Api::start().await;
    let alice = api.alice().await;
    let bytes = "a,b\n1,2\n".repeat(100_000).into_bytes();
    let request = alice.request(Method::POST, "/api/v1/uploads?name=..%2F%E5%AE%A2%E6%88%B7%20%22x%22.csv");
    let up = send(request.header("content-type", OCTETS).body(bytes.clone())).await;
    assert_eq!(up.status, 201, "{}", up.text);
    assert_eq!(up.json["name"], "客户 \"x\".csv");
    assert_eq!(up.json["size"], bytes.len());
    assert_eq!(up.json["sha256"], hex::encode(Sha256::digest(&bytes)));
    let down = alice.get(&format!("/api/v1/artifacts/{}", up.id())).await;
    assert_eq!((down.status, down.text.len()), (200, bytes.len()));
    assert_eq!(down.header("content-type"), OCTETS);
    assert_eq!(down.header("x-content-type-options"), "nosniff");
    assert!(down.header("content-disposition").starts_with("attachment; filename=\"__ _x_.csv\"; filename*=UTF-8''"));
    let row = api.node.store.file(&up.id()).await.unwrap().unwrap();
    assert_eq!(row.expires_at.unwrap().since(row.created_at), 7 * 86_400_000);
    alice.new_task(json!({"action": "with-file", "params": {"file": up.id()}})).await;
    let row = api.node.store.file(&up.id()).await.unwrap().unwrap();
    assert!(row.expires_at.unwrap().since(row.created_at) >= 97 * 86_400_000, "a task uses it");
}

#[tokio::test]
async fn an_upload_is_named_and_of_the_one_type() {
    let api = Api::start().await;
    let alice = api.alice().await;
    for path in ["/api/v1/uploads", "/api/v1/uploads?name="] {
        let answer = send(alice.request(Method::POST, path).header("content-type", OCTETS).body("x")).await;
        assert_eq!((answer.status, answer.paths()), (422, vec!["name"]), "{path}");
    }
    for content_type in ["text/csv", "application/json", "multipart/form-data; boundary=x"] {
        let request = alice.request(Method::POST, "/api/v1/uploads?name=a");
        assert_eq!(send(request.header("content-type", content_type).body("x")).await.status, 415, "{content_type}");
    }
    assert_eq!(alice.post("/api/v1/uploads?name=a", json!({})).await.status, 415);
    assert_eq!(alice.ask("/api/v1/uploads?name=a").await.status, 415);
    let empty = alice.request(Method::POST, "/api/v1/uploads?name=empty").header("content-type", OCTETS);
    assert_eq!(send(empty).await.json["size"], 0);
}

#[tokio::test]
async fn a_file_is_taken_at_its_cap_and_refused_above_it() {
    let api = Api::start().await;
    let alice = api.alice().await;
    for (size, status) in [(FILE_BYTES, 201), (FILE_BYTES + 1, 413)] {
        for declared in [true, false] {
            let part = bytes::Bytes::from(vec![b'x'; 1 << 20]);
            let (whole, rest) = (size >> 20, (size & ((1 << 20) - 1)) as usize);
            let parts = (0..whole).map({
                let part = part.clone();
                move |_| part.clone()
            });
            let parts = parts.chain((rest > 0).then(|| part.slice(..rest))).map(Ok::<_, String>);
            let mut request = alice.request(Method::POST, "/api/v1/uploads?name=big").header("content-type", OCTETS);
            if declared {
                request = request.header("content-length", size);
            }
            let body = reqwest::Body::wrap_stream(futures_util::stream::iter(parts.collect::<Vec<_>>()));
            let answer = send(request.body(body)).await;
            assert_eq!(answer.status, status, "{size} bytes, declared {declared}: {}", answer.text);
        }
    }
}
