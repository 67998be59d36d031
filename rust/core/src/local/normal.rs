//! Quantiles of the normal distribution, by which intervals follow from standard errors.

use crate::error::Error;

/// How many standard errors a two-sided interval extends for this confidence `level`, if `intervals` of them must hold
/// together (Bonferroni).
///
/// # Errors
/// [`Error::Parameter`] unless 0 < level < 1.
pub fn normal_quantile(level: f64, intervals: u64) -> Result<f64, Error> {
    if !(0.0 < level && level < 1.0) {
        return Err(Error::parameter("level", format!("{level:?}"), "between 0 and 1, exclusive"));
    }
    // The lower tail, because 1 - level / 2 would lose the digits of a level close to 1.
    Ok(-inverse_cdf((1.0 - level) / (2.0 * intervals.max(1) as f64)))
}

/// The number that a standard normal variable is below with this `probability`, which is between 0 and 1, to about
/// 16 digits.
///
/// Source: Wichura 1988, "Algorithm AS 241: The percentage points of the normal distribution", routine PPND16. The order
/// of the operations is that of Python's `statistics.NormalDist.inv_cdf`.
fn inverse_cdf(probability: f64) -> f64 {
    let from_middle = probability - 0.5;
    if from_middle.abs() <= 0.425 {
        let r = 0.180_625 - from_middle * from_middle;
        return horner(&MIDDLE.0, r) * from_middle / horner(&MIDDLE.1, r);
    }
    let tail = if from_middle <= 0.0 { probability } else { 1.0 - probability };
    let r = (-tail.ln()).sqrt();
    let (tail, r) = if r <= 5.0 { (TAIL, r - 1.6) } else { (FAR_TAIL, r - 5.0) };
    let magnitude = horner(&tail.0, r) / horner(&tail.1, r);
    if from_middle < 0.0 { -magnitude } else { magnitude }
}

/// The polynomial with these coefficients, that of the highest power first.
fn horner(coefficients: &[f64; 8], r: f64) -> f64 {
    coefficients[1..].iter().fold(coefficients[0], |value, coefficient| value * r + coefficient)
}

/// Numerator and denominator.
type Rational = ([f64; 8], [f64; 8]);

/// For probabilities from 0.075 to 0.925.
const MIDDLE: Rational = (
    [
        2_509.080_928_730_122_7,
        33_430.575_583_588_13,
        67_265.770_927_008_7,
        45_921.953_931_549_87,
        13_731.693_765_509_46,
        1_971.590_950_306_551_3,
        133.141_667_891_784_38,
        3.387_132_872_796_366_5,
    ],
    [
        5_226.495_278_852_854,
        28_729.085_735_721_943,
        39_307.895_800_092_71,
        21_213.794_301_586_597,
        5_394.196_021_424_751,
        687.187_007_492_057_9,
        42.313_330_701_600_91,
        1.0,
    ],
);

/// For tails of at least exp(-25).
const TAIL: Rational = (
    [
        0.000_774_545_014_278_341_4,
        0.022_723_844_989_269_184,
        0.241_780_725_177_450_6,
        1.270_458_252_452_368_4,
        3.647_848_324_763_204_5,
        5.769_497_221_460_691,
        4.630_337_846_156_546,
        1.423_437_110_749_683_5,
    ],
    [
        1.050_750_071_644_416_9e-9,
        0.000_547_593_808_499_534_5,
        0.015_198_666_563_616_457,
        0.148_103_976_427_480_08,
        0.689_767_334_985_1,
        1.676_384_830_183_803_8,
        2.053_191_626_637_759,
        1.0,
    ],
);

/// For tails below exp(-25).
const FAR_TAIL: Rational = (
    [
        2.010_334_399_292_288_1e-7,
        2.711_555_568_743_487_6e-5,
        0.001_242_660_947_388_078_4,
        0.026_532_189_526_576_124,
        0.296_560_571_828_504_87,
        1.784_826_539_917_291_3,
        5.463_784_911_164_114,
        6.657_904_643_501_103,
    ],
    [
        2.044_263_103_389_939_7e-15,
        1.421_511_758_316_446e-7,
        1.846_318_317_510_054_8e-5,
        0.000_786_869_131_145_613_2,
        0.014_875_361_290_850_615,
        0.136_929_880_922_735_8,
        0.599_832_206_555_888,
        1.0,
    ],
);

#[cfg(test)]
mod tests {
    use super::*;

    /// By mpmath with 40 digits, rounded.
    const KNOWN: [(f64, f64); 9] = [
        (0.5, 0.0),
        (0.75, 0.674_489_750_196_081_7),
        (0.925, 1.439_531_470_938_456),
        (0.930, 1.475_791_028_179_171),
        (0.975, 1.959_963_984_540_054),
        (0.001, -3.090_232_306_167_813_5),
        (1e-10, -6.361_340_902_404_056),
        (1e-11, -6.706_023_155_495_136),
        (1e-300, -37.047_096_299_361_2),
    ];

    #[test]
    fn quantiles_are_the_known_ones() {
        for (probability, known) in KNOWN {
            let found = inverse_cdf(probability);
            assert!((found - known).abs() <= 4e-15 * known.abs().max(0.1), "{probability}: {found}");
        }
    }

    #[test]
    fn several_intervals_are_wider_than_one() {
        assert_eq!(normal_quantile(0.95, 1).unwrap(), -inverse_cdf((1.0 - 0.95) / 2.0));
        assert_eq!(normal_quantile(0.95, 10).unwrap(), -inverse_cdf((1.0 - 0.95) / 20.0));
        assert!(normal_quantile(1.0 - f64::EPSILON / 2.0, 1 << 20).unwrap().is_finite());
        for level in [0.0, 1.0, -0.5, f64::NAN] {
            let message = normal_quantile(level, 1).unwrap_err().to_string();
            assert_eq!(message, format!("level must be between 0 and 1, exclusive, got {level:?}"));
        }
    }
}
