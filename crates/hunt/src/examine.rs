//! One case from end to end, on one screen.
//!
//! 1. Execute it interleaved.
//! 2. Take out statements that are no good, and statements that had to wait: the reads around those were torn apart
//!    (TxCheck, Jiang et al., OSDI 2023, §4, *Blocking Scheduling*). Execute again, in the order in which steps were really completed.
//! 3. Build the graph; take out a random statement of every cycle, and execute again (§3.3, *Graph Decycling*).
//! 4. Hold the execution to the promise of the level.
//! 5. Execute random topological orders without transactions, and compare.
//!
//! It ends: every round but the last takes something out.

use crate::case::{Case, StepNo};
use crate::execute::{Run, Stage, Trouble};
use crate::graph::Graph;
use crate::isolation::{self, Broken};
use crate::oracle::{self, Difference};
use crate::order::cycles;
use databases::Failure;
use workload::Random;

/// How cases are examined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Examination {
    /// Random orders without transactions.
    pub orders: u32,
    /// Executions until a case is given up.
    pub rounds_max: u32,
    /// Whether executions are held to the level's promise, too.
    pub levels: bool,
}

impl Default for Examination {
    fn default() -> Self {
        Self { orders: 2, rounds_max: 60, levels: true }
    }
}

/// What an examination found.
#[derive(Clone, Debug)]
pub struct Examined {
    /// The case as it was at last.
    pub case: Case,
    /// Its last execution, if it came to that.
    pub run: Run,
    /// The graph of that.
    pub graph: Graph,
    /// What is wrong, if anything.
    pub finding: Option<Finding>,
    /// What happened on the way.
    pub tally: Tally,
    /// The refusals of the first execution: why, and the statement.
    pub refusals: Vec<(String, StepNo)>,
}

/// Something wrong.
#[derive(Clone, Debug, PartialEq)]
pub enum Finding {
    /// Results differ without transactions.
    Difference(Difference),
    /// The level's promise is broken.
    Level(Broken),
    /// The server crashed, or hangs.
    Trouble(Trouble),
}

/// What happened in one or many examinations.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tally {
    /// Statements that were sent in first executions, and those of them that were refused as no good.
    pub statements: u64,
    /// See [`Tally::statements`].
    pub refused: u64,
    /// Executions.
    pub rounds: u64,
    /// Statements taken out because they waited, and because of cycles.
    pub blocked: u64,
    /// See [`Tally::blocked`].
    pub cyclic: u64,
    /// Transactions of last executions that committed, and that did not.
    pub committed: u64,
    /// See [`Tally::committed`].
    pub aborted: u64,
    /// Statements compared.
    pub compared: u64,
    /// Cases given up.
    pub abandoned: u64,
}

impl Tally {
    /// Adds another one.
    pub fn add(&mut self, other: &Self) {
        self.statements += other.statements;
        self.refused += other.refused;
        self.rounds += other.rounds;
        self.blocked += other.blocked;
        self.cyclic += other.cyclic;
        self.committed += other.committed;
        self.aborted += other.aborted;
        self.compared += other.compared;
        self.abandoned += other.abandoned;
    }
}

/// Examines a case. Fails only where the database cannot be used at all.
pub fn examine(
    stage: &mut Stage<'_>,
    case: &Case,
    how: &Examination,
    random: &mut Random,
) -> Result<Examined, Failure> {
    let mut examined = Examined {
        case: case.clone(),
        run: Run::default(),
        graph: Graph::default(),
        finding: None,
        tally: Tally::default(),
        refusals: Vec::new(),
    };
    let judged = settle(stage, &mut examined, how, random)
        .and_then(|()| judge(stage, &mut examined, how, random))
        .and_then(|()| stage.listen());
    match judged {
        Ok(()) => Ok(examined),
        Err(Trouble::Setup(failure)) => Err(failure),
        Err(trouble) => {
            examined.finding = Some(Finding::Trouble(trouble));
            Ok(examined)
        }
    }
}

/// Executes until nothing has to be taken out.
fn settle(
    stage: &mut Stage<'_>,
    examined: &mut Examined,
    how: &Examination,
    random: &mut Random,
) -> Result<(), Trouble> {
    for round in 0..how.rounds_max {
        let run = stage.interleaved(&examined.case)?;
        let tally = &mut examined.tally;
        tally.rounds += 1;
        if round == 0 {
            tally.statements = (run.observed.len() + run.failed.len()) as u64;
            tally.refused = run.failed.len() as u64;
            examined.refusals = run.failed.iter().map(|(step, why)| (why.to_string(), *step)).collect();
        }
        let mut gone: Vec<StepNo> = run.failed.iter().map(|(step, _)| *step).collect();
        gone.extend(&run.blocked);
        tally.blocked += run.blocked.len() as u64;
        if gone.is_empty() {
            examined.graph = Graph::of(&examined.case, &run);
            gone = on_cycles(&examined.graph, random);
            tally.cyclic += gone.len() as u64;
        }
        let order = run.order.clone();
        examined.run = run;
        if gone.is_empty() {
            return Ok(());
        }
        examined.case = examined.case.arranged(&order).without(&gone);
    }
    examined.tally.abandoned += 1;
    examined.run = Run::default();
    examined.graph = Graph::default();
    Ok(())
}

/// Statements to be taken out: one of each cycle, and those whose versions are not theirs alone.
fn on_cycles(graph: &Graph, random: &mut Random) -> Vec<StepNo> {
    let mut gone = graph.ambiguous.clone();
    for group in cycles(graph) {
        let place = usize::try_from(random.below(group.len() as u64)).unwrap_or(0);
        gone.push(graph.nodes[group[place].index()]);
    }
    gone.sort();
    gone.dedup();
    gone
}

fn judge(
    stage: &mut Stage<'_>,
    examined: &mut Examined,
    how: &Examination,
    random: &mut Random,
) -> Result<(), Trouble> {
    let Examined { case, run, graph, finding, tally, .. } = examined;
    let committed =
        run.fates.iter().filter(|fate| matches!(fate, crate::execute::Fate::Committed(_))).count();
    tally.committed = committed as u64;
    tally.aborted = run.fates.len() as u64 - tally.committed;
    if run.fates.is_empty() {
        return Ok(());
    }
    let difference = oracle::check(stage, case, run, graph, how.orders, random)?;
    tally.compared = graph.nodes.len() as u64 * u64::from(how.orders);
    *finding = difference.map(Finding::Difference);
    if finding.is_none() && how.levels {
        *finding = isolation::broken(case, run, stage.isolation().promises).map(Finding::Level);
    }
    Ok(())
}
