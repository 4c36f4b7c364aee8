//! Verdicts with evidence: why a history has no explanation, in as few transactions as can be.
//!
//! The nouns:
//!
//! * [`check()`] — decides by the engine that the options ask for, and gives a violation its [`Evidence`](isolation::Evidence): a core that
//!   is shrunk by deciding parts of it again, an argument edge by edge, a name.
//! * [`Reduced`] — a smallest history that is still violated, for bug reports.
//! * [`Closer`] — what falls with a violated level, and the results that would have been allowed ([`Instead`]).
//! * [`Inventory`] — the kinds of anomaly in a history; [`survey()`] asks for all levels at once.
//!
//! ```
//! use history::formats::notation;
//! use isolation::{Level, Options, Verdict};
//!
//! let history = notation::parse("s1: r(x,_) w(x,1)\ns2: r(x,_) w(x,2)\n")?;
//! let outcome = taipan_evidence::check(&history, Level::SERIALIZABLE, &Options::default());
//! let Verdict::Violated(evidence) = outcome.verdict else { panic!("an update is lost") };
//! assert_eq!(evidence.anomaly.name, "lost-update");
//! # Ok::<(), history::formats::Fault>(())
//! ```

mod back;
mod check;
mod closer;
mod crowd;
mod explain;
mod fragment;
mod instead;
mod inventory;
mod naming;
mod prove;
mod reduce;
mod shown;
mod shrink;
mod simpler;
mod survey;

pub use check::{check, check_sharing};
pub use closer::{Closer, allowed, look_closer};
pub use crowd::Crowd;
pub use fragment::Fragment;
pub use instead::{Instead, instead};
pub use inventory::{Inventory, Kind, ROUNDS_MAX, inventory};
pub use prove::add_proof;
pub use reduce::{Reduced, reduce};
pub use survey::{Survey, survey};
