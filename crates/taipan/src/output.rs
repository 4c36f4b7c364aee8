//! Findings on their way out: some forms are printed one by one, others when all are known.

use crate::console::{Console, Progress, Stop};
use crate::flags::Output;
use report::Finding;
use std::io::Write;
use std::path::PathBuf;

/// Takes findings in the order given and prints them.
pub(crate) struct Sink {
    output: Output,
    page: Option<PathBuf>,
    told: report::Told,
}

impl Sink {
    /// Prints in this form; a page is also written into a file if one is named.
    pub(crate) fn new(output: Output, page: Option<PathBuf>) -> Self {
        Self { output, page, told: report::Told::default() }
    }

    /// A finding.
    pub(crate) fn finding(
        &mut self,
        finding: Finding,
        console: &mut Console,
        progress: &Progress,
    ) -> Result<(), Stop> {
        let palette = console.palette();
        progress.pause(|| {
            match self.output {
                Output::Text => write!(console.out(), "{}", report::text(&finding, palette))?,
                Output::Json => writeln!(console.out(), "{}", report::json_line(&finding))?,
                Output::Junit | Output::Sarif | Output::Html => {}
            }
            // Whoever reads along sees each answer when it is known.
            console.out().flush()
        })?;
        if self.page.is_some() || !matches!(self.output, Output::Text | Output::Json) {
            self.told.findings.push(finding);
        }
        Ok(())
    }

    /// What all levels of a file come to.
    pub(crate) fn survey(
        &mut self,
        surveyed: report::Surveyed,
        console: &mut Console,
        progress: &Progress,
    ) -> Result<(), Stop> {
        if self.output == Output::Text {
            let palette = console.palette();
            progress.pause(|| write!(console.out(), "{}", report::survey_text(&surveyed, palette)))?;
        }
        self.told.surveys.push(surveyed);
        Ok(())
    }

    /// A finding that follows from another: only programs want each of them.
    pub(crate) fn follows(&mut self, finding: &Finding, console: &mut Console) -> Result<(), Stop> {
        if self.output == Output::Json {
            writeln!(console.out(), "{}", report::json_line(finding))?;
        }
        Ok(())
    }

    /// A file that could not be checked.
    pub(crate) fn trouble(
        &mut self,
        file: &str,
        message: String,
        console: &mut Console,
        progress: &Progress,
    ) {
        progress.pause(|| console.error(&message));
        self.told.troubles.push(report::Trouble { file: file.to_owned(), message });
    }

    /// Prints what had to wait for the end.
    pub(crate) fn finish(self, console: &mut Console) -> Result<(), Stop> {
        let out = console.out();
        match self.output {
            Output::Text | Output::Json => {}
            Output::Junit => writeln!(out, "{}", report::junit(&self.told))?,
            Output::Sarif => writeln!(out, "{}", report::sarif(&self.told))?,
            Output::Html => writeln!(out, "{}", report::html(&self.told))?,
        }
        if let Some(page) = self.page {
            std::fs::write(&page, report::html(&self.told))
                .map_err(|error| Stop::Error(format!("{}: cannot be written: {error}", page.display())))?;
            console.note(format_args!("the report is in {}", page.display()));
        }
        Ok(())
    }
}
