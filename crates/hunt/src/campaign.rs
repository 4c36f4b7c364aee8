//! A campaign: case after case, findings reduced, grouped and kept.
//!
//! Cases are numbered; the campaign's seed and the number give the case. Cases share a schema in runs of
//! [`CASES_A_SCHEMA`]. Levels take turns.
//!
//! A finding is executed again before it is believed, reduced, and put into the group of its signature: the sort of
//! finding and the parts of SQL that the smallest case needs. A group that has been reduced a few times already only
//! counts: what is wrong there is known.

use crate::case::Case;
use crate::examine::{Examination, Examined, Finding, Tally, examine};
use crate::execute::{Stage, Trouble};
use crate::features::{features, shape};
use crate::generate::{Settings, generate};
use crate::oracle::Place;
use crate::plan::{Plan, PlanAct};
use crate::reduce::Reducer;
use crate::report;
use databases::{Failure, Isolation, Scripted, Sight, View};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use workload::Random;

/// Cases on one schema.
const CASES_A_SCHEMA: u64 = 25;
/// Findings of one rough kind that are reduced; further ones are only counted.
const REDUCED_A_KIND: u64 = 3;

/// Reasons for refusals that are told apart.
const REFUSALS_MAX: usize = 100;

/// What a campaign does.
#[derive(Clone, Debug)]
pub struct CampaignOptions {
    /// What cases are like.
    pub settings: Settings,
    /// How they are examined.
    pub examination: Examination,
    /// The levels, in turns.
    pub levels: Vec<Isolation>,
    /// Where randomness starts.
    pub seed: u64,
    /// Cases, at most.
    pub cases: Option<u64>,
    /// Time, at most.
    pub time: Option<Duration>,
    /// Time to reduce a finding.
    pub reduction: Duration,
    /// Time after which a statement that does not wait for a lock hangs.
    pub patience: Duration,
    /// Whether writes are held to the snapshot of their transaction even where they look at the newest state: the
    /// paper's way, which finds its Figure 1.
    pub writes_see_snapshot: bool,
    /// Distinct findings after which to stop.
    pub findings_max: Option<usize>,
}

/// How far a campaign is.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Cases examined.
    pub cases: u64,
    /// What happened in them.
    pub tally: Tally,
    /// How many statements used each part of SQL.
    pub features: BTreeMap<&'static str, u64>,
    /// Why statements were refused, how often, with an example each.
    pub refusals: BTreeMap<String, (u64, String)>,
    /// What was found, grouped.
    pub groups: Vec<Group>,
    /// How long it took.
    pub elapsed: Duration,
    /// How much of that the server had work to do.
    pub in_server: Duration,
    /// Findings that did not come again.
    pub fleeting: u64,
    /// Times the server had to be brought back.
    pub revived: u64,
}

/// Findings with one signature.
#[derive(Clone, Debug)]
pub struct Group {
    /// What they have in common.
    pub signature: String,
    /// How many there were.
    pub count: u64,
    /// The smallest.
    pub discovery: Discovery,
}

/// A finding with its case, reduced.
#[derive(Clone, Debug)]
pub struct Discovery {
    /// The number of the case.
    pub case: u64,
    /// The level.
    pub isolation: Isolation,
    /// The examination of the reduced case.
    pub examined: Examined,
    /// The end of the server's log, if it crashed.
    pub log: Option<String>,
    /// The whole as an SQL file.
    pub script: String,
    /// How large that is.
    size: usize,
}

/// The levels of a database at which the oracle can be used: every statement looks at committed data only
/// (TxCheck, Jiang et al., OSDI 2023, assumption 3, is kept by reading before writes what writes look at).
pub fn levels(all: &[Isolation]) -> Vec<Isolation> {
    all.iter().filter(|level| level.sight.is_some()).copied().collect()
}

/// Runs a campaign. `watch` sees how far it is after every case and says whether to go on; `revive` brings the database
/// back after a crash and tells the end of its log.
pub fn campaign(
    database: &dyn Scripted,
    options: &CampaignOptions,
    revive: &mut dyn FnMut() -> Result<Option<String>, Failure>,
    watch: &mut dyn FnMut(&Summary) -> bool,
) -> Result<Summary, Failure> {
    let Some(first) = options.levels.first() else {
        return Err(Failure::mistake(
            "no requested level shows statements only committed data; the hunt needs one that does",
        ));
    };
    let mut stage = Stage::open(database, *first)?;
    stage.set_patience(options.patience);
    let mut hunter = Hunter { stage, options, revive, summary: Summary::default(), kinds: BTreeMap::new() };
    let began = Instant::now();
    for number in 0.. {
        let is_over = options.cases.is_some_and(|cases| number >= cases)
            || options.time.is_some_and(|time| began.elapsed() >= time)
            || options.findings_max.is_some_and(|max| hunter.summary.groups.len() >= max);
        if is_over {
            break;
        }
        hunter.case(number)?;
        hunter.summary.cases = number + 1;
        hunter.summary.elapsed = began.elapsed();
        hunter.summary.in_server = hunter.stage.in_server();
        if !watch(&hunter.summary) {
            break;
        }
    }
    hunter.stage.clear();
    Ok(hunter.summary)
}

struct Hunter<'c, 'd> {
    stage: Stage<'d>,
    options: &'c CampaignOptions,
    revive: &'c mut dyn FnMut() -> Result<Option<String>, Failure>,
    summary: Summary,
    /// How many findings of each rough kind there were.
    kinds: BTreeMap<String, u64>,
}

impl Hunter<'_, '_> {
    fn case(&mut self, number: u64) -> Result<(), Failure> {
        let options = self.options;
        let turn = usize::try_from(number % options.levels.len() as u64).unwrap_or(0);
        let isolation = options.levels[turn];
        self.stage.set_isolation(isolation);
        let Some(sight) = self.sight(&isolation) else { return Ok(()) };
        let grammar = self.stage.database().grammar();
        let schema = options.seed.wrapping_add(number / CASES_A_SCHEMA);
        let plan = generate(&options.settings, grammar, sight, schema, options.seed.wrapping_add(number));
        let mut random = Random::stream(options.seed, number);
        let case = plan.case(grammar, sight);
        let examined = examine(&mut self.stage, &case, &options.examination, &mut random)?;
        self.summary.tally.add(&examined.tally);
        self.count_features(&plan, &examined);
        self.count_refusals(&case, &examined);
        match examined.finding.clone() {
            Some(finding) => self.found(number, isolation, sight, &plan, examined, &finding),
            None => Ok(()),
        }
    }

    fn sight(&self, isolation: &Isolation) -> Option<Sight> {
        let sight = isolation.sight?;
        let is_split = sight.reads == View::Transaction && sight.writes == View::Statement;
        Some(if is_split && self.options.writes_see_snapshot { Sight::SNAPSHOT } else { sight })
    }

    fn count_features(&mut self, plan: &Plan, examined: &Examined) {
        for step in &plan.steps {
            let PlanAct::Statement { tree, .. } = &step.act else { continue };
            if examined.run.observed.contains_key(&step.number) {
                for feature in features(tree, plan) {
                    *self.summary.features.entry(feature).or_default() += 1;
                }
            }
        }
    }

    fn count_refusals(&mut self, case: &Case, examined: &Examined) {
        for (why, step) in &examined.refusals {
            let is_new = self.summary.refusals.len() < REFUSALS_MAX;
            let refusals = &mut self.summary.refusals;
            if is_new || refusals.contains_key(why) {
                let example = || {
                    let found = case.statements().find(|(known, _)| known.number == *step);
                    found.map(|(_, statement)| statement.sql.clone()).unwrap_or_default()
                };
                refusals.entry(why.clone()).or_insert_with(|| (0, example())).0 += 1;
            }
        }
    }

    fn found(
        &mut self,
        number: u64,
        isolation: Isolation,
        sight: Sight,
        plan: &Plan,
        examined: Examined,
        finding: &Finding,
    ) -> Result<(), Failure> {
        let mut log = None;
        if let Finding::Trouble(trouble) = finding
            && trouble.is_down()
        {
            self.summary.revived += 1;
            log = (self.revive)()?;
            self.stage.reopen()?;
        }
        let kind = rough_kind(finding, &examined, log.as_deref());
        let count = self.kinds.entry(kind.clone()).or_default();
        *count += 1;
        if *count > REDUCED_A_KIND
            && let Some(group) =
                self.summary.groups.iter_mut().find(|group| group.signature.starts_with(&kind))
        {
            group.count += 1;
            return Ok(());
        }
        let steps: Vec<_> = examined.case.steps.iter().map(|step| step.number).collect();
        let mut reducer = Reducer {
            stage: &mut self.stage,
            sight,
            how: self.options.examination,
            deadline: Instant::now() + self.options.reduction,
            revive: &mut *self.revive,
        };
        let reduced = match reducer.reduce(&plan.arranged(&steps), finding)? {
            Some(reduced) => Some(reduced),
            None => reducer.reduce(plan, finding)?,
        };
        let (plan, examined) = match (reduced, finding) {
            (Some(reduced), _) => reduced,
            // A crash is worth telling even if it does not come again; the server's log is the witness.
            (None, Finding::Trouble(_)) => (plan.clone(), examined),
            (None, _) => {
                self.summary.fleeting += 1;
                return Ok(());
            }
        };
        let signature = format!("{kind}: {}", shape(&plan));
        let remarks = [format!("case {number} of seed {}", self.options.seed), signature.clone()];
        let script = report::script(&examined, isolation.name, &remarks, log.as_deref());
        let size = script.len();
        let discovery = Discovery { case: number, isolation, examined, log, script, size };
        self.group(signature, discovery);
        Ok(())
    }

    fn group(&mut self, signature: String, discovery: Discovery) {
        match self.summary.groups.iter_mut().find(|group| group.signature == signature) {
            Some(group) => {
                group.count += 1;
                if discovery.size < group.discovery.size {
                    group.discovery = discovery;
                }
            }
            None => self.summary.groups.push(Group { signature, count: 1, discovery }),
        }
    }
}

/// A line of a log without what differs every time: digits are addresses, times and process ids.
fn without_digits(line: &str) -> String {
    let place: String = line.chars().filter(|letter| !letter.is_ascii_digit()).take(100).collect();
    place.trim().to_owned()
}

/// What can be reported before reduction.
fn rough_kind(finding: &Finding, examined: &Examined, log: Option<&str>) -> String {
    match finding {
        Finding::Level(broken) => format!("{} at {}", broken.anomaly, broken.level),
        Finding::Trouble(Trouble::Hang { .. }) => "hang".to_owned(),
        Finding::Trouble(Trouble::Complaint { line }) => format!("complaint ({})", without_digits(line)),
        Finding::Trouble(_) => {
            let words = log.and_then(|log| report::last_words(log).first().copied()).unwrap_or_default();
            format!("crash ({})", without_digits(words))
        }
        Finding::Difference(difference) => {
            let kind = |step| {
                let mut statements = examined.case.statements();
                let found = statements.find(|(known, _)| known.number == step);
                found.map_or(String::new(), |(_, found)| found.kind.name().to_uppercase())
            };
            match difference.place {
                Place::Answer(step) => format!("{} returned the wrong rows", kind(step)),
                Place::Before(step) => format!("{} matched the wrong rows", kind(step)),
                Place::After(step) => format!("{} changed the wrong rows", kind(step)),
                Place::Refusal(step) => format!("{} fails when run alone", kind(step)),
                Place::Table(_) => "wrong table contents at the end".to_owned(),
            }
        }
    }
}
