//! The isolation levels, as lists.

use isolation::{Implication, Level, LevelRow, TABLE, implications};
use serde::Serialize;

/// Levels, one per line, for people.
pub fn levels_list(rows: &[&LevelRow]) -> String {
    const HEADER: [&str; 2] = ["LEVEL", "BROKEN BY"];
    let widest = |name: fn(&LevelRow) -> &str, header: &str| {
        rows.iter().map(|row| name(row).len()).chain([header.len()]).max().unwrap_or(0)
    };
    let width = widest(|row| row.name, HEADER[0]);
    let anomalies = widest(|row| row.anomaly, HEADER[1]);
    let mut text = format!("{:width$}  {:anomalies$}  ALSO CALLED\n", HEADER[0], HEADER[1]);
    for row in rows {
        let aliases = row.aliases.join(", ");
        let line = format!("{:width$}  {:anomalies$}  {aliases}", row.name, row.anomaly);
        text += &format!("{}\n", line.trim_end());
    }
    text + "\n`taipan levels LEVEL` shows details.\n"
}

/// What is known of levels, for people.
pub fn levels_details(rows: &[&LevelRow]) -> String {
    let details = |row: &&LevelRow| {
        let mut text = format!("{}\n", row.name);
        let mut line = |title: &str, what: &str| text += &format!("  {title:<12} {what}\n");
        line("also called", &row.aliases.join(", "));
        line("forbids", row.forbids);
        line("broken by", row.anomaly);
        line("implies", &phrase(&neighbours(row, Side::Weaker)));
        line("implied by", &phrase(&neighbours(row, Side::Stronger)));
        line("source", row.source);
        text
    };
    rows.iter().map(details).collect::<Vec<_>>().join("\n")
}

fn phrase(implications: &[(Level, bool)]) -> String {
    let name = |&(level, conditional): &(Level, bool)| {
        format!("{level}{}", if conditional { " (without predicates)" } else { "" })
    };
    match implications {
        [] => "no other".to_owned(),
        all => all.iter().map(name).collect::<Vec<_>>().join(", "),
    }
}

#[derive(Clone, Copy)]
enum Side {
    Weaker,
    Stronger,
}

/// The levels directly below or above one, and whether only for histories without predicates.
fn neighbours(row: &LevelRow, side: Side) -> Vec<(Level, bool)> {
    let level = row.level;
    if !TABLE.iter().any(|it| it.name == row.name) {
        // A row of one's own asks for no less than the row of the table that counts the same orders.
        return match side {
            Side::Weaker => level.row().map(|_| (level, false)).into_iter().collect(),
            Side::Stronger => Vec::new(),
        };
    }
    let other = |it: &Implication| match side {
        Side::Weaker => (it.stronger == level).then_some(it.weaker),
        Side::Stronger => (it.weaker == level).then_some(it.stronger),
    };
    implications().iter().filter_map(|it| Some((other(it)?, it.without_predicates))).collect()
}

#[derive(Serialize)]
struct Row {
    level: &'static str,
    aliases: &'static [&'static str],
    forbids: &'static str,
    anomaly: &'static str,
    session_order: bool,
    realtime_order: bool,
    implies: Vec<&'static str>,
    source: &'static str,
}

/// One JSON object per level, a line each.
pub fn levels_lines(rows: &[&LevelRow]) -> String {
    let line = |row: &&LevelRow| {
        let weaker = neighbours(row, Side::Weaker).into_iter().filter(|(_, conditional)| !conditional);
        let row = Row {
            level: row.name,
            aliases: row.aliases,
            forbids: row.forbids,
            anomaly: row.anomaly,
            session_order: row.level.session,
            realtime_order: row.level.realtime,
            implies: weaker.map(|(level, _)| level.name()).collect(),
            source: row.source,
        };
        serde_json::to_string(&row).expect("names and sentences always have a JSON form") + "\n"
    };
    rows.iter().map(line).collect()
}
