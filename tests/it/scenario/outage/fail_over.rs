//! Fail-overs behind one address, to a server that has everything that was answered: the address leads to another server, and
//! nobody tells the nodes. The old server is gone, or it stays and only reads.

use super::*;
use crate::store::invariants::assert_invariants;

fn rounds() -> usize {
    if long() { 5 } else { 1 }
}

/// The address, and who has it.
struct Behind {
    leader: postgres::Server,
    address: Proxy,
    ground: Arc<Ground>,
}

impl Behind {
    async fn start() -> Self {
        let leader = postgres::Server::start().await;
        let address = Proxy::before(leader.port()).await;
        let mut url = url::Url::parse(leader.url()).unwrap();
        url.set_port(Some(address.port())).unwrap();
        let ground = Arc::new(Ground::on(Database::empty_on(url.as_str()).await));
        Self { leader, address, ground }
    }

    /// The leader crashes, and its follower takes its place.
    async fn crash(&mut self) {
        let follower = self.leader.follower().await;
        self.leader.pause().await;
        self.address.cut();
        follower.promote().await;
        self.address.lead_to(follower.port());
        self.address.mend();
        self.leader = follower;
    }

    /// The leader steps back and only reads, its follower takes its place, and no connection ends. Answers the old one.
    async fn step_back(&mut self, clients: &[Client]) -> postgres::Server {
        let follower = self.leader.follower().await;
        self.leader.become_standby().await;
        for client in clients {
            eventually("it can be read", BACK, async || (client.get("/api/v1/tasks").await.0 == 200).then_some(()))
                .await;
        }
        follower.promote().await;
        self.address.lead_to(follower.port());
        std::mem::replace(&mut self.leader, follower)
    }
}

async fn two_nodes(ground: &Arc<Ground>) -> ([Server; 2], [Client; 2]) {
    let nodes = [demo().start_on(ground.clone()).await, demo().start_on(ground.clone()).await];
    let first = nodes[0].client("user", "user").await;
    let second = Client::new(&nodes[1].url(), &first.key);
    (nodes, [first, second])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follower_that_takes_the_place_of_a_crashed_server_has_everything_that_was_answered() {
    let mut behind = Behind::start().await;
    let (_nodes, clients) = two_nodes(&behind.ground).await;
    let ground = behind.ground.clone();
    let id = start_import(&clients[0], 0.2).await;
    let between = Mutex::default();
    let clicked = clicks_during(&clients, async {
        for _ in 0..rounds() {
            behind.crash().await;
            let from = Instant::now();
            join_all(clients.iter().map(|client| click_until_accepted(client, BACK, &between))).await;
            eprintln!("both nodes accept clicks again {:?} after a fail-over", from.elapsed());
        }
    })
    .await;
    clicked.and(between.into_inner().unwrap()).assert_kept(&ground).await;
    assert_ends_exactly_once(&clients[0], &ground, &id).await;
    assert_invariants(ground.open().await.as_ref()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn m16_nodes_leave_a_server_that_only_reads_for_the_one_that_has_its_address_now() {
    let mut behind = Behind::start().await;
    let (_nodes, clients) = two_nodes(&behind.ground).await;
    let ground = behind.ground.clone();
    let id = start_import(&clients[0], 0.2).await;
    let mut old = Vec::new();
    let between = Mutex::default();
    let clicked = clicks_during(&clients, async {
        for _ in 0..rounds() {
            // It goes on answering reads.
            old.push(behind.step_back(&clients).await);
            let from = Instant::now();
            join_all(clients.iter().map(|client| click_until_accepted(client, BACK, &between))).await;
            eprintln!("both nodes accept clicks again {:?} after the address has moved", from.elapsed());
        }
    })
    .await;
    assert!(clicked.refused > 0, "nobody noticed");
    clicked.and(between.into_inner().unwrap()).assert_kept(&ground).await;
    assert_ends_exactly_once(&clients[0], &ground, &id).await;
    assert_invariants(ground.open().await.as_ref()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn m16_sessions_that_only_read_by_default_for_a_while_lose_nothing() {
    let (database_server, ground, server) = on_a_server_of_its_own().await;
    let client = server.client("user", "user").await;
    let id = start_import(&client, 0.2).await;
    let set = async |to: &str| {
        let database = ground.database().unwrap();
        database.execute_beside(&format!("ALTER SYSTEM SET default_transaction_read_only = {to}")).await;
        database.execute_beside("SELECT pg_reload_conf()").await;
    };
    let clicked = clicks_during(std::slice::from_ref(&client), async {
        set("on").await;
        // For those that are connected anew.
        ground.database().unwrap().terminate_all().await;
        tokio::time::sleep(Duration::from_secs(if long() { 30 } else { 2 })).await;
        set("off").await;
    })
    .await;
    clicked.assert_kept(&ground).await;
    assert_ends_exactly_once(&client, &ground, &id).await;
    drop(database_server);
}
