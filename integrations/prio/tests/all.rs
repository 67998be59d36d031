//! The integration tests, as one program.

mod distribution;
#[allow(dead_code, reason = "a program")]
#[path = "../examples/histogram.rs"]
mod histogram;
mod noise;
mod sensitivity;

#[test]
fn the_example_runs() {
    histogram::show(100);
}
