//! Histories from files, directories and standard input.

use crate::flags::ReadingFlags;
use crate::patient::Patient;
use history::formats::{Format, Loaded, ReadError, ReadOptions, Warned, read_parts, read_path, read_stream};
use history::{History, Interrupt};
use std::fs::File;
use std::io;
use std::path::Path;

impl ReadingFlags {
    /// The library's options.
    pub(crate) fn options(&self) -> ReadOptions {
        ReadOptions {
            format: self.format,
            lenient: self.lenient,
            allow_empty: self.allow_empty,
            ..ReadOptions::default()
        }
    }

    /// The same, until an interrupt is due.
    pub(crate) fn options_until(&self, interrupt: Interrupt) -> ReadOptions {
        ReadOptions { interrupt, ..self.options() }
    }

    /// Reads a file part by part; see [`read_parts`].
    pub(crate) fn read_parts(
        &self,
        file: &Path,
        each: &mut dyn FnMut(&History) -> bool,
    ) -> Result<bool, ReadError> {
        read_parts(file, &self.options(), |part| each(&part))
    }

    /// Reads a file, a directory, or standard input, until an interrupt is due; a stream in which nothing comes is left
    /// then, too.
    pub(crate) fn read_until(&self, file: &Path, interrupt: Interrupt) -> Result<Loaded, ReadError> {
        let options = self.options_until(interrupt.clone());
        if is_standard_stream(file) {
            return read_stream("standard input", Patient::new(|| Ok(io::stdin()), interrupt), &options);
        }
        let is_stream = std::fs::metadata(file).is_ok_and(|meta| !meta.is_file() && !meta.is_dir());
        if !is_stream {
            return read_path(file, &options);
        }
        let path = file.to_owned();
        read_stream(&file.to_string_lossy(), Patient::new(|| File::open(path), interrupt), &options)
    }
}

/// Where passwords of databases are looked for, beside the target.
pub(crate) fn passwords() -> databases::Passwords {
    databases::Passwords::of(|name| std::env::var_os(name))
}

/// Whether a file name stands for standard input or output.
pub(crate) fn is_standard_stream(file: &Path) -> bool {
    file.as_os_str() == "-"
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
