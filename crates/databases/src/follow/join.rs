//! Commits from a change stream and transactions from traced clients, joined into one history with timestamps.
//!
//! **What.** The stream tells which transactions committed, in the order of the log, with their writes; and now
//! and then a snapshot of its own, a *boundary*, after everything that the boundary sees. Traced clients tell
//! what their transactions read, from which snapshot, and under which id they committed. Out come lines of the
//! native format with exact `db` timestamps, and watermarks. A function of the lines that go in: no clock, no
//! socket. Time is what boundaries say.
//!
//! **Ranks** (compare [`crate::timestamps`], which does it for a run that is over). A commit becomes visible
//! some time after it stands in the log, and others overtake it there; snapshots tell. Boundaries cut the
//! commits into groups; inside a group those that a traced snapshot sees come before those it does not, else the
//! log's order counts. A group is *closed*, and its ranks are final, `grace` after its boundary: by then
//! transactions that ended before the boundary have arrived.
//!
//! ```text
//!   log      a b c │ d e f g │ h …         │ boundaries
//!   visible  a c b │ d e g f │             a traced snapshot saw c and not b, another g and not f
//!   rank     1 2 3 4 5 6 7 8 9             a boundary takes a rank, so that later snapshots lie behind it
//! ```
//!
//! The r-th commit has the timestamp 2r, and a snapshot whose first unseen commit has rank r starts at 2r − 1.
//!
//! **Steps** when a group is closed:
//! 1. rank its commits;
//! 2. emit the traced transactions that lie within the boundary: whose snapshot sees nothing that the boundary does
//!    not see, and whose own commit, if they have one, the boundary sees. Writes are the log's: where both tell of a
//!    key the log's value counts, a delete that the log does not have deleted nothing, and what only the log has is
//!    added;
//! 3. emit commits that no client told of, as session `untraced`;
//! 4. the watermark; what is older than `grace + longest` is forgotten.
//!
//! **Not placed.** A transaction whose snapshot agrees with no place (it arrived after its group was closed in
//! another order, or began before the watch did) goes out without timestamps, which the checker tells; one that
//! arrives after its own commit went out as untraced is reported as late. Neither is judged, and what they wrote counts.
//!
//! **Delivered again.** A traced line that came before, word for word, is left out. It is known as long as it could have a place.
//!
//! **Cost.** O(g·s) for a group of g commits and s different traced snapshots, O(log n) to place a snapshot.
//! Memory: commits of the last `grace + longest`.

use crate::timestamps::SetSnapshot;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json, json};
use std::collections::{HashMap, HashSet, VecDeque};
use xxhash_rust::xxh3::xxh3_64;

/// What goes into a [`Join`] from the change stream, one a line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "follow", rename_all = "kebab-case")]
pub(crate) enum Told {
    /// The first: rows that follow as [`Told::Rows`] are what this snapshot sees.
    Begin { snapshot: SetSnapshot },
    /// Rows that stood there at the beginning.
    Rows { writes: Vec<(Json, Json)> },
    /// A transaction committed.
    Commit { xid: u64, writes: Vec<(Json, Json)> },
    /// Everything that this snapshot sees has been reported.
    Boundary { snapshot: SetSnapshot, at_ms: u64 },
}

/// What comes out of a step.
#[derive(Debug, Default)]
pub struct Joined {
    /// Lines of the native format, and watermarks.
    pub lines: Vec<u8>,
    /// What could not be understood, a sentence each.
    pub refused: Vec<String>,
}

/// How patient a join is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// How long after its end a traced transaction arrives at the latest.
    pub grace_ms: u64,
    /// How long a transaction takes at most.
    pub longest_ms: u64,
}

/// How transactions were matched so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Matched {
    /// Traced transactions that have their place.
    pub placed: u64,
    /// Commits that no client told of.
    pub untraced: u64,
    /// Traced transactions whose snapshot has no place.
    pub unplaced: u64,
    /// Traced transactions that came after their commit had gone out.
    pub late: u64,
    /// Lines that had come before.
    #[serde(default)]
    pub again: u64,
}

/// The two streams on their way to one.
#[derive(Debug)]
pub struct Join {
    patience: Patience,
    state: State,
    /// Ranks of the commits in `state.order`.
    rank: HashMap<u64, u64>,
    /// The hashes in `state.came`.
    came: HashSet<u64>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct State {
    /// Boundaries of closed groups, oldest first; the oldest is what everything is counted from.
    ended: VecDeque<Ended>,
    /// Commits with a rank that is not forgotten; the first has the one after the oldest boundary's. A boundary
    /// takes a rank, too.
    order: VecDeque<Option<u64>>,
    /// Commits without a rank, in the log's order.
    open: Vec<Commit>,
    boundaries: VecDeque<(u64, SetSnapshot)>,
    waiting: Vec<Traced>,
    /// Commits that were put later than they were, by session: see [`Join::commit_of_reader`].
    raised: HashMap<String, i64>,
    matched: Matched,
    now_ms: u64,
    /// Traced lines that came, as hashes, and when.
    #[serde(default)]
    came: VecDeque<(u64, u64)>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Ended {
    at_ms: u64,
    rank: u64,
    snapshot: SetSnapshot,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Commit {
    xid: u64,
    writes: Vec<(Json, Json)>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Traced {
    /// Whether it is certain that it committed; otherwise the log says.
    is_certain: bool,
    snapshot: Option<SetSnapshot>,
    xid: Option<u64>,
    line: Map<String, Json>,
}

impl Join {
    /// A new one, or one that goes on from [`Join::save`].
    pub fn new(patience: Patience, saved: Option<&str>) -> Result<Self, serde_json::Error> {
        let state: State = saved.map(serde_json::from_str).transpose()?.unwrap_or_default();
        let came = state.came.iter().map(|(_, hash)| *hash).collect();
        let mut join = Self { patience, state, rank: HashMap::new(), came };
        let first = join.floor() + 1;
        let ranked = join.state.order.iter().zip(first..);
        join.rank = ranked.filter_map(|(xid, rank)| Some(((*xid)?, rank))).collect();
        Ok(join)
    }

    /// Everything it holds, as text.
    pub fn save(&self) -> String {
        serde_json::to_string(&self.state).expect("names, numbers and texts always have a JSON form")
    }

    /// How transactions were matched so far.
    pub fn matched(&self) -> Matched {
        self.state.matched
    }

    /// Takes lines of the change stream.
    pub fn take_changes(&mut self, lines: &[u8]) -> Joined {
        let mut out = Joined::default();
        for line in lines.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
            match serde_json::from_slice::<Told>(line) {
                Ok(told) => self.told(told, &mut out),
                Err(error) => out.refused.push(format!("the change stream: {error}")),
            }
        }
        out
    }

    /// Takes lines of traced clients.
    pub fn take_traced(&mut self, lines: &[u8]) -> Joined {
        let mut out = Joined::default();
        for line in lines.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
            // Lines that are no transactions were refused where they came in; headers and watermarks say nothing here.
            let Ok(Json::Object(line)) = serde_json::from_slice::<Json>(line) else { continue };
            if !line.contains_key("session") {
                continue;
            }
            match self.comes_again(&line) {
                true => self.state.matched.again += 1,
                false => self.traced(line, &mut out),
            }
        }
        out
    }

    /// Nothing more will come: everything that is complete goes out.
    pub fn finish(&mut self) -> Joined {
        let mut out = Joined::default();
        while let Some((at_ms, snapshot)) = self.state.boundaries.pop_front() {
            self.close(at_ms, snapshot, &mut out);
        }
        out
    }

    fn floor(&self) -> u64 {
        self.state.ended.front().map_or(0, |ended| ended.rank)
    }

    /// The last rank that was given.
    fn last_rank(&self) -> u64 {
        self.floor() + self.state.order.len() as u64
    }

    fn told(&mut self, told: Told, out: &mut Joined) {
        match told {
            Told::Begin { snapshot } => {
                self.state.ended.push_back(Ended { at_ms: 0, rank: 0, snapshot });
            }
            Told::Rows { writes } => {
                let Some(base) = self.state.ended.front_mut() else { return };
                base.rank += 1;
                let rank = base.rank;
                emit(out, untraced(&format!("rows {rank}"), rank, &writes));
            }
            Told::Commit { xid, writes } => {
                let is_old = self.state.ended.front().is_none_or(|base| base.snapshot.sees(xid));
                if !is_old && !self.rank.contains_key(&xid) {
                    self.state.open.push(Commit { xid, writes });
                }
            }
            Told::Boundary { snapshot, at_ms } => {
                self.state.now_ms = self.state.now_ms.max(at_ms);
                self.state.boundaries.push_back((at_ms, snapshot));
                while let Some(&(at_ms, _)) = self.state.boundaries.front()
                    && at_ms + self.patience.grace_ms <= self.state.now_ms
                    && let Some((at_ms, snapshot)) = self.state.boundaries.pop_front()
                {
                    self.close(at_ms, snapshot, out);
                }
            }
        }
    }

    /// Whether a line came before; it is known from now on. Two transactions that are the same in everything cannot be told
    /// apart, and one of them says all that both say.
    fn comes_again(&mut self, line: &Map<String, Json>) -> bool {
        let hash = xxh3_64(serde_json::to_string(line).unwrap_or_default().as_bytes());
        if !self.came.insert(hash) {
            return true;
        }
        self.state.came.push_back((self.state.now_ms, hash));
        false
    }

    fn traced(&mut self, mut line: Map<String, Json>, out: &mut Joined) {
        let status = line.get("status").and_then(Json::as_str).unwrap_or("committed");
        let is_certain = match status {
            "committed" => true,
            "unknown" => false,
            _ => {
                line.remove("db");
                return emit(out, line);
            }
        };
        let ctx = line.get("ctx");
        let text = |name: &str| match ctx.and_then(|ctx| ctx.get(name)) {
            Some(Json::String(text)) => Some(text.clone()),
            Some(Json::Number(number)) => Some(number.to_string()),
            _ => None,
        };
        let snapshot = text("snapshot").and_then(|text| SetSnapshot::parse(&text));
        let xid = text("commit").and_then(|text| text.parse().ok());
        for name in ["ctx", "db", "status"] {
            line.remove(name);
        }
        self.state.waiting.push(Traced { is_certain, snapshot, xid, line });
    }

    fn close(&mut self, at_ms: u64, boundary: SetSnapshot, out: &mut Joined) {
        let told_until = self.last_rank();
        // 1.
        let open = std::mem::take(&mut self.state.open);
        let (group, open): (Vec<Commit>, Vec<Commit>) =
            open.into_iter().partition(|commit| boundary.sees(commit.xid));
        self.state.open = open;
        let group =
            visible_order(group, self.state.waiting.iter().filter_map(|traced| traced.snapshot.as_ref()));
        for commit in &group {
            self.state.order.push_back(Some(commit.xid));
            self.rank.insert(commit.xid, self.last_rank());
        }
        let grown = self.last_rank();
        // 2.
        let within = |traced: &Traced| {
            traced.snapshot.as_ref().is_none_or(|snapshot| snapshot.is_within(&boundary))
                && traced.xid.is_none_or(|xid| boundary.sees(xid))
        };
        let waiting = std::mem::take(&mut self.state.waiting);
        let (ready, waiting): (Vec<Traced>, Vec<Traced>) = waiting.into_iter().partition(within);
        self.state.waiting = waiting;
        let is_new = !group.is_empty() || !ready.is_empty();
        self.state.ended.push_back(Ended { at_ms, rank: grown, snapshot: boundary });
        let mut log: HashMap<u64, Vec<(Json, Json)>> =
            group.iter().map(|commit| (commit.xid, commit.writes.clone())).collect();
        for traced in ready {
            let writes = traced.xid.and_then(|xid| Some((xid, log.remove(&xid)?)));
            let told = writes.as_ref().map(|(_, writes)| writes.as_slice());
            if !self.emit_traced(traced, told, told_until, out)
                && let Some((xid, writes)) = writes
            {
                // What it read is not placed, what it wrote is.
                log.insert(xid, writes);
            }
        }
        // 3.
        for commit in &group {
            if let Some(writes) = log.remove(&commit.xid) {
                self.state.matched.untraced += 1;
                let rank = self.rank.get(&commit.xid).copied().unwrap_or(grown);
                emit(out, untraced(&format!("xid {}", commit.xid), rank, &writes));
            }
        }
        // 4.
        if is_new {
            self.state.order.push_back(None);
            if let Some(ended) = self.state.ended.back_mut() {
                ended.rank += 1;
            }
        }
        let forgot = self.forget();
        if is_new || forgot {
            let (watermark, horizon) = (2 * self.last_rank(), 2 * self.floor());
            // The name that makes it a watermark stands first.
            out.lines.extend(format!("{{\"watermark\":{watermark},\"horizon\":{horizon}}}\n").bytes());
        }
    }

    /// Emits a traced transaction; false if it has no place.
    fn emit_traced(
        &mut self,
        traced: Traced,
        writes: Option<&[(Json, Json)]>,
        told_until: u64,
        out: &mut Joined,
    ) -> bool {
        let Traced { is_certain, snapshot, xid, mut line } = traced;
        let rank = xid.and_then(|xid| self.rank.get(&xid).copied());
        if !is_certain && rank.is_none() {
            // The log does not have it: it changed nothing.
            line.insert("status".to_owned(), "aborted".into());
            emit(out, line);
            return true;
        }
        let session = line.get("session").map(Json::to_string).unwrap_or_default();
        let start = snapshot.as_ref().and_then(|snapshot| self.start(snapshot));
        let raised = self.state.raised.get(&session).copied().unwrap_or(i64::MIN);
        let Some(start) = start.filter(|&start| start >= raised) else {
            self.state.matched.unplaced += 1;
            line.insert("ops".to_owned(), Json::Array(Vec::new()));
            emit(out, line);
            return false;
        };
        let commit = match (rank, writes) {
            (Some(rank), Some(writes)) => {
                self.state.matched.placed += 1;
                merge(&mut line, writes);
                2 * rank as i64
            }
            // Its commit has gone out, as untraced or because a client told of it twice.
            (Some(rank), None) => {
                self.state.matched.late += 1;
                line.insert("ops".to_owned(), Json::Array(Vec::new()));
                2 * rank.min(told_until) as i64
            }
            (None, _) => {
                self.state.matched.placed += 1;
                merge(&mut line, &[]);
                // Of two that read the same at the same place this tells that they are two.
                line.insert("ctx".to_owned(), json!({ "snapshot": snapshot }));
                self.commit_of_reader(start, told_until, session)
            }
        };
        line.insert("db".to_owned(), json!({"start": start, "commit": commit}));
        emit(out, line);
        true
    }

    /// A transaction that wrote nothing commits where it starts. If that is final already, because it ran for
    /// long, it commits right behind: it did end after the boundary of what is final, or it would have arrived.
    fn commit_of_reader(&mut self, start: i64, told_until: u64, session: String) -> i64 {
        let told_until = 2 * told_until as i64;
        if start > told_until {
            return start;
        }
        self.state.raised.insert(session, told_until + 1);
        told_until + 1
    }

    /// Where a snapshot lies: right before the first commit that it does not see, if it sees none behind that.
    fn start(&self, snapshot: &SetSnapshot) -> Option<i64> {
        let ended = &self.state.ended;
        // It sees everything up to the boundary before `unseen`, and nothing behind the boundary `whole`.
        let unseen = ended.partition_point(|ended| ended.snapshot.is_within(snapshot));
        let seen_rank = ended.get(unseen.checked_sub(1)?)?.rank;
        let whole = ended.partition_point(|ended| !snapshot.is_within(&ended.snapshot));
        let last_rank = ended.get(whole).map_or_else(|| self.last_rank(), |ended| ended.rank);
        let floor = self.floor();
        let range = (seen_rank - floor) as usize..(last_rank.max(seen_rank) - floor) as usize;
        let mut first_unseen = None;
        for (index, xid) in self.state.order.range(range.clone()).enumerate() {
            match xid {
                Some(xid) if snapshot.sees(*xid) && first_unseen.is_some() => return None,
                Some(xid) if !snapshot.sees(*xid) => {
                    first_unseen.get_or_insert(range.start + index);
                }
                _ => {}
            }
        }
        let before = match first_unseen {
            Some(index) => floor + index as u64,
            // Nothing of what the boundary holds is missing: behind it, as far as the next commit.
            None => {
                self.next_commit(range.end).map_or_else(|| self.last_rank(), |index| floor + index as u64)
            }
        };
        Some(2 * before as i64 + 1)
    }

    /// The first commit from here on.
    fn next_commit(&self, from: usize) -> Option<usize> {
        let order = &self.state.order;
        (from..order.len()).find(|&index| order[index].is_some())
    }

    /// Forgets what no transaction that still arrives can have started before.
    fn forget(&mut self) -> bool {
        let patience = self.patience.grace_ms + self.patience.longest_ms;
        let before = self.floor();
        while self.state.ended.get(1).is_some_and(|ended| ended.at_ms + patience <= self.state.now_ms) {
            let floor = self.floor();
            self.state.ended.pop_front();
            for _ in floor..self.floor() {
                if let Some(xid) = self.state.order.pop_front().flatten() {
                    self.rank.remove(&xid);
                }
            }
        }
        // What came before the oldest boundary that is kept looked before it, and has no place any more.
        let oldest_ms = self.state.ended.front().map_or(0, |ended| ended.at_ms);
        while let Some(&(_, hash)) = self.state.came.front().filter(|(at_ms, _)| *at_ms < oldest_ms) {
            self.state.came.pop_front();
            self.came.remove(&hash);
        }
        let floor = 2 * self.floor() as i64;
        self.state.raised.retain(|_, commit| *commit > floor);
        self.floor() > before
    }
}

/// The order in which a group's commits became visible, as far as snapshots tell; else that of the log.
fn visible_order<'s>(group: Vec<Commit>, snapshots: impl Iterator<Item = &'s SetSnapshot>) -> Vec<Commit> {
    let mut cuts: Vec<(usize, &SetSnapshot)> = Vec::new();
    let mut known: HashSet<&SetSnapshot> = HashSet::new();
    for snapshot in snapshots.filter(|snapshot| known.insert(snapshot)) {
        let seen = group.iter().filter(|commit| snapshot.sees(commit.xid)).count();
        if seen > 0 && seen < group.len() {
            cuts.push((seen, snapshot));
        }
    }
    cuts.sort_by_key(|(seen, _)| *seen);
    cuts.dedup_by_key(|(seen, _)| *seen);
    let mut part = vec![usize::MAX; group.len()];
    let mut placed = 0;
    for (number, (seen, snapshot)) in cuts.into_iter().enumerate() {
        let newly: Vec<usize> = (0..group.len())
            .filter(|&index| part[index] == usize::MAX && snapshot.sees(group[index].xid))
            .collect();
        // One that contradicts those before has no place.
        if placed + newly.len() == seen {
            placed = seen;
            newly.into_iter().for_each(|index| part[index] = number);
        }
    }
    let mut ordered: Vec<(usize, Commit)> = part.into_iter().zip(group).collect();
    ordered.sort_by_key(|(part, _)| *part);
    ordered.into_iter().map(|(_, commit)| commit).collect()
}

fn emit(out: &mut Joined, line: Map<String, Json>) {
    out.lines.extend_from_slice(Json::Object(line).to_string().as_bytes());
    out.lines.push(b'\n');
}

/// A commit that no client told of. When it started is not known: no conflict is laid to it.
fn untraced(id: &str, rank: u64, writes: &[(Json, Json)]) -> Map<String, Json> {
    let ops: Vec<Json> = writes.iter().map(|(key, value)| write_op(key, value)).collect();
    let mut line = Map::new();
    line.insert("session".to_owned(), "untraced".into());
    line.insert("id".to_owned(), id.into());
    line.insert("db".to_owned(), json!({"start": 2 * rank - 1, "commit": 2 * rank}));
    line.insert("ops".to_owned(), ops.into());
    line
}

fn write_op(key: &Json, value: &Json) -> Json {
    match value {
        Json::Null => json!({"op": "delete", "key": key}),
        value => json!({"op": "write", "key": key, "value": value}),
    }
}

/// Puts the log's writes into a traced transaction.
fn merge(line: &mut Map<String, Json>, log: &[(Json, Json)]) {
    let Some(Json::Array(ops)) = line.get_mut("ops") else { return };
    let logged = |key: &Json| log.iter().rev().find(|(other, _)| other == key).map(|(_, value)| value);
    let mut told: Vec<Json> = Vec::new();
    // From behind: the last write of a key is what the log holds.
    for op in ops.iter_mut().rev() {
        let (Some(name), Some(key)) = (op.get("op").and_then(Json::as_str), op.get("key").cloned()) else {
            continue;
        };
        let is_last = matches!(name, "write" | "append" | "delete") && !told.contains(&key);
        match (name, logged(&key)) {
            ("write", Some(value)) if is_last && !value.is_null() => op["value"] = value.clone(),
            // It found nothing to delete.
            ("delete", None) if is_last => op["op"] = Json::Null,
            _ => {}
        }
        if is_last {
            told.push(key);
        }
    }
    ops.retain(|op| !op.get("op").is_some_and(Json::is_null));
    for (index, (key, value)) in log.iter().enumerate() {
        let is_last = log[index + 1..].iter().all(|(other, _)| other != key);
        if is_last && !told.contains(key) {
            ops.push(write_op(key, value));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use workload::Random;

    fn patience(grace_ms: u64, longest_ms: u64) -> Patience {
        Patience { grace_ms, longest_ms }
    }

    fn feed(join: &mut Join, told: &Told) -> Vec<Json> {
        let line = serde_json::to_string(told).expect("it has a form");
        lines(join.take_changes(line.as_bytes()))
    }

    fn lines(joined: Joined) -> Vec<Json> {
        assert!(joined.refused.is_empty(), "{:?}", joined.refused);
        let text = String::from_utf8(joined.lines).expect("text");
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }

    fn snapshot(text: &str) -> SetSnapshot {
        SetSnapshot::parse(text).expect("it is well-formed")
    }

    fn commit(xid: u64, key: i64, value: i64) -> Told {
        Told::Commit { xid, writes: vec![(key.into(), value.into())] }
    }

    fn boundary(text: &str, at_ms: u64) -> Told {
        Told::Boundary { snapshot: snapshot(text), at_ms }
    }

    #[test]
    fn what_clients_saw_meets_what_the_log_says() {
        let mut join = Join::new(patience(10, 100), None).expect("new");
        feed(&mut join, &Told::Begin { snapshot: snapshot("5:5:") });
        let rows = feed(&mut join, &Told::Rows { writes: vec![(1.into(), 10.into())] });
        assert_eq!(rows[0]["db"], json!({"start": 1, "commit": 2}));
        // The log has 5 before 6; the reader saw 6 and not 5.
        feed(&mut join, &commit(5, 1, 11));
        feed(&mut join, &commit(6, 2, 20));
        let traced = concat!(
            r#"{"session":1,"ctx":{"snapshot":"5:7:5"},"ops":[{"op":"read","key":1,"value":10},{"op":"read","key":2,"value":20}]}"#,
            "\n",
            r#"{"session":2,"ctx":{"snapshot":"5:5:","commit":"5"},"ops":[{"op":"delete","key":9},{"op":"write","key":1,"value":0}]}"#,
            "\n",
            r#"{"session":3,"status":"unknown","ctx":{"snapshot":"5:5:","commit":"7"},"ops":[{"op":"write","key":1,"value":5}]}"#,
            "\n",
        );
        assert!(lines(join.take_traced(traced.as_bytes())).is_empty(), "they wait");
        assert!(feed(&mut join, &boundary("8:8:", 100)).is_empty(), "for those who come later");
        let out = feed(&mut join, &boundary("8:8:", 110));
        assert_eq!(out[0]["db"], json!({"start": 5, "commit": 5}), "behind 6, before 5");
        assert_eq!(out[1]["db"], json!({"start": 3, "commit": 6}));
        assert_eq!(out[1]["ops"], json!([{"op": "write", "key": 1, "value": 11}]), "as the log has it");
        assert_eq!(out[2]["status"], "aborted");
        assert_eq!(out[3]["id"], "xid 6");
        assert_eq!(out[3]["db"], json!({"start": 3, "commit": 4}));
        assert_eq!(out[4], json!({"watermark": 8, "horizon": 2}));
        assert_eq!(join.matched(), Matched { placed: 2, untraced: 1, unplaced: 0, late: 0, again: 0 });
        // Twice what has come before, in a newer and in an older group; its commit with other content; and one from before
        // the beginning.
        let traced = concat!(
            r#"{"session":1,"ctx":{"snapshot":"5:7:5"},"ops":[{"op":"read","key":1,"value":10},{"op":"read","key":2,"value":20}]}"#,
            "\n",
            r#"{"session":2,"ctx":{"snapshot":"5:5:","commit":"5"},"ops":[{"op":"delete","key":9},{"op":"write","key":1,"value":0}]}"#,
            "\n",
            r#"{"session":2,"ctx":{"snapshot":"5:5:","commit":"5"},"ops":[{"op":"write","key":1,"value":0}]}"#,
            "\n",
            r#"{"session":4,"ctx":{"snapshot":"3:4:3"},"ops":[{"op":"read","key":1,"value":0}]}"#,
        );
        join.take_traced(traced.as_bytes());
        let out = feed(&mut join, &boundary("8:8:", 120));
        assert_eq!((&out[0]["db"]["commit"], &out[0]["ops"]), (&json!(6), &json!([])));
        assert_eq!(out[1].get("db"), None);
        assert_eq!(join.matched(), Matched { placed: 2, untraced: 1, unplaced: 1, late: 1, again: 2 });
    }

    /// A database that commits one by one, becomes visible in another order, and takes snapshots.
    struct Store {
        next: u64,
        running: Vec<u64>,
        /// In the log, not visible yet.
        logged: Vec<u64>,
    }

    impl Store {
        fn snapshot(&self) -> String {
            let mut xip: Vec<u64> = self.running.iter().chain(&self.logged).copied().collect();
            xip.sort_unstable();
            let xip: Vec<String> = xip.iter().map(u64::to_string).collect();
            format!("1:{}:{}", self.next, xip.join(","))
        }
    }

    /// Every placed snapshot sees exactly the commits before its start, whatever overtakes what.
    fn placed_where_they_saw(seed: u64) -> Matched {
        let mut random = Random::new(seed);
        let mut store = Store { next: 100, running: Vec::new(), logged: Vec::new() };
        let mut join = Join::new(patience(300, 2_000), None).expect("new");
        feed(&mut join, &Told::Begin { snapshot: snapshot(&store.snapshot()) });
        let mut out: Vec<Json> = Vec::new();
        let mut begun: HashMap<u64, String> = HashMap::new();
        let mut readers: Vec<String> = Vec::new();
        let mut late: VecDeque<(u64, String)> = VecDeque::new();
        for now in 0..6_000u64 {
            match random.below(8) {
                0 | 1 if store.running.len() < 12 => {
                    begun.insert(store.next, store.snapshot());
                    store.running.push(store.next);
                    store.next += 1;
                }
                2 | 3 if !store.running.is_empty() => {
                    let xid = store.running.swap_remove(random.below(store.running.len() as u64) as usize);
                    store.logged.push(xid);
                    out.extend(feed(&mut join, &commit(xid, xid as i64, 1)));
                }
                4 | 5 if !store.logged.is_empty() => {
                    let xid = store.logged.swap_remove(random.below(store.logged.len() as u64) as usize);
                    let from = &begun[&xid];
                    if random.chance(0.8) {
                        let line = json!({"session": xid, "id": from, "ctx": {"snapshot": from, "commit": xid.to_string()}, "ops": []});
                        late.push_back((now + random.below(250), line.to_string()));
                    }
                }
                6 => readers.push(store.snapshot()),
                _ if !readers.is_empty() && random.chance(0.7) => {
                    let from = readers.swap_remove(random.below(readers.len() as u64) as usize);
                    let line = json!({"session": format!("r{now}"), "id": from, "ctx": {"snapshot": from}, "ops": []});
                    late.push_back((now + random.below(250), line.to_string()));
                }
                _ => {}
            }
            while let Some((_, line)) = late.front().filter(|(at, _)| *at <= now) {
                out.extend(lines(join.take_traced(line.as_bytes())));
                late.pop_front();
            }
            if now % 100 == 0 {
                out.extend(feed(&mut join, &boundary(&store.snapshot(), now)));
            }
            if random.chance(0.005) {
                join = Join::new(join.patience, Some(&join.save())).expect("as it was");
            }
        }
        out.extend(lines(join.finish()));
        let mut commits: Vec<(i64, u64)> = Vec::new();
        for line in out.iter().filter(|line| line["ops"].as_array().is_some_and(|ops| !ops.is_empty())) {
            let time = line["db"]["commit"].as_i64().expect("commits have a place");
            for op in line["ops"].as_array().expect("operations") {
                commits.push((time, op["key"].as_u64().expect("its own id")));
            }
        }
        let mut watermark = -1;
        for line in &out {
            if let Some(time) = line["watermark"].as_i64() {
                watermark = time;
                continue;
            }
            let Some(start) = line["db"]["start"].as_i64() else { continue };
            let is_late = line["db"]["commit"].as_i64().is_some_and(|commit| commit <= watermark);
            let from = line["id"].as_str().unwrap_or_default();
            let Some(from) = SetSnapshot::parse(from).filter(|_| !is_late) else { continue };
            for &(commit, xid) in &commits {
                assert_eq!(commit < start, from.sees(xid), "seed {seed}: {line} and {xid} at {commit}");
            }
        }
        join.matched()
    }

    #[test]
    fn every_snapshot_is_placed_where_it_saw() {
        let mut all = Matched::default();
        for seed in 0..40 {
            let matched = placed_where_they_saw(seed);
            all.placed += matched.placed;
            all.unplaced += matched.unplaced;
        }
        assert!(all.placed > 20_000 && all.unplaced * 5 < all.placed, "{all:?}");
    }
}
