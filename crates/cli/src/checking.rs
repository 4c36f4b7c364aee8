//! From a file and levels to findings: read, check, measure, within limits, whatever happens.

use crate::console::{Console, Stop};
use crate::exit::Exit;
use crate::flags::{Assumption, LimitFlags, PolicyFlags, ReadingFlags, RequireFlags, SearchFlags};
use crate::input;
use crate::limits::{self, Guard, Limits};
use crate::own_levels;
use checker::certify::{Certificate, has_certifier};
use checker::smt::{self, Unwritable};
use checker::timestamped::{self, Streamed};
use checker::{
    Answer, Budget, By, Claim, Coverage, Fragment, KeyOrder, Level, LookedAt, Options, Orders, Passes,
    Reduced, Rule, Ryow, Strategy, Undecided, Vendor, Verdict,
};
use history::formats::{Loaded, Located, ReadError, transaction_lines};
use history::{History, Status};
use report::{Cost, Finding, Part, Size, Trouble};
use std::cell::{Cell, OnceCell};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// How files are checked.
pub(crate) struct Checking<'f> {
    policy: &'f PolicyFlags,
    limits: Limits,
    threads: usize,
    strategy: Strategy,
    passes: Passes,
    by: By,
    /// Whether a claim by timestamps is decided by results too, and the answers compared.
    compares: bool,
    /// Whether a history is asked at several levels.
    is_shared: bool,
    /// Whether accepted histories need a witness.
    needs_witness: bool,
    /// What accepted histories must test.
    required: RequireFlags,
}

/// How long a history is made smaller at most, unless a limit says otherwise.
const REDUCTION_TIME_MAX: Duration = Duration::from_secs(30);

/// A history that was read, and how.
pub(crate) struct Opened {
    /// The file, as the user named it.
    pub(crate) name: String,
    pub(crate) history: History,
    /// What is to be said of it before any verdict.
    pub(crate) warning: Option<String>,
    /// How long reading took.
    read_time: Duration,
    /// When the time is up for the level at hand.
    end: Cell<Option<Instant>>,
    /// When the time is up for all levels together, where they are one question.
    end_of_all: Cell<Option<Instant>>,
    /// What it tests, once that was asked.
    coverage: OnceCell<Coverage>,
    /// Its logical sub-transactions, once they were asked for.
    logical: OnceCell<History>,
    /// What levels found out about it.
    shared: LookedAt,
}

/// Why a file is not checked.
pub(crate) enum Unopened {
    /// It is no history, or cannot be read.
    Trouble(Trouble),
    /// A limit was passed before all of it was read.
    Ended(Ended),
}

/// Reads a file, within the limits of a guard.
pub(crate) fn read(file: &Path, reading: &ReadingFlags, guard: &Guard) -> Result<Loaded, Unopened> {
    let started = Instant::now();
    let name = file.display().to_string();
    let read = guarded(&name, || reading.read_until(file, guard.interrupt()));
    read.map_err(|message| Unopened::trouble(&name, message))?.map_err(|error| match error {
        ReadError::Interrupted { .. } => Unopened::Ended(Ended::new(&name, error, guard, started)),
        error => {
            let place = error.located();
            let (line, column) = (place.and_then(Located::line), place.and_then(Located::column));
            Unopened::Trouble(Trouble::new(&name, error.to_string()).at(line, column))
        }
    })
}

impl From<Unopened> for Stop {
    fn from(unopened: Unopened) -> Self {
        match unopened {
            Unopened::Trouble(trouble) => Self::Error(trouble.message),
            ended @ Unopened::Ended(_) => Self::Limit(ended.reason()),
        }
    }
}

impl Unopened {
    /// A file that is no history, for a reason that has no place in it.
    pub(crate) fn trouble(name: &str, message: impl Into<String>) -> Self {
        Self::Trouble(Trouble::new(name, message))
    }

    /// The exit status: a file that was not read in time is not an error.
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Trouble(_) => Exit::Error,
            Self::Ended(_) => Exit::Undecided,
        }
    }

    /// Why.
    pub(crate) fn reason(self) -> String {
        match self {
            Self::Trouble(trouble) => trouble.message,
            Self::Ended(ended) => format!("{}: {}", ended.name, ended.reason),
        }
    }
}

/// A file whose reading was ended by a limit.
pub(crate) struct Ended {
    name: String,
    /// The level in its header.
    level: Option<String>,
    reason: String,
    size: Size,
    cost: Cost,
}

/// A verdict, with what is told of it.
#[derive(Clone)]
pub(crate) struct Checked {
    claim: Claim,
    pub(crate) verdict: Verdict,
    pub(crate) finding: Finding,
}

impl<'f> Checking<'f> {
    /// From the flags.
    pub(crate) fn new(policy: &'f PolicyFlags, limits: &LimitFlags) -> Result<Self, String> {
        let threads = limits.threads;
        let limits = Limits::new(limits.bounds)?;
        Ok(Self {
            policy,
            limits,
            threads,
            strategy: Strategy::default(),
            passes: Passes::default(),
            by: By::Results,
            compares: false,
            is_shared: false,
            needs_witness: false,
            required: RequireFlags::default(),
        })
    }

    /// The same, looking for answers as the flags say.
    pub(crate) fn searching(mut self, flags: &SearchFlags) -> Result<Self, String> {
        self.strategy = flags.strategy;
        for name in &flags.without {
            self.passes = self.passes.without(name).map_err(|unknown| unknown.to_string())?;
        }
        Ok(self)
    }

    /// What a check may use.
    #[cfg(feature = "cluster")]
    pub(crate) fn limits(&self) -> Limits {
        self.limits
    }

    /// The same, judged by this.
    pub(crate) fn judging(self, by: By) -> Self {
        Self { by, ..self }
    }

    /// The same, by timestamps and by results.
    pub(crate) fn comparing(self) -> Self {
        Self { by: By::Timestamps, compares: true, ..self }
    }

    /// The same, asking a history at several levels.
    pub(crate) fn sharing(self, is_shared: bool) -> Self {
        Self { is_shared, ..self }
    }

    /// The same, with a witness of every accepted history.
    pub(crate) fn witnessing(self, needs_witness: bool) -> Self {
        Self { needs_witness, ..self }
    }

    /// The same, accepting only what tests that much.
    pub(crate) fn requiring(self, required: &RequireFlags) -> Self {
        Self { required: required.clone(), ..self }
    }

    /// Accepts a large file part by part, if that is possible: it is sorted by commit, and the order of its timestamps
    /// explains it at every level asked for. None if it has to be read whole.
    pub(crate) fn accept_in_parts(
        &self,
        file: &Path,
        reading: &ReadingFlags,
        asked: &[Level],
    ) -> Option<Vec<Finding>> {
        let is_large = std::fs::metadata(file).is_ok_and(|meta| meta.is_file() && meta.len() >= LARGE_BYTES);
        let ryow: Ryow = self.policy.ryow.into();
        if self.compares
            || self.required.are_set()
            || !is_large
            || reading.lenient
            || self.limits.are_set()
            || ryow != Ryow::Must
        {
            return None;
        }
        let options = self.options(Budget::unlimited());
        let started = Instant::now();
        let name = file.display().to_string();
        let mut claims: Vec<(Claim, Streamed)> = Vec::new();
        let mut orders = Orders::default();
        let mut check_time = Duration::ZERO;
        let mut take = |part: &History| {
            if claims.is_empty() {
                let header = part.level();
                for claim in self.claims_of(asked, &name, header).ok()? {
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
                unmixed(part, claim).ok()?;
                streamed.take(part).ok()?;
            }
            check_time += started.elapsed();
            Some(())
        };
        let whole =
            guarded(&name, || reading.read_parts(file, &mut |part| take(part).is_some())).ok()?.ok()?;
        if !whole || claims.iter().any(|(claim, _)| orders.lack(claim.level).is_some()) {
            return None;
        }
        let cost = |check: Duration, of: usize| Cost {
            read_ms: milliseconds(started.elapsed().saturating_sub(check)),
            check_ms: milliseconds(check) / of.max(1) as f64,
            peak_rss_bytes: limits::peak_bytes(),
        };
        let count = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        let finding = |(claim, streamed): &(Claim, Streamed)| {
            let (transactions, operations, sessions) = streamed.size();
            let size = Size { transactions: count(transactions), operations: count(operations), sessions };
            Finding::accepted(&name, *claim, size, cost(check_time, claims.len()))
                .with_coverage(streamed.coverage())
        };
        let findings: Vec<Finding> = claims.iter().map(finding).collect();
        // A file without committed transactions is for the usual way to refuse.
        claims.first().is_some_and(|(_, streamed)| streamed.has_committed()).then_some(findings)
    }

    /// Reads a file, within the limits.
    pub(crate) fn open(&self, file: &Path, reading: &ReadingFlags) -> Result<Opened, Unopened> {
        let started = Instant::now();
        let name = file.display().to_string();
        let loaded = read(file, reading, &self.limits.guard(started))?;
        let warning = input::left_out(&loaded.warnings);
        let Loaded { history, .. } = loaded;
        if !reading.allow_empty && !history.transactions().any(|txn| txn.is_committed()) {
            let message = format!(
                "{name}: contains {}, none of them committed, so a verdict would be empty (--allow-empty accepts such files)",
                match history.len() {
                    0 => "no transactions".to_owned(),
                    1 => "1 transaction".to_owned(),
                    many => format!("{many} transactions"),
                }
            );
            return Err(Unopened::trouble(&name, message));
        }
        is_checkable(&history).map_err(|why| Unopened::trouble(&name, format!("{name}: {why}")))?;
        Ok(Opened {
            name,
            history,
            warning,
            read_time: started.elapsed(),
            end: Cell::new(self.limits.end(started)),
            end_of_all: Cell::new(None),
            coverage: OnceCell::new(),
            logical: OnceCell::new(),
            shared: LookedAt::default(),
        })
    }

    /// What is asked of a history: the levels asked for, else the one in its header, else serializable.
    pub(crate) fn claims(&self, asked: &[Level], opened: &Opened) -> Result<Vec<Claim>, String> {
        self.claims_of(asked, &opened.name, opened.history.level())
    }

    /// What is told of a file whose reading was ended: no level is decided.
    pub(crate) fn undecided(&self, asked: &[Level], ended: &Ended) -> Result<Vec<Finding>, String> {
        let claims = self.claims_of(asked, &ended.name, ended.level.as_deref())?;
        let finding = |claim: Claim| {
            Finding::undecided(&ended.name, claim, ended.reason.clone(), ended.size, ended.cost)
        };
        Ok(claims.into_iter().map(finding).collect())
    }

    pub(crate) fn claims_of(
        &self,
        asked: &[Level],
        name: &str,
        header: Option<&str>,
    ) -> Result<Vec<Claim>, String> {
        match (asked, self.policy.profile, header) {
            ([], Some(profile), _) => Err(format!(
                "--profile {} needs --level with one of its level names: {}",
                profile.name,
                level_names(&profile)
            )),
            ([], None, None) => Ok(vec![self.claim(Level::SERIALIZABLE)?]),
            ([], None, Some(level)) => {
                let level = own_levels::find(level).map_err(|unknown| {
                    format!("{name}: {unknown} (in the header of the file); use --level to set one")
                })?;
                Ok(vec![self.claim(level)?])
            }
            (asked, _, _) => asked.iter().map(|&level| self.claim(level)).collect(),
        }
    }

    /// What is asked for with a level: what the profile says it means, if there is one, with the policies.
    pub(crate) fn claim(&self, level: Level) -> Result<Claim, String> {
        let (level, vendor) = match self.policy.profile {
            None => (level, None),
            Some(profile) => {
                let found = profile.level(level.name()).ok_or_else(|| {
                    format!(
                        "{} has no level {level}; expected one of: {}",
                        profile.name,
                        level_names(&profile)
                    )
                })?;
                let judged = found.logical.unwrap_or(found.promises);
                let vendor =
                    Vendor { database: profile.name, level: found.name, logical: found.logical.is_some() };
                (Level::parse(judged).map_err(|unknown| unknown.to_string())?, Some(vendor))
            }
        };
        let realtime = self.policy.assume.contains(&Assumption::Realtime);
        let level = if realtime { in_real_time(level)? } else { level };
        let level = self.assuming(level)?;
        if self.by == By::Timestamps && !timestamped::decides(level) {
            return Err(format!("{level}: {}", timestamped::Refusal::Level));
        }
        Ok(Claim {
            level,
            by: self.by,
            ryow: self.policy.ryow.into(),
            clock_skew: self.policy.clock_skew,
            mixed: self.policy.mixed,
            vendor,
        })
    }

    /// The level with what is assumed of keys.
    fn assuming(&self, level: Level) -> Result<Level, String> {
        let assumes = |what: Assumption| self.policy.assume.contains(&what);
        let orders = [
            (Assumption::SequentialKeys, KeyOrder::Sequential),
            (Assumption::LinearizableKeys, KeyOrder::Linearizable),
        ];
        let orders: Vec<KeyOrder> = orders.into_iter().filter(|it| assumes(it.0)).map(|it| it.1).collect();
        if assumes(Assumption::WfrKeys) && level.rule == Rule::ReadUncommitted {
            return Err(format!("{level} does not count what reads saw: remove --assume wfr-keys"));
        }
        let policy = &self.policy;
        if !orders.is_empty() && (policy.mixed || Ryow::from(policy.ryow) != Ryow::Must) {
            return Err("assumptions on keys cannot be combined with --mixed or --ryow".to_owned());
        }
        level.assuming(&orders, policy.clock_skew)
    }

    /// Says what levels of a profile are judged as, and what an ambiguous name means.
    pub(crate) fn say_profile(&self, asked: &[Level], console: &mut Console) -> Result<(), Stop> {
        for meaning in own_levels::meanings() {
            console.note(meaning);
        }
        for &level in asked.iter().filter(|_| self.policy.profile.is_some()) {
            let claim = self.claim(level).map_err(Stop::Error)?;
            let Some(vendor) = claim.vendor else { continue };
            let how = match vendor.logical {
                true => ", plain reads separately from locking reads and writes,",
                false => "",
            };
            let meaning = claim.level.row().map(|row| format!(" (forbids {}; {})", row.forbids, row.source));
            console.note(format_args!(
                "{} is checked{how} as {}{}",
                vendor.title(),
                claim.level,
                meaning.unwrap_or_default()
            ));
        }
        Ok(())
    }

    /// From here on the levels of a history are one question, whose time includes that of reading it.
    pub(crate) fn ask_all(&self, opened: &Opened) {
        opened.end_of_all.set(opened.end.get());
    }

    /// The time of a level begins to run. Where levels are one question, each has half of what is left, so that one
    /// that is hard leaves something to the others.
    fn begin(&self, opened: &Opened) {
        let now = Instant::now();
        opened.end.set(match opened.end_of_all.get() {
            Some(end) => Some(now + end.saturating_duration_since(now) / 2),
            None => self.limits.end(now.checked_sub(opened.read_time).unwrap_or(now)),
        });
    }

    /// Answers a claim about a history.
    pub(crate) fn check(&self, opened: &Opened, claim: Claim) -> Result<Checked, String> {
        self.begin(opened);
        unmixed(&opened.history, &claim).map_err(|why| format!("{}: {why}", opened.name))?;
        matched(&opened.history, claim.level).map_err(|why| format!("{}: {why}", opened.name))?;
        let (answer, checked) = self.answer(opened, claim, self.passes)?;
        let Answer { findings, timestamps_refuse, .. } = answer;
        let mut checked = checked;
        if let Some(refused) = timestamps_refuse {
            checked.finding = checked.finding.refused_by_timestamps(opened.subject(&claim), &refused);
        }
        if !self.compares {
            return Ok(checked);
        }
        let broken = findings.unwrap_or_default();
        let searched = Passes { timestamps: false, ..self.passes };
        let (_, other) = self.answer(opened, claim.by(By::Results), searched)?;
        let finding = checked.finding.compared(&opened.history, &broken, &other.verdict);
        let verdict = if Exit::of(other.verdict.kind()) > Exit::of(checked.verdict.kind()) {
            other.verdict
        } else {
            checked.verdict
        };
        Ok(Checked { verdict, finding, ..checked })
    }

    fn answer(&self, opened: &Opened, claim: Claim, passes: Passes) -> Result<(Answer, Checked), String> {
        let started = Instant::now();
        let guard = self.limits.guard_until(opened.end.get());
        let options = Options { passes, ..self.options(guard.budget()) };
        let subject = opened.subject(&claim);
        let is_whole = std::ptr::eq(subject, &opened.history);
        let shared = (self.is_shared && is_whole).then_some(&opened.shared);
        let mut answer =
            guarded(&opened.name, || checker::answer_sharing(&claim, subject, &options, shared))?;
        // Where timestamps do not say when a transaction of unknown outcome took effect, the search does.
        let lacks_witness = |answer: &Answer| match &answer.outcome.verdict {
            Verdict::Accepted(witness) => witness.order.is_empty() && has_certifier(claim.level),
            _ => false,
        };
        if self.needs_witness && lacks_witness(&answer) {
            let passes = Passes { timestamps: false, ..passes };
            let options = Options { passes, ..options };
            answer = guarded(&opened.name, || checker::answer_sharing(&claim, subject, &options, shared))?;
        }
        let verdict = answer.outcome.verdict.clone();
        let cost = opened.cost(started);
        let mut finding = Finding::new(&opened.name, claim, subject, &verdict, cost);
        finding = finding.with_search(self.strategy, &answer.outcome.stats);
        finding.size = Size::of(&opened.history);
        if let Some(vendor) = claim.vendor.filter(|vendor| vendor.logical) {
            let let_go = checker::let_go_by_halves(&opened.history);
            if let_go > 0 {
                finding = finding.noted(format!(
                    "{let_go} operations are not checked: {} lets a transaction see its own writes together with an older \
                     snapshot, and their results do not show which they saw",
                    vendor.database
                ));
            }
        }
        if let Some(findings) = &answer.findings {
            finding = finding.by_timestamps(subject, findings);
        }
        let mut finding = opened.with_coverage(finding, &verdict, &guard.budget());
        let mut verdict = verdict;
        if let Some(lack) = self.lack(opened, &verdict, &finding) {
            verdict = Verdict::Undecided(Undecided::Untested(lack.clone()));
            finding = Finding { verdict: verdict.kind(), reason: Some(lack), ..finding };
        }
        Ok((answer, Checked { claim, verdict, finding }))
    }

    /// What an accepted history does not test and was required to.
    fn lack(&self, opened: &Opened, verdict: &Verdict, finding: &Finding) -> Option<String> {
        if !self.required.are_set() || !matches!(verdict, Verdict::Accepted(_)) {
            return None;
        }
        let committed = opened.history.transactions().filter(|txn| txn.is_committed()).count() as u64;
        self.required.lack(committed, finding.coverage.as_ref())
    }

    /// The violation of a level by a part of the history, if it is one.
    pub(crate) fn probe(&self, opened: &Opened, claim: Claim, fragment: &Fragment<'_>) -> Option<Checked> {
        let started = Instant::now();
        self.begin(opened);
        let guard = self.limits.guard_until(opened.end.get());
        let evidence = fragment.violates(claim.level, &self.options(guard.budget()))?;
        let verdict = Verdict::Violated(Box::new(evidence));
        let finding = Finding::new(&opened.name, claim, &opened.history, &verdict, opened.cost(started));
        Some(Checked { claim, verdict, finding })
    }

    /// Adds the lines of the file on which the transactions of a violation stand, where they do.
    pub(crate) fn with_lines(
        &self,
        opened: &Opened,
        file: &Path,
        reading: &ReadingFlags,
        finding: Finding,
    ) -> Finding {
        let is_whole = std::ptr::eq(opened.subject(&finding.claim), &opened.history);
        let is_file = std::fs::metadata(file).is_ok_and(|meta| meta.is_file());
        if finding.transactions.is_empty() || !is_whole || !is_file {
            return finding;
        }
        let places: Vec<usize> = finding.transactions.iter().map(|member| member.place).collect();
        let guard = self.limits.guard_until(opened.end.get());
        // What changed since, or takes too long, is told without lines.
        let lines = transaction_lines(file, &reading.options_until(guard.interrupt()), &places);
        let mut finding = finding;
        for (member, line) in finding.transactions.iter_mut().zip(lines.ok().flatten().unwrap_or_default()) {
            member.line = Some(line);
        }
        finding
    }

    /// Adds every kind of anomaly to a violation.
    pub(crate) fn with_anomalies(&self, opened: &Opened, checked: Checked) -> Result<Checked, String> {
        if !matches!(checked.verdict, Verdict::Violated(_)) {
            return Ok(checked);
        }
        let guard = self.limits.guard_until(opened.end.get());
        let options = self.options(guard.budget());
        let subject = opened.subject(&checked.claim);
        let found = guarded(&opened.name, || checker::inventory(subject, checked.claim.level, &options))?;
        let finding = checked.finding.with_anomalies(subject, &found);
        Ok(Checked { finding, ..checked })
    }

    /// The smallest sub-history of a violated one that is still violated, and what it shows; none if none is found in
    /// time.
    pub(crate) fn look_closer(
        &self,
        opened: &Opened,
        checked: &Checked,
    ) -> Result<Option<(Reduced, Part)>, String> {
        let Verdict::Violated(evidence) = &checked.verdict else { return Ok(None) };
        let guard = self.limits.guard_until(opened.end.get());
        let budget = match self.limits.time {
            Some(_) => guard.budget(),
            None => guard.budget().with_timeout(REDUCTION_TIME_MAX),
        };
        // Parts are tiny, whatever the whole was.
        let options = Options { threads: 1, ..self.options(budget) };
        let claim = checked.claim;
        let judge = |history: &History| checker::answer(&claim, history, &options).outcome.verdict;
        guarded(&opened.name, || {
            let reduced = checker::reduce(opened.subject(&claim), claim.level, &options, evidence, judge)?;
            let part = Part::new(&reduced, &checker::look_closer(&reduced.history, &options, judge));
            Some((reduced, part))
        })
    }

    /// Adds what its smallest violated part shows to a violation.
    pub(crate) fn with_part(&self, opened: &Opened, checked: Checked) -> Result<Checked, String> {
        let finding = match self.look_closer(opened, &checked)? {
            Some((reduced, part)) => {
                checked.finding.retold(opened.subject(&checked.claim), &reduced).with_part(part)
            }
            None => checked.finding,
        };
        Ok(Checked { finding, ..checked })
    }

    /// What text says of a verdict: for a violation also the levels that allow it, and the commands that show more of the
    /// file.
    pub(crate) fn in_context(&self, opened: &Opened, file: Option<&Path>, checked: Checked) -> Finding {
        let Checked { claim, verdict, finding } = checked;
        let Verdict::Violated(evidence) = &verdict else { return finding };
        if claim != Claim::new(claim.level) {
            return finding;
        }
        let finding =
            finding.with_next(file.map(|file| next_commands(file, claim.level)).unwrap_or_default());
        // What is wrong whatever the order is, is wrong for reasons that lie outside these transactions.
        if !finding.is_about_order() || evidence.transactions.len() > ALLOWED_TRANSACTIONS_MAX {
            return finding;
        }
        let end = opened.end.get().map(|end| end.saturating_duration_since(Instant::now()));
        let time = end.map_or(ALLOWED_TIME_MAX, |left| left.min(ALLOWED_TIME_MAX));
        let guard = self.limits.guard_until(opened.end.get());
        let options = Options { threads: 1, ..self.options(guard.budget().with_timeout(time)) };
        let allowed = guarded(&opened.name, || {
            checker::allowed(&opened.history, claim.level, &evidence.transactions, &options)
        });
        let mut orders = Orders::default();
        orders.take(&opened.history);
        let tested: Vec<Level> =
            allowed.unwrap_or_default().into_iter().filter(|&level| orders.lack(level).is_none()).collect();
        let follows =
            |level: Level| tested.iter().any(|&other| other != level && checker::implies(other, level));
        let strongest = tested.iter().copied().filter(|&level| !follows(level)).collect();
        finding.with_allowed(strongest)
    }

    pub(crate) fn options(&self, budget: Budget) -> Options {
        Options {
            budget,
            ryow: self.policy.ryow.into(),
            clock_skew: self.policy.clock_skew,
            mixed: self.policy.mixed,
            threads: self.threads,
            strategy: self.strategy,
            passes: self.passes,
        }
    }

    /// Writes what must hold of a history.
    pub(crate) fn write_smt(
        &self,
        opened: &Opened,
        claim: &Claim,
        out: &mut dyn io::Write,
    ) -> Result<(), Unwritable> {
        let guard = self.limits.guard_until(opened.end.get());
        smt::write(opened.subject(claim), claim.level, &self.options(guard.budget()), out)
    }

    /// Why a history was found to be what it was found to be.
    pub(crate) fn certificate(&self, opened: &Opened, checked: &Checked) -> Certificate<'static> {
        let guard = self.limits.guard_until(opened.end.get());
        let options = self.options(guard.budget());
        let mut certificate =
            Certificate::new(&opened.name, &opened.history, checked.claim.level, &options, &checked.verdict);
        checker::add_proof(&mut certificate, &opened.history, &options);
        certificate
    }
}

impl Ended {
    fn new(name: &str, error: ReadError, guard: &Guard, started: Instant) -> Self {
        let ReadError::Interrupted { bytes, transactions, operations, sessions, level, .. } = error else {
            unreachable!("only an interrupt ends the reading of a file");
        };
        let count = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        let why = guard.why();
        Self {
            name: name.to_owned(),
            level,
            reason: format!("{why} while reading ({transactions} transactions, {bytes} bytes so far)"),
            size: Size {
                transactions: count(transactions),
                operations: count(operations),
                sessions: count(sessions),
            },
            cost: Cost {
                read_ms: milliseconds(started.elapsed()),
                check_ms: 0.0,
                peak_rss_bytes: limits::peak_bytes(),
            },
        }
    }
}

impl Opened {
    /// What is told of a verdict, with how much was tested if it is accepted.
    fn with_coverage(&self, finding: Finding, verdict: &Verdict, budget: &Budget) -> Finding {
        if !matches!(verdict, Verdict::Accepted(_)) {
            return finding;
        }
        // What there is no time for is not told; the verdict stands.
        let coverage = match self.coverage.get() {
            Some(coverage) => Some(coverage),
            None => {
                let coverage = checker::coverage_within(&self.history, budget).ok();
                coverage.map(|coverage| self.coverage.get_or_init(|| coverage))
            }
        };
        match coverage {
            Some(coverage) => finding.with_coverage(coverage.clone()),
            None => finding,
        }
    }

    /// The history that a claim is about.
    pub(crate) fn subject(&self, claim: &Claim) -> &History {
        match claim.vendor {
            Some(Vendor { logical: true, .. }) => {
                self.logical.get_or_init(|| checker::subject(claim, &self.history).into_owned())
            }
            _ => &self.history,
        }
    }

    fn cost(&self, started: Instant) -> Cost {
        Cost {
            read_ms: milliseconds(self.read_time),
            check_ms: milliseconds(started.elapsed()),
            peak_rss_bytes: limits::peak_bytes(),
        }
    }

    /// The same, shown under this name.
    pub(crate) fn called(self, name: String) -> Self {
        Self { name, ..self }
    }

    /// A history that was not read but recorded just now.
    pub(crate) fn recorded(name: String, history: History) -> Self {
        Self {
            name,
            history,
            warning: None,
            read_time: Duration::ZERO,
            end: Cell::new(None),
            end_of_all: Cell::new(None),
            coverage: OnceCell::new(),
            logical: OnceCell::new(),
            shared: LookedAt::default(),
        }
    }

    /// `1000 transactions: 990 committed, 10 aborted`.
    pub(crate) fn counts(&self) -> String {
        let with = |status| self.history.transactions().filter(|txn| txn.status() == status).count();
        let mut said = format!("{} transactions: {} committed", self.history.len(), with(Status::Committed));
        for status in [Status::Aborted, Status::Unknown] {
            match with(status) {
                0 => {}
                count => said += &format!(", {count} {}", status.name()),
            }
        }
        said
    }
}

impl Checked {
    /// What was asked.
    pub(crate) fn claim(&self) -> Claim {
        self.claim
    }

    /// The level that was checked.
    pub(crate) fn level(&self) -> Level {
        self.claim.level
    }

    /// Its part of the exit status.
    pub(crate) fn exit(&self) -> Exit {
        Exit::of(self.verdict.kind())
    }
}

/// Violations of more transactions than this are not asked at every level before they are shown.
const ALLOWED_TRANSACTIONS_MAX: usize = 12;
/// How long that may take.
const ALLOWED_TIME_MAX: Duration = Duration::from_millis(500);

/// The commands that show more of a violation.
fn next_commands(file: &Path, level: Level) -> Vec<String> {
    let file = quoted(&file.display().to_string());
    let (asked, assumed) = level.assumed();
    let mut flags = match asked == Level::SERIALIZABLE {
        true => String::new(),
        false => format!("--level {asked} "),
    };
    for what in assumed {
        flags.push_str(&format!("--assume {what} "));
    }
    vec![format!("taipan explain {flags}{file}"), format!("taipan check {flags}--report why.html {file}")]
}

/// A file name as a shell takes it.
fn quoted(name: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "._-/:+@%".contains(letter);
    match !name.is_empty() && !name.starts_with('-') && name.chars().all(is_plain) {
        true => name.to_owned(),
        false => format!("'{}'", name.replace('\'', "'\\''")),
    }
}

/// Files from this size on are first tried part by part.
const LARGE_BYTES: u64 = 16 << 20;

/// Refuses a history of another model, whose operations say nothing of isolation: nothing of it would be checked.
pub(crate) fn is_checkable(history: &History) -> Result<(), String> {
    let header = history.header_extra().and_then(|extra| serde_json::from_str(extra).ok());
    let not_kept =
        header.as_ref().and_then(|header: &serde_json::Value| header["jepsen"]["not_kept"].as_str());
    match not_kept {
        Some(why) => Err(format!(
            "{why}: no isolation level can be decided; record reads and writes of absolute values, or transactions"
        )),
        None => Ok(()),
    }
}

/// Refuses a level with a module that speaks of nothing in the history: it would test less than its name says.
fn matched(history: &History, level: Level) -> Result<(), String> {
    let unmatched = |module: &dyn checker::Module| {
        let first = module.unmatched(history).into_iter().next()?;
        Some(format!("{level}, {}: {first}; nothing would be tested", module.name()))
    };
    level.modules().iter().find_map(|module| unmatched(&**module)).map_or(Ok(()), Err)
}

/// Refuses a claim that holds transactions to more than the level they asked for.
pub(crate) fn unmixed(history: &History, claim: &Claim) -> Result<(), String> {
    match claim.unpromised(history, |name| own_levels::find(name).ok()) {
        None => Ok(()),
        Some((txn, asked)) => Err(format!(
            "transaction {} asked for {asked}, which does not promise {}: --mixed holds each transaction to the \
             level it asked for",
            txn.name(),
            claim.level_name()
        )),
    }
}

fn level_names(profile: &::databases::Profile) -> String {
    let names: Vec<&str> = profile.levels.iter().map(|level| level.name).collect();
    names.join(", ")
}

/// The same level with session and real-time order.
fn in_real_time(level: Level) -> Result<Level, String> {
    let strong = Level { session: true, realtime: true, ..level };
    match strong.row() {
        Some(_) => Ok(strong),
        None => Err(format!("{level} has no real-time variant: remove --assume realtime")),
    }
}

pub(crate) fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// What the last panic said, so that it can be told in one piece.
static LAST_PANIC: Mutex<Option<String>> = Mutex::new(None);

/// Does work that must not fail, and survives if it does: one file must not take the others with it.
pub(crate) fn guarded<T>(name: &str, work: impl FnOnce() -> T) -> Result<T, String> {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(|panic| {
        let mut last = LAST_PANIC.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        // The first panic is the cause; others follow from it.
        last.get_or_insert_with(|| panic.to_string());
    }));
    let result = catch_unwind(AssertUnwindSafe(work));
    std::panic::set_hook(before);
    let said = LAST_PANIC.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
    result.map_err(|_| {
        format!(
            "{name}: internal error. This is a bug in Taipan, not in your history: please report it together with the file.\n  {}",
            said.unwrap_or_else(|| "the panic left no message".to_owned())
        )
    })
}

#[cfg(test)]
mod tests {
    use super::guarded;

    #[test]
    fn a_panic_becomes_a_sentence() {
        assert_eq!(guarded("h", || 7), Ok(7));
        let said = guarded("h.jsonl", || panic!("a broken promise")).expect_err("it panicked");
        assert!(said.starts_with("h.jsonl: internal error"), "{said}");
        assert!(said.contains("a broken promise") && said.contains("checking.rs"), "{said}");
        assert_eq!(guarded("h", || 8), Ok(8));
    }
}
