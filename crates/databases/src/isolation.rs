//! Every vendor's isolation levels: what they are called, how they are asked for, and which level of
//! the checker their documentation promises. Strongest last. Nothing here is matched on: names are data.

/// One isolation level of a vendor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Isolation {
    /// The vendor's name, in lower case with dashes.
    pub name: &'static str,
    /// The way it is asked for, in the vendor's language.
    pub ask: &'static str,
    /// The level the vendor documents it to keep, by the checker's name.
    pub promises: &'static str,
}

const fn row(name: &'static str, ask: &'static str, promises: &'static str) -> Isolation {
    Isolation { name, ask, promises }
}

/// SQLite has one level. An immediate transaction is the writer from its start; a deferred one takes its
/// snapshot at its first statement and becomes the writer at its first write, if nobody wrote since.
pub(crate) const SQLITE: [Isolation; 2] = [
    row("immediate", "BEGIN IMMEDIATE", "serializable"),
    row("serializable", "BEGIN DEFERRED", "serializable"),
];
