//! Requests in numbers, and how long things took.
//!
//! A request is counted under the template of its route, never under the path as it came: whatever is asked for, the number
//! of series stays that of the router's table. The clock here is for numbers alone.

use super::error::Problem;
use crate::core::metric;
use axum::extract::{MatchedPath, Request};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::Response;
use metrics::{counter, histogram};
use std::time::{Duration, Instant};

/// The route of what no route fits.
const NO_ROUTE: &str = "none";
/// The method of what is none of ours.
const NO_METHOD: &str = "other";

/// Counts a request and takes its time.
pub async fn requests(request: Request, next: Next) -> Response {
    let began = Instant::now();
    let route = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let route = route.unwrap_or_else(|| NO_ROUTE.to_owned());
    let method = word(request.method());
    let response = next.run(request).await;
    let status = response.status().as_str().to_owned();
    histogram!(metric::REQUEST_SECONDS, "route" => route.clone()).record(began.elapsed());
    counter!(metric::REQUESTS, "method" => method, "route" => route, "status" => status).increment(1);
    response
}

/// Counts a problem, before a page may be made of it.
pub async fn problems(request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    if let Some(Problem(error)) = response.extensions().get::<Problem>() {
        counter!(metric::PROBLEMS, "code" => error.code.as_str()).increment(1);
    }
    response
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
