//! Certificates: a verdict with its evidence, and a second opinion on it.
//!
//! **What.** A [`Certificate`] says what was found of a history at a level, and why: for an accepted history the
//! witness order, for a violated one the core. [`certify`] re-checks it against the history. It shares no code with
//! what made the verdict — no graph, no solver, no pipeline — so that a mistake would have to be made twice.
//!
//! **Invariant.** [`Ruling::Certified`] means that the claim is true of the history given, whatever made the
//! certificate and whatever happened to it since.
//!
//! **Steps.**
//! 1. The fingerprint (`fingerprint`) says whether the certificate is about this history at all.
//! 2. Accepted: one replay of the witness (`replay`) gives every recorded result, in an order that the level allows.
//! 3. Violated: the core is cut out of the history (`part`) such that it has an explanation if the whole has one,
//!    and the exhaustive [`oracle`](mod@oracle) tries all orders of it and finds none; a core that is too large
//!    for that comes with a proof, whose every step is checked (`proof`).
//!
//! **Cost.** A witness: one visit an operation, and a sort by time where real time counts. A core: exponential in its
//! size; what is too large is answered with [`Ruling::Beyond`], never guessed.
//!
//! **Source.** The separation of search and check is that of proof-producing SAT solvers; see the format in the book's
//! chapter on certificates.
//!
//! ```
//! use history::formats::notation;
//! use taipan_certify::{Certificate, Ruling, certify};
//! use isolation::{Budget, Level, Options};
//!
//! let history = notation::parse("s1: r(x,_) w(x,1)\ns2: r(x,1) w(x,2)\n")?;
//! let verdict = oracle::oracle(&history, Level::SERIALIZABLE, &Options::default())?;
//! let certificate =
//!     Certificate::new("history.hist", &history, Level::SERIALIZABLE, &Options::default(), &verdict);
//! assert_eq!(certify(&history, &certificate, &Budget::unlimited()), Ruling::Certified);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod content;
mod doom;
mod fingerprint;
mod format;
mod part;
mod proof;
mod ranges;
mod refusal;
mod replay;
mod steps;

pub use fingerprint::Fingerprint;
pub use format::Malformed;
pub use proof::{Atom, Lemma};
pub use refusal::Refusal;

use history::{Area, History, Id, KeyId, Primitive, Status, Transaction, TxnId, WriteIf};
use isolation::{Budget, Edge, Event, Level, Options, Rule, Ryow, Verdict, VerdictKind};
use oracle::{TooLarge, oracle};
use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

/// A claim about a history, with its evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate<'a> {
    /// The file that was checked, as it was named then. Says nothing about the claim.
    pub file: Cow<'a, str>,
    /// The history it is about.
    pub fingerprint: Fingerprint,
    /// The level.
    pub level: Level,
    /// The policy on reads of own writes.
    pub ryow: Ryow,
    /// How far clients' clocks may differ.
    pub clock_skew: i64,
    /// What is claimed.
    pub claim: Claim<'a>,
}

/// The question that a certificate answers: what a verdict depends on beside the history. The order is always judged by
/// results, never by the database's timestamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question {
    /// The level.
    pub level: Level,
    /// The policy on reads of own writes.
    pub ryow: Ryow,
    /// How far clients' clocks may differ.
    pub clock_skew: i64,
}

impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { level, ryow, clock_skew } = self;
        write!(f, "{level} (by results, ryow {}, clock skew {clock_skew})", ryow.name())
    }
}

/// What a certificate claims.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim<'a> {
    /// The history is possible.
    Accepted {
        /// The witness. At a serial level every transaction that took effect once; at snapshot isolation twice: its
        /// first mention is its begin, its second its commit.
        order: Vec<Mention<'a>>,
    },
    /// The history is not possible.
    Violated {
        /// Transactions that already have no explanation.
        core: Vec<Mention<'a>>,
        /// The argument, for people. The claim does not rest on it.
        edges: Vec<Step<'a>>,
        /// Why no order explains the core, where there are too many to try. Empty where there are not.
        proof: Vec<Lemma>,
    },
    /// Nothing.
    Undecided {
        /// Why.
        reason: Cow<'a, str>,
    },
}

impl Claim<'_> {
    /// Which of the three verdicts it claims.
    pub fn verdict(&self) -> VerdictKind {
        match self {
            Self::Accepted { .. } => VerdictKind::Accepted,
            Self::Violated { .. } => VerdictKind::Violated,
            Self::Undecided { .. } => VerdictKind::Undecided,
        }
    }
}

/// A transaction as a certificate mentions it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Mention<'a> {
    /// By its name.
    Name(Cow<'a, str>),
    /// By its place in the file, from 0, where several have one name (`1` and `"1"`, say).
    Place(u64),
}

/// One edge of the argument of a violation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step<'a> {
    /// The earlier transaction; `None` stands for the initial state.
    #[serde(borrow)]
    pub from: Option<Mention<'a>>,
    /// The later one.
    #[serde(borrow)]
    pub to: Mention<'a>,
    /// The kind of dependency: `ww`, `wr`, `rw`, `so`, `rt`, `ts`.
    #[serde(borrow)]
    pub edge: Cow<'a, str>,
    /// The key it is about, where it is about one.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Cow<'a, str>>,
}

impl Certificate<'static> {
    /// The certificate of a verdict on a history.
    pub fn new(file: &str, history: &History, level: Level, options: &Options, verdict: &Verdict) -> Self {
        let names = Names::of(history);
        let claim = match verdict {
            Verdict::Accepted(witness) => {
                let mention = |event: &Event| match *event {
                    Event::Whole(txn) | Event::Begin(txn) | Event::Commit(txn) => names.mention(txn),
                };
                Claim::Accepted { order: witness.order.iter().map(mention).collect() }
            }
            Verdict::Violated(evidence) => Claim::Violated {
                core: (provable(history, level, options, &evidence.transactions).into_iter())
                    .map(|txn| names.mention(txn))
                    .collect(),
                edges: evidence.edges.iter().map(|edge| Step::of(&names, edge)).collect(),
                proof: Vec::new(),
            },
            Verdict::Undecided(why) => Claim::Undecided { reason: why.to_string().into() },
        };
        Self {
            file: file.to_owned().into(),
            fingerprint: Fingerprint::of(history),
            level,
            ryow: options.ryow,
            clock_skew: options.clock_skew,
            claim,
        }
    }
}

impl Certificate<'_> {
    /// The question that it answers.
    pub fn question(&self) -> Question {
        Question { level: self.level, ryow: self.ryow, clock_skew: self.clock_skew }
    }

    /// Whether it answers the question that was asked: what it proves of another one is beside the point.
    pub fn answers(&self, asked: Question) -> Result<(), Refusal> {
        match self.question() {
            question if question == asked => Ok(()),
            claimed => Err(Refusal::OtherQuestion { claimed, asked }),
        }
    }

    /// The core of a violation as a history of its own, if it is in the history.
    pub fn part(&self, history: &History) -> Option<History> {
        let Claim::Violated { core, .. } = &self.claim else { return None };
        let core = Names::of(history).resolve_all(core).ok()?;
        Some(part::part(history, &core, self.ryow).history)
    }

    /// Gives the claim of a violation its proof.
    pub fn set_proof(&mut self, lemmas: Vec<Lemma>) {
        if let Claim::Violated { proof, .. } = &mut self.claim {
            *proof = lemmas;
        }
    }
}

impl Step<'static> {
    fn of(names: &Names<'_>, edge: &Edge) -> Self {
        let key = edge.key.map(|key| names.history.keys().get(key).to_string().into());
        Self {
            from: edge.from.map(|txn| names.mention(txn)),
            to: names.mention(edge.to),
            edge: edge.kind.name().into(),
            key,
        }
    }
}

/// What becomes of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ruling {
    /// What it claims is true.
    Certified,
    /// It proves nothing: it is about another history, or its evidence does not hold.
    Refused(Refusal),
    /// It may well be true; the sentence says why it is not certified.
    Beyond(String),
}

/// Whether no state that a transaction can have started from gives its results.
pub fn contradicts_itself(history: &History, txn: TxnId, ryow: Ryow) -> bool {
    doom::contradicts_itself(history, history.transaction(txn), ryow, &ranges::Passed::new(history))
}

/// Whether certificates of a level can be re-checked.
pub fn has_certifier(level: Level) -> bool {
    level.own.is_none() && matches!(level.rule, Rule::Serializable | Rule::SnapshotIsolation)
}

/// Re-checks a certificate against a history: whether what it claims is true, by the policies that it names. Whether
/// that is what was asked is for [`Certificate::answers`].
pub fn certify(history: &History, certificate: &Certificate<'_>, budget: &Budget) -> Ruling {
    match examine(history, certificate, budget) {
        Ok(()) => Ruling::Certified,
        Err(Objection::Refused(refusal)) => Ruling::Refused(refusal),
        Err(Objection::Beyond(why)) => Ruling::Beyond(why),
    }
}

/// Why a certificate is not certified.
enum Objection {
    Refused(Refusal),
    Beyond(String),
}

impl From<Refusal> for Objection {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

fn examine(history: &History, certificate: &Certificate<'_>, budget: &Budget) -> Result<(), Objection> {
    let Certificate { fingerprint, level, ryow, clock_skew, ref claim, .. } = *certificate;
    let found = Fingerprint::of(history);
    if found != fingerprint {
        return Err(Refusal::OtherHistory { claimed: fingerprint, found }.into());
    }
    if clock_skew < 0 {
        return Err(Refusal::NegativeSkew { skew: clock_skew }.into());
    }
    if !has_certifier(level) {
        return Err(Objection::Beyond(format!("there is no certifier for {level}")));
    }
    let names = Names::of(history);
    match claim {
        Claim::Accepted { order } => {
            let order = names.resolve_all(order)?;
            replay::replay(history, level, ryow, clock_skew, &order, budget)
        }
        Claim::Violated { core, edges, proof } => {
            let core = names.resolve_all(core)?;
            for (place, step) in edges.iter().enumerate() {
                steps::examine(&names, step, clock_skew).map_err(|why| why.at(place))?;
            }
            let options = Options { ryow, clock_skew, budget: budget.clone(), ..Options::default() };
            match &proof[..] {
                [] => impossible(history, level, &options, &core),
                proof => proved(history, level, &options, &core, proof),
            }
        }
        Claim::Undecided { reason } => Err(Objection::Beyond(format!("nothing is claimed: {reason}"))),
    }
}

/// The core, if it can be cut out of the history; else with everybody who wrote a key it read; else everybody who can
/// have taken effect. What a predicate says of the keys that it did not return cannot be written down for some keys
/// only, and a list that is also overwritten says nothing without all who wrote its key.
fn provable(history: &History, level: Level, options: &Options, core: &[TxnId]) -> Vec<TxnId> {
    let is_doubtful = |operation: Primitive<'_>| {
        matches!(operation, Primitive::Show { area: Area::Where(_), .. } | Primitive::WriteIf(_))
    };
    // Of what is not known when the time is up nothing is claimed.
    let stands = |core: &[TxnId]| match impossible(history, level, options, core) {
        Ok(()) => true,
        Err(Objection::Refused(_)) => false,
        Err(Objection::Beyond(_)) => options.budget.exhausted().is_none(),
    };
    let mut operations = history.transactions().flat_map(|txn| txn.primitives());
    let is_simple = !operations.any(|(_, operation)| is_doubtful(operation)) && !has_doubtful_lists(history);
    if is_simple || stands(core) {
        return core.to_vec();
    }
    let larger = with_writers(history, core);
    if stands(&larger) {
        return larger;
    }
    let effective = history.transactions().filter(|txn| txn.status() != Status::Aborted);
    effective.map(|txn| txn.id()).collect()
}

/// Some transactions and everybody who wrote a key that they read or wrote, as far as the record tells.
fn with_writers(history: &History, txns: &[TxnId]) -> Vec<TxnId> {
    let keys_of = |txn: TxnId| {
        let operations = history.transaction(txn).primitives();
        operations.filter_map(|(_, operation)| operation.key()).collect::<Vec<KeyId>>()
    };
    let keys: FxHashSet<KeyId> = txns.iter().flat_map(|&txn| keys_of(txn)).collect();
    let writes = |operation: &Primitive<'_>| {
        !matches!(operation, Primitive::Read { .. }) && operation.key().is_some_and(|key| keys.contains(&key))
    };
    let effective = history.transactions().filter(|txn| txn.status() != Status::Aborted);
    let wrote = |txn: &Transaction<'_>| txn.primitives().any(|(_, operation)| writes(&operation));
    let is_in = |txn: &Transaction<'_>| txns.binary_search(&txn.id()).is_ok() || wrote(txn);
    effective.filter(is_in).map(|txn| txn.id()).collect()
}

/// Whether a list may say nothing without all who wrote its key: the key is also overwritten or does not start absent, an
/// element comes twice, or an outcome is not known. Saying so too often costs a look at the core, no more.
fn has_doubtful_lists(history: &History) -> bool {
    let effective = || history.transactions().filter(|txn| txn.status() != Status::Aborted);
    let (mut keys, mut elements) = (FxHashSet::default(), FxHashSet::default());
    for (_, operation) in effective().flat_map(|txn| txn.primitives()) {
        if let Primitive::Append { key, value } = operation {
            keys.insert(key);
            if !elements.insert((key, value)) {
                return true;
            }
        }
    }
    let overwrites = |operation: Primitive<'_>| match operation {
        Primitive::Write { key, .. } | Primitive::WriteIf(WriteIf { key: Some(key), .. }) => {
            keys.contains(&key)
        }
        _ => false,
    };
    !keys.is_empty()
        && (effective().any(|txn| txn.status() == Status::Unknown)
            || history.initial().iter().any(|row| keys.contains(&row.key))
            || effective().flat_map(|txn| txn.primitives()).any(|(_, operation)| overwrites(operation)))
}

/// Whether the core has no explanation at all.
fn impossible(history: &History, level: Level, options: &Options, core: &[TxnId]) -> Result<(), Objection> {
    let part = part::part(history, core, options.ryow);
    match oracle(&part.history, level, options) {
        Ok(Verdict::Violated(_)) => Ok(()),
        Ok(Verdict::Accepted(witness)) => {
            let name = |txn: TxnId| history.transaction(part.txns[txn.index()]).name().to_string();
            let order = witness.order.into_iter().map(|event| match event {
                Event::Whole(txn) => name(txn),
                Event::Begin(txn) => format!("begin of {}", name(txn)),
                Event::Commit(txn) => format!("commit of {}", name(txn)),
            });
            Err(Refusal::Explained { order: order.collect() }.into())
        }
        Ok(Verdict::Undecided(why)) => Err(Objection::Beyond(why.to_string())),
        Err(TooLarge::Transactions { count, .. }) => {
            Err(Objection::Beyond(format!("a core of {count} transactions is beyond exhaustive replay")))
        }
        Err(too_large) => {
            let count = part.txns.len();
            Err(Objection::Beyond(format!(
                "a core of {count} transactions is beyond exhaustive replay: {too_large}"
            )))
        }
    }
}

/// Whether the proof shows that the core has no explanation.
fn proved(
    history: &History,
    level: Level,
    options: &Options,
    core: &[TxnId],
    proof: &[Lemma],
) -> Result<(), Objection> {
    let part = part::part(history, core, options.ryow);
    let Options { ryow, clock_skew, ref budget, .. } = *options;
    proof::examine(&part.history, level, ryow, clock_skew, proof, budget).map_err(|flaw| match flaw {
        proof::Flaw::Lemma(place) => Refusal::Proof { place }.into(),
        proof::Flaw::Beyond(why) => Objection::Beyond(why),
    })
}

/// Transactions by name.
struct Names<'h> {
    history: &'h History,
    /// `None` where several have the name.
    by_name: FxHashMap<Box<str>, Option<TxnId>>,
}

impl<'h> Names<'h> {
    fn of(history: &'h History) -> Self {
        let mut by_name = FxHashMap::default();
        by_name.reserve(history.len());
        for transaction in history.transactions() {
            let id = transaction.id();
            by_name
                .entry(transaction.name().to_string().into_boxed_str())
                .and_modify(|several| *several = None)
                .or_insert(Some(id));
        }
        Self { history, by_name }
    }

    fn mention(&self, txn: TxnId) -> Mention<'static> {
        let name = self.history.transaction(txn).name().to_string();
        match self.by_name.get(&*name) {
            Some(Some(_)) => Mention::Name(name.into()),
            _ => Mention::Place(txn.index() as u64),
        }
    }

    fn resolve(&self, mention: &Mention<'_>) -> Result<TxnId, Refusal> {
        match mention {
            Mention::Name(name) => match self.by_name.get(&**name) {
                Some(Some(txn)) => Ok(*txn),
                Some(None) => Err(Refusal::AmbiguousName { name: name.to_string() }),
                None => Err(Refusal::NoSuchTransaction { mention: format!("{name:?}") }),
            },
            Mention::Place(place) => match usize::try_from(*place) {
                Ok(place) if place < self.history.len() => Ok(TxnId::new(place)),
                _ => Err(Refusal::NoSuchTransaction { mention: format!("at place {place}") }),
            },
        }
    }

    fn resolve_all(&self, mentions: &[Mention<'_>]) -> Result<Vec<TxnId>, Refusal> {
        mentions.iter().map(|mention| self.resolve(mention)).collect()
    }
}
