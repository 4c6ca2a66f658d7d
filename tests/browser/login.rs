//! The sign-in by password, as a person does it: a wrong one, the right one, and the end of the session while a page is open.

use crate::browser_tests;
use crate::looks::FAINT;
use crate::rig::page::LIMIT;
use crate::rig::runner::Test;
use crate::rig::stage::Stage;
use crate::server::{Server, Spec};
use serde_json::json;

const PASSWORD: &str = "correct horse battery";

pub fn tests() -> Vec<Test> {
    browser_tests![a_person_signs_in_by_password_and_is_signed_out_when_the_account_goes]
}

async fn a_person_signs_in_by_password_and_is_signed_out_when_the_account_goes(stage: &Stage) {
    let server = Spec::with_config("[database]\nurl = \"sqlite://data/taskbell.db\"\n").start().await;
    server.command_told(&["user", "add", "alice", "--role", "user"], PASSWORD).await;
    let visit = |path: &str| stage.driver().goto(format!("{}{path}", server.url()));
    visit("/notifications?state=failed").await.unwrap();
    stage.find("form.login-form").await;
    give(stage, "alice", "wrong horse battery").await;
    let refused = stage.text("[role='alert']").await;
    assert_eq!(refused, "User or password is not right. Check both and try again.");
    assert_eq!(stage.eval("document.activeElement.id").await, "password", "the name need not be typed again");
    for dark in [false, true] {
        stage.scheme(dark).await;
        stage.screen(390, 720).await;
        assert_eq!(stage.eval("document.documentElement.scrollWidth <= innerWidth").await, true);
        assert_eq!(stage.eval(FAINT).await, json!([]), "dark: {dark}");
        stage.picture(if dark { "login-refused-dark" } else { "login-refused" }).await;
    }
    give(stage, "", PASSWORD).await;
    stage.find("main[data-page='notifications']").await;
    assert_eq!(stage.eval("location.pathname + location.search").await, "/notifications?state=failed");
    stage.until_live().await;
    gone(stage, &server).await;
    visit("/").await.unwrap();
    stage.find("form.login-form").await;
}

/// Fills the form in and sends it; an empty name is left as it stands.
async fn give(stage: &Stage, name: &str, password: &str) {
    for (field, text) in [("user", name), ("password", password)] {
        stage.find(&format!("#{field}")).await.send_keys(text).await.unwrap();
    }
    stage.click(".login-form button").await;
}

/// Removes the account; the open page tells it without a click.
async fn gone(stage: &Stage, server: &Server) {
    server.command(&["user", "remove", "alice"]).await;
    let told = "document.querySelector('taskbell-bell').shadowRoot.querySelector('.tb-panel-foot .tb-live').dataset.live === 'signed-out'";
    stage.until(LIMIT, told).await;
}
