//! What an operation's result says of single keys.
//!
//! A scan or an iterator passes the keys of its range in order; of each it says what a read would say. The rows of a
//! query say what their keys hold; of the other keys a query says only that they do not satisfy it, which no read says.

use super::content::Seen;
use history::{Area, Column, History, Id, KeyId, Primitive, Range, Row, ValueId, Values};

/// Which keys operations pass.
pub(super) struct Passed<'h> {
    values: &'h Values,
    rank: Column<KeyId, u32>,
    by_rank: Vec<KeyId>,
}

impl<'h> Passed<'h> {
    pub(super) fn new(history: &'h History) -> Self {
        let rank = history.keys().ranks();
        let mut by_rank = vec![KeyId::default(); rank.len()];
        for key in history.keys().ids() {
            by_rank[rank[key.index()] as usize] = key;
        }
        Self { values: history.values(), rank: rank.into(), by_rank }
    }

    /// Tells every key of which the operation's result says what it holds, and what; results that are not known
    /// are left out.
    pub(super) fn results(&self, operation: Primitive<'_>, mut tell: impl FnMut(KeyId, ValueId)) {
        match operation {
            Primitive::Read { key, value, .. } if value.is_known() => tell(key, value),
            Primitive::Show { area: Area::Range { range, reverse, to_the_end }, rows: Some(rows) } => {
                self.range(range, reverse, to_the_end, rows, tell);
            }
            Primitive::Show { area: Area::Where(_), rows: Some(rows) } => {
                let is_there =
                    |row: &&Row| row.value.is_known() && Seen::of(self.values, row.value) != Seen::Absent;
                rows.iter().filter(is_there).for_each(|row| tell(row.key, row.value));
            }
            _ => {}
        }
    }

    /// Rows that no range shows, whatever its keys hold: outside of it, out of order, or twice.
    pub(super) fn is_malformed(&self, operation: Primitive<'_>) -> bool {
        let (range, reverse, rows) = match operation {
            Primitive::Show { area: Area::Range { range, reverse, .. }, rows: Some(rows) } => {
                (range, reverse, rows)
            }
            Primitive::Show { area: Area::Where(_), rows: Some(rows) } => {
                let mut keys: Vec<KeyId> = rows.iter().map(|row| row.key).collect();
                keys.sort_unstable();
                return keys.windows(2).any(|pair| pair[0] == pair[1]);
            }
            _ => return false,
        };
        let ranks = self.interval(range);
        let follows = |pair: &[Row]| {
            let (first, second) = (self.rank[pair[0].key], self.rank[pair[1].key]);
            if reverse { first > second } else { first < second }
        };
        !rows.iter().all(|row| ranks.contains(&self.rank[row.key])) || !rows.windows(2).all(follows)
    }

    fn range(
        &self,
        range: Range,
        reverse: bool,
        to_the_end: bool,
        rows: &[Row],
        mut tell: impl FnMut(KeyId, ValueId),
    ) {
        let whole = self.interval(range);
        let passed = match rows.last() {
            _ if to_the_end => whole,
            None => return,
            Some(last) if reverse => self.rank[last.key]..whole.end,
            Some(last) => whole.start..self.rank[last.key] + 1,
        };
        let mut rows: Vec<Row> = rows.to_vec();
        rows.sort_unstable_by_key(|row| self.rank[row.key]);
        let mut rows = rows.into_iter().peekable();
        for &key in self.by_rank.get(passed.start as usize..passed.end as usize).unwrap_or_default() {
            let value = match rows.next_if(|row| row.key == key) {
                Some(row) if !row.value.is_known() => continue,
                Some(row) => row.value,
                None => ValueId::ABSENT,
            };
            tell(key, value);
        }
    }

    fn interval(&self, range: Range) -> std::ops::Range<u32> {
        let start = range.from.map_or(0, |key| self.rank[key]);
        let end = range.to.map_or(self.by_rank.len() as u32, |key| self.rank[key]);
        start..end.max(start)
    }
}
