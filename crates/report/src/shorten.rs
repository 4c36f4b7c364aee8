//! Values of any length in a line of bounded length, with the part that matters kept.
//!
//! A value is cut only if it is longer than [`WIDTH_MAX`] letters (a list: longer than [`ELEMENTS_MAX`]
//! elements). What is kept: the beginning, the end, and what the sentence is about — the *focus*, an element of
//! a list or the first place where two texts differ.

use history::{ValueId, ValueRef, Values};

/// Texts up to this many letters are shown whole.
const WIDTH_MAX: usize = 60;
/// Lists up to this many elements are shown whole.
const ELEMENTS_MAX: usize = 12;
/// Elements kept at either end and around the focus.
const ELEMENTS_KEPT: usize = 3;

/// A value in a few words; `focus` is an element that must stay visible.
pub(crate) fn value(values: &Values, id: ValueId, focus: Option<ValueId>) -> String {
    if !id.is_known() {
        return "unknown".to_owned();
    }
    match values.get(id) {
        ValueRef::List(elements) => list(
            elements.len(),
            |index| clip(&values.show(elements[index]).to_string(), None),
            focus.and_then(|focus| elements.iter().position(|&element| element == focus)),
        ),
        _ => clip(&values.show(id).to_string(), None),
    }
}

/// Two values that are compared: both in a few words, with the first difference visible in both.
pub(crate) fn pair(values: &Values, first: ValueId, second: ValueId) -> (String, String) {
    let both_known = first.is_known() && second.is_known();
    if let (true, ValueRef::Str(_), ValueRef::Str(_)) = (both_known, values.get(first), values.get(second)) {
        let (first, second) = (values.show(first).to_string(), values.show(second).to_string());
        let same = first.chars().zip(second.chars()).take_while(|(a, b)| a == b).count();
        return (clip(&first, Some(same)), clip(&second, Some(same)));
    }
    (value(values, first, None), value(values, second, None))
}

/// `len` things in brackets; of a long row the two ends and the surroundings of `focus`.
pub(crate) fn list(len: usize, show: impl Fn(usize) -> String, focus: Option<usize>) -> String {
    let kept = |index: usize| {
        len <= ELEMENTS_MAX
            || index < ELEMENTS_KEPT
            || index + ELEMENTS_KEPT >= len
            || focus.is_some_and(|focus| index.abs_diff(focus) < ELEMENTS_KEPT)
    };
    let mut parts = Vec::new();
    let mut index = 0;
    while index < len {
        if kept(index) {
            parts.push(show(index));
            index += 1;
            continue;
        }
        let gap = (index..len).take_while(|&index| !kept(index)).count();
        parts.push(format!("…{gap} more…"));
        index += gap;
    }
    format!("[{}]", parts.join(" "))
}

/// A text of bounded length: its beginning, its end, and the letters around `focus`.
pub(crate) fn clip(text: &str, focus: Option<usize>) -> String {
    let letters: Vec<char> = text.chars().collect();
    if letters.len() <= WIDTH_MAX {
        return text.to_owned();
    }
    let edge = WIDTH_MAX / 4;
    let piece = |range: std::ops::Range<usize>| letters[range].iter().collect::<String>();
    let tail = piece(letters.len() - edge..letters.len());
    let middle = focus.map(|focus| {
        (focus.saturating_sub(edge / 2).min(letters.len()), focus.saturating_add(edge).min(letters.len()))
    });
    match middle {
        Some((from, to)) if from > edge && to + edge < letters.len() => {
            format!("{}…{}…{tail}", piece(0..edge), piece(from..to))
        }
        Some((from, _)) if from > edge => format!("{}…{}", piece(0..edge), piece(from..letters.len())),
        _ => format!("{}…{tail}", piece(0..WIDTH_MAX - edge)),
    }
}

#[cfg(test)]
mod tests {
    use super::{clip, list};

    #[test]
    fn short_texts_stay() {
        assert_eq!(clip("abc", None), "abc");
        assert_eq!(list(3, |index| index.to_string(), None), "[0 1 2]");
    }

    #[test]
    fn long_lists_keep_their_ends_and_the_focus() {
        let show = |index: usize| index.to_string();
        assert_eq!(list(100, show, None), "[0 1 2 …94 more… 97 98 99]");
        assert_eq!(list(100, show, Some(50)), "[0 1 2 …45 more… 48 49 50 51 52 …44 more… 97 98 99]");
        assert_eq!(list(100, show, Some(98)), "[0 1 2 …93 more… 96 97 98 99]");
    }

    #[test]
    fn long_texts_keep_the_place_that_differs() {
        let long = "a".repeat(200) + "X" + &"b".repeat(200);
        assert!(clip(&long, Some(200)).contains('X'));
        assert!(clip(&long, None).chars().count() <= 61);
        assert!(clip(&long, Some(200)).chars().count() < 80);
        let near_the_end = "a".repeat(200) + "X";
        assert!(clip(&near_the_end, Some(200)).ends_with('X'));
        let beyond = clip(&long, Some(401));
        assert!(beyond.ends_with("bbb"), "{beyond}");
    }
}
