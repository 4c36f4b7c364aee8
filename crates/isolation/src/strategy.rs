//! How the answer is looked for: strategies, and passes that can be left out. Verdicts do not depend on either.

use std::fmt;
use std::str::FromStr;

/// How the answer is looked for. All strategies give the same verdicts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// Schedule, replay, blame, refine: only questions that matter are asked.
    #[default]
    Lazy,
    /// Every pairwise question, as clauses.
    EagerPairs,
    /// Cobra's constraints between chains of writes.
    EagerCobra,
    /// Vbox's edge sets, consolidated and pruned.
    EagerVbox,
    /// VeriStrong's pruning and clauses of small-width cycles.
    EagerVeristrong,
    /// Viper's graph of begins and commits.
    EagerViper,
    /// PolySI's induced graph.
    EagerPolysi,
}

impl Strategy {
    /// All of them, the default first.
    pub const ALL: [Self; 7] = [
        Self::Lazy,
        Self::EagerPairs,
        Self::EagerCobra,
        Self::EagerVbox,
        Self::EagerVeristrong,
        Self::EagerViper,
        Self::EagerPolysi,
    ];

    /// The way it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lazy => "lazy",
            Self::EagerPairs => "eager-pairs",
            Self::EagerCobra => "eager-cobra",
            Self::EagerVbox => "eager-vbox",
            Self::EagerVeristrong => "eager-veristrong",
            Self::EagerViper => "eager-viper",
            Self::EagerPolysi => "eager-polysi",
        }
    }

    /// What it does, in a line.
    pub fn about(self) -> &'static str {
        match self {
            Self::Lazy => "Ask only what a replay of the best order so far raises",
            Self::EagerPairs => "Every pairwise question, each edge by itself",
            Self::EagerCobra => "Cobra: constraints between chains of writes, pruned (serializable levels)",
            Self::EagerVbox => "Vbox: edge sets under one variable, consolidated and pruned",
            Self::EagerVeristrong => "VeriStrong: 1-width pruning, 2-width clauses, duplicate values",
            Self::EagerViper => "Viper: begins and commits, chains of writes (snapshot isolation)",
            Self::EagerPolysi => "PolySI: the induced graph (snapshot isolation)",
        }
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that no strategy or pass has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownName(String);

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UnknownName {}

impl FromStr for Strategy {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        Self::ALL.into_iter().find(|strategy| strategy.name() == name).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            UnknownName(format!("unknown strategy {name:?}; expected one of: {names}"))
        })
    }
}

/// Which passes run. Each can be left out, to see what it is worth; verdicts do not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Passes {
    /// Lazy: the order of the database's timestamps is tried before the search.
    pub timestamps: bool,
    /// Lazy: what sessions and known reads settle is settled before the search.
    pub saturate: bool,
    /// Lazy: parts that share no key and no session are explained apart, on all cores.
    pub parts: bool,
    /// Lazy: where session order does not count, an order that keeps to it is looked for first.
    pub sessions: bool,
    /// Cobra, Viper: read-modify-writes join writers into chains.
    pub combine: bool,
    /// Vbox: questions that share an edge are one.
    pub consolidate: bool,
    /// Cobra, Vbox, VeriStrong, PolySI: alternatives that close a cycle of known edges are excluded.
    pub prune: bool,
    /// VeriStrong: pairs of alternatives that close a cycle together are excluded by a clause.
    pub two_width: bool,
    /// All eager ones: the search prefers what its current order has.
    pub polarity: bool,
}

impl Default for Passes {
    fn default() -> Self {
        Self {
            timestamps: true,
            saturate: true,
            parts: true,
            sessions: true,
            combine: true,
            consolidate: true,
            prune: true,
            two_width: true,
            polarity: true,
        }
    }
}

impl Passes {
    /// The names of all passes.
    pub const NAMES: [&'static str; 9] = [
        "timestamps",
        "saturate",
        "parts",
        "sessions",
        "combine",
        "consolidate",
        "prune",
        "two-width",
        "polarity",
    ];

    /// The same without one pass.
    pub fn without(mut self, name: &str) -> Result<Self, UnknownName> {
        let pass = match name {
            "timestamps" => &mut self.timestamps,
            "saturate" => &mut self.saturate,
            "parts" => &mut self.parts,
            "sessions" => &mut self.sessions,
            "combine" => &mut self.combine,
            "consolidate" => &mut self.consolidate,
            "prune" => &mut self.prune,
            "two-width" => &mut self.two_width,
            "polarity" => &mut self.polarity,
            _ => {
                let names = Self::NAMES.join(", ");
                return Err(UnknownName(format!("unknown pass {name:?}; expected one of: {names}")));
            }
        };
        *pass = false;
        Ok(self)
    }
}
