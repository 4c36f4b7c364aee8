//! `taipan explain`: one history, the argument in full.

use crate::checking::{Checking, checker};
use crate::console::{Console, Outcome, Stop};
use crate::exit::Exit;
use crate::flags::{ExplainFlags, ExplainOutput};
use crate::input::left_out;
use crate::names::Names;
use checker::Reduced;
use history::formats::{Format, write_path, write_string};
use report::{About, AnomalyRow, Detail, Finding, Overview, Size, Told};
use std::io::Write;
use std::path::Path;
use taipan::Policy;

pub(crate) fn run(flags: &ExplainFlags, console: &mut Console) -> Outcome {
    if let Some(name) = &flags.anomaly {
        return page(name, console);
    }
    let Some(file) = &flags.file else { return Err(Stop::Error("no history given".to_owned())) };
    let is_about_part = matches!(flags.output, ExplainOutput::Notation | ExplainOutput::Jsonl);
    if !flags.save.is_empty() && flags.levels.level.len() > 1 {
        return Err(Stop::Error("--save needs exactly one --level".to_owned()));
    }
    let targets: Vec<(&Path, Format)> = flags
        .save
        .iter()
        .map(|out| {
            let name = out.file_name().unwrap_or_default().to_string_lossy();
            let format = Format::from_file_name(&name).ok_or_else(|| {
                format!(
                    "cannot infer the format of {} from its name: use .jsonl, .hist or .tph",
                    out.display()
                )
            })?;
            Ok((out.as_path(), format))
        })
        .collect::<Result<_, String>>()?;
    let remarks = match &flags.remarks {
        Some(path) => super::check::read_remarks(path)?,
        None => Vec::new(),
    };
    let mut parts = Vec::new();
    let names = Names::new(flags.levels_file.as_deref(), flags.policy.profile)?;
    let levels = names.levels(&flags.levels.level, "--level <LEVEL>")?;
    let policy = Policy { by: flags.by.unwrap_or_default().into(), ..flags.policy.policy(&names) };
    let checker = checker(policy, &flags.limits)?;
    let checking = Checking::new(checker, names, flags.reading.options()).at(&levels)?;
    checking.say_meanings(&flags.levels.level, console)?;
    let mut exit = Exit::Accepted;
    let mut told = Told::default();
    {
        let progress = console.progress(1);
        progress.say(format_args!("reading {}", file.display()));
        match checking.open(file) {
            Err(failure) => {
                told.findings = checking.undecided(failure)?;
                exit = Exit::Undecided;
            }
            Ok(opened) => {
                if let Some(warning) = left_out(&opened.warnings) {
                    progress.pause(|| console.note(warning));
                }
                let claims = checking.claims(&opened)?;
                if flags.output == ExplainOutput::Html {
                    let subject = claims.first().map_or(&opened.history, |claim| opened.subject(claim));
                    told.overviews.push(Overview::of(&opened.name, subject, &remarks));
                }
                for claim in claims {
                    progress.say(format_args!("{}: {claim}", opened.name));
                    let checked = checking.check(&opened, claim)?;
                    exit = exit.and(Exit::of(checked.verdict.kind()));
                    progress.say(format_args!("{}: {claim}: reducing", opened.name));
                    let closer = checking.look_closer(&opened, &checked)?;
                    let (reduced, shown) = closer.unzip();
                    told.findings.push(match (&reduced, shown) {
                        (Some(reduced), Some(part)) => {
                            checked.finding.retold(opened.subject(&claim), reduced).with_part(part)
                        }
                        _ => checked.finding,
                    });
                    parts.push(Part { reduced, whole: Size::of(&opened.history) });
                }
            }
        }
    }
    if is_about_part || !targets.is_empty() {
        for (part, finding) in parts.iter().zip(&told.findings) {
            part.save(&targets, finding, console)?;
        }
    }
    match flags.output {
        ExplainOutput::Notation => print_parts(&parts, Format::Notation, console)?,
        ExplainOutput::Jsonl => print_parts(&parts, Format::Jsonl, console)?,
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
            finding.file, finding.claim, finding.verdict
        ));
        return Ok(());
    }
    let palette = console.palette();
    let out = console.out();
    match output {
        ExplainOutput::Text | ExplainOutput::Html => {
            write!(out, "{}", report::text(finding, Detail::Full, palette))?
        }
        ExplainOutput::Json => writeln!(out, "{}", report::json_line(finding))?,
        ExplainOutput::Svg => writeln!(out, "{}", report::svg(finding))?,
        ExplainOutput::Dot => write!(out, "{}", report::dot(finding))?,
        ExplainOutput::Mermaid => write!(out, "{}", report::mermaid(finding))?,
        ExplainOutput::Notation | ExplainOutput::Jsonl => {}
    }
    Ok(())
}

/// What is left of a violated history, if anything violated was found.
struct Part {
    reduced: Option<Reduced>,
    whole: Size,
}

impl Part {
    fn save(
        &self,
        targets: &[(&Path, Format)],
        finding: &Finding,
        console: &mut Console,
    ) -> Result<(), Stop> {
        let Finding { file, claim, verdict, .. } = finding;
        let Some(reduced) = &self.reduced else {
            let why = match finding.anomaly {
                Some(_) => "timed out before a smaller violating history was found",
                None => "nothing is violated",
            };
            console.note(format_args!("{file}: {claim}: {verdict}: {why}"));
            return Ok(());
        };
        let Size { transactions, operations, .. } = Size::of(&reduced.history);
        let open = if reduced.is_minimal { "" } else { "; timed out, so it may not be minimal" };
        for (path, format) in targets {
            write_path(&reduced.history, *format, path).map_err(|error| Stop::Error(error.to_string()))?;
            console.note(format_args!(
                "{}: {transactions} of {} transactions, {operations} of {} operations, still violated{open}",
                path.display(),
                self.whole.transactions,
                self.whole.operations
            ));
        }
        Ok(())
    }
}

fn print_parts(parts: &[Part], format: Format, console: &mut Console) -> Result<(), Stop> {
    for reduced in parts.iter().filter_map(|part| part.reduced.as_ref()) {
        let text = write_string(&reduced.history, format).map_err(|error| Stop::Error(error.to_string()))?;
        write!(console.out(), "{text}")?;
    }
    Ok(())
}

/// The book's page on an anomaly, or what it is in a sentence.
fn page(name: &str, console: &mut Console) -> Outcome {
    let asked = report::anomaly(name).map_err(|unknown| Stop::Error(unknown.to_string()))?;
    let out = console.out();
    match asked.row.about {
        About::Page(_) => writeln!(out, "{}", asked.row.page().map_or("", |page| page.text))?,
        About::Sentence(sentence) => {
            writeln!(out, "# {}: {}\n\n{sentence}\n", asked.row.title(), asked.row.name)?
        }
    }
    if let Some(order) = asked.order {
        writeln!(out, "{name}: the same where the argument needs {order}.")?;
    }
    writeln!(out, "Names: {}.", names(asked.row).join(", "))?;
    let kin: Vec<&str> = asked.row.kin().iter().map(|row| row.common).collect();
    if !kin.is_empty() {
        writeln!(out, "Also {}: {}.", asked.row.name, kin.join(", "))?;
    }
    Ok(Exit::Accepted)
}

/// The names of an anomaly, each once.
fn names(row: &AnomalyRow) -> Vec<&'static str> {
    let mut names: Vec<&'static str> = Vec::new();
    for name in row.names() {
        if !names.iter().any(|known| known.replace(['-', ' '], "") == name.replace(['-', ' '], "")) {
            names.push(name);
        }
    }
    names
}
