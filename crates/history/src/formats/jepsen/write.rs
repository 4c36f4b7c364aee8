//! Histories as Jepsen's operations, in EDN or JSON.
//!
//! A transaction with client clocks becomes an invocation and a completion, merged by those clocks; one without
//! becomes a completion alone, since an invocation would claim an order in time that nobody recorded. Of one
//! session, the events keep the session's order whatever the clocks say, so that pairs are found again.
//!
//! Held: reads and writes, or reads and appends (Elle checks one or the other); every status; client clocks. In
//! transactions that did not commit, a read that saw nothing is written like one whose result is not known.

use super::build::CLOCK_BY_PLACE;
use crate::formats::plain::{Content, Plain, Room, Start, push_name, push_value};
use crate::formats::{Format, WriteError};
use crate::{History, NameRef, Status, Transaction, TxnId, ValueId, ValueRef};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, Write as _};

/// How operations are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::formats) enum Syntax {
    /// One map a line.
    Edn,
    /// One array, one object a line.
    Json,
}

/// One line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Event {
    txn: TxnId,
    is_invoke: bool,
    time: Option<i64>,
}

/// Writes a history.
pub(in crate::formats) fn write(
    history: &History,
    format: Format,
    syntax: Syntax,
    out: &mut dyn io::Write,
) -> Result<(), WriteError> {
    let room =
        Room { format, aborted: true, unknown: true, appends: true, start: Start::All(ValueId::ABSENT) };
    let content = Content::new(history, room)?;
    let lists = holds_lists(&content)?;
    let by_place = history.header_extra().is_some_and(|extra| extra.contains(CLOCK_BY_PLACE));
    let writer = Writer { content, syntax, lists, processes: process_numbers(history) };
    let mut line = Vec::new();
    if syntax == Syntax::Json {
        out.write_all(b"[")?;
    }
    for (index, event) in merged(history).into_iter().enumerate() {
        line.clear();
        if syntax == Syntax::Json && index > 0 {
            line.extend(b",\n");
        }
        writer.push(index, event, by_place, &mut line)?;
        if syntax == Syntax::Edn {
            line.push(b'\n');
        }
        out.write_all(&line)?;
    }
    if syntax == Syntax::Json {
        out.write_all(b"]\n")?;
    }
    Ok(())
}

/// Whether the history is of lists; both lists and registers are too much.
fn holds_lists(content: &Content<'_>) -> Result<bool, WriteError> {
    let (mut appends, mut writes) = (false, false);
    for txn in content.history.transactions() {
        for op in content.operations(txn) {
            match op? {
                Plain::Append(..) => appends = true,
                Plain::Write(..) => writes = true,
                Plain::Read(..) => {}
            }
        }
        if appends && writes {
            return Err(content.no("both appends and writes", txn));
        }
    }
    Ok(appends)
}

/// Sessions' own numbers where all are integers, else their places.
fn process_numbers(history: &History) -> Vec<i64> {
    let names = history.sessions();
    let own: Option<Vec<i64>> = names
        .ids()
        .map(|id| if let NameRef::Int(value) = names.get(id) { Some(value) } else { None })
        .collect();
    own.unwrap_or_else(|| (0..names.len() as i64).collect())
}

/// The events of all sessions by time. At equal times invocations come first, so that what overlapped still does.
fn merged(history: &History) -> Vec<Event> {
    let mut queues: Vec<std::vec::IntoIter<Event>> = Vec::new();
    for session in history.sessions().ids() {
        let transactions = history.of_session(session).iter().map(|&txn| history.transaction(txn));
        queues.push(in_pairs(transactions.flat_map(events_of)).into_iter());
    }
    let mut merged = Vec::new();
    let mut heap = BinaryHeap::new();
    let rank = |queue: &std::vec::IntoIter<Event>, place: usize| {
        let event = queue.as_slice().first()?;
        Some(Reverse((event.time.unwrap_or(i64::MIN), !event.is_invoke, place)))
    };
    heap.extend(queues.iter().enumerate().filter_map(|(place, queue)| rank(queue, place)));
    while let Some(Reverse((_, _, place))) = heap.pop() {
        merged.extend(queues[place].next());
        heap.extend(rank(&queues[place], place));
    }
    merged
}

/// The events of a session. An invocation that never completed ends where a completion without an invocation follows,
/// which would otherwise be taken for its own.
fn in_pairs(events: impl Iterator<Item = Event>) -> Vec<Event> {
    let mut pairs: Vec<Event> = Vec::new();
    for event in events {
        match pairs.last() {
            Some(&open) if open.is_invoke && !event.is_invoke && open.txn != event.txn => {
                pairs.push(Event { is_invoke: false, time: Some(i64::MAX), ..open });
            }
            _ => {}
        }
        pairs.push(event);
    }
    pairs
}

fn events_of(txn: Transaction<'_>) -> impl Iterator<Item = Event> + use<> {
    let span = txn.client();
    let event = |is_invoke, time| Event { txn: txn.id(), is_invoke, time };
    let invoke = span.map(|span| event(true, Some(span.begin)));
    let is_completed = txn.status() != Status::Unknown || span.is_none_or(|span| span.end != i64::MAX);
    let completion = is_completed.then(|| event(false, span.map(|span| span.end)));
    invoke.into_iter().chain(completion)
}

struct Writer<'h> {
    content: Content<'h>,
    syntax: Syntax,
    lists: bool,
    processes: Vec<i64>,
}

impl Writer<'_> {
    fn push(&self, index: usize, event: Event, by_place: bool, out: &mut Vec<u8>) -> Result<(), WriteError> {
        let history = self.content.history;
        let txn = history.transaction(event.txn);
        let kind = match (event.is_invoke, txn.status()) {
            (true, _) => "invoke",
            (false, Status::Committed) => "ok",
            (false, Status::Aborted) => "fail",
            (false, Status::Unknown) => "info",
        };
        let process = self.processes[crate::Id::index(txn.session())];
        let time = event.time.filter(|_| !by_place);
        match self.syntax {
            Syntax::Edn => {
                write!(out, "{{:index {index}, :type :{kind}, :process {process}, :f :txn, :value ")?;
                self.push_operations(txn, event.is_invoke, out)?;
                if let Some(time) = time {
                    write!(out, ", :time {time}")?;
                }
            }
            Syntax::Json => {
                write!(
                    out,
                    "{{\"index\":{index},\"type\":\"{kind}\",\"process\":{process},\"f\":\"txn\",\"value\":"
                )?;
                self.push_operations(txn, event.is_invoke, out)?;
                if let Some(time) = time {
                    write!(out, ",\"time\":{time}")?;
                }
            }
        }
        out.push(b'}');
        Ok(())
    }

    fn push_operations(
        &self,
        txn: Transaction<'_>,
        is_invoke: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), WriteError> {
        let (before, after, between, nil) = match self.syntax {
            Syntax::Edn => (":", "", " ", "nil"),
            Syntax::Json => ("\"", "\"", ",", "null"),
        };
        out.push(b'[');
        let mut is_first = true;
        for (_, op) in txn.ops() {
            let known = self.content.plain(txn, op)?;
            let is_known = known.is_some();
            let plain = match known {
                Some(plain) => plain,
                // A read without a result: nothing to say of a committed transaction, `nil` of any other.
                None if txn.is_committed() => continue,
                None => Plain::Read(op.key().unwrap_or_default(), ValueId::ABSENT),
            };
            let (name, key, value) = match plain {
                Plain::Read(key, value) => ("r", key, value),
                Plain::Write(key, value) => ("w", key, value),
                Plain::Append(key, value) => ("append", key, value),
            };
            if !std::mem::take(&mut is_first) {
                out.extend(between.bytes());
            }
            write!(out, "[{before}{name}{after}{between}")?;
            push_name(self.content.history.keys().get(key), out);
            out.extend(between.bytes());
            let is_open = name == "r" && (is_invoke || !is_known);
            let values = self.content.history.values();
            let is_absent = matches!(values.get(value), ValueRef::Null | ValueRef::List([]));
            if name == "r" && !is_open && is_absent && txn.status() == Status::Unknown {
                let what = "reads of absent keys by transactions whose outcome is unknown: nothing there would say that \
                            the result is known";
                return Err(self.content.no(what, txn));
            }
            if is_open || value == ValueId::ABSENT {
                let is_empty_list = self.lists && !is_open && txn.is_committed();
                out.extend(if is_empty_list { "[]" } else { nil }.bytes());
            } else if !push_value(self.content.history, value, nil, out) {
                return Err(self.content.no("values that are rows or nested", txn));
            }
            out.push(b']');
        }
        out.push(b']');
        Ok(())
    }
}
