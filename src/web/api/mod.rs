//! The JSON API under `/api/v1`: its table of contents. One file a noun.

pub mod actions;
pub mod batch;
pub mod bulk;
pub mod callback;
pub mod control;
pub mod events;
pub mod files;
pub mod health;
pub mod list;
pub mod logs;
pub mod metrics;
pub mod nodes;
pub mod notifications;
pub mod packs;
pub mod progress;
pub mod records;
pub mod submit;
pub mod tasks;
pub mod worker;
mod worker_items;

use super::state::AppState;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// All routes of the API. Method and path of each stand above its handler, together with its description: what is served
/// and what `/api/openapi.json` tells cannot differ.
pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(list::list, submit::submit))
        .routes(routes!(batch::submit))
        .routes(routes!(bulk::act))
        .routes(routes!(tasks::get, tasks::delete))
        .routes(routes!(control::cancel))
        .routes(routes!(control::pause))
        .routes(routes!(control::resume))
        .routes(routes!(submit::retry))
        .routes(routes!(logs::page))
        .routes(routes!(logs::download))
        .routes(routes!(events::page))
        .routes(routes!(progress::picture))
        .routes(routes!(files::upload))
        .routes(routes!(files::download))
        .routes(routes!(actions::list))
        .routes(routes!(records::tasks))
        .routes(routes!(notifications::center))
        .routes(routes!(notifications::seen))
        .routes(routes!(notifications::read))
        .routes(routes!(notifications::archive))
        .routes(routes!(worker::claim))
        .routes(routes!(worker::commit))
        .routes(routes!(worker::progress))
        .routes(routes!(worker::log))
        .routes(routes!(worker::renew))
        .routes(routes!(packs::list))
        .routes(routes!(nodes::list))
        .routes(routes!(packs::pause))
        .routes(routes!(packs::resume))
        .routes(routes!(super::ws::connect))
        .merge(callbacks())
}

/// What handlers outside ask while their chunk runs: of any node, also of one that serves nothing else of the API.
pub fn callbacks() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(callback::progress))
        .routes(routes!(callback::log))
        .routes(routes!(callback::lease))
        .routes(routes!(callback::artifact))
        .routes(routes!(callback::file))
}

/// What probes ask, outside of the versioned API and also of a node that has none of it.
pub fn probes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(health::healthz)).routes(routes!(health::readyz)).routes(routes!(metrics::read))
}
