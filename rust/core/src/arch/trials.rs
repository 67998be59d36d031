//! The histogram proposal: 64 independent trials from one block of random words.
//!
//! Which value a trial proposes, and whether it is accepted, is a mathematical function of its words. This kernel
//! computes it in floating point where that is certain, and marks the rest for an exact decision, so that every backend
//! gives the same result. See `samplers/discrete_laplace.md` for the algorithm and the proofs.

use core::hint::black_box;

/// The trials in a block.
pub const TRIALS: usize = 64;

/// The bins of a histogram; the last one is the infinite tail.
pub const BINS: usize = 64;

/// The bin of the tail.
pub const TAIL: usize = BINS - 1;

/// A column of the alias table covers 2^26 of the 2^32 bin words.
pub const COLUMN_BITS: u32 = 26;

/// How bins are laid out. A bin covers 2^(shift + e) values, with e = 0, 2 or 3 by its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Every bin is one value; no offset words.
    Single,
    /// 32 bins with e = 0, then 16 with e = 2, then 15 with e = 3, then the tail.
    Graded {
        /// The binary logarithm of the first bin's width.
        shift: u32,
    },
}

/// What a trial needs to know; all of it public.
#[derive(Clone, Debug)]
pub struct Tables {
    /// How bins are laid out.
    pub layout: Layout,
    /// The alias table: the bin word's upper 6 bits choose an entry; when its lower 26 bits are below the entry's upper
    /// 26, the bin is the column itself, else the entry's lower 6 bits.
    pub alias: [u32; BINS],
    /// Bin h is proposed with probability `weights[h]` / 2^32.
    pub weights: [u32; BINS],
    /// C: a value x of bin h is accepted with probability C m 2^e f(x) / `weights[h]`.
    pub amplitude: u64,
    /// Whether 0 has a bin of its own and counts once (m = 1) where every other bin counts twice (m = 2), being shared
    /// by both signs. Otherwise m = 1 everywhere and the trials that propose a negative zero are rejected.
    pub folded: bool,
    /// log2(e)/scale: f(x) = 2^(-rate x), up to the rounding of a double.
    pub rate: f64,
    /// Twice the relative error that the fast comparison allows for.
    pub window: f64,
}

/// The random words of a block.
#[derive(Clone, Debug)]
pub struct Words {
    /// Which bin.
    pub bin: [u32; TRIALS],
    /// Where in the bin.
    pub offset: [u64; TRIALS],
    /// The lowest bit is the sign, the others the 63 leading bits of the uniform number that decides acceptance.
    pub accept: [u64; TRIALS],
}

/// What became of a block's trials. Bit i of a mask speaks of trial i; the masks exclude each other.
#[derive(Clone, Debug)]
pub struct Trials {
    /// The proposed values; meaningless where the tail bin was chosen.
    pub values: [i64; TRIALS],
    /// Certainly accepted.
    pub accepted: u64,
    /// To be decided exactly.
    pub undecided: u64,
    /// The tail bin was chosen.
    pub tail: u64,
}

impl Default for Words {
    fn default() -> Self {
        Self { bin: [0; TRIALS], offset: [0; TRIALS], accept: [0; TRIALS] }
    }
}

impl Default for Trials {
    fn default() -> Self {
        Self { values: [0; TRIALS], accepted: 0, undecided: 0, tail: 0 }
    }
}

/// One trial's proposal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// The bin.
    pub bin: usize,
    /// The proposed magnitude, for a bin that is not the tail.
    pub magnitude: u64,
    /// The sign.
    pub negative: bool,
    /// The 63 leading bits of the uniform number.
    pub uniform: u64,
    /// The bin's weight W.
    pub weight: u32,
    /// C m 2^e.
    pub amplitude: u64,
}

/// Trials are worked on in groups this large, so that a group's intermediate values stay in registers.
const LANES: usize = 16;

/// Runs the block's trials.
pub fn run(tables: &Tables, words: &Words, trials: &mut Trials) {
    (trials.accepted, trials.undecided, trials.tail) = (0, 0, 0);
    for (group, bin_words) in words.bin.as_chunks().0.iter().enumerate() {
        let bins = choose_bins(tables, bin_words);
        let weights = look_up(&tables.weights, &bins);
        for lane in 0..LANES {
            let i = group * LANES + lane;
            let proposal = propose(tables, bins[lane], weights[lane], words.offset[i], words.accept[i]);
            let (accept, undecided, tail) = judge(tables, &proposal);
            trials.values[i] = proposal.value();
            trials.accepted |= u64::from(accept) << i;
            trials.undecided |= u64::from(undecided) << i;
            trials.tail |= u64::from(tail) << i;
        }
    }
}

/// The proposal of trial `i`, for an exact decision.
#[must_use]
pub fn proposal(tables: &Tables, words: &Words, i: usize) -> Proposal {
    let bins = choose_bins(tables, &[words.bin[i]; LANES]);
    let weights = look_up(&tables.weights, &bins);
    propose(tables, bins[0], weights[0], words.offset[i], words.accept[i])
}

impl Proposal {
    /// The magnitude with its sign.
    #[must_use]
    pub fn value(&self) -> i64 {
        let sign = u64::from(self.negative).wrapping_neg();
        ((self.magnitude ^ sign).wrapping_sub(sign)).cast_signed()
    }
}

impl Tables {
    /// Whether a proposal is the second zero that must not count.
    #[must_use]
    pub fn is_negative_zero(&self, proposal: &Proposal) -> bool {
        !self.folded & proposal.negative & (proposal.magnitude == 0)
    }
}

fn choose_bins(tables: &Tables, words: &[u32; LANES]) -> [u32; LANES] {
    let columns = words.map(|word| word >> COLUMN_BITS);
    let entries = look_up(&tables.alias, &columns);
    std::array::from_fn(|lane| {
        let fraction = words[lane] & ((1 << COLUMN_BITS) - 1);
        let own = mask(fraction < entries[lane] >> 6);
        columns[lane] & own | entries[lane] & 63 & !own
    })
}

/// `table[index]` in every lane, by reading the whole table: no address depends on an index.
#[inline(always)]
fn look_up(table: &[u32; BINS], indices: &[u32; LANES]) -> [u32; LANES] {
    let mut found = [0; LANES];
    for (entry, &value) in (0u32..).zip(table) {
        for (found, &index) in found.iter_mut().zip(indices) {
            *found |= value & mask(index == entry);
        }
    }
    found
}

#[inline(always)]
fn mask(condition: bool) -> u32 {
    u32::from(condition).wrapping_neg()
}

/// Where bin `bin` begins, in units of 2^shift, and its e.
pub(crate) fn bin_start(layout: Layout, bin: u32) -> (u64, u32) {
    match layout {
        Layout::Single => (u64::from(bin), 0),
        Layout::Graded { .. } => {
            // Steps of 1 from bin 0, of 4 from bin 32, of 8 from bin 48; without branches, since the bin is secret.
            let (second, third) = (mask(bin >= 32), mask(bin >= 48));
            let units = bin + 3 * (bin.wrapping_sub(32) & second) + 4 * (bin.wrapping_sub(48) & third);
            (u64::from(units), (2 & second) + (1 & third))
        }
    }
}

#[inline(always)]
fn propose(tables: &Tables, bin: u32, weight: u32, offset: u64, accept: u64) -> Proposal {
    let (units, e) = bin_start(tables.layout, bin);
    let magnitude = match tables.layout {
        Layout::Single => units,
        Layout::Graded { shift } => (units << shift) + (offset & ((1 << (shift + e)) - 1)),
    };
    let twice = u32::from(tables.folded & (bin != 0));
    Proposal {
        bin: bin as usize,
        magnitude,
        negative: accept & 1 == 1,
        uniform: accept >> 1,
        weight,
        amplitude: tables.amplitude << (e + twice),
    }
}

/// Whether the trial is certainly accepted, undecided, or in the tail.
#[inline(always)]
fn judge(tables: &Tables, proposal: &Proposal) -> (bool, bool, bool) {
    let weight = f64::from(proposal.weight);
    let lhs = proposal.uniform.cast_signed() as f64 * weight;
    let rhs = proposal.amplitude as f64 * TWO_63 * exp2_neg(proposal.magnitude as f64 * tables.rate);
    let margin = tables.window * rhs;
    // The uniform number lies between its prefix and the next one: the left side is in [lhs, lhs + weight).
    let below = lhs + weight < rhs - margin;
    let above = lhs > rhs + margin;
    let tail = proposal.bin == TAIL;
    let eligible = !tail & !tables.is_negative_zero(proposal);
    (eligible & below, eligible & !below & !above, tail)
}

/// 2^63
const TWO_63: f64 = (1u64 << 63) as f64;

/// 2^-t for t >= 0: with a relative error below 2^-45 up to t = 1000, and some number near 2^-1000 beyond.
#[inline(always)]
pub(crate) fn exp2_neg(t: f64) -> f64 {
    // Adding and subtracting 1.5 * 2^52 rounds to a whole number k, whose bits are then at the low end of the sum.
    const ROUNDER: f64 = 6_755_399_441_055_744.0;
    let t = t.min(1000.0);
    let rounded = t + ROUNDER;
    let r = t - (rounded - ROUNDER); // exact, in [-1/2, 1/2]
    let power = f64::from_bits(1023u64.wrapping_sub(rounded.to_bits()) << 52); // 2^-k
    power * COEFFICIENTS.iter().rev().fold(0.0, |sum, c| sum * r + c)
}

/// (-ln 2)^n / n!: the Taylor polynomial of degree 11 leaves a relative error below 2 (ln 2 / 2)^12 / 12! < 2^-46.1.
const COEFFICIENTS: [f64; 12] = {
    let mut coefficients = [1.0; 12];
    let mut n = 1;
    while n < coefficients.len() {
        coefficients[n] = -coefficients[n - 1] * core::f64::consts::LN_2 / n as f64;
        n += 1;
    }
    coefficients
};

/// Moves the accepted values to the front of `packed`, in order, and returns their number. Every value is written,
/// whether accepted or not; the addresses depend on the mask alone (Theorem 1).
pub fn compact(trials: &Trials, packed: &mut [i64; TRIALS]) -> usize {
    let mut count = 0;
    for (i, &value) in trials.values.iter().enumerate() {
        packed[count.min(TRIALS - 1)] = value;
        count += black_box(trials.accepted >> i & 1) as usize;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arith::exp::Constants;
    use crate::arith::fixed::Fixed;

    #[test]
    fn bins_follow_each_other_without_gap() {
        for (layout, end) in [(Layout::Single, 63), (Layout::Graded { shift: 7 }, 216)] {
            let mut next = 0;
            for bin in 0..BINS as u32 {
                let (start, e) = bin_start(layout, bin);
                assert_eq!(start, next, "bin {bin}");
                next = start + (1 << e);
            }
            assert_eq!(bin_start(layout, TAIL as u32).0, end);
        }
    }

    /// The claimed bound on a grid of arguments, against the certified exponential.
    #[test]
    fn the_fast_exponential_is_within_its_bound() {
        let constants = Constants::first();
        for i in 0..20_000u64 {
            let t = i as f64 * 0.003_217_111 + if i % 7 == 0 { 0.5 } else { 0.0 };
            let (k, v) = constants.exp2_neg(Fixed::from_f64_vartime(t, 4).unwrap());
            // v as a double: its leading 62 bits.
            let exact = v.times_integer(1 << 62).integer() as f64 * 2f64.powi(-62 - k as i32);
            let error = (exp2_neg(t) / exact - 1.0).abs();
            assert!(error < 2f64.powi(-45), "{t}: 2^{}", error.log2());
        }
        assert!(exp2_neg(1e14) < 2f64.powi(-990) && exp2_neg(1e14) > 0.0);
    }

    #[test]
    fn packing_keeps_order_and_drops_the_rest() {
        let mut trials = Trials { values: std::array::from_fn(|i| i as i64), ..Trials::default() };
        for accepted in [0, 1, u64::MAX, 1 << 63, 0xaaaa_5555_0f0f_1234] {
            trials.accepted = accepted;
            let mut packed = [-1; TRIALS];
            let count = compact(&trials, &mut packed);
            let expected: Vec<i64> = (0..64).filter(|i| accepted >> i & 1 == 1).collect();
            assert_eq!(packed[..count], expected);
        }
    }
}
