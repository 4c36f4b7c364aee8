//! Random test cases: typed, aware of the schema, the same for the same seed.
//!
//! What a case is made of:
//!
//! 1. tables with a key, a version and columns of random types; indexes (some of several columns, unique, partial);
//!    views;
//! 2. rows, with NULLs among their values;
//! 3. transactions: statements, savepoints and returns to them, some that roll back;
//! 4. an order of submission in which transactions overlap, sometimes little and sometimes much: databases that let
//!    one writer in at a time need the first, databases with locks the second.
//!
//! What is generated is determined whatever order a database visits rows in: a LIMIT has an order by key, values are
//! exact under addition, new keys come from old keys.

mod expressions;
mod queries;

use crate::case::{Act, StepNo, TxnNo};
use crate::plan::{IndexPlan, Plan, PlanAct, PlanStep, TablePlan, ViewPlan};
use crate::tree::{Column, Expr, KEY, KEY_STEP, Literal, Rows, Statement, Type, VERSION};
use databases::{Grammar, Sight};
use workload::Random;

/// How many views a schema has at most.
const VIEWS_MAX: u64 = 2;

/// Statements that take away what cases with so many tables leave in a database. Later views may read earlier ones.
pub fn leftovers(tables: u32) -> Vec<String> {
    let views = (0..VIEWS_MAX).rev().map(|number| format!("DROP VIEW IF EXISTS huntv{number}"));
    views.chain((0..tables).map(|number| format!("DROP TABLE IF EXISTS hunt{number}"))).collect()
}

/// How a case is made.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Transactions of a case.
    pub transactions: u32,
    /// Statements of a transaction.
    pub statements: u32,
    /// Tables, at most.
    pub tables: u32,
    /// Rows of a table at the start, at most.
    pub rows: u32,
    /// How deep expressions and sub-queries go.
    pub depth: u32,
    /// What is chosen how often.
    pub weights: Weights,
}

impl Default for Settings {
    fn default() -> Self {
        Self { transactions: 4, statements: 5, tables: 3, rows: 10, depth: 3, weights: Weights::default() }
    }
}

/// Something the generator chooses, by weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Choice {
    /// A statement that is a query.
    Select,
    /// A query that locks what it finds.
    LockingRead,
    /// An INSERT of values.
    Insert,
    /// An INSERT from a query.
    InsertSelect,
    /// An INSERT that overwrites.
    Upsert,
    /// An UPDATE.
    Update,
    /// An UPDATE to the very values of another one.
    EqualUpdate,
    /// A DELETE.
    Delete,
    /// A savepoint, and perhaps a return to it.
    Savepoint,
    /// Of a hundred transactions, so many roll back.
    Rollback,
}

impl Choice {
    /// All of them with their names and their weights unless told otherwise.
    pub const ALL: [(Self, &'static str, u64); 10] = [
        (Self::Select, "select", 40),
        (Self::LockingRead, "locking-read", 5),
        (Self::Insert, "insert", 10),
        (Self::InsertSelect, "insert-select", 5),
        (Self::Upsert, "upsert", 5),
        (Self::Update, "update", 25),
        (Self::EqualUpdate, "equal-update", 12),
        (Self::Delete, "delete", 8),
        (Self::Savepoint, "savepoint", 4),
        (Self::Rollback, "rollback", 10),
    ];
}

/// How often each [`Choice`] is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Weights([u64; Choice::ALL.len()]);

impl Default for Weights {
    fn default() -> Self {
        Self(Choice::ALL.map(|(_, _, weight)| weight))
    }
}

impl Weights {
    /// Changes the weight of a choice; false if there is no such choice.
    pub fn set(&mut self, name: &str, weight: u64) -> bool {
        let place = Choice::ALL.iter().position(|(_, known, _)| *known == name);
        if let Some(place) = place {
            self.0[place] = weight;
        }
        place.is_some()
    }

    fn of(&self, choice: Choice) -> u64 {
        Choice::ALL.iter().position(|(known, ..)| *known == choice).map_or(0, |place| self.0[place])
    }

    /// One of `choices`, by weight.
    fn draw(&self, choices: &[Choice], random: &mut Random) -> Choice {
        let total: u64 = choices.iter().map(|choice| self.of(*choice)).sum();
        let mut left = random.below(total);
        for choice in choices {
            match left.checked_sub(self.of(*choice)) {
                Some(rest) => left = rest,
                None => return *choice,
            }
        }
        choices.first().copied().unwrap_or(Choice::Select)
    }
}

/// The case of a seed, on the schema of another: making tables costs more than executing a case, so that cases
/// share schemas.
pub fn generate(
    settings: &Settings,
    grammar: &'static Grammar,
    sight: Sight,
    schema: u64,
    seed: u64,
) -> Plan {
    let mut generator = Generator::new(settings, grammar, sight, schema);
    generator.tables();
    generator.views();
    generator.random = Random::stream(seed, schema);
    generator.rows();
    let scripts: Vec<Vec<PlanAct>> = (0..settings.transactions).map(|_| generator.transaction()).collect();
    let steps = generator.interleave(scripts);
    Plan { tables: generator.tables, views: generator.views, steps }
}

/// A source that expressions may refer to.
#[derive(Clone, Debug)]
struct InScope {
    alias: String,
    columns: Vec<Column>,
}

/// An UPDATE to constants.
#[derive(Clone, Debug)]
struct ConstantUpdate {
    table: String,
    assignments: Vec<(Column, Expr)>,
    version: i64,
}

struct Generator<'s> {
    settings: &'s Settings,
    grammar: &'static Grammar,
    sight: Sight,
    random: Random,
    tables: Vec<TablePlan>,
    views: Vec<ViewPlan>,
    /// The next alias, key, version and tag.
    aliases: u32,
    keys: i64,
    versions: i64,
    tags: i64,
    savepoints: u32,
    /// Updates to constants, for others to repeat.
    constant_updates: Vec<ConstantUpdate>,
    /// The table that sub-queries must not read now.
    forbidden: Option<String>,
    /// Whether they may read views now.
    no_views: bool,
}

/// Rows from queries multiply; so many statements of a case may do that.
const TAGS_MAX: i64 = 4;

impl<'s> Generator<'s> {
    fn new(settings: &'s Settings, grammar: &'static Grammar, sight: Sight, seed: u64) -> Self {
        Self {
            settings,
            grammar,
            sight,
            random: Random::new(seed),
            tables: Vec::new(),
            views: Vec::new(),
            aliases: 0,
            keys: 0,
            versions: 0,
            tags: 0,
            savepoints: 0,
            constant_updates: Vec::new(),
            forbidden: None,
            no_views: false,
        }
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.random.below(count) == 0
    }

    fn pick<'a, T>(&mut self, all: &'a [T]) -> Option<&'a T> {
        all.get(usize::try_from(self.random.below(all.len() as u64)).unwrap_or(0))
    }

    fn alias(&mut self) -> String {
        self.aliases += 1;
        format!("r{}", self.aliases)
    }

    fn key(&mut self) -> i64 {
        self.keys += 1;
        self.keys * KEY_STEP
    }

    fn version(&mut self) -> i64 {
        self.versions += 1;
        self.versions
    }

    fn tables(&mut self) {
        let count = self.random.between(1, u64::from(self.settings.tables.max(1)));
        for number in 0..count {
            let name = format!("hunt{number}");
            let columns: Vec<Column> = (0..self.random.between(1, 4))
                .map(|place| Column::new(format!("c{place}"), self.column_type()))
                .collect();
            let indexes = (0..self.random.below(3)).map(|_| self.index(&name, &columns)).collect();
            self.tables.push(TablePlan { name, columns, indexes, rows: Vec::new() });
        }
    }

    fn rows(&mut self) {
        for place in 0..self.tables.len() {
            let columns = self.tables[place].columns.clone();
            self.tables[place].rows = (0..self.random.between(1, u64::from(self.settings.rows.max(1))))
                .map(|_| {
                    let values = columns.iter().map(|column| self.literal(column.kind)).collect();
                    (self.key(), values)
                })
                .collect();
        }
    }

    fn column_type(&mut self) -> Type {
        match self.random.below(5) {
            0 | 1 => Type::Integer,
            2 => Type::Real,
            _ => Type::Text,
        }
    }

    fn index(&mut self, table: &str, columns: &[Column]) -> IndexPlan {
        let mut names: Vec<String> = Vec::new();
        for _ in 0..self.random.between(1, 2) {
            let column = self.pick(columns).map_or(VERSION.to_owned(), |column| column.name.clone());
            if !names.contains(&column) {
                names.push(column);
            }
        }
        let unique = self.one_in(3);
        if unique {
            names.push(KEY.to_owned());
        }
        let partial = match self.pick(columns).cloned() {
            Some(column) if self.grammar.partial_indexes && self.one_in(4) => {
                Some(Expr::IsNull(Box::new(Expr::column(table, &column.name, column.kind)), true))
            }
            _ => None,
        };
        IndexPlan { columns: names, unique, partial }
    }

    fn views(&mut self) {
        for number in 0..self.random.below(VIEWS_MAX + 1) {
            let query = self.view_query();
            self.views.push(ViewPlan { name: format!("huntv{number}"), query });
        }
    }

    fn transaction(&mut self) -> Vec<PlanAct> {
        let mut acts = vec![PlanAct::Control(Act::Begin)];
        let only_reads = self.one_in(4);
        let mut open: Option<String> = None;
        for _ in 0..self.settings.statements.max(1) {
            let wants_savepoint = self.random.below(100) < self.settings.weights.of(Choice::Savepoint);
            if wants_savepoint && self.grammar.savepoints {
                acts.push(PlanAct::Control(self.savepoint(&mut open)));
            }
            acts.push(self.statement(only_reads));
        }
        let rolls_back = self.random.below(100) < self.settings.weights.of(Choice::Rollback);
        acts.push(PlanAct::Control(if rolls_back { Act::Rollback } else { Act::Commit }));
        acts
    }

    fn savepoint(&mut self, open: &mut Option<String>) -> Act {
        if let Some(name) = open.take() {
            return Act::RollbackTo(name);
        }
        self.savepoints += 1;
        let name = format!("s{}", self.savepoints);
        *open = Some(name.clone());
        Act::Savepoint(name)
    }

    fn statement(&mut self, only_reads: bool) -> PlanAct {
        let version = self.version();
        let reads = [Choice::Select, Choice::LockingRead];
        let all = [
            Choice::Select,
            Choice::LockingRead,
            Choice::Insert,
            Choice::InsertSelect,
            Choice::Upsert,
            Choice::Update,
            Choice::EqualUpdate,
            Choice::Delete,
        ];
        let choices = if only_reads { &reads[..] } else { &all[..] };
        let weights = &self.settings.weights;
        let tree = match weights.draw(choices, &mut self.random) {
            Choice::LockingRead if self.grammar.for_update.is_some() => self.locking_read(),
            Choice::Insert => self.insert(false),
            Choice::Upsert => self.insert(true),
            Choice::InsertSelect if self.tags < TAGS_MAX => self.insert_select(),
            Choice::Update => self.update(version),
            Choice::EqualUpdate => return self.equal_update(version),
            Choice::Delete => self.delete(),
            _ => Statement::Select(self.top_query()),
        };
        PlanAct::Statement { tree: Box::new(tree), version, shared: false }
    }

    fn table(&mut self) -> TablePlan {
        let place = usize::try_from(self.random.below(self.tables.len() as u64)).unwrap_or(0);
        self.tables[place].clone()
    }

    /// Runs `make` while sub-queries must not read `table`, if that is so in this grammar.
    fn forbidding<T>(&mut self, allowed: bool, table: &str, make: impl FnOnce(&mut Self) -> T) -> T {
        self.forbidden = (!allowed).then(|| table.to_owned());
        // What a lock around a view reaches is not known: the read before the write could not be trusted.
        self.no_views = self.sight == Sight::SPLIT;
        let made = make(self);
        self.forbidden = None;
        self.no_views = false;
        made
    }

    fn insert(&mut self, overwrites: bool) -> Statement {
        let table = self.table();
        let name = table.name.clone();
        self.forbidding(self.grammar.insert_reads_target, &name, |this| {
            let mut keys: Vec<i64> = Vec::new();
            for _ in 0..this.random.between(1, 3) {
                let old = this
                    .pick(&table.rows)
                    .map(|(key, _)| *key)
                    .filter(|key| overwrites && !keys.contains(key));
                let key = if this.one_in(4) { this.key() } else { old.unwrap_or_else(|| this.key()) };
                keys.push(key);
            }
            let rows = keys
                .into_iter()
                .map(|key| {
                    let values = table.columns.iter().map(|column| this.stored(column, &[])).collect();
                    (key, values)
                })
                .collect();
            let upsert = overwrites.then(|| {
                let column = this.pick(&table.columns).cloned();
                let scope = [InScope { alias: name.clone(), columns: table.columns.clone() }];
                column.into_iter().map(|column| (column.clone(), this.plain(&column, &scope))).collect()
            });
            Statement::Insert {
                table: name.clone(),
                columns: table.columns,
                rows: Rows::Values(rows),
                upsert,
            }
        })
    }

    fn insert_select(&mut self) -> Statement {
        self.tags += 1;
        let (table, source) = (self.table(), self.table());
        let (alias, tag) = (self.alias(), self.tags);
        let scope = [self.in_scope(&source, &alias)];
        let values = table.columns.iter().map(|column| self.stored(column, &scope)).collect();
        let filter = Some(self.condition(&scope, self.settings.depth));
        let rows = Rows::Select { source: source.name, alias, tag, values, filter };
        Statement::Insert { table: table.name, columns: table.columns, rows, upsert: None }
    }

    fn in_scope(&self, table: &TablePlan, alias: &str) -> InScope {
        let mut columns = vec![Column::new(KEY, Type::Integer), Column::new(VERSION, Type::Integer)];
        columns.extend(table.columns.iter().cloned());
        InScope { alias: alias.to_owned(), columns }
    }

    fn update(&mut self, version: i64) -> Statement {
        let table = self.table();
        let name = table.name.clone();
        self.forbidding(self.grammar.write_reads_target, &name, |this| {
            let scope = [this.in_scope(&table, &table.name)];
            let constant = this.one_in(4);
            let mut assignments: Vec<(Column, Expr)> = Vec::new();
            for column in &table.columns {
                if this.one_in(2) {
                    let value = match constant {
                        true => Expr::Literal(this.literal(column.kind)),
                        false => this.stored(column, &scope),
                    };
                    assignments.push((column.clone(), value));
                }
            }
            if constant {
                let (table, assignments) = (table.name.clone(), assignments.clone());
                this.constant_updates.push(ConstantUpdate { table, assignments, version });
            }
            let filter = (!this.one_in(6)).then(|| this.condition(&scope, this.settings.depth));
            Statement::Update { table: table.name.clone(), assignments, filter }
        })
    }

    /// An UPDATE to the values and the version of another one: what it finds done already it does not change.
    fn equal_update(&mut self, version: i64) -> PlanAct {
        let twins = self.constant_updates.clone();
        let Some(twin) = self.pick(&twins).cloned() else {
            return PlanAct::Statement { tree: Box::new(self.update(version)), version, shared: false };
        };
        let ConstantUpdate { table: name, assignments, version } = twin;
        let filter = match self.tables.iter().find(|table| table.name == name).cloned() {
            Some(table) if !self.one_in(3) => {
                self.forbidding(self.grammar.write_reads_target, &name, |this| {
                    let scope = [this.in_scope(&table, &table.name)];
                    Some(this.condition(&scope, this.settings.depth))
                })
            }
            _ => None,
        };
        let tree = Box::new(Statement::Update { table: name, assignments, filter });
        PlanAct::Statement { tree, version, shared: true }
    }

    fn delete(&mut self) -> Statement {
        let table = self.table();
        let name = table.name.clone();
        self.forbidding(self.grammar.write_reads_target, &name, |this| {
            let scope = [this.in_scope(&table, &table.name)];
            // Few at a time: a table without rows shows nothing.
            let few = Expr::Compare(
                crate::tree::Comparison::Equal,
                Box::new(Expr::Arithmetic(
                    crate::tree::Arithmetic::Remainder,
                    Box::new(Expr::column(&table.name, KEY, Type::Integer)),
                    Box::new(Expr::integer(3)),
                )),
                Box::new(Expr::integer(i64::try_from(this.random.below(3)).unwrap_or(0))),
            );
            let condition = this.condition(&scope, this.settings.depth);
            let filter = Some(Expr::Junction(true, Box::new(few), Box::new(condition)));
            Statement::Delete { table: table.name.clone(), filter }
        })
    }

    /// A short value.
    fn literal(&mut self, kind: Type) -> Literal {
        if self.one_in(7) {
            return Literal::Null(kind);
        }
        match kind {
            Type::Integer | Type::Truth => {
                Literal::Integer(i64::try_from(self.random.below(120)).unwrap_or(0) - 20)
            }
            Type::Real => Literal::Quarters(i64::try_from(self.random.below(400)).unwrap_or(0) - 100),
            Type::Text => {
                const WORDS: [&str; 8] = ["", "a", "b", "ab", "abc", "ba", "c", "zz"];
                Literal::Text(self.pick(&WORDS).copied().unwrap_or("").to_owned())
            }
        }
    }

    /// One order of submission: each transaction's steps at growing times, begun within a random span.
    fn interleave(&mut self, scripts: Vec<Vec<PlanAct>>) -> Vec<PlanStep> {
        let steps: usize = scripts.iter().map(Vec::len).sum();
        let span = steps as f64 * self.random.unit();
        let mut timed: Vec<(f64, usize, PlanAct)> = Vec::new();
        for (txn, acts) in scripts.into_iter().enumerate() {
            let mut time = span * self.random.unit();
            for act in acts {
                timed.push((time, txn, act));
                time += self.random.unit() * 2.0;
            }
        }
        timed.sort_by(|a, b| a.0.total_cmp(&b.0));
        let number = |(place, (_, txn, act)): (usize, (f64, usize, PlanAct))| PlanStep {
            number: StepNo(u32::try_from(place).unwrap_or(u32::MAX)),
            txn: TxnNo(u32::try_from(txn).unwrap_or(u32::MAX)),
            act,
        };
        let mut steps: Vec<PlanStep> = timed.into_iter().enumerate().map(number).collect();
        mark_shared(&mut steps);
        steps
    }
}

/// Whoever installs the version of another statement makes that one share, too.
fn mark_shared(steps: &mut [PlanStep]) {
    let shared: Vec<i64> = steps
        .iter()
        .filter_map(|step| match step.act {
            PlanAct::Statement { version, shared: true, .. } => Some(version),
            _ => None,
        })
        .collect();
    for step in steps {
        if let PlanAct::Statement { version, shared: is_shared, .. } = &mut step.act {
            *is_shared |= shared.contains(version);
        }
    }
}
