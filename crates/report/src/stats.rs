//! What is in a history.

use history::formats::Loaded;
use history::{Spread, Summary};
use serde::Serialize;
use std::collections::BTreeMap;

/// What is in a history, for people.
pub fn stats_text(name: &str, loaded: &Loaded, summary: &Summary) -> String {
    let mut text = format!("{name}\n");
    let mut row = |title: &str, value: String| text += &format!("  {title:<18} {value}\n");
    row("format", loaded.format.to_string());
    if let Some(level) = loaded.history.level() {
        row("level", format!("{level} (asked for in the header)"));
    }
    let Summary { committed, aborted, unknown, read_only, .. } = summary;
    row(
        "transactions",
        format!(
            "{} ({committed} committed, {read_only} of them read-only; {aborted} aborted; {unknown} unknown)",
            summary.transactions
        ),
    );
    row("sessions", format!("{}, each of {} transactions", summary.sessions, spread(summary.session_length)));
    let total: usize = summary.operations.iter().map(|(_, count)| count).sum();
    let kinds: Vec<String> =
        summary.operations.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    let kinds = if kinds.is_empty() { String::new() } else { format!(" ({})", kinds.join(", ")) };
    row("operations", format!("{total}{kinds}"));
    row("per transaction", spread(summary.transaction_length));
    if summary.absent_reads + summary.unknown_results > 0 {
        row("results", format!("{} absent, {} unknown", summary.absent_reads, summary.unknown_results));
    }
    let Summary { keys, keys_written, initial_values, .. } = summary;
    row("keys", format!("{keys} ({keys_written} written, {initial_values} with an initial value)"));
    row(
        "values",
        match summary.repeated_writes {
            0 => "unique: every read has exactly one possible writer".to_owned(),
            many => {
                format!("{many} writes repeat a value of their key: reads may have several possible writers")
            }
        },
    );
    row("client clocks", share(summary.client_clocks, summary.transactions));
    row("db timestamps", share(summary.db_timestamps, summary.transactions));
    let footprint = summary.footprint;
    let bytes = footprint.transactions + footprint.operations + footprint.names_and_values;
    row("memory", format!("{bytes} bytes"));
    text
}

fn spread(spread: Spread) -> String {
    match spread {
        Spread { min, max, .. } if min == max => min.to_string(),
        Spread { min, median, max } => format!("{min} to {max} (median {median})"),
    }
}

fn share(count: usize, all: usize) -> String {
    match count {
        0 => "none".to_owned(),
        count if count == all => "all transactions".to_owned(),
        count => format!("{count} transactions"),
    }
}

#[derive(Serialize)]
struct Object<'a> {
    file: &'a str,
    format: &'a str,
    level: Option<&'a str>,
    transactions: usize,
    committed: usize,
    aborted: usize,
    unknown: usize,
    read_only: usize,
    sessions: usize,
    operations: BTreeMap<&'static str, usize>,
    absent_reads: usize,
    unknown_results: usize,
    keys: usize,
    keys_written: usize,
    initial_values: usize,
    repeated_writes: usize,
    session_length: [usize; 3],
    transaction_length: [usize; 3],
    client_clocks: usize,
    db_timestamps: usize,
    memory_bytes: usize,
    file_bytes: u64,
}

/// What is in a history, one JSON object on one line.
pub fn stats_line(name: &str, loaded: &Loaded, summary: &Summary) -> String {
    let three = |spread: Spread| [spread.min, spread.median, spread.max];
    let footprint = summary.footprint;
    let object = Object {
        file: name,
        format: loaded.format.name(),
        level: loaded.history.level(),
        transactions: summary.transactions,
        committed: summary.committed,
        aborted: summary.aborted,
        unknown: summary.unknown,
        read_only: summary.read_only,
        sessions: summary.sessions,
        operations: summary.operations.iter().copied().collect(),
        absent_reads: summary.absent_reads,
        unknown_results: summary.unknown_results,
        keys: summary.keys,
        keys_written: summary.keys_written,
        initial_values: summary.initial_values,
        repeated_writes: summary.repeated_writes,
        session_length: three(summary.session_length),
        transaction_length: three(summary.transaction_length),
        client_clocks: summary.client_clocks,
        db_timestamps: summary.db_timestamps,
        memory_bytes: footprint.transactions + footprint.operations + footprint.names_and_values,
        file_bytes: loaded.bytes,
    };
    serde_json::to_string(&object).expect("numbers and names always have a JSON form")
}
