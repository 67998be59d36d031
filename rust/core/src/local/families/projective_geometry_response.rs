//! Projective geometry response: a point of a projective space, on the hyperplane of the value more often than by
//! chance.
//!
//! The K points of a projective space over a prime field are the reports, and k of them are the values. A report
//! supports a value when it is on the hyperplane of the value. With probability m = keep / 2^planes a report is a
//! uniform one of the c points on the hyperplane of its sender's value, otherwise a uniform one of all points. Source:
//! Feldman, Nelson, Nguyen, Talwar 2022, "Private frequency estimation via projective geometry". The numbering of
//! points, and a draw that needs no inverse and no branch, are in `reports/projective.rs`.
//!
//! # Privacy
//!
//! Every point is drawn with probability (1 - m) / K when it is not on the hyperplane of the value, and with m / c more
//! when it is. So the largest likelihood ratio is 1 + m K / ((1 - m) c), an exact fraction.
//!
//! # Estimation
//!
//! A report supports its sender's value with probability P = m + (1 - m) c / K. Two hyperplanes share (q^(t-2) - 1) /
//! (q - 1) points, so it supports another value with probability Q = m (q^(t-2) - 1) / ((q - 1) c) + (1 - m) c / K,
//! which is (c - m q^(t-2) / c) / K.
//!
//! # Choice of the prime
//!
//! For many points the variance of a rare value's count is n (e^epsilon - 1 + q)^2 / ((q - 1) (e^epsilon - 1)^2), which
//! is smallest for q = e^epsilon + 1, where it is that of subset selection: 4 e^epsilon n / (e^epsilon - 1)^2.
//!
//! A report is the number of a point in little-endian bytes.

use super::family::Family;
use crate::arguments::{Arguments, Parameter};
use crate::calibration::Blanket;
use crate::error::Error;
use crate::local::chance::likelihood::check_epsilon;
use crate::local::chance::mixture::{Mixer, Mixture, index_bytes, uniform};
use crate::local::estimate::{Estimate, Law, Support};
use crate::local::reports::hashing::is_prime;
use crate::local::reports::numbers::{Numbers, fill_numbers};
use crate::local::reports::projective::{self, Hyperplanes, MAX_POINTS, Space};
use crate::local::spec::{Field, Given, check_k};
use crate::local::values::{check_below, rows};
use crate::rng::AnyRng;

/// What a space with twice as many points may save in variance: 2^0.01. The collector has a counter for each.
const PRICE_OF_POINTS: f64 = 0.01;

/// How many times the points of the default a requested prime may lead to.
const MOST_TIMES_DEFAULT: u64 = 4;

/// The largest prime with at most 2^27 points of three digits.
const LARGEST_OF_THREE_DIGITS: u32 = 11_579;

/// The projective geometry response over k values.
///
/// A report is epsilon-locally differentially private (Feldman, Nelson, Nguyen, Talwar 2022, "Private frequency
/// estimation via projective geometry").
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProjectiveGeometryResponse {
    k: u32,
    epsilon: f64,
    space: Space,
    /// A report is drawn on the hyperplane with the probability that a mixture keeps a value.
    mixture: Mixture,
}

impl ProjectiveGeometryResponse {
    /// The response over `k` values, with the smallest space over `prime` elements that has k points. The default is
    /// the prime with the smallest variance, but for a small price of additional points.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless 2 <= k <= 2^24, 2^-20 <= epsilon <= 32, `prime` is a prime for which the space has
    /// at most 2^27 points and four times those of the default, and a denominator of 2^62 achieves 0.999 of epsilon.
    pub fn new(k: u64, epsilon: f64, prime: Option<u64>) -> Result<Self, Error> {
        let k = check_k(k)?;
        check_epsilon(epsilon)?;
        let space = match prime {
            None => best_space(k, epsilon),
            Some(prime) => space_over(prime, k, epsilon)?,
        };
        let (points, width) = (space.points() as u32, space.points_of_hyperplane() as u32);
        let mixture = Mixture::of_windows(points, width, epsilon).map_err(|_| {
            let given = format!("k = {k}, epsilon = {epsilon:?}, prime = {}", space.prime());
            let allowed = "such that probabilities over a denominator of at most 2**62 achieve 0.999 of epsilon, as with a \
                           smaller prime or none";
            Error::parameter("k, epsilon and prime", given, allowed)
        })?;
        Ok(Self { k, epsilon, space, mixture })
    }

    /// The projective space.
    #[must_use]
    pub fn space(self) -> Space {
        self.space
    }

    /// The mixture whose probability of keeping a value is that of drawing from the hyperplane.
    #[must_use]
    pub fn mixture(self) -> Mixture {
        self.mixture
    }

    /// The probabilities that a report supports its sender's value and any other, rounded down to 62 binary digits.
    fn support(self) -> Support {
        let Self { space, mixture, .. } = self;
        let (q, t) = (u128::from(space.prime()), space.dimension());
        let c = u128::from(space.points_of_hyperplane());
        let (keep, one) = (u128::from(mixture.keep()), 1u128 << mixture.planes());
        let all = u128::from(space.points()) * c * one;
        Support {
            p: digits(c * (c * one + keep * q.pow(t - 1)), all),
            q: digits(c * c * one - keep * q.pow(t - 2), all),
            one: 1 << 62,
        }
    }
}

/// floor(2^62 numerator / denominator), for a fraction below 1 with a denominator below 2^96.
fn digits(numerator: u128, denominator: u128) -> u64 {
    let upper = numerator << 31;
    let lower = (upper % denominator) << 31;
    (((upper / denominator) << 31) + lower / denominator) as u64
}

/// The space for a requested prime. Points have counters, so a specification of a few bytes could ask for much memory.
fn space_over(prime: u64, k: u32, epsilon: f64) -> Result<Space, Error> {
    let in_range = u32::try_from(prime).ok().filter(|&prime| u64::from(prime) < MAX_POINTS && is_prime(prime));
    let prime = in_range.ok_or_else(|| Error::parameter("prime", prime, "a prime number below 2**27"))?;
    let space = Space::with_points(prime, k);
    let is_within = |most: u64| space.filter(|space| space.points() <= most);
    // The default, which takes longer to find, has at least k points.
    if let Some(space) = is_within(MOST_TIMES_DEFAULT * u64::from(k)) {
        return Ok(space);
    }
    let default = best_space(k, epsilon);
    let most = MAX_POINTS.min(MOST_TIMES_DEFAULT * default.points());
    is_within(most).ok_or_else(|| {
        let allowed = format!(
            "a prime number for which the smallest space of k = {k} points has at most {most} of them; the default is {}",
            default.prime()
        );
        Error::parameter("prime", prime, allowed)
    })
}

/// The space with the smallest variance, times (K / k)^0.01.
fn best_space(k: u32, epsilon: f64) -> Space {
    // In the plane of two digits, which all of these and larger primes lead to, the variance grows with the prime.
    let last = (k - 1..2 * k).find(|&q| is_prime(q)).expect("there is a prime below twice every number");
    let primes = (2..last.min(LARGEST_OF_THREE_DIGITS + 1)).filter(|&q| is_prime(q));
    let spaces = primes.chain([last]).filter_map(|prime| Space::with_points(prime, k));
    let price =
        |space: &Space| variance(*space, epsilon) * (space.points() as f64 / f64::from(k)).powf(PRICE_OF_POINTS);
    spaces.min_by(|a, b| price(a).total_cmp(&price(b))).expect("the plane of the last prime has less than 2^27 points")
}

/// The variance per person of the estimated count of a value that nobody has.
fn variance(space: Space, epsilon: f64) -> f64 {
    let (points, c) = (space.points() as f64, space.points_of_hyperplane() as f64);
    let shared = space.offset(space.dimension() - 2) as f64;
    let x = epsilon.exp_m1() * c;
    let (keep, other) = (x / (points + x), points / (points + x));
    let q = keep * shared / c + other * c / points;
    let difference = keep * (1.0 - shared / c);
    q * (1.0 - q) / (difference * difference)
}

impl Family for ProjectiveGeometryResponse {
    const NAME: &'static str = "projective_geometry_response";
    const ABBREVIATION: &'static str = "pgr";
    const COST: Option<&'static str> = Some("n + K + k q t");
    const PARAMETERS: &'static [Parameter] = &[
        Parameter::K,
        Parameter::EPSILON,
        Parameter::integer("prime", "a prime number below 2**27", 3, "the number of elements of the field")
            .or_most_accurate(),
    ];
    type Reports = Numbers;
    type Values<'a> = &'a [i64];

    fn k(&self) -> u32 {
        self.k
    }

    fn requested_epsilon(&self) -> f64 {
        self.epsilon
    }

    fn fields(&self) -> Vec<Field> {
        let mut fields = self.mixture.fields();
        fields.extend([("dimension", self.space.dimension().into()), ("prime", self.space.prime().into())]);
        fields
    }

    fn from_arguments(arguments: &Arguments<'_>) -> Result<Self, Error> {
        Self::new(arguments.integer("k")?, arguments.real("epsilon")?, arguments.optional("prime")?)
    }

    fn from_fields(k: u64, epsilon: f64, given: &Given) -> Result<Self, Error> {
        Self::new(k, epsilon, Some(given.integer("prime")?))
    }

    fn epsilon(&self) -> f64 {
        self.mixture.window_ratio(self.space.points_of_hyperplane() as u32).epsilon()
    }

    fn blanket(&self) -> Option<Blanket> {
        let on = self.space.points_of_hyperplane();
        let ratio = self.mixture.window_ratio(on as u32);
        // Two hyperplanes meet in a space of the next lower dimension.
        let (points, both) = (u128::from(self.space.points()), (on - 1) / u64::from(self.space.prime()));
        Some(Blanket::of_supports(ratio.into(), (on.into(), points), (both.into(), points)))
    }

    fn check(&self, values: &[i64]) -> Result<(), Error> {
        check_below(self.k, values)
    }

    fn random_bits(&self) -> usize {
        8 * (self.mixture.random_bytes() + index_bytes(self.space.points_of_hyperplane() as u32))
    }

    /// For a chunk of 1024 people, `rng` gives the numbers of points on the hyperplanes, as uniform numbers below c, and
    /// then what the mixture takes.
    fn randomise(&self, rng: &mut AnyRng<'_>, values: &[i64], first: usize, out: &mut [u8]) -> Result<(), Error> {
        let width = self.report_bytes();
        let values = &values[rows(first, out, width)];
        let mut hyperplanes = Hyperplanes::of(self.space, values.len());
        let mut mixer = Mixer::new(self.mixture, values.len());
        fill_numbers(values, width, out, |values, reports| {
            uniform(rng, self.space.points_of_hyperplane() as u32, reports)?;
            hyperplanes.draw(values, reports);
            mixer.mix(rng, reports)
        })
    }

    fn reports(&self) -> Numbers {
        Numbers::below(self.space.points())
    }

    fn law(&self) -> Option<Law> {
        Some(Law::Supports(self.support()))
    }

    fn estimate(&self, n: u64, counters: &[u64]) -> Result<Option<Estimate>, Error> {
        let supports = projective::supports(self.space, self.k, counters)?;
        self.law().map(|law| law.estimate(n, &supports)).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::local::chance::likelihood::{MAX_EPSILON, MIN_EPSILON};
    use crate::local::families::{COUNTER_LIMIT, Protocol};

    fn prime_and_dimension(k: u64, epsilon: f64) -> (u32, u32) {
        let space = ProjectiveGeometryResponse::new(k, epsilon, None).unwrap().space();
        (space.prime(), space.dimension())
    }

    #[test]
    fn the_default_prime_is_near_e_to_the_epsilon_plus_1() {
        for (epsilon, expected) in [(MIN_EPSILON, (2, 15)), (1.0, (3, 10)), (3.0, (19, 5)), (5.0, (149, 3))] {
            assert_eq!(prime_and_dimension(22_000, epsilon), expected, "{epsilon}");
        }
        // A plane with two digits has the smallest variance for few values, and the prime is the smallest with k points.
        for (k, epsilon, expected) in
            [(22_000, MAX_EPSILON, (22_003, 2)), (100, 5.0, (101, 2)), (2, MIN_EPSILON, (2, 2))]
        {
            assert_eq!(prime_and_dimension(k, epsilon), expected, "{k} {epsilon}");
        }
    }

    /// By the law of what is drawn. Its epsilon is up to 0.1 % smaller, which costs more variance the larger it is.
    #[test]
    fn no_prime_is_much_better_than_the_default() {
        let price = |response: ProjectiveGeometryResponse| {
            let points = response.space().points() as f64 / f64::from(response.k);
            response.support().variance(0.0) * points.powf(PRICE_OF_POINTS)
        };
        for k in [2, 10, 100, 1000] {
            for epsilon in [0.01, 0.35, 1.0, 1.04, 2.2, 5.0, 9.0] {
                let chosen = price(ProjectiveGeometryResponse::new(k, epsilon, None).unwrap());
                let others =
                    (2..1200).filter_map(|prime| ProjectiveGeometryResponse::new(k, epsilon, Some(prime)).ok());
                let least = others.map(price).fold(f64::INFINITY, f64::min);
                assert!(chosen <= (1.002 + 0.001 * epsilon) * least, "{k} {epsilon}: {chosen} {least}");
            }
        }
    }

    #[test]
    fn bad_parameters_are_named() {
        let message = |k, epsilon, prime| ProjectiveGeometryResponse::new(k, epsilon, prime).unwrap_err().to_string();
        assert_eq!(message(1, 1.0, None), "k must be an integer from 2 to 16777216, got 1");
        assert_eq!(message(9, 0.0, None), "epsilon must be between 2**-20 and 32, got 0.0");
        for prime in [0, 1, 4, 21_999, (1 << 27) + 29, (1 << 32) + 15, u64::MAX] {
            let expected = format!("prime must be a prime number below 2**27, got {prime}");
            assert_eq!(message(9, 1.0, Some(prime)), expected);
        }
        // The default, 3, has 29,524 points.
        let allowed = (22_003..4 * 29_524).rev().find(|&prime| is_prime(prime)).unwrap();
        let refused = (4 * 29_524..8 * 29_524).find(|&prime| is_prime(prime)).unwrap();
        assert!(ProjectiveGeometryResponse::new(22_000, 1.0, Some(allowed.into())).is_ok());
        for prime in [11_579, refused.into(), 134_217_689] {
            let expected = "prime must be a prime number for which the smallest space of k = 22000 points has at most \
                            118096 of them; the default is 3, got ";
            assert_eq!(message(22_000, 1.0, Some(prime)), format!("{expected}{prime}"));
        }
        assert_eq!(
            message(1 << 24, MIN_EPSILON, Some(16_777_259)),
            "k, epsilon and prime must be such that probabilities over a denominator of at most 2**62 achieve 0.999 of \
             epsilon, as with a smaller prime or none, got k = 16777216, epsilon = 9.5367431640625e-7, prime = \
             16777259"
        );
    }

    #[test]
    fn a_requested_prime_is_in_the_specification() {
        for prime in [None, Some(2), Some(5), Some(22_003)] {
            let response = ProjectiveGeometryResponse::new(22_000, 1.0, prime).unwrap();
            let json = Protocol::from(response).to_json();
            assert!(json.contains(&format!("\"prime\":{},", prime.unwrap_or(3))), "{json}");
            assert_eq!(Protocol::from_json(&json, COUNTER_LIMIT), Ok(response.into()));
            let longer = json.replace("\"dimension\":", "\"dimension\":1");
            assert!(Protocol::from_json(&longer, COUNTER_LIMIT).is_err(), "{longer}");
        }
    }

    /// By the supports of every single report, in 128-bit fractions.
    #[test]
    fn reports_support_values_as_often_as_the_law_says() {
        for (k, epsilon, prime) in [(3, 1.0, 2), (6, 0.5, 5), (15, 1.0, 2), (40, 3.0, 3), (31, 2.0, 5), (57, 2.0, 7)] {
            let response = ProjectiveGeometryResponse::new(k, epsilon, Some(prime)).unwrap();
            let (space, mixture, support) = (response.space(), response.mixture(), response.support());
            let (points, c) = (u128::from(space.points()), u128::from(space.points_of_hyperplane()));
            let one = (points * c) << mixture.planes();
            let any = u128::from((1 << mixture.planes()) - mixture.keep()) * c;
            let mut supporting = vec![vec![]; k as usize]; // for each value, its reports
            for report in 0..points as usize {
                let mut counters = vec![0; points as usize];
                counters[report] = 1;
                let supports = projective::supports(space, k as u32, &counters).unwrap();
                (0..k as usize).filter(|&v| supports[v] == 1).for_each(|v| supporting[v].push(report));
            }
            for (of_sender, of_other) in supporting.iter().flat_map(|v| supporting.iter().map(move |other| (v, other)))
            {
                let shared = of_other.iter().filter(|&report| of_sender.contains(report)).count() as u128;
                let share = any * c + u128::from(mixture.keep()) * points * shared;
                let announced = if of_sender == of_other { support.p } else { support.q };
                assert_eq!(u128::from(announced), (share << 62) / one, "{k} {epsilon} {prime}");
            }
            let ratio = mixture.window_ratio(c as u32);
            assert_eq!((ratio.numerator, ratio.denominator), (any + u128::from(mixture.keep()) * points, any));
            assert!(ratio.is_at_most(response.epsilon()) && !ratio.is_at_most(response.epsilon().next_down()));
            assert!(ratio.achieves(epsilon));
        }
    }
}
