//! One page: merges what it is told by revision, as the page's script does, asks once when a ping shows that it is behind,
//! and reconnects with the head it knows.

use super::session::serve;
use super::{Frame, Request};
use crate::people::OWNERS;
use crate::violation::{Checked, Invariant, must};
use crate::world::World;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use taskbell::core::ids::{Head, Revision, TaskId};
use taskbell::core::task::Task;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

/// What a page shows.
#[derive(Default)]
pub struct Page {
    owner: usize,
    tasks: BTreeMap<TaskId, Task>,
    have: Option<Head>,
    /// The last snapshot left older ends out.
    more: bool,
    /// The newest revision that this connection pushed, by task.
    pushed: BTreeMap<TaskId, Revision>,
}

impl Page {
    /// A page of one of the owners.
    pub fn of(owner: usize) -> Arc<Mutex<Self>> {
        Arc::new(Mutex::new(Self { owner, ..Self::default() }))
    }

    fn take(&mut self, frame: Frame, ask: &UnboundedSender<Request>) -> Checked {
        match frame {
            Frame::Snap(head, items, more) => {
                (self.have, self.more) = (Some(head), more);
                let known = std::mem::take(&mut self.tasks);
                for task in items {
                    self.rises(&task, true)?;
                    let newer = known.get(&task.id).filter(|known| known.revision > task.revision);
                    must(newer.is_none(), Invariant::Push, || {
                        format!("a snapshot went back: {newer:?}, then {task:?}")
                    })?;
                    self.tasks.insert(task.id, task);
                }
            }
            Frame::Same(head) => self.have = self.have.max(Some(head)),
            Frame::Delta(head, items) => {
                self.have = self.have.map(|have| have.max(head));
                for task in items {
                    self.rises(&task, false)?;
                    if self.tasks.get(&task.id).is_none_or(|known| known.revision < task.revision) {
                        self.tasks.insert(task.id, task);
                    }
                }
            }
            Frame::Gone(id, revision) => {
                if self.tasks.get(&id).is_some_and(|known| known.revision <= revision) {
                    self.tasks.remove(&id);
                }
            }
            Frame::Ping(head) => {
                if self.have.is_some_and(|have| head > have) {
                    let _ = ask.send(Request::Sync(self.have));
                }
            }
        }
        Ok(())
    }

    /// On one connection the revisions of a task rise; a snapshot may repeat the newest.
    fn rises(&mut self, task: &Task, repeats: bool) -> Checked {
        let before = self.pushed.insert(task.id, task.revision);
        let rises = before.is_none_or(|b| b < task.revision || (repeats && b == task.revision));
        must(rises, Invariant::Push, || format!("{before:?} was pushed before {task:?}"))
    }

    /// Holds what the page shows against the rows of its owner; archived ones need not be there.
    pub fn check<'a>(&self, rows: impl Iterator<Item = &'a Task>) -> Checked {
        let own = rows.filter(|t| (t.tenant.as_str(), t.owner.as_str()) == OWNERS[self.owner]);
        let own: BTreeMap<TaskId, &Task> = own.map(|t| (t.id, t)).collect();
        for (id, row) in &own {
            let shown = self.tasks.get(id);
            // A lease is lengthened without telling anybody.
            let same = shown.is_some_and(|s| s.revision == row.revision && s.state == row.state);
            let left_out = row.archived_at.is_some() || (self.more && row.state.is_final());
            must(same || (shown.is_none() && left_out), Invariant::Push, || {
                format!("the row is {row:?}, a page shows {shown:?}")
            })?;
        }
        let zombie = self.tasks.keys().find(|id| !own.contains_key(id));
        must(zombie.is_none(), Invariant::Push, || format!("a page shows {zombie:?}, which is deleted"))
    }
}

/// The life of a page.
pub async fn look(world: Arc<World>, page: Arc<Mutex<Page>>) {
    loop {
        world.time.sleep(if world.calm() { 100 } else { world.dice.between(1..3_000) }).await;
        let Some(node) = world.any_node() else { continue };
        let (to_page, mut frames) = unbounded_channel();
        let (ask, requests) = unbounded_channel();
        let (owner, have) = {
            let mut page = page.lock().unwrap();
            page.pushed.clear();
            (page.owner, page.have)
        };
        world.time.spawn(node.group, serve(node, owner, have, to_page, requests));
        let life_ms = world.dice.between(500..20_000);
        let mut cut = world.time.sleep(life_ms);
        loop {
            let frame = tokio::select! {
                biased;
                frame = frames.recv() => frame,
                () = &mut cut, if !world.calm() => None,
            };
            let Some(frame) = frame else { break };
            world.seen.note("page", frame.name());
            world.check(page.lock().unwrap().take(frame, &ask));
            // In the end somebody looks at every page.
            if world.calm() || world.fault(50) {
                let _ = ask.send(Request::View(world.calm() || world.dice.chance(700)));
            }
        }
    }
}
