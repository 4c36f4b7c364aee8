//! Writes that leave a key as it was, and that an argument rests on.
//!
//! What counts as a write is a policy: here every write and delete counts, also one that is undone in the same transaction.
//! Some databases drop such a write. Where the argument rests on one, that is said, because there the policy decides.

use history::{History, KeyId, Primitive, TxnId, ValueId};
use isolation::{EdgeKind, Evidence};

/// A sentence for each such write.
pub(crate) fn notes(history: &History, evidence: &Evidence) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    for edge in &evidence.edges {
        let writers = match edge.kind {
            EdgeKind::Ww => [edge.from, Some(edge.to)],
            EdgeKind::Rw => [None, Some(edge.to)],
            _ => [None, None],
        };
        for writer in writers.into_iter().flatten() {
            let Some((key, how)) = edge.key.and_then(|key| Some((key, undone(history, writer, key)?))) else {
                continue;
            };
            let (name, key) = (history.transaction(writer).name(), history.keys().get(key));
            let note = format!(
                "{name} {how} {key}, which leaves it unchanged. This counts as a write, and the verdict depends on it (see \
                 \"What counts as a write\" in docs/book/src/levels.md)"
            );
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
    }
    notes
}

/// What a transaction did to a key, if it left what it had found there.
fn undone(history: &History, txn: TxnId, key: KeyId) -> Option<&'static str> {
    let (mut found, mut left, mut writes) = (None, None, 0);
    for (_, operation) in history.transaction(txn).primitives().filter(|(_, it)| it.key() == Some(key)) {
        match operation {
            Primitive::Read { value, .. } if value.is_known() && left.is_none() => found = Some(value),
            Primitive::Write { value, .. } => (left, writes) = (Some(value), writes + 1),
            Primitive::Append { .. } | Primitive::WriteIf(_) => return None,
            Primitive::Read { .. } | Primitive::Show { .. } => {}
        }
    }
    match (found, left) {
        (Some(found), Some(left)) if found == left => Some("restores"),
        (None, Some(ValueId::ABSENT)) if writes > 1 => Some("writes and deletes"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evidence::check;
    use history::formats::notation;
    use isolation::{Level, Options, Verdict};

    fn noted(text: &str) -> Vec<String> {
        let history = notation::parse(text).expect("the notation is right");
        let verdict = check(&history, Level::SNAPSHOT_ISOLATION, &Options::default()).verdict;
        let Verdict::Violated(evidence) = verdict else { panic!("{text} is {}", verdict.name()) };
        notes(&history, &evidence)
    }

    #[test]
    fn writes_that_are_undone_are_told_where_they_decide() {
        let is_told = |text: &str, words: &str| {
            let notes = noted(text);
            assert!(notes.len() == 1 && notes[0].starts_with(words), "{text}: {notes:?}");
        };
        // Each misses a write of the other, so they overlap; and both write x.
        let inserted = "a: r(x,_) w(x,1) r(q,_) w(z,1)\nb: r(z,_) w(q,1) w(x,5) d(x)\n";
        is_told(inserted, "b:0 writes and deletes x");
        let set_back = "init: x=3\na: r(x,3) w(x,4) r(q,_) w(z,1)\nb: r(x,3) r(z,_) w(q,1) w(x,5) w(x,3)\n";
        is_told(set_back, "b:0 restores x");
        for text in [inserted.replace(" d(x)", ""), set_back.replace(" w(x,3)", "")] {
            assert_eq!(noted(&text), Vec::<String>::new(), "{text}");
        }
    }
}
