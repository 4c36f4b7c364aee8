//! Large files, accepted part by part.
//!
//! **What.** A file that is sorted by commit and whose timestamps explain it needs no history in memory: each part is
//! replayed as it is read. What is not accepted so is read whole and checked as usual.
//!
//! **Invariant.** Only acceptance comes from here, and only where the usual way accepts, too.

use super::{Checker, cost};
use crate::{Asked, Claim, History, refusal};
use checker::{Budget, By, Orders, Ryow};
use history::formats::{ReadOptions, read_parts};
use replay::Streamed;
use report::{Finding, Size};
use std::path::Path;
use std::time::{Duration, Instant};

/// Files from this size on are first tried part by part.
const LARGE_BYTES: u64 = 16 << 20;

impl Checker {
    /// Accepts a large file part by part, if that is possible: it is sorted by commit, and the order of its timestamps
    /// explains it at every level asked for. None if it has to be read whole.
    pub fn accept_in_parts(
        &self,
        file: &Path,
        reading: &ReadOptions,
        asked: &[Asked],
    ) -> Option<Vec<Finding>> {
        let is_large = std::fs::metadata(file).is_ok_and(|meta| meta.is_file() && meta.len() >= LARGE_BYTES);
        if self.compares
            || !self.required.is_empty()
            || !is_large
            || reading.lenient
            || self.limits.are_set()
            || self.policy.ryow != Ryow::Must
        {
            return None;
        }
        let options = self.options(Budget::unlimited());
        let started = Instant::now();
        let mut claims: Vec<(Claim, Streamed)> = Vec::new();
        let mut orders = Orders::default();
        let mut check_time = Duration::ZERO;
        let mut take = |part: &History| {
            if claims.is_empty() {
                for claim in self.policy.claims(asked, part.level()).ok()? {
                    let level = match claim.by {
                        By::Timestamps => claim.level,
                        By::Results => checker::hint(&claim, &options)?,
                    };
                    claims.push((claim, Streamed::new(level).ok()?));
                }
            }
            let started = Instant::now();
            orders.take(part);
            for (claim, streamed) in &mut claims {
                refusal::is_promised(part, claim, &self.policy.names).ok()?;
                streamed.take(part).ok()?;
            }
            check_time += started.elapsed();
            Some(())
        };
        let whole = read_parts(file, reading, |part| take(&part).is_some()).ok()?;
        if !whole || claims.iter().any(|(claim, _)| orders.lack(claim.level).is_some()) {
            return None;
        }
        let name = file.display().to_string();
        let read_time = started.elapsed().saturating_sub(check_time);
        let cost = cost(read_time, check_time / u32::try_from(claims.len().max(1)).unwrap_or(1));
        let count = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        let finding = |(claim, streamed): &(Claim, Streamed)| {
            let (transactions, operations, sessions) = streamed.size();
            let size = Size { transactions: count(transactions), operations: count(operations), sessions };
            Finding::accepted(&name, *claim, size, cost).with_coverage(streamed.coverage())
        };
        let findings: Vec<Finding> = claims.iter().map(finding).collect();
        // A file without committed transactions is for the usual way to refuse.
        claims.first().is_some_and(|(_, streamed)| streamed.has_committed()).then_some(findings)
    }
}
