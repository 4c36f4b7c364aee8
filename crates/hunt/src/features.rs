//! Which parts of SQL a statement uses: for the report on coverage, and for the signature of a finding.

use crate::plan::{Plan, PlanAct};
use crate::tree::{Aggregate, Expr, Function, Join, Query, Relation, Rows, Select, SetOperator, Statement};
use std::collections::BTreeSet;

/// Every part that is told apart.
pub const FEATURES: [&str; 38] = [
    "select",
    "insert",
    "update",
    "delete",
    "insert-select",
    "upsert",
    "locking-read",
    "view",
    "derived-table",
    "with",
    "inner-join",
    "left-join",
    "distinct",
    "group-by",
    "having",
    "order-limit",
    "union",
    "union-all",
    "intersect",
    "except",
    "window",
    "scalar-subquery",
    "in-subquery",
    "exists",
    "count",
    "sum",
    "min-max",
    "mean",
    "case",
    "coalesce",
    "nullif",
    "arithmetic",
    "text-function",
    "like",
    "between",
    "in-list",
    "is-null",
    "null",
];

/// The parts of SQL that a statement uses.
pub fn features(statement: &Statement, plan: &Plan) -> BTreeSet<&'static str> {
    let mut seen = Seen { found: BTreeSet::new(), plan };
    match statement {
        Statement::Select(query) => {
            seen.add("select");
            seen.query(query);
        }
        Statement::Insert { rows, upsert, .. } => {
            seen.add("insert");
            if matches!(rows, Rows::Select { .. }) {
                seen.add("insert-select");
            }
            if upsert.is_some() {
                seen.add("upsert");
            }
        }
        Statement::Update { .. } => seen.add("update"),
        Statement::Delete { .. } => seen.add("delete"),
    }
    statement.expressions().into_iter().for_each(|expr| seen.expr(expr));
    seen.found
}

/// What tells one bug from another once its case is as small as can be: the parts of SQL of each statement that is
/// left, whatever their order.
pub(crate) fn shape(plan: &Plan) -> String {
    let mut statements: Vec<String> = plan
        .steps
        .iter()
        .filter_map(|step| match &step.act {
            PlanAct::Statement { tree, shared, .. } => {
                let parts: Vec<&str> = features(tree, plan).into_iter().collect();
                Some(format!("{}{}", parts.join("+"), if *shared { "+equal" } else { "" }))
            }
            PlanAct::Control(_) => None,
        })
        .collect();
    statements.sort();
    statements.dedup();
    statements.join(", ")
}

struct Seen<'p> {
    found: BTreeSet<&'static str>,
    plan: &'p Plan,
}

impl Seen<'_> {
    fn add(&mut self, feature: &'static str) {
        debug_assert!(FEATURES.contains(&feature), "{feature} is listed");
        self.found.insert(feature);
    }

    fn query(&mut self, query: &Query) {
        if !query.with.is_empty() {
            self.add("with");
        }
        query.with.iter().for_each(|(_, query)| self.query(query));
        if query.limit.is_some() {
            self.add("order-limit");
        }
        if query.lock.is_some() {
            self.add("locking-read");
        }
        self.select(&query.select);
        if let Some((operator, second)) = &query.second {
            self.add(match operator {
                SetOperator::Union => "union",
                SetOperator::UnionAll => "union-all",
                SetOperator::Intersect => "intersect",
                SetOperator::Except => "except",
            });
            self.select(second);
        }
    }

    fn select(&mut self, select: &Select) {
        for source in std::iter::once(&select.from).chain(select.joins.iter().map(|(_, source, _)| source)) {
            match &source.relation {
                Relation::Stored(name) if self.plan.views.iter().any(|view| view.name == *name) => {
                    self.add("view");
                }
                Relation::Derived(query) => {
                    self.add("derived-table");
                    self.query(query);
                }
                Relation::Stored(_) | Relation::Named(_) => {}
            }
        }
        for (join, _, _) in &select.joins {
            self.add(match join {
                Join::Inner => "inner-join",
                Join::Left => "left-join",
            });
        }
        if select.distinct {
            self.add("distinct");
        }
        if !select.group.is_empty() {
            self.add("group-by");
        }
        if select.having.is_some() {
            self.add("having");
        }
        select.expressions().into_iter().for_each(|expr| self.expr(expr));
    }

    fn expr(&mut self, expr: &Expr) {
        match expr {
            Expr::Literal(crate::tree::Literal::Null(_)) => self.add("null"),
            Expr::Arithmetic(..) | Expr::Call(Function::Abs, _) => self.add("arithmetic"),
            Expr::IsNull(..) => self.add("is-null"),
            Expr::Between(..) => self.add("between"),
            Expr::InList(..) => self.add("in-list"),
            Expr::Like(..) => self.add("like"),
            Expr::Case(..) => self.add("case"),
            Expr::Call(Function::Coalesce, _) => self.add("coalesce"),
            Expr::Call(Function::NullIf, _) => self.add("nullif"),
            Expr::Call(..) => self.add("text-function"),
            Expr::CountRows | Expr::Aggregate(Aggregate::Count, ..) => self.add("count"),
            Expr::Aggregate(Aggregate::Sum, ..) => self.add("sum"),
            Expr::Aggregate(Aggregate::Mean, ..) => self.add("mean"),
            Expr::Aggregate(..) => self.add("min-max"),
            Expr::Window(..) => self.add("window"),
            Expr::Scalar(_) => self.add("scalar-subquery"),
            Expr::In(..) => self.add("in-subquery"),
            Expr::Exists(..) => self.add("exists"),
            Expr::Column { .. }
            | Expr::Literal(_)
            | Expr::Compare(..)
            | Expr::Junction(..)
            | Expr::Not(_) => {}
        }
        expr.children().into_iter().for_each(|child| self.expr(child));
        if let Some(query) = expr.query() {
            self.query(query);
        }
    }
}
