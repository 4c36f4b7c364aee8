//! The anomaly matrix of a database: which anomalies occurred at which of its isolation levels.

use crate::escape::escape;
use serde_json::json;
use std::fmt::Write;

/// What a database showed: a column per isolation level, a row per anomaly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matrix {
    /// The product and its version.
    pub database: String,
    /// Its levels, weakest first.
    pub levels: Vec<MatrixLevel>,
    /// The anomalies.
    pub rows: Vec<MatrixRow>,
}

/// One isolation level of a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatrixLevel {
    /// The database's name for it.
    pub name: &'static str,
    /// The level of the table that it promises.
    pub promises: &'static str,
    /// What it guarantees, in a sentence.
    pub guarantee: String,
}

/// One anomaly at every level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatrixRow {
    /// The anomaly.
    pub anomaly: &'static str,
    /// Its name in words.
    pub words: &'static str,
    /// What it is, in a sentence.
    pub about: &'static str,
    /// One cell per level.
    pub cells: Vec<MatrixCell>,
    /// Whether the steps of every cell are printed as text.
    pub is_traced: bool,
}

/// One anomaly at one level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatrixCell {
    /// Whether the anomaly occurred.
    pub seen: bool,
    /// Whether it is known to occur there.
    pub expected: bool,
    /// Every step and what came of it.
    pub trace: Vec<String>,
}

/// The width of the widest cell, `possible !`.
const CELL_WIDTH: usize = 10;

impl MatrixCell {
    /// Whether the database did something else than expected.
    fn is_surprising(&self) -> bool {
        self.expected != self.seen
    }

    /// What the cell says; `!`: not what is known of the database.
    fn mark(&self) -> String {
        let mark = if self.seen { "possible" } else { "-" };
        format!("{mark}{}", if self.is_surprising() { " !" } else { "" })
    }

    fn steps(&self) -> String {
        self.trace.iter().map(|line| format!("  {line}\n")).collect()
    }
}

impl Matrix {
    /// A table for people, then the steps of what was not expected, and of the rows that are traced.
    pub fn text(&self) -> String {
        let mut text = format!("{}: anomalies by isolation level\n\n", self.database);
        let head = self.line("", self.levels.iter().map(|level| level.name.to_owned()).collect());
        let width = head.chars().count();
        let _ = writeln!(text, "{head}");
        for row in &self.rows {
            let cells = self.line(row.anomaly, row.cells.iter().map(MatrixCell::mark).collect());
            let _ = writeln!(text, "{cells:width$}  {}", row.words);
        }
        text += "\npossible: the anomaly occurred. -: it did not. !: differs from what is known of this database.\n";
        for level in &self.levels {
            let _ = writeln!(text, "{}", level.guarantee);
        }
        for (row, level, cell) in self.cells().filter(|(_, _, cell)| cell.is_surprising()) {
            let expected = if cell.seen { "was not expected" } else { "was expected" };
            let _ = writeln!(text, "\n{} at {} {expected}: {}", row.anomaly, level.name, row.about);
            text += &cell.steps();
        }
        for (row, level, cell) in self.cells().filter(|(row, _, _)| row.is_traced) {
            let seen = if cell.seen { "occurs" } else { "does not occur" };
            let _ = writeln!(text, "\n{} at {} {seen}: {}", row.anomaly, level.name, row.about);
            text += &cell.steps();
        }
        text
    }

    /// One object per anomaly and level, a line each.
    pub fn json_lines(&self) -> String {
        let object = |(row, level, cell): (&MatrixRow, &MatrixLevel, &MatrixCell)| {
            let object = json!({
                "database": self.database,
                "anomaly": row.anomaly,
                "about": row.about,
                "isolation": level.name,
                "promises": level.promises,
                "seen": cell.seen,
                "expected": cell.expected,
                "trace": cell.trace,
            });
            format!("{object}\n")
        };
        self.cells().map(object).collect()
    }

    /// One page that needs nothing beside it; every cell opens to its steps.
    pub fn html(&self) -> String {
        let title = format!("Anomaly matrix of {}", escape(&self.database));
        let mut page = format!(
            "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>{title}</title><style>{STYLE}</style>\
             <h1>{title}</h1><p>possible: the anomaly occurred; -: it did not; framed: differs from what is known of this database.</p><table><tr><th>anomaly</th>"
        );
        for level in &self.levels {
            let _ = write!(page, "<th>{}</th>", escape(level.name));
        }
        page.push_str("</tr>");
        for row in &self.rows {
            let (name, words, about) = (escape(row.anomaly), escape(row.words), escape(row.about));
            let _ = write!(page, "<tr><th title=\"{about}\">{name} <small>{words}</small></th>");
            for cell in &row.cells {
                let class = match (cell.seen, cell.is_surprising()) {
                    (true, true) => "x surprise",
                    (true, false) => "x",
                    (false, true) => "surprise",
                    (false, false) => "",
                };
                let trace: Vec<String> = cell.trace.iter().map(|line| escape(line)).collect();
                let _ = write!(
                    page,
                    "<td class=\"{class}\"><details><summary>{}</summary><pre>{}</pre></details></td>",
                    cell.mark(),
                    trace.join("\n")
                );
            }
            page.push_str("</tr>");
        }
        page.push_str("</table><ul>");
        for level in &self.levels {
            let _ = write!(page, "<li>{}</li>", escape(&level.guarantee));
        }
        page.push_str("</ul><dl>");
        for row in &self.rows {
            let _ = write!(page, "<dt>{}</dt><dd>{}</dd>", escape(row.anomaly), escape(row.about));
        }
        page.push_str("</dl></html>\n");
        page
    }

    fn cells(&self) -> impl Iterator<Item = (&MatrixRow, &MatrixLevel, &MatrixCell)> {
        self.rows
            .iter()
            .flat_map(|row| row.cells.iter().zip(&self.levels).map(move |(cell, level)| (row, level, cell)))
    }

    /// A row of the table: each cell as wide as its level's name.
    fn line(&self, head: &str, cells: Vec<String>) -> String {
        let mut line = format!("{head:16}");
        for (cell, level) in cells.iter().zip(&self.levels) {
            let _ = write!(line, "  {cell:width$}", width = level.name.chars().count().max(CELL_WIDTH));
        }
        line.trim_end().to_owned()
    }
}

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:60rem;padding:0 1rem}\
    table{border-collapse:collapse}th,td{padding:.3rem .8rem;border-bottom:1px solid #8884;text-align:left}\
    th small{font-weight:400}td.x{background:#e5484d33}td.surprise{outline:3px solid #e5484d}details{margin:.3rem 0}\
    pre{overflow-x:auto;background:#8881;padding:.6rem}@media(prefers-color-scheme:dark){body{background:#111;color:#eee}}";

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix() -> Matrix {
        let cell = |seen, expected| MatrixCell { seen, expected, trace: vec!["1: a < b".to_owned()] };
        let level =
            |name, promises| MatrixLevel { name, promises, guarantee: format!("{name} is {promises}.") };
        Matrix {
            database: "A & B 1".to_owned(),
            levels: vec![level("read-committed", "read-committed"), level("serializable", "serializable")],
            rows: vec![MatrixRow {
                anomaly: "G2-item",
                words: "write skew",
                about: "write skew",
                cells: vec![cell(true, true), cell(true, false)],
                is_traced: false,
            }],
        }
    }

    #[test]
    fn what_is_surprising_is_shown_with_its_steps() {
        let text = matrix().text();
        assert!(text.contains("G2-item           possible        possible !    write skew\n"), "{text}");
        assert!(
            text.contains("\nG2-item at serializable was not expected: write skew\n  1: a < b\n"),
            "{text}"
        );
        assert!(!text.contains("at read-committed"), "{text}");
        let traced =
            Matrix { rows: vec![MatrixRow { is_traced: true, ..matrix().rows[0].clone() }], ..matrix() };
        assert!(traced.text().contains("G2-item at read-committed occurs: write skew\n"));
    }

    #[test]
    fn nothing_leaves_its_place() {
        let page = matrix().html();
        assert!(page.contains("A &amp; B 1") && page.contains("1: a &lt; b") && !page.contains("a < b"));
        let lines = matrix().json_lines();
        assert_eq!(lines.lines().count(), 2);
        for line in lines.lines() {
            let value: serde_json::Value = serde_json::from_str(line).expect("an object");
            assert_eq!(value["anomaly"], "G2-item");
        }
    }
}
