//! What is worth finding out about a violation: the lines it stands on, the smallest part that shows it, the levels that
//! allow it.

use super::{Checked, Checker, Opened};
use crate::{Claim, History};
use checker::{Level, Options, Orders, Reduced, Verdict};
use history::formats::{ReadOptions, transaction_lines};
use report::{Finding, Part};
use std::path::Path;
use std::time::{Duration, Instant};

/// How long a history is made smaller at most, unless a limit says otherwise.
const REDUCTION_TIME_MAX: Duration = Duration::from_secs(30);
/// Violations of more transactions than this are not asked at every level before they are shown.
const ALLOWED_TRANSACTIONS_MAX: usize = 12;
/// How long that may take.
const ALLOWED_TIME_MAX: Duration = Duration::from_millis(500);

impl Checker {
    /// Adds the lines of the file on which the transactions of a violation stand, where they do.
    pub fn with_lines(
        &self,
        opened: &Opened,
        file: &Path,
        reading: &ReadOptions,
        finding: Finding,
    ) -> Finding {
        let is_whole = std::ptr::eq(opened.subject(&finding.claim), &opened.history);
        let is_file = std::fs::metadata(file).is_ok_and(|meta| meta.is_file());
        if finding.transactions.is_empty() || !is_whole || !is_file {
            return finding;
        }
        let places: Vec<usize> = finding.transactions.iter().map(|member| member.place).collect();
        let guard = self.limits.guard_until(opened.end.get());
        let options = ReadOptions { interrupt: guard.interrupt(), ..reading.clone() };
        // What changed since, or takes too long, is reported without lines.
        let lines = transaction_lines(file, &options, &places);
        let mut finding = finding;
        for (member, line) in finding.transactions.iter_mut().zip(lines.ok().flatten().unwrap_or_default()) {
            member.line = Some(line);
        }
        finding
    }

    /// Adds every kind of anomaly to a violation.
    pub fn with_anomalies(&self, opened: &Opened, checked: Checked) -> Checked {
        if !matches!(checked.verdict, Verdict::Violated(_)) {
            return checked;
        }
        let guard = self.limits.guard_until(opened.end.get());
        let options = self.options(guard.budget());
        let subject = opened.subject(&checked.claim);
        let found = checker::inventory(subject, checked.claim.level, &options);
        let finding = checked.finding.with_anomalies(subject, &found);
        Checked { finding, ..checked }
    }

    /// The smallest sub-history of a violated one that is still violated, and what it shows; none if none is found in
    /// time.
    pub fn look_closer(&self, opened: &Opened, checked: &Checked) -> Option<(Reduced, Part)> {
        let Verdict::Violated(evidence) = &checked.verdict else { return None };
        let guard = self.limits.guard_until(opened.end.get());
        let budget = match self.limits.time {
            Some(_) => guard.budget(),
            None => guard.budget().with_timeout(REDUCTION_TIME_MAX),
        };
        // Parts are tiny, whatever the whole was.
        let options = Options { threads: 1, ..self.options(budget) };
        let claim = checked.claim;
        let judge = |history: &History| checker::answer(&claim, history, &options).outcome.verdict;
        let reduced = checker::reduce(opened.subject(&claim), claim.level, &options, evidence, judge)?;
        let part = Part::new(&reduced, &checker::look_closer(&reduced.history, &options, judge));
        Some((reduced, part))
    }

    /// Adds what its smallest violated part shows to a violation.
    pub fn with_part(&self, opened: &Opened, checked: Checked) -> Checked {
        let finding = match self.look_closer(opened, &checked) {
            Some((reduced, part)) => {
                checked.finding.retold(opened.subject(&checked.claim), &reduced).with_part(part)
            }
            None => checked.finding,
        };
        Checked { finding, ..checked }
    }

    /// Adds the strongest levels that allow the transactions of a violation, where that is found out in no time.
    pub fn with_allowed(&self, opened: &Opened, checked: Checked) -> Finding {
        let Checked { claim, verdict, finding } = checked;
        let Verdict::Violated(evidence) = &verdict else { return finding };
        // What is wrong whatever the order is, is wrong for reasons that lie outside these transactions.
        if claim != Claim::new(claim.level)
            || !finding.is_about_order()
            || evidence.transactions.len() > ALLOWED_TRANSACTIONS_MAX
        {
            return finding;
        }
        let end = opened.end.get().map(|end| end.saturating_duration_since(Instant::now()));
        let time = end.map_or(ALLOWED_TIME_MAX, |left| left.min(ALLOWED_TIME_MAX));
        let guard = self.limits.guard_until(opened.end.get());
        let options = Options { threads: 1, ..self.options(guard.budget().with_timeout(time)) };
        let allowed = checker::allowed(&opened.history, claim.level, &evidence.transactions, &options);
        let mut orders = Orders::default();
        orders.take(&opened.history);
        let tested: Vec<Level> = allowed.into_iter().filter(|&level| orders.lack(level).is_none()).collect();
        let follows =
            |level: Level| tested.iter().any(|&other| other != level && checker::implies(other, level));
        let strongest = tested.iter().copied().filter(|&level| !follows(level)).collect();
        finding.with_allowed(strongest)
    }
}
