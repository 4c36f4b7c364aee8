//! The state before the first transaction.

use super::Builder;
use crate::{KeyId, NameRef, Row, ValueId};

/// Initial values as they come.
#[derive(Debug, Default)]
pub(super) struct Initial {
    /// Values of keys; the last of a key counts.
    pub(super) seen: Vec<Row>,
    /// Values of names that may be an integer or a string; see [`Builder::initial_named`].
    named: Vec<(String, ValueId)>,
}

impl Builder {
    /// Sets the value of a key before the first transaction; the last call for a key counts.
    pub fn initial(&mut self, key: KeyId, value: ValueId) {
        self.initial.seen.push(Row { key, value });
    }

    /// Sets the initial value of a key of which only the text is known, as in a JSON object, where `"1"` may be
    /// the integer or the string. It means the one that the transactions use; see `initial_meanings`.
    pub fn initial_named(&mut self, name: &str, value: ValueId) {
        if canonical_integer(name).is_some() {
            self.initial.named.push((name.to_owned(), value));
        } else {
            let key = self.key(NameRef::Str(name));
            self.initial(key, value);
        }
    }

    pub(super) fn settle_initial_names(&mut self) {
        let named = std::mem::take(&mut self.initial.named);
        let names: Vec<&str> = named.iter().map(|(name, _)| name.as_str()).collect();
        let meanings = initial_meanings(&names, |name| self.interned.keys.find(name).is_some());
        for (name, (_, value)) in meanings.into_iter().zip(&named) {
            let key = self.key(name);
            self.initial(key, *value);
        }
    }
}

/// An integer as it is written without need: no plus sign, no leading zeros.
pub(crate) fn canonical_integer(text: &str) -> Option<i64> {
    let value = text.parse::<i64>().ok()?;
    let plain = match text.strip_prefix('-').unwrap_or(text).as_bytes() {
        [b'0'] => value == 0 && text.len() == 1,
        [first, ..] => (b'1'..=b'9').contains(first),
        [] => false,
    };
    plain.then_some(value)
}

/// What names that are written as strings but look like integers mean: the string, if the history uses that
/// string and not the integer; the integer, if it uses that, or both; and if it uses neither, what the others
/// mean, where they agree, else the integer.
pub(crate) fn initial_meanings<'a>(
    names: &[&'a str],
    is_used: impl Fn(NameRef<'_>) -> bool,
) -> Vec<NameRef<'a>> {
    let integer = |name: &str| NameRef::Int(canonical_integer(name).unwrap_or(0));
    let used: Vec<(bool, bool)> =
        names.iter().map(|name| (is_used(integer(name)), is_used(NameRef::Str(name)))).collect();
    let only_strings = used.iter().any(|&(_, string)| string) && used.iter().all(|&(integer, _)| !integer);
    let is_string = |&(integer, string): &(bool, bool)| !integer && (string || only_strings);
    let meaning = |(used, name): (&(bool, bool), &&'a str)| {
        if is_string(used) { NameRef::Str(name) } else { NameRef::Int(canonical_integer(name).unwrap_or(0)) }
    };
    used.iter().zip(names).map(meaning).collect()
}
