//! Applications: the transactions of TPC-C, RUBiS, C-Twitter and Retwis, over keys that hold numbers, and
//! transactions made to show single anomalies.
//!
//! A row is a key. A number that an application adds to (an order counter, a balance, a count of bids) is
//! read and written with what was read; every other write has a new value. Rows that an application inserts
//! get keys of their session's own, so that a plan needs no answers to name them: an order's key does not
//! come from its district's counter, though the counter is read and raised as ever. Keys next to each other
//! are read one by one, as key-value stores have it, or scanned if `range-max` allows that many.
//!
//! Sources: TPC-C, revision 5.11, clauses 1.2 and 2.4 to 2.8, with a tenth of its customers and a hundredth
//! of its items; the mixes of C-Twitter and RUBiS after Cobra (OSDI 2020, §6); Retwis as TAPIR measures it
//! (SOSP 2015, table 2).

use crate::keys::Key;
use crate::plan::{Rule, SessionPlan, Settings, Step, Value};
use crate::workloads::{LIST_KEYS_MAX, Workload};
use history::Lock;
use std::collections::VecDeque;

const ITEMS: u32 = 1000;
const DISTRICTS: u32 = 10;
/// A district's customers; as many as this next to each other have the same last name.
const CUSTOMERS: u32 = 300;
const NAMESAKES: u32 = 3;

/// The rows of one warehouse: its balance, counters and balances of its districts, customers and stock.
const PER_WAREHOUSE: u32 = 1 + 2 * DISTRICTS + DISTRICTS * CUSTOMERS + ITEMS;

/// Rows that belong to a user, or to an item and its seller.
const PER_MEMBER: u32 = 10;
/// How many others a user of C-Twitter follows.
const FOLLOWED: u32 = 5;

/// Keys for new rows are handed to sessions in pieces of this many.
const PIECE: u32 = 1024;
/// How many of its own orders a session remembers.
const ORDERS_MAX: usize = 64;

/// The keys of so many warehouses, with the items that they share.
pub(crate) fn tpcc_keys(warehouses: u32) -> u32 {
    warehouses.saturating_mul(PER_WAREHOUSE).saturating_add(ITEMS)
}

impl Workload {
    /// Whether its transactions insert rows beyond the keys of the settings.
    pub(crate) fn inserts_rows(self) -> bool {
        matches!(self, Self::Tpcc | Self::Rubis | Self::Twitter | Self::Retwis)
    }

    /// The keys that are there from the beginning, whatever the settings say.
    fn keys_min(self) -> u32 {
        match self {
            Self::Tpcc => tpcc_keys(1),
            _ => PER_MEMBER,
        }
    }
}

/// What a session remembers of what it was asked to do.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory {
    /// Keys for new rows: how many pieces were begun, and how much of the last one is used.
    pieces: u32,
    used: u32,
    /// Orders that it placed and has not delivered yet, oldest first.
    orders: VecDeque<Order>,
}

/// An order of TPC-C: its row, its mark as a new one, and its lines lie at keys next to each other.
#[derive(Clone, Copy, Debug)]
struct Order {
    row: Key,
    lines: u32,
    warehouse: u32,
    district: u32,
    customer: Key,
}

impl Order {
    fn mark(self) -> Key {
        Key(self.row.0 + 1)
    }

    fn line(self, number: u32) -> Key {
        Key(self.row.0 + 2 + number)
    }
}

/// Where TPC-C's rows are.
#[derive(Clone, Copy)]
struct Warehouse(u32);

impl Warehouse {
    fn row(self, place: u32) -> Key {
        Key(ITEMS + self.0 * PER_WAREHOUSE + place)
    }

    fn balance(self) -> Key {
        self.row(0)
    }

    fn next_order(self, district: u32) -> Key {
        self.row(1 + district)
    }

    fn district_balance(self, district: u32) -> Key {
        self.row(1 + DISTRICTS + district)
    }

    fn customer(self, district: u32, customer: u32) -> Key {
        self.row(1 + 2 * DISTRICTS + district * CUSTOMERS + customer)
    }

    fn stock(self, item: u32) -> Key {
        self.row(1 + 2 * DISTRICTS + DISTRICTS * CUSTOMERS + item)
    }
}

fn read(key: Key) -> Step {
    Step::Read { key, lock: Lock::None }
}

impl SessionPlan {
    /// Keys of its own for this many new rows, next to each other.
    fn new_rows(&mut self, len: u32) -> Key {
        debug_assert!(len <= PIECE);
        let Settings { keys, sessions, workload, .. } = self.settings;
        let memory = &mut self.memory;
        if memory.pieces == 0 || memory.used + len > PIECE {
            (memory.pieces, memory.used) = (memory.pieces + 1, 0);
        }
        let piece = u64::from(memory.pieces - 1) * u64::from(sessions) + u64::from(self.session);
        let first = u64::from(keys.max(workload.keys_min())) + piece * u64::from(PIECE);
        let key = first + u64::from(memory.used);
        memory.used += len;
        // Plans that would need more keys than there are write the last ones again.
        Key(key.min(u64::from(LIST_KEYS_MAX - PIECE)) as u32)
    }

    /// Reads all of some keys: by a scan, unless it is longer than the settings allow, else one by one.
    fn read_range(&self, steps: &mut Vec<Step>, from: Key, len: u32) {
        let to = Key(from.0 + len);
        if len <= self.settings.range_max {
            steps.push(Step::Scan { from: Some(from), to: Some(to) });
        } else {
            steps.extend((from.0..to.0).map(|key| read(Key(key))));
        }
    }

    /// A read of a number, and a write of so much more.
    fn add(&mut self, steps: &mut Vec<Step>, key: Key, more: i64) {
        let read = self.read_to_modify(key);
        steps.extend([read, Step::Write { key, value: Rule::Plus(more) }]);
    }

    /// A write of a value that is new.
    fn put(&mut self, key: Key) -> Step {
        Step::Write { key, value: Rule::Put(Value::Int(self.unique())) }
    }

    fn percent(&mut self) -> u64 {
        self.random.below(100)
    }

    fn below(&mut self, bound: u32) -> u32 {
        self.random.below(u64::from(bound.max(1))) as u32
    }

    // --- TPC-C --------------------------------------------------------------------------------------

    pub(crate) fn tpcc(&mut self, steps: &mut Vec<Step>) {
        match self.percent() {
            0..45 => self.new_order(steps),
            45..88 => self.payment(steps),
            88..92 => self.order_status(steps),
            92..96 => self.delivery(steps),
            _ => self.stock_level(steps),
        }
    }

    fn warehouses(&self) -> u32 {
        (self.settings.keys.saturating_sub(ITEMS) / PER_WAREHOUSE).max(1)
    }

    fn home(&self) -> u32 {
        self.session % self.warehouses()
    }

    /// Another warehouse with this probability in percent, else the session's own.
    fn maybe_remote(&mut self, percent: u64) -> u32 {
        let (home, all) = (self.home(), self.warehouses());
        if all == 1 || self.percent() >= percent {
            return home;
        }
        (home + 1 + self.below(all - 1)) % all
    }

    /// TPC-C's uneven dice, clause 2.1.6.
    fn uneven(&mut self, mask: u32, bound: u32) -> u32 {
        (self.below(mask + 1) | self.below(bound)) % bound
    }

    /// A customer, found by number or, three times in five, among all with the same last name.
    fn find_customer(&mut self, steps: &mut Vec<Step>, warehouse: u32, district: u32) -> Key {
        let number = self.uneven(127, CUSTOMERS);
        if self.percent() < 60 {
            let first = number - number % NAMESAKES;
            self.read_range(steps, Warehouse(warehouse).customer(district, first), NAMESAKES);
            return Warehouse(warehouse).customer(district, first + NAMESAKES / 2);
        }
        Warehouse(warehouse).customer(district, number)
    }

    fn new_order(&mut self, steps: &mut Vec<Step>) {
        let (warehouse, district) = (self.home(), self.below(DISTRICTS));
        let customer = self.uneven(127, CUSTOMERS);
        let customer = Warehouse(warehouse).customer(district, customer);
        let ops = self.settings.ops.min(PIECE / 2);
        let lines = self.random.between(u64::from(ops.div_ceil(2)), u64::from(ops + ops / 2)) as u32;
        let order = Order { row: self.new_rows(2 + lines), lines, warehouse, district, customer };
        steps.extend([read(Warehouse(warehouse).balance()), read(customer)]);
        self.add(steps, Warehouse(warehouse).next_order(district), 1);
        let inserts = [self.put(order.row), self.put(order.mark())];
        steps.extend(inserts);
        for line in 0..lines {
            let (item, supplier) = (self.uneven(255, ITEMS), self.maybe_remote(1));
            steps.push(read(Key(item)));
            let quantity = self.random.between(1, 10) as i64;
            self.add(steps, Warehouse(supplier).stock(item), quantity);
            let insert = self.put(order.line(line));
            steps.push(insert);
        }
        self.memory.orders.push_back(order);
        if self.memory.orders.len() > ORDERS_MAX {
            self.memory.orders.pop_front();
        }
    }

    fn payment(&mut self, steps: &mut Vec<Step>) {
        let (home, district) = (self.home(), self.below(DISTRICTS));
        let amount = self.random.between(100, 500_000) as i64;
        self.add(steps, Warehouse(home).balance(), amount);
        self.add(steps, Warehouse(home).district_balance(district), amount);
        let (customers_home, customers_district) = match self.maybe_remote(15) {
            remote if remote != home => (remote, self.below(DISTRICTS)),
            _ => (home, district),
        };
        let customer = self.find_customer(steps, customers_home, customers_district);
        self.add(steps, customer, amount);
        let history = self.new_rows(1);
        let insert = self.put(history);
        steps.push(insert);
    }

    fn order_status(&mut self, steps: &mut Vec<Step>) {
        let Some(order) = self.memory.orders.back().copied() else { return self.new_order(steps) };
        steps.extend([read(order.customer), read(order.row)]);
        self.read_range(steps, order.line(0), order.lines);
    }

    /// Delivers the session's oldest orders, one for each of up to ten districts.
    fn delivery(&mut self, steps: &mut Vec<Step>) {
        if self.memory.orders.is_empty() {
            return self.new_order(steps);
        }
        for _ in 0..self.settings.ops.min(DISTRICTS) {
            let Some(order) = self.memory.orders.pop_front() else { return };
            steps.extend([read(order.mark()), Step::Delete { key: order.mark() }, read(order.row)]);
            let carrier = self.put(order.row);
            steps.push(carrier);
            self.read_range(steps, order.line(0), order.lines);
            let amount = self.random.between(100, 500_000) as i64;
            self.add(steps, order.customer, amount);
        }
    }

    /// Looks at the stock that a district's last orders took from.
    fn stock_level(&mut self, steps: &mut Vec<Step>) {
        let Some(order) = self.memory.orders.back().copied() else { return self.new_order(steps) };
        steps.push(read(Warehouse(order.warehouse).next_order(order.district)));
        let last: Vec<Order> = self.memory.orders.iter().rev().take(4).copied().collect();
        for order in last {
            self.read_range(steps, order.line(0), order.lines);
            let item = self.uneven(255, ITEMS);
            steps.push(read(Warehouse(order.warehouse).stock(item)));
        }
    }

    // --- members of a site --------------------------------------------------------------------------

    /// A row of a member, who is drawn as the settings' distribution says.
    fn member(&mut self) -> u32 {
        let members = (self.settings.keys / PER_MEMBER).max(1);
        (self.key().0 / PER_MEMBER).min(members - 1)
    }

    pub(crate) fn rubis(&mut self, steps: &mut Vec<Step>) {
        // An item and its seller: description, bids, highest bid, sold, and the seller's name and rating.
        let member = self.member();
        let row = |place: u32| Key(member * PER_MEMBER + place);
        match self.percent() {
            0..30 => steps.extend([read(row(0)), read(row(1)), read(row(2)), read(row(4))]),
            30..45 => steps.extend([read(row(4)), read(row(5))]),
            45..65 => self.read_range(steps, row(0), PER_MEMBER),
            65..70 => {
                let other = self.member();
                steps.extend([read(row(4)), read(row(5))]);
                self.read_range(steps, Key(other * PER_MEMBER), 4);
            }
            70..82 => {
                steps.extend([read(row(0)), read(row(2))]);
                self.add(steps, row(1), 1);
                let (bid, highest) = (self.new_rows(1), self.put(row(2)));
                let insert = self.put(bid);
                steps.extend([highest, insert]);
            }
            82..87 => {
                steps.push(read(row(0)));
                self.add(steps, row(3), 1);
                let purchase = self.new_rows(1);
                let insert = self.put(purchase);
                steps.push(insert);
            }
            87..92 => {
                steps.push(read(row(4)));
                self.add(steps, row(5), 1);
                let comment = self.new_rows(1);
                let insert = self.put(comment);
                steps.push(insert);
            }
            rest => {
                // A new user, or a new item, after a look whether there is one already.
                let first = self.new_rows(2);
                steps.push(read(first));
                let inserts = [self.put(first), self.put(Key(first.0 + 1))];
                steps.extend(inserts);
                if rest >= 95 {
                    steps.push(read(row(4)));
                }
            }
        }
    }

    pub(crate) fn twitter(&mut self, steps: &mut Vec<Step>) {
        // A user: name, last tweet, tweets, followers, followed, and whom they follow.
        let me = self.member();
        let row = |member: u32, place: u32| Key(member * PER_MEMBER + place);
        match self.percent() {
            0..20 => {
                steps.push(read(row(me, 0)));
                self.add(steps, row(me, 2), 1);
                let tweet = self.new_rows(1);
                let writes = [self.put(tweet), self.put(row(me, 1))];
                steps.extend(writes);
            }
            20..30 => {
                let (other, slot) = (self.member(), self.below(FOLLOWED));
                let edge = row(me, PER_MEMBER - FOLLOWED + slot);
                steps.push(read(edge));
                let follows = self.random.chance(0.7);
                let step = if follows { self.put(edge) } else { Step::Delete { key: edge } };
                steps.push(step);
                // Counts of events, so that no number comes twice.
                self.add(steps, row(me, 4), 1);
                self.add(steps, row(other, 3), 1);
            }
            30..75 => {
                self.read_range(steps, row(me, PER_MEMBER - FOLLOWED), FOLLOWED);
                for _ in 0..self.settings.ops {
                    let other = self.member();
                    steps.push(read(row(other, 1)));
                }
            }
            75..90 => steps.extend([read(row(me, 0)), read(row(me, 2)), read(row(me, 1))]),
            _ => steps.extend([read(row(me, 0)), read(row(me, 3)), read(row(me, 4))]),
        }
    }

    pub(crate) fn retwis(&mut self, steps: &mut Vec<Step>) {
        // A user: name, posts, followers, followed, timeline.
        let (me, other) = (self.member(), self.member());
        let row = |member: u32, place: u32| Key(member * PER_MEMBER + place);
        match self.percent() {
            0..5 => {
                let first = self.new_rows(3);
                steps.push(read(first));
                let inserts = [0, 1, 2].map(|place| self.put(Key(first.0 + place)));
                steps.extend(inserts);
            }
            5..20 => {
                self.add(steps, row(me, 3), 1);
                self.add(steps, row(other, 2), 1);
            }
            20..50 => {
                steps.push(read(row(me, 0)));
                self.add(steps, row(me, 1), 1);
                steps.push(read(row(other, 2)));
                let post = self.new_rows(2);
                let writes = [post, Key(post.0 + 1), row(me, 4), row(other, 4)].map(|key| self.put(key));
                steps.extend(writes);
            }
            _ => {
                for _ in 0..self.random.between(1, 10) {
                    let whose = self.member();
                    steps.push(read(row(whose, 4)));
                }
            }
        }
    }

    // --- anomalies ----------------------------------------------------------------------------------

    /// One part of a known anomaly, on two keys that belong together: what its name needs is that several
    /// sessions play their parts on the same pair at the same time.
    pub(crate) fn anomalies(&mut self, steps: &mut Vec<Step>) {
        let pairs = self.settings.keys.div_ceil(2);
        let pair = (self.key().0 / 2).min(pairs - 1);
        let (mut x, mut y) = (Key(2 * pair), Key(2 * pair + 1));
        let first = x;
        if self.random.chance(0.5) {
            std::mem::swap(&mut x, &mut y);
        }
        match self.below(10) {
            // Lost update.
            0 | 1 => {
                let part = [self.read_to_modify(x), self.put(x)];
                steps.extend(part);
            }
            // Write skew.
            2 | 3 => {
                let part = [read(x), read(y), self.put(x)];
                steps.extend(part);
            }
            // Circular information flow, read skew.
            4 => {
                let part = [read(x), self.put(y)];
                steps.extend(part);
            }
            // Fractured reads, dirty writes; the reader's part is below.
            5 => {
                let part = [self.put(x), self.put(y)];
                steps.extend(part);
            }
            // Long fork, the read-only anomaly.
            6 => {
                let part = [self.put(x)];
                steps.extend(part);
            }
            // An intermediate version, for whoever reads too early.
            7 => {
                let part = [self.put(x), self.put(y), self.put(x)];
                steps.extend(part);
            }
            // The reader: twice the same, with something else between.
            8 => steps.extend([read(x), read(y), read(x)]),
            // Phantoms.
            _ => {
                self.read_range(steps, first, 2);
                let deletes = self.random.chance(0.5);
                let step = if deletes { Step::Delete { key: x } } else { self.put(y) };
                steps.push(step);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Template;
    use std::collections::{HashMap, HashSet};

    fn templates(settings: &Settings, session: u32, count: usize) -> Vec<Vec<Step>> {
        let mut plan = SessionPlan::new(settings, session).expect("valid settings");
        let mut template = Template::default();
        (0..count)
            .map(|_| {
                plan.next(&mut template);
                template.steps.clone()
            })
            .collect()
    }

    #[test]
    fn every_write_is_new_or_adds_to_what_was_read() {
        for workload in [Workload::Tpcc, Workload::Rubis, Workload::Twitter, Workload::Retwis] {
            let settings = Settings { sessions: 3, ..workload.settings() };
            let (mut values, mut added, mut put) = (HashSet::new(), HashSet::new(), HashSet::new());
            for steps in (0..3).flat_map(|session| templates(&settings, session, 500)) {
                let mut seen = HashSet::new();
                for step in steps {
                    match step {
                        Step::Read { key, .. } => {
                            seen.insert(key);
                        }
                        Step::Write { key, value: Rule::Plus(more) } => {
                            assert!(seen.contains(&key) && more > 0, "{workload:?}: {key:?}");
                            added.insert(key);
                        }
                        Step::Write { key, value: Rule::Put(Value::Int(value)) } => {
                            assert!(values.insert(value), "{workload:?}: {value} twice");
                            put.insert(key);
                        }
                        _ => {}
                    }
                }
            }
            assert!(added.is_disjoint(&put), "{workload:?}: a counter is a counter");
            assert!(added.len() > 10 && put.len() > 10, "{workload:?}");
        }
    }

    #[test]
    fn inserted_rows_are_the_sessions_own() {
        for workload in [Workload::Tpcc, Workload::Rubis, Workload::Twitter, Workload::Retwis] {
            let settings = Settings { sessions: 4, keys: 50, ..workload.settings() };
            let mut owner = HashMap::new();
            for session in 0..4 {
                for step in templates(&settings, session, 800).into_iter().flatten() {
                    let Step::Write { key, value: Rule::Put(_) } = step else { continue };
                    if key.0 >= settings.keys.max(workload.keys_min()) {
                        assert_eq!(*owner.entry(key).or_insert(session), session, "{workload:?}: {key:?}");
                    }
                }
            }
            assert!(owner.len() > 100, "{workload:?}: {}", owner.len());
        }
    }

    #[test]
    fn tpcc_has_its_five_kinds_in_their_shares() {
        let all = templates(&Workload::Tpcc.settings(), 0, 10_000);
        let share =
            |is: &dyn Fn(&[Step]) -> bool| all.iter().filter(|steps| is(steps)).count() as f64 / 10_000.0;
        let deletes = |steps: &[Step]| steps.iter().any(|step| matches!(step, Step::Delete { .. }));
        let writes = |steps: &[Step]| steps.iter().filter(|step| step.writes()).count();
        let reads_first = |steps: &[Step], key: Key| steps[0] == read(key);
        let order_counter =
            |steps: &[Step]| matches!(steps[0], Step::Read { key, .. } if (1001..1011).contains(&key.0));
        for (name, expected, is) in [
            (
                "new order",
                0.45,
                &(|steps: &[Step]| writes(steps) > 4 && !deletes(steps)) as &dyn Fn(&[Step]) -> bool,
            ),
            ("payment", 0.43, &|steps| writes(steps) == 4 && reads_first(steps, Key(ITEMS))),
            ("order status", 0.04, &|steps| writes(steps) == 0 && !order_counter(steps)),
            ("delivery", 0.04, &deletes),
            ("stock level", 0.04, &|steps| writes(steps) == 0 && order_counter(steps)),
        ] {
            let found = share(is);
            assert!((found - expected).abs() < 0.02, "{name}: {found}");
        }
    }

    #[test]
    fn retwis_has_the_mix_of_the_paper() {
        let all = templates(&Workload::Retwis.settings(), 0, 10_000);
        let gets_and_puts = |steps: &[Step]| {
            let puts = steps.iter().filter(|step| step.writes()).count();
            (steps.len() - puts, puts)
        };
        for (shape, expected) in [((1, 3), 0.05), ((2, 2), 0.15), ((3, 5), 0.3)] {
            let found = all.iter().filter(|steps| gets_and_puts(steps) == shape).count() as f64 / 10_000.0;
            assert!((found - expected).abs() < 0.02, "{shape:?}: {found}");
        }
    }

    #[test]
    fn more_warehouses_are_more_rows_and_some_orders_take_from_afar() {
        let settings = Settings { keys: tpcc_keys(3), sessions: 3, ..Workload::Tpcc.settings() };
        let home = |key: Key| (key.0 - ITEMS) / PER_WAREHOUSE;
        for session in 0..3 {
            let touched: HashSet<u32> = templates(&settings, session, 2000)
                .into_iter()
                .flatten()
                .filter_map(|step| match step {
                    Step::Write { key, .. } if (ITEMS..settings.keys).contains(&key.0) => Some(home(key)),
                    _ => None,
                })
                .collect();
            assert_eq!(touched.len(), 3);
        }
    }
}
