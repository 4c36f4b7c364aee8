//! Plans of the `workload` crate, carried out on a database.

use crate::driver::Access;
use crate::run::{Client, Plan, Step};
use crate::schema::Schema;
use history::{Comparison, Lock, Name};
use record::{Condition, KeyRange, Request, Response, Value};
use std::collections::HashMap;
use workload::{Column, Filter, Key, Rule, SessionPlan, Settings, SettingsError, Template, Workload};

/// A workload's plan as the runner takes it. Keys are integers.
#[derive(Clone, Debug)]
pub struct WorkloadPlan {
    settings: Settings,
    sessions: Vec<SessionPlan>,
    lock: Lock,
    naming: Naming,
}

/// What the keys of a plan are called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Naming {
    /// By their number: neighbours in the plan are neighbours in the database.
    #[default]
    InOrder,
    /// By a number that is spread over the whole range, so that keys in use at the same time lie on
    /// different pages. Databases that track reads by page then see fewer conflicts that are none.
    Spread,
}

impl WorkloadPlan {
    /// The plan of these settings; refuses settings that make no sense.
    pub fn new(settings: Settings) -> Result<Self, SettingsError> {
        let sessions = (0..settings.sessions)
            .map(|session| SessionPlan::new(&settings, session))
            .collect::<Result<_, _>>()?;
        Ok(Self { settings, sessions, lock: Lock::None, naming: Naming::InOrder })
    }

    /// Makes every point read of a transaction that writes a locking read.
    pub fn with_locking_reads(self, lock: Lock) -> Self {
        Self { lock, ..self }
    }

    /// Sets what keys are called.
    pub fn with_naming(self, naming: Naming) -> Self {
        Self { naming, ..self }
    }

    /// What it was made of.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }
}

impl Plan for WorkloadPlan {
    fn sessions_max(&self) -> usize {
        self.sessions.len()
    }

    fn schema(&self) -> Schema {
        match self.settings.workload {
            Workload::Predicate | Workload::Everything => Schema::rows(&[V1, V2]),
            Workload::ListAppend => Schema::lists(),
            _ => Schema::integers(),
        }
    }

    fn initial(&self) -> Vec<(Name, Value)> {
        self.settings.initial_rows().map(|(key, value)| (self.naming.name(key), value_of(value))).collect()
    }

    fn client(&self, session: usize) -> Box<dyn Client + '_> {
        let plan = self.sessions[session].clone();
        Box::new(TemplateClient {
            plan,
            template: Template::default(),
            lock: self.lock,
            naming: self.naming,
            place: 0,
            reading: None,
            numbers: HashMap::new(),
        })
    }
}

struct TemplateClient {
    plan: SessionPlan,
    template: Template,
    lock: Lock,
    naming: Naming,
    /// The next step of the template.
    place: usize,
    /// The key of the point read whose answer is awaited.
    reading: Option<Key>,
    /// What the transaction last read at each key.
    numbers: HashMap<Key, i64>,
}

impl Client for TemplateClient {
    fn next_transaction(&mut self) -> bool {
        self.plan.next(&mut self.template);
        self.place = 0;
        self.reading = None;
        self.numbers.clear();
        true
    }

    fn access(&self) -> Access {
        if self.template.is_read_only() { Access::ReadOnly } else { Access::ReadWrite }
    }

    fn step(&mut self, last: Option<&Response>) -> Step {
        if let (Some(key), Some(Response::Value(value))) = (self.reading.take(), last) {
            self.numbers.insert(key, value.as_int().unwrap_or(0));
        }
        let Some(&step) = self.template.steps.get(self.place) else { return Step::Commit };
        self.place += 1;
        self.request(step).map_or_else(|| self.step(None), Step::Call)
    }
}

impl TemplateClient {
    /// What a step sends; `None` if it sends nothing and the transaction goes on.
    fn request(&mut self, step: workload::Step) -> Option<Request> {
        let naming = self.naming;
        let name = |key| naming.name(key);
        let request = match step {
            workload::Step::Read { key, lock } => {
                self.reading = Some(key);
                let lock = match lock {
                    Lock::None if !self.template.is_read_only() => self.lock,
                    asked => asked,
                };
                Request::Read { key: name(key), lock }
            }
            workload::Step::Write { key, value } => {
                let value = match value {
                    Rule::Put(value) => value_of(value),
                    Rule::Plus(more) => Value::Int(self.number(key) + more),
                };
                Request::Write { key: name(key), value }
            }
            workload::Step::Delete { key } => Request::Delete { key: name(key) },
            workload::Step::Append { key, element } => {
                Request::Append { key: name(key), value: Value::Int(element) }
            }
            workload::Step::Scan { from, to } => {
                Request::Scan { range: KeyRange { from: from.map(name), to: to.map(name) } }
            }
            workload::Step::Iterate { from, to, reverse, rows_max } => Request::Iterate {
                range: KeyRange { from: Some(name(from)), to: Some(name(to)) },
                reverse,
                limit: rows_max,
            },
            workload::Step::Query { filter } => Request::Query { condition: condition(filter) },
            workload::Step::Update { filter, set } => {
                Request::Update { condition: condition(filter), set: value_of(set) }
            }
            workload::Step::DeleteWhere { filter } => Request::DeleteWhere { condition: condition(filter) },
            workload::Step::Require { key, at_least } => {
                if self.number(key) < at_least {
                    self.place = self.template.steps.len();
                }
                return None;
            }
        };
        Some(request)
    }

    fn number(&self, key: Key) -> i64 {
        self.numbers.get(&key).copied().unwrap_or(0)
    }
}

const V1: &str = "v1";
const V2: &str = "v2";

impl Naming {
    fn name(self, key: Key) -> Name {
        Name::Int(i64::from(match self {
            Self::InOrder => key.0,
            // An odd factor: different keys keep different names.
            Self::Spread => key.0.wrapping_mul(0x9e37_79b1),
        }))
    }
}

fn value_of(value: workload::Value) -> Value {
    match value {
        workload::Value::Int(number) => Value::Int(number),
        workload::Value::Row { v1, v2 } => {
            Value::Row(vec![(V1.into(), Value::Int(v1.into())), (V2.into(), Value::Int(v2.into()))])
        }
        // Plans write no lists: a list grows by appends.
        workload::Value::Absent | workload::Value::List(_) => Value::Null,
    }
}

fn condition(filter: Filter) -> Condition {
    let column = match filter.column {
        Column::Value => record::SCALAR_COLUMN,
        Column::V1 => V1,
        Column::V2 => V2,
    };
    Condition::All(vec![
        Condition::compare(column, Comparison::GreaterOrEqual, Value::Int(filter.low)),
        Condition::compare(column, Comparison::Less, Value::Int(filter.high)),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Drives a client against a map of numbers; returns the requests of each transaction.
    fn drive(settings: Settings, transactions: usize) -> Vec<Vec<Request>> {
        let plan = WorkloadPlan::new(settings).expect("settings of a named workload make sense");
        let mut numbers: HashMap<Name, Value> = plan.initial().into_iter().collect();
        let mut client = plan.client(0);
        let mut all = Vec::new();
        for _ in 0..transactions {
            assert!(client.next_transaction());
            let mut requests = Vec::new();
            let mut last = None;
            while let Step::Call(request) = client.step(last.as_ref()) {
                last = Some(match &request {
                    Request::Read { key, .. } => {
                        Response::Value(numbers.get(key).cloned().unwrap_or(Value::Null))
                    }
                    Request::Write { key, value } => {
                        numbers.insert(key.clone(), value.clone());
                        Response::Done
                    }
                    _ => Response::Done,
                });
                requests.push(request);
            }
            all.push(requests);
        }
        all
    }

    #[test]
    fn the_bank_moves_what_it_read_and_overdraws_nothing() {
        let settings = Settings { sessions: 2, keys: 4, ..Workload::Bank.settings() };
        let mut balances: HashMap<Name, i64> = HashMap::new();
        let mut writes = 0;
        for request in drive(settings, 2000).into_iter().flatten() {
            if let Request::Write { key, value: Value::Int(value) } = request {
                assert!(value >= 0, "{key} holds {value}");
                balances.insert(key, value);
                writes += 1;
            }
        }
        assert!(writes > 100);
        assert_eq!(balances.len(), 4);
        assert_eq!(balances.values().sum::<i64>(), 400, "four accounts of 100");
    }

    #[test]
    fn every_workload_has_a_table_for_its_values() {
        for workload in Workload::ALL {
            let plan = WorkloadPlan::new(workload.settings()).expect("its own settings make sense");
            let schema = plan.schema();
            for (key, value) in plan.initial().into_iter().take(10) {
                let request = Request::Write { key, value };
                assert!(crate::dialect::SQLITE.statement(&schema, &request).is_ok(), "{workload:?}");
            }
            for request in drive(workload.settings(), 200).into_iter().flatten() {
                let statement = crate::dialect::POSTGRES.statement(&schema, &request);
                assert!(statement.is_ok(), "{workload:?}: {request:?}: {statement:?}");
            }
        }
    }

    #[test]
    fn locking_reads_are_for_transactions_that_write() {
        let settings = Workload::ReadModifyWrite.settings();
        let plan = WorkloadPlan::new(settings).expect("its own settings make sense");
        let plan = plan.with_locking_reads(Lock::Update);
        let mut client = plan.client(0);
        for _ in 0..200 {
            client.next_transaction();
            let read_only = client.access() == Access::ReadOnly;
            while let Step::Call(request) = client.step(Some(&Response::Value(Value::Int(1)))) {
                if let Request::Read { lock, .. } = request {
                    assert_eq!(lock == Lock::None, read_only);
                }
            }
        }
    }
}
