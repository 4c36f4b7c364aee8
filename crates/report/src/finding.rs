//! The data form of an explanation: everything a rendering needs, and nothing of the history it came from.

use crate::fingerprint::fingerprint;
use crate::labels::{Labels, label};
use crate::shorten::{self, Lens};
use crate::text::grouped;
use crate::{Comparison, Part, Violation, argue, context, effects, phrase};
use evidence::{Crowd, Inventory, Reduced};
use history::formats::jsonl;
use history::{History, Id, Operation, Transaction};
use isolation::{Anomaly, By, Claim, Coverage, Evidence, Level, Stats, Strategy, Verdict, VerdictKind};

/// What is reported about one check of one file at one level.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The file, as the user named it.
    pub file: String,
    /// What was asked.
    pub claim: Claim,
    /// The answer.
    pub verdict: VerdictKind,
    /// What went wrong; for a violation.
    pub anomaly: Option<Named>,
    /// What the same violation is recognised by in another run: kind, level and shape of the argument.
    pub fingerprint: Option<String>,
    /// Why there is no answer; for an undecided check.
    pub reason: Option<String>,
    /// The core; for a violation.
    pub transactions: Vec<Member>,
    /// The argument; for a violation. A cycle's edges are in order.
    pub explanation: Vec<Step>,
    /// Steps that others follow from and that are not part of the cycle.
    pub support: Vec<Step>,
    /// The argument where it is a case distinction: one of the cases must be so, and none can be. Then the explanation is
    /// that of the first case.
    pub cases: Option<Cases>,
    /// What counting shows of a core that is too large for steps.
    pub counted: Option<String>,
    /// What the history tested; for an accepted one.
    pub coverage: Option<Coverage>,
    /// Every kind of anomaly that was found, if that was asked for; none otherwise.
    pub anomalies: Option<Vec<Listed>>,
    /// Whether the same was wrong before, and is not to count.
    pub is_known: bool,
    /// The level whose verdict settles this one, if it was not checked itself.
    pub follows_from: Option<String>,
    /// Every violation, if the check went by the database's timestamps.
    pub by_timestamps: Option<Vec<Violation>>,
    /// What the results alone come to, if that was asked for.
    pub comparison: Option<Comparison>,
    /// What its smallest violated part shows, if that was asked for.
    pub part: Option<Part>,
    /// The strongest levels that allow the transactions of the argument.
    pub allowed: Vec<Level>,
    /// Commands that show more.
    pub next: Vec<String>,
    /// What else there is to say, each in a sentence.
    pub notes: Vec<String>,
    /// How large the history is.
    pub size: Size,
    /// What the answer cost.
    pub cost: Cost,
    /// Whether the transactions come from workers, which gather a part of the file: places in it are not those of the file.
    pub is_gathered: bool,
    /// How it was looked for; unknown where the answer came from elsewhere.
    pub search: Option<Search>,
}

/// How an answer was looked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Search {
    /// By which strategy.
    pub strategy: Strategy,
    /// What the checker counted.
    pub stats: Stats,
}

/// An anomaly's names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// Elle's name.
    pub name: String,
    /// The common name where one fits.
    pub common: Option<&'static str>,
}

/// A kind of anomaly, and how many were found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its names.
    pub anomaly: Named,
    /// How many were found.
    pub count: usize,
    /// The names of the first one's transactions.
    pub transactions: Vec<String>,
}

/// A transaction of the core.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// What the argument calls it: `T1`.
    pub label: String,
    /// Its name.
    pub name: String,
    /// Its session's name.
    pub session: String,
    /// Its place in its session, from 0.
    pub position: u32,
    /// Its place in the file, from 0.
    pub place: usize,
    /// The line of the file it stands on, from 1, where that was looked up.
    pub line: Option<u64>,
    /// `committed`, `aborted` or `unknown`.
    pub status: &'static str,
    /// The client's clock from begin to the answer to commit.
    pub client: Option<(i64, i64)>,
    /// The database's start and commit timestamps.
    pub db: Option<(String, String)>,
    /// Hints and debug fields, a JSON object.
    pub ctx: Option<String>,
    /// Its operations in words, in the order issued.
    pub operations: Vec<String>,
    /// It as a line of the native format.
    pub native: String,
}

/// One edge of the argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The earlier transaction; none for the initial state.
    pub from: Option<String>,
    /// The later one.
    pub to: String,
    /// `ww`, `wr`, `rw`, `so` or `rt`.
    pub edge: &'static str,
    /// The key it is about.
    pub key: Option<String>,
    /// Whether it comes from a predicate's evaluation.
    pub predicate: bool,
    /// The sentence, with the transactions' own names and every value.
    pub why: String,
    /// The same for people: with labels, without values that stand beside it.
    pub said: String,
    /// For an inferred edge: the steps it follows from.
    pub because: Vec<Step>,
    /// For an inferred edge: the cases that its opposite leaves.
    pub cases: Option<Cases>,
    /// The operations the sentence is about.
    pub places: Vec<Place>,
}

/// A case distinction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cases {
    /// The cases that are reported.
    pub told: Vec<Case>,
    /// How many more there are. Each was refuted, too.
    pub left_out: usize,
}

/// Something that may be, and why it cannot be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// What is supposed, in words.
    pub suppose: String,
    /// The same with labels.
    pub said: String,
    /// What contradicts it; none where it falls into cases itself.
    pub explanation: Vec<Step>,
    /// Steps that others follow from and that are not part of the cycle.
    pub support: Vec<Step>,
    /// The cases into which it falls.
    pub cases: Option<Cases>,
}

/// An operation of a transaction of the core.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// The transaction's name.
    pub transaction: String,
    /// Which of its operations, from 0.
    pub operation: usize,
}

/// How large a history is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Transactions of any status.
    pub transactions: usize,
    /// Operations.
    pub operations: usize,
    /// Sessions.
    pub sessions: usize,
}

/// What an answer cost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Milliseconds to read the file.
    pub read_ms: f64,
    /// Milliseconds to check it.
    pub check_ms: f64,
    /// The most memory the process has had so far.
    pub peak_rss_bytes: u64,
}

impl Size {
    /// Of a history.
    pub fn of(history: &History) -> Self {
        Self {
            transactions: history.len(),
            operations: history.op_count(),
            sessions: history.sessions().len(),
        }
    }
}

impl Finding {
    /// Puts a verdict into words.
    pub fn new(file: &str, claim: Claim, history: &History, verdict: &Verdict, cost: Cost) -> Self {
        let blank = Self::undecided(file, claim, String::new(), Size::of(history), cost);
        match verdict {
            Verdict::Accepted(_) => Self { verdict: verdict.kind(), reason: None, ..blank },
            Verdict::Undecided(why) => Self { reason: Some(why.to_string()), ..blank },
            Verdict::Violated(evidence) => {
                let lens = Lens::of(history, evidence.transactions.iter().copied());
                let labels = Labels::of(evidence);
                Self {
                    verdict: verdict.kind(),
                    reason: None,
                    anomaly: Some(Named::from(&evidence.anomaly)),
                    fingerprint: Some(fingerprint(&claim, evidence)),
                    transactions: members(history, &labels, &lens),
                    explanation: argue::steps(history, &evidence.edges, &lens, &labels),
                    support: argue::steps(history, &evidence.support, &lens, &labels),
                    cases: argue::cases(history, evidence, &lens, &labels),
                    counted: counted(history, evidence),
                    notes: effects::notes(history, evidence),
                    ..blank
                }
            }
        }
    }

    /// What the argument calls a transaction: its label, or its name if it has none.
    pub(crate) fn label_of(&self, name: &str) -> String {
        let member = self.transactions.iter().find(|member| member.name == name);
        member.map_or_else(|| name.to_owned(), |member| member.label.clone())
    }

    /// Whether the argument is a cycle.
    pub fn is_about_order(&self) -> bool {
        crate::text::is_cycle(&self.explanation)
    }

    /// With how the answer was looked for.
    pub fn with_search(self, strategy: Strategy, stats: &Stats) -> Self {
        Self { search: Some(Search { strategy, stats: stats.clone() }), ..self }
    }

    /// Known from before.
    pub fn known(self) -> Self {
        Self { is_known: true, ..self }
    }

    /// Told of the smallest violated part instead, where that has fewer transactions than the core that was found.
    pub fn retold(self, whole: &History, reduced: &Reduced) -> Self {
        if reduced.history.len() >= self.transactions.len() {
            return self;
        }
        let Reduced { history, evidence, origins, .. } = reduced;
        let lens = Lens::of(history, history.transactions().map(|txn| txn.id()));
        let labels = Labels::of(evidence);
        let mut transactions = members(history, &labels, &lens);
        for member in &mut transactions {
            let Some(origin) = origins.get(member.place).copied().flatten() else { continue };
            let there = Member::new(whole, whole.transaction(origin), &Lens::default());
            // What it did is shown as far as it matters, everything else as it was.
            let (label, operations) =
                (std::mem::take(&mut member.label), std::mem::take(&mut member.operations));
            *member = Member { label, operations, ..there };
        }
        Self {
            anomaly: Some(Named::from(&evidence.anomaly)),
            transactions,
            explanation: argue::steps(history, &evidence.edges, &lens, &labels),
            support: argue::steps(history, &evidence.support, &lens, &labels),
            cases: argue::cases(history, evidence, &lens, &labels),
            counted: counted(history, evidence),
            ..self
        }
    }

    /// With what its smallest violated part shows.
    pub fn with_part(self, part: Part) -> Self {
        Self { part: Some(part), ..self }
    }

    /// With what the history tested.
    pub fn with_coverage(self, coverage: Coverage) -> Self {
        Self { coverage: Some(coverage), ..self }
    }

    /// With every kind of anomaly that was found.
    pub fn with_anomalies(self, history: &History, inventory: &Inventory) -> Self {
        let listed = inventory.kinds.iter().map(|kind| Listed {
            anomaly: Named::from(&kind.anomaly),
            count: kind.count,
            transactions: kind
                .transactions
                .iter()
                .map(|&txn| history.transaction(txn).name().to_string())
                .collect(),
        });
        Self { anomalies: Some(listed.collect()), ..self }
    }

    /// What follows at a level from the verdict at another.
    pub fn follows(
        file: &str,
        claim: Claim,
        mark: VerdictKind,
        from: Option<&str>,
        history: &History,
    ) -> Self {
        let blank = Self::undecided(file, claim, String::new(), Size::of(history), Cost::default());
        Self { verdict: mark, reason: None, follows_from: from.map(str::to_owned), ..blank }
    }

    /// Accepted, without the history at hand.
    pub fn accepted(file: &str, claim: Claim, size: Size, cost: Cost) -> Self {
        let blank = Self::undecided(file, claim, String::new(), size, cost);
        let by_timestamps = (claim.by == By::Timestamps).then(Vec::new);
        Self { verdict: VerdictKind::Accepted, reason: None, by_timestamps, ..blank }
    }

    /// With the strongest levels that allow the transactions of the argument.
    pub fn with_allowed(self, allowed: Vec<Level>) -> Self {
        Self { allowed, ..self }
    }

    /// With commands that show more.
    pub fn with_next(self, next: Vec<String>) -> Self {
        Self { next, ..self }
    }

    /// With another note.
    pub fn noted(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// No answer, for a reason outside the check (the file could not be read within its limits, say).
    pub fn undecided(file: &str, claim: Claim, reason: String, size: Size, cost: Cost) -> Self {
        Self {
            file: file.to_owned(),
            claim,
            verdict: VerdictKind::Undecided,
            anomaly: None,
            fingerprint: None,
            reason: Some(reason),
            transactions: Vec::new(),
            explanation: Vec::new(),
            support: Vec::new(),
            cases: None,
            counted: None,
            coverage: None,
            anomalies: None,
            is_known: false,
            follows_from: None,
            by_timestamps: None,
            comparison: None,
            part: None,
            allowed: Vec::new(),
            next: Vec::new(),
            notes: Vec::new(),
            size,
            cost,
            is_gathered: false,
            search: None,
        }
    }
}

/// What counting shows of a core without an argument.
fn counted(history: &History, evidence: &Evidence) -> Option<String> {
    let crowd = Crowd::shown_by(evidence, history)?;
    let read = history.operation(*crowd.reads.first()?);
    let Operation::Read { key, value, .. } = read else { return None };
    let key = history.keys().get(key);
    let value = shorten::value(history.values(), value, &Lens::default(), None);
    let written = match crowd.writers.len() {
        0 => None,
        1 => Some("after 1 write".to_owned()),
        many => Some(format!("after {} writes", grouped(many))),
    };
    let initially = crowd.from_start.then(|| "initially".to_owned());
    let when: Vec<String> = initially.into_iter().chain(written).collect();
    let times = crowd.writers.len() + usize::from(crowd.from_start);
    let times = match times {
        1 => "once".to_owned(),
        many => format!("{} times", grouped(many)),
    };
    Some(format!(
        "{key} was {value} only {times} ({}), yet {} transactions read {value} and overwrote it, so two of them \
         overwrote the same version",
        when.join(" and "),
        grouped(crowd.reads.len()),
    ))
}

impl From<&Anomaly> for Named {
    fn from(anomaly: &Anomaly) -> Self {
        Self { name: anomaly.name.clone(), common: anomaly.common }
    }
}

impl Named {
    /// The common name, with the technical one beside it: `write skew (G2-item)`.
    pub fn in_words(&self) -> String {
        let plain = self.name.replace('-', " ");
        match self.common {
            Some(common) if common != plain => format!("{common} ({})", self.name),
            Some(common) => common.to_owned(),
            None => self.name.clone(),
        }
    }
}

impl std::fmt::Display for Named {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.common {
            Some(common) if common != self.name.replace('-', " ") => write!(f, "{} ({common})", self.name),
            _ => f.write_str(&self.name),
        }
    }
}

/// The transactions of an argument, in the order of their labels.
fn members(history: &History, labels: &Labels, lens: &Lens) -> Vec<Member> {
    let member = |(place, &txn)| Member {
        label: label(place),
        ..Member::new(history, history.transaction(txn), lens)
    };
    labels.order().iter().enumerate().map(member).collect()
}

impl Member {
    /// Whether its name is made of its session and its place there, as the history gave it none.
    pub(crate) fn has_plain_name(&self) -> bool {
        self.name == format!("{}:{}", self.session, self.position)
    }

    fn new(history: &History, transaction: Transaction<'_>, lens: &Lens) -> Self {
        Self {
            label: String::new(),
            name: transaction.name().to_string(),
            session: history.sessions().get(transaction.session()).to_string(),
            position: transaction.position(),
            place: transaction.id().index(),
            line: None,
            status: transaction.status().name(),
            client: transaction.client().map(|span| (span.begin, span.end)),
            db: transaction.db().map(|(start, commit)| {
                // Of what did not commit the end may not be known.
                let is_known = transaction.is_committed() || commit.physical != i64::MAX;
                (start.to_string(), if is_known { commit.to_string() } else { String::new() })
            }),
            ctx: context::merged(history, transaction),
            operations: transaction
                .ops()
                .map(|(_, deed)| phrase::focused(history, deed, lens, None))
                .collect(),
            native: jsonl::transaction_line(history, transaction)
                .expect("the native format holds every transaction"),
        }
    }
}
