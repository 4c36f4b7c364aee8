//! Files checked within limits, as the program `taipan` does it: read, check, measure, look closer.
//!
//! The nouns:
//!
//! * [`Checker`] — how files are checked: what is assumed, within which limits, how the answer is looked for.
//! * [`Limits`] and [`Guard`] — on time and memory; what passes them is undecided, never an error.
//! * [`Opened`] — a history that was read, and what the levels asked of it share.
//! * [`Checked`] — a verdict with what is reported about it.
//!
//! ```
//! use taipan::files::{Checker, Limits};
//! # let folder = std::env::temp_dir().join(format!("taipan-files-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder).expect("a folder");
//! # let path = folder.join("h.hist");
//! # std::fs::write(&path, "s1: r(x,_) w(x,1)\ns2: r(x,_) w(x,2)\n").expect("a file");
//! # fn check(path: &std::path::Path) -> Result<(), taipan::Error> {
//! let limits = Limits { time: Some(std::time::Duration::from_secs(60)), memory: None };
//! let checker = Checker { limits, ..Checker::default() };
//! let opened = checker.open(path, &Default::default())?;
//! for claim in checker.claims(&[], &opened)? {
//!     let checked = checker.check(&opened, claim)?;
//!     println!("{}: {claim}: {}", opened.name, checked.verdict.kind());
//! #   assert!(checked.verdict.kind() == taipan::VerdictKind::Violated);
//! }
//! # Ok(())
//! # }
//! # check(&path).expect("a history");
//! # std::fs::remove_dir_all(&folder).expect("the folder is there");
//! ```

mod all_levels;
mod checker;
mod closer;
mod in_parts;
mod limits;
mod opened;
mod patient;
mod reading;
mod required;

#[doc(inline)]
pub use history::formats::{Loaded, ReadOptions};
#[doc(inline)]
pub use report::{Cost, Finding};

pub use crate::ended::Ended;
pub use all_levels::AllLevels;
pub use checker::{Checked, Checker};
pub use limits::{Guard, Limits, peak_bytes, resident_bytes};
pub use opened::Opened;
pub use patient::Patient;
pub use reading::{is_standard_stream, lacking_orders, read, read_until};
pub use required::{BadRequirement, Requirement};

use std::time::Duration;

/// What reading and checking cost, with the most memory that the process has had.
pub fn cost(read: Duration, check: Duration) -> Cost {
    let milliseconds = |time: Duration| time.as_secs_f64() * 1000.0;
    Cost { read_ms: milliseconds(read), check_ms: milliseconds(check), peak_rss_bytes: peak_bytes() }
}
