//! Reduction: the smallest case that still shows the finding.
//!
//! What: delta debugging from the coarse to the fine. Invariant: the plan that is kept has just been seen to show a
//! finding of the same sort.
//!
//! Steps, again and again until a whole round takes nothing away, or the time is up:
//!
//! 1. whole transactions, then single statements and savepoints;
//! 2. clauses: conditions, joins, outputs, rows of an INSERT, assignments;
//! 3. expressions: any by one of its own parts, or by a constant;
//! 4. rows of tables, in halves first;
//! 5. indexes, views, columns and tables that nothing needs;
//! 6. the interleaving: each step right after the one before it in its session, or right before the one after it.
//!
//! A proposal may be invalid SQL: the statement is refused then, taken out, and the finding is gone. Nothing has to
//! know the rules twice. Cost: one examination a proposal.

use crate::case::StepNo;
use crate::examine::{Examination, Examined, Finding, examine};
use crate::execute::Stage;
use crate::plan::{Plan, PlanAct};
use crate::tree::{
    Comparison, Expr, KEY, Literal, Query, Relation, Rows, Select, Source, Statement, Type, relations_of,
};
use databases::{Failure, Sight};
use std::time::Instant;
use workload::Random;

/// What reduction works with.
pub struct Reducer<'s, 'd> {
    /// The database.
    pub stage: &'s mut Stage<'d>,
    /// What statements look at.
    pub sight: Sight,
    /// How proposals are examined.
    pub how: Examination,
    /// When to be content.
    pub deadline: Instant,
    /// Brings the database back after a crash.
    pub revive: &'s mut dyn FnMut() -> Result<Option<String>, Failure>,
}

/// Whether two findings are of one sort.
fn alike(one: &Finding, other: &Finding) -> bool {
    match (one, other) {
        (Finding::Difference(_), Finding::Difference(_)) | (Finding::Trouble(_), Finding::Trouble(_)) => true,
        (Finding::Level(one), Finding::Level(other)) => one.level == other.level,
        _ => false,
    }
}

impl Reducer<'_, '_> {
    /// The smallest plan found, with its examination; `None` if the finding does not come again.
    pub fn reduce(&mut self, plan: &Plan, finding: &Finding) -> Result<Option<(Plan, Examined)>, Failure> {
        let Some(mut best) = self.attempt(plan, finding)? else { return Ok(None) };
        loop {
            let size = size(&best.0);
            self.transactions(&mut best, finding)?;
            self.statements(&mut best, finding)?;
            self.rows(&mut best, finding)?;
            self.trees(&mut best, finding)?;
            self.schema(&mut best, finding)?;
            self.interleaving(&mut best, finding)?;
            if crate::reduce::size(&best.0) == size || Instant::now() >= self.deadline {
                return Ok(Some(best));
            }
        }
    }

    /// Examines a proposal: what is left of it, if the finding is.
    fn attempt(&mut self, plan: &Plan, finding: &Finding) -> Result<Option<(Plan, Examined)>, Failure> {
        let case = plan.case(self.stage.database().grammar(), self.sight);
        let examined = match examine(self.stage, &case, &self.how, &mut Random::new(0)) {
            Ok(examined) => examined,
            // Not even the schema is good.
            Err(_) => return Ok(None),
        };
        if let Some(Finding::Trouble(trouble)) = &examined.finding
            && trouble.is_down()
        {
            (self.revive)()?;
            self.stage.reopen()?;
        }
        if !examined.finding.as_ref().is_some_and(|found| alike(found, finding)) {
            return Ok(None);
        }
        let steps: Vec<StepNo> = examined.case.steps.iter().map(|step| step.number).collect();
        Ok(Some((plan.arranged(&steps), examined)))
    }

    /// Takes a proposal if it is good.
    fn accept(
        &mut self,
        best: &mut (Plan, Examined),
        plan: Plan,
        finding: &Finding,
    ) -> Result<bool, Failure> {
        if Instant::now() >= self.deadline {
            return Ok(false);
        }
        match self.attempt(&plan, finding)? {
            Some(smaller) => {
                *best = smaller;
                Ok(true)
            }
            None => Ok(false),
        }
    }

    fn transactions(&mut self, best: &mut (Plan, Examined), finding: &Finding) -> Result<(), Failure> {
        let mut txns: Vec<_> = best.0.steps.iter().map(|step| step.txn).collect();
        txns.sort();
        txns.dedup();
        for txn in txns {
            let mut plan = best.0.clone();
            plan.steps.retain(|step| step.txn != txn);
            self.accept(best, plan, finding)?;
        }
        Ok(())
    }

    fn statements(&mut self, best: &mut (Plan, Examined), finding: &Finding) -> Result<(), Failure> {
        let removable = |act: &PlanAct| {
            use crate::case::Act;
            !matches!(act, PlanAct::Control(Act::Begin | Act::Commit | Act::Rollback))
        };
        let steps: Vec<StepNo> =
            best.0.steps.iter().filter(|step| removable(&step.act)).map(|step| step.number).collect();
        for number in steps.into_iter().rev() {
            let mut plan = best.0.clone();
            plan.steps.retain(|step| step.number != number);
            if plan.steps.len() < best.0.steps.len() {
                self.accept(best, plan, finding)?;
            }
        }
        Ok(())
    }

    fn trees(&mut self, best: &mut (Plan, Examined), finding: &Finding) -> Result<(), Failure> {
        let numbers: Vec<StepNo> = best.0.steps.iter().map(|step| step.number).collect();
        for number in numbers {
            let mut place = 0;
            // After a success the same place is tried again: it holds something new.
            while Instant::now() < self.deadline {
                let Some(step) = best.0.steps.iter().position(|step| step.number == number) else { break };
                let PlanAct::Statement { tree, .. } = &best.0.steps[step].act else { break };
                let proposals = simpler(tree);
                let Some(proposal) = proposals.into_iter().nth(place) else { break };
                let mut plan = best.0.clone();
                if let PlanAct::Statement { tree, .. } = &mut plan.steps[step].act {
                    **tree = proposal;
                }
                if !self.accept(best, plan, finding)? {
                    place += 1;
                }
            }
        }
        Ok(())
    }

    fn rows(&mut self, best: &mut (Plan, Examined), finding: &Finding) -> Result<(), Failure> {
        for table in 0..best.0.tables.len() {
            let mut chunk = best.0.tables[table].rows.len();
            while chunk > 0 {
                let mut start = 0;
                while start < best.0.tables[table].rows.len() {
                    let mut plan = best.0.clone();
                    let rows = &mut plan.tables[table].rows;
                    rows.drain(start..(start + chunk).min(rows.len()));
                    if !self.accept(best, plan, finding)? {
                        start += chunk;
                    }
                    if Instant::now() >= self.deadline {
                        return Ok(());
                    }
                }
                chunk /= 2;
            }
        }
        Ok(())
    }

    fn interleaving(&mut self, best: &mut (Plan, Examined), finding: &Finding) -> Result<(), Failure> {
        for later in [true, false] {
            for place in 0..best.0.steps.len() {
                if place >= best.0.steps.len() {
                    break;
                }
                let proposal = moved(&best.0, place, later);
                if let Some(plan) = proposal.filter(|plan| switches(plan) < switches(&best.0)) {
                    self.accept(best, plan, finding)?;
                }
            }
        }
        Ok(())
    }

    fn schema(&mut self, best: &mut (Plan, Examined), finding: &Finding) -> Result<(), Failure> {
        for view in (0..best.0.views.len()).rev() {
            let mut plan = best.0.clone();
            plan.views.remove(view);
            self.accept(best, plan, finding)?;
        }
        for table in (0..best.0.tables.len()).rev() {
            for index in (0..best.0.tables[table].indexes.len()).rev() {
                let mut plan = best.0.clone();
                plan.tables[table].indexes.remove(index);
                self.accept(best, plan, finding)?;
            }
            for column in (0..best.0.tables[table].columns.len()).rev() {
                let plan = without_column(&best.0, table, column);
                self.accept(best, plan, finding)?;
            }
            let mut plan = best.0.clone();
            plan.tables.remove(table);
            self.accept(best, plan, finding)?;
        }
        Ok(())
    }
}

/// How often the schedule goes from one session to another.
fn switches(plan: &Plan) -> usize {
    plan.steps.windows(2).filter(|pair| pair[0].txn != pair[1].txn).count()
}

/// A step moved next to one of its own session.
fn moved(plan: &Plan, from: usize, later: bool) -> Option<Plan> {
    let txn = plan.steps[from].txn;
    let is_own = |&place: &usize| plan.steps[place].txn == txn;
    let to = match later {
        true => (from + 1..plan.steps.len()).find(is_own)? - 1,
        false => (0..from).rfind(is_own)? + 1,
    };
    let mut plan = plan.clone();
    let step = plan.steps.remove(from);
    plan.steps.insert(to, step);
    Some(plan)
}

/// A column gone from its table, its rows, its indexes, and the INSERTs and UPDATEs that name it.
fn without_column(plan: &Plan, table: usize, column: usize) -> Plan {
    let mut plan = plan.clone();
    let gone = plan.tables[table].columns.remove(column);
    let name = plan.tables[table].name.clone();
    for (_, values) in &mut plan.tables[table].rows {
        values.remove(column);
    }
    plan.tables[table].indexes.retain(|index| !index.columns.contains(&gone.name));
    for step in &mut plan.steps {
        let PlanAct::Statement { tree, .. } = &mut step.act else { continue };
        match &mut **tree {
            Statement::Insert { table, columns, rows, upsert } if *table == name => {
                columns.retain(|column| *column != gone);
                match rows {
                    Rows::Values(rows) => rows.iter_mut().for_each(|(_, values)| drop(values.remove(column))),
                    Rows::Select { values, .. } => drop(values.remove(column)),
                }
                upsert.iter_mut().for_each(|list| list.retain(|(column, _)| *column != gone));
            }
            Statement::Update { table, assignments, .. } if *table == name => {
                assignments.retain(|(column, _)| *column != gone);
            }
            _ => {}
        }
    }
    plan
}

/// How large a plan is: it only ever gets smaller.
fn size(plan: &Plan) -> usize {
    let printer = crate::print::Printer { grammar: PLAIN, lock: None };
    let statement = |act: &PlanAct| match act {
        PlanAct::Statement { tree, .. } => printer.statement(tree, 1).len(),
        PlanAct::Control(_) => 1,
    };
    let schema: usize = plan
        .tables
        .iter()
        .map(|table| 1 + table.columns.len() + table.indexes.len() + table.rows.len())
        .sum();
    let steps: usize = plan.steps.iter().map(|step| statement(&step.act)).sum();
    steps + schema + plan.views.len() + switches(plan)
}

/// Any grammar will do to measure.
const PLAIN: &databases::Grammar = &databases::Grammar::PLAIN;

/// The plainest query of a table: what a statement comes to that only had to look at it.
fn plainest(table: &str) -> Statement {
    let from = Source { relation: Relation::Stored(table.to_owned()), alias: "r".to_owned() };
    let outputs = vec![(Expr::column("r", KEY, Type::Integer), KEY.to_owned())];
    let (joins, group) = (Vec::new(), Vec::new());
    Statement::Select(Query::of(Select {
        distinct: false,
        outputs,
        from,
        joins,
        filter: None,
        group,
        having: None,
    }))
}

/// The plainest queries of the tables that a statement names.
fn plainer(tree: &Statement) -> Vec<Statement> {
    let mut names = Vec::new();
    match tree {
        Statement::Select(query) => query.relations(&mut names),
        Statement::Update { table, .. } | Statement::Delete { table, .. } => names.push(table.clone()),
        Statement::Insert { table, rows, .. } => {
            names.push(table.clone());
            if let Rows::Select { source, .. } = rows {
                names.push(source.clone());
            }
        }
    }
    tree.expressions().into_iter().for_each(|expr| relations_of(expr, &mut names));
    names.sort();
    names.dedup();
    names.iter().map(|name| plainest(name)).filter(|plain| plain != tree).collect()
}

/// Statements that are a little simpler, the boldest first.
fn simpler(tree: &Statement) -> Vec<Statement> {
    if plainer(tree).is_empty() {
        return Vec::new();
    }
    let mut found = plainer(tree);
    match tree {
        Statement::Select(query) => found.extend(simpler_queries(query).into_iter().map(Statement::Select)),
        Statement::Update { table, assignments, filter } => {
            if filter.is_some() {
                found.push(Statement::Update {
                    table: table.clone(),
                    assignments: assignments.clone(),
                    filter: None,
                });
            }
            for place in 0..assignments.len() {
                let mut assignments = assignments.clone();
                assignments.remove(place);
                found.push(Statement::Update { table: table.clone(), assignments, filter: filter.clone() });
            }
        }
        Statement::Delete { table, filter: Some(_) } => {
            found.push(Statement::Delete { table: table.clone(), filter: None });
        }
        Statement::Delete { .. } => {}
        Statement::Insert { table, columns, rows, upsert } => {
            let insert = |rows, upsert| Statement::Insert {
                table: table.clone(),
                columns: columns.clone(),
                rows,
                upsert,
            };
            if upsert.is_some() {
                found.push(insert(rows.clone(), None));
            }
            match rows {
                Rows::Values(list) => {
                    for place in 0..if list.len() > 1 { list.len() } else { 0 } {
                        let mut list = list.clone();
                        list.remove(place);
                        found.push(insert(Rows::Values(list), upsert.clone()));
                    }
                }
                Rows::Select { source, alias, tag, values, filter: Some(_) } => {
                    let rows = Rows::Select {
                        source: source.clone(),
                        alias: alias.clone(),
                        tag: *tag,
                        values: values.clone(),
                        filter: None,
                    };
                    found.push(insert(rows, upsert.clone()));
                }
                Rows::Select { .. } => {}
            }
        }
    }
    found.extend(simpler_expressions(tree));
    found
}

fn simpler_queries(query: &Query) -> Vec<Query> {
    let mut found = Vec::new();
    let mut propose = |change: &dyn Fn(&mut Query)| {
        let mut proposal = query.clone();
        change(&mut proposal);
        if proposal != *query {
            found.push(proposal);
        }
    };
    propose(&|query| {
        if let Some((_, second)) = query.second.take() {
            query.select = *second;
        }
    });
    propose(&|query| query.second = None);
    propose(&|query| query.limit = None);
    propose(&|query| query.order = None);
    propose(&|query| query.lock = None);
    propose(&|query| query.select.filter = None);
    propose(&|query| query.select.having = None);
    propose(&|query| query.select.distinct = false);
    propose(&|query| query.select.joins.clear());
    for place in 0..query.select.joins.len() {
        propose(&|query| drop(query.select.joins.remove(place)));
    }
    for place in 0..if query.select.outputs.len() > 1 { query.select.outputs.len() } else { 0 } {
        propose(&|query| {
            query.select.outputs.remove(place);
            if let Some((_, second)) = &mut query.second
                && second.outputs.len() > place
            {
                second.outputs.remove(place);
            }
        });
    }
    found
}

/// Each expression by one of its parts of the same type, by a constant, or with a simpler query inside.
fn simpler_expressions(tree: &Statement) -> Vec<Statement> {
    let mut expressions: Vec<Expr> = Vec::new();
    let mut copy = tree.clone();
    copy.visit_mut(&mut |expr| {
        expressions.push(expr.clone());
        false
    });
    let mut found = Vec::new();
    for (place, expr) in expressions.iter().enumerate() {
        for proposal in simpler_values(expr) {
            let mut statement = tree.clone();
            let mut at = 0;
            statement.visit_mut(&mut |expr| {
                let is_here = at == place;
                if is_here {
                    *expr = proposal.clone();
                }
                at += 1;
                is_here
            });
            found.push(statement);
        }
    }
    found
}

fn simpler_values(expr: &Expr) -> Vec<Expr> {
    if matches!(expr, Expr::Literal(_)) || *expr == truth() {
        return Vec::new();
    }
    let kind = expr.kind();
    let mut found = vec![constant(kind)];
    found.extend(expr.children().into_iter().filter(|child| child.kind() == kind).cloned());
    if let Some(query) = expr.query() {
        for proposal in simpler_queries(query) {
            let mut expr = expr.clone();
            if let Some(query) = expr.query_mut() {
                *query = proposal;
            }
            found.push(expr);
        }
    }
    found
}

fn constant(kind: Type) -> Expr {
    match kind {
        Type::Integer => Expr::integer(1),
        Type::Real => Expr::Literal(Literal::Quarters(4)),
        Type::Text => Expr::Literal(Literal::Text("a".to_owned())),
        Type::Truth => truth(),
    }
}

/// A condition that always holds.
fn truth() -> Expr {
    Expr::Compare(Comparison::Equal, Box::new(Expr::integer(1)), Box::new(Expr::integer(1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::{Settings, generate};

    #[test]
    fn every_proposal_for_a_statement_is_another_statement() {
        let settings = Settings::default();
        for seed in 0..20 {
            let plan = generate(&settings, PLAIN, Sight::SNAPSHOT, seed, seed);
            for step in &plan.steps {
                let PlanAct::Statement { tree, .. } = &step.act else { continue };
                assert!(simpler(tree).iter().all(|proposal| *proposal != **tree), "seed {seed}: {tree:?}");
            }
        }
    }

    #[test]
    fn queries_keep_an_output() {
        let plan = generate(&Settings::default(), PLAIN, Sight::SNAPSHOT, 3, 3);
        for step in &plan.steps {
            let PlanAct::Statement { tree, .. } = &step.act else { continue };
            let Statement::Select(query) = &**tree else { continue };
            assert!(simpler_queries(query).iter().all(|query| !query.select.outputs.is_empty()));
        }
    }
}
