//! Whether two answers are the same: rows in any order, numbers up to rounding.

use crate::sessions::Rows;
use databases::Value;
use std::cmp::Ordering;

/// Whether two answers are the same; with `ordered`, row by row.
pub fn same(left: &Rows, right: &Rows, ordered: bool) -> bool {
    if left == right {
        return true;
    }
    if left.len() != right.len() {
        return false;
    }
    let (mut left, mut right) = (plain(left), plain(right));
    if !ordered {
        left.sort_by(|a, b| row_order(a, b));
        right.sort_by(|a, b| row_order(a, b));
    }
    let is_close = |(a, b): (&Cell<'_>, &Cell<'_>)| a.is_close(b);
    left.iter().zip(&right).all(|(a, b)| a.len() == b.len() && a.iter().zip(b).all(is_close))
}

/// A value as it is compared: drivers give numbers as numbers or as texts.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Cell<'v> {
    Null,
    Number(f64),
    Text(&'v str),
}

impl Cell<'_> {
    fn is_close(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Number(a), Self::Number(b)) => (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1.0),
            (a, b) => a == b,
        }
    }

    fn order(&self, other: &Self) -> Ordering {
        let rank = |cell: &Self| match cell {
            Cell::Null => 0,
            Cell::Number(_) => 1,
            Cell::Text(_) => 2,
        };
        match (self, other) {
            // Zero has two signs and one meaning.
            (Cell::Number(a), Cell::Number(b)) => (a + 0.0).total_cmp(&(b + 0.0)),
            (Cell::Text(a), Cell::Text(b)) => a.cmp(b),
            (a, b) => rank(a).cmp(&rank(b)),
        }
    }
}

fn plain(rows: &Rows) -> Vec<Vec<Cell<'_>>> {
    rows.iter().map(|row| row.iter().map(cell).collect()).collect()
}

fn cell(value: &Value) -> Cell<'_> {
    match value {
        Value::Int(value) => Cell::Number(*value as f64),
        Value::Float(value) => Cell::Number(*value),
        Value::Bool(value) => Cell::Number(f64::from(*value)),
        Value::Text(text) => match text.as_bytes().first() {
            Some(b'0'..=b'9' | b'-' | b'.') => text.parse().map_or(Cell::Text(text), Cell::Number),
            _ => Cell::Text(text),
        },
        _ => Cell::Null,
    }
}

fn row_order(a: &[Cell<'_>], b: &[Cell<'_>]) -> Ordering {
    let differing = a.iter().zip(b).map(|(a, b)| a.order(b)).find(|order| order.is_ne());
    differing.unwrap_or_else(|| a.len().cmp(&b.len()))
}

/// An answer for people: one row after the other.
pub fn show(rows: &Rows) -> String {
    if rows.is_empty() {
        return "none".to_owned();
    }
    let cell = |value: &Value| match value {
        Value::Null => "NULL".to_owned(),
        Value::Int(value) => value.to_string(),
        Value::Float(value) => value.to_string(),
        Value::Bool(value) => value.to_string(),
        Value::Text(text) => text.clone(),
        other => format!("{other:?}"),
    };
    let row = |row: &Vec<Value>| format!("({})", row.iter().map(cell).collect::<Vec<_>>().join(", "));
    rows.iter().map(row).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(cells: &[&[Value]]) -> Rows {
        cells.iter().map(|row| row.to_vec()).collect()
    }

    #[test]
    fn order_matters_only_where_it_is_asked_for() {
        let a = rows(&[&[Value::Int(1), Value::Null], &[Value::Int(2), Value::Text("x".into())]]);
        let b = rows(&[&[Value::Int(2), Value::Text("x".into())], &[Value::Int(1), Value::Null]]);
        assert!(same(&a, &b, false));
        assert!(!same(&a, &b, true));
        assert!(!same(&a, &a[..1].to_vec(), false));
        assert!(!same(&rows(&[&[Value::Null]]), &rows(&[&[Value::Text(String::new())]]), false));
    }

    #[test]
    fn numbers_are_compared_as_numbers() {
        let text = |text: &str| rows(&[&[Value::Text(text.into())]]);
        assert!(same(&text("1.50000"), &rows(&[&[Value::Float(1.5)]]), false));
        assert!(same(&rows(&[&[Value::Float(0.1 + 0.2)]]), &rows(&[&[Value::Float(0.3)]]), false));
        assert!(same(&text("-0"), &text("0"), false));
        assert!(!same(&text("1.5001"), &text("1.5"), false));
        assert!(!same(&text("1a"), &text("1"), false));
    }
}
