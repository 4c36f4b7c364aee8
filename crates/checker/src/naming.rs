//! What to call a violation: Elle's name for the shape of its argument, and the common name.
//!
//! The shape is read off the edges: how many anti-dependencies the cycle has and whether two of them are
//! adjacent, whether session or real-time order is needed, whether predicates are. *Source*: Adya's
//! thesis §3 and §4 for the phenomena, Elle for the vocabulary.

use crate::rows;
use crate::verdict::{Anomaly, Edge, EdgeKind, Reason};
use history::{History, OpId, Operation, Status};

/// The name of what an argument shows.
pub(crate) fn name(history: &History, edges: &[Edge]) -> Anomaly {
    if let [only] = edges {
        return name_of_read(history, only);
    }
    if edges.iter().all(|edge| edge.kind == EdgeKind::Wr) && is_incompatible(edges) {
        return anomaly("incompatible-order", None);
    }
    if is_lost_update(edges) {
        return lost_update();
    }
    let count = |kind| edges.iter().filter(|edge| edge.kind == kind).count();
    let anti = count(EdgeKind::Rw);
    let adjacent = (0..edges.len()).any(|index| {
        let next = &edges[(index + 1) % edges.len()];
        edges.len() > 1 && edges[index].kind == EdgeKind::Rw && next.kind == EdgeKind::Rw
    });
    let item = if edges.iter().any(|edge| edge.predicate) { "" } else { "-item" };
    let (base, common) = match anti {
        // The database has no part in it.
        0 if count(EdgeKind::Rt) + count(EdgeKind::So) == edges.len() => {
            ("G0".to_owned(), Some("clocks contradict the session order"))
        }
        0 if count(EdgeKind::Added) == edges.len() => {
            ("cyclic-versions".to_owned(), Some("versions in a circle"))
        }
        0 if count(EdgeKind::Wr) == 0 => ("G0".to_owned(), Some("dirty write")),
        0 => ("G1c".to_owned(), Some("circular information flow")),
        1 => (format!("G-single{item}"), Some(single(history, edges))),
        _ if !adjacent => (format!("G-nonadjacent{item}"), Some("long fork")),
        2 if edges.len() == 2 && item.is_empty() => ("G2".to_owned(), Some("predicate write skew")),
        2 if edges.len() == 2 => ("G2-item".to_owned(), Some("write skew")),
        _ => (format!("G2{item}"), None),
    };
    let order = match (count(EdgeKind::Rt), count(EdgeKind::So)) {
        (0, 0) => "",
        (0, _) => "-process",
        _ => "-realtime",
    };
    // What a module adds is an order, too: whoever misses what came before it is behind.
    let is_ordered = !order.is_empty() || count(EdgeKind::Added) > 0;
    let common = if is_ordered { Some("stale read").filter(|_| anti == 1).or(common) } else { common };
    anomaly(&format!("{base}{order}"), common)
}

/// One of several that replaced the same version.
pub(crate) fn lost_update() -> Anomaly {
    anomaly("lost-update", Some("lost update"))
}

fn anomaly(name: &str, common: Option<&'static str>) -> Anomaly {
    Anomaly { name: name.to_owned(), common }
}

/// The common name of what a single read can show.
pub(crate) fn common_name(name: &str) -> Option<&'static str> {
    match name {
        "G1a" => Some("aborted read"),
        "G1b" => Some("intermediate read"),
        "thin-air" => Some("value from nowhere"),
        "duplicate-rows" => Some("a key twice"),
        _ => None,
    }
}

/// One edge alone: a read that is wrong whatever the order is.
fn name_of_read(history: &History, edge: &Edge) -> Anomaly {
    if let Reason::Saw { read, .. } = edge.reason
        && has_an_element_twice(history, read)
    {
        return anomaly("duplicate-elements", None);
    }
    if let Reason::Saw { read, .. } = edge.reason
        && rows::twice(&history.operation(read)).is_some()
    {
        return anomaly("duplicate-rows", Some("a key twice"));
    }
    match edge.reason {
        Reason::Missed { read, write } if history.owner(read) == history.owner(write) => {
            anomaly("internal", None)
        }
        Reason::Saw { read, write: None } if wrote_it_later(history, read) => anomaly("future-read", None),
        Reason::Saw { write: None, .. } => anomaly("thin-air", Some("value from nowhere")),
        Reason::Saw { read, write: Some(write) } => {
            let (reader, writer) = (history.owner(read), history.owner(write));
            if reader == writer {
                return anomaly("future-read", None);
            }
            let is_intermediate = is_intermediate(history, edge);
            match (history.transaction(writer).status(), history.operation(write)) {
                (Status::Aborted, _) => anomaly("G1a", Some("aborted read")),
                (_, Operation::Append { .. }) if !is_intermediate => anomaly("incompatible-order", None),
                // Nobody knows whether it committed, but what it says of itself it cannot have done.
                (Status::Unknown, _) if !is_intermediate => anomaly("G1a", Some("aborted read")),
                _ => anomaly("G1b", Some("intermediate read")),
            }
        }
        _ => anomaly("internal", None),
    }
}

/// Whether the reader itself wrote what it read, but only afterwards.
fn wrote_it_later(history: &History, read: OpId) -> bool {
    let Operation::Read { key, value, .. } = history.operation(read) else { return false };
    let last = history.values_of(value).last().copied();
    let mut later = history.transaction(history.owner(read)).ops().filter(|&(op, _)| op > read);
    later.any(|(_, operation)| match operation {
        Operation::Write { key: at, value: it } => at == key && it == value,
        Operation::Append { key: at, value: it } => at == key && Some(it) == last,
        _ => false,
    })
}

/// Whether a read returned a list with an element twice.
fn has_an_element_twice(history: &History, read: OpId) -> bool {
    let Operation::Read { value, .. } = history.operation(read) else { return false };
    let mut elements = history.values_of(value).to_vec();
    elements.sort_unstable();
    elements.windows(2).any(|pair| pair[0] == pair[1])
}

/// Whether the writer of what was read wrote the key again afterwards.
fn is_intermediate(history: &History, edge: &Edge) -> bool {
    let Reason::Saw { write: Some(write), .. } = edge.reason else { return false };
    let key = history.operation(write).key();
    let later = history.transaction(history.owner(write)).ops().filter(|&(op, _)| op > write);
    later.into_iter().any(|(_, it)| it.key() == key && !matches!(it, Operation::Read { .. }))
}

/// Two lists of one key of which neither begins the other.
fn is_incompatible(edges: &[Edge]) -> bool {
    let [one, two] = edges else { return false };
    let is_cycle = Some(one.to) == two.from && Some(two.to) == one.from;
    one.key == two.key && !is_cycle
}

/// Two transactions overwrote the same version of a key without seeing each other.
fn is_lost_update(edges: &[Edge]) -> bool {
    let [one, two] = edges else { return false };
    let on_one_key = one.key.is_some() && one.key == two.key;
    let kinds = [one.kind, two.kind];
    on_one_key && kinds.contains(&EdgeKind::Rw) && !kinds.contains(&EdgeKind::Wr)
}

/// Common names of a cycle with one anti-dependency.
fn single(history: &History, edges: &[Edge]) -> &'static str {
    match edges {
        [one, two] if one.key == two.key && (one.predicate || two.predicate) => {
            if asks_two_things(history, one, two) { "predicate-many-preceders" } else { "phantom" }
        }
        [one, two] if one.key == two.key => "non-repeatable read",
        [_, _] => "fractured read",
        _ => "read skew",
    }
}

/// Whether what was seen and what was missed are the results of two different predicates or ranges.
fn asks_two_things(history: &History, one: &Edge, two: &Edge) -> bool {
    let asked = |edge: &Edge| match edge.reason {
        Reason::Saw { read, .. } | Reason::Missed { read, .. } => match history.operation(read) {
            Operation::Scan { range, .. } | Operation::Iterate { range, .. } => Some((Some(range), None)),
            Operation::Query { predicate, .. } => Some((None, Some(predicate.clone()))),
            _ => None,
        },
        _ => None,
    };
    matches!((asked(one), asked(two)), (Some(one), Some(two)) if one != two)
}
