//! Reports that are the number of a group and a row of bits, counted group by group.
//!
//! The number has two bytes, little-endian. A group's counters are the number of its reports, and then, for each bit, of
//! those in which it is set.

use dpnoise_kernels::arch::popcount::add_column_counts;
use dpnoise_kernels::memory::zeroed;

use super::Reports;
use crate::error::Error;
use crate::instruction_set::InstructionSet;

/// The bytes of a group's number.
pub(crate) const HEADER_BYTES: usize = 2;

/// The bytes of reports that are sorted by group at once: many for each group, so that counting them is fast.
const BYTES_AT_ONCE: usize = 1 << 26;

/// Groups of reports with `bits` bits each, a multiple of 8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cohorts {
    pub(crate) groups: u32,
    pub(crate) bits: u32,
    pub(crate) malformed: &'static str,
}

impl Reports for Cohorts {
    fn bits(self) -> usize {
        8 * HEADER_BYTES + self.bits as usize
    }

    fn malformed(self) -> &'static str {
        self.malformed
    }

    fn counters(self) -> usize {
        self.groups as usize * self.of_group()
    }

    fn effort(self, _reports: usize) -> usize {
        64 + self.bits().div_ceil(8)
    }

    fn count(self, instructions: InstructionSet, rows: &[u8]) -> Result<(Vec<u64>, u64), Error> {
        let mut counters = zeroed(self.counters())?;
        let rejected = count(instructions, rows, self.bits().div_ceil(8), &mut counters)?;
        Ok((counters, rejected))
    }

    fn are_possible(self, n: u64, counters: &[u64]) -> bool {
        let groups = counters.chunks_exact(self.of_group());
        let bits_fit = groups.clone().all(|group| group[1..].iter().all(|&count| count <= group[0]));
        bits_fit && groups.map(|group| u128::from(group[0])).sum::<u128>() == u128::from(n)
    }
}

impl Cohorts {
    /// The number of counters of a group.
    pub(crate) fn of_group(self) -> usize {
        1 + self.bits as usize
    }
}

/// Writes the reports of the `groups` with these bits.
pub(crate) fn write(groups: &[u64], bits: &[u8], out: &mut [u8]) {
    if groups.is_empty() {
        return;
    }
    let bits_bytes = bits.len() / groups.len();
    let rows = groups.iter().zip(bits.chunks_exact(bits_bytes)).zip(out.chunks_exact_mut(HEADER_BYTES + bits_bytes));
    for ((&group, bits), row) in rows {
        let (header, body) = row.split_at_mut(HEADER_BYTES);
        header.copy_from_slice(&(group as u16).to_le_bytes());
        body.copy_from_slice(bits);
    }
}

/// Adds the reports of all groups to their `counters`, and returns the number of reports that are of no group.
fn count(instructions: InstructionSet, reports: &[u8], width: usize, counters: &mut [u64]) -> Result<u64, Error> {
    let bits_bytes = width - HEADER_BYTES;
    let group_counters = 1 + 8 * bits_bytes;
    let groups = counters.len() / group_counters;
    let group_of = |row: &[u8]| usize::from(u16::from_le_bytes([row[0], row[1]]));
    let mut rejected = 0;
    for some in reports.chunks((BYTES_AT_ONCE / width).max(1) * width) {
        // A counting sort: where each group's reports begin, with those of no group at the end.
        let mut ends = zeroed::<u32>(groups + 1)?;
        some.chunks_exact(width).for_each(|row| ends[group_of(row).min(groups)] += 1);
        let most = ends[..groups].iter().max().map_or(0, |&most| most as usize);
        let mut bits = zeroed::<u8>(most * bits_bytes)?;
        let mut total = 0;
        for end in &mut ends {
            (*end, total) = (total, total + *end);
        }
        let mut order = zeroed(total as usize)?;
        for (index, row) in (0..).zip(some.chunks_exact(width)) {
            let end = &mut ends[group_of(row).min(groups)];
            order[*end as usize] = index;
            *end += 1;
        }
        let mut start = 0;
        for (&end, counters) in ends.iter().zip(counters.chunks_exact_mut(group_counters)) {
            let own = &order[start..end as usize];
            let bits = &mut bits[..own.len() * bits_bytes];
            for (bits, &index) in bits.chunks_exact_mut(bits_bytes).zip(own) {
                bits.copy_from_slice(&some[index as usize * width..][HEADER_BYTES..width]);
            }
            counters[0] += own.len() as u64;
            add_column_counts(instructions, bits, bits_bytes, &mut counters[1..])?;
            start = end as usize;
        }
        rejected += order.len() as u64 - start as u64;
    }
    Ok(rejected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_counted_apart() {
        let (groups, bits_bytes) = (5, 9);
        let width = HEADER_BYTES + bits_bytes;
        let mut reports: Vec<u8> = (0..999 * width).map(|i| (i * i / 7) as u8).collect();
        for (i, row) in reports.chunks_exact_mut(width).enumerate() {
            row[..2].copy_from_slice(&(i as u16 * 7 % 6).to_le_bytes()); // 5 is no group
        }
        let cohorts = Cohorts { groups: groups as u32, bits: 8 * bits_bytes as u32, malformed: "group out of range" };
        let (mut counters, rejected) = cohorts.count(crate::instruction_set::current().unwrap(), &reports).unwrap();
        let mut expected = vec![0; counters.len()];
        let mut others = 0;
        for row in reports.chunks_exact(width) {
            if row[0] == 5 {
                others += 1;
                continue;
            }
            let own = &mut expected[row[0] as usize * (1 + 8 * bits_bytes)..][..=8 * bits_bytes];
            own[0] += 1;
            for bit in 0..8 * bits_bytes {
                own[1 + bit] += u64::from(row[2 + bit / 8] >> (bit % 8) & 1);
            }
        }
        assert_eq!((rejected, &counters), (others, &expected));
        assert!(cohorts.are_possible(999 - others, &counters));
        assert!(!cohorts.are_possible(999, &counters));
        counters[1] = counters[0] + 1;
        assert!(!cohorts.are_possible(999 - others, &counters));
    }
}
