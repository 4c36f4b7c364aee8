//! The step that every replay is made of: what one transaction does to one key, on top of what its snapshot holds there.
//!
//! **What.** [`Local`] is what a transaction has seen of a key and written to it so far. It takes the transaction's
//! operations in the order issued, each with what the snapshot holds for the key where that matters, and says which
//! results are wrong ([`Misfit`]). The rules are those of INT and EXT (Chronos and Aion, Li et al., ICDE 2025, §II-B).
//!
//! ```text
//!                                   Local: one key of one transaction
//!   batch      ranks, values of one history ──┐
//!   online     moments, values of their own ──┼──>  read, row, find, write, append  ──>  Misfit
//!   stream, shards, arrivals: Deeds ──────────┘     (first look and last write alone, no snapshot needed)
//! ```
//!
//! **Feeders** differ in where a snapshot comes from and in how values are kept ([`Representation`]): the ids of one history
//! ([`Interned`]) or values that outlive it ([`Standalone`]). Where transactions only read and write single keys, [`Deeds`]
//! takes them apart before any snapshot is known: what is left is one look and one write for each key.

mod deeds;
mod local;
mod representation;

pub(super) use deeds::Deeds;
pub(super) use local::{Local, Matched, Misfit, Read, Rules, Wrote};
pub(super) use representation::{Interned, Look, Standalone};
