//! Push, from the hub to the frames that a client gets: real sessions over a real database, with the test as the other end of
//! the socket, and a real server where bytes, addresses or memory matter. Names begin with what they prove: the promises P1–P11
//! of the channel, the faults K1, K5, K6 and K10, the threats S1, S2, S4 and S14.

mod attacks;
mod center;
pub mod crowd;
mod elsewhere;
mod endings;
mod hostile;
mod leaks;
mod model;
pub mod page;
pub mod peer;
mod raw;
mod restart;
mod rooms;
mod slow;
mod soak;
mod socket;
mod stalled;
mod tasks;
pub mod world;
