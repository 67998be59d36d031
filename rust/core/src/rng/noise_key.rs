//! Noise that a secret brings back: bit for bit, on any CPU, in any order, without state.
//!
//! A [`NoiseKey`] is a secret of 32 bytes. A [`Ticket`] is public: a domain, a step, and 16 bytes of the operating
//! system. Key, ticket and distribution together give a key of ChaCha12,
//!
//! HMAC-SHA256(key, `dpnoise keyed 1` | length of the domain | domain | step | nonce | distribution)
//!
//! where length and step are 8 little-endian bytes each. The distribution is two letters, `e` or `g` for an exponential
//! or a Gaussian, as capitals where alias tables draw it, `-` or `+` for both signs or one; the numerator and the denominator of the scale, in lowest terms, as
//! 16 little-endian bytes each; and for noise on a grid, whose scale is that in steps, the exponent of the granularity as
//! 4 more. It is bound because noise of two scales from the same words is nearly proportional: its ratio would be known.
//!
//! Samples come in blocks of [`BLOCK`]. The words of block i are those of the stream from its block i 2^32 of 64 bytes
//! on; a block that would need the words of the next one is an error. A whole block is always drawn, and what is not
//! asked for is dropped: near the end of a request the sampler takes smaller blocks of trials, so that a shorter draw is
//! no beginning of a longer one.
//!
//! # Why the noise is independent
//!
//! HMAC is a pseudo-random function, and different inputs of it are different: domains are preceded by their lengths.
//! Tickets that were made differ in their nonces, but for a chance of 2^-128 for each pair. So a step that is repeated,
//! a fork, a lost checkpoint and a second input get independent noise, without anybody keeping a list of what was used.
//! Domains that begin with `dpnoise.` are those of this library: [`NoiseKey::ticket`] makes none of them.
//!
//! # Seals
//!
//! What brings noise back is public, but which noise it brings back must not be for others to choose. So a key seals it,
//! with HMAC-SHA256(subkey, bytes), where the subkey is HMAC-SHA256(key, `dpnoise seal 1`): neither of these is a key of
//! noise or a fingerprint, as the beginnings of their inputs differ. A seal is checked in constant time.
//!
//! # What it gives up
//!
//! Every other call of this library draws a fresh key and forgets it. Whoever learns a [`NoiseKey`] can compute, from
//! public tickets, all noise that was drawn and will be drawn with it. Keep it as secret as the data.
//!
//! # Time
//!
//! Drawing again takes the same time again, since the rejections are the same: they are independent of the samples
//! (Theorem 1 of `samplers/discrete_laplace.md`), and repeating them tells nothing new.

use core::fmt;
use core::hint::black_box;
use core::sync::atomic::{AtomicBool, Ordering};

use dpnoise_kernels::arch::secrecy::{Reason, declassify, poison};
use hmac::digest::KeyInit;
use hmac::{Hmac, Mac};
use sha2::Sha256;
use zeroize::{Zeroizing, zeroize_stack};

use super::key_stream::SeekableRng;
use super::process::ProcessMark;
use super::wipe::{Wiped, wiped_on_error};
use crate::error::Error;

/// The label of the format. A change of the samplers' words, tables or word order takes another one.
const LABEL: &[u8] = b"dpnoise keyed 1";

/// What the fingerprint of a key is derived from.
const FINGERPRINT: &[u8] = b"dpnoise fingerprint 1";

/// What the key of seals is derived from.
const SEAL: &[u8] = b"dpnoise seal 1";

/// What the domains of this library begin with.
const RESERVED: &str = "dpnoise.";

/// The length of a key.
const KEY_BYTES: usize = 32;

/// The samples of a block.
pub const BLOCK: usize = 1 << 12;

/// The blocks of 64 bytes that a block of samples may take: 2^LENGTH.
const LENGTH: u32 = 32;

/// The longest domain, in bytes.
const MAX_DOMAIN: usize = 1 << 10;

/// What a ticket's bytes begin with.
const MAGIC: &[u8; 4] = b"DPNT";

/// The version of ticket bytes.
const VERSION: u8 = 1;

/// A secret that brings noise back. Dropping it wipes it.
pub struct NoiseKey(Wiped<u8>);

impl NoiseKey {
    /// Draws a key from the operating system.
    ///
    /// # Errors
    /// [`Error::Randomness`] when it has no randomness.
    pub fn generate() -> Result<Self, Error> {
        let mut key = Wiped::new(KEY_BYTES);
        getrandom::fill(&mut key).map_err(Error::randomness)?;
        poison(&mut key);
        Ok(Self(key))
    }

    /// The key with these bytes, as [`NoiseKey::secret_bytes`] gave them.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless there are 32.
    pub fn from_secret_bytes(bytes: &[u8]) -> Result<Self, Error> {
        if bytes.len() != KEY_BYTES {
            return Err(Error::parameter("secret", format!("{} bytes", bytes.len()), format!("{KEY_BYTES} bytes")));
        }
        let mut key = Wiped::new(KEY_BYTES);
        key.copy_from_slice(bytes);
        poison(&mut key);
        Ok(Self(key))
    }

    /// The secret itself.
    #[must_use]
    pub fn secret_bytes(&self) -> &[u8] {
        &self.0
    }

    /// What is public of the key: 8 bytes that show whether two keys are the same, and nothing else.
    #[must_use]
    pub fn fingerprint(&self) -> [u8; 8] {
        let code = code(&self.0, &[FINGERPRINT]);
        declassify(Reason::Fingerprint, core::array::from_fn(|i| code[i]))
    }

    /// A new ticket, with which noise is drawn once.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a domain of more than 1024 bytes, or one of this library, which begins with `dpnoise.`;
    /// [`Error::Randomness`] when the operating system has no randomness.
    pub fn ticket(&self, domain: &str, step: u64) -> Result<Ticket, Error> {
        check_domain(domain)?;
        if domain.starts_with(RESERVED) {
            return Err(Error::parameter("domain", format!("{domain:?}"), "one that does not begin with \"dpnoise.\""));
        }
        let nonce = nonce()?;
        let (process, is_used) = (Some(ProcessMark::new()?), AtomicBool::new(false));
        Ok(Ticket { fingerprint: self.fingerprint(), domain: domain.into(), step, nonce, process, is_used })
    }

    /// Checks that a ticket is of this key.
    pub(crate) fn check(&self, ticket: &Ticket) -> Result<(), Error> {
        if ticket.fingerprint == self.fingerprint() {
            Ok(())
        } else {
            Err(Error::parameter("ticket", "a ticket of another key", "a ticket of this key"))
        }
    }

    /// The words for noise with this ticket, of the distribution that these bytes describe.
    pub(crate) fn stream(&self, ticket: &Ticket, distribution: &[u8]) -> NoiseStream {
        self.words(&ticket.domain, ticket.step, &ticket.nonce, distribution)
    }

    /// The words for noise with the ticket of this domain, step and nonce.
    pub(crate) fn words(&self, domain: &str, step: u64, nonce: &[u8; 16], distribution: &[u8]) -> NoiseStream {
        let length = (domain.len() as u64).to_le_bytes();
        let parts = [LABEL, &length, domain.as_bytes(), &step.to_le_bytes(), nonce, distribution];
        NoiseStream(code(&self.0, &parts))
    }

    /// What only this key makes of these public bytes. It is public, too.
    pub(crate) fn seal(&self, bytes: &[u8]) -> [u8; 32] {
        declassify(Reason::Seal, *self.secret_seal(bytes))
    }

    /// Whether this key has made `seal` of these bytes, in a time that does not depend on the right seal.
    pub(crate) fn has_sealed(&self, bytes: &[u8], seal: &[u8; 32]) -> bool {
        let right = self.secret_seal(bytes);
        let difference = right.iter().zip(seal).fold(0, |difference, (a, b)| black_box(difference | a ^ b));
        declassify(Reason::Seal, difference == 0)
    }

    fn secret_seal(&self, bytes: &[u8]) -> Zeroizing<[u8; 32]> {
        code(&*code(&self.0, &[SEAL]), &[bytes])
    }
}

/// HMAC-SHA256 of the parts, one after the other.
fn code(key: &[u8], parts: &[&[u8]]) -> Zeroizing<[u8; 32]> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of all lengths");
    for part in parts {
        mac.update(part);
    }
    let code = Zeroizing::new(mac.finalize().into_bytes().into());
    zeroize_stack::<2048>();
    code
}

/// New bytes of the operating system, which no other ticket has.
pub(crate) fn nonce() -> Result<[u8; 16], Error> {
    let mut nonce = [0; 16];
    getrandom::fill(&mut nonce).map_err(Error::randomness)?;
    Ok(nonce)
}

/// Shows nothing of the secret.
impl fmt::Debug for NoiseKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NoiseKey").finish_non_exhaustive()
    }
}

/// What a draw of noise is called. It is public.
#[derive(Debug)]
pub struct Ticket {
    fingerprint: [u8; 8],
    domain: String,
    step: u64,
    nonce: [u8; 16],
    /// The process in which noise may be released with it, if there is one.
    process: Option<ProcessMark>,
    is_used: AtomicBool,
}

impl Ticket {
    /// What the noise is for.
    #[must_use]
    pub fn domain(&self) -> &str {
        &self.domain
    }

    /// The number of the step.
    #[must_use]
    pub fn step(&self) -> u64 {
        self.step
    }

    /// The bytes that tell it from all other tickets.
    #[must_use]
    pub fn nonce(&self) -> [u8; 16] {
        self.nonce
    }

    /// Whether noise may be released with it: it was made in this process, and has not been taken yet.
    #[must_use]
    pub fn is_fresh(&self) -> bool {
        self.process.is_some_and(ProcessMark::is_current) && !self.is_used.load(Ordering::Relaxed)
    }

    /// Takes a fresh ticket, for the one draw whose noise is released.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless it is fresh.
    pub fn take(&self) -> Result<(), Error> {
        if self.is_fresh() && !self.is_used.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        let given = "one that has released noise, was read from bytes, or was made before a fork";
        let allowed = "a new ticket, of which nothing has been released: make another one by key.ticket(step)";
        Err(Error::parameter("ticket", given, allowed))
    }

    /// `DPNT`, the version 1, the fingerprint of the key, the step, the nonce, the domain, and the CRC-32C of all that;
    /// numbers are little-endian.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = [MAGIC, &[VERSION][..], &self.fingerprint, &self.step.to_le_bytes(), &self.nonce].concat();
        bytes.extend_from_slice(self.domain.as_bytes());
        bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_le_bytes());
        bytes
    }

    /// Reads the result of [`Ticket::to_bytes`]. It is not fresh.
    ///
    /// # Errors
    /// [`Error::State`] for anything else; the message says what is wrong.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let invalid = |problem: &str| Error::State(format!("not a ticket: {problem}"));
        let (body, checksum) = bytes.split_last_chunk().ok_or_else(|| invalid("it is too short"))?;
        if !body.starts_with(MAGIC) {
            return Err(invalid("it does not begin with DPNT"));
        }
        if crc32c::crc32c(body) != u32::from_le_bytes(*checksum) {
            return Err(invalid("it is damaged: the checksum is wrong"));
        }
        let fields = |body: &[u8]| -> Option<(u8, Self)> {
            let (version, rest) = body[MAGIC.len()..].split_first()?;
            let (fingerprint, rest) = rest.split_first_chunk()?;
            let (step, rest) = rest.split_first_chunk()?;
            let (nonce, rest) = rest.split_first_chunk()?;
            let domain = core::str::from_utf8(rest).ok()?.into();
            let ticket = Self {
                fingerprint: *fingerprint,
                domain,
                step: u64::from_le_bytes(*step),
                nonce: *nonce,
                process: None,
                is_used: AtomicBool::new(true),
            };
            Some((*version, ticket))
        };
        let (version, ticket) = fields(body).ok_or_else(|| invalid("it is too short, or its domain is not UTF-8"))?;
        if version != VERSION {
            return Err(invalid(&format!("version {version} is not {VERSION}, the one this release reads")));
        }
        check_domain(&ticket.domain)?;
        Ok(ticket)
    }
}

fn check_domain(domain: &str) -> Result<(), Error> {
    if domain.len() <= MAX_DOMAIN {
        Ok(())
    } else {
        Err(Error::parameter("domain", format!("{} bytes", domain.len()), format!("at most {MAX_DOMAIN} bytes")))
    }
}

/// The random words of a draw.
pub(crate) struct NoiseStream(Zeroizing<[u8; 32]>);

impl NoiseStream {
    /// Fills `out` with the samples from `start` on, block by block: `draw` makes a block of [`BLOCK`].
    ///
    /// # Errors
    /// Those of `draw`, [`Error::Randomness`] when a block needs too many words, and [`Error::Parameter`] when
    /// `DPNOISE_INSTRUCTION_SET` names no instruction set of this CPU; then `out` has the default value.
    pub(crate) fn fill<T: Copy + Default>(
        &self,
        start: u64,
        out: &mut [T],
        draw: impl Fn(&mut SeekableRng, &mut [T]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut rng = SeekableRng::new(&self.0)?;
        wiped_on_error(out, |out| {
            let mut next = start;
            let mut rest = out;
            while !rest.is_empty() {
                let (block, skipped) = (next / BLOCK as u64, (next % BLOCK as u64) as usize);
                let count = rest.len().min(BLOCK - skipped);
                let (now, later) = rest.split_at_mut(count);
                rng.seek(block << LENGTH);
                if count == BLOCK {
                    draw(&mut rng, now)?;
                } else {
                    let mut spare = Wiped::new(BLOCK);
                    draw(&mut rng, &mut spare)?;
                    now.copy_from_slice(&spare[skipped..skipped + count]);
                }
                if rng.next_block() - (block << LENGTH) > 1 << LENGTH {
                    return Err(Error::randomness("a block of keyed noise took more words than it has"));
                }
                (next, rest) = (next + count as u64, later);
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(byte: u8) -> NoiseKey {
        NoiseKey::from_secret_bytes(&[byte; KEY_BYTES]).unwrap()
    }

    /// The numbers of the words that a block takes, instead of samples.
    fn words(stream: &NoiseStream, start: u64, count: usize) -> Vec<u64> {
        let mut out = vec![0; count];
        let draw = |rng: &mut SeekableRng, block: &mut [u64]| {
            for word in block {
                *word = rand_core::Rng::next_u64(rng);
            }
            Ok(())
        };
        stream.fill(start, &mut out, draw).unwrap();
        out
    }

    #[test]
    fn every_range_is_a_part_of_the_whole() {
        let ticket = key(1).ticket("ranges", 3).unwrap();
        let stream = key(1).stream(&ticket, b"d");
        let whole = words(&stream, 0, 3 * BLOCK + 5);
        for (start, end) in
            [(0, 1), (1, 2), (5, BLOCK), (BLOCK - 1, BLOCK + 1), (BLOCK, 2 * BLOCK), (100, 3 * BLOCK + 5)]
        {
            assert_eq!(words(&stream, start as u64, end - start), whole[start..end], "{start} {end}");
        }
        let far = (BLOCK as u64) << 31;
        assert_eq!(words(&stream, far, 2)[1..], words(&stream, far + 1, 1));
        let distinct: std::collections::HashSet<_> = whole.iter().collect();
        assert_eq!(distinct.len(), whole.len());
    }

    #[test]
    fn everything_that_is_bound_changes_the_words() {
        let first = |secret, domain: &str, step, nonce, distribution: &[u8]| {
            let ticket = Ticket { nonce: [nonce; 16], ..key(secret).ticket(domain, step).unwrap() };
            words(&key(secret).stream(&ticket, distribution), 0, 1)[0]
        };
        let all = [
            first(1, "a", 2, 3, b"d"),
            first(2, "a", 2, 3, b"d"),
            first(1, "b", 2, 3, b"d"),
            first(1, "", 2, 3, b"d"),
            first(1, "a", 3, 3, b"d"),
            first(1, "a", 2, 4, b"d"),
            first(1, "a", 2, 3, b"e"),
            first(1, "a", 2, 3, b""),
        ];
        let distinct: std::collections::HashSet<_> = all.iter().collect();
        assert_eq!(distinct.len(), all.len());
        assert_eq!(first(1, "a", 2, 3, b"d"), all[0]);
    }

    #[test]
    fn only_the_key_seals() {
        let seal = key(1).seal(b"some bytes");
        assert!(key(1).has_sealed(b"some bytes", &seal));
        assert!(!key(2).has_sealed(b"some bytes", &seal) && !key(1).has_sealed(b"some byte", &seal));
        for bit in 0..256 {
            let mut other = seal;
            other[bit / 8] ^= 1 << (bit % 8);
            assert!(!key(1).has_sealed(b"some bytes", &other), "{bit}");
        }
    }

    #[test]
    fn domains_of_the_library_are_not_given_away() {
        for domain in ["dpnoise.", "dpnoise.sgd.CorrelatedGradient"] {
            let refused = key(1).ticket(domain, 0).unwrap_err().to_string();
            assert_eq!(refused, format!("domain must be one that does not begin with \"dpnoise.\", got {domain:?}"));
        }
        assert!(key(1).ticket("dpnoise", 0).is_ok() && key(1).ticket("a dpnoise.", 0).is_ok());
    }

    #[test]
    fn a_block_that_takes_too_many_words_is_an_error() {
        let ticket = key(1).ticket("", 0).unwrap();
        let stream = key(1).stream(&ticket, b"d");
        let mut out = [7u8; 2];
        let failed = stream.fill(0, &mut out, |rng, _| {
            rng.seek(1 << LENGTH);
            rand_core::Rng::next_u32(rng);
            Ok(())
        });
        assert_eq!((failed.unwrap_err().to_string().contains("more words"), out), (true, [0; 2]));
    }

    #[test]
    fn tickets_are_read_back_and_what_is_none_is_named() {
        let ticket = key(9).ticket("käse/layer 1", u64::MAX).unwrap();
        let bytes = ticket.to_bytes();
        let read = Ticket::from_bytes(&bytes).unwrap();
        assert_eq!((read.to_bytes(), read.domain(), read.step()), (bytes.clone(), "käse/layer 1", u64::MAX));
        assert_ne!(key(9).ticket("käse/layer 1", u64::MAX).unwrap().nonce(), ticket.nonce());
        let refused = |bytes: &[u8]| Ticket::from_bytes(bytes).unwrap_err().to_string();
        for length in 0..bytes.len() {
            assert!(refused(&bytes[..length]).starts_with("not a ticket: "), "{length}");
        }
        for place in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[place] ^= 1;
            assert!(refused(&changed).starts_with("not a ticket: "), "{place}");
        }
        let sealed = |body: &[u8]| [body, &crc32c::crc32c(body).to_le_bytes()].concat();
        let mut newer = bytes[..bytes.len() - 4].to_vec();
        newer[4] = 2;
        assert!(refused(&sealed(&newer)).contains("version 2 is not 1"));
        assert!(refused(&sealed(&[&bytes[..33 + 4], &[0xff][..]].concat())).contains("not UTF-8"));
        assert!(
            key(1).ticket(&"x".repeat(1025), 0).unwrap_err().to_string().contains("at most 1024 bytes, got 1025 bytes")
        );
    }

    #[test]
    fn a_ticket_is_taken_once_and_where_it_was_made() {
        let ticket = key(1).ticket("", 0).unwrap();
        assert!(ticket.is_fresh() && ticket.take().is_ok() && !ticket.is_fresh());
        let inherited = Ticket { process: Some(ProcessMark::of_another()), ..key(1).ticket("", 0).unwrap() };
        let read = Ticket::from_bytes(&key(1).ticket("", 0).unwrap().to_bytes()).unwrap();
        for stale in [ticket, inherited, read] {
            assert!(!stale.is_fresh());
            assert!(stale.take().unwrap_err().to_string().starts_with("ticket must be a new ticket"));
        }
    }

    #[test]
    fn keys_are_checked_and_shown_nowhere() {
        for length in [0, 31, 33] {
            let refused = NoiseKey::from_secret_bytes(&vec![1; length]).unwrap_err().to_string();
            assert_eq!(refused, format!("secret must be 32 bytes, got {length} bytes"));
        }
        assert_eq!(format!("{:?}", key(1)), "NoiseKey { .. }");
        assert_ne!(NoiseKey::generate().unwrap().secret_bytes(), NoiseKey::generate().unwrap().secret_bytes());
        let (own, other) = (key(1), key(2));
        let refused = other.check(&own.ticket("", 0).unwrap()).unwrap_err().to_string();
        assert_eq!(refused, "ticket must be a ticket of this key, got a ticket of another key");
    }
}
