//! Some columns of all session clocks.
//!
//! **Invariant.** A row says of each chain of the columns which of its transactions precede the row's transaction, or are it:
//! all whose numbers are smaller than the entry. **Steps.** In the order of numbers, which keeps to session order and wr, the largest of
//! what the rows of direct predecessors say; then oneself. **Cost.** Edges × columns; 4 bytes an entry.

use super::NONE;
use super::graph::Graph;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// The columns of some chains.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Columns {
    from: u32,
    width: usize,
    rows: Vec<u32>,
}

impl Columns {
    /// How many columns are computed at once.
    pub const AT_ONCE: u32 = 64;

    /// Computes the columns of some chains.
    pub fn new(graph: &Graph, chains: Range<u32>) -> Self {
        let width = chains.len();
        let mut rows = vec![0; graph.len() * width];
        if width == 0 {
            return Self { from: chains.start, width, rows };
        }
        let mut row = vec![0; width];
        for txn in (0..graph.len() as u32).filter(|&txn| graph.took_effect(txn)) {
            row.fill(0);
            let mut last = NONE;
            let mut take = |before: u32| {
                if before == NONE || before == last {
                    return;
                }
                last = before;
                let theirs = &rows[before as usize * width..][..width];
                for (mine, &seen) in row.iter_mut().zip(theirs) {
                    *mine = seen.max(*mine);
                }
            };
            take(graph.previous[txn as usize]);
            graph.sources_of(txn).iter().copied().for_each(&mut take);
            let chain = graph.chain[txn as usize];
            if chains.contains(&chain) {
                row[(chain - chains.start) as usize] = txn + 1;
            }
            rows[txn as usize * width..][..width].copy_from_slice(&row);
        }
        Self { from: chains.start, width, rows }
    }

    /// The chains.
    pub fn chains(&self) -> Range<u32> {
        self.from..self.from + self.width as u32
    }

    #[inline]
    pub(super) fn row(&self, txn: u32) -> &[u32] {
        &self.rows[txn as usize * self.width..][..self.width]
    }

    /// The chains of neighbouring columns.
    pub(super) fn span(all: &[impl AsRef<Self>]) -> Range<u32> {
        let first = all.first().map_or(0, |columns| columns.as_ref().from);
        let mut end = first;
        for columns in all.iter().map(AsRef::as_ref) {
            assert_eq!(columns.from, end, "columns are told in their order");
            end += columns.width as u32;
        }
        first..end
    }
}
