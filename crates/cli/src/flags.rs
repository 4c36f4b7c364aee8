//! What the user can type. The texts here are the help.

mod check;
mod color;
mod databases;
mod elle;
mod explain;
mod histories;
mod hunting;
mod installing;
mod limits;
mod numbers;
mod opinions;
mod outputs;
mod question;
mod recording;
mod values;
mod watch;
mod workers;

pub(crate) use check::{By, CheckFlags, SearchFlags};
pub(crate) use color::Color;
pub(crate) use databases::{LoadFlags, MatrixFlags, MatrixOutput};
pub(crate) use elle::{ElleFlags, ElleOutput, HistoryFormat, Model};
pub(crate) use explain::ExplainFlags;
pub(crate) use histories::{ConvertFlags, DemoFlags, LevelsFlags, StatsFlags};
pub(crate) use hunting::{HuntFlags, HuntOutput, WritesSee};
pub(crate) use installing::{CompletionsFlags, ManFlags};
pub(crate) use limits::{BoundFlags, LimitFlags};
pub(crate) use opinions::{CertifyFlags, DiffFlags, SmtFlags};
pub(crate) use outputs::{ExplainOutput, LevelsOutput, ListOutput, Output};
pub(crate) use question::{Assumption, LevelFlags, PolicyFlags, ReadingFlags, RequireFlags, Ryow};
pub(crate) use recording::{GenerateFlags, RunFlags, WorkloadFlags};
pub(crate) use values::LevelName;
pub(crate) use watch::WatchFlags;
#[cfg(feature = "cluster")]
pub(crate) use workers::Whose;
pub(crate) use workers::{Axis, CrewFlags, SplitFlags, WorkerFlags};

use clap::{Parser, Subcommand};
use numbers::count;
use values::{bytes, seconds};

/// Checks whether a database keeps its isolation promises.
///
/// A history records what clients sent in each transaction and what came back. Taipan tells you whether the database
/// could have produced it at the isolation level it claims, with evidence: a serial order that explains every result, or
/// a minimal set of transactions that no order explains.
#[derive(Debug, Parser)]
#[command(name = "taipan", version, subcommand_required = true, arg_required_else_help = true)]
#[command(after_help = "\
Exit status: 0 accepted, 1 violated, 2 undecided, 3 usage or input error.

`taipan help COMMAND` shows all options of a command, with examples.")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,

    /// Color text: auto, always or never
    ///
    /// `auto` colors on a terminal, unless NO_COLOR is set.
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        default_value = "auto",
        hide_possible_values = true,
        help_heading = "Global options"
    )]
    pub(crate) color: Color,

    /// Hide progress on stderr
    #[arg(short, long, global = true, help_heading = "Global options")]
    pub(crate) quiet: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Demo(DemoFlags),
    Check(CheckFlags),
    Explain(ExplainFlags),
    Diff(DiffFlags),
    Elle(ElleFlags),
    Certify(CertifyFlags),
    Smt(SmtFlags),
    Run(Box<RunFlags>),
    Matrix(MatrixFlags),
    Hunt(Box<HuntFlags>),
    Watch(Box<WatchFlags>),
    Convert(ConvertFlags),
    Split(SplitFlags),
    Stats(StatsFlags),
    Generate(GenerateFlags),
    Levels(LevelsFlags),
    Completions(CompletionsFlags),
    Man(ManFlags),
    /// What a run does in a process of its own, so that nothing of it stays in a database if it is killed
    #[command(name = crate::sweeper::COMMAND, hide = true)]
    Sweep,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    /// Lines of a terminal that help is written for.
    const LINES_MAX: usize = 50;
    const COLUMNS_MAX: usize = 80;

    #[test]
    fn the_flags_fit_together() {
        Cli::command().debug_assert();
    }

    #[test]
    fn short_help_fits_on_a_screen() {
        let mut cli = Cli::command();
        // With the global options.
        cli.build();
        for command in cli.get_subcommands() {
            let help = command.clone().term_width(COLUMNS_MAX).render_help().to_string();
            let lines = help.lines().count();
            assert!(lines <= LINES_MAX, "taipan {} -h has {lines} lines:\n{help}", command.get_name());
        }
    }

    /// A wrapped example reads as two commands.
    #[test]
    fn examples_do_not_wrap() {
        for command in Cli::command().get_subcommands() {
            for text in [command.get_after_help(), command.get_after_long_help()].into_iter().flatten() {
                for line in text.to_string().lines() {
                    let width = line.chars().count();
                    assert!(width <= COLUMNS_MAX, "taipan {}: {width} columns: {line}", command.get_name());
                }
            }
        }
    }

    #[test]
    fn completions_know_the_values() {
        let mut script = Vec::new();
        clap_complete::generate(clap_complete::Shell::Bash, &mut Cli::command(), "taipan", &mut script);
        let script = String::from_utf8(script).expect("a script is text");
        for value in [
            "strong-session-snapshot-isolation",
            "list-append",
            "write-skew",
            "elle-edn",
            "mariadb",
            "kill-server@",
            "postgres:temp",
            "equal-update=",
        ] {
            assert!(script.contains(value), "{value}");
        }
    }
}
