//! Sensitivities, compared with all pairs of measurements of small instances.

use dpnoise_prio::{Sensitive, Sensitivity};
use prio::field::{Field64, Field128, FieldElement};
use prio::flp::Type;
use prio::flp::gadgets::{Mul, ParallelSum};
use prio::flp::types::{Count, Histogram, L1BoundSum, MultihotCountVec, Sum, SumVec};

type Gadget<F> = ParallelSum<F, Mul>;

/// The vectors of a length with elements up to a largest one.
fn vectors(length: usize, largest: u64) -> Vec<Vec<u64>> {
    (0..length).fold(vec![vec![]], |shorter, _| {
        let longer = |vector: &Vec<u64>| (0..=largest).map(|x| [vector.as_slice(), &[x]].concat()).collect::<Vec<_>>();
        shorter.iter().flat_map(longer).collect()
    })
}

/// The contributions of the candidates that the type takes to the aggregate.
fn contributions<T: Type<Field = F>, F: FieldElement>(
    typ: &T,
    candidates: impl IntoIterator<Item = T::Measurement>,
    number: fn(F) -> i64,
) -> Vec<Vec<i64>> {
    let encoded = candidates.into_iter().filter_map(|measurement| typ.encode_measurement(&measurement).ok());
    encoded.map(|input| typ.truncate(input).unwrap().into_iter().map(number).collect()).collect()
}

/// The largest L1 norm of the differences, and the largest square of their L2 norm.
fn norms(contributions: &[Vec<i64>]) -> (u64, u64) {
    let mut largest = (0, 0);
    for a in contributions {
        for b in contributions {
            let differences = || a.iter().zip(b).map(|(a, b)| a.abs_diff(*b));
            largest.0 = largest.0.max(differences().sum());
            largest.1 = largest.1.max(differences().map(|difference| difference.pow(2)).sum());
        }
    }
    largest
}

/// Whether the double is the smallest one whose square is at least this.
fn is_root(root: f64, squared: u64) -> bool {
    // Times 2^53 a double is an integer from 1/2 on, and the roots here are less than 2^10.
    let reaches = |root: f64| ((root * (1u64 << 53) as f64) as u128).pow(2) >= u128::from(squared) << 106;
    reaches(root) && !reaches(root.next_down())
}

fn check<T: Sensitive>(typ: &T, contributions: &[Vec<i64>], pairs: &mut usize) {
    let Sensitivity { l1, l2 } = typ.sensitivity().unwrap();
    let (largest, squared) = norms(contributions);
    assert_eq!(l1, largest, "{typ:?}");
    assert!(is_root(l2, squared), "{typ:?}: {l2} for the root of {squared}");
    *pairs += contributions.len().pow(2);
}

macro_rules! all_pairs {
    ($field:ident, $integer:ident) => {{
        let number = |element: $field| i64::try_from($integer::from(element)).unwrap();
        let numbers = |length| {
            vectors(length, 9).into_iter().map(|vector| vector.into_iter().map($integer::from).collect::<Vec<_>>())
        };
        let mut pairs = 0;
        let count = Count::<$field>::new();
        check(&count, &contributions(&count, [false, true], number), &mut pairs);
        for largest in 1..=8 {
            let sum = Sum::<$field>::new(largest).unwrap();
            check(&sum, &contributions(&sum, 0..=9, number), &mut pairs);
        }
        for length in 2..=6 {
            let histogram = Histogram::<$field, Gadget<$field>>::new(length, 2).unwrap();
            check(&histogram, &contributions(&histogram, 0..length, number), &mut pairs);
        }
        for (length, largest) in (1..=3).flat_map(|length| (1..=5).map(move |largest| (length, largest))) {
            let sums = SumVec::<$field, Gadget<$field>>::new(largest, length, 2).unwrap();
            check(&sums, &contributions(&sums, numbers(length), number), &mut pairs);
            let bounded = L1BoundSum::<$field, Gadget<$field>>::new(largest, length, 2).unwrap();
            check(&bounded, &contributions(&bounded, numbers(length), number), &mut pairs);
        }
        for (length, weight) in (1..=5).flat_map(|length| (1..=7).map(move |weight| (length, weight))) {
            let counts = MultihotCountVec::<$field, Gadget<$field>>::new(length, weight, 2).unwrap();
            let sets = vectors(length, 1).into_iter().map(|vector| vector.into_iter().map(|x| x == 1).collect());
            check(&counts, &contributions(&counts, sets, number), &mut pairs);
        }
        pairs
    }};
}

#[test]
fn they_are_those_of_all_pairs_of_measurements() {
    let pairs = [all_pairs!(Field64, u64), all_pairs!(Field128, u128)];
    assert_eq!(pairs[0], pairs[1]);
    assert!(pairs[0] > 80_000, "{pairs:?}");
}

#[test]
fn a_pair_that_is_left_out_is_noticed() {
    let sum = Sum::<Field64>::new(3).unwrap();
    let all = contributions(&sum, 0..=9, |element| u64::from(element) as i64);
    assert_eq!((norms(&all), norms(&all[..3])), ((3, 9), (2, 4)));
    let root = 2f64.sqrt();
    assert!(is_root(root, 2) && !is_root(root.next_up(), 2) && !is_root(root.next_down(), 2));
}

/// Nothing changes, and the noise is that for a change of 1.
#[test]
fn a_histogram_of_one_bucket_counts_as_one_that_changes() {
    let histogram = Histogram::<Field64, Gadget<Field64>>::new(1, 1).unwrap();
    assert_eq!(histogram.sensitivity().unwrap(), Sensitivity { l1: 1, l2: 1.0 });
}

#[test]
fn large_ones_are_exact() {
    let sum = |largest| Sum::<Field128>::new(largest).unwrap().sensitivity();
    let most = u64::MAX;
    assert_eq!(sum(most.into()).unwrap().l1, most);
    assert_eq!(sum((1 << 40) - 1).unwrap().l2, (1u64 << 40) as f64 - 1.0);
    let long = SumVec::<Field128, Gadget<Field128>>::new((1 << 20) - 1, 3, 1).unwrap().sensitivity().unwrap();
    assert_eq!((long.l1, long.l2), (3 * ((1 << 20) - 1), 1_816_185.175_546_535_5));
    let counts = MultihotCountVec::<Field64, Gadget<Field64>>::new(1000, 77, 10).unwrap();
    assert_eq!(counts.sensitivity().unwrap().l1, 154);
}

#[test]
fn those_out_of_range_are_refused() {
    let too_large = Sum::<Field128>::new(1 << 64).unwrap().sensitivity().unwrap_err();
    assert_eq!(
        too_large.to_string(),
        "differential privacy error: invalid parameter: the largest measurement must be less than 2**64, \
         got 18446744073709551616"
    );
    let too_many = L1BoundSum::<Field128, Gadget<Field128>>::new(1 << 63, 2, 1).unwrap().sensitivity().unwrap_err();
    assert_eq!(
        too_many.to_string(),
        "differential privacy error: invalid parameter: sensitivity must be less than 2**64, \
         got 2 * 9223372036854775808 in the L1 norm"
    );
}
