//! The online checker beside a run: every second or so, while no transaction is open, it gets what happened
//! since, with the database's own timestamps.

use crate::exit::Exit;
use checker::Level;
use databases::{Database, Gate, Recorder};
use history::Operation;
use replay::Axiom;
use replay::online::{Found, Kind, Online, Settings};
use std::time::{Duration, Instant};

pub(crate) struct Live {
    online: Online,
    next: Instant,
    /// The first violations, as sentences.
    pub(crate) violations: Vec<String>,
    /// How many there were.
    pub(crate) count: u64,
    /// How many results could not be decided.
    pub(crate) undecided: u64,
    /// Whether every write changes something. A delete of what is not there, and a write of the value that is
    /// there, are no writes to a database: it lets them pass beside each other.
    pub(crate) judges_conflicts: bool,
    trouble: Option<String>,
}

/// How many violations are reported.
const TOLD_MAX: usize = 5;
const INTERVAL: Duration = Duration::from_secs(1);

impl Live {
    /// Checks snapshot isolation: what databases with snapshots keep at every level from there on, and what
    /// timestamps decide. `repeats` says that a value may be written where it is already.
    pub(crate) fn new(level: Level, repeats: bool) -> Result<Self, String> {
        let online = Online::new(Settings::new(level)).map_err(|refusal| refusal.to_string())?;
        Ok(Self {
            online,
            next: Instant::now() + INTERVAL,
            violations: Vec::new(),
            count: 0,
            undecided: 0,
            judges_conflicts: !repeats,
            trouble: None,
        })
    }

    /// Looks, if it is time. Looking takes at most a fifth of the run.
    pub(crate) fn tick(&mut self, gate: &Gate, recorder: &Recorder, database: &dyn Database) {
        if Instant::now() < self.next || self.trouble.is_some() {
            return;
        }
        let started = gate.hold(|| {
            let started = Instant::now();
            // A server that is being restarted answers next time.
            if let Ok(batch) = databases::take_timestamped(recorder, database) {
                self.receive(&batch);
            }
            started
        });
        self.next = Instant::now() + INTERVAL.max(started.elapsed() * 4);
    }

    fn receive(&mut self, batch: &databases::Batch) {
        let may_change_nothing = |op| {
            matches!(op, Operation::Delete { .. } | Operation::Update { .. } | Operation::DeleteWhere { .. })
        };
        if batch.history.transactions().any(|txn| txn.ops().any(|(_, op)| may_change_nothing(op))) {
            self.judges_conflicts = false;
        }
        let result = self.online.receive(&batch.history).and_then(|()| match batch.settled {
            Some(settled) => self.online.advance(settled.into(), Some(settled.into())),
            None => Ok(()),
        });
        self.trouble = result.err().map(|error| error.to_string());
        self.collect();
    }

    /// The rest of the run.
    pub(crate) fn finish(&mut self, recorder: &Recorder, database: &dyn Database) -> Result<(), String> {
        let batch = databases::take_timestamped(recorder, database).map_err(|error| error.to_string())?;
        self.receive(&batch);
        self.online.finish().map_err(|error| error.to_string())?;
        self.collect();
        self.trouble.take().map_or(Ok(()), Err)
    }

    fn collect(&mut self) {
        let findings = self.online.findings().unwrap_or_else(|error| {
            self.trouble.get_or_insert(error.to_string());
            Vec::new()
        });
        for found in findings {
            self.undecided += u64::from(found.kind == Kind::Undecided);
            let is_conflict = found.kind == Kind::Broken(Axiom::NoConflict);
            if found.kind.is_violation() && (self.judges_conflicts || !is_conflict) {
                self.count += 1;
                if self.violations.len() < TOLD_MAX {
                    self.violations.push(sentence(&found));
                }
            }
        }
    }

    /// Transactions whose verdict is final.
    pub(crate) fn settled(&self) -> u64 {
        self.online.counters().settled
    }

    /// What was found says of the exit status.
    pub(crate) fn exit(&self) -> Exit {
        match (self.count, self.undecided) {
            (0, 0) => Exit::Accepted,
            (0, _) => Exit::Undecided,
            _ => Exit::Violated,
        }
    }

    /// How things stand, in a few words.
    pub(crate) fn standing(&self) -> String {
        match (self.count, self.undecided) {
            (0, 0) => format!("{} ordered", self.settled()),
            (0, undecided) => format!("{undecided} results undecided"),
            (count, _) => format!("{count} violations"),
        }
    }
}

/// `3:17 breaks EXT: it saw 4 at key 9, and had to see 5 of 2:8`.
fn sentence(found: &Found) -> String {
    let mut text = format!("{} breaks {}", found.txn.name, found.kind.name());
    if let Some(key) = &found.key {
        text += &format!(" at key {key}");
    }
    if let (Some(seen), Some(expected)) = (&found.seen, &found.expected) {
        text += &format!(": it read {seen}, expected {expected}");
    }
    if let Some(other) = &found.other {
        text += &format!(" of {}", other.name);
    }
    text
}
