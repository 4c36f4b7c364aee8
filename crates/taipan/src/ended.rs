//! A file whose reading was ended by a limit.

use report::{Cost, Size};

/// A file whose reading was ended by a limit.
#[derive(Clone, Debug)]
pub struct Ended {
    /// The file, as findings name it.
    pub name: String,
    /// Which limit, and how much was read.
    pub reason: String,
    /// The level in its header.
    pub(crate) level: Option<String>,
    pub(crate) size: Size,
    pub(crate) cost: Cost,
}
