//! What belongs to an installed program: completions for shells, pages for `man`.

use clap::Args;
use clap_complete::Shell;
use std::path::PathBuf;

/// Print a shell completion script
///
/// It completes commands, flags and their values.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  taipan completions bash > ~/.local/share/bash-completion/completions/taipan
  # with `fpath+=~/.zfunc` before compinit in .zshrc
  taipan completions zsh > ~/.zfunc/_taipan
  taipan completions fish > ~/.config/fish/completions/taipan.fish")]
pub(crate) struct CompletionsFlags {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub(crate) shell: Shell,
}

/// Print the manual page, or write one per command
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  taipan man | man -l -
  # then `man taipan-check` works
  taipan man --dir ~/.local/share/man/man1")]
pub(crate) struct ManFlags {
    /// Write taipan.1 and one page per command to DIR
    ///
    /// DIR is created if needed.
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}
