//! When bugs show, and how a script is played.
//!
//! **Steps.** 1. Before the first transaction, the places are drawn: numbers of transactions begun. 2. At
//! such a place, every session that is between two transactions waits, until there are as many as the
//! script needs. 3. The script is played in one go: its transactions begin, read what the script says,
//! write new values, and commit without being certified. 4. The sessions go on.
//!
//! **Invariant.** No other transaction commits while a script is played, so what its transactions overwrite
//! is what they are said to have seen, and nothing but the anomaly itself goes wrong.

use crate::bugs::{Act, Bug, LABELS, Label, Role, Slot};
use crate::claims::{Change, Claims};
use crate::executed::{Done, Executed};
use crate::keys::Key;
use crate::plan::{Column, Filter, Piece, RESERVED_FROM, SettingsError, Value};
use crate::random::Random;
use crate::simulation::{Config, Simulation};
use crate::workloads::{LIST_KEYS_MAX, Medium, Workload};
use history::{Lock, Span, Status};
use std::collections::VecDeque;

/// How often a bug shows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Plant {
    /// Exactly so often, at random places.
    Exactly(u64),
    /// So many times a transaction, at random places.
    Rate(f64),
}

/// A bug that shows, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planted {
    /// Which.
    pub bug: Bug,
    /// The transactions of the script: session, and place among its recorded transactions, both from 0.
    pub transactions: Vec<(u32, u64)>,
    /// The keys it happened on.
    pub keys: Vec<Key>,
}

/// What is planted where, in order.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    /// After how many transactions begun, and what.
    places: VecDeque<(u64, Bug)>,
    /// How many values scripts have used.
    values_used: i64,
    /// The next key that no plan uses.
    next_key: u32,
}

impl Schedule {
    pub(crate) fn new(config: &Config, random: &mut Random) -> Result<Self, SettingsError> {
        let mut bugs = Vec::new();
        for &(bug, plant) in &config.bugs {
            let count = match plant {
                Plant::Exactly(count) => count,
                Plant::Rate(rate) => (rate * config.transactions as f64 + random.unit()) as u64,
            };
            let fits = config.transactions / bug.transactions();
            if count > fits {
                let problem = format!(
                    "{count} times {} takes {} transactions each; {} transactions have room for {fits}",
                    bug.name(),
                    bug.transactions(),
                    config.transactions,
                );
                return Err(SettingsError { setting: "transactions", problem });
            }
            bugs.extend(std::iter::repeat_n(bug, count as usize));
        }
        let used: u64 = bugs.iter().map(|bug| bug.transactions()).sum();
        let Some(others) = config.transactions.checked_sub(used) else {
            let problem = format!("the bugs take {used}; there are {}", config.transactions);
            return Err(SettingsError { setting: "transactions", problem });
        };
        let mut places: Vec<(u64, Bug)> =
            bugs.into_iter().map(|bug| (random.below(others + 1), bug)).collect();
        places.sort_by_key(|(place, _)| *place);
        let next_key = match config.plan.workload.medium() {
            Medium::Lists => LIST_KEYS_MAX,
            Medium::Numbers if config.plan.workload.inserts_rows() => LIST_KEYS_MAX,
            Medium::Numbers | Medium::Rows => config.plan.keys,
        };
        Ok(Self { places: places.into(), values_used: 0, next_key })
    }

    /// How many transactions all scripts have.
    pub(crate) fn transactions(&self) -> u64 {
        self.places.iter().map(|(_, bug)| bug.transactions()).sum()
    }

    /// How many sessions have to wait for the script that is due now, if one is.
    #[inline]
    pub(crate) fn due(&self, begun: u64, sessions: u32) -> Option<usize> {
        let (place, bug) = self.places.front()?;
        (*place <= begun).then(|| bug.sessions().min(sessions) as usize)
    }
}

/// A script while it is played.
struct Play {
    bug: Bug,
    /// The transaction of each role.
    places: Vec<u32>,
    keys: [Key; 3],
    /// What each label stands for, and the list that ends with it.
    values: [Value; LABELS],
    lists: [Vec<i64>; LABELS],
}

impl Simulation {
    /// Plays the script that is due with the sessions that wait.
    pub(crate) fn play_script(&mut self) {
        let (_, bug) = self.schedule.places.pop_front().expect("a script is due, or nobody would wait");
        let script = bug.script();
        let keys = self.draw_script_keys();
        let values = [(); LABELS].map(|()| self.next_planted_value());
        let mut play = Play { bug, places: Vec::new(), keys, values, lists: Default::default() };
        for act in script.acts {
            let before = self.clock;
            self.clock += 1 + self.random.below(0x400) as i64;
            self.perform(&mut play, *act);
            if self.config.op_clocks
                && let Some(role) = act.operates()
            {
                let place = play.places[usize::from(role.0)] as usize;
                let executed = &mut self.running[place].executed;
                let ahead = self.sessions[executed.session as usize].clock_ahead;
                executed.times.push(Span { begin: before + 1 + ahead, end: self.clock + ahead });
            }
        }
        let transactions = play.places.iter().map(|&place| {
            let executed = &self.running[place as usize].executed;
            (executed.session, executed.position)
        });
        let mut used: Vec<Key> = Vec::new();
        for act in script.acts {
            if let Act::Write(_, slot, _) = act
                && !used.contains(&play.key(*slot))
            {
                used.push(play.key(*slot));
            }
        }
        let planted = Planted { bug, transactions: transactions.collect(), keys: used };
        self.summary.planted.push(planted);
    }

    /// Two keys of the workload, and one that nobody has used.
    fn draw_script_keys(&mut self) -> [Key; 3] {
        let (x, y) = self.sessions[self.parked[0] as usize].draw_two_keys(&mut self.random);
        let unused = Key(self.schedule.next_key);
        self.schedule.next_key += 2;
        [x, y, unused]
    }

    /// A value that nobody else writes. Where transactions compute what they write from what they read, it is
    /// also far from all others, so that nobody comes upon it by steps.
    fn next_planted_value(&mut self) -> Value {
        let count = self.schedule.values_used;
        self.schedule.values_used += 1;
        match self.config.plan.workload {
            workload if workload == Workload::Bank || workload.inserts_rows() => {
                Value::Int(RESERVED_FROM * (1 + count))
            }
            workload if workload.medium() == Medium::Rows => {
                let number = (RESERVED_FROM + count) as i32;
                Value::Row { v1: number, v2: number }
            }
            _ => Value::Int(RESERVED_FROM + count),
        }
    }

    fn perform(&mut self, play: &mut Play, act: Act) {
        match act {
            Act::Begin(role) => self.begin_role(play, role),
            Act::Write(role, slot, label) => self.write_label(play, role, slot, label),
            Act::Read(role, slot, label) => {
                let executed = self.executed_of(play, role);
                let value = Some(play.seen(label, executed));
                executed.ops.push(Done::Read { key: play.key(slot), value, lock: Lock::None });
            }
            Act::Scan(role, label) => self.scan_unused(play, role, label),
            Act::Commit(role) => {
                self.stamp = self.stamp.next();
                let place = play.places[usize::from(role.0)] as usize;
                let claims = std::mem::take(&mut self.running[place].claims);
                self.apply(&claims);
                self.running[place].claims = claims;
                let commit = self.stamp.0;
                if let Some((_, at)) = &mut self.running[place].executed.db {
                    *at = commit;
                }
                self.summary.committed += 1;
                self.end_role(play, role, Status::Committed);
            }
            Act::Abort(role) => {
                self.executed_of(play, role).db = None;
                self.summary.aborted += 1;
                self.end_role(play, role, Status::Aborted);
            }
            Act::Pause => self.clock += 2 * self.config.clock_skew + 1,
        }
    }

    fn executed_of<'a>(&'a mut self, play: &Play, role: Role) -> &'a mut Executed {
        &mut self.running[play.places[usize::from(role.0)] as usize].executed
    }

    fn claims_of<'a>(&'a mut self, play: &Play, role: Role) -> &'a mut Claims {
        &mut self.running[play.places[usize::from(role.0)] as usize].claims
    }

    fn begin_role(&mut self, play: &mut Play, role: Role) {
        let actor = usize::from(play.bug.script().actors[usize::from(role.0)]);
        let session = self.parked[actor % self.parked.len()];
        let place = self.vacant();
        self.stamp = self.stamp.next();
        let begin = self.clock + self.sessions[session as usize].clock_ahead;
        let executed = &mut self.running[place as usize].executed;
        executed.reset(session, begin);
        executed.db = Some((self.stamp.0, self.stamp.0));
        executed.planted = Some(play.bug);
        debug_assert_eq!(play.places.len(), usize::from(role.0), "roles begin in order");
        play.places.push(place);
    }

    /// The client of a role has its answer.
    fn end_role(&mut self, play: &Play, role: Role, status: Status) {
        let clock = self.clock + 1;
        let place = play.places[usize::from(role.0)];
        let executed = &mut self.running[place as usize].executed;
        let session = &mut self.sessions[executed.session as usize];
        executed.status = status;
        executed.client.end = clock + session.clock_ahead;
        executed.position = session.recorded;
        session.recorded += 1;
        self.finished.push_back(place);
    }

    fn write_label(&mut self, play: &mut Play, role: Role, slot: Slot, label: Label) {
        let key = play.key(slot);
        let value = play.values[usize::from(label.0)];
        let element = match value {
            Value::Int(element) if self.config.plan.workload.medium() == Medium::Lists => element,
            _ => {
                self.claims_of(play, role).changes.push(key, Change::Put(value));
                self.executed_of(play, role).ops.push(Done::Write { key, value });
                return;
            }
        };
        self.claims_of(play, role).changes.push(key, Change::Append(element));
        self.executed_of(play, role).ops.push(Done::Append { key, element });
        // The list as it is now, with what the role has appended.
        let prefix = match self.store.value(key, crate::store::Stamp::LATEST) {
            Value::List(piece) => piece.len,
            _ => 0,
        };
        let mut list = self.store.elements(key, prefix).to_vec();
        list.extend(self.claims_of(play, role).changes.appended(key));
        play.lists[usize::from(label.0)] = list;
    }

    /// Looks for the key that nobody has used: by a scan, or by a query where values are rows.
    fn scan_unused(&mut self, play: &Play, role: Role, label: Option<Label>) {
        let key = play.key(Slot::Unused);
        // The value is known before it is written: a script has one for each label.
        let wanted = play.values[0];
        let executed = self.executed_of(play, role);
        let start = executed.rows.len() as u32;
        if let Some(label) = label {
            let value = play.seen(label, executed);
            executed.rows.push((key, value));
        }
        let rows = Some(Piece { start, len: executed.rows.len() as u32 - start });
        executed.ops.push(match wanted {
            Value::Row { v1, .. } => {
                let low = i64::from(v1);
                Done::Query { filter: Filter { column: Column::V1, low, high: low + 1 }, rows }
            }
            _ => Done::Scan { from: Some(key), to: Some(Key(key.0 + 2)), rows },
        });
    }
}

impl Play {
    fn key(&self, slot: Slot) -> Key {
        match slot {
            Slot::X => self.keys[0],
            Slot::Y => self.keys[1],
            Slot::Unused => self.keys[2],
        }
    }

    /// What a reader sees of a label.
    fn seen(&self, label: Label, executed: &mut Executed) -> Value {
        let list = &self.lists[usize::from(label.0)];
        if list.is_empty() {
            return self.values[usize::from(label.0)];
        }
        let start = executed.elements.len() as u32;
        executed.elements.extend_from_slice(list);
        Value::List(Piece { start, len: list.len() as u32 })
    }
}
