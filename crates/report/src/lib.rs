//! Every rendering of a verdict. Nothing here decides anything.
//!
//! The nouns:
//!
//! * [`Finding`] — what is reported about one check of one file at one level: names resolved, sentences made,
//!   independent of the history it came from. Every rendering is a function of findings.
//! * [`Step`] — one edge of the argument with its sentence; inferred edges carry the steps they follow from.
//! * [`Overview`] — a whole history in a few thousand numbers, for the page.
//! * [`Palette`] — how text is coloured, if it is.
//! * [`printable`] — a name without what would act on a terminal; every rendering for people shows names so.
//!
//! The path of a verdict: `phrase` puts values and operations into words, `argue` edges into sentences,
//! `finding` collects both; `text` and `json` render one finding, `junit`, `sarif`, `markdown` and `html` everything a run
//! has to tell ([`Told`]); `svg` and `graphs` draw the core, `lattice` the levels.

mod anomalies;
mod argue;
mod book;
mod context;
mod difference;
mod effects;
mod elle;
mod escape;
mod finding;
mod fingerprint;
mod graphs;
mod html;
mod json;
mod junit;
mod labels;
mod lanes;
mod lattice;
mod layout;
mod levels;
mod markdown;
mod matrix;
mod overview;
mod part;
mod phrase;
mod picture;
mod printable;
mod sarif;
mod shorten;
mod stats;
mod strip;
mod svg;
mod text;
mod timestamps;
mod told;

pub use anomalies::{ANOMALIES, About, AnomalyRow, Asked, UnknownAnomaly, anomaly};
pub use book::{Page, pages};
pub use difference::{Difference, Run, difference};
pub use elle::ElleResult;
pub use escape::escape;
pub use finding::{Case, Cases, Cost, Finding, Listed, Member, Named, Place, Search, Size, Step};
pub use graphs::{dot, mermaid};
pub use html::html;
pub use json::{json_line, trouble_line};
pub use junit::junit;
pub use lattice::{lattice, lattice_page};
pub use levels::{levels_details, levels_lines, levels_list};
pub use markdown::markdown;
pub use matrix::{Matrix, MatrixCell, MatrixLevel, MatrixRow};
pub use overview::{Overview, Remark};
pub use part::{Alternative, Part};
pub use phrase::{operation, predicate};
pub use printable::{printable, printable_lines};
pub use sarif::sarif;
pub use stats::{stats_line, stats_text};
pub use svg::svg;
pub use text::{Detail, Palette, summary_text, survey_text, text};
pub use timestamps::{Comparison, Violation};
pub use told::{Surveyed, Tally, Told, Trouble};
