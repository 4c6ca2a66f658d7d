//! A disk that is full refuses work in words, loses nothing, and goes on by itself once there is room.

use crate::support::node::click;
use serde_json::json;
use sqlx::ConnectOptions as _;
use sqlx::sqlite::SqliteConnectOptions;
use taskbell::core::effect::Effect;
use taskbell::core::submit::Submit;
use taskbell::store::migrate::Mode;
use taskbell::store::sqlite::{SqliteOptions, SqliteStore};
use taskbell::store::{Reach, Store, StoreError};

fn large() -> Submit {
    click("any", json!({"text": "x".repeat(200_000)}))
}

#[tokio::test]
async fn a_full_disk_is_told_as_unavailable_and_writes_go_on_when_there_is_room_again() {
    let folder = tempfile::tempdir().unwrap();
    let options = SqliteOptions::new(folder.path().join("taskbell.db"));
    let store = SqliteStore::open(options, Mode::Apply, &mut |_, _, _| {}).await.unwrap();
    // As full as SQLite can be made without a disk of its own. The limit belongs to the writer's connection.
    let full = Effect { sql: "PRAGMA max_page_count = 200", rows: vec![Vec::new()] };
    store.execute(vec![full]).await.unwrap();
    let mut accepted = Vec::new();
    let refused = loop {
        match store.submit(vec![large()]).await {
            Ok(written) => accepted.push(written.answer[0].task().unwrap().id),
            Err(e) => break e,
        }
        assert!(accepted.len() < 100, "the limit does not bite");
    };
    assert!(matches!(refused, StoreError::Unavailable(_)), "{refused:?}");
    let id = store.submit(vec![large()]).await.unwrap().answer[0].task().unwrap().id;
    accepted.push(id);
    store.ready().await.unwrap();
    assert_eq!(store.tasks(&Reach::default(), &accepted).await.unwrap().len(), accepted.len());
    let whole: String = sqlx::query_scalar("PRAGMA integrity_check")
        .fetch_one(
            &mut SqliteConnectOptions::new().filename(folder.path().join("taskbell.db")).connect().await.unwrap(),
        )
        .await
        .unwrap();
    assert_eq!(whole, "ok");
}
