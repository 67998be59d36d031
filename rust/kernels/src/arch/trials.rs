//! The histogram proposal: 64 independent trials from one block of random words.
//!
//! Which value a trial proposes, and whether it is accepted, is a mathematical function of its words. This kernel
//! computes it in floating point where that is certain, and marks the rest for an exact decision, so that every
//! instruction set gives the same result. See `samplers/discrete_laplace.md` for the algorithm and the proofs.

#![allow(unsafe_code, reason = "kernels over vendor intrinsics")]

use core::hint::black_box;

use super::exp2::exp2_minus;
use super::instruction_set::{InstructionSet, dispatch};
use super::lanes::{Lanes32, Lanes64, Portable, Vectors, Widen};

/// The trials in a block.
pub const TRIALS: usize = 64;

/// The trials in a small block.
pub const FEW_TRIALS: usize = 16;

/// The bins of a histogram; the last one is the infinite tail.
pub const BINS: usize = 64;

/// The bin of the tail.
pub const TAIL: usize = BINS - 1;

/// A column of the alias table covers 2^26 of the 2^32 bin words.
pub const COLUMN_BITS: u32 = 26;

/// How bins are laid out: 32 bins of 2^shift values, then 16 of 4 times and 15 of 8 times as many, then the tail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The binary logarithm of the first bin's width.
    pub shift: u32,
}

/// How the signs share the bins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sides {
    /// There are no negative values: m = 1.
    One,
    /// Zero has a bin of its own, so the layout has no shift, and counts once (m = 1); every other bin counts twice (m = 2),
    /// for both signs.
    Folded,
    /// m = 1 everywhere, and the trials that propose a negative zero are rejected.
    Two,
}

/// The tables of a trial, all of them public.
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
    /// How the signs share the bins.
    pub sides: Sides,
    /// Whether f(x) = 2^(-rate x^2) rather than 2^(-rate x).
    pub square: bool,
    /// The rate, up to the rounding of a double.
    pub rate: f64,
    /// Twice the relative error that the fast comparison allows for.
    pub window: f64,
}

/// The outcomes of a block's trials. Bit i of a mask is that of trial i; the masks are disjoint.
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

impl Layout {
    /// The bytes of an offset word.
    #[must_use]
    pub fn offset_bytes(self) -> usize {
        if self.shift < 30 { 4 } else { 8 }
    }

    /// The bin, offset and acceptance words of a block.
    #[inline(always)]
    fn split(self, words: &[u8]) -> (&[u8], &[u8], &[u8]) {
        // Not by a division, which takes as long as two trials.
        let trials = if words.len() < self.bytes(TRIALS) { FEW_TRIALS } else { TRIALS };
        let (bins, rest) = words.split_at(4 * trials);
        let (offsets, accepts) = rest.split_at(self.offset_bytes() * trials);
        (bins, offsets, accepts)
    }

    /// The bin, offset and acceptance words of trial `i` of a block.
    #[must_use]
    pub fn words_of(self, words: &[u8], i: usize) -> (u32, u64, u64) {
        let size = self.offset_bytes();
        let (bins, offsets, accepts) = self.split(words);
        let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
        let at = |words: &[u8], size: usize| word(&words[size * i..size * (i + 1)]);
        (at(bins, 4) as u32, at(offsets, size), at(accepts, 8))
    }

    /// The bytes of `trials` trials: all bin words (32 bits), then all offset words, then all acceptance words (64
    /// bits: the lowest bit is the sign, the others lead the uniform number), little-endian.
    #[must_use]
    pub fn bytes(self, trials: usize) -> usize {
        trials * (4 + self.offset_bytes() + 8)
    }

    /// Where bin `bin` begins, in units of the first bin's width, and e, where its own width is 2^e units; for public bins.
    #[must_use]
    pub fn bin_start(bin: u32) -> (u64, u32) {
        match bin {
            0..32 => (bin.into(), 0),
            32..48 => (32 + 4 * u64::from(bin - 32), 2),
            _ => (96 + 8 * u64::from(bin - 48), 3),
        }
    }
}

/// Runs a block of [`TRIALS`] or [`FEW_TRIALS`] trials on its words, [`Layout::bytes`] of them, and moves the values that
/// are certainly accepted to the front of `packed` as [`compact`] does.
///
/// # Panics
/// When there are words for another number of trials, or no room for all values.
pub fn run(instructions: InstructionSet, tables: &Tables, words: &[u8], trials: &mut Trials, packed: &mut [i64]) {
    assert!([TRIALS, FEW_TRIALS].map(|count| tables.layout.bytes(count)).contains(&words.len()));
    dispatch!(instructions, run_lanes(tables: &Tables, words: &[u8], trials: &mut Trials, packed: &mut [i64]));
}

/// Moves the accepted values to the front of `packed`, in order; it has room for all [`TRIALS`]. Every value is written,
/// whether accepted or not; the addresses depend on the mask alone (Theorem 1).
pub fn compact(instructions: InstructionSet, trials: &Trials, packed: &mut [i64]) {
    dispatch!(instructions, compact_lanes(trials: &Trials, packed: &mut [i64]));
}

/// The proposal of a trial with these words, for an exact decision.
#[must_use]
pub fn proposal(tables: &Tables, bin: u32, offset: u64, accept: u64) -> Proposal {
    type V = <Portable as Vectors>::U64;
    let mut lanes = [[0; V::N]; 4];
    // SAFETY: plain code runs on every CPU.
    unsafe {
        let chosen = choose(tables, black_box(<Portable as Vectors>::U32::splat(bin)));
        let [[bin, _], [weight, _]] = [chosen.bin.widen(), chosen.weight.widen()];
        let [geometry, _] = chosen.geometry.widen();
        let magnitude = geometry.magnitude(tables.layout, V::splat(offset));
        let amplitude = V::splat(tables.amplitude).shl_each(geometry.copies(tables.sides == Sides::Folded, magnitude));
        for (lanes, part) in lanes.iter_mut().zip([bin, magnitude, weight, amplitude]) {
            part.store(lanes);
        }
    }
    // All lanes are made to seem different and wanted, so that they are computed as in the kernel. For a single lane
    // the optimiser would make a search through the tables that branches.
    let [bin, magnitude, weight, amplitude] = black_box(lanes).map(|lanes| lanes[0].cast_unsigned());
    Proposal {
        bin: bin as usize,
        magnitude,
        negative: (accept & 1 == 1) & (tables.sides != Sides::One),
        uniform: accept >> 1,
        weight: weight as u32,
        amplitude,
    }
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
    /// Whether a proposal is the second zero, which must not count.
    #[must_use]
    pub fn is_negative_zero(&self, proposal: &Proposal) -> bool {
        (self.sides != Sides::Folded) & proposal.negative & (proposal.magnitude == 0)
    }
}

/// The bins of some trials.
struct Chosen<V> {
    bin: V,
    weight: V,
    geometry: Geometry<V>,
}

/// Bins that begin at `start` times their widths, 2^(shift + e).
struct Geometry<V> {
    start: V,
    e: V,
}

/// # Safety
/// As for the methods of [`Lanes32`].
#[inline(always)]
unsafe fn choose<V: Widen>(tables: &Tables, bin_word: V) -> Chosen<V> {
    // SAFETY: passed on from the caller.
    unsafe {
        let column = bin_word.shr(COLUMN_BITS);
        let fraction = bin_word.and(V::splat((1 << COLUMN_BITS) - 1));
        let entry = column.look_up(&tables.alias);
        let bin = column.select(entry.and(V::splat(63)), fraction.less_than(entry.shr(6)));
        Chosen { bin, weight: bin.look_up(&tables.weights), geometry: Geometry::of(bin) }
    }
}

impl<V: Widen> Geometry<V> {
    /// # Safety
    /// As for the methods of [`Lanes32`].
    #[inline(always)]
    unsafe fn of(bin: V) -> Self {
        // SAFETY: passed on from the caller.
        unsafe {
            // See `Layout::bin_start`: bin 32 begins at 8 times its width, and bin 48 at 12 times.
            let quarter = bin.shr(4);
            let skipped = quarter.look_up_4(&[0, 0, 8i32 - 32, 12i32 - 48].map(i32::cast_unsigned));
            Self { start: bin.add(skipped), e: quarter.look_up_4(&[0, 0, 2, 3]) }
        }
    }

    /// # Safety
    /// As for the methods of [`Lanes32`].
    #[inline(always)]
    unsafe fn widen(self) -> [Geometry<V::Wide>; 2] {
        // SAFETY: passed on from the caller.
        let ([s0, s1], [e0, e1]) = unsafe { (self.start.widen(), self.e.widen()) };
        [Geometry { start: s0, e: e0 }, Geometry { start: s1, e: e1 }]
    }
}

impl<V: Lanes64> Geometry<V> {
    /// The proposed magnitudes.
    ///
    /// # Safety
    /// As for the methods of [`Lanes64`].
    #[inline(always)]
    unsafe fn magnitude(&self, layout: Layout, offset: V) -> V {
        // SAFETY: passed on from the caller.
        unsafe {
            let e = self.e.add(V::splat(layout.shift.into()));
            self.start.shl_each(e).add(offset.and(V::splat(1).shl_each(e).sub(V::splat(1))))
        }
    }

    /// The binary logarithms of m 2^e.
    ///
    /// # Safety
    /// As for the methods of [`Lanes64`].
    #[inline(always)]
    unsafe fn copies(&self, folded: bool, magnitude: V) -> V {
        if !folded {
            return self.e;
        }
        // SAFETY: passed on from the caller.
        unsafe { self.e.select(self.e.add(V::splat(1)), magnitude.less_than(V::splat(1))) }
    }
}

/// # Safety
/// As for the methods of [`Lanes64`].
#[inline(always)]
unsafe fn run_lanes<S: Vectors>(tables: &Tables, words: &[u8], trials: &mut Trials, packed: &mut [i64]) {
    if cfg!(target_family = "wasm") {
        // One version, since code is downloaded.
        // SAFETY: passed on from the caller.
        return unsafe { run_pairs::<S, 1, 2>(tables.layout, tables.square, tables, words, trials, packed) };
    }
    // A version for each shape and kind of layout: branches between the operations cost up to a seventh of the time.
    let Layout { shift } = tables.layout;
    let (short, long) = (Layout { shift: shift.min(29) }, Layout { shift: shift.clamp(30, 63) });
    // SAFETY: passed on from the caller.
    unsafe {
        match (tables.layout.offset_bytes(), tables.square) {
            (4, false) => run_layout::<S>(short, false, tables, words, trials, packed),
            (4, true) => run_layout::<S>(short, true, tables, words, trials, packed),
            (_, false) => run_layout::<S>(long, false, tables, words, trials, packed),
            (_, true) => run_layout::<S>(long, true, tables, words, trials, packed),
        }
    }
}

/// # Safety
/// As for the methods of [`Lanes64`].
#[inline(always)]
unsafe fn run_layout<S: Vectors>(
    layout: Layout,
    square: bool,
    tables: &Tables,
    words: &[u8],
    trials: &mut Trials,
    packed: &mut [i64],
) {
    // SAFETY: passed on from the caller.
    unsafe {
        if S::SEVERAL_REGISTERS || words.len() < layout.bytes(TRIALS) {
            run_pairs::<S, 1, 2>(layout, square, tables, words, trials, packed);
        } else {
            run_pairs::<S, 2, 4>(layout, square, tables, words, trials, packed);
        }
    }
}

/// Runs the trials of so many pairs of vectors, which are `VECTORS` in all, side by side. Two pairs take up to an eighth less
/// time than one by one where a vector is a register; a small block has only one pair of the widest vectors.
///
/// # Safety
/// As for the methods of [`Lanes64`].
#[inline(always)]
unsafe fn run_pairs<S: Vectors, const PAIRS: usize, const VECTORS: usize>(
    layout: Layout,
    square: bool,
    tables: &Tables,
    words: &[u8],
    trials: &mut Trials,
    packed: &mut [i64],
) {
    const { assert!(VECTORS == 2 * PAIRS) };
    let folded = layout.shift == 0 && tables.sides == Sides::Folded;
    let (bins, offsets, accepts) = layout.split(words);
    let packed = &mut packed[..bins.len() / 4];
    let (mut accepted, mut undecided, mut tails, mut count) = (0, 0, 0, 0);
    let mut start = 0;
    while start < bins.len() / 4 {
        // SAFETY: passed on from the caller; every slice has enough words, since `VECTORS` N divides the number of trials.
        unsafe {
            let none = S::U64::splat(0);
            let (mut magnitude, mut copies, mut accept) = ([none; VECTORS], [none; VECTORS], [none; VECTORS]);
            let mut weight = [S::U64::splat_f64(0.0); VECTORS];
            for pair in 0..PAIRS {
                let first = start + 2 * pair * S::U64::N;
                let chosen = choose(tables, S::U32::load_le_bytes(&bins[4 * first..]));
                tails |= S::U32::bitmask(S::U32::splat(TAIL as u32 - 1).less_than(chosen.bin)) << first;
                let (geometry, weights) = (chosen.geometry.widen(), chosen.weight.widen_f64());
                for half in 0..2 {
                    let (i, first) = (2 * pair + half, first + half * S::U64::N);
                    let offset = if layout.offset_bytes() == 4 {
                        S::U64::load_le_bytes_u32(&offsets[4 * first..])
                    } else {
                        S::U64::load_le_bytes(&offsets[8 * first..])
                    };
                    accept[i] = S::U64::load_le_bytes(&accepts[8 * first..]);
                    magnitude[i] = geometry[half].magnitude(layout, offset);
                    copies[i] = geometry[half].copies(folded, magnitude[i]);
                    weight[i] = weights[half];
                }
            }
            let mut judged = [(0, 0); VECTORS];
            for i in 0..VECTORS {
                let uniform = accept[i].shr(1);
                judged[i] = judge::<S::U64>(layout, square, tables, magnitude[i], copies[i], weight[i], uniform);
            }
            for i in 0..VECTORS {
                let first = start + i * S::U64::N;
                let negative = accept[i].and(S::U64::splat(u64::from(tables.sides != Sides::One)));
                let sign = S::U64::splat(0).sub(negative);
                let value = magnitude[i].xor(sign).sub(sign);
                value.store(&mut trials.values[first..]);
                let zero = S::U64::bitmask(magnitude[i].less_than(negative));
                let (below, above) = judged[i];
                let lanes = lanes(S::U64::N);
                let eligible = !(tails >> first | if folded { 0 } else { zero }) & lanes;
                let keep = eligible & below;
                count += value.compress(keep, &mut packed[count..]);
                accepted |= keep << first;
                undecided |= (eligible & !below & !above) << first;
            }
        }
        start += VECTORS * S::U64::N;
    }
    (trials.accepted, trials.undecided, trials.tail) = (accepted, undecided, tails);
}

/// Whether U w < a and U w >= a are certain, where `uniform` holds the 63 leading bits of U.
///
/// # Safety
/// As for the methods of [`Lanes64`].
#[inline(always)]
unsafe fn judge<V: Lanes64>(
    layout: Layout,
    square: bool,
    tables: &Tables,
    magnitude: V,
    copies: V,
    weight: V::F64,
    uniform: V,
) -> (u64, u64) {
    // SAFETY: passed on from the caller.
    unsafe {
        let lhs = V::mul_f64(uniform.convert_f64(), weight);
        let below_2_52 = layout.shift < 52 - 8;
        let x = if below_2_52 { magnitude.convert_f64_below_2_52() } else { magnitude.convert_f64() };
        let t = V::mul_f64(if square { V::mul_f64(x, x) } else { x }, V::splat_f64(tables.rate));
        let rhs = exp2_minus::<V, true>(copies.add(V::splat(63)), t);
        let [lower, upper] = [1.0 - tables.window, 1.0 + tables.window].map(|w| tables.amplitude as f64 * w);
        // U lies between its prefix and the next one: the left side is in [lhs, lhs + weight).
        let below = V::less_than_f64(V::add_f64(lhs, weight), V::mul_f64(rhs, V::splat_f64(lower)));
        let above = V::less_than_f64(V::mul_f64(rhs, V::splat_f64(upper)), lhs);
        (V::bitmask(below), V::bitmask(above))
    }
}

/// # Safety
/// As for the methods of [`Lanes64`].
#[inline(always)]
unsafe fn compact_lanes<S: Vectors>(trials: &Trials, packed: &mut [i64]) {
    let mut count = 0;
    for first in (0..TRIALS).step_by(S::U64::N) {
        let keep = trials.accepted >> first & lanes(S::U64::N);
        // SAFETY: passed on from the caller; there are N words from `first` on, and so from `count` <= `first` on.
        count += unsafe { S::U64::load(&trials.values[first..]).compress(keep, &mut packed[count..]) };
    }
}

/// A bit for each of `count` lanes.
#[inline(always)]
fn lanes(count: usize) -> u64 {
    u64::MAX >> (TRIALS - count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_follow_each_other_without_gap() {
        let mut next = 0;
        for bin in 0..BINS as u32 {
            let (start, e) = Layout::bin_start(bin);
            assert_eq!(start, next, "bin {bin}");
            next = start + (1 << e);
        }
        assert_eq!(Layout::bin_start(TAIL as u32).0, 216);
    }

    /// Some tables with every bin and every column, of which about half of the trials are accepted.
    fn tables(layout: Layout, sides: Sides, square: bool) -> Tables {
        let spread = |i: usize| (i as u32).wrapping_mul(0x9e37_79b9);
        Tables {
            layout,
            alias: std::array::from_fn(|i| spread(i) & !63 | spread(i) >> 26),
            weights: std::array::from_fn(|i| spread(i + 1) | 1 << 31),
            amplitude: 1 << 31,
            sides,
            square,
            rate: 0.01 / f64::from(layout.shift).exp2().powi(1 + i32::from(square)),
            window: 0.1, // wide enough for some to be undecided
        }
    }

    #[test]
    fn all_instruction_sets_make_the_same_trials() {
        let mut state = 1u64;
        let mut byte = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        };
        for layout in [0, 3, 40].map(|shift| Layout { shift }) {
            for (sides, square) in [(Sides::One, false), (Sides::Folded, true), (Sides::Two, false), (Sides::Two, true)]
            {
                if sides == Sides::Folded && layout.shift > 0 {
                    continue;
                }
                let tables = tables(layout, sides, square);
                let mut outcomes = [0; 3];
                for count in [TRIALS, FEW_TRIALS].repeat(8) {
                    let words: Vec<u8> = (0..layout.bytes(count)).map(|_| byte()).collect();
                    let results = |instructions| {
                        let (mut trials, mut packed) = (Trials::default(), [0; TRIALS]);
                        run(instructions, &tables, &words, &mut trials, &mut packed);
                        (trials, packed)
                    };
                    let expected = results(InstructionSet::PORTABLE).0;
                    for instructions in InstructionSet::available() {
                        let (trials, packed) = results(instructions);
                        let masks = |trials: &Trials| [trials.accepted, trials.undecided, trials.tail];
                        assert_eq!(masks(&trials), masks(&expected), "{} {tables:?}", instructions.name());
                        let mut accepted = packed.iter();
                        for i in 0..count {
                            let (bin, offset, accept) = layout.words_of(&words, i);
                            let proposal = proposal(&tables, bin, offset, accept);
                            assert_eq!(trials.tail >> i & 1 == 1, proposal.bin == TAIL);
                            if proposal.bin != TAIL {
                                assert_eq!(trials.values[i], proposal.value(), "{} {tables:?}", instructions.name());
                            }
                            if trials.accepted >> i & 1 == 1 {
                                assert_eq!(accepted.next(), Some(&trials.values[i]), "{}", instructions.name());
                            }
                        }
                        for (outcome, mask) in outcomes.iter_mut().zip(masks(&trials)) {
                            *outcome += mask.count_ones();
                        }
                    }
                }
                assert!(outcomes.iter().all(|&outcome| outcome > 0), "{outcomes:?} {tables:?}");
            }
        }
    }

    #[test]
    fn packing_keeps_order_and_drops_the_rest() {
        let mut trials = Trials { values: std::array::from_fn(|i| i as i64), ..Trials::default() };
        for accepted in [0, 1, u64::MAX, 1 << 63, 0xaaaa_5555_0f0f_1234] {
            trials.accepted = accepted;
            let expected: Vec<i64> = (0..64).filter(|i| accepted >> i & 1 == 1).collect();
            for instructions in InstructionSet::available() {
                let mut packed = [-1; TRIALS];
                compact(instructions, &trials, &mut packed);
                assert_eq!(packed[..expected.len()], expected, "{}", instructions.name());
            }
        }
    }
}
