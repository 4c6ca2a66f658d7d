//! Many pages, a bus that loses and reorders, sockets that are cut, pages that hide: in the end every page shows what the
//! database holds. The seed of a failing round is in its message.

use super::model::Model;
use super::peer::{LIMIT, Peer, Seen};
use super::world::{World, user};
use serde_json::json;
use std::sync::{Arc, Mutex};
use taskbell::bus::Signal;
use taskbell::core::ids::{FencingToken, TaskId};
use taskbell::push::Limits;
use tokio::task::JoinHandle;

const USERS: usize = 6;
const PAGES_OF_ONE: usize = 3;
const STEPS: usize = 400;

/// A small random source with a seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % n as u64) as usize
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}

/// A page: a model that outlives its sockets.
struct Page {
    owner: String,
    model: Arc<Mutex<Model>>,
    view: tokio::sync::watch::Sender<bool>,
    reader: JoinHandle<()>,
}

impl Page {
    fn open(world: &World, owner: &str, model: Arc<Mutex<Model>>) -> Self {
        let (view, seen) = tokio::sync::watch::channel(true);
        let opening = super::world::opening(Some(super::world::identity(user(owner))));
        let peer = world.connect(opening);
        let reader = tokio::spawn(read(peer, model.clone(), seen));
        Self { owner: owner.to_owned(), model, view, reader }
    }

    /// Cuts the socket and comes back with what is known.
    fn cut(&mut self, world: &World) {
        self.reader.abort();
        *self = Self::open(world, &self.owner.clone(), self.model.clone());
    }
}

async fn read(mut peer: Peer, model: Arc<Mutex<Model>>, mut seen: tokio::sync::watch::Receiver<bool>) {
    let have = model.lock().unwrap().have();
    peer.send(json!({"t": "hello", "have": have}));
    loop {
        tokio::select! {
            next = peer.next() => match next {
                Seen::Frame(frame) => {
                    model.lock().unwrap().take(&frame);
                    if frame["t"] == "ping" {
                        peer.send(json!({"t": "pong"}));
                    }
                }
                other => {
                    model.lock().unwrap().fault.get_or_insert(format!("{other:?}"));
                    break;
                }
            },
            changed = seen.changed() => match changed {
                Ok(()) => peer.send(json!({"t": "view", "visible": *seen.borrow_and_update()})),
                Err(_) => break,
            },
        }
    }
}

/// The bus as it may be: some signals are lost, some overtake others.
fn misdeliver(world: &World, late: &mut Vec<Signal>, dice: &mut Dice) {
    let signals = std::mem::take(world.held.lock().unwrap().as_mut().unwrap());
    for signal in signals {
        match dice.below(10) {
            0 => {}
            1 | 2 => late.push(signal),
            _ => world.bus.publish(signal),
        }
    }
    if dice.one_in(3) {
        late.drain(..).rev().for_each(|signal| world.bus.publish(signal));
    }
    if dice.one_in(200) {
        world.bus.publish(Signal::Missed);
    }
}

async fn step(world: &World, running: &mut Vec<(TaskId, FencingToken, i64)>, ended: &mut Vec<TaskId>, dice: &mut Dice) {
    match dice.below(10) {
        0 | 1 => drop(world.submit(&format!("u{}", dice.below(USERS))).await),
        2 => running.extend(world.claim_all().await.into_iter().map(|(id, token)| (id, token, 0))),
        3 if !running.is_empty() => {
            let (id, token, _) = running.swap_remove(dice.below(running.len()));
            world.finish(id, token, true).await;
            ended.push(id);
        }
        4 if !ended.is_empty() && dice.one_in(3) => {
            let id = ended.swap_remove(dice.below(ended.len()));
            let owner = world.task(id).await.owner;
            world.delete(&owner, id).await;
        }
        _ if !running.is_empty() => {
            let at = dice.below(running.len());
            running[at].2 += 1;
            let (id, token, current) = running[at];
            world.report(id, token, current, true).await;
        }
        _ => {}
    }
}

#[tokio::test]
async fn t13_every_page_ends_with_what_the_database_holds() {
    for seed in [1, 20, 300] {
        // Pings are frequent, since what was lost at the very end shows only there.
        let limits = Limits { ping_ms: 300, jitter_ms: 200, gap_ms: 200, ..Limits::default() };
        let world = World::with(limits).await;
        *world.held.lock().unwrap() = Some(Vec::new());
        let mut dice = Dice(seed);
        let mut pages: Vec<Page> =
            (0..USERS * PAGES_OF_ONE).map(|n| Page::open(&world, &format!("u{}", n % USERS), Arc::default())).collect();
        let (mut running, mut ended, mut late) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..STEPS {
            step(&world, &mut running, &mut ended, &mut dice).await;
            misdeliver(&world, &mut late, &mut dice);
            let at = dice.below(pages.len());
            match dice.below(20) {
                0 => pages[at].cut(&world),
                1 => pages[at].view.send_modify(|visible| *visible = !*visible),
                _ => {}
            }
        }
        for page in &pages {
            page.view.send_replace(true);
        }
        for page in &pages {
            let truth = async || {
                let center = world.store.center("t", &page.owner).await.unwrap();
                let model = page.model.lock().unwrap();
                assert_eq!(model.fault, None, "seed {seed}, {}", page.owner);
                model.is(&center).then_some(())
            };
            // What was lost last is found by a ping within a second; a busy machine may take long to come to it.
            crate::support::eventually(&format!("seed {seed}: {} is true", page.owner), 3 * LIMIT, truth).await;
        }
    }
}
