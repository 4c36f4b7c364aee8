//! Suggestions for misspelt names.

/// The known name that a misspelt one is closest to, if one is close enough.
pub fn nearest<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let lower: String = name.chars().take(COMPARED_LEN_MAX).flat_map(char::to_lowercase).collect();
    let distances = known.into_iter().map(|known| (distance(&lower, &known.to_lowercase()), known));
    let (distance, nearest) = distances.min_by_key(|&(distance, _)| distance)?;
    is_close(distance, nearest.chars().count()).then_some(nearest)
}

/// Whether a name of this length, misspelt in so many letters, is likely the one that was meant: a third of it may be wrong.
pub fn is_close(distance: usize, len: usize) -> bool {
    3 * distance <= len
}

/// The error for an unknown name: a suggestion if one name is close, else all names.
///
/// ```
/// let faults = ["kill-server", "pause-server"];
/// assert_eq!(
///     taipan_history::suggest::unknown("fault", "kil-server", faults),
///     "unknown fault \"kil-server\"; did you mean kill-server?"
/// );
/// assert_eq!(
///     taipan_history::suggest::unknown("fault", "earthquake", faults),
///     "unknown fault \"earthquake\"; expected one of: kill-server, pause-server"
/// );
/// ```
pub fn unknown<'k>(what: &str, name: &str, known: impl IntoIterator<Item = &'k str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    match nearest(name, known.iter().copied()) {
        Some(near) => format!("unknown {what} {name:?}; did you mean {near}?"),
        None => format!("unknown {what} {name:?}; expected one of: {}", known.join(", ")),
    }
}

/// Longer names are cut before they are compared: no typo is that long.
const COMPARED_LEN_MAX: usize = 32;

/// How many letters have to be added, left out, replaced or swapped with their neighbour.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let width = b.len() + 1;
    let mut table = vec![0; (a.len() + 1) * width];
    for row in 0..=a.len() {
        for column in 0..=b.len() {
            let at = |rows: usize, columns: usize| table[(row - rows) * width + column - columns];
            table[row * width + column] = match (row, column) {
                (0, _) => column,
                (_, 0) => row,
                _ => {
                    let same = a[row - 1] == b[column - 1];
                    let best = (at(1, 0) + 1).min(at(0, 1) + 1).min(at(1, 1) + usize::from(!same));
                    let swapped =
                        row > 1 && column > 1 && a[row - 1] == b[column - 2] && a[row - 2] == b[column - 1];
                    if swapped { best.min(at(2, 2) + 1) } else { best }
                }
            };
        }
    }
    table[a.len() * width + b.len()]
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn typos_lead_to_the_name_that_was_meant() {
        let known = ["lost-update", "write-skew", "long-fork", "sqlite:", "P4"];
        for (written, meant) in [
            ("lost-updates", Some("lost-update")),
            ("Write-Skew", Some("write-skew")),
            ("logn-fork", Some("long-fork")),
            ("sqlit", Some("sqlite:")),
            ("earthquake", None),
            ("P5", None),
            ("", None),
        ] {
            assert_eq!(nearest(written, known), meant, "{written}");
        }
    }
}
