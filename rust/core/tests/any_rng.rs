//! Whatever draws takes any cryptographic generator: of this crate, of other crates, or a caller's own.

use core::fmt;

use chacha20::ChaCha20Rng;
use dpnoise_core::Error;
use dpnoise_core::local::{GeneralizedRandomizedResponse, LaplaceMean, OptimizedUnaryEncoding, Protocol, Values};
use dpnoise_core::mechanisms::{self, Laplace, Noise};
use dpnoise_core::params::{RealScale, Scale};
use dpnoise_core::rng::SecureRng;
use dpnoise_core::samplers::{Bernoulli, DiscreteLaplace, GridNoise, INTEGER_NOISE, Sampler};
use rand::rngs::{StdRng, SysRng};
use rand_core::{SeedableRng, TryCryptoRng, TryRng};

const COUNT: usize = 40;

/// Draws one thing of every kind, as text. Each has so many outcomes that two draws are never equal by chance.
fn draw<R: TryCryptoRng>(rng: &mut R) -> Vec<String> {
    let (mut integers, mut reals, mut reports) = ([0; COUNT], [0.0; COUNT], [0; 128 * COUNT]);
    let mut drawn = Vec::new();
    let mut keep = |outcome: &dyn fmt::Debug| drawn.push(format!("{outcome:?}"));

    for noise in INTEGER_NOISE {
        let (scale, more) = noise.example;
        (noise.new)(Scale::from_f64(scale).unwrap(), more).unwrap().fill_with(&mut integers, rng).unwrap();
        keep(&integers);
    }
    for noise in [GridNoise::laplace, GridNoise::gaussian] {
        noise(RealScale::from_f64(1.0).unwrap(), None).unwrap().fill_with(&mut reals, rng).unwrap();
        keep(&reals);
    }
    let mut coins = [false; 8 * COUNT];
    Bernoulli::new(0.5).unwrap().fill_with(&mut coins, rng).unwrap();
    keep(&coins);

    for noise in Noise::KINDS.iter().map(|info| info.example().unwrap()) {
        let values = if noise.takes_integers() {
            mechanisms::Values::Integers(&mut integers)
        } else {
            mechanisms::Values::Reals(&mut reals)
        };
        noise.release_with(values, rng).unwrap();
        keep(&(reals, integers));
    }

    let encoding = Protocol::from(OptimizedUnaryEncoding::new(1024, 1.0).unwrap());
    encoding.perturb_with(Values::Integers(&[7; COUNT]), &mut reports, rng).unwrap();
    keep(&reports);
    let response = Protocol::from(GeneralizedRandomizedResponse::new(1 << 16, 1e-3).unwrap());
    response.perturb_with(Values::Integers(&[7; COUNT]), &mut reports[..2 * COUNT], rng).unwrap();
    keep(&reports[..2 * COUNT].to_vec());
    drawn
}

fn draws_afresh<R: TryCryptoRng>(rng: &mut R) {
    let (first, second) = (draw(rng), draw(rng));
    assert!(first.iter().zip(&second).all(|(a, b)| a != b), "{first:?} {second:?}");
}

/// A generator of the caller's own, which fails after some bytes.
struct Token {
    inner: StdRng,
    left: usize,
}

#[derive(Debug)]
struct Unplugged;

impl fmt::Display for Unplugged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the token is unplugged")
    }
}

impl core::error::Error for Unplugged {}

impl TryRng for Token {
    type Error = Unplugged;

    fn try_next_u32(&mut self) -> Result<u32, Unplugged> {
        let mut bytes = [0; 4];
        self.try_fill_bytes(&mut bytes).map(|()| u32::from_le_bytes(bytes))
    }

    fn try_next_u64(&mut self) -> Result<u64, Unplugged> {
        let mut bytes = [0; 8];
        self.try_fill_bytes(&mut bytes).map(|()| u64::from_le_bytes(bytes))
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Unplugged> {
        self.left = self.left.checked_sub(bytes.len()).ok_or(Unplugged)?;
        let Ok(()) = self.inner.try_fill_bytes(bytes);
        Ok(())
    }
}

impl TryCryptoRng for Token {}

fn token(left: usize) -> Token {
    Token { inner: StdRng::seed_from_u64(5), left }
}

#[test]
fn any_generator_draws() {
    draws_afresh(&mut SecureRng::new().unwrap());
    draws_afresh(&mut rand::rng());
    draws_afresh(&mut SysRng);
    draws_afresh(&mut StdRng::seed_from_u64(1));
    draws_afresh(&mut ChaCha20Rng::seed_from_u64(1));
    draws_afresh(&mut token(1 << 30));
}

#[test]
fn draws_are_the_generators_words_and_nothing_else() {
    assert_eq!(draw(&mut StdRng::seed_from_u64(5)), draw(&mut StdRng::seed_from_u64(5)));
    assert_eq!(draw(&mut StdRng::seed_from_u64(5)), draw(&mut token(1 << 30)));
    assert_ne!(draw(&mut StdRng::seed_from_u64(5)), draw(&mut ChaCha20Rng::seed_from_u64(5)));
}

#[test]
fn a_generator_that_fails_leaves_nothing_and_its_error_is_told() {
    let failed = |result: Result<(), Error>| {
        assert_eq!(result, Err(Error::Randomness("the token is unplugged".to_owned())));
    };
    // Far less than is needed, and some thousands of values' worth.
    for left in [0, 1 << 10, 1 << 16] {
        let mut integers = vec![1; 1 << 16];
        failed(
            DiscreteLaplace::new(Scale::from_f64(3.0).unwrap()).fill_with(&mut integers, &mut token(left)).map(drop),
        );
        assert!(integers.iter().all(|&noise| noise == 0));

        let mut reals = vec![1.0; 1 << 16];
        failed(Laplace::new(1.0, 1.0, None).unwrap().release_with(&mut reals, &mut token(left)));
        assert!(reals.iter().all(|&release| release == 0.0));

        let mean = Protocol::from(LaplaceMean::new(1.0).unwrap());
        let mut reports = vec![1; (1 << 16) * mean.report_bytes()];
        failed(mean.perturb_with(Values::Numbers(&vec![0.5; 1 << 16]), &mut reports, &mut token(left)));
        assert!(reports.iter().all(|&byte| byte == 0));
    }
}
