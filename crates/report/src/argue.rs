//! Edges in sentences: why one transaction must come before another, in terms of what clients did and saw.
//!
//! Every sentence is made from the edge's own [`Reason`] and the operations it names; nothing is inferred here.

use crate::finding::{Case, Cases, Place, Step};
use crate::labels::Labels;
use crate::phrase;
use crate::shorten::{self, Lens};
use history::{
    History, Id, KeyId, Lock, NameRef, OpId, Operation, Predicate, Row, Status, TxnId, ValueId, ValueRef,
};
use isolation::{Argument, Edge, EdgeKind, Evidence, Impossible, Reason, Supposition};

/// How deep inferred edges are unfolded; an argument deeper than this is cut with a remark.
const DEPTH_MAX: usize = 8;

/// The steps of an argument; the lens keeps visible what it is about.
pub(crate) fn steps(history: &History, edges: &[Edge], lens: &Lens, labels: &Labels) -> Vec<Step> {
    let speaker = Speaker { history, lens, labels: None };
    let short = Speaker { labels: Some(labels), ..speaker };
    edges.iter().map(|edge| speaker.step(&short, edge, 0)).collect()
}

/// The argument of a violation where it is a case distinction.
pub(crate) fn cases(history: &History, evidence: &Evidence, lens: &Lens, labels: &Labels) -> Option<Cases> {
    let speaker = Speaker { history, lens, labels: None };
    let short = Speaker { labels: Some(labels), ..speaker };
    speaker.cases(&short, evidence.cases.as_deref(), 0)
}

/// Makes sentences. With labels they are for people, and leave out values that stand beside them.
#[derive(Clone, Copy)]
struct Speaker<'h> {
    history: &'h History,
    lens: &'h Lens,
    labels: Option<&'h Labels>,
}

impl Speaker<'_> {
    fn step(&self, short: &Self, edge: &Edge, depth: usize) -> Step {
        let (because, cases) = match &edge.reason {
            Reason::Otherwise { because } if depth < DEPTH_MAX => {
                let edges = because.edges.iter().chain(&because.support);
                let cases = self.cases(short, because.cases.as_deref(), depth + 1);
                (edges.map(|edge| self.step(short, edge, depth + 1)).collect(), cases)
            }
            _ => (Vec::new(), None),
        };
        Step {
            from: edge.from.map(|txn| self.id(txn)),
            to: self.id(edge.to),
            edge: edge.kind.name(),
            key: edge.key.map(|key| self.history.keys().get(key).to_string()),
            predicate: edge.predicate,
            why: self.why(edge, depth),
            said: short.why(edge, depth),
            because,
            cases,
            places: self.places(&edge.reason),
        }
    }

    fn cases(&self, short: &Self, cases: Option<&isolation::Cases>, depth: usize) -> Option<Cases> {
        let cases = cases?;
        let told: &[isolation::Case] = if depth < DEPTH_MAX { &cases.told } else { &[] };
        let left_out = cases.left_out + cases.told.len() - told.len();
        let told = told.iter().map(|case| Case {
            suppose: self.suppose(&case.suppose),
            said: short.suppose(&case.suppose),
            explanation: case.argument.edges.iter().map(|edge| self.step(short, edge, depth + 1)).collect(),
            support: case.argument.support.iter().map(|edge| self.step(short, edge, depth + 1)).collect(),
            cases: self.cases(short, case.argument.cases.as_deref(), depth + 1),
        });
        Some(Cases { told: told.collect(), left_out })
    }

    /// `2:0 read x = 1 from 1:0`.
    fn suppose(&self, suppose: &Supposition) -> String {
        match *suppose {
            Supposition::Source { read, key, write } => {
                let from =
                    write.map_or("the initial state".to_owned(), |write| self.source(read, key, write));
                match self.is_point_read(read) {
                    true => format!("{} from {from}", self.deed(read)),
                    false => format!("{} saw {} from {from}", self.name(self.owner(read)), self.key(key)),
                }
            }
            Supposition::Changed { op, key, changed } => {
                let how = if changed { "and changed" } else { "and left alone" };
                format!("{} {how} {}", self.deed(op), self.key(key))
            }
        }
    }

    /// Who wrote a version, and which of its writes it was where that is not the last.
    fn source(&self, read: OpId, key: KeyId, write: OpId) -> String {
        let writer = self.owner(write);
        let who = if writer == self.owner(read) { "itself".to_owned() } else { self.name(writer) };
        let words = self.words(self.history.operation(write));
        let of_key =
            |operation: &Operation<'_>| operation.key() == Some(key) && new_value(*operation).is_some();
        let mut later = self.history.transaction(writer).ops().filter(|&(op, _)| op > write);
        if later.any(|(_, operation)| of_key(&operation)) { format!("{who}, which {words}") } else { who }
    }

    fn why(&self, edge: &Edge, depth: usize) -> String {
        if let Reason::Saw { read, .. } = edge.reason
            && let Some(twice) = self.saw_twice(read)
        {
            return twice;
        }
        match edge.reason {
            Reason::Saw { read, write: Some(write) } => self.saw(edge, read, write),
            Reason::Saw { read, write: None } => self.value_from_nowhere(edge, read),
            Reason::Missed { read, write } => self.missed(edge, read, write),
            Reason::Overwrote { first, second, shown } => self.overwrote(edge, first, second, shown),
            Reason::Supposed => self.supposed(edge),
            Reason::Impossible { op, why } => self.impossible(op, why),
            Reason::Otherwise { ref because } => self.otherwise(edge, because, depth),
            Reason::Session => self.session(edge),
            Reason::Clock => self.clock(edge),
            Reason::Timestamps => self.timestamps(edge),
            Reason::Module { name } => self.module(edge, name),
        }
    }

    /// `version order: 1:0 comes before 2:0`.
    fn module(&self, edge: &Edge, module: &str) -> String {
        let first = edge.from.map_or_else(|| "the initial state".to_owned(), |from| self.name(from));
        format!("{module}: {first} comes before {}", self.name(edge.to))
    }

    /// `2:0 scanned a..c, saw [b:1 b:2]: key b appears twice, with 1 and with 2`.
    fn saw_twice(&self, read: OpId) -> Option<String> {
        if let Operation::Update { keys: Some(keys), .. } | Operation::DeleteWhere { keys: Some(keys), .. } =
            self.history.operation(read)
        {
            let mut sorted = keys.to_vec();
            sorted.sort_unstable();
            let pair = sorted.windows(2).find(|pair| pair[0] == pair[1])?;
            return Some(format!("{}: {} appears twice", self.deed(read), self.key(pair[0])));
        }
        let (Operation::Scan { rows: Some(rows), .. }
        | Operation::Iterate { rows: Some(rows), .. }
        | Operation::Query { rows: Some(rows), .. }) = self.history.operation(read)
        else {
            return None;
        };
        let mut sorted: Vec<&Row> = rows.iter().collect();
        sorted.sort_by_key(|row| row.key);
        let pair = sorted.windows(2).find(|pair| pair[0].key == pair[1].key)?;
        let value = |row: &Row| shorten::value(self.history.values(), row.value, self.lens, None);
        let (key, first, second) = (self.key(pair[0].key), value(pair[0]), value(pair[1]));
        Some(format!("{}: {key} appears twice, with {first} and with {second}", self.deed(read)))
    }

    /// `2:0 read x = 1, which 1:0 wrote`.
    fn saw(&self, edge: &Edge, read: OpId, write: OpId) -> String {
        let (reader, writer) = (self.owner(read), self.owner(write));
        let deed = self.history.operation(write);
        let seen = self.deed_with(read, new_value(deed));
        let who = if reader == writer { "it".to_owned() } else { self.name(writer) };
        let own = match reader == writer {
            true if write > read => " itself only later",
            true => " itself",
            false => "",
        };
        let after = self.aftermath(reader, writer, write);
        match deed {
            Operation::Write { value, .. } if value != ValueId::ABSENT && self.is_point_read(read) => {
                format!("{seen}, which {who} wrote{own}{after}")
            }
            Operation::Append { value, .. } if self.is_point_read(read) => {
                let element = shorten::value(self.history.values(), value, self.lens, None);
                format!("{seen}, with the {element} that {who} appended{own}{after}")
            }
            _ => {
                let place = match edge.key {
                    Some(key) if deed.key().is_none() => format!(" ({})", self.key(key)),
                    _ => String::new(),
                };
                let words = self.words(deed);
                format!("{seen}{place}, seeing that {who}{own} {words}{after}")
            }
        }
    }

    /// What became of a write that somebody saw, where that is the point.
    fn aftermath(&self, reader: TxnId, writer: TxnId, write: OpId) -> String {
        if reader == writer {
            return String::new();
        }
        match self.history.transaction(writer).status() {
            Status::Aborted => return " before it aborted".to_owned(),
            Status::Unknown => return " (its client never learned whether it committed)".to_owned(),
            Status::Committed => {}
        }
        let Operation::Write { key, .. } = self.history.operation(write) else { return String::new() };
        let later = self.history.transaction(writer).ops().find(|&(op, deed)| {
            op > write
                && deed.key() == Some(key)
                && matches!(deed, Operation::Write { .. } | Operation::Delete { .. })
        });
        later.map_or(String::new(), |(_, deed)| format!(" before it {} itself", self.words(deed)))
    }

    /// `2:0 read x = 7, which no transaction wrote`, and what the cause may be.
    fn value_from_nowhere(&self, edge: &Edge, read: OpId) -> String {
        let seen = self.deed(read);
        let Operation::Read { key, value, .. } = self.history.operation(read) else {
            if let Some(row) = self.row_from_nowhere(edge, read) {
                let value = shorten::value(self.history.values(), row.value, self.lens, None);
                let cause = self.cause(row.key, row.value);
                return format!(
                    "{seen}, with {} = {value}, which no transaction wrote{cause}",
                    self.key(row.key)
                );
            }
            let Some(key) = edge.key else { return format!("{seen}, which is impossible in every state") };
            let name = self.key(key);
            return match self.history.operation(read) {
                Operation::Scan { .. } | Operation::Iterate { .. } => {
                    format!("{seen}, without {name}: no transaction deleted it")
                }
                _ => format!("{seen}: no value that was ever written to {name} gives this result"),
            };
        };
        if self.history.initial_value(key) == value {
            return format!("{seen}, the initial value");
        }
        let name = self.key(key);
        if value == ValueId::ABSENT {
            return format!("{seen}: {name} existed from the start, and no transaction deleted it");
        }
        let element = self.history.values_of(value).iter().find(|&&element| !self.is_appended(key, element));
        if let Some(&element) = element.filter(|_| self.is_list(key)) {
            let element = shorten::value(self.history.values(), element, self.lens, None);
            return format!("{seen}, with the {element} that no transaction appended");
        }
        format!("{seen}, which no transaction wrote{}", self.cause(key, value))
    }

    fn is_list(&self, key: KeyId) -> bool {
        let mut all = self.history.transactions().flat_map(|txn| txn.ops());
        all.any(|(_, deed)| matches!(deed, Operation::Append { key: at, .. } if at == key))
    }

    fn is_appended(&self, key: KeyId, element: ValueId) -> bool {
        let at_first = self.history.values_of(self.history.initial_value(key));
        let mut all = self.history.transactions().flat_map(|txn| txn.ops());
        at_first.contains(&element)
            || all.any(|(_, deed)| {
                matches!(deed, Operation::Append { key: at, value } if at == key && value == element)
            })
    }

    /// Why a value may have been read that no transaction wrote: its type, or what the recording left out.
    fn cause(&self, key: KeyId, value: ValueId) -> String {
        let name = self.history.keys().get(key).to_string();
        let text = |value: ValueId| match self.history.values().get(value) {
            ValueRef::Int(number) => Some(number.to_string()),
            ValueRef::Str(text) => Some(text.to_owned()),
            _ => None,
        };
        let wanted = text(value);
        let is_alike = |at: KeyId, written: ValueId| {
            (at != key || written != value)
                && (at == key || self.history.keys().get(at).to_string() == name)
                && (written == value || wanted.is_some() && text(written) == wanted)
        };
        let deeds = self.history.transactions().flat_map(|txn| txn.ops());
        let written = deeds.filter_map(|(op, deed)| match deed {
            Operation::Write { key, value } => Some((Some(op), key, value)),
            _ => None,
        });
        let initial = self.history.initial().iter().map(|row| (None, row.key, row.value));
        let alike = initial
            .chain(written)
            .filter(|(_, _, value)| value.is_known())
            .find(|&(_, at, it)| is_alike(at, it));
        if let Some((op, at, written)) = alike {
            let who = op.map_or("the initial state".to_owned(), |op| self.name(self.owner(op)));
            let has = if op.is_some() { "wrote" } else { "has" };
            let typed_key = |key: KeyId| match self.history.keys().get(key) {
                NameRef::Int(number) => format!("the integer key {number}"),
                NameRef::Str(text) => format!("the string key {text:?}"),
            };
            let typed_value = |value: ValueId| match self.history.values().get(value) {
                ValueRef::Str(text) => format!("the string {text:?}"),
                _ => format!("the number {}", shorten::value(self.history.values(), value, self.lens, None)),
            };
            let (other, this) = match at == key {
                true => (typed_value(written), typed_value(value)),
                false => (typed_key(at), typed_key(key)),
            };
            return format!(" (only the type differs: {who} {has} {other}; this is {this})");
        }
        " (if it existed before the recording, add it to \"initial\")".to_owned()
    }

    /// A row of an operation on many keys, of the edge's key if it has one, with a value that is nobody's.
    fn row_from_nowhere(&self, edge: &Edge, read: OpId) -> Option<Row> {
        let rows = match self.history.operation(read) {
            Operation::Scan { rows, .. }
            | Operation::Iterate { rows, .. }
            | Operation::Query { rows, .. } => rows?,
            _ => return None,
        };
        let is_wanted = |row: &&Row| edge.key.is_none_or(|key| key == row.key);
        let is_initial = |row: &Row| self.history.initial_value(row.key) == row.value;
        let is_written = |row: &Row| {
            let mut deeds = self.history.transactions().flat_map(|txn| txn.ops()).map(|(_, deed)| deed);
            deeds.any(|deed| match deed {
                Operation::Append { key, .. } => key == row.key,
                Operation::Update { set, .. } => set == row.value,
                _ => deed.key() == Some(row.key) && new_value(deed) == Some(row.value),
            })
        };
        rows.iter().filter(is_wanted).find(|row| !is_initial(row) && !is_written(row)).copied()
    }

    /// `2:0 read y = absent before 1:0 wrote y = 1`.
    fn missed(&self, edge: &Edge, read: OpId, write: OpId) -> String {
        let (reader, writer) = (self.owner(read), self.owner(write));
        if reader != writer {
            if let (Operation::Read { key, value: seen, lock: Lock::None }, Operation::Write { value, .. }) =
                (self.history.operation(read), self.history.operation(write))
                && value != ValueId::ABSENT
            {
                if self.labels.is_some() && self.reads_once(reader, key) {
                    return self.missed_shortly(reader, key, seen, writer);
                }
                // Two values that are compared are cut where they do not differ.
                let (seen, written) = shorten::pair(self.history.values(), seen, value, self.lens);
                let key = self.key(key);
                let (reader, writer) = (self.name(reader), self.name(writer));
                return format!("{reader} read {key} = {seen} before {writer} wrote {key} = {written}");
            }
            let matched = edge.key.map(|key| self.matched(key, read, write)).unwrap_or_default();
            return format!("{} before {}{matched}", self.deed(read), self.deed(write));
        }
        let words = self.words(self.history.operation(write));
        match write < read {
            true => format!("{} although it {words} itself before that", self.deed(read)),
            false => format!("{} before it {words} itself", self.deed(read)),
        }
    }

    /// `T1 read x before T2 overwrote it`.
    fn missed_shortly(&self, reader: TxnId, key: KeyId, seen: ValueId, writer: TxnId) -> String {
        let (reader, writer, key) = (self.name(reader), self.name(writer), self.key(key));
        match seen == ValueId::ABSENT {
            true => format!("{reader} read {key} = absent before {writer} wrote it"),
            false => format!("{reader} read {key} before {writer} overwrote it"),
        }
    }

    fn reads_once(&self, reader: TxnId, key: KeyId) -> bool {
        let reads = self
            .history
            .transaction(reader)
            .ops()
            .filter(|(_, deed)| matches!(*deed, Operation::Read { key: at, .. } if at == key));
        reads.take(2).count() == 1
    }

    /// `, which is in that range`: why a write would have changed what an operation on many keys found.
    fn matched(&self, key: KeyId, read: OpId, write: OpId) -> &'static str {
        let Operation::Write { value, .. } = self.history.operation(write) else { return "" };
        if value == ValueId::ABSENT {
            return "";
        }
        let has_row = |rows: Option<&[Row]>| rows.is_some_and(|rows| rows.iter().any(|row| row.key == key));
        let matches = |predicate: &Predicate| predicate.holds(self.history.values(), value);
        match self.history.operation(read) {
            Operation::Scan { rows, .. } | Operation::Iterate { rows, .. } if !has_row(rows) => {
                ", which is in that range"
            }
            Operation::Query { predicate, rows } if !has_row(rows) && matches(predicate) => ", which matches",
            Operation::Query { predicate, rows } if has_row(rows) && !matches(predicate) => {
                ", which no longer matches"
            }
            Operation::Update { predicate, .. } | Operation::DeleteWhere { predicate, .. } => {
                if matches(predicate) { ", which matches" } else { ", which does not match" }
            }
            _ => "",
        }
    }

    /// `1:0 wrote x = 1 before 2:0 wrote x = 2`.
    fn overwrote(&self, edge: &Edge, first: Option<OpId>, second: OpId, shown: Option<OpId>) -> String {
        if let Some(shown) = shown {
            let order = self.overwrote(edge, first, second, None);
            return format!("{order}: {}", self.deed(shown));
        }
        let Some(first) = first else {
            let key = edge.key.or(self.history.operation(second).key());
            let state = key.map_or("the initial state".to_owned(), |key| {
                let value =
                    shorten::value(self.history.values(), self.history.initial_value(key), self.lens, None);
                format!("the initial {} = {value}", self.key(key))
            });
            return format!("{state} was there before {}", self.deed(second));
        };
        let (old, new) = (self.history.operation(first), self.history.operation(second));
        if let (Operation::Write { key: at, value: a }, Operation::Write { key, value: b }) = (old, new) {
            let (a, b) = shorten::pair(self.history.values(), a, b, self.lens);
            let how = self.shown_by_own_read(at, first, second);
            let (earlier, later) = (self.name(self.owner(first)), self.name(self.owner(second)));
            let key = self.key(key);
            return format!("{earlier} wrote {key} = {a} before {later} wrote {key} = {b}{how}");
        }
        format!("{} before {}", self.deed(first), self.deed(second))
    }

    /// The read that shows the order of two writes, if the later writer made it itself.
    fn shown_by_own_read(&self, key: KeyId, first: OpId, second: OpId) -> &'static str {
        let written = new_value(self.history.operation(first));
        let own = self.history.transaction(self.owner(second)).ops();
        let mut reads = own.take_while(|&(op, _)| op < second).filter(|(_, deed)| {
            matches!(*deed, Operation::Read { key: at, value, .. } if at == key && Some(value) == written)
        });
        if reads.next().is_some() { ", having read it" } else { "" }
    }

    /// `1:0 wrote x = 1 before 2:0 wrote x = 2 (inferred: the opposite order would create a cycle with 3:0)`.
    fn otherwise(&self, edge: &Edge, because: &Argument, depth: usize) -> String {
        let (first, second) = self.order(edge);
        let ends = [edge.from, Some(edge.to)];
        let mut through: Vec<String> = Vec::new();
        for other in because.end().edges.iter().flat_map(|edge| [edge.from, Some(edge.to)]) {
            let Some(txn) = other.filter(|_| !ends.contains(&other)) else { continue };
            let name = self.name(txn);
            if !through.contains(&name) {
                through.push(name);
            }
        }
        let with = match through.as_slice() {
            [] => String::new(),
            [one] => format!(" with {one}"),
            [all @ .., last] => format!(" with {} and {last}", all.join(", ")),
        };
        let cut = if depth >= DEPTH_MAX { "; details left out" } else { "" };
        match because.cases.is_some() {
            true => format!(
                "{first} before {second} (inferred: the opposite order is impossible in every case{cut})"
            ),
            false => format!(
                "{first} before {second} (inferred: the opposite order would create a cycle{with}{cut})"
            ),
        }
    }

    /// `suppose that 1:0 wrote x = 1 before 2:0 wrote x = 2`.
    fn supposed(&self, edge: &Edge) -> String {
        let (first, second) = self.order(edge);
        format!("suppose that {first} before {second}")
    }

    /// Two writes of which one comes first, in words.
    fn order(&self, edge: &Edge) -> (String, String) {
        let mut first = edge.from.map_or("the initial state".to_owned(), |from| self.part(edge, from, true));
        let mut second = self.part(edge, edge.to, false);
        if let (EdgeKind::Ww, Some(from), Some(key)) = (edge.kind, edge.from, edge.key)
            && let (Some(one), Some(two)) = (self.last_value(from, key), self.last_value(edge.to, key))
        {
            let (one, two) = shorten::pair(self.history.values(), one, two, self.lens);
            first = format!("{} wrote {} = {one}", self.name(from), self.key(key));
            second = format!("{} wrote {} = {two}", self.name(edge.to), self.key(key));
        }
        (first, second)
    }

    /// What no state of any store gives.
    fn impossible(&self, op: OpId, why: Impossible) -> String {
        let seen = self.deed(op);
        let name = self.name(self.owner(op));
        match why {
            Impossible::Order => format!("{seen}: these rows are not in the order of their keys"),
            Impossible::Row(key) => match self.history.operation(op) {
                Operation::Query { .. } => format!("{seen}: {} does not match the predicate", self.key(key)),
                _ => format!("{seen}: {} is outside that range", self.key(key)),
            },
            Impossible::Count => match self.history.operation(op) {
                Operation::Update { count: Some(count), keys: Some(keys), .. }
                | Operation::DeleteWhere { count: Some(count), keys: Some(keys), .. } => {
                    format!("{seen}: it reports {count} changed rows but lists {} keys", keys.len())
                }
                Operation::Update { count, .. } | Operation::DeleteWhere { count, .. } => {
                    let count = count.map_or("so many".to_owned(), |count| count.to_string());
                    format!("{seen}: in no state that {name} can have seen do {count} rows match")
                }
                _ => format!("{seen}: no state gives this count"),
            },
            Impossible::Own(key) => {
                let key = self.key(key);
                format!(
                    "{seen}: this contradicts the other operations of {name} on {key}, whatever {key} held before"
                )
            }
            Impossible::Differs(other, key) => {
                let (first, key) = (self.deed(other), self.key(key));
                format!("{first}; {seen}: both reads see the same state, but disagree about {key}")
            }
            Impossible::Read(key) => {
                let key = self.key(key);
                format!("{seen}: {key} never held a value that explains this")
            }
        }
    }

    /// The value that a transaction left at a key, if a plain write did.
    fn last_value(&self, txn: TxnId, key: KeyId) -> Option<ValueId> {
        let of_key = self.history.transaction(txn).ops().filter(|(_, deed)| deed.key() == Some(key));
        match of_key.filter(|(_, deed)| !matches!(deed, Operation::Read { .. })).last() {
            Some((_, Operation::Write { value, .. })) if value != ValueId::ABSENT => Some(value),
            _ => None,
        }
    }

    /// What a transaction did to the key of an edge: its read if it is the reader of an `rw`, else its last write.
    fn part(&self, edge: &Edge, txn: TxnId, is_from: bool) -> String {
        let Some(key) = edge.key else { return self.name(txn) };
        let reads = matches!((edge.kind, is_from), (EdgeKind::Rw, true) | (EdgeKind::Wr, false));
        let mut deeds =
            self.history.transaction(txn).ops().filter(|(_, deed)| {
                deed.key() == Some(key) && matches!(deed, Operation::Read { .. }) == reads
            });
        let deed = if reads { deeds.next() } else { deeds.last() };
        match deed {
            Some((op, _)) => self.deed(op),
            None if reads => format!("{} read {}", self.name(txn), self.key(key)),
            None => format!("{} changed {}", self.name(txn), self.key(key)),
        }
    }

    fn session(&self, edge: &Edge) -> String {
        let session = self.history.sessions().get(self.history.transaction(edge.to).session());
        let first = edge.from.map_or("the initial state".to_owned(), |from| self.name(from));
        format!("session {session} issued {first} before {}", self.name(edge.to))
    }

    fn clock(&self, edge: &Edge) -> String {
        let span = |txn: TxnId| self.history.transaction(txn).client();
        let to = self.name(edge.to);
        let Some(from) = edge.from else { return format!("{to} began after the initial state") };
        let name = self.name(from);
        match (span(from), span(edge.to)) {
            (Some(first), Some(second)) => {
                format!("{name} had ended at {} when {to} began at {}", first.end, second.begin)
            }
            _ => format!("{name} had ended when {to} began"),
        }
    }

    /// `by the database's timestamps 1:0 (7..9) comes before 2:0 (9..12)`.
    fn timestamps(&self, edge: &Edge) -> String {
        let timed = |txn: TxnId| match self.history.transaction(txn).db() {
            Some((start, commit)) => format!("{} ({start}..{commit})", self.name(txn)),
            None => self.name(txn),
        };
        let first = edge.from.map_or("the initial state".to_owned(), timed);
        format!("by the database's timestamps {first} comes before {}", timed(edge.to))
    }

    // ---- words ----

    fn deed(&self, op: OpId) -> String {
        self.deed_with(op, None)
    }

    fn deed_with(&self, op: OpId, focus: Option<ValueId>) -> String {
        let words = phrase::focused(self.history, self.history.operation(op), self.lens, focus);
        format!("{} {words}", self.name(self.owner(op)))
    }

    fn words(&self, operation: Operation<'_>) -> String {
        phrase::focused(self.history, operation, self.lens, None)
    }

    fn is_point_read(&self, op: OpId) -> bool {
        matches!(self.history.operation(op), Operation::Read { .. })
    }

    fn owner(&self, op: OpId) -> TxnId {
        self.history.owner(op)
    }

    /// What a transaction is called in a sentence.
    fn name(&self, txn: TxnId) -> String {
        let label = self.labels.and_then(|labels| labels.get(txn));
        label.unwrap_or_else(|| self.id(txn))
    }

    fn id(&self, txn: TxnId) -> String {
        self.history.transaction(txn).name().to_string()
    }

    fn key(&self, key: KeyId) -> String {
        phrase::key(self.history, key)
    }

    fn places(&self, reason: &Reason) -> Vec<Place> {
        let ops = match *reason {
            Reason::Saw { read, write } => [Some(read), write],
            Reason::Missed { read, write } => [Some(read), Some(write)],
            Reason::Overwrote { first, second, .. } => [first, Some(second)],
            Reason::Impossible { op, .. } => [Some(op), None],
            Reason::Otherwise { .. } | Reason::Session | Reason::Clock | Reason::Timestamps => [None, None],
            Reason::Module { .. } | Reason::Supposed => [None, None],
        };
        let shown = match *reason {
            Reason::Overwrote { shown, .. } => shown,
            _ => None,
        };
        ops.into_iter().chain([shown]).flatten().map(|op| self.place(op)).collect()
    }

    fn place(&self, op: OpId) -> Place {
        let txn = self.owner(op);
        let first = self.history.transaction(txn).ops().next().map_or(op, |(first, _)| first);
        Place { transaction: self.id(txn), operation: op.index() - first.index() }
    }
}

/// The value that an operation leaves behind or adds.
fn new_value(operation: Operation<'_>) -> Option<ValueId> {
    match operation {
        Operation::Write { value, .. } | Operation::Append { value, .. } => Some(value),
        Operation::Cas { write, .. } => Some(write),
        Operation::Update { set, .. } => Some(set),
        _ => None,
    }
}
