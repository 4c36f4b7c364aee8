//! `taipan check` on several workers and several machines.

use crate::checking::Checking;
use crate::console::{Console, Outcome};
use crate::flags::CheckFlags;
use crate::output::Sink;

#[cfg(not(feature = "cluster"))]
pub(crate) fn run(_: &CheckFlags, _: &Checking, _: &mut Sink, _: &mut Console) -> Outcome {
    let why = "this build of taipan has no workers; build it with --features cluster";
    Err(crate::console::Stop::Error(why.to_owned()))
}

#[cfg(feature = "cluster")]
pub(crate) fn run(
    flags: &CheckFlags,
    checking: &Checking,
    sink: &mut Sink,
    console: &mut Console,
) -> Outcome {
    several::run(flags, checking, sink, console)
}

#[cfg(feature = "cluster")]
pub(crate) use several::{end, setup_of};

#[cfg(feature = "cluster")]
mod several {
    use super::{CheckFlags, Checking, Console, Outcome, Sink};
    use crate::console::{Progress, Stop};
    use crate::exit::Exit;
    use crate::failure::Failure as Refused;
    use crate::flags::{CrewFlags, Whose};
    use checker::{Claim, Undecided, VerdictKind};
    use cluster::{Answer, Cluster, Failure, Found, Job, Monitor, Setup, Share, hosts};
    use report::{Cost, Finding, Size, Trouble};
    use std::io::Write;
    use std::ops::ControlFlow;
    use std::path::Path;
    use std::sync::mpsc::{self, RecvTimeoutError};
    use std::sync::{Arc, Once};
    use std::time::{Duration, Instant};
    use taipan::Error;
    use taipan::files::{self, cost, is_standard_stream, resident_bytes};

    pub(super) fn run(
        flags: &CheckFlags,
        checking: &Checking,
        sink: &mut Sink,
        console: &mut Console,
    ) -> Outcome {
        refuse(flags)?;
        let setup = setup_of(&flags.workers.crew)?;
        if let Some(cluster) = &setup.cluster {
            cluster.watch(Arc::new(end));
        }
        let progress = console.progress(flags.files.len() as u64);
        let mut exit = Exit::Accepted;
        for file in &flags.files {
            let checked = check_file(flags, checking, &setup, file, sink, console, &progress)?;
            let (ControlFlow::Continue(of_file) | ControlFlow::Break(of_file)) = checked;
            exit = exit.and(of_file);
            if checked.is_break() {
                break;
            }
            progress.step();
        }
        Ok(exit)
    }

    /// What becomes of a run without an answer: it goes on with what else there is to check, or ends. Who waits for a
    /// worker that is gone, here or in another process, waits for ever, and cannot work on anything else.
    fn after(failure: &Failure) -> ControlFlow<Exit, Exit> {
        match failure {
            Failure::Input(_) => ControlFlow::Continue(Exit::Error),
            Failure::Worker(_) => ControlFlow::Break(Exit::Undecided),
            Failure::Disagreement(_) => ControlFlow::Break(Exit::Error),
            Failure::Connection(_) | Failure::Limit(_) => ControlFlow::Continue(Exit::Undecided),
        }
    }

    /// A process is gone, and with it what it knew: no verdict can be given. The others notice it at the same time: who
    /// ends at once would be taken for the one that is gone.
    #[expect(clippy::exit, reason = "the workers wait for messages that will not arrive")]
    pub(crate) fn end(process: usize, address: &str) {
        static FIRST: Once = Once::new();
        FIRST.call_once(|| {
            let _ = writeln!(
                anstream::stderr(),
                "taipan: error: lost process {process} at {address}; without it there is no verdict"
            );
            std::thread::sleep(Duration::from_secs(1));
            std::process::exit(2);
        });
    }

    /// What is not done on several workers.
    fn refuse(flags: &CheckFlags) -> Result<(), String> {
        let alone = [
            (flags.certificate.is_some(), "--certificate"),
            (flags.all_levels, "--all-levels"),
            (flags.anomalies, "--anomalies"),
            (flags.order.compare, "--compare"),
            (flags.policy.profile.is_some(), "--profile"),
            (flags.remarks.is_some(), "--remarks"),
            (flags.files.iter().any(|file| is_standard_stream(file)), "standard input"),
        ];
        if !flags.require.require.is_empty() {
            return Err("--require cannot be used with --workers or --cluster: coverage is measured on the \
                 whole history, and workers hold parts; check the file with --require and without workers"
                .to_owned());
        }
        match alone.into_iter().find(|(asked, _)| *asked) {
            Some((_, what)) => Err(format!("{what} cannot be used with --workers or --cluster")),
            None => Ok(()),
        }
    }

    /// Who works, as flags say.
    pub(crate) fn setup_of(flags: &CrewFlags) -> Result<Setup, String> {
        let workers = flags.workers.unwrap_or(1).into();
        let (Some(path), Some(process)) = (flags.cluster.as_deref(), flags.process) else {
            return Ok(Setup::threads(workers));
        };
        let name = path.display();
        let text = std::fs::read_to_string(path).map_err(|error| format!("{name}: {error}"))?;
        let addresses = hosts(&text).map_err(|error| format!("{name}: {error}"))?;
        if process >= addresses.len() {
            let last = addresses.len() - 1;
            return Err(format!("--process {process}: {name} lists processes 0 to {last}"));
        }
        let patience = Duration::from_secs(flags.wait);
        Ok(Setup { workers, cluster: Some(Cluster { addresses, process, patience }) })
    }

    fn check_file(
        flags: &CheckFlags,
        checking: &Checking,
        setup: &Setup,
        file: &Path,
        sink: &mut Sink,
        console: &mut Console,
        progress: &Progress,
    ) -> Result<ControlFlow<Exit, Exit>, Stop> {
        let name = file.display().to_string();
        let header = match flags.levels.level.is_empty() {
            true => cluster::level_in_header(file, &checking.reading),
            false => Ok(None),
        };
        let header = match header {
            Ok(header) => header,
            Err(failure) => {
                sink.trouble(Trouble::new(&name, failure.to_string()), console, progress)?;
                return Ok(ControlFlow::Continue(Exit::Error));
            }
        };
        let claims = checking.checker.policy.claims(&checking.asked, header.as_deref());
        let claims = match claims {
            Ok(claims) => claims,
            Err(bad) => {
                sink.trouble(Refused::new(&name, Error::from(bad)).trouble(), console, progress)?;
                return Ok(ControlFlow::Continue(Exit::Error));
            }
        };
        let mut exit = Exit::Accepted;
        for claim in claims {
            progress.say(format_args!("{name}: {claim} on {} workers", setup.workers * setup.processes()));
            let started = Instant::now();
            let guard = checking.checker.limits.guard(started);
            let mut monitor = Monitor::new(setup.workers, setup.workers * setup.process());
            if flags.workers.crew.monitor.is_some() {
                monitor = monitor.listening();
            }
            let job = Job {
                setup: setup.clone(),
                paths: vec![file.to_owned()],
                share: match flags.workers.shards {
                    Whose::Shared => Share::All,
                    Whose::Own => Share::Own,
                },
                claim,
                own_levels: checking.names.own().to_vec(),
                options: checking.checker.options(guard.budget()),
                reading: checking.reading.clone(),
                monitor: monitor.clone(),
            };
            let watch = flags.workers.crew.monitor.map(|seconds| Watch::start(monitor, seconds));
            let answer = cluster::check(job);
            drop(watch);
            let cost = cost(Duration::ZERO, started.elapsed());
            exit = exit.and(match answer {
                Err(failure) => {
                    let reason = failure.to_string();
                    if let Failure::Input(_) | Failure::Disagreement(_) = failure {
                        sink.trouble(Trouble::new(&name, reason), console, progress)?;
                    } else {
                        if !matches!(failure, Failure::Limit(_)) {
                            progress.pause(|| console.error(&failure));
                        }
                        let finding = Finding::undecided(&name, claim, reason, Size::default(), cost);
                        sink.finding(finding, console, progress)?;
                    }
                    match after(&failure) {
                        ControlFlow::Continue(of_level) => of_level,
                        ControlFlow::Break(of_level) => return Ok(ControlFlow::Break(exit.and(of_level))),
                    }
                }
                Ok(answer) if answer.committed == 0 && !flags.reading.allow_empty => {
                    let empty = Error::NothingCommitted { transactions: answer.size.0 };
                    sink.trouble(Refused::new(&name, empty).trouble(), console, progress)?;
                    Exit::Error
                }
                Ok(answer) => {
                    let lack = match answer.verdict == VerdictKind::Accepted {
                        true => lack(checking, file, &claim),
                        false => Ok(None),
                    };
                    match lack {
                        Ok(lack) => tell(answer, lack, &name, claim, cost, sink, console, progress)?,
                        Err(refused) => {
                            sink.trouble(refused.trouble(), console, progress)?;
                            Exit::Error
                        }
                    }
                }
            });
        }
        Ok(ControlFlow::Continue(exit))
    }

    /// The orders that an accepted level asks for and the file does not have.
    fn lack(checking: &Checking, file: &Path, claim: &Claim) -> Result<Option<Undecided>, Refused> {
        let name = file.display().to_string();
        let files =
            cluster::files_of(file).map_err(|failure| Refused::refused(&name, failure.to_string()))?;
        let lack = files::lacking_orders(&files, &checking.reading, claim.level);
        lack.map_err(|error| Refused::new(&name, error))
    }

    #[expect(clippy::too_many_arguments, reason = "one call, of all that is known")]
    fn tell(
        answer: Answer,
        lack: Option<Undecided>,
        name: &str,
        claim: Claim,
        cost: Cost,
        sink: &mut Sink,
        console: &mut Console,
        progress: &Progress,
    ) -> Outcome {
        let Answer { verdict, size: (transactions, operations, sessions), found, .. } = answer;
        let verdict = if lack.is_some() { VerdictKind::Undecided } else { verdict };
        let exit = Exit::of(verdict);
        let Some(Found { outcome, findings, history, note }) = found else {
            progress.pause(|| console.note(format_args!("{name}: {claim}: {verdict}, as process 0 reports")));
            return Ok(exit);
        };
        if let Some(note) = note {
            progress.pause(|| console.note(format_args!("{name}: {note}")));
        }
        let count = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        let size = Size { transactions: count(transactions), operations: count(operations), sessions };
        let finding = match outcome {
            _ if lack.is_some() => {
                let why = lack.map(|lack| lack.to_string()).unwrap_or_default();
                Finding::undecided(name, claim, why, size, cost)
            }
            None => Finding::accepted(name, claim, size, cost),
            Some(outcome) => {
                sink.history(name, &history);
                let finding = Finding::new(name, claim, &history, &outcome.verdict, cost);
                match findings {
                    Some(findings) => finding.by_timestamps(&history, &findings),
                    None => finding,
                }
            }
        };
        let mut finding = Finding { size, is_gathered: true, ..finding };
        let mut exit = exit;
        if sink.knows(&finding) {
            finding = finding.known();
            exit = Exit::Accepted;
        }
        sink.finding(finding, console, progress)?;
        Ok(exit)
    }

    /// Says how far workers are, until it is dropped.
    struct Watch {
        stop: Option<mpsc::Sender<()>>,
        thread: Option<std::thread::JoinHandle<()>>,
    }

    impl Watch {
        fn start(monitor: Monitor, seconds: u64) -> Self {
            let (stop, stopped) = mpsc::channel::<()>();
            let every = Duration::from_secs(seconds.max(1));
            let thread = std::thread::spawn(move || {
                while stopped.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                    say(&monitor);
                }
                say(&monitor);
            });
            Self { stop: Some(stop), thread: Some(thread) }
        }
    }

    fn say(monitor: &Monitor) {
        let mut said = String::new();
        for standing in monitor.standings() {
            said += &format!("taipan: {standing}\n");
        }
        let bytes = resident_bytes().unwrap_or(0) >> 20;
        said += &format!("taipan: {bytes} MB in all\n");
        if let Some(straggler) = monitor.straggler() {
            said += &format!("taipan: worker {} is far behind the others\n", straggler.worker());
        }
        let _ = anstream::stderr().write_all(said.as_bytes());
    }

    impl Drop for Watch {
        fn drop(&mut self) {
            drop(self.stop.take());
            if let Some(thread) = self.thread.take() {
                let _ = thread.join();
            }
        }
    }

    #[cfg(test)]
    mod tests {
        use super::{ControlFlow, Exit, Failure, after};
        use std::process::ExitCode;

        /// `cluster::check` tells of a worker that panics; see its test of that.
        #[test]
        fn a_worker_that_is_gone_ends_the_run_undecided() {
            let ControlFlow::Break(exit) = after(&Failure::Worker("worker 1 is gone: a bug".to_owned()))
            else {
                panic!("others would wait for it");
            };
            assert_eq!(ExitCode::from(exit), ExitCode::from(2));
            let refused = after(&Failure::Input("no history".to_owned()));
            assert_eq!(refused, ControlFlow::Continue(Exit::Error));
        }
    }
}
