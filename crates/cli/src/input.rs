//! What goes in and out, beside histories.

use history::formats::{Format, Warned};
use std::path::Path;

/// Where passwords of databases are looked for, beside the target.
pub(crate) fn passwords() -> databases::Passwords {
    databases::Passwords::of(|name| std::env::var_os(name))
}

/// What is said of transactions and fields that `--lenient` left out, and what a reader noted; nothing if there is nothing.
pub(crate) fn left_out(warnings: &Warned) -> Option<String> {
    let left_out = match (warnings.count, warnings.first.first()) {
        (0, _) => None,
        (count, None) => Some(format!("skipped {count} transactions")),
        (1, Some(first)) => Some(format!("skipped one transaction: {first}")),
        (count, Some(first)) => Some(format!("skipped {count} transactions; the first: {first}")),
    };
    let ignored = match (warnings.ignored, &warnings.first_ignored) {
        (1, Some(first)) => Some(format!("ignored one unknown field: {first}")),
        (count, Some(first)) => Some(format!("ignored {count} unknown fields; the first: {first}")),
        (_, None) => None,
    };
    let said: Vec<String> =
        left_out.into_iter().chain(ignored).chain(warnings.notes.iter().cloned()).collect();
    (!said.is_empty()).then(|| said.join("; "))
}

/// The format to write into a file: the one asked for, else the one that its name tells.
pub(crate) fn target_format(file: &Path, asked: Option<Format>) -> Result<Format, String> {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    asked.or_else(|| Format::from_file_name(&name)).ok_or_else(|| {
        let known = Format::ALL.iter().filter(|format| format.is_writable()).map(|format| format.name());
        format!(
            "cannot infer the output format from {}; use --to FORMAT ({})",
            file.display(),
            known.collect::<Vec<_>>().join(", ")
        )
    })
}
