//! What was recorded, with the database's own timestamps.

use crate::driver::Database;
use crate::run::RunError;
use crate::timestamps;
use history::History;
use record::Recorder;

/// A part of a history that ended while no transaction was open.
#[derive(Debug)]
pub struct Batch {
    /// The transactions.
    pub history: History,
    /// All later transactions start and commit after this timestamp; `None` if there were no transactions
    /// with timestamps.
    pub settled: Option<i64>,
}

/// The recorded history with the database's own timestamps; the file gets them, too. Transactions that did not
/// commit, as far as their clients know, have none.
pub fn finish_timestamped(recorder: Recorder, database: &dyn Database) -> Result<History, RunError> {
    recorder.finish_timestamped(|stamps| database.timestamps(stamps).map_err(RunError::from))
}

/// What was recorded in memory since the last call, with the database's own timestamps. No transaction
/// may be open: see [`crate::Gate`]. If it fails, nothing is taken.
pub fn take_timestamped(recorder: &Recorder, database: &dyn Database) -> Result<Batch, RunError> {
    let taken = recorder.take_timestamped(|stamps| database.timestamps(stamps).map_err(RunError::from))?;
    Ok(Batch { history: taken.history, settled: taken.last_commit.map(timestamps::settled) })
}
