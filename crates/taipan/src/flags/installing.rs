//! What belongs to an installed program: completions for shells, pages for `man`.

use clap::Args;
use clap_complete::Shell;
use std::path::PathBuf;

/// Print a script that completes commands, flags and their values in a shell
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  taipan completions bash > ~/.local/share/bash-completion/completions/taipan
  taipan completions zsh > ~/.zfunc/_taipan     with `fpath+=~/.zfunc` before compinit in .zshrc
  taipan completions fish > ~/.config/fish/completions/taipan.fish")]
pub(crate) struct CompletionsFlags {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub(crate) shell: Shell,
}

/// Print the manual page, or write one for every command
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  taipan man | man -l -                         read it
  taipan man --dir ~/.local/share/man/man1      then `man taipan-check` works")]
pub(crate) struct ManFlags {
    /// Write taipan.1 and one page for every command into this folder, which is made if need be
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}
