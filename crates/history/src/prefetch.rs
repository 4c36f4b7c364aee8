//! Memory that will be needed soon, asked for now.
//!
//! Look-ups at random places of large tables wait for memory. Asked for a batch in advance, the waits overlap. A plain
//! load would do that too, but a processor holds on to a load until it is done, and with it to everything that follows:
//! some ten are under way at once. A prefetch is let go at once; reading Cobra's logs of hashed keys became an eighth
//! faster by it.
#![allow(unsafe_code, reason = "the instruction is only to be had so; see the argument where it is used")]

/// Asks for the cache line of an item. An index that is not there asks for the last item instead: that is no branch.
#[inline(always)]
pub(crate) fn prefetch<T>(items: &[T], index: usize) {
    let Some(last) = items.len().checked_sub(1) else { return };
    let item = &items[index.min(last)];
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch is a hint: it reads and writes nothing that the program can see, and cannot fault. Every
    // x86-64 has the instruction.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(item).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = item;
}
