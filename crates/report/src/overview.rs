//! The whole history at a glance: how many transactions began when, what became of them, and where the core lies.
//!
//! *What*: transactions are counted in slots of equal length, by the client's clock where every transaction has one, else
//! by their place in the file. A page draws the slots and can show any stretch of them larger.
//! *Invariant*: the counts of all slots together are the transactions of the history.
//! *Cost*: one pass over the transactions; [`SLOTS_MAX`] slots, whatever the size of the history.

use history::{History, Id, Status, Transaction};
use serde::{Deserialize, Serialize};

/// How many slots there are at most: a stretch of a hundredth still has some forty.
const SLOTS_MAX: usize = 4096;

/// How many remarks are kept at most: more would hide what they are about.
const REMARKS_MAX: usize = 500;

/// A history in slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overview {
    /// The file, as the user named it.
    pub file: String,
    /// Whether slots are stretches of the clients' clocks; else of the file.
    pub by_clock: bool,
    /// Where the first slot begins and the last ends: clock readings, or places from 0.
    pub from: i64,
    /// See `from`.
    pub to: i64,
    /// Transactions that began in each slot: committed, aborted, of unknown outcome.
    pub slots: Vec<[u32; 3]>,
    /// What happened beside the transactions: faults, log lines.
    pub remarks: Vec<Remark>,
}

/// Something that happened while the history was recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Remark {
    /// When, by the clients' clocks.
    pub at: i64,
    /// Until when, if it lasted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<i64>,
    /// What.
    pub text: String,
}

/// Fields of `ctx` whose text is shown as a remark.
const REMARK_FIELDS: [&str; 3] = ["fault", "event", "log"];

impl Remark {
    /// Reads a side file: one object a line; the number of the first line that is none, and why.
    pub fn parse_all(text: &str) -> Result<Vec<Self>, (usize, String)> {
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let parsed = lines.map(|(index, line)| {
            let remark: Self = serde_json::from_str(line).map_err(|error| (index + 1, error.to_string()))?;
            if remark.until.is_some_and(|until| until < remark.at) {
                return Err((index + 1, "\"until\" is before \"at\"".to_owned()));
            }
            Ok(remark)
        });
        parsed.collect()
    }

    /// What a transaction's `ctx` has to say.
    fn of(transaction: Transaction<'_>, when: i64) -> Option<Self> {
        let ctx: serde_json::Value = serde_json::from_str(transaction.ctx()?).ok()?;
        let text = REMARK_FIELDS.iter().find_map(|field| ctx.get(field)?.as_str())?;
        Some(Self { at: when, until: None, text: format!("{}: {text}", transaction.name()) })
    }
}

impl Overview {
    /// Counts a history. `remarks` come from beside it; those in the transactions' `ctx` are added.
    pub fn of(file: &str, history: &History, remarks: &[Remark]) -> Self {
        let by_clock = !history.is_empty() && history.transactions().all(|txn| txn.client().is_some());
        let when = |txn: Transaction<'_>| match txn.client() {
            Some(span) if by_clock => span.begin,
            _ => txn.id().index() as i64,
        };
        let (mut from, mut to) = (i64::MAX, i64::MIN);
        for txn in history.transactions() {
            from = from.min(when(txn));
            to = to.max(when(txn));
        }
        if history.is_empty() {
            (from, to) = (0, 0);
        }
        let mut overview =
            Self { file: file.to_owned(), by_clock, from, to, slots: Vec::new(), remarks: remarks.to_vec() };
        overview.slots = vec![[0; 3]; history.len().clamp(1, SLOTS_MAX)];
        for txn in history.transactions() {
            let slot = overview.slot(when(txn));
            overview.slots[slot][match txn.status() {
                Status::Committed => 0,
                Status::Aborted => 1,
                Status::Unknown => 2,
            }] += 1;
            if overview.remarks.len() < REMARKS_MAX && txn.ctx().is_some() {
                overview.remarks.extend(Remark::of(txn, when(txn)));
            }
        }
        overview.remarks.truncate(REMARKS_MAX);
        overview.remarks.sort_by_key(|remark| remark.at);
        overview
    }

    /// The slot of a moment, or of a place in the file.
    pub(crate) fn slot(&self, when: i64) -> usize {
        let len = i128::from(self.to) - i128::from(self.from) + 1;
        let since = (i128::from(when) - i128::from(self.from)).clamp(0, len - 1);
        usize::try_from(since * self.slots.len() as i128 / len).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::{Overview, Remark};
    use history::formats::notation;

    #[test]
    fn every_transaction_is_in_a_slot() {
        let history =
            notation::parse("s1: w(x,1) @10..20 | w(x,2)! @30..40\ns2: w(x,3)? @-5..9\n").expect("written");
        let overview = Overview::of("h", &history, &[]);
        assert!(overview.by_clock);
        assert_eq!((overview.from, overview.to), (-5, 30));
        assert_eq!(overview.slots, [[0, 0, 1], [1, 0, 0], [0, 1, 0]]);
        let history = notation::parse("s1: w(x,1) @10..20 | w(x,2)\n").expect("written");
        let overview = Overview::of("h", &history, &[]);
        assert!(!overview.by_clock);
        assert_eq!(overview.slots, [[1, 0, 0], [1, 0, 0]]);
    }

    #[test]
    fn clocks_at_the_ends_of_time_have_slots() {
        let text = format!("s1: w(x,1) @{}..0\ns2: w(x,2) @{}..{}\n", i64::MIN, i64::MAX, i64::MAX);
        let overview = Overview::of("h", &notation::parse(&text).expect("written"), &[]);
        assert_eq!(overview.slots, [[1, 0, 0], [1, 0, 0]]);
    }

    #[test]
    fn remarks_come_from_files_and_from_ctx() {
        let beside =
            Remark::parse_all("{\"at\":5,\"text\":\"kill\"}\n\n{\"at\":1,\"until\":3,\"text\":\"pause\"}\n");
        let beside = beside.expect("two remarks");
        let text = "{\"session\":1,\"ops\":[],\"ctx\":{\"fault\":\"partition\"},\"client\":{\"begin\":4,\"end\":5}}\n";
        let options = history::formats::ReadOptions::default();
        let loaded = history::formats::read_bytes("h.jsonl", text.as_bytes(), &options).expect("a history");
        let overview = Overview::of("h", &loaded.history, &beside);
        let told: Vec<&str> = overview.remarks.iter().map(|remark| remark.text.as_str()).collect();
        assert_eq!(told, ["pause", "1:0: partition", "kill"]);
        assert_eq!(Remark::parse_all("\n{\"at\":1}").map_err(|(line, _)| line), Err(2));
        let backwards = Remark::parse_all("{\"at\":3,\"until\":1,\"text\":\"pause\"}");
        assert_eq!(backwards.map_err(|(line, _)| line), Err(1));
    }
}
