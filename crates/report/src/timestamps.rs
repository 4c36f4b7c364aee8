//! What a check by timestamps found: every violation as a sentence, and how it compares with what the results alone
//! allow.

use crate::shorten::{self, Lens};
use crate::{Finding, phrase};
use history::{History, KeyId, TxnId, ValueId};
use isolation::{By, Claim, Event, Verdict, VerdictKind, Witness};
use replay::{Axiom, Content, Finding as Broken};
use serde::Serialize;

/// One violation of a history that was checked by timestamps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// The axiom that is broken.
    pub axiom: &'static str,
    /// The transaction that breaks it.
    pub transaction: String,
    /// Which of its operations, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<usize>,
    /// The key it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The transaction that had to be seen, or was overwritten unseen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other: Option<String>,
    /// What had to be.
    pub expected: String,
    /// What was.
    pub seen: String,
    /// The sentence.
    pub why: String,
}

/// What the results alone come to, beside what the timestamps say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Comparison {
    /// The verdict by results alone.
    pub by_results: VerdictKind,
    /// What it found, for a violation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub anomaly: Option<String>,
    /// How the two fit together.
    pub why: String,
}

/// What a claim is judged by, in a sentence without a full stop.
pub(crate) fn basis(claim: &Claim) -> &'static str {
    match claim.by {
        By::Results => "Checked by results: any order that explains what clients saw is allowed",
        By::Timestamps => "Checked by the database's timestamps: their order must explain every result",
    }
}

impl Finding {
    /// With every violation that a check by timestamps found.
    pub fn by_timestamps(self, history: &History, broken: &[Broken]) -> Self {
        let violations = broken.iter().map(|it| Violation::new(history, it)).collect();
        Self { by_timestamps: Some(violations), ..self }
    }

    /// With what timestamps refuse where another order explains the results.
    pub fn refused_by_timestamps(self, history: &History, broken: &Broken) -> Self {
        let (axiom, sentence) = (broken.axiom.name(), sentence(history, broken));
        self.noted(format!(
            "{axiom}: transaction {sentence}; another order explains the results; use --by timestamps to require these"
        ))
    }

    /// With what the results alone come to.
    pub fn compared(self, history: &History, broken: &[Broken], other: &Verdict) -> Self {
        let named = |anomaly: &isolation::Anomaly| anomaly.name.clone();
        let anomaly = match other {
            Verdict::Violated(evidence) => Some(named(&evidence.anomaly)),
            _ => None,
        };
        let why = match (self.verdict, other) {
            (VerdictKind::Undecided, _) => "the timestamps do not decide it".to_owned(),
            (_, Verdict::Undecided(why)) => format!("undecided by the results alone: {why}"),
            (VerdictKind::Accepted, Verdict::Accepted(_)) => {
                "both the order of the timestamps and an order found without them explain every result"
                    .to_owned()
            }
            (VerdictKind::Accepted, Verdict::Violated(_)) => {
                "the timestamps give an order that explains every result, but none was found without them: this is a bug \
                 in Taipan, please report it with the history"
                    .to_owned()
            }
            (VerdictKind::Violated, Verdict::Violated(_)) => {
                "no order explains the results, neither that of the timestamps nor any other".to_owned()
            }
            (VerdictKind::Violated, Verdict::Accepted(witness)) => disagreement(history, broken, witness),
        };
        Self { comparison: Some(Comparison { by_results: other.kind(), anomaly, why }), ..self }
    }
}

/// Where an order that explains the results is not the order of the timestamps.
fn disagreement(history: &History, broken: &[Broken], witness: &Witness) -> String {
    let place = |wanted: Event| witness.order.iter().position(|&event| event == wanted);
    let name = |txn: TxnId| history.transaction(txn).name().to_string();
    let times = |txn: TxnId| history.transaction(txn).db();
    let begins = |txn| place(Event::Begin(txn)).or_else(|| place(Event::Whole(txn)));
    let commits = |txn| place(Event::Commit(txn)).or_else(|| place(Event::Whole(txn)));
    for finding in broken.iter().take(DISAGREEMENTS_TRIED) {
        let (own, Some(other)) = (finding.txn, finding.other) else { continue };
        let (Some((start, commit)), Some((_, other_commit))) = (times(own), times(other)) else { continue };
        let by_time = if begins(own) == commits(own) { commit } else { start };
        let (Some(look), Some(write)) = (begins(own), commits(other)) else { continue };
        let sees = write < look;
        if sees != (other_commit <= by_time) {
            let (own, other) = (name(own), name(other));
            let order = if sees { "after" } else { "before" };
            return format!(
                "the results are possible if {own} took its snapshot {order} {other} committed, but by the timestamps \
                 {other} committed at {other_commit} and {own} took its snapshot at {by_time}"
            );
        }
    }
    "an order other than that of the timestamps explains the results".to_owned()
}

/// How many violations are looked at for a pair that the two orders place differently.
const DISAGREEMENTS_TRIED: usize = 64;

impl Violation {
    fn new(history: &History, broken: &Broken) -> Self {
        let name = |txn: TxnId| history.transaction(txn).name().to_string();
        let first = history.transaction(broken.txn).op_ids().next();
        let operation = broken.op.zip(first).map(|(op, first)| (op.0 - first.0) as usize);
        let (expected, seen) = contents(history, broken);
        Self {
            axiom: broken.axiom.name(),
            transaction: name(broken.txn),
            operation,
            key: broken.key.map(|key| history.keys().get(key).to_string()),
            other: broken.other.map(name),
            expected,
            seen,
            why: sentence(history, broken),
        }
    }
}

/// What was expected and what was seen, with the first difference visible in both.
fn contents(history: &History, broken: &Broken) -> (String, String) {
    let values = history.values();
    if let (Content::Value(expected), Content::Value(seen)) = (&broken.expected, &broken.seen) {
        return shorten::pair(values, *expected, *seen, &Lens::default());
    }
    let elements = |content: &Content| match content {
        Content::Value(value) => history.values_of(*value).to_vec(),
        Content::List(elements) => elements.to_vec(),
        _ => Vec::new(),
    };
    let (expected, seen) = (elements(&broken.expected), elements(&broken.seen));
    let same = shorten::alike(expected.iter(), seen.iter());
    (content(history, &broken.expected, same), content(history, &broken.seen, same))
}

fn content(history: &History, content: &Content, place: usize) -> String {
    let values = history.values();
    let show = |elements: &[ValueId]| {
        shorten::list(elements.len(), |index| values.show(elements[index]).to_string(), &[place])
    };
    match content {
        Content::Value(value) => match history.values_of(*value) {
            [] => shorten::value(values, *value, &Lens::default(), None),
            elements => show(elements),
        },
        Content::List(elements) => show(elements),
        Content::Count(count) => count.to_string(),
        Content::Time(time) => time.to_string(),
        Content::Clock(clock) => clock.to_string(),
    }
}

/// `2:0 read x = 1, and its snapshot holds x = 2 of 1:0`.
fn sentence(history: &History, broken: &Broken) -> String {
    let own = history.transaction(broken.txn).name();
    let other = broken
        .other
        .map_or("the initial state".to_owned(), |txn| history.transaction(txn).name().to_string());
    let key = |key: Option<KeyId>| key.map_or("a key".to_owned(), |key| phrase::key(history, key));
    let (expected, seen) = contents(history, broken);
    match broken.axiom {
        Axiom::TimestampOrder => format!("{own} started at {expected} and committed before that, at {seen}"),
        Axiom::Session => {
            format!(
                "{own} took its snapshot at {seen}, before {other}, the previous transaction of its session, committed at {expected}"
            )
        }
        Axiom::RealTime => {
            format!(
                "{own} took its snapshot at {seen}, before {other} committed at {expected}; yet {other} had ended before {own} began"
            )
        }
        Axiom::NoConflict => format!(
            "{own} took its snapshot at {seen}, before {other} committed {} at {expected}, and still overwrote it",
            key(broken.key)
        ),
        Axiom::Internal => {
            format!("{own} saw {} = {seen}; its own earlier operations require {expected}", key(broken.key))
        }
        Axiom::External if broken.key.is_none() => {
            format!("{own} changed {seen} rows; its snapshot holds {expected} that match")
        }
        Axiom::External => {
            let whose = match broken.other {
                Some(_) => format!("written by {other}"),
                None => "the initial value".to_owned(),
            };
            format!("{own} saw {} = {seen}; its snapshot holds {expected}, {whose}", key(broken.key))
        }
    }
}
