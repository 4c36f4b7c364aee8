//! Elle's result map: what `elle-cli` says of a history, in EDN or JSON.
//!
//! ```text
//! {:valid? false,
//!  :anomaly-types [:G-single-item],
//!  :anomalies {:G-single-item [{:level :serializable, :transactions ["s1:0" "s2:0"], :steps ["…" "…"]}]},
//!  :not #{:monotonic-atomic-view},
//!  :also-not #{:consistent-view …}}
//! ```
//!
//! `:not` holds the weakest models that the history breaks, `:also-not` the stronger ones, by Elle's names. What Taipan finds is
//! decided at every level, where Elle concludes it from the kinds of anomaly.

use crate::Finding;
use isolation::{Level, VerdictKind, elle_models, implications};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// What is reported about one history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ElleResult {
    /// Whether it is as the models say; none if that is not known.
    valid: Option<bool>,
    /// Why it is not known.
    why: Option<String>,
    anomalies: BTreeMap<String, Vec<Argument>>,
    not: BTreeSet<&'static str>,
    also_not: BTreeSet<&'static str>,
}

/// One anomaly.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Argument {
    level: String,
    count: usize,
    transactions: Vec<String>,
    steps: Vec<String>,
}

impl ElleResult {
    /// From what was found at the levels asked for, and what all levels come to.
    pub fn new(findings: &[Finding], marks: &[(Level, VerdictKind)]) -> Self {
        let mut it = Self { valid: Some(true), ..Self::default() };
        for finding in findings {
            match (&finding.anomaly, &finding.reason) {
                (Some(_), _) => it.add(finding),
                (None, Some(reason)) => it.why = it.why.or_else(|| Some(reason.clone())),
                (None, None) => {}
            }
        }
        it.valid = match (it.anomalies.is_empty(), &it.why) {
            (false, _) => Some(false),
            (true, Some(_)) => None,
            (true, None) => Some(true),
        };
        let is_broken = |level: Level| marks.contains(&(level, VerdictKind::Violated));
        let is_weakest = |level: Level| {
            !implications()
                .iter()
                .any(|it| it.stronger == level && !it.without_predicates && is_broken(it.weaker))
        };
        let mut named: BTreeSet<Level> = BTreeSet::new();
        for (model, level) in elle_models().filter(|(_, level)| is_broken(*level)) {
            // A level's own name comes first; models that only imply it are stronger.
            let is_own = named.insert(level);
            if is_own && is_weakest(level) {
                it.not.insert(model)
            } else {
                it.also_not.insert(model)
            };
        }
        it
    }

    fn add(&mut self, finding: &Finding) {
        let Some(anomaly) = &finding.anomaly else { return };
        let level = finding.claim.level_name();
        let steps = finding.explanation.iter().map(|step| step.why.clone()).chain(finding.counted.clone());
        let argument = Argument {
            level: level.to_owned(),
            count: 1,
            transactions: finding.transactions.iter().map(|member| member.name.clone()).collect(),
            steps: steps.collect(),
        };
        let of_kind = self.anomalies.entry(anomaly.name.clone()).or_default();
        if !of_kind.iter().any(|known| known.transactions == argument.transactions) {
            of_kind.push(argument);
        }
        for listed in finding.anomalies.iter().flatten() {
            let of_kind = self.anomalies.entry(listed.anomaly.name.clone()).or_default();
            match of_kind.first_mut() {
                Some(known) => known.count = known.count.max(listed.count),
                None => of_kind.push(Argument {
                    level: level.to_owned(),
                    count: listed.count,
                    transactions: listed.transactions.clone(),
                    steps: Vec::new(),
                }),
            }
        }
    }

    /// `true`, `false` or `unknown`.
    pub fn word(&self) -> &'static str {
        match self.valid {
            Some(true) => "true",
            Some(false) => "false",
            None => "unknown",
        }
    }

    /// The map in EDN.
    pub fn edn(&self) -> String {
        let valid = if self.valid.is_some() { self.word().to_owned() } else { ":unknown".to_owned() };
        let mut fields = vec![format!(":valid? {valid}")];
        if let Some(why) = &self.why {
            fields.push(format!(":error {}", text(why)));
        }
        if !self.anomalies.is_empty() {
            let types: Vec<String> = self.anomalies.keys().map(|name| format!(":{name}")).collect();
            fields.push(format!(":anomaly-types [{}]", types.join(" ")));
            let of_kind = |(name, all): (&String, &Vec<Argument>)| {
                let all: Vec<String> = all.iter().map(Argument::edn).collect();
                format!(":{name} [{}]", all.join("\n   "))
            };
            let all: Vec<String> = self.anomalies.iter().map(of_kind).collect();
            fields.push(format!(":anomalies {{{}}}", all.join(",\n  ")));
            for (name, models) in [("not", &self.not), ("also-not", &self.also_not)] {
                let models: Vec<String> = models.iter().map(|model| format!(":{model}")).collect();
                fields.push(format!(":{name} #{{{}}}", models.join(" ")));
            }
        }
        format!("{{{}}}", fields.join(",\n "))
    }

    /// The map in JSON.
    pub fn json(&self) -> String {
        let mut map = json!({ "valid?": self.valid.map_or_else(|| Value::from("unknown"), Value::from) });
        if let Some(why) = &self.why {
            map["error"] = Value::from(why.as_str());
        }
        if !self.anomalies.is_empty() {
            map["anomaly-types"] = Value::from_iter(self.anomalies.keys().map(String::as_str));
            let of_kind = |(name, all): (&String, &Vec<Argument>)| {
                (name.clone(), Value::from_iter(all.iter().map(Argument::json)))
            };
            map["anomalies"] = Value::Object(self.anomalies.iter().map(of_kind).collect());
            map["not"] = Value::from_iter(self.not.iter().copied());
            map["also-not"] = Value::from_iter(self.also_not.iter().copied());
        }
        map.to_string()
    }
}

impl Argument {
    fn edn(&self) -> String {
        let list = |all: &[String]| all.iter().map(|it| text(it)).collect::<Vec<_>>().join(" ");
        let mut out = format!("{{:level :{}, :transactions [{}]", self.level, list(&self.transactions));
        if self.count > 1 {
            let _ = write!(out, ", :count {}", self.count);
        }
        if !self.steps.is_empty() {
            let _ = write!(out, ", :steps [{}]", list(&self.steps));
        }
        out.push('}');
        out
    }

    fn json(&self) -> Value {
        json!({
            "level": self.level,
            "count": self.count,
            "transactions": self.transactions,
            "steps": self.steps,
        })
    }
}

/// A string as EDN writes it, which is as JSON does.
fn text(text: &str) -> String {
    Value::from(text).to_string()
}
