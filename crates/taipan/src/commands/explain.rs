//! `taipan explain`: one history, the argument in full.

use crate::checking::{Checking, Order, Unopened};
use crate::console::{Console, Outcome, Stop};
use crate::exit::Exit;
use crate::flags::{By, ExplainFlags, ExplainOutput};
use report::{Finding, Told};
use std::io::Write;

pub(crate) fn run(flags: &ExplainFlags, console: &mut Console) -> Outcome {
    let checking = Checking::new(&flags.policy, &flags.limits).map_err(Stop::Error)?;
    let checking = checking.ordered(match flags.by {
        Some(By::Timestamps) => Order::Timestamps,
        Some(By::Results) => Order::Results,
        None => Order::Whatever,
    });
    let mut exit = Exit::Accepted;
    let mut told = Told::default();
    {
        let progress = console.progress(1);
        progress.say(format_args!("reading {}", flags.file.display()));
        match checking.open(&flags.file, &flags.reading) {
            Err(Unopened::Trouble(message)) => return Err(Stop::Error(message)),
            Err(Unopened::Ended(ended)) => {
                exit = Exit::Undecided;
                told.findings = checking.undecided(&flags.levels.level, &ended).map_err(Stop::Error)?;
            }
            Ok(opened) => {
                if let Some(warning) = &opened.warning {
                    progress.pause(|| console.note(warning));
                }
                for level in checking.levels(&flags.levels.level, &opened).map_err(Stop::Error)? {
                    progress.say(format_args!("{}: {level}", opened.name));
                    let checked = checking.check(&opened, level).map_err(Stop::Error)?;
                    exit = exit.and(checked.exit());
                    told.findings.push(checked.finding);
                }
            }
        }
    }
    match flags.output {
        ExplainOutput::Html => writeln!(console.out(), "{}", report::html(&told))?,
        output => {
            for finding in &told.findings {
                print(finding, output, console)?;
            }
        }
    }
    Ok(exit)
}

fn print(finding: &Finding, output: ExplainOutput, console: &mut Console) -> Result<(), Stop> {
    let draws = matches!(output, ExplainOutput::Svg | ExplainOutput::Dot | ExplainOutput::Mermaid);
    if draws && finding.anomaly.is_none() {
        console.note(format_args!(
            "{}: {}: {}: there is nothing to draw",
            finding.file, finding.level, finding.verdict
        ));
        return Ok(());
    }
    let palette = console.palette();
    let out = console.out();
    match output {
        ExplainOutput::Text | ExplainOutput::Html => write!(out, "{}", report::text(finding, palette))?,
        ExplainOutput::Json => writeln!(out, "{}", report::json_line(finding))?,
        ExplainOutput::Svg => writeln!(out, "{}", report::svg(finding))?,
        ExplainOutput::Dot => write!(out, "{}", report::dot(finding))?,
        ExplainOutput::Mermaid => write!(out, "{}", report::mermaid(finding))?,
    }
    Ok(())
}
