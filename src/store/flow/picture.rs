//! Points of pictures, in the commit of the changes that they show. Costs nothing where none is due, and a statement for all
//! that are. A picture is read and written anew only where it may have grown too large, which is seldom.

use super::super::Result;
use super::super::tx::Tx;
use crate::core::eta::UnitPrior;
use crate::core::ids::TaskId;
use crate::core::picture::{Due, Point, thinned};
use crate::core::task::Task;
use crate::core::time::Millis;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Adds a point for each of these tasks, as they are now.
pub(super) async fn draw(tx: &mut dyn Tx, now: Millis, drawn: &[(Due, Task)]) -> Result<()> {
    let mut priors: BTreeMap<(&str, &str), Option<UnitPrior>> = BTreeMap::new();
    let mut points: Vec<(TaskId, Point)> = Vec::with_capacity(drawn.len());
    for (_, task) in drawn {
        let mut point = Point::of(task, now, None);
        if point.finish_at.is_some() {
            let prior = match priors.entry((&task.tenant, &task.action)) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(place) => *place.insert(tx.prior(&task.tenant, &task.action).await?),
            };
            point = Point::of(task, now, prior);
        }
        points.push((task.id, point));
    }
    if !points.is_empty() {
        tx.put_points(&points).await?;
    }
    for (_, task) in drawn.iter().filter(|(due, _)| *due == Due::PointAndLook) {
        let started_at = task.started_at.unwrap_or(now);
        if let Some(left) = thinned(&tx.points(task.id).await?, started_at, now) {
            tx.remove_points(&[task.id]).await?;
            let left: Vec<(TaskId, Point)> = left.into_iter().map(|point| (task.id, point)).collect();
            tx.put_points(&left).await?;
        }
    }
    Ok(())
}
