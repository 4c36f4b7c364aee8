//! The levels table.

/// An isolation level: a rule on explanations, and the orders that count beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Level {
    /// What the dependency graph must not contain.
    pub rule: Rule,
    /// Whether session order counts.
    pub session: bool,
    /// Whether the clients' real-time order counts.
    pub realtime: bool,
}

/// The rule of a level, without session and real-time order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// Begins and commits interleave; reads see the snapshot at begin; first committer wins.
    SnapshotIsolation,
    /// A serial order explains everything.
    Serializable,
}
