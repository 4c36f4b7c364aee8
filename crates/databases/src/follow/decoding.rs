//! What PostgreSQL's output plugin `test_decoding` says, as changes of rows.
//!
//! ```text
//! table public.accounts: INSERT: id[bigint]:7 owner[text]:'O''Hara' note[text]:null
//! table public.accounts: UPDATE: old-key: id[bigint]:7 new-tuple: id[bigint]:8 owner[text]:unchanged-toast-datum
//! table public.accounts: DELETE: id[bigint]:8
//! table public.accounts, public.notes: TRUNCATE: (no-flags)
//! ```
//!
//! Names are quoted as SQL quotes them. Of an update that leaves the key as it is there is no `old-key`.

use serde_json::Value as Json;

/// One line of the plugin.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Change {
    /// A row was inserted, or stands there with these columns now; `old` holds its key if that was another.
    Put { table: String, old: Vec<Cell>, new: Vec<Cell> },
    /// A row is gone; of its columns those that identify it are there.
    Removed { table: String, old: Vec<Cell> },
    /// All rows of these tables are gone.
    Emptied { tables: String },
    /// The transaction committed.
    Committed,
    /// Something that changes no row.
    Other,
}

/// A column of a row.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Cell {
    pub(super) column: String,
    pub(super) kind: String,
    pub(super) content: Content,
}

/// What is in a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Content {
    Null,
    /// In the server's own words, without quotes.
    Text(String),
    /// Unchanged, and too large for the server to send it again.
    Unchanged,
}

impl Content {
    /// The value that a traced client would note: integers, numbers and truth values as such, anything else as
    /// the server writes it. `None` if it is not reported.
    pub(super) fn value(&self, kind: &str) -> Option<Json> {
        let text = match self {
            Self::Unchanged => return None,
            Self::Null => return Some(Json::Null),
            Self::Text(text) => text,
        };
        Some(match kind {
            "smallint" | "integer" | "bigint" | "oid" | "numeric" => {
                text.parse::<i64>().map_or_else(|_| text.as_str().into(), Json::from)
            }
            "real" | "double precision" => {
                text.parse::<f64>().map_or_else(|_| text.as_str().into(), Json::from)
            }
            "boolean" => matches!(text.as_str(), "t" | "true").into(),
            _ => text.as_str().into(),
        })
    }
}

/// Reads one line; `None` if it is not of the plugin's form.
pub(super) fn read(line: &str) -> Option<Change> {
    if line.starts_with("COMMIT") {
        return Some(Change::Committed);
    }
    let Some(rest) = line.strip_prefix("table ") else { return Some(Change::Other) };
    let mut rest = Rest(rest);
    let table = rest.qualified_name()?;
    if rest.take(": INSERT:") {
        return Some(Change::Put { table, old: Vec::new(), new: rest.cells()? });
    }
    if rest.take(": UPDATE:") {
        let old = if rest.take(" old-key:") { rest.cells()? } else { Vec::new() };
        rest.take(" new-tuple:");
        return Some(Change::Put { table, old, new: rest.cells()? });
    }
    if rest.take(": DELETE:") {
        return Some(Change::Removed { table, old: rest.cells()? });
    }
    let (tables, _) = line.strip_prefix("table ")?.rsplit_once(": TRUNCATE:")?;
    Some(Change::Emptied { tables: tables.to_owned() })
}

/// What is still to be read of a line.
struct Rest<'l>(&'l str);

impl<'l> Rest<'l> {
    fn take(&mut self, word: &str) -> bool {
        match self.0.strip_prefix(word) {
            Some(rest) => {
                self.0 = rest;
                true
            }
            None => false,
        }
    }

    fn until(&mut self, end: impl Fn(char) -> bool) -> &'l str {
        let at = self.0.find(end).unwrap_or(self.0.len());
        let (word, rest) = self.0.split_at(at);
        self.0 = rest;
        word
    }

    /// A text between quotes that are doubled inside it; the first has been taken.
    fn quoted(&mut self, quote: char) -> Option<String> {
        let mut text = String::new();
        loop {
            text.push_str(self.until(|c| c == quote));
            self.0 = self.0.strip_prefix(quote)?;
            match self.0.strip_prefix(quote) {
                Some(rest) => {
                    text.push(quote);
                    self.0 = rest;
                }
                None => return Some(text),
            }
        }
    }

    fn name(&mut self) -> Option<String> {
        if self.take("\"") {
            return self.quoted('"');
        }
        let name = self.until(|c| ".:[ ,".contains(c));
        (!name.is_empty()).then(|| name.to_owned())
    }

    fn qualified_name(&mut self) -> Option<String> {
        let first = self.name()?;
        if self.take(".") {
            return Some(format!("{first}.{}", self.name()?));
        }
        Some(first)
    }

    fn cells(&mut self) -> Option<Vec<Cell>> {
        let mut cells = Vec::new();
        if self.take(" (no-tuple-data)") {
            return Some(cells);
        }
        while !self.0.is_empty() && !self.0.starts_with(" new-tuple:") {
            if !self.take(" ") {
                return None;
            }
            let column = self.name()?;
            if !self.take("[") {
                return None;
            }
            let (kind, rest) = self.0.split_once("]:")?;
            self.0 = rest;
            cells.push(Cell { column, kind: kind.to_owned(), content: self.content()? });
        }
        Some(cells)
    }

    fn content(&mut self) -> Option<Content> {
        if self.take("B'") || self.take("'") {
            return self.quoted('\'').map(Content::Text);
        }
        Some(match self.until(|c| c == ' ') {
            "null" => Content::Null,
            "unchanged-toast-datum" => Content::Unchanged,
            word => Content::Text(word.to_owned()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(column: &str, kind: &str, text: &str) -> Cell {
        Cell { column: column.into(), kind: kind.into(), content: Content::Text(text.into()) }
    }

    #[test]
    fn rows_as_the_plugin_writes_them() {
        let line = r#"table public."odd "": name": INSERT: id[bigint]:7 "a b"[text]:'O''Hara: x[y]:1' l[integer[]]:'{1,2}' n[text]:null"#;
        let mut new = vec![
            cell("id", "bigint", "7"),
            cell("a b", "text", "O'Hara: x[y]:1"),
            cell("l", "integer[]", "{1,2}"),
            cell("n", "text", ""),
        ];
        new[3].content = Content::Null;
        let table = "public.odd \": name".to_owned();
        assert_eq!(read(line), Some(Change::Put { table, old: Vec::new(), new }));
        let line = "table public.t: UPDATE: old-key: id[bigint]:7 new-tuple: id[bigint]:8 v[text]:unchanged-toast-datum";
        let unchanged = Cell { column: "v".into(), kind: "text".into(), content: Content::Unchanged };
        let new = vec![cell("id", "bigint", "8"), unchanged];
        let old = vec![cell("id", "bigint", "7")];
        assert_eq!(read(line), Some(Change::Put { table: "public.t".into(), old: old.clone(), new }));
        let line = "table public.t: DELETE: id[bigint]:7";
        assert_eq!(read(line), Some(Change::Removed { table: "public.t".into(), old }));
        let line = "table public.t: DELETE: (no-tuple-data)";
        assert_eq!(read(line), Some(Change::Removed { table: "public.t".into(), old: Vec::new() }));
        let emptied = Change::Emptied { tables: "public.a, public.b".into() };
        assert_eq!(read("table public.a, public.b: TRUNCATE: (no-flags)"), Some(emptied));
        assert_eq!(read("BEGIN 5"), Some(Change::Other));
        assert_eq!(read("COMMIT 5"), Some(Change::Committed));
        for broken in
            ["table x: INSERT: id[bigint", "table x: INSERT: id[text]:'a", "table \"x", "table x: Y:"]
        {
            assert_eq!(read(broken), None, "{broken}");
        }
    }

    #[test]
    fn values_as_clients_note_them() {
        let value =
            |kind: &str, text: &str| Content::Text(text.into()).value(kind).map(|value| value.to_string());
        assert_eq!(value("bigint", "-5").as_deref(), Some("-5"));
        assert_eq!(value("numeric", "1.50").as_deref(), Some("\"1.50\""));
        assert_eq!(value("double precision", "1.5").as_deref(), Some("1.5"));
        assert_eq!(value("boolean", "t").as_deref(), Some("true"));
        assert_eq!(value("boolean", "false").as_deref(), Some("false"));
        assert_eq!(value("uuid", "5").as_deref(), Some("\"5\""));
        assert_eq!(Content::Null.value("text"), Some(Json::Null));
        assert_eq!(Content::Unchanged.value("text"), None);
    }
}
