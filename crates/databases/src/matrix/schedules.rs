//! The schedules, as data: who does what in which order, and the rule that says whether it went wrong.
//!
//! The table starts as 1 => 10, 2 => 20. Sources: hermitage (github.com/ept/hermitage) for the schedules,
//! Adya's and Bailis's names; the read-only anomaly is Fekete, O'Neil and O'Neil (2004).

use super::{COMMIT, Observed, ROLLBACK, Rows, TABLE, value_in};

/// A schedule and its rule.
#[derive(Debug)]
pub struct Schedule {
    /// The anomaly's name.
    pub name: &'static str,
    /// What goes wrong, in a sentence.
    pub about: &'static str,
    pub(super) steps: &'static [Step],
    pub(super) occurred: fn(&Observed) -> bool,
}

impl Schedule {
    /// The anomaly's common name.
    pub fn words(&self) -> &'static str {
        self.about.split_once(':').map_or("", |(words, _)| words)
    }
}

/// One step of a session, counted from 1.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) session: usize,
    pub(super) act: Act,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Act {
    /// `SELECT … WHERE …`
    Select(&'static str),
    /// `UPDATE … SET value = … WHERE …`
    Update(&'static str, &'static str),
    Insert(i64, i64),
    DeleteWhere(&'static str),
    Commit,
    Rollback,
}

impl Step {
    pub(super) fn sql(&self) -> String {
        match self.act {
            Act::Select("") => format!("SELECT id, value FROM {TABLE} ORDER BY id"),
            Act::Select(condition) => format!("SELECT id, value FROM {TABLE} WHERE {condition} ORDER BY id"),
            Act::Update(value, condition) => format!("UPDATE {TABLE} SET value = {value} WHERE {condition}"),
            Act::Insert(id, value) => format!("INSERT INTO {TABLE} (id, value) VALUES ({id}, {value})"),
            Act::DeleteWhere(condition) => format!("DELETE FROM {TABLE} WHERE {condition}"),
            Act::Commit => COMMIT.to_owned(),
            Act::Rollback => ROLLBACK.to_owned(),
        }
    }
}

const fn select(session: usize, condition: &'static str) -> Step {
    Step { session, act: Act::Select(condition) }
}

const fn update(session: usize, value: &'static str, condition: &'static str) -> Step {
    Step { session, act: Act::Update(value, condition) }
}

const fn insert(session: usize, id: i64, value: i64) -> Step {
    Step { session, act: Act::Insert(id, value) }
}

const fn delete_where(session: usize, condition: &'static str) -> Step {
    Step { session, act: Act::DeleteWhere(condition) }
}

const fn commit(session: usize) -> Step {
    Step { session, act: Act::Commit }
}

const fn rollback(session: usize) -> Step {
    Step { session, act: Act::Rollback }
}

/// All schedules, in the order of what they break.
pub const SCHEDULES: &[Schedule] = &[
    Schedule {
        name: "G0",
        about: "dirty write: the writes of two transactions interleave",
        steps: &[
            update(1, "11", "id = 1"),
            update(2, "12", "id = 1"),
            update(1, "21", "id = 2"),
            commit(1),
            update(2, "22", "id = 2"),
            commit(2),
        ],
        occurred: |seen| [[(1, 11), (2, 22)], [(1, 12), (2, 21)]].iter().any(|mixed| seen.last == *mixed),
    },
    Schedule {
        name: "G1a",
        about: "aborted read: a transaction sees a value that is rolled back",
        steps: &[update(1, "101", "id = 1"), select(2, ""), rollback(1), select(2, ""), commit(2)],
        occurred: |seen| seen.committed(2) && saw(seen, 2, 1, 101),
    },
    Schedule {
        name: "G1b",
        about: "intermediate read: a transaction sees a value that its writer overwrites",
        steps: &[
            update(1, "101", "id = 1"),
            select(2, ""),
            update(1, "11", "id = 1"),
            commit(1),
            select(2, ""),
            commit(2),
        ],
        occurred: |seen| seen.committed(2) && saw(seen, 2, 1, 101),
    },
    Schedule {
        name: "G1c",
        about: "circular information flow: two transactions see each other's writes",
        steps: &[
            update(1, "11", "id = 1"),
            update(2, "22", "id = 2"),
            select(1, "id = 2"),
            select(2, "id = 1"),
            commit(1),
            commit(2),
        ],
        occurred: |seen| both(seen) && saw(seen, 1, 2, 22) && saw(seen, 2, 1, 11),
    },
    Schedule {
        name: "OTV",
        about: "observed transaction vanishes: one of its writes is seen, another is not",
        steps: &[
            update(1, "11", "id = 1"),
            update(1, "19", "id = 2"),
            update(2, "12", "id = 1"),
            commit(1),
            select(3, ""),
            update(2, "18", "id = 2"),
            select(3, ""),
            commit(2),
            select(3, ""),
            commit(3),
        ],
        occurred: |seen| {
            let mixed = |rows: &Rows| value_in(rows, 1) == Some(12) && value_in(rows, 2) == Some(19);
            seen.committed(3) && (0..3).filter_map(|number| seen.read(3, number)).any(mixed)
        },
    },
    Schedule {
        name: "PMP",
        about: "predicate-many-preceders: a row appears between two predicate reads",
        steps: &[select(1, "value = 30"), insert(2, 3, 30), commit(2), select(1, "value % 3 = 0"), commit(1)],
        occurred: |seen| both(seen) && seen.value(1, 0, 3).is_none() && seen.value(1, 1, 3) == Some(30),
    },
    Schedule {
        name: "PMP-write",
        about: "predicate-many-preceders, write: a delete removes other rows than the read before it saw",
        steps: &[
            update(1, "value + 10", "id > 0"),
            select(2, "value = 20"),
            delete_where(2, "value = 20"),
            commit(1),
            commit(2),
        ],
        occurred: |seen| {
            let deleted = [1, 2].into_iter().filter(|id| value_in(&seen.last, *id).is_none());
            let matched = seen.read(2, 0).into_iter().flatten().map(|(id, _)| *id);
            both(seen) && !deleted.eq(matched)
        },
    },
    Schedule {
        name: "P4",
        about: "lost update: two transactions read and then write, and one write is lost",
        steps: &[
            select(1, "id = 1"),
            select(2, "id = 1"),
            update(1, "11", "id = 1"),
            update(2, "12", "id = 1"),
            commit(1),
            commit(2),
        ],
        occurred: |seen| both(seen) && saw(seen, 1, 1, 10) && saw(seen, 2, 1, 10),
    },
    Schedule {
        name: "G-single",
        about: "read skew: one row is read before another transaction, a second row after it",
        steps: &[
            select(1, "id = 1"),
            select(2, "id = 1"),
            select(2, "id = 2"),
            update(2, "12", "id = 1"),
            update(2, "18", "id = 2"),
            commit(2),
            select(1, "id = 2"),
            commit(1),
        ],
        occurred: |seen| both(seen) && saw(seen, 1, 1, 10) && saw(seen, 1, 2, 18),
    },
    Schedule {
        name: "G-single-pred",
        about: "read skew by predicate: the second predicate read sees a later state",
        steps: &[
            select(1, "value % 5 = 0"),
            update(2, "12", "value = 10"),
            commit(2),
            select(1, "value % 3 = 0"),
            commit(1),
        ],
        occurred: |seen| both(seen) && seen.value(1, 0, 1) == Some(10) && seen.value(1, 1, 1) == Some(12),
    },
    Schedule {
        name: "G-single-write",
        about: "read skew, write: a delete acts on a later state than the read before it",
        steps: &[
            select(1, "id = 1"),
            select(2, ""),
            update(2, "12", "id = 1"),
            update(2, "18", "id = 2"),
            commit(2),
            delete_where(1, "value = 20"),
            commit(1),
        ],
        occurred: |seen| both(seen) && saw(seen, 1, 1, 10) && value_in(&seen.last, 2).is_some(),
    },
    Schedule {
        name: "fuzzy-read",
        about: "fuzzy read: after its own update a transaction sees the change of another one",
        steps: &[
            select(1, "id = 1"),
            update(2, "15", "id = 1"),
            commit(2),
            update(1, "value + 1", "id = 1"),
            select(1, "id = 1"),
            commit(1),
        ],
        occurred: |seen| both(seen) && saw(seen, 1, 1, 10) && saw(seen, 1, 1, 16),
    },
    Schedule {
        name: "G2-item",
        about: "write skew: two transactions each read what the other overwrites",
        steps: &[
            select(1, "id IN (1, 2)"),
            select(2, "id IN (1, 2)"),
            update(1, "11", "id = 1"),
            update(2, "21", "id = 2"),
            commit(1),
            commit(2),
        ],
        occurred: |seen| both(seen) && saw(seen, 1, 2, 20) && saw(seen, 2, 1, 10),
    },
    Schedule {
        name: "G2",
        about: "predicate write skew: two transactions each insert a row that the other had queried for",
        steps: &[
            select(1, "value % 3 = 0"),
            select(2, "value % 3 = 0"),
            insert(1, 3, 30),
            insert(2, 4, 42),
            commit(1),
            commit(2),
        ],
        occurred: |seen| {
            both(seen) && [1, 2].iter().all(|session| seen.read(*session, 0).is_some_and(Vec::is_empty))
        },
    },
    Schedule {
        name: "read-only",
        about: "read-only anomaly: no serial order exists, but only because of a read-only transaction",
        steps: &[
            select(1, ""),
            update(2, "value + 5", "id = 2"),
            commit(2),
            select(3, ""),
            commit(3),
            update(1, "0", "id = 1"),
            commit(1),
        ],
        occurred: |seen| {
            both(seen)
                && seen.committed(3)
                && saw(seen, 1, 2, 20)
                && saw(seen, 3, 2, 25)
                && saw(seen, 3, 1, 10)
        },
    },
];

fn both(seen: &Observed) -> bool {
    seen.committed(1) && seen.committed(2)
}

/// Whether any read of a session showed the value at the id.
fn saw(seen: &Observed, session: usize, id: i64, value: i64) -> bool {
    seen.reads[session - 1].iter().any(|rows| value_in(rows, id) == Some(value))
}
