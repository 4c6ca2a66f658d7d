//! What goes between nodes: real processes on one PostgreSQL database, with Redis, without it, and with one that fails. The
//! promise P10 of the channel and the faults N1, N2, N5, M2, M10, M12, G5 by their names. Limits are seconds, three times what is
//! promised, for slow machines.

mod deaf_redis;
mod faults;
mod many_at_once;
mod nodes;
mod notifications;
mod outage;
mod page;
mod proxies;
mod registry;
