//! A browser without scripts: follows nothing by itself, keeps the cookies it is told to keep.

use crate::support::server::Server;
use reqwest::header::{ACCEPT, CONTENT_TYPE, COOKIE, HeaderMap, IF_NONE_MATCH, ORIGIN, SET_COOKIE};
use reqwest::redirect::Policy;
use std::collections::BTreeMap;

/// An answer.
pub struct Page {
    /// The status.
    pub status: u16,
    /// Where it leads; empty when nowhere.
    pub location: String,
    /// The body.
    pub text: String,
    headers: HeaderMap,
}

impl Page {
    /// A header as text; empty when it is not there.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

/// The browser.
pub struct Visitor {
    http: reqwest::Client,
    base: String,
    cookies: BTreeMap<String, String>,
}

impl Visitor {
    /// A browser without cookies.
    pub fn new(server: &Server) -> Self {
        let http = reqwest::Client::builder().redirect(Policy::none()).build().unwrap();
        Self { http, base: server.url(), cookies: BTreeMap::new() }
    }

    /// A browser in which a demo user is signed in.
    pub async fn signed_in(server: &Server, user: &str) -> Self {
        let mut visitor = Self::new(server);
        let page = visitor.form("/login", &[("user", user), ("password", "")]).await;
        assert_eq!(page.status, 303, "{}", page.text);
        visitor.keep(&page);
        visitor
    }

    /// Keeps the cookies of an answer.
    pub fn keep(&mut self, page: &Page) {
        for cookie in page.headers.get_all(SET_COOKIE) {
            let pair = cookie.to_str().unwrap().split(';').next().unwrap();
            let (name, value) = pair.split_once('=').unwrap();
            self.cookies.insert(name.to_owned(), value.to_owned());
        }
    }

    /// The token of the forms on the start page.
    pub async fn token(&self) -> String {
        let page = self.get("/").await;
        let token = page.text.split("name=\"csrf\" value=\"").nth(1).and_then(|rest| rest.split('"').next());
        token.expect("forms carry a token").to_owned()
    }

    /// Opens a page.
    pub async fn get(&self, path: &str) -> Page {
        self.send(self.http.get(self.address(path))).await
    }

    /// Opens what it has already, by its tag.
    pub async fn again(&self, path: &str, etag: &str) -> Page {
        self.send(self.http.get(self.address(path)).header(IF_NONE_MATCH, etag)).await
    }

    /// Sends a form as our own pages do.
    pub async fn form(&self, path: &str, fields: &[(&str, &str)]) -> Page {
        let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        self.post(path, "application/x-www-form-urlencoded", &body, Some(&self.base.clone())).await
    }

    /// Sends a body of any type from any page.
    pub async fn post(&self, path: &str, kind: &str, body: &str, origin: Option<&str>) -> Page {
        let mut request = self.http.post(self.address(path)).header(CONTENT_TYPE, kind).body(body.to_owned());
        if let Some(origin) = origin {
            request = request.header(ORIGIN, origin);
        }
        self.send(request).await
    }

    fn address(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    async fn send(&self, request: reqwest::RequestBuilder) -> Page {
        let cookies: Vec<String> = self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let request = request.header(ACCEPT, "text/html,*/*;q=0.8").header(COOKIE, cookies.join("; "));
        let answer = request.send().await.unwrap();
        let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
        let location = headers.get("location").and_then(|l| l.to_str().ok()).unwrap_or_default().to_owned();
        Page { status, location, headers, text: answer.text().await.unwrap() }
    }
}
