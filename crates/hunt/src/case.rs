//! A test case as it is executed: texts, and what is known of each.
//!
//! Everything behind the generator works on this form alone — execution, graph, oracle, files — so that a case
//! that was read from a file is as good as one that was generated.

use databases::View;
use std::fmt;

/// The place of a transaction; each has a session of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TxnNo(pub u32);

impl TxnNo {
    /// As an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for TxnNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "T{}", self.0)
    }
}

/// The name of a step; it stays when others go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StepNo(pub u32);

impl fmt::Display for StepNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "S{}", self.0)
    }
}

/// The place of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableNo(pub u32);

impl TableNo {
    /// From an index.
    pub fn of(index: usize) -> Self {
        Self(u32::try_from(index).expect("a case has few tables"))
    }

    /// As an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A test case.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Case {
    /// The names of the tables.
    pub tables: Vec<String>,
    /// The names of the views.
    pub views: Vec<String>,
    /// The statements that make tables, indexes and views.
    pub schema: Vec<String>,
    /// The statements that fill the tables.
    pub rows: Vec<String>,
    /// The steps in the order of submission.
    pub steps: Vec<Step>,
}

/// A step of a transaction.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// What names it.
    pub number: StepNo,
    /// Its transaction.
    pub txn: TxnNo,
    /// What is done.
    pub act: Act,
}

/// What a step does.
#[derive(Clone, Debug, PartialEq)]
pub enum Act {
    /// Begins the transaction.
    Begin,
    /// Commits it.
    Commit,
    /// Rolls it back.
    Rollback,
    /// Marks a place in it.
    Savepoint(String),
    /// Goes back to that place.
    RollbackTo(String),
    /// A statement.
    Statement(Box<Instrumented>),
}

/// What a statement does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// Reads.
    Select,
    /// Adds rows, or overwrites those whose key is there.
    Insert,
    /// Overwrites rows.
    Update,
    /// Removes rows.
    Delete,
}

impl Kind {
    /// All of them, with the way they are written.
    pub const ALL: [(&'static str, Self); 4] = [
        ("select", Self::Select),
        ("insert", Self::Insert),
        ("update", Self::Update),
        ("delete", Self::Delete),
    ];

    /// The way it is written.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, kind)| *kind == self).map_or("", |(name, _)| name)
    }
}

/// A statement with the reads around it.
#[derive(Clone, Debug, PartialEq)]
pub struct Instrumented {
    /// What it does.
    pub kind: Kind,
    /// The table it writes.
    pub target: Option<TableNo>,
    /// The version it installs.
    pub version: i64,
    /// Whether another statement installs the same version.
    pub shared: bool,
    /// What it looks at.
    pub view: View,
    /// Whether the order of its rows matters.
    pub ordered: bool,
    /// The table whose rows it shows, with key and version first.
    pub items: Option<TableNo>,
    /// The version-set reads.
    pub versions: Vec<(TableNo, String)>,
    /// The before-write read.
    pub before: Option<String>,
    /// Itself.
    pub sql: String,
    /// The after-write read.
    pub after: Option<String>,
}

impl Case {
    /// How many transactions there are, counting up to the last one that is left.
    pub fn transactions(&self) -> usize {
        self.steps.iter().map(|step| step.txn.index() + 1).max().unwrap_or(0)
    }

    /// The statements with their steps.
    pub fn statements(&self) -> impl Iterator<Item = (&Step, &Instrumented)> {
        self.steps.iter().filter_map(|step| match &step.act {
            Act::Statement(statement) => Some((step, &**statement)),
            _ => None,
        })
    }

    /// The case without some steps.
    pub fn without(&self, gone: &[StepNo]) -> Self {
        let steps = self.steps.iter().filter(|step| !gone.contains(&step.number)).cloned().collect();
        Self { steps, ..self.clone() }
    }

    /// The case with its steps in another order; steps that are not listed keep their place at the end.
    pub fn arranged(&self, order: &[StepNo]) -> Self {
        let place =
            |step: &Step| order.iter().position(|number| *number == step.number).unwrap_or(order.len());
        let mut steps = self.steps.clone();
        steps.sort_by_key(place);
        Self { steps, ..self.clone() }
    }
}
