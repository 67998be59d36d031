//! The choice of the generator of secure random words, made at run time.

use std::sync::OnceLock;

use dpnoise_kernels::arch::aes::{self, Aes, Schedule};

use crate::error::Error;
use crate::instruction_set::{self, InstructionSet};

/// The environment variable that forces a generator.
const VARIABLE: &str = "DPNOISE_GENERATOR";

/// A generator of secure random words, for a CPU and an instruction set that have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generator {
    /// ChaCha12, on every CPU.
    ChaCha12(InstructionSet),
    /// AES-256 in counter mode, where the CPU has instructions for it.
    Aes256(Aes),
}

impl Generator {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ChaCha12(_) => "chacha12",
            Self::Aes256(_) => "aes256",
        }
    }
}

/// The generator of [`crate::rng::SecureRng`]: the one that the environment variable `DPNOISE_GENERATOR` names, or the fastest one
/// if the variable is unset or empty.
///
/// # Errors
/// [`Error::Parameter`] when the variable names a generator that does not exist or that the instruction set in use lacks,
/// or as for [`instruction_set::current`]. [`Error::Randomness`] when AES gives a wrong answer: the CPU, or a machine that
/// imitates it, is broken, and noise must not be drawn on it.
pub fn current() -> Result<Generator, Error> {
    static CURRENT: OnceLock<Result<Generator, Error>> = OnceLock::new();
    let choose = || choose(std::env::var(VARIABLE).ok().as_deref(), instruction_set::current()?);
    CURRENT.get_or_init(choose).clone()
}

fn choose(forced: Option<&str>, instructions: InstructionSet) -> Result<Generator, Error> {
    let mut available = vec![Generator::ChaCha12(instructions)];
    available.extend(Aes::of(instructions).map(Generator::Aes256));
    let kind = "a generator for this CPU and instruction set";
    let chosen = instruction_set::last_or_named(VARIABLE, forced, &available, Generator::name, kind)?;
    match chosen {
        Generator::Aes256(aes) if !gives_known_answers(aes) => Err(Error::randomness("AES-256 gives a wrong answer")),
        chosen => Ok(chosen),
    }
}

/// Whether AES encrypts the block of FIPS 197, appendix C.3, as it should, at every place where a block can be.
fn gives_known_answers(aes: Aes) -> bool {
    const ANSWER: u128 = 0x8ea2_b7ca_5167_45bf_eafc_4990_4b49_6089;
    let mut schedule = Schedule::default();
    let key = core::array::from_fn(|i| 0x0302_0100 + 0x0404_0404 * i as u32);
    aes::expand(aes, &key, &mut schedule);
    let mut group = [[0; _]];
    (0..group[0].len() / aes::BLOCK_BYTES).all(|place| {
        let counter = 0x7766_5544_3322_1100 - place as u64;
        aes::fill(aes, &schedule, counter, 0xffee_ddcc_bbaa_9988, &mut group);
        let blocks: &[[u8; aes::BLOCK_BYTES]] = group[0].as_chunks().0;
        u128::from_be_bytes(blocks[place]) == ANSWER
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_can_be_forced_and_what_is_not_there_is_refused() {
        for instructions in InstructionSet::available() {
            let chosen = choose(None, instructions).unwrap();
            assert_eq!(choose(Some(""), instructions).unwrap(), chosen);
            assert_eq!(choose(Some("chacha12"), instructions).unwrap(), Generator::ChaCha12(instructions));
            if let Some(aes) = Aes::of(instructions) {
                assert_eq!(chosen, Generator::Aes256(aes));
                assert_eq!(choose(Some("aes256"), instructions).unwrap(), chosen);
            } else {
                assert_eq!(chosen, Generator::ChaCha12(instructions));
                let message = choose(Some("aes256"), instructions).unwrap_err().to_string();
                assert!(
                    message.starts_with("DPNOISE_GENERATOR must be unset or a generator for this CPU"),
                    "{message}"
                );
                assert!(message.contains("(chacha12)") && message.contains("\"aes256\""), "{message}");
            }
            assert!(choose(Some("rc4"), instructions).unwrap_err().to_string().contains("\"rc4\""));
        }
    }
}
