//! Every rendering of a verdict. Nothing here decides anything.
//!
//! The nouns:
//!
//! * [`Finding`] — what is told of one check of one file at one level: names resolved, sentences made,
//!   independent of the history it came from. Every rendering is a function of findings.
//! * [`Step`] — one edge of the argument with its sentence; inferred edges carry the steps they follow from.
//! * [`Palette`] — how text is coloured, if it is.
//!
//! The path of a verdict: `phrase` puts values and operations into words, `argue` edges into sentences,
//! `finding` collects both; `text` and `json` render.

mod argue;
mod finding;
mod json;
mod phrase;
mod shorten;
mod text;

pub use finding::{Cost, Finding, Member, Named, Size, Step};
pub use json::json_line;
pub use phrase::{operation, predicate};
pub use text::{Palette, text};
