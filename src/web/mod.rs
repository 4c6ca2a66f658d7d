//! HTTP: the API and the pages. This file is the table of contents.
//!
//! A handler extracts, authorises, makes one call and gives a typed answer. Who may do what is decided before anything is
//! looked up; nothing of another tenant, or of another user below operator, can be told from what does not exist. Must
//! never name a database driver: rows come from the store's port, changes go through the engine's command handle.

pub mod api;
mod arriving;
pub mod auth;
pub mod body;
pub mod client;
pub mod cursor;
pub mod error;
pub mod extract;
pub mod fields;
pub mod measure;
pub mod middleware;
pub mod openapi;
pub mod origin;
pub mod pages;
pub mod query;
pub mod room;
pub mod server;
mod socket;
pub mod state;
pub mod ws;

pub use state::{AppState, Parts, WebSettings};

use axum::Router;
use axum::middleware::from_fn_with_state;
use error::{ApiError, Code};
use middleware::Around;
use room::Room;
use tower::ServiceBuilder;
use tower_http::catch_panic::CatchPanicLayer;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// What a node without pages and API serves: how it is, and the callbacks of chunks that run elsewhere.
pub fn health_router(state: AppState) -> Router {
    let callbacks = OpenApiRouter::new().nest("/api/v1", api::callbacks());
    let (probes, _) = api::probes().merge(callbacks).split_for_parts();
    let around = Around { room: Room::default(), pages: None };
    let layer = from_fn_with_state(around, middleware::around);
    probes.fallback(async || ApiError::new(Code::NotFound)).layer(layer).with_state(state)
}

/// Everything that is served.
pub fn router(state: AppState) -> Router {
    let around = Around { room: Room::default(), pages: Some(state.clone()) };
    let layers = ServiceBuilder::new()
        .layer(from_fn_with_state(around, middleware::around))
        .layer(CatchPanicLayer::custom(middleware::panicked))
        .layer(middleware::cors(&state.settings));
    Router::new()
        .merge(pages::routes())
        .merge(described().split_for_parts().0)
        .fallback(async || ApiError::new(Code::NotFound))
        .method_not_allowed_fallback(async || ApiError::new(Code::MethodNotAllowed))
        .layer(layers)
        .with_state(state)
}

/// Everything that programs ask, with its description.
pub fn described() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().nest("/api/v1", api::routes()).merge(api::probes()).routes(routes!(openapi::json))
}
