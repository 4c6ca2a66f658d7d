//! The pages over plain HTTP, as a browser without a script sees them: links, forms, and what they refuse.

mod visitor;

use crate::support::eventually;
use crate::support::server::Spec;
use std::time::Duration;
use visitor::{Page, Visitor};

const LIMIT: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_stranger_is_led_to_the_sign_in_and_from_there_to_where_it_wanted() {
    let server = Spec::demo().start().await;
    let mut visitor = Visitor::new(&server);
    let page = visitor.get("/notifications?state=failed").await;
    assert_eq!((page.status, page.location.as_str()), (303, "/login?next=%2Fnotifications%3Fstate%3Dfailed"));
    assert_eq!(visitor.get(&page.location.clone()).await.status, 200);
    let page =
        visitor.form("/login", &[("user", "user"), ("password", ""), ("next", "/notifications?state=failed")]).await;
    visitor.keep(&page);
    assert_eq!((page.status, page.location.as_str()), (303, "/notifications?state=failed"));
    assert_eq!(visitor.get("/notifications?state=failed").await.status, 200);
    for hostile in ["//evil.test", "https://evil.test/", "/\\evil.test", "javascript:alert(1)"] {
        let page = visitor.form("/login", &[("user", "user"), ("password", ""), ("next", hostile)]).await;
        assert_eq!(page.location, "/", "{hostile}");
        visitor.keep(&page);
    }
    assert_eq!(visitor.form("/login", &[("user", "nobody"), ("password", "")]).await.status, 401);
    let token = visitor.token().await;
    assert_eq!(visitor.form("/logout", &[("csrf", &token)]).await.location, "/login");
    assert_eq!(visitor.get("/").await.location, "/login", "the session has ended, also for who kept the cookie");
}

#[tokio::test]
async fn without_a_script_a_click_becomes_a_task_that_can_be_cancelled_and_deleted() {
    let server = Spec::demo().start().await;
    let visitor = Visitor::signed_in(&server, "user").await;
    let token = visitor.token().await;
    let page = visitor.form("/actions/recalculate-totals", &[("csrf", &token), ("batch", "50"), ("pause", "1")]).await;
    assert_eq!(page.status, 303, "{}", page.text);
    let task = page.location.clone();
    let page = visitor.get(&task).await;
    assert!(page.text.contains(">Recalculate order totals</h1>"), "{}", page.text);
    assert!(visitor.get("/notifications").await.text.contains(&task), "the list links to it");
    assert_eq!(visitor.form(&format!("{task}/cancel"), &[("csrf", &token)]).await.location, task);
    let cancelled =
        async || Some(visitor.get(&task).await).filter(|page| page.text.contains("data-kind=\"cancelled\""));
    let page = eventually("the task is cancelled", LIMIT, cancelled).await;
    assert!(!page.text.contains("100%"), "a cancelled task is never complete");
    let page = visitor.form(&format!("{task}/pause"), &[("csrf", &token)]).await;
    assert_eq!(page.status, 409);
    assert!(page.text.contains("This task changed meanwhile"), "the refusal stands on the task's page");
    let again = visitor.form(&format!("{task}/retry"), &[("csrf", &token)]).await.location;
    assert!(again.starts_with("/tasks/") && again != task, "a retry is a task of its own: {again}");
    assert_eq!(visitor.form(&format!("{task}/delete"), &[("csrf", &token)]).await.location, "/notifications");
    assert_eq!(visitor.get(&task).await.status, 404);
}

#[tokio::test]
async fn a_form_that_is_not_ours_changes_nothing() {
    let server = Spec::demo().start().await;
    let visitor = Visitor::signed_in(&server, "user").await;
    let other = Visitor::signed_in(&server, "user").await.token().await;
    let start = "/actions/recalculate-totals";
    for (fields, why) in [
        (vec![], "no token"),
        (vec![("csrf", "")], "an empty one"),
        (vec![("csrf", other.as_str())], "another session's"),
    ] {
        assert_eq!(visitor.form(start, &fields).await.status, 403, "{why}");
    }
    let token = visitor.token().await;
    let body = format!("csrf={token}");
    assert_eq!(visitor.post(start, "text/plain", &body, None).await.status, 415);
    assert_eq!(visitor.post(start, "application/json", "{}", None).await.status, 415);
    let form = "application/x-www-form-urlencoded";
    assert_eq!(visitor.post(start, form, &body, Some("https://evil.test")).await.status, 403);
    assert_eq!(visitor.post(start, form, &body, Some("null")).await.status, 403);
    assert!(visitor.get("/notifications").await.text.contains("No tasks yet"));
}

#[tokio::test]
async fn faults_of_a_form_come_back_beside_their_fields() {
    let server = Spec::demo().start().await;
    let visitor = Visitor::signed_in(&server, "user").await;
    let token = visitor.token().await;
    let page =
        visitor.form("/actions/recalculate-totals", &[("csrf", &token), ("batch", "many"), ("pause", "0")]).await;
    assert_eq!(page.status, 422);
    let card = page.text.split("data-action=\"recalculate-totals\"").nth(1).unwrap_or_default();
    let field = card.split("name=\"batch\"").nth(1).and_then(|rest| rest.split("class=\"tb-field\"").next());
    assert!(field.is_some_and(|f| f.contains("value=\"many\"") && f.contains("class=\"tb-error\"")), "{}", page.text);
}

#[tokio::test]
async fn what_is_anothers_looks_like_what_is_not_there() {
    let server = Spec::demo().start().await;
    let (admin, user) = (Visitor::signed_in(&server, "admin").await, Visitor::signed_in(&server, "user").await);
    let token = admin.token().await;
    let task = admin.form("/actions/sync-catalogue", &[("csrf", &token)]).await.location;
    let (hidden, absent) = (user.get(&task).await, user.get("/tasks/01900000-0000-7000-8000-000000000000").await);
    assert_eq!((hidden.status, absent.status), (404, 404));
    let sentence = |page: &Page| page.text.split("<h1>").nth(1).unwrap().split("<code>").next().unwrap().to_owned();
    assert_eq!(sentence(&hidden), sentence(&absent));
    let token = user.token().await;
    assert_eq!(user.form(&format!("{task}/cancel"), &[("csrf", &token)]).await.status, 404);
    assert_eq!(user.get("/notifications?scope=tenant").await.status, 403);
    assert!(admin.get("/notifications?scope=tenant").await.text.contains(&task));
}

#[tokio::test]
async fn the_chosen_language_stays_and_every_page_keeps_the_content_policy() {
    let server = Spec::demo().start().await;
    let mut visitor = Visitor::signed_in(&server, "user").await;
    let page = visitor.form("/lang", &[("lang", "zh-CN"), ("back", "/notifications")]).await;
    assert_eq!(page.location, "/notifications");
    visitor.keep(&page);
    for (path, words) in
        [("/", "操作"), ("/notifications", "通知中心"), ("/records/customer/1", "业务记录"), ("/nope", "未找到")]
    {
        let page = visitor.get(path).await;
        assert!(page.text.contains("<html lang=\"zh-CN\">") && page.text.contains(words), "{path}: {}", page.text);
        let policy = page.header("content-security-policy");
        assert!(policy.contains("default-src 'self'") && !policy.contains("unsafe"), "{path}: {policy}");
        assert_eq!(page.header("x-content-type-options"), "nosniff");
        assert!(!page.text.contains(" style=") && !page.text.contains("<style"), "{path}");
    }
}

#[tokio::test]
async fn files_are_asked_for_again_and_sent_only_when_they_changed() {
    let server = Spec::demo().start().await;
    let visitor = Visitor::new(&server);
    let first = visitor.get("/static/page.js").await;
    assert_eq!((first.status, first.header("content-type")), (200, "text/javascript; charset=utf-8"));
    assert_eq!(first.header("cache-control"), "no-cache");
    assert_eq!(visitor.again("/static/page.js", first.header("etag")).await.status, 304);
    for path in ["/static/none.js", "/static/../Cargo.toml", "/static/%2e%2e/Cargo.toml", "/static/"] {
        assert_eq!(visitor.get(path).await.status, 404, "{path}");
    }
}
