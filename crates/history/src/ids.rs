//! Typed ids: one newtype a thing, so that a transaction's number can never index keys.

use bytemuck::{Pod, Zeroable};

/// What every id can do: stand for a place in a [`crate::Column`].
pub trait Id: Copy + Eq + Ord + std::hash::Hash + std::fmt::Debug + Pod {
    /// The id of the `index`-th thing.
    fn new(index: usize) -> Self;
    /// The place this id stands for.
    fn index(self) -> usize;
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Pod, Zeroable)]
        #[repr(transparent)]
        pub struct $name(pub u32);

        impl Id for $name {
            #[inline]
            fn new(index: usize) -> Self {
                debug_assert!(index < u32::MAX as usize);
                Self(index as u32)
            }
            #[inline]
            fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }
    };
}

id!(
    /// A transaction, numbered in the order of the file.
    TxnId
);
id!(
    /// An operation, numbered in the order of the file; a transaction's operations are consecutive.
    OpId
);
id!(
    /// A client connection.
    SessionId
);
id!(
    /// An interned key.
    KeyId
);
id!(
    /// An interned column name of row values.
    ColumnId
);

/// An interned value. Equal values have equal ids, and the other way round.
///
/// Small non-negative integers, which most histories consist of, are their own id and cost no
/// table entry: the top bit marks them. All other values are an index into [`crate::Values`].
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Pod, Zeroable)]
#[repr(transparent)]
pub struct ValueId(pub u32);

impl ValueId {
    /// JSON's `null`: as a read's value, *the key was absent*; also what a delete leaves behind.
    pub const ABSENT: Self = Self(0);
    /// The result is not known (the field was missing).
    pub const UNKNOWN: Self = Self(0x7fff_ffff);

    /// The integer 0, which keys start with in many formats.
    pub const ZERO: Self = Self(Self::INLINE);

    const INLINE: u32 = 0x8000_0000;

    /// The id of a small integer, if it is one.
    #[inline]
    pub fn inline(value: i64) -> Option<Self> {
        (0..i64::from(Self::INLINE)).contains(&value).then_some(Self(value as u32 | Self::INLINE))
    }

    /// The small integer this id stands for, if it does.
    #[inline]
    pub fn as_inline(self) -> Option<i64> {
        (self.0 & Self::INLINE != 0).then_some(i64::from(self.0 & !Self::INLINE))
    }

    /// Whether the result was recorded at all.
    #[inline]
    pub fn is_known(self) -> bool {
        self != Self::UNKNOWN
    }

    /// The table index of a value that is not inline.
    #[inline]
    pub(crate) fn table_index(self) -> usize {
        self.0 as usize
    }
}

impl std::fmt::Debug for ValueId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (*self, self.as_inline()) {
            (Self::ABSENT, _) => write!(f, "absent"),
            (Self::UNKNOWN, _) => write!(f, "unknown"),
            (_, Some(value)) => write!(f, "{value}"),
            _ => write!(f, "ValueId({})", self.0),
        }
    }
}
