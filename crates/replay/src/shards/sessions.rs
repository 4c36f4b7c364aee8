//! SESSION where a session's transactions lie in several parts.
//!
//! Inside a part neighbours are compared on the spot; of every session only its first and last transaction travel, to
//! where the session lives. There the last of a part meets the first of the next.

use super::super::order::at_once;
use super::{Label, Suspects};
use history::{History, Timestamp, Transaction};
use serde::{Deserialize, Serialize};

/// When a transaction looked and when its writes became visible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Moment {
    #[serde(with = "Stamp")]
    pub(super) start: Timestamp,
    #[serde(with = "Stamp")]
    pub(super) commit: Timestamp,
    pub(super) is_read_only: bool,
}

/// [`Timestamp`], which knows nothing of serde.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Timestamp")]
struct Stamp {
    physical: i64,
    logical: u32,
}

impl Moment {
    fn of(part: &History, txn: Transaction<'_>) -> Option<Self> {
        let (start, commit) = super::super::sessions::times(txn)?;
        Some(Self { start, commit, is_read_only: super::super::order::is_read_only(part, txn.id()) })
    }

    /// When it looked, if not at everything before its own commit.
    #[inline]
    pub(super) fn look(&self, serial: bool) -> Option<Timestamp> {
        (!serial && self.start < self.commit).then_some(self.start)
    }

    /// Its place among all that commit, as far as timestamps decide.
    #[inline]
    pub(super) fn place(&self) -> (Timestamp, (bool, bool, Timestamp)) {
        (self.commit, at_once(self.is_read_only, self.start, self.commit))
    }

    /// Whether it sees a transaction that its session issued before it.
    fn sees(&self, earlier: &Self, serial: bool) -> bool {
        match self.look(serial) {
            Some(look) => earlier.commit <= look,
            // What is equal goes by the place in the session.
            None => earlier.place() <= self.place(),
        }
    }
}

/// The first and the last committed transaction of a session in a part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ends {
    /// The session.
    pub session: Label,
    order: u64,
    first: Moment,
    last: Moment,
}

impl Ends {
    /// Where the session lives.
    pub fn home(&self, homes: usize) -> usize {
        super::label::home(self.session.as_name(), homes)
    }
}

/// The ends of all sessions of a part. A session whose neighbours do not see each other is a suspect.
pub(super) fn ends(part: &History, order: u64, serial: bool, suspects: &mut Suspects) -> Vec<Ends> {
    let mut all = Vec::new();
    for id in part.sessions().ids() {
        let label = Label::from(part.sessions().get(id));
        let mut ends: Option<(Moment, Moment)> = None;
        for &txn in part.of_session(id) {
            let Some(moment) = Moment::of(part, part.transaction(txn)) else { continue };
            if ends.is_some_and(|(_, last)| !moment.sees(&last, serial)) {
                suspects.sessions.insert(label.clone());
            }
            ends = Some((ends.map_or(moment, |(first, _)| first), moment));
        }
        if let Some((first, last)) = ends {
            all.push(Ends { session: label, order, first, last });
        }
    }
    all
}

/// The sessions that live in one place.
#[derive(Debug, Default)]
pub struct Sessions {
    serial: bool,
    ends: Vec<Ends>,
}

impl Sessions {
    /// Nothing has come yet.
    pub fn new(level: crate::Level) -> Self {
        Self { serial: level.rule == crate::Rule::Serializable, ends: Vec::new() }
    }

    /// Takes the ends of a session in one part.
    pub fn receive(&mut self, ends: Ends) {
        self.ends.push(ends);
    }

    /// When all have come: sessions whose parts do not see each other.
    pub fn finish(mut self, suspects: &mut Suspects) {
        self.ends.sort_by(|a, b| (&a.session, a.order).cmp(&(&b.session, b.order)));
        for pair in self.ends.windows(2) {
            let [earlier, later] = pair else { continue };
            if earlier.session == later.session && !later.first.sees(&earlier.last, self.serial) {
                suspects.sessions.insert(later.session.clone());
            }
        }
    }
}
