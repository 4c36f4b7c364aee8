//! What a search comes to, before any of it is explained.

use history::TxnId;
use isolation::{Undecided, Witness};

/// A verdict before it is explained.
#[derive(Debug)]
pub enum Decision {
    /// An order explains everything.
    Possible(Witness),
    /// These transactions already have no explanation.
    Impossible(Vec<TxnId>),
    /// The budget is used up.
    Open(Undecided),
    /// The pipeline does not decide this.
    NotHere(String),
}
