//! The collector: it counts reports, which are private already, and stores the counters.
//!
//! | module | what |
//! | --- | --- |
//! | `accumulator` | the counters: add and merge |
//! | `message` | a report as a message of its own |
//! | `state` | the bytes of the counters |

mod accumulator;
mod message;
mod state;

pub use accumulator::Accumulator;
