//! The noise samplers: each distribution with each layout, and each with a fast comparison that leaves much to refine.

use dpnoise_core::params::{RealScale, Scale};
use dpnoise_core::rng::{NoiseKey, SeededRng};
use dpnoise_core::samplers::{
    Bernoulli, Design, DiscreteLaplace, GridNoise, INTEGER_NOISE, IntegerNoise, Keyed, Named, Sampler,
};
use dpnoise_core::threads::go_on;
use dpnoise_kernels::arch::trials::Layout;

use super::{Check, assert_secret, table};

/// A name, the binary logarithm of the first bin's width, and the scale of an exponential and of a Gaussian for it.
const LAYOUTS: [(&str, u32, f64, f64); 4] = [
    ("folded bins", 0, 4.0, 20.0),
    ("4-byte offsets", 9, 2000.0, 10_000.0),
    ("8-byte offsets", 33, 3.5e10, 1.7e11),
    ("a heavy tail", 0, 80.0, 115.0),
];

/// The usual allowance for the error of the fast comparison, and one so large that the 256 bits decide most trials.
const ETA_BITS: [u32; 2] = [29, 4];

const SAMPLES: usize = 300;

pub(super) fn checks() -> Vec<Check> {
    let mut checks = table(&[
        ("discrete Laplace, one sample", || {
            let sampler = DiscreteLaplace::new(Scale::from_f64(10.0).unwrap());
            assert_secret(&[sampler.sample_with(&mut SeededRng::new(1).unwrap()).unwrap()]);
        }),
        ("Laplace on a grid", || {
            let mut out = [0.0; SAMPLES];
            let noise = GridNoise::laplace(RealScale::from_f64(0.3).unwrap(), None).unwrap();
            noise.fill_with(&mut out, &mut SeededRng::new(1).unwrap()).unwrap();
            assert_secret(&out);
        }),
        ("Gaussian on a grid, one sample", || {
            let noise = GridNoise::gaussian(RealScale::from_f64(1e-300).unwrap(), Some(2f64.powi(-1010))).unwrap();
            assert_secret(&[noise.sample_with(&mut SeededRng::new(1).unwrap()).unwrap()]);
        }),
        ("keyed noise", || {
            let key = NoiseKey::from_secret_bytes(&[1; 32]).unwrap();
            let ticket = key.ticket("check", 1).unwrap();
            let noise: IntegerNoise = DiscreteLaplace::new(Scale::from_f64(10.0).unwrap()).into();
            let mut out = [0; SAMPLES];
            noise.draw_keyed(&key, &ticket, 4000, &mut out, 1, &mut go_on).unwrap();
            assert_secret(&out);
        }),
        ("coins of few digits, of 55 and of more than 64", || {
            for p in [0.25, 0.1, 1e-9] {
                let mut out = [false; 1000];
                Bernoulli::new(p).unwrap().fill_with(&mut out, &mut SeededRng::new(1).unwrap()).unwrap();
                assert_secret(&out);
            }
        }),
    ]);
    for (digits, scale) in [("one digit", 1.0), ("two digits", 10.0), ("three digits", 1000.0)] {
        for Named { name, parameter, new, .. } in by_scale() {
            let sampler = new(Scale::from_f64(if parameter == "sigma" { 5.0 } else { scale }).unwrap(), &[]).unwrap();
            checks.push(Check {
                name: format!("{name}, {digits}"),
                run: Box::new(move || fill(&sampler, ETA_BITS[0], false)),
            });
        }
    }
    for Named { name, new, example: (scale, integers), .. } in INTEGER_NOISE {
        let sampler = new(Scale::from_f64(scale).unwrap(), integers).unwrap();
        let name = format!("{name}, the example");
        checks.push(Check { name, run: Box::new(move || fill(&sampler, ETA_BITS[0], false)) });
    }
    for (scale, radius) in [(10.0, 12), (1e6, 30_000_000)] {
        for Named { name, new, .. } in by_scale() {
            let whole = new(Scale::from_f64(scale).unwrap(), &[]).unwrap();
            let sampler = whole.truncated(radius).unwrap();
            checks.push(Check {
                name: format!("{name} of scale {scale}, truncated at {radius}"),
                run: Box::new(move || fill(&sampler, ETA_BITS[0], false)),
            });
        }
    }
    for (layout_name, shift, scale, sigma) in LAYOUTS {
        let [scale, sigma] = [scale, sigma].map(|scale| Scale::from_f64(scale).unwrap());
        for Named { name, parameter, with_design, .. } in by_scale() {
            for eta_bits in ETA_BITS {
                let scale = if parameter == "sigma" { sigma } else { scale };
                let design = Design { layout: Layout { shift }, weight_bits: 32, eta_bits };
                let sampler = with_design.unwrap()(scale, design).unwrap();
                checks.push(Check {
                    name: format!("{name}, {layout_name}, eta 2^-{eta_bits}"),
                    run: Box::new(move || fill(&sampler, eta_bits, layout_name.contains("tail"))),
                });
            }
        }
    }
    checks
}

/// The distributions that are drawn from digits or by trials.
fn by_scale() -> impl Iterator<Item = Named> {
    INTEGER_NOISE.into_iter().filter(|noise| noise.with_design.is_some())
}

fn fill(sampler: &IntegerNoise, eta_bits: u32, has_tail: bool) {
    let mut out = [0; SAMPLES];
    let rarities = sampler.fill_counted(&mut out, &mut SeededRng::new(1).unwrap()).unwrap();
    if has_tail {
        assert!(rarities.tails > 10, "{rarities:?}"); // and may be known
    } else {
        assert_secret(&out);
    }
    assert!(eta_bits > 4 || rarities.refinements > 10, "{rarities:?}");
}
