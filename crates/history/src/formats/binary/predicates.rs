//! Predicates as words in prefix order.

use super::checks::Tables;
use crate::{ColumnId, Comparison, Predicate, ValueId};

const ALL: u32 = 0;
const ANY: u32 = 1;
const NOT: u32 = 2;
const COMPARE: u32 = 3;

/// The order in which the layout numbers the comparisons.
const COMPARISONS: [Comparison; 6] = [
    Comparison::Equal,
    Comparison::NotEqual,
    Comparison::Less,
    Comparison::LessOrEqual,
    Comparison::Greater,
    Comparison::GreaterOrEqual,
];

/// Deeper than what any reader admits, shallow enough for the stack.
const DEPTH_MAX: usize = 256;

pub(super) fn push(words: &mut Vec<u32>, predicate: &Predicate) {
    match predicate {
        Predicate::All(parts) | Predicate::Any(parts) => {
            let word = if matches!(predicate, Predicate::All(_)) { ALL } else { ANY };
            words.extend([word, parts.len() as u32]);
            parts.iter().for_each(|part| push(words, part));
        }
        Predicate::Not(part) => {
            words.push(NOT);
            push(words, part);
        }
        Predicate::Compare { column, with, constant } => {
            let number = COMPARISONS.iter().position(|other| other == with).unwrap_or(0) as u32;
            words.extend([COMPARE + number, column.0, constant.0]);
        }
    }
}

/// All predicates; on damage, the index of the word.
pub(super) fn read(words: &[u32], tables: &Tables) -> Result<Vec<Predicate>, usize> {
    let mut reader = Reader { words, at: 0, tables };
    let mut predicates = Vec::new();
    while reader.at < words.len() {
        predicates.push(reader.predicate(0)?);
    }
    Ok(predicates)
}

struct Reader<'a> {
    words: &'a [u32],
    at: usize,
    tables: &'a Tables,
}

impl Reader<'_> {
    fn word(&mut self) -> Result<u32, usize> {
        let word = *self.words.get(self.at).ok_or(self.at)?;
        self.at += 1;
        Ok(word)
    }

    fn predicate(&mut self, depth: usize) -> Result<Predicate, usize> {
        let start = self.at;
        if depth == DEPTH_MAX {
            return Err(start);
        }
        match self.word()? {
            word @ (ALL | ANY) => {
                let count = self.word()? as usize;
                // Each part takes at least a word: a count that cannot be true reserves nothing.
                let mut parts = Vec::with_capacity(count.min(self.words.len() - self.at));
                for _ in 0..count {
                    parts.push(self.predicate(depth + 1)?);
                }
                Ok(if word == ALL { Predicate::All(parts) } else { Predicate::Any(parts) })
            }
            NOT => Ok(Predicate::Not(Box::new(self.predicate(depth + 1)?))),
            word => {
                let with = *COMPARISONS.get((word - COMPARE) as usize).ok_or(start)?;
                let column = ColumnId(self.word()?);
                let constant = ValueId(self.word()?);
                if !self.tables.is_column(column) || !self.tables.is_known_value(constant) {
                    return Err(start);
                }
                Ok(Predicate::Compare { column, with, constant })
            }
        }
    }
}
