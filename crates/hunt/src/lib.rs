//! Finds transactional bugs in SQL engines.
//!
//! The idea is that of TxCheck (Jiang, Liu, Rigger and Su, *Detecting Transactional Bugs in Database Engines via
//! Graph-Based Oracle Construction*, OSDI 2023): generate interleaved transactions, find out which statement depends on
//! which, execute the statements in another order that keeps the dependencies and without transactions, and compare.
//!
//! The nouns:
//!
//! * [`Plan`] — a test case as trees: schema, rows, transactions. [`generate`](generate()) makes one from a seed.
//! * [`Case`] — the same as texts with instrumentation around every statement; what is executed and kept in files.
//! * [`Run`] — what an execution showed; [`Graph`] — which statement depends on which.
//! * [`examine`](examine()) — one case from end to end; a [`Finding`] is what is wrong.
//! * [`campaign`](campaign()) — case after case; findings are reduced and grouped, each with a file that replays it.
//!
//! This crate knows no vendor: grammars and sights are rows of the `databases` crate.

mod campaign;
pub mod case;
mod compare;
mod examine;
mod execute;
mod features;
mod generate;
mod graph;
mod isolation;
mod oracle;
mod order;
mod plan;
mod print;
mod reduce;
mod report;
pub mod script;
mod sessions;
pub mod tree;

pub use campaign::{CampaignOptions, Discovery, Group, Summary, campaign, levels};
pub use case::Case;
pub use compare::{same, show};
pub use examine::{Examination, Examined, Finding, Tally, examine};
pub use execute::{Alone, Fate, Observed, Run, Stage, Trouble};
pub use features::{FEATURES, features};
pub use generate::{Choice, Settings, Weights, generate, leftovers};
pub use graph::{Dependency, Graph, Node};
pub use isolation::{Broken, broken, history};
pub use oracle::{Difference, Place, check, check_order, compare};
pub use order::{cycles, topological};
pub use plan::{IndexPlan, Plan, PlanAct, PlanStep, TablePlan, ViewPlan};
pub use print::Printer;
pub use reduce::Reducer;
pub use report::{describe, last_words};
pub use sessions::Rows;
