//! A binary search that begins near where the time before ended.
//!
//! What: [`gallop`], the partition point of a slice, looked for in growing steps from a hint (Bentley and Yao, An almost optimal
//! algorithm for unbounded searching, 1976).
//! Why: what a client looks up of a key mostly lies near what was looked up of it before; there it is found by a
//! look or two, in memory that is at hand.
//! Cost: O(log of the distance between hint and result).

/// Where the items that are below end, as `partition_point` says it, looked for from a hint that is at most the length.
#[inline]
pub fn gallop<T>(items: &[T], hint: usize, is_below: impl Fn(&T) -> bool) -> usize {
    let mut step = 1;
    let (from, to) = if hint > 0 && !is_below(&items[hint - 1]) {
        let mut to = hint - 1;
        while step <= to && !is_below(&items[to - step]) {
            to -= step;
            step *= 2;
        }
        ((to + 1).saturating_sub(step), to)
    } else {
        let mut from = hint;
        while from + step <= items.len() && is_below(&items[from + step - 1]) {
            from += step;
            step *= 2;
        }
        (from, (from + step - 1).min(items.len()))
    };
    from + items[from..to].partition_point(is_below)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hint_does_not_matter() {
        let items = [1, 3, 3, 5, 8, 13, 21, 34, 34];
        for len in 0..=items.len() {
            let items = &items[..len];
            for hint in 0..=len {
                for bound in 0..40 {
                    let expected = items.partition_point(|&item| item < bound);
                    assert_eq!(gallop(items, hint, |&item| item < bound), expected, "{bound} from {hint}");
                }
            }
        }
    }
}
