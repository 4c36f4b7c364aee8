//! `taipan watch` with its keys on workers, here and on other machines.

use crate::console::{Console, Outcome};
use crate::flags::CrewFlags;
use service::Crew;

#[cfg(not(feature = "cluster"))]
const WITHOUT: &str = "this build of taipan has no workers; build it with --features cluster";

/// The workers that flags ask for; `None` if the engine has the keys itself.
#[cfg(not(feature = "cluster"))]
pub(crate) fn hired(flags: &CrewFlags, _: bool) -> Result<Option<Crew>, String> {
    if flags.are_set() { Err(WITHOUT.to_owned()) } else { Ok(None) }
}

/// What a process does that is not the first; `None` if this is the first.
#[cfg(not(feature = "cluster"))]
pub(crate) fn serve(_: &CrewFlags, _: &mut Console) -> Option<Outcome> {
    None
}

/// Whether a worker is gone.
#[cfg(not(feature = "cluster"))]
pub(crate) fn is_gone(_: &std::io::Error) -> bool {
    false
}

#[cfg(feature = "cluster")]
pub(crate) use several::{hired, is_gone, serve};

#[cfg(feature = "cluster")]
mod several {
    use super::{Console, Crew, CrewFlags, Outcome};
    use crate::clustered::{end, setup_of};
    use crate::console::Stop;
    use crate::exit::Exit;
    use cluster::{Failure, Gone};
    use replay::online::{Cold, Workers};
    use std::io;
    use std::sync::Arc;

    /// The workers that flags ask for; `None` if the engine has the keys itself.
    pub(crate) fn hired(flags: &CrewFlags, is_limited: bool) -> Result<Option<Crew>, String> {
        if !flags.are_set() {
            return Ok(None);
        }
        let setup = setup_of(flags)?;
        if setup.processes() > 1 && is_limited {
            return Err("--max-memory cannot be used with --cluster: data is spilled next to the state, where other processes cannot \
                        read it. Use more processes or a shorter --longest to reduce the memory of each, or --workers without \
                        --cluster"
                .to_owned());
        }
        if let Some(cluster) = &setup.cluster {
            cluster.watch(Arc::new(end));
        }
        Ok(Some(Crew::new(move |spill| {
            // What the state folder holds is here: those elsewhere keep everything in memory.
            let spill = spill.filter(|_| setup.processes() == 1);
            let cold = move |_: usize| spill.clone().map(|spill| Box::new(spill) as Box<dyn Cold>);
            let hands = cluster::hire(&setup, cold)?;
            Ok(Box::new(hands) as Box<dyn Workers>)
        })))
    }

    /// What a process does that is not the first; `None` if this is the first.
    pub(crate) fn serve(flags: &CrewFlags, console: &mut Console) -> Option<Outcome> {
        let process = flags.process.filter(|process| *process > 0)?;
        let setup = match setup_of(flags) {
            Ok(setup) => setup,
            Err(error) => return Some(Err(Stop::Error(error))),
        };
        if let Some(cluster) = &setup.cluster {
            cluster.watch(Arc::new(end));
        }
        console.note(format_args!("process {process} holds keys for process 0, which reports"));
        Some(match cluster::serve(&setup) {
            Ok(()) => Ok(Exit::Accepted),
            Err(Failure::Disagreement(why)) => Err(Stop::Error(why)),
            Err(failure) => {
                console.error(failure);
                Ok(Exit::Undecided)
            }
        })
    }

    /// Whether a worker is gone.
    pub(crate) fn is_gone(error: &io::Error) -> bool {
        Gone::is_behind(error)
    }
}
