//! Requests in numbers, and how long things took.
//!
//! A request is counted under the template of its route, never under the path as it came: whatever is asked for, the number
//! of series stays that of the router's table. The clock here is for numbers alone.

use super::error::Problem;
use crate::core::metric;
use axum::extract::{MatchedPath, Request};
use axum::http::Method;
use axum::response::Response;
use metrics::{counter, histogram};
use std::time::{Duration, Instant};

/// The route of what no route fits.
const NO_ROUTE: &str = "none";
/// The method of what is none of ours.
const NO_METHOD: &str = "other";

/// A request that is counted when its answer is there.
pub struct Counted {
    began: Instant,
    route: String,
    method: &'static str,
}

impl Counted {
    /// Begins to take its time.
    #[must_use]
    pub fn of(request: &Request) -> Self {
        let route = request.extensions().get::<MatchedPath>().map_or(NO_ROUTE, MatchedPath::as_str).to_owned();
        Self { began: Instant::now(), route, method: word(request.method()) }
    }

    /// Counts it with what became of it.
    pub fn end(self, response: &Response) {
        let Self { began, route, method } = self;
        let status = response.status().as_str().to_owned();
        histogram!(metric::REQUEST_SECONDS, "route" => route.clone()).record(began.elapsed());
        counter!(metric::REQUESTS, "method" => method, "route" => route, "status" => status).increment(1);
    }
}

/// Counts a problem, before a page may be made of it.
pub fn problem(response: &Response) {
    if let Some(Problem(error)) = response.extensions().get::<Problem>() {
        counter!(metric::PROBLEMS, "code" => error.code.as_str()).increment(1);
    }
}

fn word(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        Method::HEAD => "HEAD",
        Method::OPTIONS => "OPTIONS",
        _ => NO_METHOD,
    }
}

/// What a future answers, and how long that took.
pub async fn timed<T>(future: impl Future<Output = T>) -> (T, Duration) {
    let began = Instant::now();
    let answer = future.await;
    (answer, began.elapsed())
}
