//! Exact probabilities, and the samplers that use them.
//!
//! | module | what |
//! | --- | --- |
//! | `likelihood` | likelihood ratios as fractions, and the fewest binary digits that achieve an epsilon |
//! | `bit_flip` | bits that are flipped |
//! | `threshold` | the bit flip of thresholding with histogram encoding |
//! | `mixture` | values that are kept, or else replaced by a uniform one |
//! | `window` | positions that stay in a window, or else become a uniform output |
//! | `two_rounds` | a permanent round of randomisation, and one for each report |

pub(crate) mod bit_flip;
pub(crate) mod likelihood;
pub(crate) mod mixture;
mod threshold;
pub(crate) mod two_rounds;
pub(crate) mod window;
