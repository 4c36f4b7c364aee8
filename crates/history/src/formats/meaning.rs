//! What reads well and would be taken for something else.
//!
//! An update's `set` is the whole new value. A row that holds some columns of the rows beside it is most likely meant to
//! change those columns only, which is not supported: it is refused rather than taken for a row without the others. A
//! predicate on `key` is most likely meant for the row's key, which predicates do not see.

use super::Fault;
use crate::model::kind;
use crate::{Builder, Cell, ColumnId, History, OpId, Predicate, ValueId, ValueRef};
use rustc_hash::FxHashSet;

pub(super) const WHOLE_VALUE: &str = "the whole new value: a `set` of single columns is not supported";

/// The name that would stand for a row's key.
pub(super) const KEY: &str = "key";

/// What is said of a predicate on keys.
#[cold]
pub(super) fn about_keys(at: usize) -> Fault {
    Fault::new(
        at,
        "a predicate on `key` is not supported: predicates are about columns of the value",
        "a `scan` for a range of keys, or a column of another name",
    )
}

/// A column that `predicate` asks for and the row `set` does not have.
pub(super) fn lost_column(builder: &Builder, predicate: &Predicate, set: ValueId) -> Option<ColumnId> {
    let ValueRef::Row(cells) = builder.value(set) else { return None };
    let lost = |column: &ColumnId| cells.iter().all(|cell| cell.column != *column);
    predicate.comparisons().map(|(column, _)| *column).find(lost)
}

/// Why an update of the history is not what it seems, if one is.
pub(super) fn partial_update(history: &History) -> Option<String> {
    if history.compounds.is_empty() {
        return None;
    }
    let mut updates: Vec<(OpId, &[Cell])> = Vec::new();
    let mut seen = FxHashSet::default();
    for (op, packed) in history.ops.ids().zip(history.ops.iter()) {
        if packed.kind != kind::UPDATE {
            continue;
        }
        let set = history.compounds.get(packed.a as usize)?.set;
        if let ValueRef::Row(cells) = history.values.get(set)
            && seen.insert(columns_of(cells))
        {
            updates.push((op, cells));
        }
    }
    if updates.is_empty() {
        return None;
    }
    let mut shapes = FxHashSet::default();
    for row in history.values.rows() {
        if !shapes.insert(columns_of(row)) {
            continue;
        }
        let has = |cell: &Cell| row.iter().any(|other| other.column == cell.column);
        let part = updates.iter().find(|(_, set)| set.len() < row.len() && set.iter().all(has));
        if let Some(&(op, set)) = part {
            let lost = row.iter().find(|cell| set.iter().all(|other| other.column != cell.column))?;
            return Some(format!(
                "transaction {}: an update's `set` has no column `{}`, which other rows have; expected {WHOLE_VALUE}",
                history.transaction(history.owner(op)).name(),
                history.values.columns().get(lost.column)
            ));
        }
    }
    None
}

fn columns_of(row: &[Cell]) -> Vec<ColumnId> {
    row.iter().map(|cell| cell.column).collect()
}
