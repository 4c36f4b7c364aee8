//! What to call a violation: Elle's name for the shape of its argument, and the common name.
//!
//! The shape is read off the edges: how many anti-dependencies the cycle has and whether two of them are
//! adjacent, whether session or real-time order is needed, whether predicates are. *Source*: Adya's
//! thesis §3 and §4 for the phenomena, Elle for the vocabulary.

use history::{Area, History, KeyId, OpId, Primitive, Status, TxnId};
use isolation::{Anomaly, Argument, Edge, EdgeKind, Impossible, Reason, Supposition};
use search::rows;

/// The name of what an argument shows; where it is a case distinction, of what its first case does.
pub(crate) fn name(history: &History, argument: &Argument) -> Anomaly {
    let edges = argument.end().edges.as_slice();
    if let [only] = edges {
        return match was_seen(history, argument, only.to) {
            true => anomaly("G1a", Some("aborted read")),
            false => name_of_read(history, only),
        };
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
            ("cyclic-versions".to_owned(), Some("cyclic version order"))
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

/// Whether what is wrong is wrong about a transaction of unknown outcome, and another saw what it wrote: then it cannot
/// have committed, and that is what is wrong with seeing it.
fn was_seen(history: &History, argument: &Argument, txn: TxnId) -> bool {
    let by = |read: OpId, write: Option<OpId>| {
        history.owner(read) != txn && write.is_some_and(|write| history.owner(write) == txn)
    };
    let shows = |edge: &Edge| matches!(edge.reason, Reason::Saw { read, write } if by(read, write));
    let mut at = Some(argument);
    while let Some(it) = at.filter(|_| history.transaction(txn).status() == Status::Unknown) {
        let first = it.cases.as_ref().and_then(|cases| cases.told.first());
        let supposed = first.is_some_and(
            |case| matches!(case.suppose, Supposition::Source { read, write, .. } if by(read, write)),
        );
        if supposed || it.support.iter().any(shows) {
            return true;
        }
        at = first.map(|case| &case.argument);
    }
    false
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
        "duplicate-rows" => Some("key returned twice"),
        _ => None,
    }
}

/// One edge alone: a read that is wrong whatever the order is.
fn name_of_read(history: &History, edge: &Edge) -> Anomaly {
    if let Reason::Impossible { why, .. } = edge.reason {
        return impossible(why);
    }
    if let (Reason::Saw { read, .. }, Some(key)) = (&edge.reason, edge.key)
        && has_an_element_twice(history, *read, key)
    {
        return anomaly("duplicate-elements", None);
    }
    if let Reason::Saw { read, .. } = edge.reason
        && rows::twice(&history.primitive(read)).is_some()
    {
        return anomaly("duplicate-rows", Some("key returned twice"));
    }
    match edge.reason {
        Reason::Missed { read, write } if history.owner(read) == history.owner(write) => {
            anomaly("internal", None)
        }
        Reason::Saw { write: None, .. } => anomaly("thin-air", Some("value from nowhere")),
        Reason::Saw { read, write: Some(write) } => {
            let (reader, writer) = (history.owner(read), history.owner(write));
            if reader == writer {
                return anomaly(if write < read { "internal" } else { "future-read" }, None);
            }
            match history.transaction(writer).status() {
                Status::Aborted => anomaly("G1a", Some("aborted read")),
                _ if is_intermediate(history, edge) => anomaly("G1b", Some("intermediate read")),
                _ => anomaly("incompatible-order", None),
            }
        }
        _ => anomaly("internal", None),
    }
}

/// What no state of any store gives.
fn impossible(why: Impossible) -> Anomaly {
    match why {
        Impossible::Order => anomaly("impossible-order", Some("rows out of order")),
        Impossible::Row(_) => anomaly("impossible-row", Some("row outside the query")),
        Impossible::Count => anomaly("impossible-count", Some("impossible row count")),
        Impossible::Own(_) => anomaly("internal", None),
        Impossible::Differs(..) => anomaly("G-single-item", Some("non-repeatable read")),
        Impossible::Read(_) => anomaly("impossible-read", Some("value the key cannot have held")),
    }
}

/// Whether a read returned a list with an element twice.
fn has_an_element_twice(history: &History, read: OpId, key: KeyId) -> bool {
    let operation = history.primitive(read);
    rows::returned(&operation).filter(|(at, _)| *at == key).any(|(_, value)| {
        let mut elements = history.values_of(value).to_vec();
        elements.sort_unstable();
        elements.windows(2).any(|pair| pair[0] == pair[1])
    })
}

/// Whether the writer of what was read wrote the key again afterwards.
fn is_intermediate(history: &History, edge: &Edge) -> bool {
    let (Reason::Saw { write: Some(write), .. }, Some(key)) = (&edge.reason, edge.key) else { return false };
    let mut later = history.transaction(history.owner(*write)).primitives().filter(|&(op, _)| op > *write);
    later.any(|(_, it)| it.certainly_wrote(key))
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
        Reason::Saw { read, .. } | Reason::Missed { read, .. } => match history.primitive(read) {
            Primitive::Show { area: Area::Range { range, .. }, .. } => Some((Some(range), None)),
            Primitive::Show { area: Area::Where(predicate), .. } => Some((None, Some(predicate.clone()))),
            _ => None,
        },
        _ => None,
    };
    matches!((asked(one), asked(two)), (Some(one), Some(two)) if one != two)
}
