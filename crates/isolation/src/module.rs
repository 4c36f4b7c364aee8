//! What a level of the user's own can add to every explanation; [`modules`](crate::modules) holds some that do.

use history::{History, TxnId};
use std::fmt;

/// Adds to what every explanation of a history has.
pub trait Module: fmt::Debug + Send + Sync {
    /// What it is called in explanations.
    fn name(&self) -> &str;

    /// What it adds. The error is a sentence on what is wrong with the history.
    fn add(&self, history: &History, additions: &mut Additions) -> Result<(), String>;

    /// What it asks of a whole history that has nothing of the kind, a sentence each: a name that matches nothing tests
    /// nothing.
    fn unmatched(&self, _history: &History) -> Vec<String> {
        Vec::new()
    }
}

/// What modules add.
#[derive(Clone, Debug, Default)]
pub struct Additions {
    /// The first of each pair commits before the second begins, if both took effect.
    pub before: Vec<(TxnId, TxnId)>,
    /// The second of each pair overwrites a version of the first, directly or not. The first has certainly taken effect, also
    /// where its outcome is unknown: another transaction saw what it wrote.
    pub versions: Vec<(TxnId, TxnId)>,
    /// The likely order of transactions, the earliest first; those that are not named come anywhere.
    pub likely: Vec<TxnId>,
}
