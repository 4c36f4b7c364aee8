//! Levels of the user's own: rows in the terms of the table, from a file or from Rust, and modules beside them.
//!
//! ```toml
//! [[level]]
//! name = "session-repeatable-read"
//! edges = ["ww", "wr", "rw-item"]     # which dependencies count
//! cycle = "any"                       # which cycles of them are forbidden
//! orders = ["session"]                # which orders count beside them
//!
//! [[level]]
//! name = "linearizable-balances"
//! edges = ["ww", "wr", "rw"]
//! linearizable = ["alice", "bob"]     # real-time order, between transactions that touch these keys
//! ctx = { versions = "versions", after = "after", commit = "lsn", likely = "hint" }
//! ```
//!
//! A row means a [`Rule`] of the table, so the interpreter of the built-in rows reads it; modules add edges
//! ([`crate::Module`]).
//!
//! | edges | cycle | rule |
//! |---|---|---|
//! | ww | any | read uncommitted |
//! | ww wr | any | read committed |
//! | ww wr rw-item | any | repeatable read |
//! | ww wr rw | any | serializable |
//! | ww wr rw | at-most-one-rw | consistent view |
//! | ww wr rw | no-adjacent-rw | snapshot isolation |
//! | ww wr rw | at-most-one-reader | update serializable |
//! | ww wr rw-item | one-rw-on-one-key | cursor stability |
//! | ww wr rw | later-operation | monotonic view |
//!
//! `sees = "earlier-reads"`, `"direct"`, `"causal"` or `"prefix"` instead of edges and cycle asks for a commit order, as the
//! axiomatic family does.

use crate::levels::{Custom, Level, LevelRow, Own, Rule};
use crate::module::Module;
use crate::modules::{CommitOrder, HappenedBefore, Linearizable, VersionOrders};
use serde::Deserialize;
use std::fmt;

/// A level of one's own.
#[derive(Debug)]
pub struct Definition {
    /// Its name.
    pub name: String,
    /// Other names.
    pub aliases: Vec<String>,
    /// What the dependency graph must not contain.
    pub rule: Rule,
    /// Whether session order counts.
    pub session: bool,
    /// Whether the clients' real-time order counts.
    pub realtime: bool,
    /// What it forbids, in words.
    pub forbids: String,
    /// Where the definition comes from.
    pub source: String,
    /// What is added to the dependencies.
    pub modules: Vec<Box<dyn Module>>,
}

/// What is wrong with a definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadDefinition(String);

impl fmt::Display for BadDefinition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadDefinition {}

impl Definition {
    /// A level of that name with a rule and nothing beside it.
    pub fn new(name: &str, rule: Rule) -> Self {
        Self {
            name: name.to_owned(),
            aliases: Vec::new(),
            rule,
            session: false,
            realtime: false,
            forbids: String::new(),
            source: "custom level".to_owned(),
            modules: Vec::new(),
        }
    }

    /// The same with a module.
    pub fn with(mut self, module: impl Module + 'static) -> Self {
        self.modules.push(Box::new(module));
        self
    }

    /// The level. A definition is kept as long as the program runs: levels are small values that are copied freely.
    pub fn level(self) -> Result<Level, BadDefinition> {
        let plain = Level::new(self.rule, self.session, self.realtime);
        let bad = |what: &str| Err(BadDefinition(format!("level {:?}: {what}", self.name)));
        for name in std::iter::once(&self.name).chain(&self.aliases) {
            if let Ok(known) = Level::parse(name) {
                return bad(&format!("{name:?} is already the name of {known}"));
            }
        }
        if plain.is_axiomatic() {
            if self.realtime || !self.modules.is_empty() {
                return bad("commit orders of the axiomatic family count no order but that of sessions");
            }
            if !self.session && self.rule != Rule::AxiomaticReadCommitted {
                return bad("this commit order counts session order: add it to the orders");
            }
        }
        let counts = self.session || self.realtime || !self.modules.is_empty();
        if self.rule == Rule::UpdateSerializable && counts {
            return bad("a cycle with at most one read-only transaction counts no orders");
        }
        let keep = |text: String| -> &'static str { Box::leak(text.into_boxed_str()) };
        let aliases: Vec<&'static str> = self.aliases.into_iter().map(keep).collect();
        let base = plain.row();
        let words = || {
            let like = Level { session: false, realtime: false, ..plain };
            let like = base.or(like.row()).or(Level { session: true, ..like }.row());
            like.map_or_else(String::new, |row| row.forbids.to_owned())
        };
        let mut forbids = if self.forbids.is_empty() { words() } else { self.forbids };
        let orders = [(self.session, "session order"), (self.realtime, "real-time order")];
        let counted: Vec<&str> = orders.iter().filter(|it| it.0 && base.is_none()).map(|it| it.1).collect();
        let modules = self.modules.iter().map(|module| module.name());
        let counted: Vec<&str> = counted.into_iter().chain(modules).collect();
        if !counted.is_empty() {
            forbids = format!("{forbids}, counting {}", counted.join(", "));
        }
        let row = LevelRow {
            name: keep(self.name),
            aliases: Box::leak(aliases.into_boxed_slice()),
            level: plain,
            forbids: keep(forbids),
            anomaly: base.map_or("violation", |row| row.anomaly),
            source: keep(self.source),
        };
        let custom: &'static Custom = Box::leak(Box::new(Custom { row, modules: self.modules }));
        Ok(Level { own: Some(Own::new(custom)), ..plain })
    }
}

/// The levels of a file.
pub fn parse_levels(text: &str) -> Result<Vec<Level>, BadDefinition> {
    let file: File = toml::from_str(text).map_err(|error| BadDefinition(error.to_string()))?;
    if file.level.is_empty() {
        return Err(BadDefinition("it defines no [[level]]".to_owned()));
    }
    let mut levels: Vec<Level> = Vec::new();
    for row in file.level {
        let level = row.definition()?.level()?;
        let names = |level: Level| level.row().map(|row| row.names().map(str::to_owned).collect::<Vec<_>>());
        let (new, old) =
            (names(level).unwrap_or_default(), levels.iter().filter_map(|&it| names(it)).flatten());
        if let Some(twice) = old.into_iter().find(|name| new.contains(name)) {
            return Err(BadDefinition(format!("two levels are called {twice:?}")));
        }
        levels.push(level);
    }
    Ok(levels)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    level: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    name: String,
    #[serde(default)]
    aliases: Vec<String>,
    #[serde(default)]
    edges: Vec<EdgeName>,
    #[serde(default)]
    cycle: Option<Cycle>,
    #[serde(default)]
    sees: Option<Sees>,
    #[serde(default)]
    orders: Vec<Order>,
    #[serde(default)]
    forbids: String,
    #[serde(default)]
    source: Option<String>,
    #[serde(default)]
    linearizable: Vec<KeyName>,
    #[serde(default)]
    clock_skew: i64,
    #[serde(default)]
    ctx: Ctx,
}

#[derive(Clone, Copy, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "kebab-case")]
enum EdgeName {
    Ww,
    Wr,
    Rw,
    RwItem,
}

#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
enum Cycle {
    Any,
    AtMostOneRw,
    NoAdjacentRw,
    AtMostOneReader,
    OneRwOnOneKey,
    LaterOperation,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Sees {
    EarlierReads,
    Direct,
    Causal,
    Prefix,
}

#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
enum Order {
    Session,
    Realtime,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum KeyName {
    Int(i64),
    Str(String),
}

/// Fields of `ctx`.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Ctx {
    versions: Option<String>,
    after: Option<String>,
    commit: Option<String>,
    likely: Option<String>,
}

impl Row {
    fn definition(self) -> Result<Definition, BadDefinition> {
        let rule = self.rule()?;
        let mut definition = Definition::new(&self.name, rule);
        definition.aliases = self.aliases;
        definition.session = self.orders.contains(&Order::Session);
        definition.realtime = self.orders.contains(&Order::Realtime);
        definition.forbids = self.forbids;
        definition.source = self.source.unwrap_or(definition.source);
        if !self.linearizable.is_empty() {
            let keys = self.linearizable.into_iter().map(|key| match key {
                KeyName::Int(key) => key.to_string(),
                KeyName::Str(key) => key,
            });
            definition = definition.with(Linearizable { keys: keys.collect(), clock_skew: self.clock_skew });
        }
        if let Some(field) = self.ctx.versions {
            definition = definition.with(VersionOrders { field });
        }
        if let Some(field) = self.ctx.after {
            definition = definition.with(HappenedBefore { field });
        }
        for (field, trusted) in [(self.ctx.commit, true), (self.ctx.likely, false)] {
            if let Some(field) = field {
                definition = definition.with(CommitOrder { field, trusted });
            }
        }
        Ok(definition)
    }

    fn rule(&self) -> Result<Rule, BadDefinition> {
        use EdgeName::{Rw, RwItem, Wr, Ww};
        let bad = |what: &str| Err(BadDefinition(format!("level {:?}: {what}", self.name)));
        if let Some(sees) = self.sees {
            if !self.edges.is_empty() || self.cycle.is_some() {
                return bad("either `sees`, or `edges` and `cycle`");
            }
            return Ok(match sees {
                Sees::EarlierReads => Rule::AxiomaticReadCommitted,
                Sees::Direct => Rule::ReadAtomic,
                Sees::Causal => Rule::Causal,
                Sees::Prefix => Rule::Prefix,
            });
        }
        let mut edges = self.edges.clone();
        edges.sort_unstable();
        edges.dedup();
        match (&edges[..], self.cycle.unwrap_or(Cycle::Any)) {
            ([Ww], Cycle::Any) => Ok(Rule::ReadUncommitted),
            ([Ww, Wr], Cycle::Any) => Ok(Rule::ReadCommitted),
            ([Ww, Wr, RwItem], Cycle::Any) => Ok(Rule::RepeatableRead),
            ([Ww, Wr, RwItem], Cycle::OneRwOnOneKey) => Ok(Rule::CursorStability),
            ([Ww, Wr, Rw], Cycle::Any) => Ok(Rule::Serializable),
            ([Ww, Wr, Rw], Cycle::AtMostOneRw) => Ok(Rule::ConsistentView),
            ([Ww, Wr, Rw], Cycle::NoAdjacentRw) => Ok(Rule::SnapshotIsolation),
            ([Ww, Wr, Rw], Cycle::AtMostOneReader) => Ok(Rule::UpdateSerializable),
            ([Ww, Wr, Rw], Cycle::LaterOperation) => Ok(Rule::MonotonicView),
            _ => bad(
                "these edges with this rule on cycles are decided by nothing here; there are [ww], [ww, wr], \
                 [ww, wr, rw-item] and [ww, wr, rw] with cycle = \"any\", [ww, wr, rw-item] with \
                 \"one-rw-on-one-key\", and [ww, wr, rw] with \"at-most-one-rw\", \"no-adjacent-rw\", \
                 \"at-most-one-reader\" or \"later-operation\"",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        parse_levels(text).expect_err(text).to_string()
    }

    #[test]
    fn rows_mean_rules_of_the_table() {
        let text = r#"
            [[level]]
            name = "session-repeatable-read"
            aliases = ["SRR"]
            edges = ["ww", "wr", "rw-item"]
            orders = ["session"]

            [[level]]
            name = "balances"
            edges = ["rw", "ww", "wr"]
            cycle = "any"
            linearizable = ["alice", 7]
            ctx = { versions = "v" }
            forbids = "a balance from yesterday"
            source = "our handbook, page 3"
        "#;
        let levels = parse_levels(text).expect("the file is right");
        assert_eq!((levels[0].rule, levels[0].session), (Rule::RepeatableRead, true));
        assert_eq!(levels[0].name(), "session-repeatable-read");
        assert_eq!(levels[1].rule, Rule::Serializable);
        assert_eq!(levels[1].modules().len(), 2);
        let words = levels[1].definition();
        assert!(words.contains("linearizable, version order"), "{words}");
        let told = "balances forbids a balance from yesterday, counting ";
        assert!(words.starts_with(told) && words.ends_with("(our handbook, page 3)"), "{words}");
        assert_ne!(levels[0], levels[1]);
    }

    #[test]
    fn what_is_wrong_is_said() {
        assert!(refusal("").contains("no [[level]]"));
        assert!(refusal("[[level]]\nname = 'x'\nedges = ['wr']").contains("decided by nothing"));
        assert!(refusal("[[level]]\nname = 'SI'\nedges = ['ww']").contains("already the name of"));
        assert!(refusal("[[level]]\nname = 'x'\nedge = ['ww']").contains("unknown field"));
        assert!(refusal("[[level]]\nname = 'x'\nsees = 'causal'").contains("session order"));
        let twice = "[[level]]\nname = 'x'\nedges = ['ww']\n".repeat(2);
        assert!(refusal(&twice).contains("two levels"), "{}", refusal(&twice));
    }
}
