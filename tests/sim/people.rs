//! People: click, click again when the answer was lost, ask tasks to stop and to go on, tidy up. They reach a node as a
//! request does, so what they asked may die with it.

use crate::actions::{ACTIONS, Action, PACKS, RETRY, pack_of};
use crate::model::title_of_child;
use crate::world::World;
use serde_json::json;
use std::sync::Arc;
use taskbell::bus::Signal;
use taskbell::core::family::Parent;
use taskbell::core::ids::TaskId;
use taskbell::core::lifecycle::Ask;
use taskbell::core::principal::{Principal, Role, Scope};
use taskbell::core::submit::{KeyClaim, KeyKind, SlotClaim, Submit, SubmitRefusal, Submitted};
use taskbell::core::task::{Concurrency, Hold, State, Task};
use taskbell::store::{AskParams, Asked, Mark, MarkFilter, MarkParams, PackSwitch, Store};

/// How often a click is sent again while its answer is missing.
const TRIES: usize = 6;

/// Tenant and user of everybody who has tasks.
pub const OWNERS: [(&str, &str); 3] = [("acme", "alice"), ("acme", "bob"), ("globex", "gina")];

fn principal(tenant: &str, user: &str, role: Role) -> Principal {
    Principal { tenant: tenant.into(), user: user.into(), role, scopes: Scope::default_for(role) }
}

fn somebody(world: &World) -> Principal {
    let (tenant, user) = *world.dice.one(&OWNERS);
    if world.dice.chance(300) { principal(tenant, "opal", Role::Operator) } else { principal(tenant, user, Role::User) }
}

/// Clicks buttons until the faults stop.
pub async fn click_on(world: Arc<World>) {
    while !world.calm() {
        world.time.sleep(world.dice.between(1..1_800)).await;
        let (tenant, user) = *world.dice.one(&OWNERS);
        let count = if world.dice.chance(100) { 3 } else { 1 };
        let clicks: Vec<Submit> = (0..count).map(|_| click(&world, &principal(tenant, user, Role::User))).collect();
        insist(&world, clicks).await;
    }
}

/// Sends clicks until somebody answers. The id is the server's affair, so each try brings another; the keys stay.
async fn insist(world: &Arc<World>, mut clicks: Vec<Submit>) {
    let again = clicks.iter().all(|click| click.keys.iter().any(|key| key.kind == KeyKind::Caller));
    for _ in 0..if again { TRIES } else { 1 } {
        for click in &mut clicks {
            click.id = world.id();
            world.model.lock().unwrap().clicked(click);
        }
        if let Some(node) = world.any_node() {
            let (on, items) = (node.clone(), clicks.clone());
            if let Some(Ok(answers)) = world.ask(node.group, async move { on.submit(&items).await }).await {
                let mut model = world.model.lock().unwrap();
                for (click, answer) in clicks.iter().zip(&answers) {
                    world.seen.note("click", case_of(answer));
                    world.check(match answer.task() {
                        Some(task) => model.accept(task.id),
                        None => model.refuse(click.id),
                    });
                }
                return;
            }
        }
        world.time.sleep(world.dice.between(50..1_500)).await;
    }
}

fn case_of(answer: &Submitted) -> &'static str {
    match answer {
        Submitted::Created(_) => "created",
        Submitted::Replayed(_) => "replayed",
        Submitted::Skipped(_) => "skipped",
        Submitted::Refused(SubmitRefusal::IdempotencyMismatch { .. }) => "mismatch",
        Submitted::Refused(SubmitRefusal::IdempotencyConflict) => "idempotency conflict",
        Submitted::Refused(SubmitRefusal::ConcurrencyConflict { .. }) => "concurrency conflict",
        Submitted::Refused(SubmitRefusal::KeyQueueFull { .. }) => "queue full",
    }
}

/// A child that a chunk of a task submits. Of the keys only those that no task holds while it waits: a parent would wait
/// for a child that waits for it.
pub fn child(world: &World, parent: &Task, depth: i64) -> Submit {
    let chunkwise = |action: &Action| action.slot.is_none_or(|(_, hold, _)| hold == Hold::Chunk);
    let actions: Vec<Action> = ACTIONS.into_iter().filter(chunkwise).collect();
    let caller = principal(&parent.tenant, &parent.owner, Role::User);
    Submit {
        title: Some(title_of_child(parent.chunks + 1)),
        keys: Vec::new(),
        parent: Some(Parent { id: parent.id, depth, weight: world.dice.between(1..4) }),
        ..submit(world, &caller, world.dice.one(&actions))
    }
}

fn click(world: &World, caller: &Principal) -> Submit {
    submit(world, caller, world.dice.one(&ACTIONS))
}

fn submit(world: &World, caller: &Principal, action: &Action) -> Submit {
    let dice = &world.dice;
    let params = json!({"items": dice.between(1..9), "per": dice.between(1..4), "counted": dice.chance(700)});
    Submit {
        id: world.id(),
        caller: caller.clone(),
        tenant: caller.tenant.clone(),
        action: action.name.into(),
        title: None,
        owner: caller.user.clone(),
        record: None,
        fingerprint: params["items"].to_string(),
        keys: keys(world, action),
        slot: action.slot.map(|(limit, hold, policy)| SlotClaim {
            concurrency: Concurrency { key: action.name.into(), limit, hold },
            policy,
            max_waiting: 2,
        }),
        params,
        priority: *dice.one(&[0, 0, 0, -1, 2]),
        run_at: dice.chance(80).then(|| world.now().plus(dice.between(-1_000..6_000))),
        undo_window_ms: *dice.one(&[0, 0, 0, 500]),
        max_attempts: RETRY.max_attempts,
        timeout_ms: dice.chance(120).then(|| dice.between(2_000..15_000)),
        retry_of: None,
        pack: pack_of(action.name).map(str::to_owned),
        parent: None,
    }
}

fn keys(world: &World, action: &Action) -> Vec<KeyClaim> {
    let claim = |kind, key, keep_ms| KeyClaim { kind, key, keep_ms, on_conflict: action.conflict };
    let mut keys = Vec::new();
    if world.dice.chance(700) {
        let key = if world.dice.chance(300) { world.dice.below(4) as u128 } else { world.dice.wide() };
        keys.push(claim(KeyKind::Caller, format!("{key:x}"), 20_000));
    }
    if action.fields {
        keys.push(claim(KeyKind::Fields, world.dice.below(6).to_string(), 2_000));
    }
    keys
}

/// All tasks, and those that wait for their children, or were stopped while they did.
fn known(world: &World) -> (Vec<TaskId>, Vec<TaskId>) {
    let model = world.model.lock().unwrap();
    let waiting = model.rows().filter(|t| t.awaits.is_some()).map(|t| t.id).collect();
    (model.rows().map(|t| t.id).collect(), waiting)
}

/// Asks tasks to stop and to go on, deletes and marks, until the faults stop.
pub async fn meddle(world: Arc<World>) {
    while !world.calm() {
        world.time.sleep(world.dice.between(1..2_500)).await;
        let (known, waiting) = known(&world);
        let Some(node) = world.any_node().filter(|_| !known.is_empty()) else { continue };
        let who = somebody(&world);
        let parents = !waiting.is_empty() && world.dice.chance(300);
        let recent = if parents { &waiting } else { &known[known.len().saturating_sub(20)..] };
        let ids: Vec<TaskId> =
            (0..if world.dice.chance(100) { 6 } else { 1 }).map(|_| *world.dice.one(recent)).collect();
        let on = node.clone();
        let done = match world.dice.below(10) {
            0 => {
                world
                    .ask(node.group, async move { on.store.delete(&who, ids).await.map(|w| drop(on.announce(w))) })
                    .await
            }
            1 => {
                let params = mark(&world, &who, ids);
                let told = Signal::Marked { tenant: who.tenant, owner: who.user };
                world
                    .ask(node.group, async move {
                        let marked = on.store.mark(params).await.map(|w| on.announce(w))?;
                        if marked > 0 {
                            on.world.bus.publish(&on.world, &told);
                        }
                        Ok(())
                    })
                    .await
            }
            _ => {
                let asks = [Ask::Cancel, Ask::Pause, Ask::Pause, Ask::Resume, Ask::Resume, Ask::ForceCancel];
                let ask = *world.dice.one(if parents { &asks[1..5] } else { &asks });
                world.tell(|| format!("{} asks {ask:?} of {ids:?}", who.user));
                let asks =
                    ids.into_iter().map(|task| AskParams { caller: who.clone(), task, ask, reason: None }).collect();
                world
                    .ask(node.group, async move {
                        for asked in on.announce(on.store.ask(asks).await?) {
                            on.world.seen.note(
                                "ask",
                                match asked {
                                    Asked::Done { .. } => "done",
                                    Asked::Refused(_) => "refused",
                                    Asked::Superseded => "superseded",
                                    Asked::ParentStopped => "parent stopped",
                                    Asked::NotFound => "not found",
                                },
                            );
                        }
                        Ok(())
                    })
                    .await
            }
        };
        drop(done);
    }
}

/// Switches packs off and on until the faults stop, and leaves them on. What a switch did not reach is for the sweeps.
pub async fn switch(world: Arc<World>) {
    loop {
        world.time.sleep(world.dice.between(500..6_000)).await;
        let ends = world.calm();
        let (name, _) = *world.dice.one(&PACKS);
        let paused = !ends && world.dice.chance(500);
        let names = if ends { PACKS.map(|(name, _)| name).to_vec() } else { vec![name] };
        for name in names {
            let Some(node) = world.any_node() else { continue };
            let params = PackSwitch { name: name.into(), paused, by: "ada".into() };
            let on = node.clone();
            let switched = world.ask(node.group, async move {
                let switched = on.store.switch_pack(params).await?;
                let settled = on.announce(on.store.settle_packs(10).await?);
                on.world.tell(|| format!("{name} is off: {paused}, settled {settled}"));
                Ok::<_, taskbell::store::StoreError>(switched)
            });
            let case = match switched.await {
                Some(Ok(Some(_))) if paused => "off",
                Some(Ok(Some(_))) => "on",
                _ => "unanswered",
            };
            world.seen.note("switch", case);
        }
    }
}

fn mark(world: &World, who: &Principal, ids: Vec<TaskId>) -> MarkParams {
    MarkParams {
        tenant: who.tenant.clone(),
        owner: who.user.clone(),
        mark: *world.dice.one(&[Mark::Seen, Mark::Read, Mark::Archived]),
        ids: if world.dice.chance(500) { ids } else { Vec::new() },
        up_to: None,
        filter: MarkFilter::default(),
    }
}

/// After the faults: resumes or cancels what is paused, so that everything can end.
pub async fn settle(world: Arc<World>) {
    loop {
        let paused: Vec<_> = world
            .model
            .lock()
            .unwrap()
            .rows()
            .filter(|t| t.state == State::Paused)
            .map(|t| (t.id, t.tenant.clone()))
            .collect();
        for (task, tenant) in paused {
            let ask = *world.dice.one(&[Ask::Resume, Ask::Cancel]);
            let caller = principal(&tenant, "opal", Role::Operator);
            let Some(node) = world.any_node() else { continue };
            let on = node.clone();
            let params = vec![AskParams { caller, task, ask, reason: None }];
            world.ask(node.group, async move { on.store.ask(params).await.map(|w| drop(on.announce(w))) }).await;
        }
        world.time.sleep(500).await;
    }
}
