//! Queries: joins, sub-queries, aggregates, set operators, named queries, windows.

use super::{Generator, InScope};
use crate::plan::through_views;
use crate::tree::{
    Aggregate, Column, Comparison, Expr, Join, KEY, Lock, Query, Relation, Select, SetOperator, Source,
    Statement, Type, VERSION,
};

impl Generator<'_> {
    /// Something to select from: a table, a view, or (above depth 0) a query in place.
    fn source(&mut self, depth: u32) -> (Source, InScope) {
        let alias = self.alias();
        if depth > 0 && self.one_in(8) {
            let query = self.derived(depth - 1);
            let columns = columns_of(&query);
            let source = Source { relation: Relation::Derived(Box::new(query)), alias: alias.clone() };
            return (source, InScope { alias, columns });
        }
        let (name, columns) = self.stored_relation();
        let source = Source { relation: Relation::Stored(name), alias: alias.clone() };
        (source, InScope { alias, columns })
    }

    /// A table or view that may be read here.
    fn stored_relation(&mut self) -> (String, Vec<Column>) {
        let forbidden = self.forbidden.clone();
        let views: Vec<(String, Vec<Column>)> = self
            .views
            .iter()
            .filter(|view| {
                let mut names = Vec::new();
                view.query.relations(&mut names);
                through_views(&self.views, &mut names);
                !forbidden.as_ref().is_some_and(|table| names.contains(table))
            })
            .map(|view| (view.name.clone(), columns_of(&view.query)))
            .collect();
        if !views.is_empty() && !self.no_views && self.one_in(6) {
            return self.pick(&views).cloned().expect("there are some");
        }
        let tables: Vec<(String, Vec<Column>)> = self
            .tables
            .iter()
            .filter(|table| forbidden.as_ref() != Some(&table.name))
            .map(|table| (table.name.clone(), self.in_scope(table, "").columns))
            .collect();
        match self.pick(&tables) {
            Some(table) => table.clone(),
            // The only table is the forbidden one: a table of no interest stands in.
            None => (ONE_ROW.to_owned(), vec![Column::new("one", Type::Integer)]),
        }
    }

    /// A query of the whole statement.
    pub(super) fn top_query(&mut self) -> Query {
        let depth = self.settings.depth;
        match self.random.below(10) {
            0 => self.grouped(&[], depth),
            1 => self.united(depth),
            2 if self.grammar.with => self.named(depth),
            3 => self.limited(depth),
            4 if self.grammar.windows => self.windowed(depth),
            5 => self.totals(&[], depth),
            _ => self.rows_query(depth),
        }
    }

    /// Rows of one source with key and version first, and perhaps of others joined to it.
    fn rows_query(&mut self, depth: u32) -> Query {
        let (from, first) = self.table_source();
        let mut scope = vec![first.clone()];
        let joins = (0..self.joins()).map(|_| self.join(&mut scope, depth)).collect();
        let mut outputs = vec![
            (Expr::column(&first.alias, KEY, Type::Integer), KEY.to_owned()),
            (Expr::column(&first.alias, VERSION, Type::Integer), VERSION.to_owned()),
        ];
        for number in 0..self.random.between(1, 3) {
            let kind = self.column_type();
            outputs.push((self.value(kind, &scope, depth.min(2)), format!("o{number}")));
        }
        let filter = (!self.one_in(5)).then(|| self.condition(&scope, depth));
        let distinct = self.one_in(8);
        Query::of(Select { distinct, outputs, from, joins, filter, group: Vec::new(), having: None })
    }

    fn joins(&mut self) -> u64 {
        [0, 0, 0, 1, 1, 2][usize::try_from(self.random.below(6)).unwrap_or(0)]
    }

    fn join(&mut self, scope: &mut Vec<InScope>, depth: u32) -> (Join, Source, Expr) {
        let (source, joined) = self.source(depth.saturating_sub(1));
        let before = scope.clone();
        scope.push(joined.clone());
        let kind = joined.columns.first().map_or(Type::Integer, |column| column.kind);
        let (left, right) = (self.leaf(kind, &before), self.leaf(kind, &[joined]));
        let on = match self.one_in(3) {
            true => self.condition(scope, depth.min(1)),
            false => Expr::Compare(Comparison::Equal, Box::new(left), Box::new(right)),
        };
        (if self.one_in(3) { Join::Left } else { Join::Inner }, source, on)
    }

    fn table_source(&mut self) -> (Source, InScope) {
        let table = self.table();
        let alias = self.alias();
        let source = Source { relation: Relation::Stored(table.name.clone()), alias: alias.clone() };
        let scope = self.in_scope(&table, &alias);
        (source, scope)
    }

    /// Rows in the order of their keys, some of them.
    fn limited(&mut self, depth: u32) -> Query {
        let mut query = self.rows_query(depth);
        query.select.joins.clear();
        query.select.distinct = false;
        let scope = self.scope_of(&query.select.from);
        query.select.outputs.truncate(2);
        query.select.outputs.push((self.any_column(&scope), "o0".to_owned()));
        query.select.filter = (!self.one_in(3)).then(|| self.condition(&scope, depth));
        query.order = Some((query.select.from.alias.clone(), self.one_in(2)));
        query.limit = Some(self.random.between(1, 5));
        query
    }

    fn scope_of(&self, source: &Source) -> Vec<InScope> {
        let Relation::Stored(name) = &source.relation else { return Vec::new() };
        let table = self.tables.iter().find(|table| table.name == *name);
        table.map(|table| self.in_scope(table, &source.alias)).into_iter().collect()
    }

    fn any_column(&mut self, scope: &[InScope]) -> Expr {
        let columns: Vec<Expr> = scope
            .iter()
            .flat_map(|source| {
                let columns = source.columns.iter().cloned();
                columns.map(|column| Expr::Column { source: source.alias.clone(), column })
            })
            .collect();
        self.pick(&columns).cloned().unwrap_or(Expr::integer(1))
    }

    pub(super) fn locking_read(&mut self) -> Statement {
        let mut query = self.limited(self.settings.depth.min(2));
        query.limit = None;
        query.order = None;
        // What sub-queries look at in a locking read differs between databases.
        let scope = self.scope_of(&query.select.from);
        query.select.filter = Some(self.condition(&scope, 0));
        query.lock = Some(if self.one_in(2) { Lock::Share } else { Lock::Update });
        Statement::Select(query)
    }

    /// Groups with aggregates.
    fn grouped(&mut self, outer: &[InScope], depth: u32) -> Query {
        let (from, first) = self.source(depth);
        let mut scope = vec![first];
        let joins = (0..self.joins().min(1)).map(|_| self.join(&mut scope, 0)).collect();
        let group = vec![self.any_column(&scope)];
        let mut outputs = vec![(group[0].clone(), "g".to_owned())];
        for number in 0..self.random.between(1, 2) {
            outputs.push((self.aggregate(&scope), format!("o{number}")));
        }
        let visible: Vec<InScope> = scope.iter().chain(outer).cloned().collect();
        let filter = self.one_in(2).then(|| self.condition(&visible, depth.min(2)));
        let having = self.one_in(3).then(|| {
            let least = Expr::integer(i64::try_from(self.random.below(3)).unwrap_or(0));
            Expr::Compare(Comparison::AtLeast, Box::new(Expr::CountRows), Box::new(least))
        });
        let group = group.into_iter().filter(|expr| matches!(expr, Expr::Column { .. })).collect();
        Query::of(Select { distinct: false, outputs, from, joins, filter, group, having })
    }

    /// Aggregates of everything.
    fn totals(&mut self, outer: &[InScope], depth: u32) -> Query {
        let mut query = self.grouped(outer, depth);
        query.select.group.clear();
        query.select.outputs.remove(0);
        query
    }

    fn aggregate(&mut self, scope: &[InScope]) -> Expr {
        let value = self.any_column(scope);
        let aggregate = match (self.random.below(5), value.kind()) {
            (0, _) => return Expr::CountRows,
            (1, _) => Aggregate::Count,
            (2, Type::Integer | Type::Real) => Aggregate::Sum,
            (3, Type::Integer | Type::Real) => Aggregate::Mean,
            (4, _) => Aggregate::Max,
            _ => Aggregate::Min,
        };
        Expr::Aggregate(aggregate, Box::new(value), self.one_in(5))
    }

    /// Two selects of the same types, put together.
    fn united(&mut self, depth: u32) -> Query {
        let kinds = [self.column_type(), self.column_type()];
        let operator = match self.random.below(5) {
            0 if self.grammar.intersect => SetOperator::Intersect,
            1 if self.grammar.intersect => SetOperator::Except,
            2 => SetOperator::Union,
            _ => SetOperator::UnionAll,
        };
        let mut query = self.typed(&kinds, &[], depth);
        query.second = Some((operator, Box::new(self.typed(&kinds, &[], depth).select)));
        query
    }

    /// A select of columns of given types.
    fn typed(&mut self, kinds: &[Type], outer: &[InScope], depth: u32) -> Query {
        let (from, first) = self.source(depth);
        let scope: Vec<InScope> = std::iter::once(first.clone()).chain(outer.iter().cloned()).collect();
        let local = std::slice::from_ref(&first);
        let outputs = kinds
            .iter()
            .enumerate()
            .map(|(number, kind)| (self.leaf(*kind, local), format!("o{number}")))
            .collect();
        let filter = (!self.one_in(4)).then(|| self.condition(&scope, depth));
        Query::of(Select {
            distinct: self.one_in(5),
            outputs,
            from,
            joins: Vec::new(),
            filter,
            group: Vec::new(),
            having: None,
        })
    }

    /// A query with a named query before it.
    fn named(&mut self, depth: u32) -> Query {
        let inner = self.derived(depth.min(2));
        let columns = columns_of(&inner);
        let (name, alias) = (format!("w{}", self.aliases), self.alias());
        let scope = [InScope { alias: alias.clone(), columns }];
        let outputs = (0..2).map(|number| (self.any_column(&scope), format!("o{number}"))).collect();
        let filter = Some(self.condition(&scope, depth.min(2)));
        let from = Source { relation: Relation::Named(name.clone()), alias };
        let select = Select {
            distinct: self.one_in(4),
            outputs,
            from,
            joins: Vec::new(),
            filter,
            group: Vec::new(),
            having: None,
        };
        Query { with: vec![(name, inner)], ..Query::of(select) }
    }

    /// Rows with an aggregate of their partition.
    fn windowed(&mut self, depth: u32) -> Query {
        let mut query = self.rows_query(depth.min(2));
        query.select.joins.clear();
        query.select.distinct = false;
        let scope = self.scope_of(&query.select.from);
        query.select.outputs.truncate(2);
        let (value, partition) = (self.any_column(&scope), self.any_column(&scope));
        let aggregate = match (self.random.below(3), value.kind()) {
            (0, Type::Integer) => Aggregate::Sum,
            (1, _) => Aggregate::Count,
            _ => Aggregate::Max,
        };
        let window = Expr::Window(aggregate, Box::new(value), Box::new(partition));
        query.select.outputs.push((window, "o0".to_owned()));
        query.select.filter = self.one_in(2).then(|| self.condition(&scope, depth.min(2)));
        query
    }

    /// A query to stand in a FROM.
    fn derived(&mut self, depth: u32) -> Query {
        if self.one_in(3) {
            return self.grouped(&[], depth);
        }
        let kinds = [self.column_type(), self.column_type()];
        self.typed(&kinds, &[], depth)
    }

    /// The query of a view: rows of one table, or groups.
    pub(super) fn view_query(&mut self) -> Query {
        if self.one_in(3) {
            return self.grouped(&[], 0);
        }
        let mut query = self.limited(1);
        query.limit = None;
        query.order = None;
        query
    }

    /// At most one value of a type: an aggregate, or the value at the least key.
    pub(super) fn scalar(&mut self, kind: Type, outer: &[InScope], depth: u32) -> Expr {
        let depth = depth.saturating_sub(1);
        let (from, first) = self.source(depth);
        let local = std::slice::from_ref(&first);
        let scope: Vec<InScope> = local.iter().chain(outer).cloned().collect();
        let column = first.columns.iter().find(|column| column.kind == kind).cloned();
        let filter = (!self.one_in(4)).then(|| self.condition(&scope, depth));
        let value = match column {
            Some(column) => {
                let value = Expr::Column { source: first.alias.clone(), column };
                let aggregate = if self.one_in(2) { Aggregate::Min } else { Aggregate::Max };
                Expr::Aggregate(aggregate, Box::new(value), false)
            }
            None if kind == Type::Integer => Expr::CountRows,
            None => {
                let (least, value) = (Expr::CountRows, Expr::Literal(self.literal(kind)));
                let when = Expr::Compare(Comparison::More, Box::new(least), Box::new(Expr::integer(1)));
                let otherwise = Expr::Literal(self.literal(kind));
                Expr::Case(Box::new(when), Box::new(value), Box::new(otherwise))
            }
        };
        let mut query = Query::of(Select {
            distinct: false,
            outputs: vec![(value, "o0".to_owned())],
            from,
            joins: Vec::new(),
            filter,
            group: Vec::new(),
            having: None,
        });
        let has_key = first.columns.iter().any(|column| column.name == KEY);
        let is_table = matches!(query.select.from.relation, Relation::Stored(_));
        if has_key
            && is_table
            && self.one_in(4)
            && let Some((Expr::Aggregate(_, value, _), _)) = query.select.outputs.first().cloned()
        {
            query.select.outputs = vec![(*value, "o0".to_owned())];
            query.order = Some((first.alias, self.one_in(2)));
            query.limit = Some(1);
        }
        Expr::Scalar(Box::new(query))
    }

    pub(super) fn exists_query(&mut self, outer: &[InScope], depth: u32) -> Query {
        self.typed(&[Type::Integer], outer, depth.saturating_sub(1))
    }

    pub(super) fn in_query(&mut self, kind: Type, outer: &[InScope], depth: u32) -> Query {
        self.typed(&[kind], outer, depth.saturating_sub(1))
    }
}

/// A relation of one row that is no table of the case.
const ONE_ROW: &str = "(SELECT 1 AS one)";

fn columns_of(query: &Query) -> Vec<Column> {
    query.select.outputs.iter().map(|(expr, name)| Column::new(name.clone(), expr.kind())).collect()
}
