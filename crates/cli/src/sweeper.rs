//! Nothing of ours stays in a database that outlives this program, even if this program is killed.
//!
//! A second process of this program waits until its standard input ends, for whatever reason; then it connects to the
//! database and runs the statements that it was given. The target and the statements come by that pipe, a line each: a
//! target may hold a password, which must not stand in a list of processes.

use databases::{Limit, is_lasting};
use std::io::{BufRead, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

/// The command of the second process, which help does not list.
pub(crate) const COMMAND: &str = "sweep-database";

/// Runs statements in a database when it is dropped, or when this program ends.
pub(crate) struct Sweeper {
    process: Child,
    pipe: Option<ChildStdin>,
}

/// How long sweeping may take before it is left to itself.
const WAIT: Duration = Duration::from_secs(5);

impl Sweeper {
    /// For a target; none is needed where the target is gone with this program.
    pub(crate) fn start(target: &str, statements: &[String]) -> Result<Option<Self>, String> {
        if !is_lasting(target) || target.starts_with("sim:") || statements.is_empty() {
            return Ok(None);
        }
        let failed =
            |error: std::io::Error| format!("cannot start a second process of this program: {error}");
        let program = std::env::current_exe().map_err(failed)?;
        let mut process = Command::new(program)
            .arg(COMMAND)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        let mut pipe = process.stdin.take();
        if let Some(pipe) = &mut pipe {
            writeln!(pipe, "{target}\n{}", statements.join("\n")).map_err(failed)?;
        }
        Ok(Some(Self { process, pipe }))
    }
}

impl Drop for Sweeper {
    fn drop(&mut self) {
        drop(self.pipe.take());
        let give_up = Instant::now() + WAIT;
        while matches!(self.process.try_wait(), Ok(None)) && Instant::now() < give_up {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// What the second process does.
pub(crate) fn sweep() -> Option<()> {
    let lines: Vec<String> = std::io::stdin().lock().lines().map_while(Result::ok).collect();
    let (target, statements) = lines.split_first()?;
    let mut database = databases::open(target).ok()?;
    database.set_limit(Limit::within(Duration::from_secs(60)));
    for statement in statements {
        // One that fails is no reason to leave what the others would take away.
        let _ = database.scripted()?.console().and_then(|mut console| console.answer(statement));
    }
    Some(())
}
