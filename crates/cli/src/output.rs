//! Findings on their way out: some forms are printed one by one, others when all are known.

use crate::baseline::Baseline;
use crate::console::{Console, Progress, Stop};
use crate::flags::Output;
use history::History;
use report::{Detail, Finding, Overview, Remark, Tally, Trouble};
use std::io::Write;
use std::path::PathBuf;
use std::time::SystemTime;

/// How many violations of a page are looked at more closely.
const PARTS_MAX: usize = 20;

/// Takes findings in the order given and prints them.
pub(crate) struct Sink {
    output: Output,
    baseline: Option<Baseline>,
    remarks: Vec<Remark>,
    page: Option<PathBuf>,
    told: report::Told,
    /// The findings as a page shows them.
    on_page: Vec<Finding>,
    tally: Tally,
}

impl Sink {
    /// Prints in this form; a page is also written into a file if one is named.
    pub(crate) fn new(output: Output, page: Option<PathBuf>) -> Self {
        let told = report::Told { began: Some(SystemTime::now()), ..report::Told::default() };
        Self {
            output,
            baseline: None,
            remarks: Vec::new(),
            page,
            told,
            on_page: Vec::new(),
            tally: Tally::default(),
        }
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

    /// Whether what comes out says where in the file transactions stand.
    pub(crate) fn wants_lines(&self) -> bool {
        matches!(self.output, Output::Json | Output::Sarif)
    }

    /// Whether what comes out shows the smallest violated parts: a page does, of the first few.
    pub(crate) fn wants_parts(&self) -> bool {
        let shown = self.on_page.iter().filter(|finding| finding.part.is_some()).count();
        self.has_page() && shown < PARTS_MAX
    }

    /// A finding.
    pub(crate) fn finding(
        &mut self,
        finding: Finding,
        console: &mut Console,
        progress: &Progress,
    ) -> Result<(), Stop> {
        self.shown(finding.clone(), finding, console, progress)
    }

    /// A finding that a page shows differently from what is printed.
    pub(crate) fn shown(
        &mut self,
        printed: Finding,
        on_page: Finding,
        console: &mut Console,
        progress: &Progress,
    ) -> Result<(), Stop> {
        self.tally.add(&printed);
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
        if matches!(self.output, Output::Junit | Output::Sarif | Output::Markdown) {
            self.told.findings.push(printed);
        }
        if self.has_page() {
            self.on_page.push(on_page);
        }
        Ok(())
    }

    /// A whole history, of which a page shows an overview.
    pub(crate) fn history(&mut self, file: &str, history: &History) {
        if self.has_page() {
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
        trouble: Trouble,
        console: &mut Console,
        progress: &Progress,
    ) -> Result<(), Stop> {
        self.tally.add_trouble(&trouble);
        progress.pause(|| {
            console.error(&trouble.message);
            match self.output {
                Output::Json => writeln!(console.out(), "{}", report::trouble_line(&trouble)),
                _ => Ok(()),
            }
        })?;
        self.told.troubles.push(trouble);
        Ok(())
    }

    /// Prints what had to wait for the end.
    pub(crate) fn finish(self, console: &mut Console) -> Result<(), Stop> {
        let palette = console.palette();
        let out = console.out();
        match self.output {
            // All levels of a file are told together, and there is nothing to add up.
            Output::Text if self.tally.files() > 1 && self.told.surveys.is_empty() => {
                write!(out, "{}", report::summary_text(&self.tally, palette))?;
            }
            Output::Text | Output::Json => {}
            Output::Junit => writeln!(out, "{}", report::junit(&self.told))?,
            Output::Sarif => writeln!(out, "{}", report::sarif(&self.told))?,
            Output::Markdown => write!(out, "{}", report::markdown(&self.told))?,
            Output::Html => writeln!(out, "{}", self.rendered_page())?,
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

    fn has_page(&self) -> bool {
        self.page.is_some() || self.output == Output::Html
    }

    fn rendered_page(&self) -> String {
        report::html(&report::Told { findings: self.on_page.clone(), ..self.told.clone() })
    }

    /// Writes the page, if one was asked for.
    pub(crate) fn write_page(&self) -> Result<(), Stop> {
        let Some(page) = &self.page else { return Ok(()) };
        std::fs::write(page, self.rendered_page())
            .map_err(|error| Stop::Error(format!("{}: cannot be written: {error}", page.display())))
    }
}
