//! Operations, values and predicates in words.

use crate::shorten::{self, Lens};
use history::{Comparison, History, KeyId, NameRef, Operation, Predicate, Range, Row, ValueId, Values};

/// An operation and what came back, in the past tense: `read x = 1`, `appended 5 to l`.
pub fn operation(history: &History, operation: Operation<'_>) -> String {
    focused(history, operation, &Lens::default(), None)
}

/// A key: words as they are, `key 23` for numbers, quotes around everything else.
pub(crate) fn key(history: &History, key: KeyId) -> String {
    match history.keys().get(key) {
        NameRef::Int(number) => format!("key {number}"),
        NameRef::Str(text) if is_word(text) => text.to_owned(),
        NameRef::Str(text) => format!("{text:?}"),
    }
}

/// Whether a name reads as one word, and not as a number.
fn is_word(text: &str) -> bool {
    let starts_well = text.chars().next().is_some_and(|letter| letter.is_alphabetic() || letter == '_');
    starts_well && text.chars().all(|letter| letter.is_alphanumeric() || "_-./:$".contains(letter))
}

/// As [`operation`]; what the lens keeps stays visible in long values, and so does `focus`, an element or a row's value.
pub(crate) fn focused(
    history: &History,
    operation: Operation<'_>,
    lens: &Lens,
    focus: Option<ValueId>,
) -> String {
    let key = |at| key(history, at);
    let value = |id| shorten::value(history.values(), id, lens, focus);
    let rows = |rows: Option<&[Row]>| {
        rows.map_or("an unknown result".to_owned(), |rows| row_list(history, rows, lens, focus))
    };
    match operation {
        Operation::Read { key: at, value: seen, lock } => {
            let how = match lock {
                history::Lock::None => "",
                history::Lock::Share => " for share",
                history::Lock::Update => " for update",
            };
            format!("read{how} {} = {}", key(at), value(seen))
        }
        Operation::Write { key: at, value: written } if written == ValueId::ABSENT => {
            format!("deleted {}", key(at))
        }
        Operation::Write { key: at, value: written } => format!("wrote {} = {}", key(at), value(written)),
        Operation::Delete { key: at } => format!("deleted {}", key(at)),
        Operation::Append { key: at, value: added } => format!("appended {} to {}", value(added), key(at)),
        Operation::Cas { key: at, expect, write, ok } => {
            let (key, expect, written) = (key(at), value(expect), value(write));
            match ok {
                Some(true) => format!("set {key} from {expect} to {written} (compare and set)"),
                Some(false) => {
                    format!("did not set {key} to {written}: it was not {expect} (compare and set)")
                }
                None => format!("may have set {key} from {expect} to {written} (compare and set)"),
            }
        }
        Operation::Scan { range, rows: seen } => {
            format!("scanned {}, saw {}", bounds(history, range), rows(seen))
        }
        Operation::Iterate { range, reverse, exhausted, rows: seen } => {
            let backwards = if reverse { " backwards" } else { "" };
            let end = if exhausted { " to the end" } else { "" };
            format!("iterated {}{backwards}{end}, saw {}", bounds(history, range), rows(seen))
        }
        Operation::Query { predicate: condition, rows: seen } => {
            format!("queried {}, saw {}", which_rows(history, condition), rows(seen))
        }
        Operation::Update { predicate: condition, set, count, keys } => format!(
            "updated {} to {}{}",
            which_rows(history, condition),
            value(set),
            reported(history, count, keys)
        ),
        Operation::DeleteWhere { predicate: condition, count, keys } => {
            format!("deleted {}{}", which_rows(history, condition), reported(history, count, keys))
        }
    }
}

fn bounds(history: &History, range: Range) -> String {
    if (range.from, range.to) == (None, None) {
        return "all keys".to_owned();
    }
    let show = |key: Option<_>| key.map(|key| history.keys().get(key).to_string()).unwrap_or_default();
    format!("{}..{}", show(range.from), show(range.to))
}

fn row_list(history: &History, rows: &[Row], lens: &Lens, focus: Option<ValueId>) -> String {
    let show = |index: usize| {
        let row: Row = rows[index];
        format!("{}:{}", history.keys().get(row.key), shorten::value(history.values(), row.value, lens, None))
    };
    let focus = focus.and_then(|focus| rows.iter().position(|row| row.value == focus));
    shorten::list(rows.len(), show, focus.as_slice())
}

/// What the database said of a predicate write.
fn reported(history: &History, count: Option<u64>, keys: Option<&[KeyId]>) -> String {
    let keys =
        keys.map(|keys| shorten::list(keys.len(), |index| history.keys().get(keys[index]).to_string(), &[]));
    match (count, keys) {
        (_, Some(keys)) => format!(", changing {keys}"),
        (Some(1), None) => ", changing 1 row".to_owned(),
        (Some(count), None) => format!(", changing {count} rows"),
        (None, None) => String::new(),
    }
}

fn which_rows(history: &History, condition: &Predicate) -> String {
    match condition {
        Predicate::All(parts) if parts.is_empty() => "all rows".to_owned(),
        _ => format!("rows with {}", predicate(history, condition)),
    }
}

/// A predicate: `value >= 2 and not (color = "red" or size < 3)`.
pub fn predicate(history: &History, condition: &Predicate) -> String {
    nested(history.values(), condition, Binding::Loose)
}

/// How tightly the surroundings bind: what needs parentheses.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Binding {
    Loose,
    And,
    Not,
}

fn nested(values: &Values, condition: &Predicate, within: Binding) -> String {
    let join = |parts: &[Predicate], word: &str, binding| {
        parts.iter().map(|part| nested(values, part, binding)).collect::<Vec<_>>().join(word)
    };
    let in_parentheses = |text: String, needed: bool| if needed { format!("({text})") } else { text };
    match condition {
        Predicate::All(parts) if parts.is_empty() => "true".to_owned(),
        Predicate::Any(parts) if parts.is_empty() => "false".to_owned(),
        Predicate::All(parts) | Predicate::Any(parts) if parts.len() == 1 => {
            nested(values, &parts[0], within)
        }
        Predicate::All(parts) => in_parentheses(join(parts, " and ", Binding::And), within >= Binding::Not),
        Predicate::Any(parts) => in_parentheses(join(parts, " or ", Binding::Loose), within > Binding::Loose),
        Predicate::Not(part) => format!("not {}", nested(values, part, Binding::Not)),
        Predicate::Compare { column, with, constant } => comparison(values, *column, *with, *constant),
    }
}

fn comparison(values: &Values, column: history::ColumnId, with: Comparison, constant: ValueId) -> String {
    let constant = shorten::value(values, constant, &Lens::default(), None);
    format!("{} {} {constant}", values.columns().get(column), with.symbol())
}

#[cfg(test)]
mod tests {
    use super::*;
    use history::{Builder, Lock};

    /// Builds one transaction with one operation and says it.
    fn said(build: impl FnOnce(&mut Builder)) -> String {
        let mut builder = Builder::new();
        let session = builder.session(1.into());
        builder.begin(session);
        build(&mut builder);
        builder.end().expect("nothing in it can be refused");
        let history = builder.finish().expect("nothing in it can be refused");
        let transaction = history.transactions().next().expect("one was built");
        let words: Vec<String> = transaction.ops().map(|(_, op)| operation(&history, op)).collect();
        words.join("; ")
    }

    #[test]
    fn every_operation_has_words() {
        let points = said(|builder| {
            let (x, one) = (builder.key("x".into()), builder.int(1));
            let list = builder.list(&[one, one]);
            builder.read(x, ValueId::ABSENT, Lock::None);
            builder.read(x, list, Lock::Update);
            builder.read(x, ValueId::UNKNOWN, Lock::Share);
            builder.write(x, one);
            builder.delete(x);
            builder.append(x, one);
        });
        assert_eq!(
            points,
            "read x = absent; read for update x = [1 1]; read for share x = unknown; wrote x = 1; deleted x; \
             appended 1 to x"
        );
    }

    #[test]
    fn ranges_and_predicates_have_words() {
        let words = said(|builder| {
            let (a, m, two) = (builder.key("a".into()), builder.key("m".into()), builder.int(2));
            let rows = [Row { key: a, value: two }];
            let column = builder.column("value");
            let at_least = Predicate::Compare { column, with: Comparison::GreaterOrEqual, constant: two };
            let both = Predicate::All(vec![
                at_least.clone(),
                Predicate::Not(Box::new(Predicate::Any(vec![at_least.clone(), at_least.clone()]))),
            ]);
            builder.scan(Range { from: Some(a), to: Some(m) }, Some(&rows));
            builder.iterate(Range { from: None, to: Some(m) }, true, true, Some(&[]));
            builder.query(both, None);
            builder.update(at_least.clone(), two, Some(2), None);
            builder.delete_where(at_least, None, Some(&[a]));
        });
        assert_eq!(
            words,
            "scanned a..m, saw [a:2]; iterated ..m backwards to the end, saw []; \
             queried rows with value >= 2 and not (value >= 2 or value >= 2), saw an unknown result; \
             updated rows with value >= 2 to 2, changing 2 rows; \
             deleted rows with value >= 2, changing [a]"
        );
    }
}
