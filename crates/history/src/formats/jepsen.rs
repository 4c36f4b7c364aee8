//! Jepsen's operations, whichever way they are written: pairs of invocations and completions into transactions.
//!
//! Both `elle_edn` and `elle_json` parse one operation map after the other into [`Operations::add`] and then call
//! [`Operations::finish`].
//!
//! # Steps
//! 1. *Gather.* Every operation of a client becomes an [`Event`]; the micro-operations of a transaction become
//!    [`Step`]s with interned keys and values. The nemesis is dropped. Any other value stays in the text and is
//!    looked at again in step 3, when the model of the history is known.
//! 2. *Pair.* A completion belongs to the open invocation of its process and does the same; anything else is refused.
//!    Operations without a process belong together if they do the same; each such transaction is a session of its own.
//! 3. *Emit.* Completed transactions in the order of their completions, then those that never completed.
//!
//! # What is true of the result
//! * `:ok` is committed, `:fail` aborted; `:info` and a missing completion are unknown. In an unknown transaction
//!   a read has a result only if the completion filled in what the invocation left open.
//! * Clocks are `:time` where every operation has one; else the place of the operation in the file, since the
//!   order of a Jepsen history is the order in which its events happened. Completions without invocations have
//!   none. An invocation that never completed has no end.
//! * Operations that are no transactions are kept as far as they mean the same as one; see [`Model`].
//!
//! Cost: one pass over the text, 56 bytes an operation and 12 a micro-operation until the history is built.

mod build;
mod write;

pub(super) use write::{Syntax, write};

use super::tree::{Form, Node, Tree};
use super::{Fault, Warnings};
use crate::{Builder, KeyId, Name, ValueId};
use rustc_hash::FxHashMap;

/// Parses again, at a place where a form was parsed before.
pub(super) type FormAt<'a> = fn(text: &'a str, at: usize, tree: &mut Tree<'a>) -> Option<Node<'a>>;

/// What kind of event an operation map is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Invoke,
    Ok,
    Fail,
    Info,
}

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Function {
    /// `:txn`, or anything whose value is a list of micro-operations.
    Transaction,
    Read,
    Write,
    Cas,
    Add,
    Transfer,
    Acquire,
    Release,
}

impl Function {
    fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "txn" => Self::Transaction,
            "read" => Self::Read,
            "write" => Self::Write,
            "cas" => Self::Cas,
            "add" => Self::Add,
            "transfer" => Self::Transfer,
            "acquire" => Self::Acquire,
            "release" => Self::Release,
            _ => return None,
        })
    }
}

/// What an operation's value looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Nil,
    Scalar,
    Collection,
    Map,
    /// Micro-operations; their steps are stored.
    Steps,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StepKind {
    Read,
    Write,
    Append,
}

/// A micro-operation; a read's value is [`ValueId::ABSENT`] for `nil` and for the empty list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    kind: StepKind,
    key: KeyId,
    value: ValueId,
}

#[derive(Clone, Copy, Debug)]
struct Event {
    offset: usize,
    value_offset: usize,
    time: Option<i64>,
    /// Index into `processes`.
    process: Option<u32>,
    first_step: u32,
    step_count: u32,
    kind: Kind,
    function: Function,
    shape: Shape,
}

/// A transaction as a pair of events.
#[derive(Clone, Copy, Debug)]
struct Pair {
    invoke: Option<usize>,
    completion: Option<usize>,
}

/// What a process is doing while events are paired.
#[derive(Clone, Copy, Debug, Default)]
struct Process {
    /// The invocation that is open.
    open: Option<usize>,
    has_invoked: bool,
}

/// The operations of a history, gathered.
#[derive(Debug)]
pub(super) struct Operations<'a> {
    text: &'a str,
    form_at: FormAt<'a>,
    events: Vec<Event>,
    steps: Vec<Step>,
    processes: Vec<Name>,
    process_ids: FxHashMap<Name, u32>,
}

impl<'a> Operations<'a> {
    pub(super) fn new(text: &'a str, form_at: FormAt<'a>) -> Self {
        Self {
            text,
            form_at,
            events: Vec::new(),
            steps: Vec::new(),
            processes: Vec::new(),
            process_ids: FxHashMap::default(),
        }
    }

    // ---- 1. gather ----

    /// Adds one operation map.
    pub(super) fn add(
        &mut self,
        node: Node<'a>,
        tree: &Tree<'a>,
        builder: &mut Builder,
    ) -> Result<(), Fault> {
        builder.worked(1).map_err(|error| Fault::new(node.offset, error.to_string(), "more time"))?;
        let Form::Map(_) = node.form else {
            return Err(Fault::new(
                node.offset,
                "not an operation",
                "a map such as {:type :ok, :f :txn, :value [[:r 1 nil]], :process 0}",
            ));
        };
        let (mut kind, mut function, mut process, mut value, mut time) = (None, None, None, None, None);
        for (name, field) in tree.entries(node) {
            match tree.text(name) {
                Some("type") => kind = Some(field),
                Some("f") => function = Some(field),
                Some("process") => process = Some(field),
                Some("value") => value = Some(field),
                Some("time") => time = Some(field),
                _ => {}
            }
        }
        if process.is_some_and(|process| tree.text(process) == Some("nemesis")) {
            return Ok(());
        }
        let kind = kind_of(node, kind, tree)?;
        let process = process.and_then(|process| self.process(process, tree));
        let time = time.and_then(|time| match time.form {
            Form::Int(time) => Some(time),
            _ => None,
        });
        let first_step = self.steps.len();
        let value = value.filter(|value| value.form != Form::Nil);
        let (function, shape) = self.function_and_shape(node, function, value, tree, builder)?;
        let too_many =
            |_| Fault::new(node.offset, "more than four billion micro-operations", "a smaller history");
        self.events.push(Event {
            offset: node.offset,
            value_offset: value.map_or(node.offset, |value| value.offset),
            time,
            process,
            first_step: u32::try_from(first_step).map_err(too_many)?,
            step_count: u32::try_from(self.steps.len() - first_step).map_err(too_many)?,
            kind,
            function,
            shape,
        });
        Ok(())
    }

    fn process(&mut self, node: Node<'a>, tree: &Tree<'a>) -> Option<u32> {
        let name = match (node.form, tree.text(node)) {
            (Form::Nil, _) => return None,
            (Form::Int(value), _) => Name::Int(value),
            (_, Some(text)) => Name::Str(text.to_owned()),
            _ => Name::Str(tree.json(node)),
        };
        let next = self.processes.len() as u32;
        let id = *self.process_ids.entry(name.clone()).or_insert(next);
        if id == next {
            self.processes.push(name);
        }
        Some(id)
    }

    fn function_and_shape(
        &mut self,
        node: Node<'a>,
        function: Option<Node<'a>>,
        value: Option<Node<'a>>,
        tree: &Tree<'a>,
        builder: &mut Builder,
    ) -> Result<(Function, Shape), Fault> {
        let name = function.and_then(|function| tree.text(function)).unwrap_or("txn");
        if let Some(value) = value.filter(|&value| is_transaction(value, name, tree)) {
            for &step in tree.children(value) {
                let step = step_of(step, tree, builder)?;
                self.steps.push(step);
            }
            return Ok((Function::Transaction, Shape::Steps));
        }
        let place = function.unwrap_or(node).offset;
        let Some(function) = Function::from_name(name) else {
            return Err(Fault::new(
                place,
                format!("a client operation :{name} of no known model"),
                "transactions of :r, :w and :append, or the operations of a register, cas-register, set, counter, \
                 bank, mutex, long-fork or comments test",
            ));
        };
        let shape = match value.map(|value| value.form) {
            None => Shape::Nil,
            Some(Form::List(_) | Form::Set(_)) => Shape::Collection,
            Some(Form::Map(_)) => Shape::Map,
            Some(_) => Shape::Scalar,
        };
        if function == Function::Transaction && shape != Shape::Nil && !is_failure_note(node, tree) {
            return Err(Fault::new(
                value.unwrap_or(node).offset,
                "a transaction that is not a list of micro-operations",
                "a list such as [[:append 1 2] [:r 1 nil]]",
            ));
        }
        Ok((function, shape))
    }

    // ---- 2. pair ----

    /// Transactions, in the order of their completions; those without one come last.
    ///
    /// A process does one thing after the other, and its completions are of what it invoked. Anything else is refused:
    /// whatever is made of it, some transactions would be others than those that ran. Where refusals are warnings, what
    /// was invoked has an unknown outcome, and a completion that does not fit is left out.
    fn pairs(&self, warnings: &mut Warnings) -> Result<Vec<Pair>, Fault> {
        let mut pairs = Vec::new();
        let mut processes: Vec<Process> = vec![Process::default(); self.processes.len()];
        let mut open_without_process: Vec<usize> = Vec::new();
        for (index, event) in self.events.iter().enumerate() {
            let Some(process) = event.process else {
                if event.kind == Kind::Invoke {
                    open_without_process.push(index);
                    continue;
                }
                let place = self.matching(&open_without_process, event);
                let invoke = place.map(|place| open_without_process.remove(place));
                pairs.push(Pair { invoke, completion: Some(index) });
                continue;
            };
            let state = &mut processes[process as usize];
            if event.kind == Kind::Invoke {
                state.has_invoked = true;
                if let Some(earlier) = state.open.replace(index) {
                    warnings.refuse(self.still_open(event, earlier))?;
                    pairs.push(Pair { invoke: Some(earlier), completion: None });
                }
                continue;
            }
            match state.open.take() {
                None if state.has_invoked => warnings.refuse(self.not_invoked(event))?,
                None => pairs.push(Pair { invoke: None, completion: Some(index) }),
                Some(invoke) if self.completes(&self.events[invoke], event) => {
                    pairs.push(Pair { invoke: Some(invoke), completion: Some(index) });
                }
                Some(invoke) => {
                    warnings.refuse(self.of_another(event, invoke))?;
                    pairs.push(Pair { invoke: Some(invoke), completion: None });
                }
            }
        }
        let open = processes.iter().filter_map(|process| process.open);
        let mut never_completed: Vec<usize> = open.chain(open_without_process).collect();
        never_completed.sort_unstable();
        pairs.extend(never_completed.into_iter().map(|index| Pair { invoke: Some(index), completion: None }));
        Ok(pairs)
    }

    fn line_of(&self, index: usize) -> usize {
        memchr::memchr_iter(b'\n', &self.text.as_bytes()[..self.events[index].offset]).count() + 1
    }

    fn name_of_process(&self, event: &Event) -> String {
        event
            .process
            .map_or_else(String::new, |process| self.processes[process as usize].as_ref().to_string())
    }

    #[cold]
    fn still_open(&self, event: &Event, earlier: usize) -> Fault {
        let problem = format!(
            "process {} invokes an operation while the one of line {} is still open",
            self.name_of_process(event),
            self.line_of(earlier)
        );
        Fault::new(
            event.offset,
            problem,
            "its completion first, or another process: a process does one thing at a time",
        )
    }

    #[cold]
    fn not_invoked(&self, event: &Event) -> Fault {
        let problem =
            format!("process {} completes an operation that it has not invoked", self.name_of_process(event));
        Fault::new(event.offset, problem, "an invocation of the same process before every completion")
    }

    #[cold]
    fn of_another(&self, event: &Event, invoke: usize) -> Fault {
        let problem = format!(
            "process {} completes a different operation than it invoked in line {}",
            self.name_of_process(event),
            self.line_of(invoke)
        );
        Fault::new(
            event.offset,
            problem,
            "the same function, keys and written values; only results are filled in",
        )
    }

    /// Whether a completion is of what was invoked.
    fn completes(&self, invoke: &Event, completion: &Event) -> bool {
        if invoke.function != completion.function {
            return false;
        }
        match invoke.function {
            Function::Read | Function::Acquire | Function::Release => true,
            // A failure may carry a reason instead of what was tried.
            _ if invoke.shape != completion.shape => {
                completion.shape == Shape::Nil || invoke.shape == Shape::Nil || completion.kind != Kind::Ok
            }
            Function::Transaction => self.do_the_same(invoke, completion),
            _ => completion.kind != Kind::Ok || self.do_the_same(invoke, completion),
        }
    }

    /// The last open invocation without a process that does what this completion does.
    fn matching(&self, open: &[usize], completion: &Event) -> Option<usize> {
        // No real history has that many operations under way at once; the limit keeps odd input cheap.
        const LOOK_BACK_MAX: usize = 256;
        let recent = || open.iter().enumerate().rev().take(LOOK_BACK_MAX);
        let same_function = |index: usize| self.events[index].function == completion.function;
        recent()
            .find(|&(_, &index)| same_function(index) && self.do_the_same(&self.events[index], completion))
            .or_else(|| recent().find(|&(_, &index)| same_function(index)))
            .map(|(place, _)| place)
    }

    fn do_the_same(&self, invoke: &Event, completion: &Event) -> bool {
        if invoke.function == Function::Read {
            return true;
        }
        if completion.shape == Shape::Steps {
            let same = |a: &Step, b: &Step| {
                (a.kind, a.key) == (b.kind, b.key) && (a.kind == StepKind::Read || a.value == b.value)
            };
            let (a, b) = (self.steps_of(invoke), self.steps_of(completion));
            return a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b));
        }
        completion.shape == Shape::Nil || self.value_json(invoke) == self.value_json(completion)
    }

    fn steps_of(&self, event: &Event) -> &[Step] {
        &self.steps[event.first_step as usize..][..event.step_count as usize]
    }

    fn value_json(&self, event: &Event) -> Option<String> {
        let mut tree = Tree::default();
        let node = self.value_of(event, &mut tree)?;
        Some(tree.json(node))
    }

    /// The value of an event, parsed again.
    fn value_of(&self, event: &Event, tree: &mut Tree<'a>) -> Option<Node<'a>> {
        if event.shape == Shape::Nil {
            return None;
        }
        tree.clear();
        (self.form_at)(self.text, event.value_offset, tree)
    }
}

fn kind_of<'a>(node: Node<'a>, kind: Option<Node<'a>>, tree: &Tree<'a>) -> Result<Kind, Fault> {
    let name = kind.and_then(|kind| tree.text(kind));
    match name {
        Some("invoke") => Ok(Kind::Invoke),
        Some("ok") => Ok(Kind::Ok),
        Some("fail") => Ok(Kind::Fail),
        Some("info") => Ok(Kind::Info),
        Some(other) => Err(Fault::new(
            kind.unwrap_or(node).offset,
            format!("an operation of type :{other}"),
            ":invoke, :ok, :fail or :info",
        )),
        None => {
            Err(Fault::new(node.offset, "an operation without a :type", ":type :invoke, :ok, :fail or :info"))
        }
    }
}

/// A list of lists that each begin with a word is a transaction, whatever `:f` says (long-fork calls it `:read`).
fn is_transaction<'a>(value: Node<'a>, name: &str, tree: &Tree<'a>) -> bool {
    let Form::List(_) = value.form else { return false };
    let children = tree.children(value);
    let is_step = |step: &Node<'a>| {
        matches!(step.form, Form::List(_))
            && tree.children(*step).first().is_some_and(|f| tree.text(*f).is_some())
    };
    if children.is_empty() { name == "txn" } else { children.iter().all(is_step) }
}

/// A failed or indeterminate completion may carry a reason instead of a transaction.
fn is_failure_note<'a>(node: Node<'a>, tree: &Tree<'a>) -> bool {
    tree.entry(node, "type").is_some_and(|kind| matches!(tree.text(kind), Some("fail" | "info")))
}

fn step_of<'a>(node: Node<'a>, tree: &Tree<'a>, builder: &mut Builder) -> Result<Step, Fault> {
    let expected = "[:r key value], [:w key value] or [:append key value]";
    let (function, key, value) = match *tree.children(node) {
        [function, key] => (function, key, None),
        [function, key, value, ..] => (function, key, Some(value)),
        _ => return Err(Fault::new(node.offset, "a micro-operation without a key", expected)),
    };
    let kind = match tree.text(function) {
        Some("r") => StepKind::Read,
        Some("w") => StepKind::Write,
        Some("append") => StepKind::Append,
        other => {
            let name = other.unwrap_or_default();
            return Err(Fault::new(function.offset, format!("a micro-operation :{name}"), expected));
        }
    };
    let value = match value {
        None if kind != StepKind::Read => {
            return Err(Fault::new(node.offset, "a micro-operation that writes nothing", expected));
        }
        None => ValueId::ABSENT,
        Some(value) if kind == StepKind::Read && is_empty_list(value, tree) => ValueId::ABSENT,
        Some(value) => tree.value(value, builder),
    };
    Ok(Step { kind, key: tree.key(key, builder), value })
}

fn is_empty_list<'a>(value: Node<'a>, tree: &Tree<'a>) -> bool {
    matches!(value.form, Form::List(_)) && tree.children(value).is_empty()
}
