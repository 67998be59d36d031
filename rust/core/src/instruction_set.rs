//! The choice of instruction set, made at run time.

use std::sync::OnceLock;

pub use dpnoise_kernels::arch::InstructionSet;

use crate::error::Error;

/// The environment variable that forces an instruction set.
const VARIABLE: &str = "DPNOISE_INSTRUCTION_SET";

/// The instruction set in use: the one that the environment variable `DPNOISE_INSTRUCTION_SET` names, or the fastest
/// one if the variable is unset or empty.
///
/// # Errors
/// [`Error::Parameter`] when the variable names an instruction set that does not exist or that this CPU lacks.
pub fn current() -> Result<InstructionSet, Error> {
    static CURRENT: OnceLock<Result<InstructionSet, Error>> = OnceLock::new();
    CURRENT.get_or_init(|| choose(std::env::var(VARIABLE).ok().as_deref())).clone()
}

fn choose(forced: Option<&str>) -> Result<InstructionSet, Error> {
    let available = InstructionSet::available();
    last_or_named(VARIABLE, forced, &available, InstructionSet::name, "an instruction set of this CPU")
}

/// The last of the choices, or the one whose name the variable has; an empty variable is as good as none.
pub(crate) fn last_or_named<T: Copy>(
    variable: &'static str,
    forced: Option<&str>,
    choices: &[T],
    name: fn(T) -> &'static str,
    kind: &str,
) -> Result<T, Error> {
    let Some(forced) = forced.filter(|name| !name.is_empty()) else {
        return Ok(*choices.last().expect("some choice needs no special instructions"));
    };
    choices.iter().copied().find(|&choice| name(choice) == forced).ok_or_else(|| {
        let names = choices.iter().map(|&choice| name(choice)).collect::<Vec<_>>().join(", ");
        Error::parameter(variable, format!("{forced:?}"), format!("unset or {kind} ({names})"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fastest_is_chosen_and_any_other_can_be_forced() {
        let available = InstructionSet::available();
        assert_eq!(choose(None), Ok(*available.last().unwrap()));
        for instructions in available {
            assert_eq!(choose(Some(instructions.name())), Ok(instructions));
        }
    }

    #[test]
    fn an_unknown_name_is_an_error_that_lists_the_choices() {
        let message = choose(Some("sse9")).unwrap_err().to_string();
        assert!(message.contains(VARIABLE) && message.contains("sse9") && message.contains("portable"));
    }
}
