//! Numbers as values of flags.

use std::ops::{Bound, RangeBounds};

/// A whole number within bounds; the error for anything else gives an example.
pub(super) fn count<T: TryFrom<u64> + 'static>(
    bounds: impl RangeBounds<u64> + 'static,
    example: &'static str,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static {
    let first = match bounds.start_bound() {
        Bound::Included(&first) => first,
        Bound::Excluded(&before) => before.saturating_add(1),
        Bound::Unbounded => 0,
    };
    let last = match bounds.end_bound() {
        Bound::Included(&last) => Some(last),
        Bound::Excluded(&after) => Some(after.saturating_sub(1)),
        Bound::Unbounded => None,
    };
    move |text| {
        let number = text.parse().ok().filter(|&it: &u64| it >= first && last.is_none_or(|last| it <= last));
        number.and_then(|number| T::try_from(number).ok()).ok_or_else(|| match (first, last) {
            (first, Some(last)) => {
                format!("expected a whole number from {first} to {last}, such as {example}")
            }
            (0, None) => format!("expected a whole number, such as {example}"),
            (first, None) => format!("expected a whole number, {first} or more, such as {example}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::count;

    #[test]
    fn numbers_within_bounds() {
        let workers = count::<u16>(1..=1024, "2");
        assert_eq!((workers("1"), workers("1024")), (Ok(1), Ok(1024)));
        for wrong in ["0", "1025", "70000", "two", "", "1.5", "-1", "99999999999999999999"] {
            let told = workers(wrong).expect_err(wrong);
            assert_eq!(told, "expected a whole number from 1 to 1024, such as 2", "{wrong}");
        }
        let told = count::<u32>(1.., "8")("4294967296").expect_err("more than there are");
        assert_eq!(told, "expected a whole number, 1 or more, such as 8");
        assert_eq!(count::<i64>(0.., "5")("0"), Ok(0));
    }
}
