//! Small workloads whose histories a test can judge by itself.

use super::Random;
use history::Name;
use taipan_databases::{Client, Plan, Request, Response, Schema, Step, Value};

/// Every transaction reads a counter and writes it back one higher.
pub struct Counters {
    pub keys: i64,
}

impl Plan for Counters {
    fn schema(&self) -> Schema {
        Schema::integers()
    }

    fn initial(&self) -> Vec<(Name, Value)> {
        (0..self.keys).map(|key| (key.into(), Value::Int(0))).collect()
    }

    fn client(&self, session: usize) -> Box<dyn Client + '_> {
        Box::new(CounterClient { keys: self.keys, random: Random(session as u64), key: 0, place: 0 })
    }
}

struct CounterClient {
    keys: i64,
    random: Random,
    key: i64,
    place: usize,
}

impl Client for CounterClient {
    fn next_transaction(&mut self) -> bool {
        self.key = self.random.int(self.keys as u64);
        self.place = 0;
        true
    }

    fn step(&mut self, last: Option<&Response>) -> Step {
        self.place += 1;
        match (self.place, last) {
            (1, _) => Step::Call(Request::read(self.key)),
            (2, Some(Response::Value(Value::Int(seen)))) => Step::Call(Request::write(self.key, seen + 1)),
            (2, other) => panic!("a counter holds {other:?}"),
            _ => Step::Commit,
        }
    }
}

/// Blind writes and reads of unique values; some transactions give up on purpose.
pub struct Blind {
    pub keys: i64,
    pub operations: usize,
}

impl Plan for Blind {
    fn schema(&self) -> Schema {
        Schema::integers()
    }

    fn initial(&self) -> Vec<(Name, Value)> {
        (0..self.keys).map(|key| (key.into(), Value::Int(0))).collect()
    }

    fn client(&self, session: usize) -> Box<dyn Client + '_> {
        let random = Random(session as u64 + 100);
        Box::new(BlindClient { plan: self, random, place: 0, value: (session as i64 + 1) * 10_000_000 })
    }
}

struct BlindClient<'p> {
    plan: &'p Blind,
    random: Random,
    place: usize,
    value: i64,
}

impl Client for BlindClient<'_> {
    fn next_transaction(&mut self) -> bool {
        self.place = 0;
        true
    }

    fn step(&mut self, _last: Option<&Response>) -> Step {
        self.place += 1;
        if self.place > self.plan.operations {
            return if self.random.below(20) == 0 { Step::Rollback } else { Step::Commit };
        }
        let key = self.random.int(self.plan.keys as u64);
        if self.random.below(2) == 0 {
            return Step::Call(Request::read(key));
        }
        self.value += 1;
        Step::Call(Request::write(key, self.value))
    }
}
