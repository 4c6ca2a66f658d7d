//! The limits of push as the configuration sets them.

use crate::config::Push;
use crate::push::Limits;

/// The largest part of what may wait that one frame may have: the rest is for what the protocol adds to it.
const FRAME_PART: (usize, usize) = (3, 4);

/// All of them; what no setting names keeps its default.
pub(super) fn of(push: &Push) -> Limits {
    let usual = Limits::default();
    let one_frame = push.pending_bytes / FRAME_PART.1 * FRAME_PART.0;
    Limits {
        ping_ms: push.ping_ms,
        pong_ms: push.pong_ms,
        hello_ms: push.hello_ms,
        write_ms: push.write_ms,
        commands_per_second: push.commands_per_second,
        topic_count: push.topics_per_connection,
        user_connections: push.connections_per_user,
        address_connections: push.connections_per_address,
        node_connections: push.connections_per_node,
        incoming_bytes: push.frame_bytes,
        pending_bytes: push.pending_bytes,
        snapshot_bytes: usual.snapshot_bytes.min(one_frame),
        ..usual
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Settings;

    fn limits(env: &[(&str, &str)]) -> Limits {
        let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        of(&Settings::load(None, env, true).expect("they are sound").settings.push)
    }

    #[test]
    fn what_is_not_set_is_the_default_of_the_limits() {
        assert_eq!(limits(&[]), Limits::default());
    }

    #[test]
    fn no_frame_is_larger_than_what_may_wait() {
        let small = limits(&[("TASKBELL__PUSH__PENDING_BYTES", "65536")]);
        assert!(small.snapshot_bytes < small.pending_bytes && small.frame_bytes < small.pending_bytes);
    }
}
