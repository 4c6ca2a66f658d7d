//! Short words for what tests ask of a page: waiting for an element or a text, reading what is shown.

use super::stage::Stage;
use crate::eventually;
use serde_json::Value;
use std::time::Duration;
use thirtyfour::prelude::*;

/// How long a page may take for anything that is no promise of its own.
pub const LIMIT: Duration = Duration::from_secs(15);

impl Stage {
    /// Opens a path of the service.
    pub async fn open(&self, path: &str) {
        self.driver().goto(format!("{}{path}", self.proxy.url())).await.unwrap();
    }

    /// Opens another tab and goes to it; the browser's own name of it.
    pub async fn open_tab(&self, path: &str) -> thirtyfour::WindowHandle {
        let tab = self.driver().new_tab().await.unwrap();
        self.driver().switch_to_window(tab.clone()).await.unwrap();
        self.open(path).await;
        tab
    }

    /// Opens another window and goes to it: it stands beside the first one, so that both are looked at.
    pub async fn open_window(&self, path: &str) -> thirtyfour::WindowHandle {
        let window = self.driver().new_window().await.unwrap();
        self.driver().switch_to_window(window.clone()).await.unwrap();
        self.open(path).await;
        window
    }

    /// What a script answers that calls `done` when it has the answer.
    pub async fn eval_async(&self, script: &str) -> Value {
        let script = format!("const done = arguments[arguments.length - 1];\n{script}");
        self.driver().execute_async(script, Vec::new()).await.unwrap_or_else(|e| panic!("{e}")).json().clone()
    }

    /// Signs in as the demo's user; the page of actions shows after it.
    pub async fn sign_in(&self) {
        self.open("/login").await;
        self.click("button[name='user'][value='user']").await;
        self.find("main[data-page='actions']").await;
    }

    /// Chooses a language, as a person does.
    pub async fn speak(&self, language: &str) {
        self.open("/").await;
        if self.eval("document.documentElement.lang").await != language {
            self.click(&format!("button[name='lang'][value='{language}']")).await;
            self.find(&format!("html[lang='{language}']")).await;
        }
    }

    /// Waits until the page has a socket.
    pub async fn until_live(&self) {
        let live = "document.querySelector('taskbell-bell').shadowRoot?.querySelector('.tb-panel-foot .tb-live')?.dataset.live === 'live'";
        self.until(LIMIT, live).await;
    }

    /// Opens the bell's panel and waits for a task's row in it; answers the row as an expression.
    pub async fn open_bell_on(&self, task: &Value) -> String {
        self.until_live().await;
        self.until(LIMIT, "document.querySelector('taskbell-bell').open || document.querySelector('taskbell-bell').shadowRoot.querySelector('.tb-bell-button').click() || document.querySelector('taskbell-bell').open").await;
        let row = self.bell_row(task);
        self.until(LIMIT, &row).await;
        row
    }

    /// A task's row in the bell's panel, as an expression.
    pub fn bell_row(&self, task: &Value) -> String {
        format!("document.querySelector('taskbell-bell').shadowRoot.querySelector('[data-task=\"{}\"]')", id(task))
    }

    /// A task's row in the main part of the page, as an expression.
    pub fn list_row(&self, task: &Value) -> String {
        format!("document.querySelector('main [data-task=\"{}\"]')", id(task))
    }

    /// What a row says of its counts.
    pub async fn row_count(&self, row: &str) -> String {
        self.eval(&format!("{row}.querySelector('[data-part=count]').textContent")).await.as_str().unwrap().to_owned()
    }

    /// Says yes to the question that is open in the bell.
    pub async fn confirm(&self) {
        let yes = "document.querySelector('taskbell-bell').shadowRoot.querySelector('dialog[open] .tb-dialog-foot button:last-child')";
        self.until(LIMIT, yes).await;
        self.eval(&format!("{yes}.click()")).await;
    }

    /// Where below an element a percent sign is shown or read out.
    pub async fn percent_signs(&self, element: &str) -> Value {
        self.eval(&format!(
            "(() => {{ const found = []; for (const e of [{element}, ...{element}.querySelectorAll('*')]) {{ \
             for (const text of [e.ariaLabel, e.title, e.getAttribute('aria-valuetext'), ...[...e.childNodes].filter((n) => n.nodeType === 3).map((n) => n.data)]) \
             if (text?.includes('%')) found.push(text); }} return found; }})()"
        )).await
    }

    /// Waits for an element.
    pub async fn find(&self, css: &str) -> WebElement {
        eventually(css, LIMIT, async || self.driver().find(By::Css(css)).await.ok()).await
    }

    /// The text of an element, read whole: a page that another one replaces in between is asked again.
    pub async fn text(&self, css: &str) -> String {
        eventually(css, LIMIT, async || self.driver().find(By::Css(css)).await.ok()?.text().await.ok()).await
    }

    /// Waits until an element has exactly this text: after a click that leads to another page, the way to know that it is
    /// that page which is read.
    pub async fn until_text(&self, css: &str, wanted: &str) {
        let there = async || (self.driver().find(By::Css(css)).await.ok()?.text().await.ok()? == wanted).then_some(());
        eventually(&format!("{css} says {wanted}"), LIMIT, there).await;
    }

    /// Clicks an element as soon as it can be clicked.
    pub async fn click(&self, css: &str) {
        let clicked = async || self.driver().find(By::Css(css)).await.ok()?.click().await.ok();
        eventually(&format!("click on {css}"), LIMIT, clicked).await;
    }

    /// What a script of one expression answers.
    pub async fn eval(&self, expression: &str) -> Value {
        let answer = self.driver().execute(format!("return {expression};"), Vec::new()).await;
        answer.unwrap_or_else(|e| panic!("{expression}: {e}")).json().clone()
    }

    /// Waits until an expression holds in the page.
    pub async fn until(&self, limit: Duration, expression: &str) {
        let holds = async || {
            (self.driver().execute(format!("return Boolean({expression});"), Vec::new()).await.ok()?.json()
                == &Value::Bool(true))
                .then_some(())
        };
        eventually(expression, limit, holds).await;
    }
}

fn id(task: &Value) -> &str {
    task["id"].as_str().expect("a task has an id")
}
