//! Calls of scripts to other hosts: only to those that are listed, within the limits of an answer and of the chunk.

use super::{Host, ROOMY, Rig, chunk, failure, function, result, run};
use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::{any, get};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};
use taskbell::core::budget::Budgets;
use taskbell::outbound::{AllowList, Outbound, SystemResolver};
use tokio::net::TcpListener;

const MINUTE: Duration = Duration::from_secs(60);

/// A host that scripts may call, and its address.
async fn host() -> String {
    let echo = |headers: HeaderMap, request: Request| async move {
        let method = request.method().to_string();
        let body = axum::body::to_bytes(request.into_body(), 1 << 20).await.unwrap();
        let sent = headers.get(header::CONTENT_TYPE).map(|value| value.to_str().unwrap().to_owned());
        let key = headers.get("x-key").map(|value| value.to_str().unwrap().to_owned());
        axum::Json(json!({"method": method, "type": sent, "key": key, "body": String::from_utf8_lossy(&body)}))
    };
    let endless = || async {
        let parts = futures_util::stream::repeat_with(|| Ok::<_, std::io::Error>(vec![b'x'; 65_536]));
        Body::from_stream(parts)
    };
    let silent = || async {
        tokio::time::sleep(Duration::from_secs(3_600)).await;
        "late"
    };
    let router = Router::new()
        .route("/echo", any(echo))
        .route("/missing", get(|| async { (StatusCode::NOT_FOUND, "no such order").into_response() }))
        .route("/moved", get(|| async { (StatusCode::FOUND, [(header::LOCATION, "http://127.0.0.1:9/")], "") }))
        .route("/binary", get(|| async { vec![0xff_u8, 0xfe] }))
        .route("/endless", get(endless))
        .route("/silent", get(silent));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

fn way_out(address: &str) -> Arc<Outbound> {
    Arc::new(Outbound::new(AllowList::parse(&[address]).unwrap(), Arc::new(SystemResolver)))
}

async fn said(address: &str, body: &str) -> Value {
    let rig = Rig::new(1);
    let body = body.replace("HOST", &format!("http://{address}"));
    let handler = rig.bounded("script.js", &function(&body), ROOMY, MINUTE).with_outbound(way_out(address));
    result(run(&handler, &Arc::new(Host::new()), chunk()).await)
}

#[tokio::test]
async fn a_script_calls_a_listed_host_and_reads_its_answer() {
    let address = host().await;
    let seen = said(
        &address,
        "const plain = await cx.fetch('HOST/echo');
         const sent = await cx.fetch('HOST/echo', { method: 'post', headers: { 'X-Key': task.id }, body: { n: 1 } });
         const put = await (await cx.fetch('HOST/echo', { method: 'PUT', body: 'text' })).json();
         const [missing, moved] = await Promise.all([cx.fetch('HOST/missing'), cx.fetch('HOST/moved')]);
         return { hasMore: false, result: {
           plain: [plain.status, plain.ok, (await plain.json()).method, plain.headers['content-type']],
           sent: await sent.json(), put: [put.method, put.type, put.body],
           missing: [missing.status, missing.ok, await missing.text()], moved: [moved.status, moved.headers.location],
         } };",
    )
    .await;
    assert_eq!(seen["plain"], json!([200, true, "GET", "application/json"]));
    let key = chunk().task.id.to_string();
    assert_eq!(seen["sent"], json!({"method": "POST", "type": "application/json", "key": key, "body": "{\"n\":1}"}));
    assert_eq!(seen["put"], json!(["PUT", null, "text"]));
    assert_eq!(seen["missing"], json!([404, false, "no such order"]));
    assert_eq!(seen["moved"], json!([302, "http://127.0.0.1:9/"]), "not followed");
}

#[tokio::test]
async fn what_may_not_be_called_or_cannot_be_read_is_an_error_with_its_code() {
    let address = host().await;
    let seen = said(
        &address,
        "const told = [];
         for (const [url, init] of [['http://127.0.0.1:1/'], ['https://example.com/'], ['file:///etc/passwd'], ['HOST@169.254.169.254/'],
             ['not an address'], ['HOST/echo', { method: 'a b' }], ['HOST/echo', { headers: { 'a\\nb': '1' } }],
             ['HOST/echo', { headers: { a: '1\\r\\nb: 2' } }], ['HOST/binary'], ['HOST/endless'], ['HOST/silent', { timeoutMs: 50 }]]) {
           try { await cx.fetch(url, init); told.push('answered'); } catch (error) { told.push([error.code, error.permanent]); }
         }
         return { hasMore: false, result: told };",
    )
    .await;
    let refused = json!(["fetch-refused", true]);
    let bad = json!(["bad-argument", true]);
    let expected = json!([
        refused,
        refused,
        refused,
        refused,
        bad,
        bad,
        bad,
        bad,
        ["fetch-not-text", true],
        ["fetch-too-large", true],
        ["fetch-timeout", false]
    ]);
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn a_script_without_a_listed_host_reaches_none_and_a_pack_only_its_own() {
    let rig = Rig::new(1);
    let address = host().await;
    let body = format!(
        "try {{ await cx.fetch('http://{address}/echo'); }} catch (error) {{ return {{ hasMore: false, result: error.code }}; }}
         return {{ hasMore: false, result: 'answered' }};"
    );
    let bare = rig.bounded("script.js", &function(&body), ROOMY, MINUTE);
    assert_eq!(result(run(&bare, &Arc::new(Host::new()), chunk()).await), json!("fetch-refused"));
    for (hosts, said) in [(vec!["erp.example.com".to_owned()], "fetch-refused"), (vec![address.clone()], "answered")] {
        let pack = rig.bounded("script.js", &function(&body), ROOMY, MINUTE).with_outbound(way_out(&address));
        let pack = pack.with_hosts(AllowList::parse(&hosts).unwrap());
        assert_eq!(result(run(&pack, &Arc::new(Host::new()), chunk()).await), json!(said), "{hosts:?}");
    }
}

#[tokio::test]
async fn a_call_ends_with_the_time_of_its_chunk_and_what_it_sends_is_output() {
    let rig = Rig::new(1);
    let address = host().await;
    let silent =
        function(&format!("try {{ await cx.fetch('http://{address}/silent'); }} catch {{}} while (true) {{}}"));
    let handler = rig.bounded("a.js", &silent, ROOMY, Duration::from_secs(1)).with_outbound(way_out(&address));
    let began = Instant::now();
    assert_eq!(failure(run(&handler, &Arc::new(Host::new()), chunk()).await).code, "timeout");
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    let flood = function(&format!(
        "while (true) try {{ await cx.fetch('http://{address}/echo', {{ method: 'POST', body: 'x'.repeat(1e5) }}); }} catch {{}}"
    ));
    let budgets = Budgets { output_bytes: 1 << 20, ..ROOMY };
    let handler = rig.bounded("b.js", &flood, budgets, MINUTE).with_outbound(way_out(&address));
    assert_eq!(failure(run(&handler, &Arc::new(Host::new()), chunk()).await).code, "output");
}
