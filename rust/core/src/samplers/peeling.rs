//! The exponential mechanism, time and again: candidates leave when they are chosen, and weights are kept by block. See
//! `selection.md`.

use core::array;
use core::hint::black_box;

use dpnoise_kernels::arch::candidates::{self as kernel, COLUMNS, FURTHEST, RETIRED, UNIT_BITS};
use dpnoise_kernels::arith::mask;
use rand_core::TryCryptoRng;

use super::candidates::{Candidates, Place, fetch_bits, highest};
use super::uniform::uniform_below;
use super::weighing::{Outcome, Proposal, Share, Weighing, Workspace, attempts};
use crate::error::Error;
use crate::rng::Wiped;

/// The candidates that are left. All that is kept of a block is its best score and the sum of its weights, which are
/// relative to that score.
pub(super) struct Peeling<'a> {
    weighing: &'a Weighing,
    candidates: &'a Candidates<'a>,
    /// The best score of each block that is left, and [`RETIRED`] where there is none, up to a whole row.
    bests: Wiped<f64>,
    /// The sums of the weights.
    sums: Wiped<i64>,
    /// A bit for each candidate, as [`kernel::flip`] packs them: those that were chosen.
    retired: Wiped<u8>,
    /// How far the best score of a block is below the best of all.
    depths: Wiped<i64>,
    /// With what weight a block is proposed.
    lengths: Wiped<i64>,
    /// The blocks of the latest attempts, and one for the choice.
    fetched: Vec<Fetched>,
}

struct Fetched {
    block: u64,
    work: Workspace,
}

impl<'a> Peeling<'a> {
    pub(super) fn new(weighing: &'a Weighing, candidates: &'a Candidates<'a>) -> Result<Self, Error> {
        let (block, count) = (candidates.block(), candidates.bests().len());
        let bests = Wiped::copy_of(candidates.bests())?;
        let mut sums = Wiped::try_new(count)?;
        let mut work = Workspace::new(block);
        for ((scores, sum), best) in candidates.blocks().zip(sums.iter_mut()).zip(&*bests) {
            work.weigh(weighing, candidates, *best, scores);
            *sum = sum_of(candidates, &work);
        }
        let fetched = || Fetched { block: 0, work: Workspace::new(block) };
        Ok(Self {
            weighing,
            candidates,
            bests,
            sums,
            retired: Wiped::try_new(candidates.count() / COLUMNS)?,
            depths: Wiped::try_new(count)?,
            lengths: Wiped::try_new(count)?,
            fetched: (0..=attempts(candidates.count())).map(|_| fetched()).collect(),
        })
    }

    /// Chooses among the candidates that are left.
    pub(super) fn choose<R: TryCryptoRng + ?Sized>(&mut self, rng: &mut R) -> Result<u64, Error> {
        let total = self.weigh_blocks();
        loop {
            let mut outcome = Outcome::default();
            for attempt in 0..self.fetched.len() - 1 {
                let place = Place::of(uniform_below(rng, total)?, self.lengths.as_chunks().0);
                let proposal = self.propose(rng, place.item(), attempt)?;
                outcome.add(proposal.index, self.weighing.accepts(rng, self.candidates, &proposal)?);
            }
            if let Some(index) = outcome.settled() {
                return Ok(index);
            }
        }
    }

    /// Computes the depths and the lengths of the blocks, and returns the sum of the lengths.
    fn weigh_blocks(&mut self) -> u128 {
        let best = highest(self.candidates.instructions(), &self.bests);
        self.weighing.weigh_scores(self.candidates, best, &self.bests, &mut self.depths, &mut self.lengths);
        let mut total = 0u128;
        for (length, &sum) in self.lengths.iter_mut().zip(&*self.sums) {
            let product = u128::from(length.cast_unsigned()).wrapping_mul(sum.cast_unsigned().into());
            let share = product.wrapping_add((1 << UNIT_BITS) - 1) >> UNIT_BITS; // rounded up, at most the sum
            *length = (share as u64).cast_signed();
            total = total.wrapping_add(share);
        }
        total
    }

    /// Draws a candidate of a block, by weight.
    fn propose<R: TryCryptoRng + ?Sized>(
        &mut self,
        rng: &mut R,
        block: u64,
        attempt: usize,
    ) -> Result<Proposal, Error> {
        let Self { weighing, candidates, .. } = *self;
        let (mut best, mut depth, mut share) = (0, 0, Share { length: 0, sum: 0 });
        for index in 0..self.bests.len() {
            let inside = mask(index as u64 == block);
            best |= self.bests[index].to_bits() & inside;
            depth |= self.depths[index] & inside.cast_signed();
            share.length |= self.lengths[index].cast_unsigned() & inside;
            share.sum |= self.sums[index].cast_unsigned() & inside;
        }
        let Fetched { block: place, work } = &mut self.fetched[attempt];
        *place = block;
        candidates.fetch(block, &mut work.scores);
        let mut packed = Wiped::new(candidates.block() / COLUMNS);
        fetch_bits(&self.retired, block, &mut packed);
        for (scores, &bits) in work.scores.chunks_exact_mut(COLUMNS).zip(&*packed) {
            // Out of the optimiser's sight, which makes branches of bits.
            let gone: [u64; COLUMNS] = array::from_fn(|column| u64::from(bits >> column & 1).wrapping_neg());
            for (score, gone) in scores.iter_mut().zip(black_box(gone)) {
                *score = f64::from_bits(score.to_bits() & !gone | RETIRED.to_bits() & gone);
            }
        }
        work.weigh_fetched(weighing, candidates, f64::from_bits(best));
        let sums = kernel::sums(candidates.instructions(), &work.weights);
        let found = Place::of(uniform_below(rng, share.sum.into())?, &[sums]).locate(
            candidates.instructions(),
            &work.weights,
            &work.depths,
        );
        let total = depth.wrapping_add(found.depth);
        let nearer = mask(total < FURTHEST as i64).cast_signed();
        Ok(Proposal {
            index: block.wrapping_mul(candidates.block() as u64).wrapping_add(found.index),
            weighed: found.depth,
            depth: total & nearer | FURTHEST as i64 & !nearer,
            share,
            exists: found.exists,
        })
    }

    /// Takes the latest choice out.
    pub(super) fn retire(&mut self, index: u64) {
        let Self { weighing, candidates, .. } = *self;
        let size = candidates.block() as u64;
        let Some((chosen, attempts)) = self.fetched.split_last_mut() else { return };
        // Among the blocks that were fetched for the attempts is that of the choice.
        for fetched in attempts {
            let inside = mask(index.wrapping_sub(fetched.block.wrapping_mul(size)) < size);
            kernel::keep_if(candidates.instructions(), &inside, &fetched.work.scores, &mut chosen.work.scores);
            chosen.block = fetched.block & inside | chosen.block & !inside;
        }
        let Fetched { block, work } = chosen;
        let place = index.wrapping_sub(block.wrapping_mul(size));
        kernel::retire(candidates.instructions(), &place, &mut work.scores);
        let best = highest(candidates.instructions(), &work.scores);
        work.weigh_fetched(weighing, candidates, best);
        let sum = sum_of(candidates, work);
        let mut packed = Wiped::<u8>::new(candidates.block() / COLUMNS);
        for (row, bits) in packed.iter_mut().enumerate() {
            *bits = (mask(place >> 3 == row as u64) & 1 << (place & 7)) as u8;
        }
        for (index, retired) in self.retired.chunks_exact_mut(packed.len()).enumerate() {
            let inside = mask(index as u64 == *block);
            self.bests[index] = f64::from_bits(best.to_bits() & inside | self.bests[index].to_bits() & !inside);
            self.sums[index] = sum & inside.cast_signed() | self.sums[index] & !inside.cast_signed();
            for (retired, &bits) in retired.iter_mut().zip(&*packed) {
                *retired |= bits & inside as u8;
            }
        }
    }
}

/// The sum of all weights of a block, at most 2^62.
fn sum_of(candidates: &Candidates<'_>, work: &Workspace) -> i64 {
    kernel::sums(candidates.instructions(), &work.weights).into_iter().fold(0, i64::wrapping_add)
}
