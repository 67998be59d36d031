//! A uniform integer below a secret one.

use dpnoise_kernels::arch::secrecy::{Reason, declassify};
use rand_core::TryCryptoRng;
use zeroize::Zeroizing;

use crate::error::Error;
use crate::rng::fill_bytes;

/// floor(U n) for a real number U, uniform on [0, 1): uniform on 0, 1, ..., n - 1, exactly; and 0 for n = 0.
///
/// The first 256 bits of U leave the answer open with a probability below n / 2^256; further ones are drawn then.
///
/// # Errors
/// [`Error::Randomness`] when `rng` fails.
pub(super) fn uniform_below<R: TryCryptoRng + ?Sized>(rng: &mut R, n: u128) -> Result<u128, Error> {
    let (mut floor, mut digit) = product(word(rng)?, n);
    // U n = floor + (digit + rest) / 2^128, where the rest is in [0, n / 2^128 + 1) and decides only about a carry.
    loop {
        let (whole, fraction) = product(word(rng)?, n);
        let (sum, carry) = digit.overflowing_add(whole);
        floor = floor.wrapping_add(u128::from(carry));
        let open = (sum == u128::MAX) & fraction.overflowing_add(n.wrapping_sub(1)).1;
        if !declassify(Reason::Selection, open) {
            return Ok(floor);
        }
        digit = fraction;
    }
}

/// The next 128 bits of U, the most significant first.
fn word<R: TryCryptoRng + ?Sized>(rng: &mut R) -> Result<u128, Error> {
    let mut bytes = Zeroizing::new([0; 16]);
    fill_bytes(rng, &mut *bytes)?;
    Ok(u128::from_be_bytes(*bytes))
}

/// The upper and the lower half of a product.
fn product(a: u128, b: u128) -> (u128, u128) {
    let halves = |x: u128| (x >> 64, u128::from(x as u64));
    let ((a1, a0), (b1, b0)) = (halves(a), halves(b));
    // No sum exceeds (2^64 - 1)^2 + 2 (2^64 - 1) = 2^128 - 1.
    let low = a0.wrapping_mul(b0);
    let middle = a1.wrapping_mul(b0).wrapping_add(low >> 64);
    let (carried, other) = halves(middle);
    let other = a0.wrapping_mul(b1).wrapping_add(other);
    let high = a1.wrapping_mul(b1).wrapping_add(carried).wrapping_add(other >> 64);
    (high, other << 64 | u128::from(low as u64))
}

#[cfg(test)]
mod tests {
    use num_bigint::BigUint;

    use super::*;
    use crate::rng::ScriptedRng;

    fn draw(digits: &[u128], n: u128) -> Result<(u128, usize), Error> {
        let script: Vec<u8> = digits.iter().flat_map(|digit| digit.to_be_bytes()).collect();
        let mut rng = ScriptedRng::new(script);
        Ok((uniform_below(&mut rng, n)?, rng.remaining()))
    }

    #[test]
    fn products_are_those_of_big_integers() {
        let numbers = [0, 1, 7, u128::from(u64::MAX), 1 << 64, (1 << 80) - 3, u128::MAX - 5, u128::MAX];
        for a in numbers {
            for b in numbers {
                let (high, low) = product(a, b);
                assert_eq!((BigUint::from(high) << 128u32) + low, BigUint::from(a) * b);
            }
        }
    }

    /// floor(U n) of the whole script, where it is decided, and never a word too few or too many.
    #[test]
    fn the_answer_is_the_floor_of_the_real_product() {
        let thirds = u128::MAX / 3; // 0.010101...
        for n in [1, 2, 3, 5, 6, 1000, (1 << 80) - 1] {
            for digits in
                [[0, 0], [u128::MAX, 0], [u128::MAX, u128::MAX - 1], [thirds, thirds + 1], [thirds, 0], [7, 9]]
            {
                let expected = (((BigUint::from(digits[0]) << 128u32) + digits[1]) * n) >> 256u32;
                assert_eq!(draw(&digits, n), Ok((u128::try_from(expected).unwrap(), 0)), "{digits:?} {n}");
            }
        }
        assert_eq!(draw(&[5, 6], 0), Ok((0, 0)));
    }

    #[test]
    fn what_is_open_takes_further_bits() {
        let thirds = u128::MAX / 3;
        // U = 1/3 to 256 bits: U 3 is below 1 or not by what follows.
        assert!(draw(&[thirds, thirds], 3).is_err());
        assert_eq!(draw(&[thirds, thirds, thirds - 1], 3), Ok((0, 0)));
        assert_eq!(draw(&[thirds, thirds, thirds + 1], 3), Ok((1, 0)));
        assert_eq!(draw(&[thirds, thirds, thirds, thirds, thirds + 1, 0], 3), Ok((1, 16)));
        assert_eq!(draw(&[u128::MAX, u128::MAX], 3), Ok((2, 0)), "U n < n always");
    }
}
