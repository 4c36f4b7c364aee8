//! The bugs that can be planted, each as a script: who writes what, who sees what, in which order.
//!
//! **What.** A script is played at once, on keys of the workload, by sessions that are between two
//! transactions: the store is made to answer exactly what the script says, and nobody else's commit falls
//! in between. All values it writes are new in the whole history, so what its reads saw is certain and no
//! other transaction can explain them: the anomaly is there, whatever the rest of the history holds.
//!
//! **What each one breaks.** [`Bug::breaks`] names the weakest levels of the levels table that forbid it;
//! every level that implies one of them forbids it too, all others accept the script.

use crate::simulation::Strength;

/// An isolation bug that the simulated database can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bug {
    /// Two transactions read the same version of a key and both overwrite it.
    LostUpdate,
    /// Two transactions read the same two keys, and each overwrites another one of them.
    WriteSkew,
    /// Two readers see two independent writes in opposite orders.
    LongFork,
    /// A transaction reads what an aborted one wrote.
    AbortedRead,
    /// A transaction reads a value that its writer overwrote before it committed.
    IntermediateRead,
    /// A transaction sees one of two writes that another one made together.
    FracturedRead,
    /// A transaction misses what was committed, in another session, before it began.
    StaleRead,
    /// A transaction reads a key twice, and sees two versions.
    NonRepeatableRead,
    /// A transaction scans a range twice, and sees a key the second time only.
    Phantom,
    /// A transaction sees an effect and misses its cause.
    CausalityViolation,
}

/// A name that no bug has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownBug {
    /// What was asked for.
    pub name: String,
}

impl std::fmt::Display for UnknownBug {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = TABLE.iter().map(|row| row.name);
        f.write_str(&history::suggest::unknown("bug", &self.name, names))
    }
}

impl std::error::Error for UnknownBug {}

/// A transaction of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Role(pub(crate) u8);

/// A key of a script. The third is one that nobody has used before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    X,
    Y,
    Unused,
}

/// A value of a script: each is written once, and new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Label(pub(crate) u8);

/// One act of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    Begin(Role),
    Write(Role, Slot, Label),
    /// The key has the value that was written under the label.
    Read(Role, Slot, Label),
    /// A scan around the unused key, or a query for its value; with the label it is there.
    Scan(Role, Option<Label>),
    Commit(Role),
    Abort(Role),
    /// Time passes, more than clocks differ.
    Pause,
}

impl Act {
    /// The role that issues an operation, if it is one.
    pub(crate) fn operates(self) -> Option<Role> {
        match self {
            Self::Write(role, ..) | Self::Read(role, ..) | Self::Scan(role, _) => Some(role),
            Self::Begin(_) | Self::Commit(_) | Self::Abort(_) | Self::Pause => None,
        }
    }
}

pub(crate) struct Script {
    /// Which of the sessions that take part plays each role; roles of one session never overlap.
    pub(crate) actors: &'static [u8],
    pub(crate) acts: &'static [Act],
}

struct Row {
    bug: Bug,
    name: &'static str,
    about: &'static str,
    breaks: &'static [&'static str],
    broken_from: Strength,
    script: Script,
}

// The roles, keys and labels of scripts, as short as they are used.
const T0: Role = Role(0);
const T1: Role = Role(1);
const T2: Role = Role(2);
const T3: Role = Role(3);
const T4: Role = Role(4);
const X: Slot = Slot::X;
const Y: Slot = Slot::Y;
const X0: Label = Label(0);
const X1: Label = Label(1);
const X2: Label = Label(2);
const Y0: Label = Label(3);
const Y1: Label = Label(4);
/// How many labels there are.
pub(crate) const LABELS: usize = 5;

use Act::{Abort, Begin, Commit, Pause, Read, Scan, Write};

const TABLE: &[Row] = &[
    Row {
        bug: Bug::LostUpdate,
        name: "lost-update",
        about: "two transactions read the same version of a key and both overwrite it",
        breaks: &["cursor-stability"],
        broken_from: Strength::SnapshotIsolation,
        script: Script {
            actors: &[0, 0, 1],
            acts: &[
                Begin(T0),
                Write(T0, X, X0),
                Commit(T0),
                Begin(T1),
                Begin(T2),
                Read(T1, X, X0),
                Read(T2, X, X0),
                Write(T1, X, X1),
                Commit(T1),
                Write(T2, X, X2),
                Commit(T2),
            ],
        },
    },
    Row {
        bug: Bug::WriteSkew,
        name: "write-skew",
        about: "two transactions read the same two keys, and each overwrites a different one",
        breaks: &["repeatable-read", "update-serializable"],
        broken_from: Strength::Serializable,
        script: Script {
            actors: &[0, 0, 1],
            acts: &[
                Begin(T0),
                Write(T0, X, X0),
                Write(T0, Y, Y0),
                Commit(T0),
                Begin(T1),
                Begin(T2),
                Read(T1, X, X0),
                Read(T1, Y, Y0),
                Read(T2, X, X0),
                Read(T2, Y, Y0),
                Write(T1, X, X1),
                Commit(T1),
                Write(T2, Y, Y1),
                Commit(T2),
            ],
        },
    },
    Row {
        bug: Bug::LongFork,
        name: "long-fork",
        about: "two readers see two independent writes in opposite orders",
        breaks: &["snapshot-isolation", "repeatable-read", "prefix"],
        broken_from: Strength::SnapshotIsolation,
        script: Script {
            // The readers begin before the writers end: real time has nothing to say on it.
            actors: &[0, 0, 1, 2, 3],
            acts: &[
                Begin(T0),
                Write(T0, X, X0),
                Write(T0, Y, Y0),
                Commit(T0),
                Begin(T1),
                Begin(T2),
                Begin(T3),
                Begin(T4),
                Write(T1, X, X1),
                Write(T2, Y, Y1),
                Commit(T1),
                Commit(T2),
                Read(T3, X, X1),
                Read(T3, Y, Y0),
                Read(T4, Y, Y1),
                Read(T4, X, X0),
                Commit(T3),
                Commit(T4),
            ],
        },
    },
    Row {
        bug: Bug::AbortedRead,
        name: "aborted-read",
        about: "a transaction reads the write of an aborted one",
        breaks: &["read-committed"],
        broken_from: Strength::ReadCommitted,
        script: Script {
            actors: &[0, 1],
            acts: &[Begin(T0), Begin(T1), Write(T0, X, X0), Read(T1, X, X0), Abort(T0), Commit(T1)],
        },
    },
    Row {
        bug: Bug::IntermediateRead,
        name: "intermediate-read",
        about: "a transaction reads a value that its writer overwrote before committing",
        breaks: &["read-committed"],
        broken_from: Strength::ReadCommitted,
        script: Script {
            actors: &[0, 1],
            acts: &[
                Begin(T0),
                Begin(T1),
                Write(T0, X, X0),
                Read(T1, X, X0),
                Write(T0, X, X1),
                Commit(T0),
                Commit(T1),
            ],
        },
    },
    Row {
        bug: Bug::FracturedRead,
        name: "fractured-read",
        about: "a transaction sees only one of two writes of another transaction",
        breaks: &["consistent-view", "repeatable-read", "read-atomic"],
        broken_from: Strength::SnapshotIsolation,
        script: Script {
            actors: &[0, 0, 1],
            acts: &[
                Begin(T0),
                Write(T0, X, X0),
                Write(T0, Y, Y0),
                Commit(T0),
                Begin(T1),
                Begin(T2),
                Read(T2, Y, Y0),
                Write(T1, X, X1),
                Write(T1, Y, Y1),
                Commit(T1),
                Read(T2, X, X1),
                Commit(T2),
            ],
        },
    },
    Row {
        bug: Bug::StaleRead,
        name: "stale-read",
        about: "a transaction misses a write that another session committed before it began",
        breaks: &["strict-serializable", "strong-snapshot-isolation", "forward-consistent-view"],
        broken_from: Strength::Strict,
        script: Script {
            actors: &[0, 0, 1],
            acts: &[
                Begin(T0),
                Write(T0, X, X0),
                Commit(T0),
                Begin(T1),
                Read(T1, X, X0),
                Write(T1, X, X1),
                Commit(T1),
                Pause,
                Begin(T2),
                Read(T2, X, X0),
                Commit(T2),
            ],
        },
    },
    Row {
        bug: Bug::NonRepeatableRead,
        name: "non-repeatable-read",
        about: "a transaction reads a key twice and sees two versions",
        breaks: &["consistent-view", "repeatable-read", "read-atomic"],
        broken_from: Strength::SnapshotIsolation,
        script: Script {
            actors: &[0, 0, 1],
            acts: &[
                Begin(T0),
                Write(T0, X, X0),
                Commit(T0),
                Begin(T1),
                Begin(T2),
                Read(T2, X, X0),
                Write(T1, X, X1),
                Commit(T1),
                Read(T2, X, X1),
                Commit(T2),
            ],
        },
    },
    Row {
        bug: Bug::Phantom,
        name: "phantom",
        about: "a transaction scans a range twice and sees a key only the second time",
        breaks: &["consistent-view", "read-atomic"],
        broken_from: Strength::SnapshotIsolation,
        script: Script {
            actors: &[0, 1],
            acts: &[
                Begin(T0),
                Begin(T1),
                Scan(T1, None),
                Write(T0, Slot::Unused, X0),
                Commit(T0),
                Scan(T1, Some(X0)),
                Commit(T1),
            ],
        },
    },
    Row {
        bug: Bug::CausalityViolation,
        name: "causality-violation",
        about: "a transaction sees an effect but not its cause",
        breaks: &["monotonic-view", "repeatable-read", "causal"],
        broken_from: Strength::SnapshotIsolation,
        script: Script {
            actors: &[0, 0, 1, 2],
            acts: &[
                Begin(T0),
                Write(T0, X, X0),
                Commit(T0),
                Begin(T1),
                Read(T1, X, X0),
                Write(T1, X, X1),
                Commit(T1),
                Begin(T2),
                Read(T2, X, X1),
                Write(T2, Y, Y1),
                Commit(T2),
                Begin(T3),
                Read(T3, Y, Y1),
                Read(T3, X, X0),
                Commit(T3),
            ],
        },
    },
];

impl Bug {
    /// All bugs.
    pub fn all() -> impl ExactSizeIterator<Item = Self> {
        TABLE.iter().map(|row| row.bug)
    }

    /// The bug of a name.
    pub fn parse(name: &str) -> Result<Self, UnknownBug> {
        let found = TABLE.iter().find(|row| row.name == name).map(|row| row.bug);
        found.ok_or_else(|| UnknownBug { name: name.to_owned() })
    }

    fn row(self) -> &'static Row {
        TABLE.iter().find(|row| row.bug == self).expect("the table has every bug")
    }

    /// The way it is written.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// What happens, in words.
    pub fn about(self) -> &'static str {
        self.row().about
    }

    /// The weakest levels that forbid it.
    pub fn breaks(self) -> &'static [&'static str] {
        self.row().breaks
    }

    /// The weakest simulated database whose promise it breaks; all stronger ones forbid it too.
    pub fn broken_from(self) -> Strength {
        self.row().broken_from
    }

    pub(crate) fn script(self) -> &'static Script {
        &self.row().script
    }

    /// How many transactions it takes.
    pub fn transactions(self) -> u64 {
        self.script().actors.len() as u64
    }

    /// How many sessions it needs.
    pub fn sessions(self) -> u32 {
        self.script().actors.iter().map(|&actor| u32::from(actor) + 1).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn role_of(act: &Act) -> Option<Role> {
        match *act {
            Begin(role) | Commit(role) | Abort(role) => Some(role),
            Write(role, ..) | Read(role, ..) | Scan(role, _) => Some(role),
            Pause => None,
        }
    }

    #[test]
    fn names_are_unique_and_resolve() {
        for bug in Bug::all() {
            assert_eq!(Bug::parse(bug.name()), Ok(bug));
            assert!(!bug.breaks().is_empty() && !bug.about().is_empty());
        }
        let error = Bug::parse("lost").expect_err("no such bug").to_string();
        assert!(error.contains("lost-update"), "{error}");
    }

    #[test]
    fn scripts_are_plays_that_can_be_played() {
        for bug in Bug::all() {
            let script = bug.script();
            let mut open: HashMap<u8, Role> = HashMap::new();
            let mut done = 0;
            let mut written = Vec::new();
            for act in script.acts {
                let Some(role) = role_of(act) else { continue };
                let actor = script.actors[usize::from(role.0)];
                match act {
                    Begin(_) => assert_eq!(open.insert(actor, role), None, "{bug:?}: {act:?} overlaps"),
                    Commit(_) | Abort(_) => {
                        assert_eq!(open.remove(&actor), Some(role), "{bug:?}: {act:?} of what is not open");
                        done += 1;
                    }
                    _ => assert_eq!(open.get(&actor), Some(&role), "{bug:?}: {act:?} outside"),
                }
                match *act {
                    Write(_, slot, label) => {
                        assert!(
                            written.iter().all(|(_, earlier)| *earlier != label),
                            "{bug:?}: {label:?} twice"
                        );
                        written.push((slot, label));
                    }
                    Read(_, slot, label) => assert!(written.contains(&(slot, label)), "{bug:?}: {act:?}"),
                    _ => {}
                }
            }
            assert!(open.is_empty(), "{bug:?} leaves a transaction open");
            assert_eq!(done, script.actors.len(), "{bug:?}");
        }
    }
}
