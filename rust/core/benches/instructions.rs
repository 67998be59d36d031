//! Instructions per sample and per set-up, counted by callgrind: a measure without noise.
//!
//! The program runs itself under `valgrind --tool=callgrind`, once for each instruction set. Keys are fixed, so that
//! the counts repeat to the last digit. Valgrind knows no AVX-512: portable code and AVX2 are what can be counted.

mod cases;

use std::env;
use std::error::Error;
use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::process::{Command, ExitCode};

use dpnoise_core::rng::SeededRng;

use crate::cases::{SAMPLES, Samples};

/// The argument that makes the program do the work rather than count.
const WORK: &str = "work";

#[repr(align(4096))]
struct Page;

fn main() -> ExitCode {
    if env::args().nth(1).as_deref() == Some(WORK) {
        // Some functions of the C library take a few instructions more or less by alignment, and where the stack begins
        // depends on the length of the environment: from here on it begins at a page.
        let mut page = Page;
        black_box(&mut page);
        work();
        return ExitCode::SUCCESS;
    }
    match count("portable").and_then(|portable| Ok((portable, count("avx2")?))) {
        Ok((portable, avx2)) => {
            report(&portable, &avx2);
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// At the end of every call of this function callgrind writes a file with what it has counted since the last one.
#[inline(never)]
fn cut() {
    black_box(());
}

fn work() {
    let mut samples = Samples::default();
    let seeded = || SeededRng::new(1).expect("the instruction set exists");
    // What is made once in a process is made now.
    cases::all().take(1).for_each(|case| case.set_up().draw(&mut seeded(), &mut samples));
    for case in cases::all() {
        let mut rng = seeded();
        cut();
        let sampler = black_box(&case).set_up();
        cut();
        sampler.draw(&mut rng, &mut samples);
        cut();
    }
}

/// The instructions that a case takes.
struct Count {
    set_up: u64,
    draw: u64,
}

fn count(instructions: &str) -> Result<Vec<Count>, Box<dyn Error>> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(instructions);
    fs::create_dir_all(&folder)?;
    let file = folder.join("callgrind");
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--dump-after=instructions::cut*"])
        .arg(format!("--callgrind-out-file={}", file.display()))
        .args([env::current_exe()?.as_os_str(), WORK.as_ref()])
        .env("DPNOISE_INSTRUCTION_SET", instructions)
        .output()
        .map_err(|error| format!("valgrind: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    (0..cases::all().count())
        .map(|case| Ok(Count { set_up: total(&file, 3 * case + 2)?, draw: total(&file, 3 * case + 3)? }))
        .collect()
}

/// The instructions up to the cut with this number, from the one before.
fn total(file: &Path, cut: usize) -> Result<u64, Box<dyn Error>> {
    let counts = fs::read_to_string(file.with_extension(cut.to_string()))?;
    let total = counts.lines().find_map(|line| line.strip_prefix("totals: ")).ok_or("callgrind wrote no total")?;
    Ok(total.trim().parse()?)
}

fn report(portable: &[Count], avx2: &[Count]) {
    println!("| sampler and parameter     | a sample, portable | a sample, AVX2 | set-up, portable | set-up, AVX2 |");
    println!("| ------------------------- | -----------------: | -------------: | ---------------: | -----------: |");
    for (case, (portable, avx2)) in cases::all().zip(portable.iter().zip(avx2)) {
        let name = format!("{}, {}", case.sampler, case.parameter);
        let samples = [portable, avx2].map(|count| count.draw as f64 / SAMPLES as f64);
        println!(
            "| {name:25} | {:18.2} | {:14.2} | {:16} | {:12} |",
            samples[0], samples[1], portable.set_up, avx2.set_up
        );
    }
    println!("\nAVX-512 is not counted, as valgrind does not know it.");
}
