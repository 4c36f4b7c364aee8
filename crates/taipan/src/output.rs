//! Findings on their way out: some forms are printed one by one, others when all are known.

use crate::baseline::Baseline;
use crate::console::{Console, Progress, Stop};
use crate::flags::Output;
use history::History;
use report::{Detail, Finding, Overview, Remark};
use std::io::Write;
use std::path::PathBuf;

/// How many violations of a page are looked at more closely.
const PARTS_MAX: usize = 20;

/// Takes findings in the order given and prints them.
pub(crate) struct Sink {
    output: Output,
    baseline: Option<Baseline>,
    remarks: Vec<Remark>,
    page: Option<PathBuf>,
    told: report::Told,
}

impl Sink {
    /// Prints in this form; a page is also written into a file if one is named.
    pub(crate) fn new(output: Output, page: Option<PathBuf>) -> Self {
        Self { output, baseline: None, remarks: Vec::new(), page, told: report::Told::default() }
    }

    /// The same; what the baseline holds is known.
    pub(crate) fn against(self, baseline: Option<Baseline>) -> Self {
        Self { baseline, ..self }
    }

    /// The same; on a page these remarks are beside every history.
    pub(crate) fn remarked(self, remarks: Vec<Remark>) -> Self {
        Self { remarks, ..self }
    }

    /// Whether all that is wrong in a finding is known from before.
    pub(crate) fn knows(&mut self, finding: &Finding) -> bool {
        self.baseline.as_mut().is_some_and(|baseline| baseline.knows(finding))
    }

    /// Whether what comes out shows the smallest violated parts: a page does, of the first few.
    pub(crate) fn wants_parts(&self) -> bool {
        let shown = self.told.findings.iter().filter(|finding| finding.part.is_some()).count();
        (self.page.is_some() || self.output == Output::Html) && shown < PARTS_MAX
    }

    /// A finding.
    pub(crate) fn finding(
        &mut self,
        finding: Finding,
        console: &mut Console,
        progress: &Progress,
    ) -> Result<(), Stop> {
        // What is printed does not depend on whether a page is written, too.
        let printed = Finding { part: None, ..finding.clone() };
        self.shown(printed, finding, console, progress)
    }

    /// A finding that a page shows differently from what is printed.
    pub(crate) fn shown(
        &mut self,
        printed: Finding,
        on_page: Finding,
        console: &mut Console,
        progress: &Progress,
    ) -> Result<(), Stop> {
        let palette = console.palette();
        progress.pause(|| {
            match self.output {
                Output::Text => write!(console.out(), "{}", report::text(&printed, Detail::Brief, palette))?,
                Output::Json => writeln!(console.out(), "{}", report::json_line(&printed))?,
                Output::Junit | Output::Sarif | Output::Markdown | Output::Html => {}
            }
            // Whoever reads along sees each answer when it is known.
            console.out().flush()
        })?;
        if self.page.is_some() || !matches!(self.output, Output::Text | Output::Json) {
            self.told.findings.push(on_page);
        }
        Ok(())
    }

    /// A whole history, of which a page shows an overview.
    pub(crate) fn history(&mut self, file: &str, history: &History) {
        if self.page.is_some() || self.output == Output::Html {
            self.told.overviews.push(Overview::of(file, history, &self.remarks));
        }
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
            Output::Markdown => write!(out, "{}", report::markdown(&self.told))?,
            Output::Html => writeln!(out, "{}", report::html(&self.told))?,
        }
        for gone in self.baseline.iter().flat_map(Baseline::gone) {
            console.note(format_args!("in the baseline but not found: {gone}"));
        }
        self.write_page()?;
        if let Some(page) = &self.page {
            console.note(format_args!("wrote the report to {}", page.display()));
        }
        Ok(())
    }

    /// Writes the page, if one was asked for.
    pub(crate) fn write_page(&self) -> Result<(), Stop> {
        let Some(page) = &self.page else { return Ok(()) };
        std::fs::write(page, report::html(&self.told))
            .map_err(|error| Stop::Error(format!("{}: cannot be written: {error}", page.display())))
    }
}
