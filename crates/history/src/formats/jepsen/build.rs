//! The third step: pairs of operations into transactions, each by what its function means.

use super::{Event, Function, Kind, Operations, Pair, Shape, Step, StepKind};
use crate::formats::tree::{Form, Node, Tree};
use crate::formats::{Fault, Warnings};
use crate::{BuildError, Builder, KeyId, Lock, Name, NameRef, Range, Row, SessionId, Span, Status, ValueId};
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;

impl Operations<'_> {
    /// Builds the history.
    pub(in crate::formats) fn finish(
        self,
        builder: &mut Builder,
        warnings: &mut Warnings,
    ) -> Result<(), Fault> {
        let pairs = self.pairs(warnings)?;
        let model = Model::of(&self, &pairs);
        let clock = Clock::of(&self.events, &pairs);
        if let Some(what) = model.not_kept() {
            warnings.note(what);
        }
        if let Some(header) = header_json(clock, &model) {
            builder.set_header_extra(&header);
        }
        let written = if model.collections && !model.adds { self.written() } else { FxHashSet::default() };
        let sessions = Sessions::new(&self.processes);
        let mut emitter =
            Emitter { operations: &self, model, clock, sessions, written, initial: BTreeMap::new() };
        for &pair in &pairs {
            if let Err(fault) = emitter.transaction(pair, builder) {
                builder.abandon();
                warnings.refuse(fault)?;
            }
        }
        for (_, (key, value)) in emitter.initial {
            builder.initial(key, value);
        }
        Ok(())
    }

    /// All elements that some `:write` wrote.
    fn written(&self) -> FxHashSet<Name> {
        let mut tree = Tree::default();
        let mut written = FxHashSet::default();
        for event in self.events.iter().filter(|event| event.function == Function::Write) {
            if let Some(value) = self.value_of(event, &mut tree) {
                written.insert(name_of(value, &tree));
            }
        }
        written
    }
}

/// How operations that are no transactions are understood.
///
/// | operations | kept as |
/// |---|---|
/// | register: `:read`, `:write`, `:cas [a b]` | a read, a write, a read of `a` and a write of `b`, of one key `register` |
/// | mutex: `:acquire`, `:release` | a read of 0 and a write of 1, and the reverse, of one key `mutex` that starts at 0 |
/// | set: `:add e`, `:read [e …]` | every element is a key: a write, a scan of all keys. An element nobody added was never there |
/// | comments: `:write e`, `:read #{e …}` | the same, but elements nobody wrote were there from the beginning |
/// | bank without transfers that may have happened: `:read {account balance}` | reads; the first gives the initial balances |
/// | bank with such transfers | a transfer is relative, so the balances it leaves are not known: reads without results, the rest in `ctx` |
/// | counter: `:add n`, `:read n` | additions are relative: a read without a result, the rest in `ctx` |
#[derive(Clone, Copy, Debug, Default)]
struct Model {
    /// Some read gave a collection: the history is of a set or of comments.
    collections: bool,
    /// Some read gave balances.
    balances: bool,
    adds: bool,
    /// A transfer may have happened.
    transfers: bool,
}

impl Model {
    fn of(operations: &Operations<'_>, pairs: &[Pair]) -> Self {
        let mut model = Self::default();
        for event in &operations.events {
            match (event.function, event.shape) {
                (Function::Read, Shape::Collection) if event.kind == Kind::Ok => model.collections = true,
                (Function::Read, Shape::Map) => model.balances = true,
                (Function::Add, _) => model.adds = true,
                _ => {}
            }
        }
        model.transfers = pairs.iter().any(|pair| {
            let event = |index: Option<usize>| index.map(|index| operations.events[index]);
            let is_transfer = event(pair.invoke)
                .or(event(pair.completion))
                .is_some_and(|it| it.function == Function::Transfer);
            is_transfer && event(pair.completion).is_none_or(|completion| completion.kind != Kind::Fail)
        });
        model
    }

    /// What is only kept as `ctx`, in words.
    fn not_kept(&self) -> Option<&'static str> {
        if self.transfers {
            Some("bank transfers are relative: balances are in ctx and not checked")
        } else if self.adds && !self.collections {
            Some("additions to a counter are relative: they are in ctx and not checked")
        } else {
            None
        }
    }
}

/// Where client clocks come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Clock {
    /// `:time`.
    Time,
    /// The place of the event in the history.
    Place,
}

impl Clock {
    fn of(events: &[Event], pairs: &[Pair]) -> Self {
        let mut paired = pairs.iter().filter(|pair| pair.invoke.is_some());
        let has_time = |index: Option<usize>| index.is_none_or(|index| events[index].time.is_some());
        let all = paired.all(|pair| has_time(pair.invoke) && has_time(pair.completion));
        if all { Self::Time } else { Self::Place }
    }

    fn span(self, pair: Pair, events: &[Event]) -> Option<Span> {
        let time = |index: usize| match self {
            Self::Time => events[index].time,
            Self::Place => Some(index as i64),
        };
        Some(Span { begin: time(pair.invoke?)?, end: pair.completion.map_or(Some(i64::MAX), time)? })
    }
}

/// The header fields that say what a reader of the native form cannot see.
fn header_json(clock: Clock, model: &Model) -> Option<String> {
    let mut fields = Vec::new();
    if clock == Clock::Place {
        fields.push(CLOCK_BY_PLACE.to_owned());
    }
    if let Some(what) = model.not_kept() {
        fields.push(format!("\"not_kept\":\"{what}\""));
    }
    (!fields.is_empty()).then(|| format!("{{\"jepsen\":{{{}}}}}", fields.join(",")))
}

/// How the header says that client clocks are places in the file.
pub(super) const CLOCK_BY_PLACE: &str = "\"clock\":\"place\"";

/// Sessions by process; operations without a process get numbers that no process has.
#[derive(Debug)]
struct Sessions<'p> {
    processes: &'p [Name],
    taken: FxHashSet<i64>,
    next_free: i64,
}

impl<'p> Sessions<'p> {
    fn new(processes: &'p [Name]) -> Self {
        let number = |name: &Name| if let Name::Int(value) = name { Some(*value) } else { None };
        Self { processes, taken: processes.iter().filter_map(number).collect(), next_free: 0 }
    }

    fn session(&mut self, process: Option<u32>, builder: &mut Builder) -> SessionId {
        if let Some(process) = process {
            return builder.session(self.processes[process as usize].as_ref());
        }
        while self.taken.contains(&self.next_free) {
            self.next_free += 1;
        }
        self.next_free += 1;
        builder.session(NameRef::Int(self.next_free - 1))
    }
}

/// Which results of reads count.
#[derive(Clone, Copy, Debug)]
enum Results<'o> {
    /// All: the transaction committed.
    Seen,
    /// Those that differ from what the invocation held.
    Filled(Option<&'o [Step]>),
    /// None.
    Unknown,
}

impl Results<'_> {
    fn of(self, index: usize, step: Step) -> ValueId {
        match self {
            Self::Seen => step.value,
            Self::Filled(invoked) => {
                let invoked = invoked.and_then(|steps| steps.get(index));
                let was_open = invoked.is_none_or(|invoked| invoked.value == ValueId::ABSENT);
                if was_open && step.value != ValueId::ABSENT { step.value } else { ValueId::UNKNOWN }
            }
            Self::Unknown => ValueId::UNKNOWN,
        }
    }
}

#[derive(Debug)]
struct Emitter<'o, 'a> {
    operations: &'o Operations<'a>,
    model: Model,
    clock: Clock,
    sessions: Sessions<'o>,
    /// Comments only: the elements that somebody wrote.
    written: FxHashSet<Name>,
    /// Initial values by key name, so that their order does not depend on hashing.
    initial: BTreeMap<Name, (KeyId, ValueId)>,
}

impl<'a> Emitter<'_, 'a> {
    fn transaction(&mut self, pair: Pair, builder: &mut Builder) -> Result<(), Fault> {
        let event = |index: Option<usize>| index.map(|index| self.operations.events[index]);
        let (invoke, completion) = (event(pair.invoke), event(pair.completion));
        let first = invoke.or(completion).expect("a pair has an invocation or a completion");
        let refused = |error: BuildError| {
            Fault::new(first.offset, error.to_string(), "operations in the order in which they happened")
        };
        let session = self.sessions.session(first.process, builder);
        builder.begin(session);
        builder.set_status(match completion.map(|completion| completion.kind) {
            Some(Kind::Ok) => Status::Committed,
            Some(Kind::Fail) => Status::Aborted,
            _ => Status::Unknown,
        });
        if let Some(span) = self.clock.span(pair, &self.operations.events) {
            builder.set_client(span).map_err(refused)?;
        }
        self.contents(invoke, completion, builder)?;
        builder.end().map_err(refused)?;
        Ok(())
    }

    fn contents(
        &mut self,
        invoke: Option<Event>,
        completion: Option<Event>,
        builder: &mut Builder,
    ) -> Result<(), Fault> {
        let function = invoke.or(completion).map_or(Function::Transaction, |event| event.function);
        // The completion says what happened, unless it holds no value, or a reason for failing.
        let told = completion.filter(|it| {
            let same_shape = invoke.is_none_or(|invoke| invoke.shape == it.shape);
            it.function == function && it.shape != Shape::Nil && (same_shape || function == Function::Read)
        });
        let source = told.or(invoke);
        let ok = completion.is_some_and(|completion| completion.kind == Kind::Ok);
        match function {
            Function::Transaction => {
                let results = match (told, completion.map(|it| it.kind)) {
                    (Some(_), Some(Kind::Ok)) => Results::Seen,
                    (Some(_), Some(Kind::Fail | Kind::Info)) => {
                        Results::Filled(invoke.as_ref().map(|invoke| self.operations.steps_of(invoke)))
                    }
                    _ => Results::Unknown,
                };
                if let Some(source) = source {
                    self.steps(&source, results, builder);
                }
                Ok(())
            }
            Function::Read => self.read(completion.filter(|_| ok), source, builder),
            Function::Write | Function::Add | Function::Cas | Function::Transfer => {
                self.effect(function, source, builder)
            }
            Function::Acquire | Function::Release => {
                let key = builder.key(NameRef::Str("mutex"));
                let (free, held) = (builder.int(0), builder.int(1));
                let (from, to) = if function == Function::Acquire { (free, held) } else { (held, free) };
                builder.read(key, from, Lock::None);
                builder.write(key, to);
                self.initial.insert(Name::Str("mutex".into()), (key, free));
                Ok(())
            }
        }
    }

    fn steps(&self, event: &Event, results: Results<'_>, builder: &mut Builder) {
        for (index, &step) in self.operations.steps_of(event).iter().enumerate() {
            match step.kind {
                StepKind::Read => builder.read(step.key, results.of(index, step), Lock::None),
                StepKind::Write => builder.write(step.key, step.value),
                StepKind::Append => builder.append(step.key, step.value),
            };
        }
    }

    /// A `:read` that is no transaction; `seen` is its completion if it is `:ok`.
    fn read(
        &mut self,
        seen: Option<Event>,
        source: Option<Event>,
        builder: &mut Builder,
    ) -> Result<(), Fault> {
        let mut tree = Tree::default();
        let value = seen.and_then(|seen| self.operations.value_of(&seen, &mut tree));
        if self.model.collections {
            let value = value.filter(|value| matches!(value.form, Form::List(_) | Form::Set(_)));
            let rows = value.map(|value| self.elements(value, &tree, builder));
            builder.scan(Range { from: None, to: None }, rows.as_deref());
        } else if self.model.balances {
            let Some(value) = value else { return Ok(()) };
            self.balances(value, &tree, builder);
        } else if self.model.adds {
            let key = builder.key(NameRef::Str("counter"));
            builder.read(key, ValueId::UNKNOWN, Lock::None);
            self.keep_as_ctx("read", source, builder);
        } else {
            let key = builder.key(NameRef::Str("register"));
            let result = match (seen, value) {
                (None, _) => ValueId::UNKNOWN,
                (Some(_), None) => ValueId::ABSENT,
                (Some(_), Some(value)) => tree.value(value, builder),
            };
            builder.read(key, result, Lock::None);
        }
        Ok(())
    }

    /// An operation that changes something and is no transaction.
    fn effect(
        &mut self,
        function: Function,
        source: Option<Event>,
        builder: &mut Builder,
    ) -> Result<(), Fault> {
        let mut tree = Tree::default();
        let value = source.and_then(|source| self.operations.value_of(&source, &mut tree));
        let place = source.map_or(0, |source| source.offset);
        match (function, value) {
            (Function::Add | Function::Write, Some(value)) if self.model.collections => {
                let row = element(value, &tree, builder);
                builder.write(row.key, row.value);
            }
            (Function::Write, Some(value)) => {
                let key = builder.key(NameRef::Str("register"));
                let value = tree.value(value, builder);
                builder.write(key, value);
            }
            (Function::Write, None) => {
                // `:write nil` empties the register.
                let key = builder.key(NameRef::Str("register"));
                builder.write(key, ValueId::ABSENT);
            }
            (Function::Cas, value) => {
                let [from, to] = *value.map_or(&[][..], |value| tree.children(value)) else {
                    return Err(Fault::new(place, "a :cas without two values", ":value [old new]"));
                };
                let key = builder.key(NameRef::Str("register"));
                let (from, to) = (tree.value(from, builder), tree.value(to, builder));
                builder.read(key, from, Lock::None);
                builder.write(key, to);
            }
            (Function::Add, _) => self.keep_as_ctx("add", source, builder),
            _ => self.keep_as_ctx("transfer", source, builder),
        }
        Ok(())
    }

    fn keep_as_ctx(&self, function: &str, source: Option<Event>, builder: &mut Builder) {
        let value = source.and_then(|source| self.operations.value_json(&source));
        builder
            .set_ctx(&format!("{{\"f\":\"{function}\",\"value\":{}}}", value.as_deref().unwrap_or("null")));
    }

    /// The elements of a set that was read, as rows in key order.
    fn elements(&mut self, value: Node<'a>, tree: &Tree<'a>, builder: &mut Builder) -> Vec<Row> {
        let mut elements: BTreeMap<Name, Row> = BTreeMap::new();
        for &child in tree.children(value) {
            elements.insert(name_of(child, tree), element(child, tree, builder));
        }
        if !self.model.adds {
            // Comments: what nobody wrote was there before.
            for (name, row) in &elements {
                if !self.written.contains(name) {
                    self.initial.insert(name.clone(), (row.key, row.value));
                }
            }
        }
        elements.into_values().collect()
    }

    /// Balances that were read.
    fn balances(&mut self, value: Node<'a>, tree: &Tree<'a>, builder: &mut Builder) {
        let known = !self.model.transfers;
        for (account, balance) in tree.entries(value) {
            let name = account_name(account, tree);
            let key = builder.key(name.as_ref());
            let balance = tree.value(balance, builder);
            if known {
                self.initial.entry(name).or_insert((key, balance));
            }
            builder.read(key, if known { balance } else { ValueId::UNKNOWN }, Lock::None);
        }
        if !known {
            builder.set_ctx(&format!("{{\"f\":\"read\",\"value\":{}}}", tree.json(value)));
        }
    }
}

/// A set's element: a key of its own, whose value is itself.
fn element<'a>(node: Node<'a>, tree: &Tree<'a>, builder: &mut Builder) -> Row {
    Row { key: tree.key(node, builder), value: tree.value(node, builder) }
}

/// The name that [`Tree::key`] gives.
fn name_of<'a>(node: Node<'a>, tree: &Tree<'a>) -> Name {
    match (node.form, tree.text(node)) {
        (Form::Int(value), _) => Name::Int(value),
        (_, Some(text)) => Name::Str(text.to_owned()),
        _ => Name::Str(tree.json(node)),
    }
}

/// An account: JSON can only write it as text, so text that is an integer is that integer.
fn account_name<'a>(node: Node<'a>, tree: &Tree<'a>) -> Name {
    let name = name_of(node, tree);
    match &name {
        Name::Str(text) => match text.parse::<i64>() {
            Ok(value) if value.to_string() == *text => Name::Int(value),
            _ => name,
        },
        Name::Int(_) => name,
    }
}
