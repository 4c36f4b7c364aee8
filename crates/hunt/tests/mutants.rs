//! An engine with one thing broken at a time: every break is found, reduced and replayed.
//!
//! The breaks sit between the hunt and a healthy engine and act inside transactions only, where the oracle looks for
//! them.

use databases::{Console, Database, Failure, Grammar, Isolation, Scripted, Sqlite, Value};
use std::time::Duration;
use taipan_hunt::{
    CampaignOptions, Examination, Settings, Stage, Summary, Weights, campaign, examine, script,
};
use workload::Random;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Break {
    /// Nothing.
    Nothing,
    /// An UPDATE leaves the row of the greatest key as it was.
    UpdateMissesARow,
    /// A query does not see what its transaction wrote.
    StaleRead,
    /// Rows inserted by a transaction that rolled back are there.
    AbortedInsertStays,
    /// An aggregate is one too high.
    WrongAggregate,
    /// A query with a condition shows one row too few.
    LostMatch,
    /// A return to a savepoint undoes nothing.
    SavepointIgnored,
    /// A transaction never sees what it wrote, except right after writing it: only the level tells.
    OwnWritesUnseen,
    /// A query with a window never ends.
    Hang,
}

struct Mutant {
    engine: Sqlite,
    what: Break,
}

impl Scripted for Mutant {
    fn console(&self) -> Result<Box<dyn Console>, Failure> {
        let scripted = self.engine.scripted().expect("it speaks SQL");
        let (inner, outside) = (scripted.console()?, scripted.console()?);
        let (is_open, wrote) = (false, false);
        Ok(Box::new(Broken { inner, outside, what: self.what, is_open, wrote, inserts: Vec::new() }))
    }

    fn is_waiting(&self, _observer: &mut dyn Console, _id: i64) -> Result<bool, Failure> {
        Ok(false)
    }

    fn grammar(&self) -> &'static Grammar {
        &Grammar::PLAIN
    }

    fn hurry(&self, console: &mut dyn Console) {
        let _ = console.send("PRAGMA synchronous = OFF");
    }

    fn waits(&self) -> bool {
        self.what == Break::Hang
    }
}

struct Broken {
    inner: Box<dyn Console>,
    /// A connection that is never in a transaction.
    outside: Box<dyn Console>,
    what: Break,
    is_open: bool,
    wrote: bool,
    inserts: Vec<String>,
}

impl Console for Broken {
    fn id(&self) -> i64 {
        0
    }

    fn begin(&mut self, isolation: &Isolation) -> Result<(), Failure> {
        (self.is_open, self.wrote) = (true, false);
        self.inserts.clear();
        self.inner.begin(isolation)
    }

    fn send(&mut self, sql: &str) -> Result<Vec<Vec<Value>>, Failure> {
        if !self.is_open {
            return self.inner.send(sql);
        }
        let is_query = sql.starts_with("SELECT") || sql.starts_with("WITH");
        let is_own = is_query && sql.contains(" AS ");
        match self.what {
            Break::UpdateMissesARow if sql.starts_with("UPDATE ") => return self.update_misses_a_row(sql),
            Break::StaleRead if is_own && self.wrote => return self.outside.send(sql),
            Break::OwnWritesUnseen if is_query && self.wrote && !sql.contains("WHERE vkey =") => {
                return self.outside.send(sql);
            }
            Break::Hang if sql.contains("OVER (") => loop {
                std::thread::park();
            },
            Break::SavepointIgnored if sql.starts_with("ROLLBACK TO") => return Ok(Vec::new()),
            _ => {}
        }
        let mut rows = self.inner.send(sql)?;
        self.wrote |= !is_query && !sql.contains("SAVEPOINT");
        if sql.starts_with("INSERT ") {
            self.inserts.push(sql.to_owned());
        }
        match self.what {
            Break::WrongAggregate
                if is_own && ["COUNT(", "SUM(", "MAX("].iter().any(|name| sql.contains(name)) =>
            {
                if let Some(Value::Int(value)) = rows.last_mut().and_then(|row| row.last_mut()) {
                    *value += 1;
                }
            }
            Break::LostMatch if is_own && sql.contains("WHERE") => drop(rows.pop()),
            _ => {}
        }
        if sql == "COMMIT" || sql == "ROLLBACK" {
            self.is_open = false;
        }
        if sql == "ROLLBACK" && self.what == Break::AbortedInsertStays {
            for insert in std::mem::take(&mut self.inserts) {
                let _ = self.inner.send(&insert);
            }
        }
        Ok(rows)
    }
}

impl Broken {
    /// Lets the UPDATE through and puts the row of the greatest key back as it was.
    fn update_misses_a_row(&mut self, sql: &str) -> Result<Vec<Vec<Value>>, Failure> {
        let table = sql.split(' ').nth(1).unwrap_or_default().to_owned();
        let read = format!("SELECT * FROM {table} WHERE pkey = (SELECT MAX(pkey) FROM {table})");
        let row = self.inner.send(&read)?.pop();
        let answer = self.inner.send(sql)?;
        self.wrote = true;
        let names = self.inner.send(&format!("SELECT name FROM pragma_table_info('{table}')"))?;
        let Some(row) = row else { return Ok(answer) };
        let assignments: Vec<String> = names
            .iter()
            .zip(&row)
            .map(|(name, value)| format!("{} = {}", written(&name[0]), quoted(value)))
            .collect();
        self.inner.send(&format!(
            "UPDATE {table} SET {} WHERE pkey = {}",
            assignments.join(", "),
            written(&row[0])
        ))?;
        Ok(answer)
    }
}

fn written(value: &Value) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::Int(value) => value.to_string(),
        Value::Float(value) => value.to_string(),
        Value::Text(text) => text.clone(),
        other => format!("{other:?}"),
    }
}

fn quoted(value: &Value) -> String {
    match value {
        Value::Text(text) => format!("'{text}'"),
        other => written(other),
    }
}

fn mutant(what: Break) -> Mutant {
    Mutant { engine: Sqlite::temporary().expect("a temporary folder"), what }
}

fn hunt(mutant: &Mutant, cases: u64) -> Summary {
    campaign(mutant, &options(mutant, cases), &mut || Ok(None), &mut |_| true).expect("it runs")
}

fn options(mutant: &Mutant, cases: u64) -> CampaignOptions {
    let mut weights = Weights::default();
    assert!(weights.set("savepoint", 10) && weights.set("rollback", 15));
    CampaignOptions {
        settings: Settings { weights, ..Settings::default() },
        examination: Examination::default(),
        levels: vec![*mutant.engine.isolations().last().expect("it has a level")],
        seed: 1,
        cases: Some(cases),
        time: None,
        reduction: Duration::from_secs(20),
        patience: Duration::from_secs(30),
        writes_see_snapshot: false,
        findings_max: Some(1),
    }
}

/// Found, small, and found again from the file alone; the file shows nothing on the healthy engine.
fn is_found(what: Break, statements_max: usize) {
    let broken = mutant(what);
    let summary = hunt(&broken, 2000);
    let [group] = summary.groups.as_slice() else {
        panic!("{what:?}: found {:?} in {} cases", summary.groups.len(), summary.cases);
    };
    let text = &group.discovery.script;
    let parsed = script::parse(text).expect("what was written can be read");
    assert_eq!(parsed.case, group.discovery.examined.case);
    assert!(parsed.case.statements().count() <= statements_max, "it is reduced:\n{text}");
    let replay = |mutant: &Mutant| {
        let isolation = group.discovery.isolation;
        let mut stage = Stage::open(mutant, isolation).expect("it opens");
        examine(&mut stage, &parsed.case, &Examination::default(), &mut Random::new(0))
            .expect("it runs")
            .finding
    };
    assert!(replay(&broken).is_some(), "the file shows it again");
    assert_eq!(replay(&mutant(Break::Nothing)), None, "the healthy engine is not blamed");
}

#[test]
fn an_update_that_misses_a_row() {
    is_found(Break::UpdateMissesARow, 2);
}

#[test]
fn a_query_that_does_not_see_its_own_transaction() {
    is_found(Break::StaleRead, 2);
}

#[test]
fn an_aborted_insert_that_stays() {
    is_found(Break::AbortedInsertStays, 2);
}

#[test]
fn a_wrong_aggregate() {
    is_found(Break::WrongAggregate, 1);
}

#[test]
fn a_lost_match_of_a_condition() {
    is_found(Break::LostMatch, 1);
}

#[test]
fn a_savepoint_that_undoes_nothing() {
    is_found(Break::SavepointIgnored, 3);
}

#[test]
fn a_transaction_that_never_sees_its_own_writes() {
    is_found(Break::OwnWritesUnseen, 3);
}

#[test]
fn a_statement_that_never_ends() {
    let broken = mutant(Break::Hang);
    let options = CampaignOptions {
        patience: Duration::from_millis(500),
        reduction: Duration::from_secs(5),
        ..options(&broken, 200)
    };
    let mut revived = 0;
    let mut revive = || {
        revived += 1;
        Ok(None)
    };
    let summary = campaign(&broken, &options, &mut revive, &mut |_| true).expect("it goes on");
    let [group] = summary.groups.as_slice() else { panic!("not found in {} cases", summary.cases) };
    assert!(group.signature.starts_with("hang"), "{}", group.signature);
    assert!(revived > 0);
}

#[test]
fn nothing_on_the_healthy_engine() {
    let summary = hunt(&mutant(Break::Nothing), 300);
    assert_eq!(summary.groups.len(), 0);
    assert_eq!(summary.fleeting, 0);
    assert_eq!(summary.cases, 300);
}
