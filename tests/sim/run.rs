//! One run: a world of a seed goes through so many steps with faults, then the faults stop, everything has to end, and the
//! pages have to show it.

use crate::node::Node;
use crate::people::{OWNERS, click_on, meddle, settle, switch};
use crate::plant::Plant;
use crate::scheduler::Scheduler;
use crate::seen::Seen;
use crate::violation::{Checked, Invariant, Violation, must};
use crate::watcher::{Page, look};
use crate::weather::rage;
use crate::world::World;
use futures_util::FutureExt;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::AddAssign;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use taskbell::store::{ListParams, Store};

/// How often the whole table is looked at, steps.
const WHOLE_EVERY: usize = 100;
/// How long everything may take to end after the faults, ms: ten leases.
const END_MS: i64 = 10 * crate::node::LEASE_MS;
/// How long pages may take to show it, ms: a call that hangs when the faults stop hangs to its end.
const SHOW_MS: i64 = 20_000;
/// How often pages are looked at then, steps.
const SHOW_STEPS: usize = 20;
/// No end takes more steps than this.
const END_STEPS: usize = 100_000;

/// What a run was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Steps, with those after the faults.
    pub steps: usize,
    /// Tasks that were made.
    pub tasks: usize,
    /// Commits that changed something or nothing.
    pub commits: u64,
    /// Virtual time that passed, ms.
    pub virtual_ms: i64,
}

impl AddAssign for Figures {
    fn add_assign(&mut self, other: Self) {
        self.steps += other.steps;
        self.tasks += other.tasks;
        self.commits += other.commits;
        self.virtual_ms += other.virtual_ms;
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { steps, tasks, commits, virtual_ms } = self;
        write!(f, "{steps} steps, {tasks} tasks, {commits} commits, {} virtual s", virtual_ms / 1_000)
    }
}

/// A broken promise, and how to see it again.
#[derive(Debug)]
pub struct Failure {
    pub seed: u64,
    pub step: usize,
    pub steps: usize,
    pub violation: Violation,
    pub events: Vec<String>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, step, steps, violation, events } = self;
        writeln!(f, "seed {seed}, step {step}: {}", violation.invariant)?;
        writeln!(f, "  {}", violation.facts)?;
        writeln!(f, "the last events:")?;
        events.iter().try_for_each(|event| writeln!(f, "  {event}"))?;
        write!(f, "again: SIM_SEED={seed} SIM_STEPS={steps} cargo test --test sim every_seed")
    }
}

/// Runs a seed, and adds to `seen` what it met; one that fails is run again, to tell what happened.
pub fn run(seed: u64, steps: usize, plant: Option<Plant>, seen: &Seen) -> Result<Figures, Box<Failure>> {
    let quick = attempt(seed, steps, plant, false, seen);
    match quick {
        Err(_) => Err(attempt(seed, steps, plant, true, seen).expect_err("a seed that failed fails again")),
        figures => figures,
    }
}

fn attempt(seed: u64, steps: usize, plant: Option<Plant>, told: bool, seen: &Seen) -> Result<Figures, Box<Failure>> {
    let mut play = Play::new(seed, plant, told);
    let ended = catch_unwind(AssertUnwindSafe(|| play.through(steps)));
    seen.add(&play.world.seen);
    let violation = match ended {
        Ok(Ok(())) => return Ok(play.figures()),
        Ok(Err(violation)) => violation,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
            Violation { invariant: Invariant::Panic, facts: text.unwrap_or_default() }
        }
    };
    let failure = Failure { seed, step: play.step, steps, events: play.world.events(), violation };
    if failure.violation.invariant == Invariant::Panic {
        // What broke down may not be whole enough to be taken apart.
        std::mem::forget(play);
    }
    Err(Box::new(failure))
}

struct Play {
    world: Arc<World>,
    scheduler: Scheduler,
    pages: Vec<Arc<Mutex<Page>>>,
    step: usize,
    /// Steps before the faults stop.
    storm: usize,
}

impl Drop for Play {
    /// Nodes and actors know the world that they live in: without this none of them would ever go.
    fn drop(&mut self) {
        self.scheduler.end();
        self.world.machines.iter().for_each(|machine| drop(machine.node.lock().unwrap().take()));
    }
}

impl Play {
    fn new(seed: u64, plant: Option<Plant>, told: bool) -> Self {
        let world = World::new(seed, plant, told);
        let scheduler = Scheduler::new(world.time.clone());
        let pages: Vec<_> = (0..OWNERS.len() * 2).map(|n| Page::of(n % OWNERS.len())).collect();
        for group in 1..=world.machines.len() {
            Node::boot(&world, group);
        }
        let time = &world.time;
        time.spawn(0, click_on(world.clone()));
        time.spawn(0, click_on(world.clone()));
        time.spawn(0, meddle(world.clone()));
        time.spawn(0, switch(world.clone()));
        time.spawn(0, rage(world.clone()));
        for page in &pages {
            time.spawn(0, look(world.clone(), page.clone()));
        }
        Self { world, scheduler, pages, step: 0, storm: 0 }
    }

    fn figures(&self) -> Figures {
        let model = self.world.model.lock().unwrap();
        Figures {
            steps: self.step,
            tasks: model.rows().count(),
            commits: model.commits,
            virtual_ms: self.world.time.now(),
        }
    }

    fn through(&mut self, steps: usize) -> Checked {
        self.storm = steps;
        for _ in 0..steps {
            self.one()?;
        }
        self.world.tell(|| "the faults stop".into());
        self.world.calm_down();
        self.world.time.spawn(0, settle(self.world.clone()));
        self.all_ends()?;
        self.all_shows()
    }

    /// One step, and what follows it.
    fn one(&mut self) -> Checked {
        self.step += 1;
        assert!(self.scheduler.step(&self.world.dice), "nobody has anything to do");
        if self.step.is_multiple_of(WHOLE_EVERY) {
            self.whole()?;
        }
        self.world.broken().map_or(Ok(()), Err)
    }

    /// Looks at the whole table, unless a transaction is under way.
    fn whole(&self) -> Checked {
        let memory = &self.world.memory;
        let params = ListParams { archived: true, limit: usize::MAX >> 1, ..ListParams::default() };
        let Some(Ok(stored)) = memory.list(params).now_or_never() else { return Ok(()) };
        let model = self.world.model.lock().unwrap();
        let mut heads = BTreeMap::new();
        for (tenant, owner) in model.owners() {
            let head = memory.head(tenant, owner).now_or_never().and_then(Result::ok).unwrap_or_default();
            heads.insert((tenant.clone(), owner.clone()), head);
        }
        model.check(&stored.items, &heads)
    }

    /// Every task ends within ten leases.
    fn all_ends(&mut self) -> Checked {
        let end = self.world.time.now() + END_MS;
        while !self.world.model.lock().unwrap().all_ended() {
            self.one()?;
            let late = self.world.time.now() >= end || self.step > self.storm + END_STEPS;
            must(!late, Invariant::Liveness, || self.world.model.lock().unwrap().open())?;
        }
        Ok(())
    }

    /// Then nothing is held, and every page shows the rows.
    fn all_shows(&mut self) -> Checked {
        let end = self.world.time.now() + SHOW_MS;
        loop {
            let shows = self.at_rest().and_then(|()| self.shown());
            if shows.is_ok() || self.world.time.now() >= end {
                return shows.and_then(|()| self.whole());
            }
            for _ in 0..SHOW_STEPS {
                self.one()?;
            }
        }
    }

    fn at_rest(&self) -> Checked {
        for node in (0..self.world.machines.len()).filter_map(|n| self.world.node(n)) {
            let busy = node.running.held();
            must(busy.is_empty(), Invariant::AtRest, || format!("{} still runs {busy:?}", node.name))?;
        }
        let free = self.world.memory.begin().now_or_never();
        must(free.is_some(), Invariant::AtRest, || "a transaction is still open".into())
    }

    fn shown(&self) -> Checked {
        let model = self.world.model.lock().unwrap();
        self.pages.iter().try_for_each(|page| page.lock().unwrap().check(model.rows()))
    }
}
