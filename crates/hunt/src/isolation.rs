//! The same execution as a history, held to the database's own promise by the checker (TxCheck, Jiang et al., OSDI 2023, §4, *Isolation Bug
//! Detection*).
//!
//! Only items count: the version-set reads and what writes installed are exact, while what a condition depends on is
//! only bounded. Each version-set read is a read of every row of its table that anybody ever saw, absent ones included;
//! versions are the values. Executions in which two statements install one version are left out.

use crate::case::{Act, Case, Kind, TableNo};
use crate::execute::{Fate, Observed, Run, items};
use evidence::check;
use history::{Builder, History, Lock, Status, TxnId, ValueId};
use isolation::{Level, Options, Verdict};
use std::collections::{BTreeMap, BTreeSet};

/// A broken promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The level that was promised.
    pub level: String,
    /// The anomaly's name.
    pub anomaly: String,
    /// The transactions that have no explanation, by name.
    pub transactions: Vec<String>,
}

/// Holds an execution to a level; `None` if it keeps it, or if nobody can tell.
pub fn broken(case: &Case, run: &Run, promise: &str) -> Option<Broken> {
    let level = Level::parse(promise).ok()?;
    if case.statements().any(|(_, statement)| statement.shared) {
        return None;
    }
    let history = history(case, run)?;
    let options = Options { threads: 1, ..Options::default() };
    match check(&history, level, &options).verdict {
        Verdict::Violated(evidence) => {
            let name = |txn: &TxnId| history.transaction(*txn).name().to_string();
            Some(Broken {
                level: promise.to_owned(),
                anomaly: evidence.anomaly.name,
                transactions: evidence.transactions.iter().map(name).collect(),
            })
        }
        Verdict::Accepted(_) | Verdict::Undecided(_) => None,
    }
}

/// The execution as a history; every transaction is a session of its own.
pub fn history(case: &Case, run: &Run) -> Option<History> {
    let mut builder = Builder::new();
    let known = known(case, run);
    let installed: BTreeSet<i64> = case.statements().map(|(_, statement)| statement.version).collect();
    let key_name = |table: TableNo, key: i64| format!("{}:{key}", case.tables[table.index()]);
    for (&(table, key), version) in &known {
        if let Some(version) = version.filter(|version| !installed.contains(version)) {
            let (name, value) = (builder.key(key_name(table, key).as_str().into()), builder.int(version));
            builder.initial(name, value);
        }
    }
    for (txn, fate) in run.fates.iter().enumerate() {
        let status = match fate {
            Fate::Committed(_) => Status::Committed,
            Fate::Aborted(_) => Status::Aborted,
            Fate::Absent => continue,
        };
        let session = builder.session(i64::try_from(txn).ok()?.into());
        builder.begin(session);
        builder.set_id(format!("T{txn}").as_str().into()).ok()?;
        builder.set_status(status);
        for step in case.steps.iter().filter(|step| step.txn.index() == txn) {
            let Act::Statement(statement) = &step.act else { continue };
            let Some(seen) = run.observed.get(&step.number) else { continue };
            if run.undone.contains(&step.number) {
                continue;
            }
            read(&mut builder, &known, seen, &key_name);
            if let Some(table) = statement.target {
                write(&mut builder, statement.kind, table, seen, &key_name);
            }
        }
        builder.end().ok()?;
    }
    builder.finish().ok()
}

/// Every row that anybody saw, with the oldest version that is known of it.
type Known = BTreeMap<(TableNo, i64), Option<i64>>;

fn known(case: &Case, run: &Run) -> Known {
    let mut known = Known::new();
    let installed: BTreeSet<i64> = case.statements().map(|(_, statement)| statement.version).collect();
    for (step, statement) in case.statements() {
        let Some(seen) = run.observed.get(&step.number) else { continue };
        let of_target = |rows| statement.target.map(|table| (table, items(rows)));
        let reads = seen.versions.iter().cloned();
        for (table, rows) in reads.chain(of_target(&seen.before)).chain(of_target(&seen.after)) {
            for (key, version) in rows {
                let first = known.entry((table, key)).or_default();
                if !installed.contains(&version) {
                    *first = Some(version);
                }
            }
        }
    }
    known
}

fn read(builder: &mut Builder, known: &Known, seen: &Observed, name: &impl Fn(TableNo, i64) -> String) {
    for (table, rows) in &seen.versions {
        let found: BTreeMap<i64, i64> = rows.iter().copied().collect();
        for (&(_, key), _) in known.range((*table, i64::MIN)..=(*table, i64::MAX)) {
            let value = found.get(&key).map_or(ValueId::ABSENT, |version| builder.int(*version));
            let key = builder.key(name(*table, key).as_str().into());
            builder.read(key, value, Lock::None);
        }
    }
}

fn write(
    builder: &mut Builder,
    kind: Kind,
    table: TableNo,
    seen: &Observed,
    name: &impl Fn(TableNo, i64) -> String,
) {
    if kind == Kind::Delete {
        for (key, _) in items(&seen.before) {
            let key = builder.key(name(table, key).as_str().into());
            builder.delete(key);
        }
    }
    for (key, version) in items(&seen.after) {
        let (key, value) = (builder.key(name(table, key).as_str().into()), builder.int(version));
        builder.write(key, value);
    }
}
