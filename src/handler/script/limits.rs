//! The limits of scripts, each with its unit and why it is what it is, and what a process does to hold itself to them.
//!
//! Memory and time are the action's own. What stands here bounds the rest, for every script. The limits that the
//! operating system holds ([`confine`], [`allow_memory`]) catch what the interpreter's own accounting misses.

use rlimit::Resource;
use rustix::process::{Pid, getpriority_process, setpriority_process};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::io;
use std::time::Duration;

/// A script file, bytes.
pub const SOURCE_BYTES: u64 = 1024 * 1024;

/// A file that a script reads as text, bytes.
pub const FILE_BYTES: usize = 32 * 1024 * 1024;

/// The answer to a fetch, bytes.
pub const FETCH_BYTES: usize = 4 * 1024 * 1024;

/// Lines of a chunk that are kept. What is logged beyond is counted and cut, until the chunk's budget ends it.
pub const LOG_LINES: usize = 2_000;

/// What is kept of them in all, bytes.
pub const LOG_BYTES: usize = 1024 * 1024;

/// Beside what a budget allows, bytes of a frame: its head, and what JSON adds to a text.
pub const FRAME_BYTES: usize = 64 * 1024;

/// Calls of one chunk that the server works on at once; the rest waits in the pipe.
pub const CALLS_AT_ONCE: usize = 4;

/// What a nested run must find of memory, bytes, to be begun at all: the built-ins of its world need about a third.
pub const LEAST_MEMORY_BYTES: u64 = 1024 * 1024;

/// What it must find of stack, bytes.
pub const LEAST_STACK_BYTES: usize = 32 * 1024;

/// Stack that the host itself may use for each nested run, bytes; it is not the script's.
pub const NESTED_STACK_BYTES: usize = 64 * 1024;

/// Statements between two looks of the interpreter at its budgets; also what a nested run costs at least.
pub const STATEMENTS_PER_LOOK: u64 = 10_000;

/// Between two progress reports on the pipe; what comes faster is merged, and the newest value counts.
pub const REPORT_EVERY: Duration = Duration::from_millis(50);

/// Stack of the thread that runs scripts, bytes: the largest budget, the host's part of the deepest nesting, and room for
/// the interpreter's native frames above a full script stack. It is address space; memory is used as far as it is touched.
pub const THREAD_STACK_BYTES: usize = 16 * 1024 * 1024 + 1_000 * NESTED_STACK_BYTES;

/// What the script's memory limit is raised by once it has been hit, bytes, so that the error can still be read.
pub const LAST_WORDS_BYTES: usize = 8 * 1024 * 1024;

/// How long a child has, past the chunk's time, to say itself that the time is over. Then it is killed.
pub const GRACE: Duration = Duration::from_millis(500);

/// How long a child has to become ready.
pub const START: Duration = Duration::from_secs(10);

/// Chunks that a child runs before a new one takes its place.
pub const CHUNKS_PER_CHILD: u32 = 200;

/// How much more than at its start a child may hold resident when a chunk ends, and be used again, bytes. The memory of a
/// bigger chunk goes back to the system with the process.
pub const GROWTH_BYTES: u64 = 16 * 1024 * 1024;

/// Address space beyond twice the script's memory, bytes. Address space is not memory: arenas and stacks reserve far
/// more than they use.
const HEADROOM_BYTES: u64 = 512 * 1024 * 1024;

/// How much a child steps back behind the server when both want a processor, as `nice` counts.
const NICE: i32 = 10;

/// Below this share of a processor a chunk starves, and no longer stands behind everybody.
pub const LEAST_SHARE: f64 = 0.03;

/// How long it has to have had less.
pub const SHARE_WINDOW: Duration = Duration::from_millis(250);

/// The last place at a processor.
const LAST: i32 = 19;

/// Files that a child may hold open: its three pipes, and one to read its own figures.
const OPEN_FILES: u64 = 8;

/// How much sooner than others the system ends a child when its memory runs out, of 1,000.
const FIRST_TO_GO: &str = "500";

/// Puts a child behind the server, and off one processor where there are several. Done by the server as soon as the child is
/// there: to start takes more of a processor than many a chunk.
///
/// A thread of the server that is woken from another processor may have to wait for the next tick wherever a script runs or
/// starts, whatever their places are. It finds a free processor if scripts keep off one.
pub(super) fn step_back(child: u32) {
    let Some(pid) = i32::try_from(child).ok().and_then(Pid::from_raw) else { return };
    let own = getpriority_process(None).unwrap_or(0);
    // Where it is not allowed, scripts have the place of the server.
    let _ = setpriority_process(Some(pid), (own + NICE).min(LAST));
    if let Some(processors) = sched_getaffinity(None).ok().and_then(all_but_the_first) {
        let _ = sched_setaffinity(Some(pid), &processors);
    }
}

/// The processors that scripts use; none where there is only one.
fn all_but_the_first(mut processors: CpuSet) -> Option<CpuSet> {
    let first = (0..CpuSet::MAX_CPU).find(|n| processors.is_set(*n))?;
    processors.unset(first);
    (processors.count() > 0).then_some(processors)
}

/// Takes from the process what a script's process never needs: core dumps, files, writing to files, a place in memory when
/// the machine runs out of it. Final, and for all threads that are started later.
pub(super) fn confine() -> io::Result<()> {
    // A machine whose memory is full should lose a script and not the server. Not every system has this.
    let _ = std::fs::write("/proc/self/oom_score_adj", FIRST_TO_GO);
    Resource::CORE.set(0, 0)?;
    Resource::FSIZE.set(0, 0)?;
    Resource::NOFILE.set(OPEN_FILES, OPEN_FILES)
}

/// Bounds the process's address space for a chunk of so much memory. The next chunk may have another bound.
pub(super) fn allow_memory(memory_bytes: u64) -> io::Result<()> {
    let (_, hard) = Resource::AS.get()?;
    let wanted = own_bytes("VmSize:").unwrap_or(0).saturating_add(memory_bytes.saturating_mul(2)) + HEADROOM_BYTES;
    Resource::AS.set(wanted.min(hard), hard)
}

/// What this process holds in memory now; 0 where the system does not tell.
pub(super) fn resident_bytes() -> u64 {
    own_bytes("VmRSS:").unwrap_or(0)
}

/// The most that it has ever held; 0 where the system does not tell.
pub(super) fn peak_bytes() -> u64 {
    own_bytes("VmHWM:").unwrap_or(0)
}

/// A figure of this process by its name, bytes; none where the system does not tell.
fn own_bytes(name: &str) -> Option<u64> {
    let figures = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = figures.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kib| kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_keep_off_one_processor_of_several_and_use_the_only_one() {
        let of = |processors: &[usize]| {
            let mut set = CpuSet::new();
            processors.iter().for_each(|n| set.set(*n));
            set
        };
        assert_eq!(all_but_the_first(of(&[2, 5, 7])), Some(of(&[5, 7])));
        assert_eq!(all_but_the_first(of(&[3])), None);
        assert_eq!(all_but_the_first(of(&[])), None);
    }

    #[test]
    fn a_child_is_put_behind_its_server_and_off_a_processor() {
        let mut child = std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let pid = Pid::from_child(&child);
        let (nice, processors) = (getpriority_process(None).unwrap(), sched_getaffinity(None).unwrap());
        step_back(child.id());
        assert_eq!(getpriority_process(Some(pid)).unwrap(), (nice + NICE).min(LAST));
        assert_eq!(sched_getaffinity(Some(pid)).unwrap(), all_but_the_first(processors).unwrap_or(processors));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
