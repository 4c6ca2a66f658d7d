//! What comes from people and from tasks is text, wherever it is shown: on every page, in tooltips, toasts, dialogs and forms.

use crate::browser_tests;
use crate::rig::page::LIMIT;
use crate::rig::runner::Test;
use crate::rig::stage::Stage;
use crate::server::Spec;
use serde_json::{Value, json};
use std::fs;

pub fn tests() -> Vec<Test> {
    browser_tests![twelve_ways_to_write_markup_are_text_on_every_page]
}

/// Markup as it gets through where one place was forgotten: an element, the end of a script, of an attribute, of a title, of a
/// comment; a link that is code; an event; a frame; a template of a framework; markup that only a second parser sees.
const PAYLOADS: [&str; 12] = [
    "<img src=x onerror=alert(1)>",
    "</script><svg onload=alert(2)>",
    "\"><svg/onload=alert(3)>",
    "' onmouseover=alert(4) autofocus onfocus=alert(4) x='",
    "javascript:alert(5)",
    "<iframe srcdoc='<script>parent.alert(6)</script>'></iframe>",
    "</title></textarea></style><script>alert(7)</script>",
    "<a href=\"javascript:alert(8)\">open</a>",
    "{{constructor.constructor('alert(9)')()}}${alert(9)}",
    "<math><mtext><table><mglyph><style><img src=x onerror=alert(10)>",
    "&lt;img src=x onerror=alert(11)&gt;\\u003cimg src=x onerror=alert(11)\\u003e",
    "<!--><img src=x onerror=alert(12)>--><!--",
];

/// A handler that says it in every way it can.
const HANDLER: &str = r#"
export default async function (task, cx) {
  const { bad, fails } = task.params;
  for (const level of ["info", "warn", "error"]) cx.log(bad, level);
  if (cx.checkpoint === null) return { hasMore: true, checkpoint: { [bad]: bad }, current: 1, total: 3, unit: bad, phase: bad, message: bad };
  if (fails) return { fail: { code: "bad", message: bad, retryable: false } };
  return { hasMore: false, result: { [bad]: bad }, current: 2, total: 3, unit: bad, phase: bad, message: bad };
}
"#;

/// Elements, attributes and links that no page of ours has.
const ALIVE: &str = "(() => { const roots = [document, ...[...document.querySelectorAll('taskbell-bell')].map((bell) => bell.shadowRoot).filter(Boolean)]; \
    const strange = 'img, iframe, math, style, object, embed, base, [onerror], [onload], [onmouseover], [onfocus], [style], script:not([src]):not([type=\"application/json\"])'; \
    return roots.flatMap((root) => [...[...root.querySelectorAll(strange)].map((e) => e.outerHTML), \
        ...[...root.querySelectorAll('[href], [src], [action]')].map((e) => e.href?.baseVal ?? e.href ?? e.src ?? e.action).filter((link) => !/^https?:/.test(new URL(link, document.baseURI)))]); })()";

const PASSWORD: &str = "correct horse battery";

fn config() -> String {
    let quoted: Vec<String> = PAYLOADS.iter().map(|payload| json!(payload).to_string()).collect();
    let [title, group, label, help] = [&quoted[0], &quoted[1], &quoted[2], &quoted[6]];
    format!(
        "[database]\nurl = \"sqlite://data/taskbell.db\"\n[[records]]\ntype = \"customer-import\"\nurl = \"https://erp.example.com/{{id}}\"\n\
         [[actions]]\nkey = \"say\"\ntitle = {{ en = {title} }}\ngroup = {{ en = {group} }}\nhandler = {{ script = \"say.js\" }}\nroles = [\"user\"]\n\
         [actions.params]\ntype = \"object\"\n[actions.params.properties.bad]\ntype = \"string\"\ntitle = {label}\ndescription = {help}\nenum = [{}]\n\
         [actions.params.properties.fails]\ntype = \"boolean\"\n[actions.params.properties.file]\ntype = \"string\"\nformat = \"file\"\n",
        quoted.join(", ")
    )
}

/// Proves: G25.
async fn twelve_ways_to_write_markup_are_text_on_every_page(stage: &Stage) {
    let server = {
        let ground = crate::ground::Ground::usual().await;
        fs::write(ground.path().join("say.js"), HANDLER).unwrap();
        Spec::with_config(&config()).start_on(std::sync::Arc::new(ground)).await
    };
    let name = "o'neil <img src=x onerror=alert(0)>";
    server.command_told(&["user", "add", name, "--role", "user"], PASSWORD).await;
    let client = server.client(name, "user").await;
    let visit = async |path: &str| stage.driver().goto(format!("{}{path}", server.url())).await.unwrap();
    let encoded =
        |text: &str| url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>().replace('+', "%20");
    let mut pages = Vec::new();
    let mut last = Value::Null;
    for (n, payload) in PAYLOADS.iter().enumerate() {
        let fails = n % 2 == 1;
        let record = json!({"type": "customer-import", "id": payload});
        last = client.submit(json!({"action": "say", "params": {"bad": payload, "fails": fails}, "title": payload, "record": record, "idempotencyKey": payload})).await;
        let id = last["id"].as_str().unwrap().to_owned();
        client.until(&id, LIMIT, |task| task["state"] == if fails { "failed" } else { "succeeded" }).await;
        pages.push((format!("/tasks/{id}"), *payload));
        pages.push((format!("/records/customer-import/{}", encoded(payload)), *payload));
        pages.push((format!("/notifications?q={0}&record=customer-import:{0}", encoded(payload)), *payload));
    }
    visit(&format!("/login?next={}", encoded(PAYLOADS[2]))).await;
    for (field, text) in [("user", name), ("password", PASSWORD)] {
        stage.find(&format!("#{field}")).await.send_keys(text).await.unwrap();
    }
    stage.click(".login-form button").await;
    stage.find("main[data-page='actions']").await;
    let others = ["/", "/notifications", "/settings"].map(|path| (path.to_owned(), ""));
    let unknown = (format!("/tasks/{}", encoded(PAYLOADS[0])), "");
    for (path, payload) in pages.into_iter().chain(others).chain([unknown]) {
        visit(&path).await;
        stage.until_live().await;
        // The text is there, as it was written: in the page, or where what was searched for stands.
        let text = json!(payload);
        let shown = format!(
            "document.querySelector('main').textContent.includes({text}) && [...document.querySelectorAll('[data-part=title], [data-part=record]')].every((e) => !e.title || e.title.includes(e.textContent))"
        );
        stage.until(LIMIT, &shown).await;
        assert_eq!(stage.eval(ALIVE).await, json!([]), "{path}");
        assert!(stage.driver().get_alert_text().await.is_err(), "{path} opened a dialog");
    }
    // The open panel, the tooltip and the question of a hostile task, its toast, and the name of a file.
    visit("/").await;
    let row = stage.open_bell_on(&last).await;
    stage.until(LIMIT, &format!("{row}.querySelector('[data-part=title]').title === {}", json!(PAYLOADS[11]))).await;
    stage.eval(&format!("({row}.querySelector('[data-do=retry]').click(), true)")).await;
    let asked = "document.querySelector('taskbell-bell').shadowRoot.querySelector('dialog[open] h2').textContent";
    stage.until(LIMIT, &format!("{asked}.includes({})", json!(PAYLOADS[11]))).await;
    assert_eq!(stage.eval(ALIVE).await, json!([]), "the question");
    visit("/").await;
    stage.until_live().await;
    client.submit(json!({"action": "say", "params": {"bad": PAYLOADS[0], "fails": true}, "title": PAYLOADS[1]})).await;
    stage
        .until(LIMIT, &format!("document.querySelector('.tb-toast')?.textContent.includes({})", json!(PAYLOADS[1])))
        .await;
    stage.click("[data-action='say'] > .tb-button").await;
    let file = server.folder().join(PAYLOADS[0]);
    fs::write(&file, "x").unwrap();
    stage.find("dialog input[type='file']").await.send_keys(file.to_str().unwrap()).await.unwrap();
    stage
        .until(LIMIT, &format!("document.querySelector('.tb-drop').textContent.includes({})", json!(PAYLOADS[0])))
        .await;
    assert_eq!(stage.eval(ALIVE).await, json!([]), "the form and the toast");
    // What is downloaded is no page.
    let headers = format!(
        "fetch('/api/v1/tasks/{}/logs/download').then((a) => done(['content-type', 'content-disposition', 'x-content-type-options'].map((n) => a.headers.get(n))));",
        last["id"].as_str().unwrap()
    );
    let headers = stage.eval_async(&headers).await;
    let [kind, place, sniff] = [0, 1, 2].map(|n| headers[n].as_str().unwrap_or_default().to_owned());
    assert!(kind.starts_with("text/plain") && place.starts_with("attachment") && sniff == "nosniff", "{headers}");
    assert!(stage.driver().get_alert_text().await.is_err());
    let log = stage.driver().browser_log().await.unwrap();
    let refused: Vec<_> = log
        .iter()
        .filter(|entry| entry.message.contains("Content Security Policy") || entry.message.contains("Trusted"))
        .collect();
    assert!(refused.is_empty(), "the policy had to step in, so something was markup: {refused:?}");
}
