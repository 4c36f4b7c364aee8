//! Why a file has no answer, in sentences that name flags.

use crate::console::Stop;
use crate::exit::Exit;
use report::Trouble;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use taipan::{BadClaim, Error};

/// Why a file has no answer.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The file.
    name: String,
    cause: Cause,
}

/// What went wrong.
#[derive(Debug)]
pub(crate) enum Cause {
    /// The library says so.
    Error(Error),
    /// The library panicked; what it said.
    Panic(String),
    /// The flags ask for what this file does not allow; the sentence says why.
    Refused(String),
}

impl From<Error> for Cause {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

impl Failure {
    pub(crate) fn new(name: &str, cause: impl Into<Cause>) -> Self {
        Self { name: name.to_owned(), cause: cause.into() }
    }

    pub(crate) fn refused(name: &str, why: String) -> Self {
        Self { name: name.to_owned(), cause: Cause::Refused(why) }
    }

    pub(crate) fn cause(&self) -> &Cause {
        &self.cause
    }

    pub(crate) fn into_cause(self) -> Cause {
        self.cause
    }

    /// What went wrong, where, and what to do.
    pub(crate) fn sentence(&self) -> String {
        let Self { name, cause } = self;
        let error = match cause {
            Cause::Error(error) => error,
            Cause::Refused(why) => return format!("{name}: {why}"),
            Cause::Panic(said) => {
                return format!(
                    "{name}: internal error. This is a bug in Taipan, not in your history: please report it together with the file.\n  {said}"
                );
            }
        };
        match error {
            // It names the file, and the place in it.
            Error::Read(_) => error.to_string(),
            Error::NothingCommitted { .. } => format!("{name}: {error} (--allow-empty accepts such files)"),
            Error::Unpromised { .. } => {
                format!("{name}: {error}: --mixed holds each transaction to the level it asked for")
            }
            Error::Claim(bad) => match bad {
                BadClaim::NoRealTime(_) => format!("{bad}: remove --assume realtime"),
                BadClaim::NoReads(_) => format!("{bad}: remove --assume wfr-keys"),
                BadClaim::KeysBesidePolicies => {
                    "assumptions on keys cannot be combined with --mixed or --ryow".to_owned()
                }
                BadClaim::UnknownHeader(_) => format!("{name}: {bad}; use --level to set one"),
                _ => bad.to_string(),
            },
            _ => format!("{name}: {error}"),
        }
    }

    /// What is reported about the file.
    pub(crate) fn trouble(&self) -> Trouble {
        let (line, column) = match &self.cause {
            Cause::Error(error) => error.place(),
            Cause::Panic(_) | Cause::Refused(_) => (None, None),
        };
        Trouble::new(&self.name, self.sentence()).at(line, column)
    }
}

/// A file that was not read in time is not an error.
impl From<&Failure> for Exit {
    fn from(failure: &Failure) -> Self {
        match failure.cause {
            Cause::Error(Error::Ended(_)) => Self::Undecided,
            _ => Self::Error,
        }
    }
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        match Exit::from(&failure) {
            Exit::Undecided => Self::Limit(failure.sentence()),
            _ => Self::Error(failure.sentence()),
        }
    }
}

/// What the last panic said, so that it can be reported in one piece.
static LAST_PANIC: Mutex<Option<String>> = Mutex::new(None);

/// Does work that must not fail, and survives if it does: one file must not take the others with it.
pub(crate) fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, Cause> {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(|panic| {
        let mut last = LAST_PANIC.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        // The first panic is the cause; others follow from it.
        last.get_or_insert_with(|| panic.to_string());
    }));
    let result = catch_unwind(AssertUnwindSafe(work));
    std::panic::set_hook(before);
    let said = LAST_PANIC.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
    result.map_err(|_| Cause::Panic(said.unwrap_or_else(|| "the panic left no message".to_owned())))
}

/// The same for work that may fail.
pub(crate) fn attempt<T>(work: impl FnOnce() -> Result<T, Error>) -> Result<T, Cause> {
    guarded(work)?.map_err(Cause::Error)
}

#[cfg(test)]
mod tests {
    use super::{Failure, guarded};

    #[test]
    fn a_panic_becomes_a_sentence() {
        assert_eq!(guarded(|| 7).ok(), Some(7));
        let cause = guarded(|| panic!("a broken promise")).expect_err("it panicked");
        let said = Failure::new("h.jsonl", cause).sentence();
        assert!(said.starts_with("h.jsonl: internal error"), "{said}");
        assert!(said.contains("a broken promise") && said.contains("failure.rs"), "{said}");
        assert_eq!(guarded(|| 8).ok(), Some(8));
    }
}
