//! The rules of this repository, as tests.
//!
//! One noun: a [`Source`] is a text file of the repository with its path from the root. The rules
//! themselves are in `tests/`, one function a rule, so that a broken rule is a failed test with its name.
//!
//! This crate is never part of the program.

use std::fs;
use std::path::{Path, PathBuf};

/// A text file of the repository.
#[derive(Clone, Debug)]
pub struct Source {
    /// Its path from the root, with `/` between the parts.
    pub path: String,
    /// What is in it.
    pub text: String,
}

/// What holds no source: what builds and fuzzing leave behind. In a worktree of git, `.git` is a file.
const NOT_SOURCE: [&str; 6] = ["target", ".git", "node_modules", "artifacts", "coverage", "mutants.out"];

impl Source {
    /// Every text file of the repository, by path.
    pub fn all() -> Vec<Source> {
        let root = root();
        let mut found = Vec::new();
        let mut open = vec![root.clone()];
        while let Some(folder) = open.pop() {
            let Ok(entries) = fs::read_dir(&folder) else { continue };
            for entry in entries.flatten() {
                let (path, name) = (entry.path(), entry.file_name());
                let Ok(kind) = entry.file_type() else { continue };
                if NOT_SOURCE.iter().any(|&skip| name == skip) {
                    continue;
                }
                if kind.is_file() {
                    found.extend(Self::open(&root, &path));
                } else if kind.is_dir() {
                    open.push(path);
                }
            }
        }
        found.sort_by(|a, b| a.path.cmp(&b.path));
        found
    }

    /// A file, unless it is not text.
    fn open(root: &Path, path: &Path) -> Option<Source> {
        let text = fs::read_to_string(path).ok()?;
        let path = path.strip_prefix(root).ok()?.to_string_lossy().replace('\\', "/");
        Some(Source { path, text })
    }

    /// Whether it is Rust that ends up in a library or in the program: not a test, bench or example.
    pub fn is_product_code(&self) -> bool {
        self.path.starts_with("crates/") && self.path.contains("/src/") && self.path.ends_with(".rs")
    }

    /// The crate it belongs to, if it belongs to one.
    pub fn crate_name(&self) -> Option<&str> {
        self.path.strip_prefix("crates/")?.split('/').next()
    }

    /// Its code lines with their numbers from 1: without comments, and without the test module at its end.
    pub fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text
            .lines()
            .enumerate()
            .take_while(|(_, line)| line.trim() != "#[cfg(test)]")
            .map(|(index, line)| (index + 1, before_comment(line)))
            .filter(|(_, line)| !line.trim().is_empty())
    }
}

/// The part of a line before `//`, where the `//` is not inside a string literal.
fn before_comment(line: &str) -> &str {
    let mut in_string = false;
    let mut previous = ' ';
    for (place, letter) in line.char_indices() {
        match letter {
            '"' if previous != '\\' && previous != '\'' => in_string = !in_string,
            '/' if previous == '/' && !in_string => return &line[..place - 1],
            _ => {}
        }
        previous = letter;
    }
    line
}

/// The root of the repository.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).map_or_else(|| here.to_path_buf(), Path::to_path_buf)
}

#[cfg(test)]
mod tests {
    use super::before_comment;

    #[test]
    fn comments_end_a_line_and_strings_do_not() {
        assert_eq!(before_comment("let a = 1; // one"), "let a = 1; ");
        assert_eq!(before_comment(r#"let a = "http://x"; // b"#), r#"let a = "http://x"; "#);
        assert_eq!(before_comment(r#"let a = '"'; // b"#), r#"let a = '"'; "#);
        assert_eq!(before_comment("/// doc"), "");
    }
}
