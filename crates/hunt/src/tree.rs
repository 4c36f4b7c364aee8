//! Statements as trees: typed, so that what is generated is valid and what is reduced stays so.
//!
//! A tree knows no vendor: `print` writes it by a row of the grammar table. Every table has the columns
//! [`KEY`] and [`VERSION`] first (TxCheck, Jiang et al., OSDI 2023, §3.2): the key never changes, the version is new with every write.

/// The column that names a row.
pub const KEY: &str = "pkey";
/// The column that names a row's version.
pub const VERSION: &str = "vkey";

/// The type of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// 64 bits.
    Integer,
    /// Floating point; all values that are stored are small multiples of a quarter, so that sums are exact.
    Real,
    /// Short, in lower case.
    Text,
    /// A condition; no column has it.
    Truth,
}

/// A column of a table, a view or a derived table.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: Type,
}

impl Column {
    /// A column.
    pub fn new(name: impl Into<String>, kind: Type) -> Self {
        Self { name: name.into(), kind }
    }
}

/// A value as it is written.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    /// NULL of a type.
    Null(Type),
    /// An integer.
    Integer(i64),
    /// So many quarters.
    Quarters(i64),
    /// A text.
    Text(String),
}

/// An operator between two values of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Comparison {
    /// `=`
    Equal,
    /// `<>`
    Unequal,
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `>`
    More,
    /// `>=`
    AtLeast,
    /// Equal, and NULL equal to NULL.
    Same,
}

impl Comparison {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Equal, Self::Unequal, Self::Less, Self::AtMost, Self::More, Self::AtLeast, Self::Same];
}

/// An operator between two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Arithmetic {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `%`; the second operand is a positive constant.
    Remainder,
}

/// A function of the values of one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Function {
    /// The first argument that is not NULL.
    Coalesce,
    /// NULL if both are equal, else the first.
    NullIf,
    /// The absolute value.
    Abs,
    /// How many letters a text has.
    Length,
    /// Two texts, one after the other.
    Concat,
    /// A text without the spaces around it.
    Trim,
}

/// A function of many rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Aggregate {
    /// How many values are not NULL.
    Count,
    /// Their sum.
    Sum,
    /// The least.
    Min,
    /// The greatest.
    Max,
    /// Their mean.
    Mean,
}

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// A column of a source in scope.
    Column {
        /// The source's alias, or the table's name in UPDATE and DELETE.
        source: String,
        /// The column.
        column: Column,
    },
    /// A value.
    Literal(Literal),
    /// A comparison.
    Compare(Comparison, Box<Expr>, Box<Expr>),
    /// Arithmetic.
    Arithmetic(Arithmetic, Box<Expr>, Box<Expr>),
    /// Both (true) or either (false).
    Junction(bool, Box<Expr>, Box<Expr>),
    /// Negation.
    Not(Box<Expr>),
    /// `IS NULL`, or `IS NOT NULL` (true).
    IsNull(Box<Expr>, bool),
    /// `BETWEEN`.
    Between(Box<Expr>, Box<Expr>, Box<Expr>),
    /// `IN (…)` over values, or `NOT IN` (true).
    InList(Box<Expr>, Vec<Expr>, bool),
    /// `LIKE` a pattern.
    Like(Box<Expr>, String),
    /// `CASE WHEN … THEN … ELSE … END`.
    Case(Box<Expr>, Box<Expr>, Box<Expr>),
    /// A function.
    Call(Function, Vec<Expr>),
    /// An aggregate; of distinct values only (true).
    Aggregate(Aggregate, Box<Expr>, bool),
    /// `COUNT(*)`.
    CountRows,
    /// An aggregate over the rows of a partition, without collapsing them.
    Window(Aggregate, Box<Expr>, Box<Expr>),
    /// A query of one column and at most one row.
    Scalar(Box<Query>),
    /// `IN` a query of one column, or `NOT IN` (true).
    In(Box<Expr>, Box<Query>, bool),
    /// `EXISTS`, or `NOT EXISTS` (true).
    Exists(Box<Query>, bool),
}

impl Expr {
    /// A column of a source.
    pub fn column(source: &str, name: &str, kind: Type) -> Self {
        Self::Column { source: source.to_owned(), column: Column::new(name, kind) }
    }

    /// An integer.
    pub fn integer(value: i64) -> Self {
        Self::Literal(Literal::Integer(value))
    }

    /// Its type.
    pub fn kind(&self) -> Type {
        match self {
            Self::Column { column, .. } => column.kind,
            Self::Literal(Literal::Null(kind)) => *kind,
            Self::Literal(Literal::Integer(_)) | Self::CountRows => Type::Integer,
            Self::Literal(Literal::Quarters(_)) => Type::Real,
            Self::Literal(Literal::Text(_)) => Type::Text,
            Self::Arithmetic(_, left, _) => left.kind(),
            Self::Case(_, value, _) => value.kind(),
            Self::Call(Function::Length, _) | Self::Aggregate(Aggregate::Count, ..) => Type::Integer,
            Self::Call(Function::Concat | Function::Trim, _) => Type::Text,
            Self::Call(_, arguments) => arguments.first().map_or(Type::Integer, Self::kind),
            Self::Aggregate(Aggregate::Mean, ..) => Type::Real,
            Self::Window(Aggregate::Count, ..) => Type::Integer,
            Self::Window(Aggregate::Mean, ..) => Type::Real,
            Self::Aggregate(_, value, _) | Self::Window(_, value, _) => value.kind(),
            Self::Scalar(query) => query.kind(),
            Self::Compare(..)
            | Self::Junction(..)
            | Self::Not(_)
            | Self::IsNull(..)
            | Self::Between(..)
            | Self::InList(..)
            | Self::Like(..)
            | Self::In(..)
            | Self::Exists(..) => Type::Truth,
        }
    }

    /// The expressions right below it, without those inside queries.
    pub fn children(&self) -> Vec<&Expr> {
        match self {
            Self::Column { .. } | Self::Literal(_) | Self::CountRows => Vec::new(),
            Self::Compare(_, left, right)
            | Self::Arithmetic(_, left, right)
            | Self::Junction(_, left, right)
            | Self::Window(_, left, right) => vec![left, right],
            Self::Not(value)
            | Self::IsNull(value, _)
            | Self::Like(value, _)
            | Self::Aggregate(_, value, _)
            | Self::In(value, ..) => vec![value],
            Self::Between(value, low, high) | Self::Case(value, low, high) => vec![value, low, high],
            Self::InList(value, list, _) => std::iter::once(&**value).chain(list).collect(),
            Self::Call(_, arguments) => arguments.iter().collect(),
            Self::Scalar(_) | Self::Exists(..) => Vec::new(),
        }
    }

    /// The same, to be changed.
    pub fn children_mut(&mut self) -> Vec<&mut Expr> {
        match self {
            Self::Column { .. } | Self::Literal(_) | Self::CountRows => Vec::new(),
            Self::Compare(_, left, right)
            | Self::Arithmetic(_, left, right)
            | Self::Junction(_, left, right)
            | Self::Window(_, left, right) => vec![left, right],
            Self::Not(value)
            | Self::IsNull(value, _)
            | Self::Like(value, _)
            | Self::Aggregate(_, value, _)
            | Self::In(value, ..) => vec![value],
            Self::Between(value, low, high) | Self::Case(value, low, high) => vec![value, low, high],
            Self::InList(value, list, _) => std::iter::once(&mut **value).chain(list).collect(),
            Self::Call(_, arguments) => arguments.iter_mut().collect(),
            Self::Scalar(_) | Self::Exists(..) => Vec::new(),
        }
    }

    /// The query right below it.
    pub fn query(&self) -> Option<&Query> {
        match self {
            Self::Scalar(query) | Self::In(_, query, _) | Self::Exists(query, _) => Some(query),
            _ => None,
        }
    }

    /// The same, to be changed.
    pub fn query_mut(&mut self) -> Option<&mut Query> {
        match self {
            Self::Scalar(query) | Self::In(_, query, _) | Self::Exists(query, _) => Some(query),
            _ => None,
        }
    }
}

/// How the rows of two selects are put together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SetOperator {
    /// All of both.
    UnionAll,
    /// The distinct rows of both.
    Union,
    /// What both have.
    Intersect,
    /// What only the first has.
    Except,
}

/// A query.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    /// Named queries before it.
    pub with: Vec<(String, Query)>,
    /// The first select.
    pub select: Select,
    /// A second one, put together with the first.
    pub second: Option<(SetOperator, Box<Select>)>,
    /// `ORDER BY` the key of this source, descending (true).
    pub order: Option<(String, bool)>,
    /// `LIMIT`; only with an order, so that the answer is determined.
    pub limit: Option<u64>,
    /// Whether what is found gets locked.
    pub lock: Option<Lock>,
}

/// The lock of a locking read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lock {
    /// Against writers.
    Share,
    /// Against everybody who locks.
    Update,
}

impl Query {
    /// A query of one select.
    pub fn of(select: Select) -> Self {
        Self { with: Vec::new(), select, second: None, order: None, limit: None, lock: None }
    }

    /// The type of its first column.
    pub fn kind(&self) -> Type {
        self.select.outputs.first().map_or(Type::Integer, |(expr, _)| expr.kind())
    }

    /// The names of every table and view that it reads, not those of its own named queries.
    pub fn relations(&self, found: &mut Vec<String>) {
        for (_, query) in &self.with {
            query.relations(found);
        }
        for select in std::iter::once(&self.select).chain(self.second.iter().map(|(_, select)| &**select)) {
            select.relations(found);
        }
    }
}

/// A select.
#[derive(Clone, Debug, PartialEq)]
pub struct Select {
    /// `DISTINCT`.
    pub distinct: bool,
    /// What it shows, with names.
    pub outputs: Vec<(Expr, String)>,
    /// The first source.
    pub from: Source,
    /// Further sources.
    pub joins: Vec<(Join, Source, Expr)>,
    /// `WHERE`.
    pub filter: Option<Expr>,
    /// `GROUP BY`, columns only.
    pub group: Vec<Expr>,
    /// `HAVING`.
    pub having: Option<Expr>,
}

impl Select {
    fn relations(&self, found: &mut Vec<String>) {
        for source in std::iter::once(&self.from).chain(self.joins.iter().map(|(_, source, _)| source)) {
            match &source.relation {
                Relation::Stored(name) => found.push(name.clone()),
                Relation::Named(_) => {}
                Relation::Derived(query) => query.relations(found),
            }
        }
        for expr in self.expressions() {
            relations_of(expr, found);
        }
    }

    /// Every expression right in it.
    pub fn expressions(&self) -> Vec<&Expr> {
        let outputs = self.outputs.iter().map(|(expr, _)| expr);
        let joins = self.joins.iter().map(|(_, _, on)| on);
        outputs.chain(joins).chain(&self.filter).chain(&self.group).chain(&self.having).collect()
    }
}

/// The names of the tables and views that the queries inside an expression read.
pub fn relations_of(expr: &Expr, found: &mut Vec<String>) {
    let mut open = vec![expr];
    while let Some(expr) = open.pop() {
        open.extend(expr.children());
        if let Some(query) = expr.query() {
            query.relations(found);
        }
    }
}

/// How a source is joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Join {
    /// Pairs that fit.
    Inner,
    /// Those, and the rows of the left side that fit nothing.
    Left,
}

/// Something to select from.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    /// What it is.
    pub relation: Relation,
    /// What it is called here.
    pub alias: String,
}

/// What a source is.
#[derive(Clone, Debug, PartialEq)]
pub enum Relation {
    /// A table or view.
    Stored(String),
    /// A named query of the `WITH` before.
    Named(String),
    /// A query in place.
    Derived(Box<Query>),
}

/// A statement inside a transaction.
#[derive(Clone, Debug, PartialEq)]
pub enum Statement {
    /// A query.
    Select(Query),
    /// New rows; each begins with its key.
    Insert {
        /// The table.
        table: String,
        /// The columns after key and version.
        columns: Vec<Column>,
        /// Where the rows come from.
        rows: Rows,
        /// What is assigned instead where the key is there already.
        upsert: Option<Vec<(Column, Expr)>>,
    },
    /// New versions of rows.
    Update {
        /// The table.
        table: String,
        /// The new values beside the version.
        assignments: Vec<(Column, Expr)>,
        /// `WHERE`.
        filter: Option<Expr>,
    },
    /// The end of rows.
    Delete {
        /// The table.
        table: String,
        /// `WHERE`.
        filter: Option<Expr>,
    },
}

/// Where the rows of an INSERT come from.
#[derive(Clone, Debug, PartialEq)]
pub enum Rows {
    /// They are written out: a key and the values of the columns.
    Values(Vec<(i64, Vec<Expr>)>),
    /// One for each row of a source, under the key `source.key * KEY_STEP + tag`: keys that nobody else makes.
    Select {
        /// The source's table.
        source: String,
        /// Its alias.
        alias: String,
        /// What tells this statement's keys from those of others.
        tag: i64,
        /// The values of the columns.
        values: Vec<Expr>,
        /// `WHERE`.
        filter: Option<Expr>,
    },
}

/// Keys that are written out are multiples of this; see [`Rows::Select`].
pub const KEY_STEP: i64 = 128;

impl Statement {
    /// The expressions right in it, not those inside queries.
    pub fn expressions(&self) -> Vec<&Expr> {
        match self {
            Self::Select(_) => Vec::new(),
            Self::Update { assignments, filter, .. } => {
                assignments.iter().map(|(_, value)| value).chain(filter).collect()
            }
            Self::Delete { filter, .. } => filter.iter().collect(),
            Self::Insert { rows, upsert, .. } => {
                let overwriting = upsert.iter().flatten().map(|(_, value)| value);
                match rows {
                    Rows::Values(rows) => {
                        rows.iter().flat_map(|(_, values)| values).chain(overwriting).collect()
                    }
                    Rows::Select { values, filter, .. } => {
                        values.iter().chain(filter).chain(overwriting).collect()
                    }
                }
            }
        }
    }

    /// Shows every expression in it to `change`, from the outside in, those inside queries included; stops when
    /// `change` says that it is done.
    pub fn visit_mut(&mut self, change: &mut dyn FnMut(&mut Expr) -> bool) -> bool {
        match self {
            Self::Select(query) => query.visit_mut(change),
            Self::Update { assignments, filter, .. } => assignments
                .iter_mut()
                .map(|(_, value)| value)
                .chain(filter)
                .any(|expr| expr.visit_mut(change)),
            Self::Delete { filter, .. } => filter.iter_mut().any(|expr| expr.visit_mut(change)),
            Self::Insert { rows, upsert, .. } => {
                let in_rows = match rows {
                    Rows::Values(rows) => {
                        rows.iter_mut().flat_map(|(_, values)| values).any(|expr| expr.visit_mut(change))
                    }
                    Rows::Select { values, filter, .. } => {
                        values.iter_mut().chain(filter).any(|expr| expr.visit_mut(change))
                    }
                };
                in_rows || upsert.iter_mut().flatten().any(|(_, value)| value.visit_mut(change))
            }
        }
    }
}

impl Expr {
    /// See [`Statement::visit_mut`].
    fn visit_mut(&mut self, change: &mut dyn FnMut(&mut Expr) -> bool) -> bool {
        change(self)
            || self.query_mut().is_some_and(|query| query.visit_mut(change))
            || self.children_mut().into_iter().any(|child| child.visit_mut(change))
    }
}

impl Query {
    /// See [`Statement::visit_mut`].
    fn visit_mut(&mut self, change: &mut dyn FnMut(&mut Expr) -> bool) -> bool {
        if self.with.iter_mut().any(|(_, query)| query.visit_mut(change)) {
            return true;
        }
        let second = self.second.as_mut().map(|(_, select)| &mut **select);
        std::iter::once(&mut self.select).chain(second).any(|select| select.visit_mut(change))
    }
}

impl Select {
    fn visit_mut(&mut self, change: &mut dyn FnMut(&mut Expr) -> bool) -> bool {
        let sources =
            std::iter::once(&mut self.from).chain(self.joins.iter_mut().map(|(_, source, _)| source));
        for source in sources {
            if let Relation::Derived(query) = &mut source.relation
                && query.visit_mut(change)
            {
                return true;
            }
        }
        let outputs = self.outputs.iter_mut().map(|(expr, _)| expr);
        let joins = self.joins.iter_mut().map(|(_, _, on)| on);
        outputs
            .chain(joins)
            .chain(&mut self.filter)
            .chain(&mut self.group)
            .chain(&mut self.having)
            .any(|expr| expr.visit_mut(change))
    }
}
