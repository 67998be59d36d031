//! Several attributes of each person in one report, each with a protocol: of one attribute, drawn at random, or of all.
//!
//! A specification lists the names of the attributes and the specifications of their protocols, as texts, so that their
//! bytes are kept. For two people with any different values the draw has the same distribution, and given the draw the
//! report is that of one protocol: so the guarantee of [`Scheme::Sampled`] is the weakest of the attributes', for all
//! values of a person together. That of [`Scheme::Split`] is their composition: epsilons add up, and deltas do.
//!
//! The attribute is drawn before values are used and is public, since it is in the report: choosing values and writing
//! reports by it shows nothing else. Only the attribute's protocol uses the value.
//!
//! Sources: Wang, Xiao, Yang et al. 2019, "Collecting and analyzing multidimensional data with local differential
//! privacy", section IV.

use core::fmt;

use dpnoise_kernels::arch::secrecy::{Reason, declassify};
use dpnoise_kernels::arith::power_of_two;
use dpnoise_kernels::memory::{OutOfMemory, collected, room, zeroed};
use rand_core::TryCryptoRng;

use super::about::FIELDS;
use super::families::{LIMIT, Protocol};
use super::json;
use super::mean::MeanLaw;
use super::spec::{self, Fields};
use super::values::{ValueKind, Values, check_out};
use crate::error::Error;
use crate::rng::{SecureRng, Wiped, fill_bytes};
use crate::threads::{Pause, check_threads};

/// The fewest attributes.
const FEWEST: usize = 2;

/// The most attributes: their numbers fit into a byte.
const MOST: usize = 256;

/// What a report holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// One attribute, drawn uniformly: its number in a byte, the report of its protocol, and zeros up to the length of
    /// the longest.
    Sampled,
    /// All attributes: the reports of their protocols, in their order.
    Split,
}

impl Scheme {
    /// The name in specifications.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sampled => "sampled",
            Self::Split => "split",
        }
    }

    /// The scheme of this name.
    ///
    /// # Errors
    /// [`Error::Parameter`] for an unknown one.
    pub fn named(name: &str) -> Result<Self, Error> {
        let unknown = || Error::parameter("scheme", format!("{name:?}"), "\"sampled\" or \"split\"");
        [Self::Sampled, Self::Split].into_iter().find(|known| known.name() == name).ok_or_else(unknown)
    }

    /// The number in messages.
    const fn code(self) -> u8 {
        match self {
            Self::Sampled => 128,
            Self::Split => 129,
        }
    }
}

/// Several attributes with their protocols. Public: they are part of what is announced.
///
/// ```
/// use dpnoise_core::local::{AnyAccumulator, Attributes, DuchiMean, RandomizedResponse, Scheme, Values};
/// # use dpnoise_core::threads::go_on;
/// let asked = [("smokes", RandomizedResponse::new(1.0)?.into()), ("mood", DuchiMean::new(1.0)?.into())];
/// let attributes = Attributes::new(Scheme::Sampled, &asked)?;
/// let people = [Values::Answers(&[1, 0, 0]), Values::Numbers(&[0.5, -1.0, 0.25])];
/// let mut reports = vec![0; 3 * attributes.report_bytes()];
/// attributes.perturb(&people, &mut reports, 1, &mut go_on)?; // on each person's device
///
/// let mut collected = AnyAccumulator::new(attributes.into())?;
/// collected.add(&reports, 2, 1)?;
/// assert_eq!(collected.n(), 3);
/// # Ok::<(), dpnoise_core::Error>(())
/// ```
#[derive(Clone, PartialEq)]
pub struct Attributes {
    scheme: Scheme,
    named: Vec<(String, Protocol)>,
    /// Names and specifications, as a specification lists them.
    listed: String,
}

impl fmt::Debug for Attributes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_json())
    }
}

/// The parameters.
impl Attributes {
    /// The attributes of these names.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless there are from 2 to 256 attributes with different names, none of them empty, and with
    /// protocols whose clients keep no memo; [`Error::Allocation`].
    pub fn new(scheme: Scheme, attributes: &[(&str, Protocol)]) -> Result<Self, Error> {
        let number = attributes.len();
        if !(FEWEST..=MOST).contains(&number) {
            let alone = if number == 1 { "; one needs only its protocol" } else { "" };
            return Err(Error::parameter("attributes", number, format!("from {FEWEST} to {MOST} of them{alone}")));
        }
        let mut named: Vec<(String, Protocol)> = vec![];
        for (i, &(name, protocol)) in attributes.iter().enumerate() {
            if name.is_empty() {
                return Err(Error::parameter("attributes", "an empty name", "of names that are not empty"));
            }
            if attributes[..i].iter().any(|&(other, _)| other == name) {
                return Err(Error::parameter("attributes", format!("{name:?} twice"), "of different names"));
            }
            if protocol.takes() == ValueKind::Remembering {
                let value = format!("{} for {name:?}", protocol.name());
                return Err(Error::parameter("attributes", value, "protocols without a memo, which clients keep"));
            }
            let mut owned = String::new();
            owned.try_reserve_exact(name.len()).map_err(|_| OutOfMemory)?;
            owned.push_str(name);
            named.push((owned, protocol));
        }
        Ok(Self { scheme, listed: listed(&named)?, named })
    }

    /// Whether a text is, as far as its beginning shows, a specification of several attributes.
    #[must_use]
    pub(crate) fn are_in(text: &str) -> bool {
        text.trim_start_matches(json::SPACE).starts_with("{\"attributes\"")
    }

    /// Reads a specification, and checks those in it.
    ///
    /// # Errors
    /// [`Error::State`] when the text is not a specification of several attributes, is not exactly as
    /// [`to_json`](Self::to_json) gave it, or contains an invalid one; [`Error::Parameter`] when the counters of all
    /// attributes together have more than `limit` bytes, and as for [`new`](Self::new).
    pub fn from_json(text: &str, limit: usize) -> Result<Self, Error> {
        let (made, _) = Self::read(text)?;
        spec::check_canonical(text, &made.to_json())?;
        made.check_limit(limit)?;
        Ok(made)
    }

    /// Reads a specification that may be in another form than the canonical one, and the fields that say what it is about.
    pub(crate) fn read(text: &str) -> Result<(Self, Fields), Error> {
        let several = json::several(text, MOST, &FIELDS).map_err(|problem| {
            spec::invalid(&format!("that of several attributes must be exactly as to_json gave it: {problem}"))
        })?;
        spec::check_version(several.version)?;
        let scheme = Scheme::named(several.protocol)?;
        let mut attributes = vec![];
        for (name, inner) in &several.attributes {
            let read = Protocol::from_json(inner, usize::MAX);
            let protocol = read.map_err(|error| Error::State(format!("attribute {name:?}: {error}")))?;
            attributes.push((name.as_str(), protocol));
        }
        Ok((Self::new(scheme, &attributes)?, several.about))
    }

    pub(crate) fn check_limit(&self, limit: usize) -> Result<(), Error> {
        let bytes = self.counter_bytes();
        if bytes <= limit {
            return Ok(());
        }
        Err(Error::parameter(LIMIT, limit, format!("at least {bytes}, the bytes of the counters of all attributes")))
    }

    /// What a report holds.
    #[must_use]
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// The names and protocols of the attributes, in their order.
    #[must_use]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Protocol)> {
        self.named.iter().map(|(name, protocol)| (name.as_str(), protocol))
    }

    /// The protocols of the attributes, in their order.
    pub(crate) fn protocols(&self) -> impl ExactSizeIterator<Item = &Protocol> {
        self.named.iter().map(|(_, protocol)| protocol)
    }

    /// The position of the attribute of this name.
    ///
    /// # Errors
    /// [`Error::Parameter`] for an unknown name.
    pub fn position(&self, name: &str) -> Result<usize, Error> {
        let unknown = || {
            let known: Vec<_> = self.iter().map(|(known, _)| format!("{known:?}")).collect();
            Error::parameter("attribute", format!("{name:?}"), format!("one of {}", known.join(", ")))
        };
        self.iter().position(|(known, _)| known == name).ok_or_else(unknown)
    }

    /// The protocol of the attribute at a position.
    pub(crate) fn at(&self, position: usize) -> &Protocol {
        &self.named[position].1
    }

    /// The canonical specification of how reports are made, whatever they are about.
    #[must_use]
    pub fn to_json(&self) -> String {
        self.json_with(vec![])
    }

    /// The canonical specification with these further fields.
    pub(crate) fn json_with(&self, further: Fields) -> String {
        let mut fields = further;
        fields.push(("attributes", self.listed.clone()));
        spec::to_json(self.scheme.name(), fields)
    }

    /// The number of the scheme in messages.
    pub(crate) fn code(&self) -> u8 {
        self.scheme.code()
    }

    /// The epsilon of the guarantee for all attributes of a person together, rounded up.
    #[must_use]
    pub fn epsilon(&self) -> f64 {
        self.all_together(Protocol::epsilon)
    }

    /// The delta of the guarantee for all attributes of a person together, rounded up: 0 where that of each attribute is.
    #[must_use]
    pub fn delta(&self) -> f64 {
        self.all_together(Protocol::delta).min(1.0)
    }

    /// The largest of the privacy parameters of the attributes, or their sum, rounded up.
    fn all_together(&self, of_one: impl Fn(&Protocol) -> f64) -> f64 {
        let each = self.protocols().map(of_one);
        match self.scheme {
            Scheme::Sampled => each.fold(0.0, f64::max),
            Scheme::Split => {
                // In multiples of 2^-114 the sum is one of integers below 2^128; it is rounded once, at the end.
                let sum: u128 = each.map(|parameter| (parameter * power_of_two(114)).ceil() as u128).sum();
                let near = sum as f64;
                let above = if (near as u128) < sum { near.next_up() } else { near };
                above * power_of_two(-114)
            }
        }
    }

    /// The bytes of a report.
    #[must_use]
    pub fn report_bytes(&self) -> usize {
        let each = self.protocols().map(Protocol::report_bytes);
        match self.scheme {
            Scheme::Sampled => 1 + each.fold(0, usize::max),
            Scheme::Split => each.sum(),
        }
    }

    /// The bytes of a collector's counters: the sum of those of the attributes.
    #[must_use]
    pub fn counter_bytes(&self) -> usize {
        self.protocols().map(Protocol::counter_bytes).fold(0, usize::saturating_add)
    }

    /// The variance of an estimate from the reports of `n` people about the `attribute` of this name: of the count
    /// of a value that has the frequency `at`, in people squared, or of the mean when all people have the number `at`. For
    /// [`Scheme::Sampled`] each of d attributes has n / d reports.
    ///
    /// # Errors
    /// [`Error::Parameter`] for an unknown name, no people, where `at` is out of range, and for protocols without counts and means.
    pub fn variance(&self, attribute: &str, n: u64, at: f64) -> Result<f64, Error> {
        let (name, protocol) = &self.named[self.position(attribute)?];
        if n == 0 {
            return Err(Error::parameter("n", n, MeanLaw::COUNTS));
        }
        // Of one report, and of one person's value, of which a sample shows a part.
        let (of_report, of_value, counts) = match (protocol.law(), protocol.mean_law()) {
            (Some(law), _) if (0.0..=1.0).contains(&at) => (law.variance(1, at)?, at * (1.0 - at), true),
            (None, Some(law)) if (-1.0..=1.0).contains(&at) => (law.variance(1, at)?, 0.0, false),
            (None, None) => {
                let allowed = "one of counts of values or of a mean";
                return Err(Error::parameter("attribute", format!("{name:?} of {}", protocol.name()), allowed));
            }
            (law, _) => {
                let least = if law.is_some() { 0 } else { -1 };
                return Err(Error::parameter("at", format!("{at:?}"), format!("between {least} and 1 for {name:?}")));
            }
        };
        let variance = match self.scheme {
            Scheme::Sampled => {
                let d = self.named.len() as f64;
                d * of_report + (d - 1.0) * of_value
            }
            Scheme::Split => of_report,
        };
        Ok(if counts { n as f64 * variance } else { variance / n as f64 })
    }
}

/// Names and specifications as a specification lists them, in ASCII.
fn listed(named: &[(String, Protocol)]) -> Result<String, Error> {
    let mut json = String::from("[");
    for (i, (name, protocol)) in named.iter().enumerate() {
        json.push_str(if i == 0 { "[" } else { ",[" });
        json::write_text(&mut json, name)?;
        json.push(',');
        json::write_text(&mut json, &protocol.to_json())?;
        json.push(']');
    }
    json.push(']');
    Ok(json)
}

/// People's devices.
impl Attributes {
    /// Randomises the values of some people on up to `threads` threads, each with a freshly keyed secure generator: one
    /// row of `report_bytes` bytes of `out` for each person. `columns` has the values of each attribute, in their order.
    ///
    /// # Errors
    /// As for [`Protocol::perturb_pausing`], and [`Error::Parameter`] unless there is a column for each attribute and
    /// all are of equal length. `out` is as it was then.
    pub fn perturb(
        &self,
        columns: &[Values<'_>],
        out: &mut [u8],
        threads: usize,
        pause: &mut Pause<'_>,
    ) -> Result<(), Error> {
        let n = self.people(columns)?;
        check_out(out, n, self.report_bytes())?;
        check_threads(threads)?;
        match self.scheme {
            Scheme::Sampled => self.perturb_one_of_each(columns, n, out, threads, pause),
            Scheme::Split => self.perturb_all(columns, n, out, threads, pause),
        }
    }

    fn perturb_one_of_each(
        &self,
        columns: &[Values<'_>],
        n: usize,
        out: &mut [u8],
        threads: usize,
        pause: &mut Pause<'_>,
    ) -> Result<(), Error> {
        let drawn = Groups::of(&draw(&mut SecureRng::new()?, n, self.named.len())?, self.named.len())?;
        let mut parts = room(self.named.len())?;
        for (number, (protocol, &values)) in self.protocols().zip(columns).enumerate() {
            let people = drawn.group(number);
            let values = Copied::of(values, people)?;
            let mut part = zeroed(people.len() * protocol.report_bytes())?;
            protocol.perturb_pausing(values.values(), &mut part, threads, pause)?;
            parts.push((people, part));
        }
        // Nothing fails from here on.
        let width = self.report_bytes();
        out.fill(0);
        for (number, (protocol, (people, part))) in self.protocols().zip(parts).enumerate() {
            for (&person, row) in people.iter().zip(part.chunks_exact(protocol.report_bytes())) {
                let report = &mut out[person * width..][..=row.len()];
                report[0] = number as u8;
                report[1..].copy_from_slice(row);
            }
        }
        Ok(())
    }

    fn perturb_all(
        &self,
        columns: &[Values<'_>],
        n: usize,
        out: &mut [u8],
        threads: usize,
        pause: &mut Pause<'_>,
    ) -> Result<(), Error> {
        let mut parts = room(self.named.len())?;
        for (protocol, &values) in self.protocols().zip(columns) {
            let mut part = zeroed(n * protocol.report_bytes())?;
            protocol.perturb_pausing(values, &mut part, threads, pause)?;
            parts.push(part);
        }
        // Nothing fails from here on.
        for (place, part) in self.places().zip(parts) {
            let reports = out.chunks_exact_mut(self.report_bytes()).zip(part.chunks_exact(place.len()));
            reports.for_each(|(report, row)| report[place.clone()].copy_from_slice(row));
        }
        Ok(())
    }

    /// The number of people, once it is checked that each attribute has values that its protocol takes.
    fn people(&self, columns: &[Values<'_>]) -> Result<usize, Error> {
        if columns.len() != self.named.len() {
            return Err(Error::parameter(
                "columns",
                columns.len(),
                format!("{}, one for each attribute", self.named.len()),
            ));
        }
        let mut lengths = vec![];
        for ((name, protocol), &values) in self.iter().zip(columns) {
            if matches!(values, Values::Rows(_)) {
                return Err(Error::parameter("columns", values.kind().name(), "integers, numbers or answers"));
            }
            let people = protocol.people(values).map_err(|error| match error {
                Error::Data { problem, .. } => Error::data("columns", format!("for {name:?} {problem}")),
                error => error,
            })?;
            lengths.push(people);
        }
        if lengths.iter().all(|&length| length == lengths[0]) {
            return Ok(lengths[0]);
        }
        Err(Error::parameter("columns", format!("lengths {lengths:?}"), "of one value for each person"))
    }

    /// The bytes of each attribute in a report of [`Scheme::Split`].
    fn places(&self) -> impl Iterator<Item = core::ops::Range<usize>> {
        self.protocols().scan(0, |end, protocol| {
            let start = *end;
            *end += protocol.report_bytes();
            Some(start..*end)
        })
    }
}

/// Why a report is rejected that no protocol of an attribute has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Malformed {
    /// Reports whose number is that of no attribute.
    pub(crate) unknown: u64,
    /// Reports with other bytes than zeros behind that of the attribute.
    pub(crate) padded: u64,
}

/// The collector.
impl Attributes {
    /// The reports about each attribute, as its protocol has them. Whether these are malformed is not known yet.
    pub(crate) fn parts(&self, reports: &[u8]) -> Result<(Vec<Vec<u8>>, Malformed), Error> {
        let (width, mut malformed) = (self.report_bytes(), Malformed::default());
        let mut parts = room(self.named.len())?;
        match self.scheme {
            Scheme::Sampled => {
                let numbers = collected(reports.chunks_exact(width).map(|report| report[0]))?;
                let about = Groups::of(&numbers, self.named.len())?;
                malformed.unknown = (numbers.len() - about.positions.len()) as u64;
                for (number, protocol) in self.protocols().enumerate() {
                    let mut part = room(about.group(number).len() * protocol.report_bytes())?;
                    for &position in about.group(number) {
                        let (row, padding) = reports[position * width..][1..width].split_at(protocol.report_bytes());
                        if padding.iter().all(|&byte| byte == 0) {
                            part.extend_from_slice(row);
                        } else {
                            malformed.padded += 1;
                        }
                    }
                    parts.push(part);
                }
            }
            Scheme::Split => {
                for place in self.places() {
                    let mut part = room(reports.len() / width * place.len())?;
                    reports.chunks_exact(width).for_each(|report| part.extend_from_slice(&report[place.clone()]));
                    parts.push(part);
                }
            }
        }
        Ok((parts, malformed))
    }
}

/// `n` numbers below `d`, each exactly uniform: a byte that would favour some of them is drawn again.
fn draw<R: TryCryptoRng>(rng: &mut R, n: usize, d: usize) -> Result<Vec<u8>, Error> {
    let uneven = 256 % d;
    let mut drawn = zeroed(n)?;
    fill_bytes(rng, &mut drawn)?;
    for number in &mut drawn {
        while declassify(Reason::Attribute, usize::from(*number) >= 256 - uneven) {
            fill_bytes(rng, core::slice::from_mut(number))?;
        }
        *number = declassify(Reason::Attribute, (usize::from(*number) % d) as u8);
    }
    Ok(drawn)
}

/// Positions by the number that stands there.
struct Groups {
    positions: Vec<usize>,
    ends: [usize; MOST],
}

impl Groups {
    /// The positions of each number below `d`; others are left out.
    fn of(numbers: &[u8], d: usize) -> Result<Self, Error> {
        let mut ends = [0; MOST];
        for &number in numbers {
            ends[usize::from(number)] += 1;
        }
        ends[d..].fill(0);
        let mut total = 0;
        let mut next = ends.map(|count| {
            total += count;
            total - count
        });
        let mut positions = zeroed(total)?;
        for (position, &number) in numbers.iter().enumerate().filter(|&(_, &number)| usize::from(number) < d) {
            let place = &mut next[usize::from(number)];
            positions[*place] = position;
            *place += 1;
        }
        Ok(Self { positions, ends: next })
    }

    /// The positions of a number, in their order.
    fn group(&self, number: usize) -> &[usize] {
        let start = if number == 0 { 0 } else { self.ends[number - 1] };
        &self.positions[start..self.ends[number]]
    }
}

/// Values of some people, copied.
enum Copied {
    Integers(Wiped<i64>),
    Numbers(Wiped<f64>),
    Answers(Wiped<u8>),
}

impl Copied {
    /// The values of the people at these positions.
    fn of(values: Values<'_>, people: &[usize]) -> Result<Self, Error> {
        fn copied<T: Copy + Default>(values: &[T], people: &[usize]) -> Result<Wiped<T>, Error> {
            let mut copy = Wiped::try_new(people.len())?;
            copy.iter_mut().zip(people).for_each(|(value, &person)| *value = values[person]);
            Ok(copy)
        }
        match values {
            Values::Integers(values) => copied(values, people).map(Self::Integers),
            Values::Numbers(values) => copied(values, people).map(Self::Numbers),
            Values::Answers(values) => copied(values, people).map(Self::Answers),
            other => Err(Error::parameter("values", other.kind().name(), "integers, numbers or answers")),
        }
    }

    fn values(&self) -> Values<'_> {
        match self {
            Self::Integers(values) => Values::Integers(values),
            Self::Numbers(values) => Values::Numbers(values),
            Self::Answers(values) => Values::Answers(values),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::local::{DuchiMean, RandomizedResponse, UnaryEncoding};
    use crate::rng::ScriptedRng;

    #[test]
    fn the_attribute_is_drawn_exactly_uniformly() {
        for d in FEWEST..=MOST {
            let uneven = 256 % d;
            // Each byte once, and 0 for each that is drawn again.
            let mut words: Vec<u8> = (0..=255).collect();
            words.extend(vec![0; uneven]);
            let drawn = draw(&mut ScriptedRng::new(words), 256, d).unwrap();
            let counts = (0..d).map(|number| drawn.iter().filter(|&&found| usize::from(found) == number).count());
            for (number, count) in counts.enumerate() {
                assert_eq!(count - if number == 0 { uneven } else { 0 }, 256 / d, "{d} {number}");
            }
        }
        // The remainders alone would not be uniform.
        assert_ne!((0..=255).filter(|byte| byte % 3 == 0).count(), (0..=255).filter(|byte| byte % 3 == 2).count());
    }

    #[test]
    fn groups_have_all_positions_of_each_number_but_the_unknown() {
        let groups = Groups::of(&[2, 0, 3, 2, 255, 0], 3).unwrap();
        let found: Vec<_> = (0..3).map(|number| groups.group(number)).collect();
        assert_eq!(found, [&[1, 5][..], &[], &[0, 3]]);
        assert_eq!(groups.positions.len(), 4);
        assert_eq!(Groups::of(&[], 256).unwrap().group(255), &[] as &[usize]);
    }

    #[test]
    fn the_epsilon_of_a_split_is_the_sum_rounded_up() {
        let (small, large) =
            (Protocol::from(RandomizedResponse::new(1e-5).unwrap()), DuchiMean::new(30.0).unwrap().into());
        let both = Attributes::new(Scheme::Split, &[("a", small), ("b", large)]).unwrap();
        let (epsilon, near) = (both.epsilon(), small.epsilon() + large.epsilon());
        // The rest of the sum is exact, as the large one is taken away first.
        let rest = |sum: f64| sum - large.epsilon() - small.epsilon();
        assert!(rest(epsilon) >= 0.0 && rest(epsilon.next_down()) < 0.0, "{epsilon:?} {near:?}");
        let sampled = Attributes::new(Scheme::Sampled, &[("a", small), ("b", large)]).unwrap();
        assert_eq!(sampled.epsilon(), large.epsilon());
    }

    #[test]
    fn every_other_text_than_the_canonical_one_is_refused() {
        let asked = [
            ("a", RandomizedResponse::coin_flips().into()),
            ("é\\\n😀", UnaryEncoding::new(3, 0.75, 0.25).unwrap().into()),
        ];
        let json = Attributes::new(Scheme::Split, &asked).unwrap().to_json();
        assert!(json.is_ascii());
        assert_eq!(Attributes::from_json(&json, usize::MAX).unwrap().to_json(), json);
        for i in 0..json.len() {
            for other in [" ", "", "0", "\"", "\\", "}"] {
                let changed = format!("{}{other}{}", &json[..i], &json[i + 1..]);
                let read = Attributes::from_json(&changed, usize::MAX);
                assert!(read.is_err() || read.unwrap().to_json() == changed, "{changed}");
            }
        }
    }
}
