//! What befalls machines until the faults stop: crashes, drains, stops and starts of a process, cuts from the database,
//! clocks that jump.

use crate::world::World;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Lets trouble come over the machines.
pub async fn rage(world: Arc<World>) {
    let dice = &world.dice;
    while !world.calm() {
        world.time.sleep(dice.between(200..world.rates.quiet_ms)).await;
        let machine = dice.below(world.machines.len());
        let (group, now) = (machine + 1, world.time.now());
        let Some(node) = world.node(machine).filter(|_| !world.calm()) else { continue };
        match dice.below(8) {
            0 | 1 => {
                world.seen.note("machine", "crash");
                world.crash(group);
            }
            2 => {
                world.seen.note("machine", "drain");
                world.time.spawn(group, node.drain());
            }
            3 | 4 => {
                let ms = dice.between(500..12_000);
                world.seen.note("machine", "stand still");
                world.tell(|| format!("node {group} stands still for {ms} ms"));
                world.time.freeze(group, now + ms);
            }
            5 | 6 => {
                let (ms, hangs) = (dice.between(300..9_000), dice.chance(500));
                world.seen.note("machine", "cut");
                world.tell(|| format!("node {group} is cut off for {ms} ms"));
                *world.machines[machine].cut.lock().unwrap() = (now + ms, hangs);
            }
            _ => {
                world.seen.note("machine", "clock jump");
                let off = dice.between(-7_200_000..7_200_000);
                world.machines[machine].wall_off.store(off, Ordering::Relaxed);
            }
        }
    }
}
