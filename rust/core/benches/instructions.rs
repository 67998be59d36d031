//! Instructions per sample and per set-up, counted by callgrind or QEMU: a measure without noise.
//!
//! The program runs itself once for each instruction set: under `valgrind --tool=callgrind`, or for aarch64 under QEMU with
//! a plugin that counts (`tools/instructions/count_aarch64.sh`). Keys are fixed, so that the counts repeat to the last digit.
//! Valgrind knows no AVX-512.

#[path = "cases/calls.rs"]
mod calls;
mod cases;

use std::env;
use std::error::Error;
use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::process::{Command, ExitCode};

use dpnoise_core::instruction_set::InstructionSet;
use dpnoise_core::rng::SeededRng;

use crate::cases::{SAMPLES, Samples};

/// The argument that makes the program do the work rather than count.
const WORK: &str = "work";

/// The environment variable with the plugin for QEMU.
const PLUGIN: &str = "DPNOISE_COUNT_PLUGIN";

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
    for instructions in InstructionSet::available().into_iter().filter(|set| set.name() != "avx512") {
        if let Err(error) = report(instructions) {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// At the end of every call of this function callgrind writes a file with what it has counted since the last one. The
/// plugin of QEMU does so at the system call.
#[inline(never)]
fn cut() {
    std::thread::yield_now();
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
    for calls in calls::ALL {
        cut();
        let mut call = (calls.set_up)(calls.items).expect("parameters are in range");
        cut();
        call().expect("a seeded generator does not fail");
        cut();
    }
}

/// The name of every case, and the items of its work, in their order.
fn names() -> impl Iterator<Item = (String, usize)> {
    let samplers = cases::all().map(|case| (format!("{}, {}, sample", case.sampler, case.parameter), SAMPLES));
    samplers.chain(calls::ALL.into_iter().map(|calls| (calls.name.into(), calls.items)))
}

/// Writes a line for each case and kind of count: architecture, instruction set, case, instructions per item or for the
/// set-up. `tools/instructions/count.py` reads them.
fn report(instructions: InstructionSet) -> Result<(), Box<dyn Error>> {
    let instructions = instructions.name();
    let plugin = env::var_os(PLUGIN);
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(instructions);
    let mut command = if let Some(plugin) = &plugin {
        let mut command = Command::new("qemu-aarch64");
        command.args(["-L", "/usr/aarch64-linux-gnu", "-plugin"]).arg(plugin);
        command
    } else {
        let mut command = Command::new("valgrind");
        command.args(["--tool=callgrind", "--dump-after=instructions::cut*"]);
        command.arg(format!("--callgrind-out-file={}", file.display()));
        command
    };
    command.args([env::current_exe()?.as_os_str(), WORK.as_ref()]);
    // What is read from the environment takes the longer, the more there is.
    command
        .env_clear()
        .envs(env::var_os("PATH").map(|path| ("PATH", path)))
        .env("DPNOISE_INSTRUCTION_SET", instructions);
    let output = command.output().map_err(|error| format!("{}: {error}", command.get_program().display()))?;
    let messages = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(messages.into());
    }
    let totals: Vec<u64> = if plugin.is_some() {
        messages.lines().map(str::parse).collect::<Result<_, _>>()?
    } else {
        (1..=3 * names().count()).map(|cut| total(&file, cut)).collect::<Result<_, _>>()?
    };
    for ((name, items), &[_, set_up, work]) in names().zip(totals.as_chunks().0) {
        let per_item = work as f64 / items as f64;
        println!("{}\t{instructions}\t{name}\t{per_item:.3}\t{set_up}", env::consts::ARCH);
    }
    Ok(())
}

/// The instructions up to the cut with this number, from the one before.
fn total(file: &Path, cut: usize) -> Result<u64, Box<dyn Error>> {
    let counts = fs::read_to_string(file.with_extension(cut.to_string()))?;
    let total = counts.lines().find_map(|line| line.strip_prefix("totals: ")).ok_or("callgrind wrote no total")?;
    Ok(total.trim().parse()?)
}
