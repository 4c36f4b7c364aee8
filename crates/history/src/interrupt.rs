//! A way to stop long work from outside: reading a large file, say, when its time is over.

use std::fmt;
use std::sync::Arc;

/// Asked now and then by whoever works: whether to stop. Copies ask the same question.
///
/// ```
/// use taipan_history::Interrupt;
///
/// assert!(!Interrupt::never().is_due(0));
/// let room = 1_000;
/// let interrupt = Interrupt::when(move |ahead| ahead > room);
/// assert!(!interrupt.is_due(10) && interrupt.is_due(1_001));
/// ```
#[derive(Clone, Default)]
pub struct Interrupt(Option<Arc<Question>>);

type Question = dyn Fn(u64) -> bool + Send + Sync;

impl Interrupt {
    /// Work goes on to its end.
    pub fn never() -> Self {
        Self(None)
    }

    /// Work stops when the answer is yes. The question comes with the number of bytes that the next step will
    /// take at once; 0 if it takes little.
    pub fn when(is_due: impl Fn(u64) -> bool + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(is_due)))
    }

    /// Whether to stop before a step that takes that many bytes at once.
    pub fn is_due(&self, ahead: u64) -> bool {
        self.0.as_ref().is_some_and(|is_due| is_due(ahead))
    }
}

impl fmt::Debug for Interrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Interrupt::when(…)" } else { "Interrupt::never()" })
    }
}
