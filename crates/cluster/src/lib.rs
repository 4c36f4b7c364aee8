//! The same checks on Timely Dataflow: several workers, several processes, the same verdicts.
//!
//! The nouns:
//!
//! * [`Setup`] — who works: threads of this process, and other processes over TCP.
//! * [`Greeting`] — what processes must agree on before they work together.
//! * [`Job`] — what is checked: files or folders of shards, a level, options.
//! * [`Answer`] — the outcome with the history that its argument speaks of, at process 0; the verdict everywhere.
//!
//! ```text
//!   stretches of files, dealt to workers
//!        │ read, digest (INT)
//!        ├──── digests ──────── exchange by key ─────> replay up to the frontier (EXT, NOCONFLICT) ──┐
//!        └──── ends ─────────── exchange by session ─> neighbours (SESSION) ────────────────────────┤
//!                                                                                                   v
//!   no suspects: accepted.   else their transactions ── gather at worker 0 ──> the usual check, the usual argument
//! ```
//!
//! While transactions arrive ([`hire`]), each worker has the online checker of its keys, and the watermark passes everywhere at
//! the same logical time.
//!
//! By results, read committed, read atomic and causal are accepted by all workers together (`clocks`): reads are joined with
//! writers by key, session clocks computed by column, obligations found by key. At other levels independent components of
//! sessions and keys are placed on workers and decided there (`components`), a single one by a single worker.
//!
//! Distribution only ever accepts: what it does not settle is gathered and decided by the code that decides everything
//! else, so no verdict and no argument depends on how many worked on it, or on who read what. Messages, their order and
//! the end of a run are Timely's ([McSherry et al., Naiad, SOSP 2013]); beyond the greeting there is no protocol of our own.

mod clocks;
mod components;
mod exchange;
mod gather;
mod greeting;
mod ids;
mod job;
mod monitor;
mod online;
mod setup;
mod source;
pub mod spread;
mod timestamps;

pub use greeting::Greeting;
pub use job::{Answer, Found, Job, check};
pub use monitor::{Monitor, Standing};
pub use online::{Gone, Hands, hire, serve};
pub use setup::{Cluster, Failure, Lost, Setup, hosts};
pub use source::{Share, files_of, level_in_header};
