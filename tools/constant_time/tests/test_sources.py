"""Which kernels there are, and what may be known in them, is read from the Rust sources."""

from pathlib import Path

from tools.constant_time.machine_code import sources

KERNELS = Path(__file__).parents[3] / "rust/kernels/src/arch"


def test_kernels_are_read_from_the_sources(tmp_path):
    (tmp_path / "lanes").mkdir()
    (tmp_path / "lanes" / "sums.rs").write_text(
        """pub fn add(backend: Backend, count: u64, all: &[u8; 4], rest: &mut [u8], tables: &Tables) {
            dispatch!(instructions, add_lanes(count: u64, all: &[u8; 4], rest: &mut [u8], tables: &Tables));
        }
        pub(crate) fn scale(backend: Backend, by: f64, out: &mut [[f64; 8]], tables: &Tables) {
            dispatch!(instructions, scale_lanes(by: f64, out: &mut [[f64; 8]], tables: &Tables));
        }
        pub(crate) fn clip<T: Real>(backend: Backend, rows: &[T], tables: &Tables) {
            dispatch!(
                instructions,
                clip_lanes<T: Real>(rows: &[T], tables: &Tables)
            );
        }"""
    )
    clip = ("lanes::sums::clip", {2})  # for two types
    expected = [("lanes::sums::add", {4}), ("lanes::sums::scale", {2}), clip, clip]
    assert sources.declared(tmp_path) == expected
    assert ("trials::run", {0}) in sources.declared(KERNELS)


def test_planted_faults_are_read_from_the_sources():
    neon, avx512 = (sources.planted(KERNELS / "planted.rs", architecture) for architecture in ("aarch64", "x86_64"))
    assert neon["look_up_in_memory"] == avx512["look_up_in_memory"] == "an address made of a secret"
    assert avx512.keys() - neon.keys() == {"gather", "masked_store"}
    assert not neon.keys() - avx512.keys()
