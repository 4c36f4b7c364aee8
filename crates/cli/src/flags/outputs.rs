//! The forms in which results are printed.

use clap::ValueEnum;

/// Output form of results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// Human-readable text
    Text,
    /// One JSON object per line, one per file and level, in the order given
    Json,
    /// JUnit XML: one suite per file, one case per level
    Junit,
    /// SARIF 2.1.0, for code scanning
    Sarif,
    /// Markdown, for the summary page of a CI service
    Markdown,
    /// One self-contained HTML page
    Html,
}

/// Output form of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListOutput {
    /// Human-readable text
    Text,
    /// One JSON object per line
    Json,
}

/// Output form of an explanation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExplainOutput {
    /// Human-readable text
    Text,
    /// One JSON object per line
    Json,
    /// One self-contained HTML page
    Html,
    /// A graph of the violating transactions
    Svg,
    /// The graph for Graphviz
    Dot,
    /// The graph for Mermaid
    Mermaid,
    /// The minimal violating history, in the one-line notation
    Notation,
    /// The minimal violating history as JSON lines
    Jsonl,
}

/// Output form of the levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LevelsOutput {
    /// Human-readable text
    Text,
    /// One JSON object per line
    Json,
    /// The lattice: all levels and what implies what
    Svg,
    /// The lattice and a table as one HTML page
    Html,
}
