//! The fields that transactions and operations have, and what is said of any other.
//!
//! A field that is not listed is refused: a typo must not turn a check off. Free-form data goes into `ctx`.

use super::super::Fault;

/// What a line's operation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OpKind {
    Read,
    Write,
    Delete,
    Append,
    Scan,
    Iterate,
    Query,
    Update,
    DeleteWhere,
    Cas,
}

impl OpKind {
    #[inline]
    pub(super) fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "read" => Self::Read,
            "write" => Self::Write,
            "delete" => Self::Delete,
            "append" => Self::Append,
            "scan" => Self::Scan,
            "iterate" => Self::Iterate,
            "query" => Self::Query,
            "update" => Self::Update,
            "delete-where" => Self::DeleteWhere,
            "cas" => Self::Cas,
            _ => return None,
        })
    }

    fn name(self) -> &'static str {
        match self {
            Self::Read => "a read",
            Self::Write => "a write",
            Self::Delete => "a delete",
            Self::Append => "an append",
            Self::Scan => "a scan",
            Self::Iterate => "an iterate",
            Self::Query => "a query",
            Self::Update => "an update",
            Self::DeleteWhere => "a delete-where",
            Self::Cas => "a cas",
        }
    }

    /// Its own fields; every operation has `op`, `at` and `ctx` as well.
    fn fields(self) -> &'static [&'static str] {
        match self {
            Self::Read => &["key", "value", "lock"],
            Self::Write | Self::Append => &["key", "value"],
            Self::Delete => &["key"],
            Self::Scan => &["from", "to", "rows"],
            Self::Iterate => &["from", "to", "reverse", "rows", "exhausted"],
            Self::Query => &["where", "rows"],
            Self::Update => &["where", "set", "count", "keys"],
            Self::DeleteWhere => &["where", "count", "keys"],
            Self::Cas => &["key", "expect", "write", "ok"],
        }
    }
}

/// What a field belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    Transaction,
    Operation(OpKind),
}

const OF_TRANSACTIONS: &[&str] = &["session", "id", "seq", "status", "client", "db", "level", "ops", "ctx"];
const OF_OPERATIONS: &[&str] = &["op", "at", "ctx"];

impl Owner {
    fn name(self) -> &'static str {
        match self {
            Self::Transaction => "a transaction",
            Self::Operation(kind) => kind.name(),
        }
    }

    fn fields(self) -> impl Iterator<Item = &'static str> {
        let (own, shared) = match self {
            Self::Transaction => (OF_TRANSACTIONS, &[][..]),
            Self::Operation(kind) => (kind.fields(), OF_OPERATIONS),
        };
        own.iter().chain(shared).copied()
    }
}

/// What is said of a field that its owner does not have.
#[cold]
pub(super) fn unknown(owner: Owner, at: usize, name: &str) -> Fault {
    let problem = format!("{} has no field `{name}`", owner.name());
    let known: Vec<&str> = owner.fields().collect();
    let all = format!("{}; anything else goes into `ctx`", listed(&known));
    let expected = match nearest(name, &known) {
        Some(near) => format!("`{near}` ({} has {all})", owner.name()),
        None => all,
    };
    Fault::new(at, problem, expected)
}

/// What is said of a field that would change the meaning of its operation and is not supported. Such a field is refused
/// even where unknown ones are ignored: without it the operation says something else.
#[cold]
pub(super) fn unsupported(owner: Owner, at: usize, name: &str) -> Option<Fault> {
    let Owner::Operation(kind) = owner else { return None };
    let many = matches!(kind, OpKind::Scan | OpKind::Iterate | OpKind::Query);
    let expected = match (name, kind) {
        ("limit", OpKind::Scan) => {
            "an `iterate` for the first rows of a range; a scan holds all of them".to_owned()
        }
        ("limit" | "offset" | "order" | "desc", _) if many => {
            format!("the result of the whole {}", &kind.name()[2..].trim_start())
        }
        ("where", OpKind::Scan | OpKind::Iterate) => "a `query` for rows that satisfy a predicate".to_owned(),
        ("lock", _) if kind != OpKind::Read => {
            "a lock on reads of one key only; no other operation can have one".to_owned()
        }
        ("count", OpKind::Query | OpKind::Scan | OpKind::Iterate) => {
            "`rows`: the rows themselves, not their number".to_owned()
        }
        ("column" | "columns", _) => {
            "the whole value: a row is read and written with all its columns".to_owned()
        }
        _ => return None,
    };
    Some(Fault::new(at, format!("`{name}` on {} is not supported", kind.name()), expected))
}

/// Names in a sentence.
fn listed(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [only] => format!("`{only}`"),
        [first @ .., last] => {
            let first: Vec<String> = first.iter().map(|name| format!("`{name}`")).collect();
            format!("{} and `{last}`", first.join(", "))
        }
    }
}

/// What people call fields in other formats, and what they are called here.
const OTHER_NAMES: &[(&str, &[&str])] = &[
    ("result", &["rows", "value"]),
    ("results", &["rows"]),
    ("values", &["rows", "value"]),
    ("val", &["value"]),
    ("data", &["rows", "value"]),
    ("start", &["from"]),
    ("end", &["to"]),
    ("begin", &["from", "client"]),
    ("until", &["to"]),
    ("f", &["op"]),
    ("type", &["op", "status"]),
    ("kind", &["op"]),
    ("process", &["session"]),
    ("client_id", &["session"]),
    ("operations", &["ops"]),
    ("txn", &["ops", "id"]),
    ("outcome", &["status"]),
    ("state", &["status"]),
    ("time", &["client", "at"]),
    ("predicate", &["where"]),
    ("affected", &["count"]),
    ("isolation", &["level"]),
    ("elem", &["value"]),
    ("from", &["expect"]),
    ("old", &["expect"]),
    ("expected", &["expect"]),
    ("new", &["write"]),
    ("set", &["write"]),
    ("success", &["ok"]),
    ("element", &["value"]),
];

/// The known name that is meant, if one is near enough.
fn nearest<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    let lower = name.to_lowercase();
    let find = |wanted: &str| known.iter().copied().find(|known| *known == wanted);
    if let Some((_, meant)) = OTHER_NAMES.iter().find(|(other, _)| *other == lower)
        && let Some(found) = meant.iter().find_map(|meant| find(meant))
    {
        return Some(found);
    }
    crate::suggest::nearest(&lower, known.iter().copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_named() {
        for (owner, written, meant) in [
            (Owner::Transaction, "statuss", Some("status")),
            (Owner::Transaction, "Session", Some("session")),
            (Owner::Transaction, "sesion", Some("session")),
            (Owner::Transaction, "operations", Some("ops")),
            (Owner::Transaction, "process", Some("session")),
            (Owner::Transaction, "colour", None),
            (Owner::Operation(OpKind::Write), "val", Some("value")),
            (Owner::Operation(OpKind::Write), "vaule", Some("value")),
            (Owner::Operation(OpKind::Write), "kye", Some("key")),
            (Owner::Operation(OpKind::Scan), "result", Some("rows")),
            (Owner::Operation(OpKind::Read), "result", Some("value")),
            (Owner::Operation(OpKind::Delete), "value", None),
            (Owner::Operation(OpKind::Iterate), "exausted", Some("exhausted")),
        ] {
            let known: Vec<&str> = owner.fields().collect();
            assert_eq!(nearest(written, &known), meant, "{written}");
        }
    }
}
