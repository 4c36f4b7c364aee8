//! The table that a workload needs.

use record::{LIST_COLUMN, SCALAR_COLUMN};

/// The table that a workload needs: what its keys are, and which columns its values fill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schema {
    /// Integers or text.
    pub key: Kind,
    /// The columns beside the key. Scalars live in a column named `value`, lists in one named `list`.
    pub columns: Vec<Column>,
    /// Whether columns may be NULL: where values of several shapes share the table, or rows leave
    /// columns out.
    pub nullable: bool,
}

/// A column of a [`Schema`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name: lower-case letters, digits and `_`.
    pub name: String,
    /// What it holds.
    pub kind: Kind,
}

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// 64-bit integers.
    Int,
    /// Text, ordered by its bytes.
    Text,
    /// A list, as the text of its elements in JSON, separated by commas.
    List,
}

impl Schema {
    /// Integer keys with integer values.
    pub fn integers() -> Self {
        Self::with(Kind::Int, &[(SCALAR_COLUMN, Kind::Int)])
    }

    /// Integer keys with lists.
    pub fn lists() -> Self {
        Self::with(Kind::Int, &[(LIST_COLUMN, Kind::List)])
    }

    /// Integer keys with rows of integer columns.
    pub fn rows(columns: &[&str]) -> Self {
        let columns: Vec<_> = columns.iter().map(|name| (*name, Kind::Int)).collect();
        Self::with(Kind::Int, &columns)
    }

    /// Keys and columns as given.
    pub fn with(key: Kind, columns: &[(&str, Kind)]) -> Self {
        let mixed =
            columns.len() > 1 && columns.iter().any(|(name, _)| [SCALAR_COLUMN, LIST_COLUMN].contains(name));
        let columns =
            columns.iter().map(|(name, kind)| Column { name: (*name).to_owned(), kind: *kind }).collect();
        Self { key, columns, nullable: mixed }
    }
}
