//! Standard output for results, standard error for everything else.

use crate::exit::Exit;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use report::{Palette, printable, printable_lines};
use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::sync::OnceLock;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;

/// What a command ends with: a status, or that standard output could not be written.
pub(crate) type Outcome = Result<Exit, Stop>;

/// Why a command cannot go on.
#[derive(Debug)]
pub(crate) enum Stop {
    /// Standard output is gone.
    Output(io::Error),
    /// Nothing more can be done; the sentence says why.
    Error(String),
    /// A value that was typed means nothing here.
    Usage {
        /// The argument it was typed for, as help writes it.
        argument: String,
        /// What was typed.
        value: String,
        /// What is wrong with it.
        why: String,
    },
    /// A limit ended the work before there was an answer.
    Limit(String),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

impl From<String> for Stop {
    fn from(error: String) -> Self {
        Self::Error(error)
    }
}

/// Standard output for results. Where its reader (`head`, a pager) has seen enough, the rest goes nowhere, and the work
/// goes on: the exit status is that of all of it.
struct Results {
    stream: anstream::AutoStream<io::Stdout>,
    is_closed: bool,
}

impl Results {
    fn unless_closed(&mut self, result: io::Result<usize>, len: usize) -> io::Result<usize> {
        match result {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.is_closed = true;
                Ok(len)
            }
            result => result,
        }
    }
}

impl Write for Results {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = if self.is_closed { Ok(bytes.len()) } else { self.stream.write(bytes) };
        self.unless_closed(written, bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = if self.is_closed { Ok(()) } else { self.stream.flush() };
        self.unless_closed(flushed.map(|()| 0), 0).map(|_| ())
    }
}

/// A message as it may be shown: without passwords that were typed, and without what acts on a terminal.
pub(crate) fn shown(message: &impl Display) -> String {
    static TYPED: OnceLock<Vec<(String, String)>> = OnceLock::new();
    let typed = TYPED.get_or_init(|| databases::with_passwords(std::env::args_os().skip(1)));
    let mut message = message.to_string();
    for (typed, shown) in typed {
        if message.contains(typed) {
            message = message.replace(typed, shown);
        }
    }
    printable_lines(&message).into_owned()
}

/// The way out of the process.
pub(crate) struct Console {
    out: io::BufWriter<Results>,
    progress: bool,
    /// Whether standard output is a terminal that shows ASCII only.
    is_ascii: bool,
}

impl Console {
    /// The process's own streams. Colours are left out where they cannot be shown or `NO_COLOR` is set.
    pub(crate) fn new(quiet: bool) -> Self {
        Self {
            out: io::BufWriter::new(Results {
                stream: anstream::AutoStream::auto(io::stdout()),
                is_closed: false,
            }),
            progress: !quiet && io::stderr().is_terminal(),
            is_ascii: io::stdout().is_terminal() && !locale_has_unicode(),
        }
    }

    /// Where results go.
    pub(crate) fn out(&mut self) -> &mut impl Write {
        &mut self.out
    }

    /// Colours for text; standard output drops them where it cannot show them.
    pub(crate) fn palette(&self) -> Palette {
        let palette = Palette::coloured();
        if self.is_ascii { palette.ascii() } else { palette }
    }

    /// Says something that is no result.
    pub(crate) fn note(&mut self, note: impl Display) {
        // Results so far come first, so that a terminal shows things in the order they happened.
        let _ = self.out.flush();
        let _ = writeln!(anstream::stderr(), "taipan: {}", shown(&note));
    }

    /// Says what went wrong.
    pub(crate) fn error(&mut self, error: impl Display) {
        let _ = self.out.flush();
        let _ = writeln!(anstream::stderr(), "taipan: error: {}", shown(&error));
    }

    /// Shows on a terminal that work is under way, from the second second on.
    pub(crate) fn progress(&self, steps: u64) -> Progress {
        if self.progress { Progress::visible(steps) } else { Progress::hidden() }
    }

    /// Ends the process's output and gives its status.
    pub(crate) fn finish(mut self, result: Outcome) -> Exit {
        let written = self.out.flush();
        let result = result.and_then(|exit| Ok(written.map(|()| exit)?));
        match result {
            Ok(exit) => exit,
            // A command that only writes (`generate`, `convert`) has nothing more to do when the reader has seen enough.
            Err(Stop::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Accepted,
            Err(Stop::Output(error)) => {
                let _ = writeln!(anstream::stderr(), "taipan: error: cannot write to stdout: {error}");
                Exit::Error
            }
            Err(Stop::Error(error)) => {
                let _ = writeln!(anstream::stderr(), "taipan: error: {}", shown(&error));
                Exit::Error
            }
            // As the argument parser says it of values that it knows.
            Err(Stop::Usage { argument, value, why }) => {
                let error = format!("error: invalid value '{value}' for '{argument}': {why}");
                let _ =
                    writeln!(anstream::stderr(), "{}\n\nFor more information, try '--help'.", shown(&error));
                Exit::Error
            }
            Err(Stop::Limit(why)) => {
                let _ = writeln!(anstream::stderr(), "taipan: {why}");
                Exit::Undecided
            }
        }
    }
}

/// Whether the locale, as POSIX looks it up, is one of UTF-8. Where none is set, terminals of today are.
fn locale_has_unicode() -> bool {
    let mut set = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(std::env::var_os);
    set.find(|value| !value.is_empty()).is_none_or(|value| {
        let value = value.to_string_lossy().to_ascii_lowercase();
        value.contains("utf-8") || value.contains("utf8")
    })
}

/// A line on standard error that says how far the work is. It goes away when dropped.
pub(crate) struct Progress {
    bar: ProgressBar,
    shower: Option<(mpsc::Sender<()>, JoinHandle<()>)>,
}

/// Work that ends sooner shows nothing.
const QUIET_AT_FIRST: Duration = Duration::from_secs(1);

impl Progress {
    fn hidden() -> Self {
        Self { bar: ProgressBar::hidden(), shower: None }
    }

    fn visible(steps: u64) -> Self {
        let bar = ProgressBar::with_draw_target(Some(steps), ProgressDrawTarget::hidden());
        let template = match steps {
            0 | 1 => "{spinner} {msg} [{elapsed}]",
            _ => "{spinner} {pos}/{len} {wide_bar} {msg} [{elapsed}]",
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        let (stop, stopped) = mpsc::channel();
        let shown = bar.clone();
        let shower = std::thread::spawn(move || {
            if stopped.recv_timeout(QUIET_AT_FIRST) == Err(RecvTimeoutError::Timeout) {
                shown.set_draw_target(ProgressDrawTarget::stderr());
                shown.enable_steady_tick(Duration::from_millis(100));
            }
        });
        Self { bar, shower: Some((stop, shower)) }
    }

    /// Says what is being done now.
    pub(crate) fn say(&self, what: impl Display) {
        self.bar.set_message(printable(&shown(&what)).into_owned());
    }

    /// One step is done.
    pub(crate) fn step(&self) {
        self.advance(1);
    }

    /// Several steps are done.
    pub(crate) fn advance(&self, steps: u64) {
        self.bar.inc(steps);
    }

    /// So many steps are done in all.
    pub(crate) fn at(&self, steps: u64) {
        self.bar.set_position(steps);
    }

    /// Lets something else be printed in peace.
    pub(crate) fn pause<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((stop, shower)) = self.shower.take() {
            drop(stop);
            let _ = shower.join();
        }
        self.bar.finish_and_clear();
    }
}
