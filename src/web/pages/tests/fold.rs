//! Like tasks in one row.

use super::*;

#[test]
fn more_than_five_like_tasks_fold_and_stand_where_the_most_urgent_of_them_does() {
    let shell = shell("en");
    let made = |n: i64, state, title: &str| {
        let mut task = task(title, state);
        task.created_at = NOW.plus(-n * 60_000);
        task
    };
    let mut tasks: Vec<_> = (0..3).map(|n| made(n, State::Running, "Import")).collect();
    tasks.extend((3..5).map(|n| made(n, State::Succeeded, "Import")));
    assert_eq!(
        in_groups(&shell, &tasks, false).iter().map(|g| g.entries.len()).sum::<usize>(),
        5,
        "five are five rows"
    );
    let failure = TaskSummary { read: false, ..made(5, State::Failed, "Import") };
    tasks.push(failure);
    tasks.push(made(5 + 11, State::Succeeded, "Import"));
    let groups = in_groups(&shell, &tasks, true);
    let heads: Vec<_> = groups.iter().map(|g| (g.group.as_str(), g.count.as_str(), g.entries.len())).collect();
    assert_eq!(heads, [("attention", "6", 1), ("today", "1+", 1)], "one that was made later is not like them");
    let page = list(&shell, Filter::default(), groups).render().unwrap();
    assert!(page.contains("Import × 6</strong>") && page.contains("2 done, 1 failed, 3 running</span>"), "{page}");
}
