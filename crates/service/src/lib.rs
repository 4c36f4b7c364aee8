//! The online checker as a process: what arrives is written down, checked, and told.
//!
//! The nouns:
//!
//! * [`Batch`] — whole lines from one source, parsed on that source's thread, with whoever waits to hear that
//!   they are durable.
//! * [`Engine`] — the online checker with its journal, its checkpoints and its spill: a function of batches
//!   and moments, without threads or clocks of its own, so that tests can stop it at any step.
//! * [`Crew`] — those who have the keys, where one thread is not enough: the engine sends them pieces of transactions, and
//!   puts what they find into one order.
//! * [`Feed`] and [`Join`] — a database's change stream, and what puts it together with what clients saw.
//! * [`Service`] — the threads around it: sources, the engine's own, HTTP, the way out of findings.
//!
//! ```text
//!  stdin  TCP  unix  HTTP  broker        each on its own thread: read, cut into lines, parse
//!    \     |    |     |     /
//!     v    v    v     v    v
//!        intake   a bounded queue; a full one makes sources wait (back-pressure)
//!           |
//!        engine   journal → check → advance the watermark → findings, once the journal is on disk
//!           |  \
//!           |   syncer   brings the journal to disk, acknowledges
//!           |
//!   findings file, standard output, webhook, page, metrics
//! ```
//!
//! **Durability.** With a state folder nothing is acknowledged before it is in the journal on disk. A restart
//! loads the last checkpoint and replays the journal: the same batches and the same watermarks in the same
//! order, so the same findings with the same numbers. Those that went out are not reported again; the last ones before a crash
//! may be.

mod broker;
mod checking;
mod connections;
mod engine;
mod feed;
mod http;
mod intake;
mod journal;
mod lines;
mod outlet;
mod pace;
mod page;
mod run;
mod service;
mod sockets;
mod spill;
mod status;
mod store;
mod syncer;

pub use broker::BrokerAddress;
pub use checking::Crew;
pub use engine::{Engine, EngineOptions, Told};
pub use feed::{Feed, Join, Joiner, News, OpenFeed, Output};
pub use http::HttpOptions;
pub use intake::{Acknowledge, Batch, Intake, Place};
pub use journal::Synced;
pub use lines::{Lines, Parsed, parse};
pub use outlet::{Outlets, Webhook, finding_line};
pub use pace::Pace;
pub use service::{Ended, Options, Service, Source, Trouble};
pub use spill::Spill;
pub use status::{Delays, Sample, Status, WorkerStatus};
