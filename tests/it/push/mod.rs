//! Push, from the hub to the frames that a client gets: real sessions over a real SQLite file, with the test as the other
//! end of the socket. The promises P1–P7, P9, P11 of the channel and the faults K1, K5 and K10 by their names.

mod attacks;
mod center;
mod elsewhere;
mod endings;
mod hostile;
mod leaks;
pub mod peer;
mod raw;
mod rooms;
mod slow;
mod soak;
mod socket;
mod tasks;
pub mod world;
