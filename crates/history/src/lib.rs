//! What clients of a database saw.
//!
//! Three nouns carry the crate:
//!
//! * [`History`] — transactions and operations in columns of small integers. Immutable once built,
//!   cheap to walk, never allocating while it is walked.
//! * [`Builder`] — the only way to make a history. It interns keys and values, and refuses what no
//!   client can have seen (a begin after its end, two transactions of one name).
//! * [`Transaction`] and [`Operation`] — borrowed views of one row.
//!
//! Keys, values and session names are interned once, here, at the border. Everywhere else in the
//! project a key is a [`KeyId`], a value a [`ValueId`]: no strings, no hashing.
//!
//! This crate knows nothing of isolation levels and never touches the network.

mod builder;
mod clocks;
mod column;
pub mod formats;
mod id_set;
mod ids;
mod integers;
mod interrupt;
mod model;
mod names;
mod predicate;
mod primitive;
mod room;
mod slots;
pub mod suggest;
mod summary;
mod values;

pub use builder::{BuildError, Builder, Copier};
pub use column::Column;
pub use id_set::{IdSet, Known, counter_of, hash_of, with_name};
pub use ids::{ColumnId, Id, KeyId, OpId, SessionId, TxnId, ValueId};
pub use interrupt::Interrupt;
pub use model::{
    Footprint, History, Lock, Operation, Operations, Point, PointKind, Range, Row, Span, Status, Timestamp,
    Transaction,
};
pub use names::{Name, NameRef, Names};
pub use predicate::{Comparison, Predicate};
pub use primitive::{Area, Primitive, Test, WriteIf};
pub use summary::{Spread, Summary};
pub use values::{Cell, ValueRef, Values};
