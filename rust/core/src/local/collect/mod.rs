//! The collector: it counts reports, which are private already, and stores the counters.
//!
//! | module | what |
//! | --- | --- |
//! | `accumulator` | the counters: add and merge |
//! | `attributes` | those of several attributes, and of either kind |
//! | `message` | a report as a message of its own |
//! | `state` | the bytes of the counters |

mod accumulator;
mod attributes;
mod message;
mod state;

pub use accumulator::Accumulator;
pub use attributes::{AnyAccumulator, AttributesAccumulator};
