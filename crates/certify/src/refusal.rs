//! Why a certificate is not taken.

use super::{Fingerprint, Question};
use std::fmt;

/// Why a certificate is refused: what it says is not so, or does not follow from what it shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is about another history.
    OtherHistory {
        /// The fingerprint in the certificate.
        claimed: Fingerprint,
        /// The fingerprint of the history.
        found: Fingerprint,
    },
    /// It answers another question than the one that was asked.
    OtherQuestion {
        /// What it answers.
        claimed: Question,
        /// What was asked.
        asked: Question,
    },
    /// Clocks cannot differ by less than nothing: with a negative skew, transactions that overlap would be ordered.
    NegativeSkew {
        /// The skew in the certificate.
        skew: i64,
    },
    /// It mentions a transaction that the history does not have.
    NoSuchTransaction {
        /// As it is mentioned.
        mention: String,
    },
    /// It mentions a transaction by a name that several have.
    AmbiguousName {
        /// The name.
        name: String,
    },
    /// The witness has a transaction that was aborted.
    Aborted {
        /// Its name.
        txn: String,
    },
    /// The witness mentions a transaction again after it committed.
    Repeated {
        /// Its name.
        txn: String,
    },
    /// The witness leaves out a committed transaction.
    Missing {
        /// Its name.
        txn: String,
    },
    /// The witness lets a transaction begin and never commit.
    NeverCommits {
        /// Its name.
        txn: String,
    },
    /// The witness lets a transaction begin before an earlier one of its session has committed.
    SessionOrder {
        /// Its name.
        txn: String,
    },
    /// The witness lets a transaction begin before one that had ended before has committed.
    RealTime {
        /// Its name.
        txn: String,
        /// The name of the other one.
        earlier: String,
    },
    /// The witness does not give a recorded result.
    Result {
        /// The transaction's name.
        txn: String,
        /// Which of its operations, from 0.
        operation: usize,
        /// What does not fit.
        why: String,
    },
    /// The witness lets a transaction commit a key that another one committed since it began.
    Overlap {
        /// Its name.
        txn: String,
        /// The key.
        key: String,
    },
    /// An order explains what the core's transactions saw, so they prove nothing.
    Explained {
        /// The names of the core's transactions in that order.
        order: Vec<String>,
    },
    /// An edge of the argument contradicts the history.
    Edge {
        /// Which edge, from 0.
        place: usize,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A lemma of the proof does not follow, or the contradiction at its end does not.
    Proof {
        /// Which lemma, from 0; `None` for the end.
        place: Option<usize>,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherHistory { claimed, found } => write!(
                f,
                "the certificate is about another history: it names the fingerprint {claimed}, this one has {found}"
            ),
            Self::OtherQuestion { asked, .. } => {
                write!(f, "it answers another question; {asked} was asked")
            }
            Self::NegativeSkew { skew } => write!(f, "its clock skew is negative: {skew}"),
            Self::NoSuchTransaction { mention } => write!(f, "the history has no transaction {mention}"),
            Self::AmbiguousName { name } => {
                write!(f, "several transactions are called {name}: the certificate must give their places")
            }
            Self::Aborted { txn } => write!(f, "{txn} was aborted and is in the order"),
            Self::Repeated { txn } => write!(f, "{txn} is in the order again after it has committed"),
            Self::Missing { txn } => write!(f, "{txn} was committed and is not in the order"),
            Self::NeverCommits { txn } => write!(f, "{txn} begins in the order and never commits"),
            Self::SessionOrder { txn } => {
                write!(
                    f,
                    "{txn} begins in the order before an earlier transaction of its session has committed"
                )
            }
            Self::RealTime { txn, earlier } => {
                write!(f, "{txn} begins in the order before {earlier} has committed, which had ended by then")
            }
            Self::Result { txn, operation, why } => {
                write!(f, "{txn}, operation {}: {why}", operation + 1)
            }
            Self::Overlap { txn, key } => {
                write!(f, "{txn} commits {key}, which another transaction committed since {txn} began")
            }
            Self::Explained { order } if order.is_empty() => {
                f.write_str("the core proves nothing: nothing of it has to have happened")
            }
            Self::Explained { order } => {
                write!(f, "the core proves nothing: the order {} explains it", order.join(", "))
            }
            Self::Proof { place: Some(place) } => {
                write!(f, "lemma {} of the proof does not follow from what comes before", place + 1)
            }
            Self::Proof { place: None } => f.write_str("the proof ends without a contradiction"),
            Self::Edge { place, why } => write!(f, "edge {}: {why}", place + 1),
        }
    }
}

impl std::error::Error for Refusal {}
