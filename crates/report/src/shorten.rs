//! Values of any length in a line of bounded length, with the part that matters kept.
//!
//! A value is cut only if it is longer than [`WIDTH_MAX`] letters (a list: longer than [`ELEMENTS_MAX`]
//! elements or [`LIST_WIDTH_MAX`] letters). What is kept: the beginning, the end, and what the argument is about — the
//! *focus*, elements of a list or places where texts differ. A [`Lens`] knows these for all values of an argument.

use history::{History, KeyId, Operation, Row, TxnId, ValueId, ValueRef, Values};
use std::collections::BTreeMap;

/// Texts up to this many letters are shown whole.
const WIDTH_MAX: usize = 60;
/// Lists up to this many elements are shown whole.
const ELEMENTS_MAX: usize = 12;
/// Elements kept at either end and around the focus.
const ELEMENTS_KEPT: usize = 3;
/// Where those take more letters than this, only one of each is kept.
const LIST_WIDTH_MAX: usize = 160;
/// So many places of a value stay visible, the first ones.
const PLACES_MAX: usize = 3;
/// So many values of a key are compared with each other.
const COMPARED_MAX: usize = 64;

/// What must stay visible in long values: where the values of one key differ, and what was appended to it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lens {
    /// Elements of lists and letters of texts, ascending.
    places: BTreeMap<ValueId, Vec<usize>>,
}

/// The values of a key in an argument.
#[derive(Default)]
struct Seen {
    values: Vec<ValueId>,
    appended: Vec<ValueId>,
}

impl Lens {
    /// For an argument about these transactions.
    pub(crate) fn of(history: &History, transactions: impl IntoIterator<Item = TxnId>) -> Self {
        let mut keys: BTreeMap<KeyId, Seen> = BTreeMap::new();
        for txn in transactions {
            for (_, operation) in history.transaction(txn).ops() {
                note(&mut keys, operation);
            }
        }
        let mut lens = Self::default();
        for seen in keys.values() {
            lens.compare(history, seen);
        }
        lens
    }

    /// The same, and where two values differ that are spoken of together.
    pub(crate) fn comparing(&self, values: &Values, first: ValueId, second: ValueId) -> Self {
        let mut lens = Self::default();
        lens.compare_two(values, first, second);
        if lens.places.is_empty() { self.clone() } else { lens }
    }

    fn compare(&mut self, history: &History, seen: &Seen) {
        let values = history.values();
        let mut all: Vec<ValueId> = seen.values.clone();
        all.extend(seen.values.iter().flat_map(|&value| history.values_of(value)));
        all.extend(&seen.appended);
        all.sort_unstable();
        all.dedup();
        all.retain(|&value| is_long(values, value));
        all.truncate(COMPARED_MAX);
        for (index, &first) in all.iter().enumerate() {
            for &second in &all[index + 1..] {
                self.compare_two(values, first, second);
            }
            for &element in &seen.appended {
                let place = history.values_of(first).iter().position(|&other| other == element);
                place.into_iter().for_each(|place| self.keep(first, place));
            }
        }
    }

    /// Keeps the first place where two values differ, if both are lists or neither is.
    fn compare_two(&mut self, values: &Values, first: ValueId, second: ValueId) {
        if !first.is_known() || !second.is_known() || first == second {
            return;
        }
        let same = match (values.get(first), values.get(second)) {
            (ValueRef::List(a), ValueRef::List(b)) => alike(a.iter(), b.iter()),
            (ValueRef::List(_), _) | (_, ValueRef::List(_)) => return,
            _ => {
                let (a, b) = (values.show(first).to_string(), values.show(second).to_string());
                alike(a.chars(), b.chars())
            }
        };
        self.keep(first, same);
        self.keep(second, same);
    }

    fn keep(&mut self, value: ValueId, place: usize) {
        let places = self.places.entry(value).or_default();
        if let Err(at) = places.binary_search(&place) {
            places.insert(at, place);
            places.truncate(PLACES_MAX);
        }
    }

    fn places(&self, value: ValueId) -> &[usize] {
        self.places.get(&value).map_or(&[], Vec::as_slice)
    }
}

/// Notes the values of an operation, by key.
fn note(keys: &mut BTreeMap<KeyId, Seen>, operation: Operation<'_>) {
    let rows: &[Row] = match operation {
        Operation::Read { key, value, .. } | Operation::Write { key, value } => &[Row { key, value }][..],
        Operation::Cas { key, expect, write, .. } => {
            &[Row { key, value: expect }, Row { key, value: write }][..]
        }
        Operation::Append { key, value } => return keys.entry(key).or_default().appended.push(value),
        Operation::Scan { rows, .. } | Operation::Iterate { rows, .. } | Operation::Query { rows, .. } => {
            rows.unwrap_or_default()
        }
        Operation::Delete { .. } | Operation::Update { .. } | Operation::DeleteWhere { .. } => &[],
    };
    for row in rows.iter().filter(|row| row.value.is_known()) {
        keys.entry(row.key).or_default().values.push(row.value);
    }
}

fn is_long(values: &Values, value: ValueId) -> bool {
    value.is_known()
        && match values.get(value) {
            ValueRef::List(_) => true,
            _ => values.show(value).to_string().chars().count() > WIDTH_MAX,
        }
}

/// How far two rows are the same.
pub(crate) fn alike<T: PartialEq>(a: impl Iterator<Item = T>, b: impl Iterator<Item = T>) -> usize {
    a.zip(b).take_while(|(a, b)| a == b).count()
}

/// A value in a few words; `focus` is an element that must stay visible, too.
pub(crate) fn value(values: &Values, id: ValueId, lens: &Lens, focus: Option<ValueId>) -> String {
    if !id.is_known() {
        return "unknown".to_owned();
    }
    match values.get(id) {
        ValueRef::List(elements) => {
            let focus = focus.and_then(|focus| elements.iter().position(|&element| element == focus));
            let places: Vec<usize> = lens.places(id).iter().copied().chain(focus).collect();
            list(elements.len(), |index| value(values, elements[index], lens, None), &places)
        }
        _ => clip(&values.show(id).to_string(), lens.places(id)),
    }
}

/// Two values that are compared: both in a few words, with the first difference visible in both.
pub(crate) fn pair(values: &Values, first: ValueId, second: ValueId, lens: &Lens) -> (String, String) {
    let lens = lens.comparing(values, first, second);
    (value(values, first, &lens, None), value(values, second, &lens, None))
}

/// `len` things in brackets; of a long row the two ends and the surroundings of `places`.
pub(crate) fn list(len: usize, show: impl Fn(usize) -> String, places: &[usize]) -> String {
    let row = row(len, &show, places, ELEMENTS_KEPT);
    if row.chars().count() <= LIST_WIDTH_MAX {
        return row;
    }
    self::row(len, &show, places, 1)
}

/// As [`list`], with so many kept around every place.
fn row(len: usize, show: &impl Fn(usize) -> String, places: &[usize], around: usize) -> String {
    let is_whole = len <= ELEMENTS_MAX && around == ELEMENTS_KEPT;
    let kept = |index: usize| {
        is_whole
            || index < around
            || index + around >= len
            || places.iter().any(|place| index.abs_diff(*place) < around)
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

/// A text of bounded length: its beginning, its end, and the letters around `places`.
pub(crate) fn clip(text: &str, places: &[usize]) -> String {
    let letters: Vec<char> = text.chars().collect();
    if letters.len() <= WIDTH_MAX {
        return text.to_owned();
    }
    let edge = WIDTH_MAX / 4;
    // A place near an end is visible with it.
    let beginning = if places.iter().all(|&place| place < edge) { WIDTH_MAX - edge } else { edge };
    let mut pieces: Vec<std::ops::Range<usize>> = Vec::from([std::ops::Range { start: 0, end: beginning }]);
    for &place in places {
        let (from, to) = (place.saturating_sub(edge / 2), place.saturating_add(edge));
        let (from, to) = (from.min(letters.len()), to.min(letters.len()));
        match pieces.last_mut() {
            Some(last) if from <= last.end => last.end = last.end.max(to),
            _ => pieces.push(from..to),
        }
    }
    let tail = letters.len() - edge..letters.len();
    match pieces.last_mut() {
        Some(last) if tail.start <= last.end => last.end = tail.end,
        _ => pieces.push(tail),
    }
    let pieces: Vec<String> = pieces.into_iter().map(|range| letters[range].iter().collect()).collect();
    pieces.join("…")
}

#[cfg(test)]
mod tests {
    use super::{clip, list};

    #[test]
    fn short_texts_stay() {
        assert_eq!(clip("abc", &[]), "abc");
        assert_eq!(list(3, |index| index.to_string(), &[]), "[0 1 2]");
    }

    #[test]
    fn long_lists_keep_their_ends_and_the_focus() {
        let show = |index: usize| index.to_string();
        assert_eq!(list(100, show, &[]), "[0 1 2 …94 more… 97 98 99]");
        assert_eq!(list(100, show, &[50]), "[0 1 2 …45 more… 48 49 50 51 52 …44 more… 97 98 99]");
        assert_eq!(list(100, show, &[98]), "[0 1 2 …93 more… 96 97 98 99]");
    }

    #[test]
    fn long_texts_keep_the_place_that_differs() {
        let long = "a".repeat(200) + "X" + &"b".repeat(200);
        assert!(clip(&long, &[200]).contains('X'));
        assert!(clip(&long, &[]).chars().count() <= 61);
        assert!(clip(&long, &[200]).chars().count() < 80);
        let near_the_end = "a".repeat(200) + "X";
        assert!(clip(&near_the_end, &[200]).ends_with('X'));
        let beyond = clip(&long, &[401]);
        assert!(beyond.ends_with("bbb"), "{beyond}");
    }

    #[test]
    fn many_places_stay_visible_and_long_elements_are_few() {
        let show = |index: usize| index.to_string();
        assert_eq!(
            list(200, show, &[60, 61, 120]),
            "[0 1 2 …55 more… 58 59 60 61 62 63 …54 more… 118 119 120 121 122 …74 more… 197 198 199]"
        );
        let wide = |index: usize| format!("{index}-{}", "w".repeat(50));
        let told = list(200, wide, &[120]);
        assert!(told.contains("120-") && !told.contains("119-"), "{told}");
        let text: String = (0..5000).map(|place| if place % 1000 == 999 { 'X' } else { 'a' }).collect();
        let told = clip(&text, &[999, 1999]);
        assert_eq!(told.matches('X').count(), 3, "the two places and the end: {told}");
        assert!(told.chars().count() < 120, "{told}");
    }
}
