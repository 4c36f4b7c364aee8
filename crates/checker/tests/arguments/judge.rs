//! Holds an argument against the history: each step by itself, each case, and the name.

use history::{History, Id, KeyId, OpId, Operation, Row, Status, TxnId, ValueId, ValueRef};
use isolation::{
    Argument, Case, Cases, Edge, EdgeKind, Evidence, Impossible, Level, Reason, Rule, Supposition,
};

type Judged = Result<(), String>;

/// An order of two transactions on a key.
type Order = (TxnId, TxnId, Option<KeyId>);

/// What holds at a place of an argument beside the history: what is supposed, and what was shown.
#[derive(Clone, Default)]
struct Scope {
    suppositions: Vec<Supposition>,
    supposed: Vec<Order>,
    shown: Vec<Edge>,
    took_effect: Vec<TxnId>,
}

pub(crate) struct Judge<'h> {
    history: &'h History,
    level: Level,
}

impl<'h> Judge<'h> {
    pub(crate) fn new(history: &'h History, level: Level) -> Self {
        Self { history, level }
    }

    /// What is wrong with the argument of a violation; one that has none is only counted.
    pub(crate) fn examine(&self, evidence: &Evidence) -> Judged {
        let argument = evidence.argument();
        if argument.edges.is_empty() && argument.cases.is_none() {
            return Ok(());
        }
        for txn in argument.transactions() {
            if !evidence.transactions.contains(&txn) {
                return Err(format!("{txn:?} is none of the transactions"));
            }
        }
        self.argument(&argument, &Scope::default(), None)?;
        self.name(&evidence.anomaly.name, argument.end())
    }

    // ---- arguments ----

    /// `opposite`: the edge whose opposite is supposed here.
    fn argument(&self, argument: &Argument, scope: &Scope, opposite: Option<&Edge>) -> Judged {
        let mut scope = scope.clone();
        // Whose write one step shows, took effect for the others.
        let seen = argument.edges.iter().filter(|edge| edge.kind == EdgeKind::Wr);
        scope.took_effect.extend(seen.filter_map(|edge| edge.from));
        // What is shown may rest on other things that are shown, but not on itself.
        let mut open: Vec<&Edge> = argument.support.iter().collect();
        while !open.is_empty() {
            let before = open.len();
            let mut why = String::new();
            open.retain(|edge| match self.edge(edge, &scope) {
                Ok(()) => {
                    scope.shown.push((*edge).clone());
                    false
                }
                Err(it) => {
                    why = it;
                    true
                }
            });
            if open.len() == before {
                return Err(format!("support: {why}"));
            }
        }
        if let Some(cases) = &argument.cases {
            return self.cases(cases, &scope);
        }
        let leads = |edge: &Edge| {
            argument.edges.first().is_some_and(|it| it.from == edge.from)
                && argument.edges.last().is_some_and(|it| it.to == edge.to)
        };
        if !opposite.is_some_and(leads)
            && let Some(judged) = self.direct(&argument.edges, &scope)
        {
            return judged;
        }
        for edge in &argument.edges {
            self.edge(edge, &scope)?;
        }
        self.shape(&argument.edges, opposite)
    }

    fn shape(&self, edges: &[Edge], opposite: Option<&Edge>) -> Judged {
        let follows = |one: &Edge, two: &Edge| Some(one.to) == two.from;
        let (Some(first), Some(last)) = (edges.first(), edges.last()) else {
            return Err("no steps".to_owned());
        };
        if !edges.windows(2).all(|pair| follows(&pair[0], &pair[1])) {
            return Err(format!("the steps do not follow from each other: {edges:?}"));
        }
        let is_cycle = follows(last, first);
        let closes = opposite.is_some_and(|edge| first.from == edge.from && last.to == edge.to);
        if !is_cycle && !closes {
            return Err(format!("the steps do not close a cycle: {edges:?}"));
        }
        let is_anti = |edge: &Edge| edge.kind == EdgeKind::Rw;
        let adjacent = edges.windows(2).any(|pair| is_anti(&pair[0]) && is_anti(&pair[1]));
        let around = is_cycle && !closes && is_anti(last) && is_anti(first);
        if self.level.rule == Rule::SnapshotIsolation && (adjacent || around) {
            return Err(format!("snapshot isolation allows that: {edges:?}"));
        }
        Ok(())
    }

    fn cases(&self, cases: &Cases, scope: &Scope) -> Judged {
        let Some(first) = cases.told.first() else { return Err("no cases".to_owned()) };
        match first.suppose {
            Supposition::Source { read, key, .. } => self.covers(cases, read, key)?,
            Supposition::Changed { op, .. } => match self.history.operation(op) {
                Operation::Update { keys: None, .. }
                | Operation::DeleteWhere { keys: None, .. }
                | Operation::Append { .. } => {}
                other => return Err(format!("nothing is open about {other:?}")),
            },
        }
        for Case { suppose, argument } in &cases.told {
            let mut scope = scope.clone();
            scope.suppositions.push(*suppose);
            self.argument(argument, &scope, None)?;
        }
        Ok(())
    }

    /// Whether the cases are all that a read can have seen.
    fn covers(&self, cases: &Cases, read: OpId, key: KeyId) -> Judged {
        let mut told = Vec::new();
        for case in &cases.told {
            match case.suppose {
                Supposition::Source { read: it, key: at, write } if it == read && at == key => {
                    told.push(write)
                }
                other => return Err(format!("{other:?} is a case of something else")),
            }
        }
        told.sort_unstable();
        told.dedup();
        let is_complete = |all: &[Option<OpId>]| {
            told.len() == cases.told.len()
                && told.len() + cases.left_out >= all.len()
                && (cases.left_out > 0 || all.iter().all(|it| told.contains(it)))
        };
        let together = self.candidates(read, key);
        let alone = self.seen_alone(read, key);
        let is_fair = is_complete(&together)
            || is_complete(&alone)
            || !alone.is_empty() && is_complete(&self.possible(alone.clone()));
        let is_append = matches!(self.history.operation(read), Operation::Append { .. });
        if is_append || is_fair || alone.is_empty() && is_complete(&self.foul(read, key)) || self.is_open(key)
        {
            return Ok(());
        }
        Err(format!("the cases are {told:?} and {} more, and it may be {together:?}", cases.left_out))
    }

    // ---- steps ----

    fn edge(&self, edge: &Edge, scope: &Scope) -> Judged {
        let wrong = |what: &str| Err(format!("{what}: {edge:?}"));
        let Some(from) = edge.from else { return wrong("it leads from nowhere") };
        let owner = |op: OpId| self.history.owner(op);
        for txn in [from, edge.to] {
            match self.history.transaction(txn).status() {
                Status::Committed => {}
                Status::Unknown if self.took_effect(txn, edge, scope) => {}
                _ => return wrong(&format!("{txn:?} need not have taken effect")),
            }
        }
        match (&edge.kind, &edge.reason) {
            (EdgeKind::So, Reason::Session) => {
                let (one, two) = (self.history.transaction(from), self.history.transaction(edge.to));
                let holds = one.session() == two.session() && one.position() < two.position();
                if holds && self.level.session { Ok(()) } else { wrong("no session order") }
            }
            (EdgeKind::Rt, Reason::Clock) => {
                let span = |txn: TxnId| self.history.transaction(txn).client();
                let holds = span(from).zip(span(edge.to)).is_some_and(|(one, two)| one.end < two.begin);
                if holds && self.level.realtime { Ok(()) } else { wrong("no real-time order") }
            }
            (EdgeKind::Wr, Reason::Saw { read, write: Some(write) }) => {
                let Some(key) = edge.key else { return wrong("no key") };
                if owner(*read) != edge.to || owner(*write) != from {
                    return wrong("of others");
                }
                match self.source(*read, key, scope) {
                    Some(Some(source)) if source == *write => Ok(()),
                    _ if self.is_open(key) => Ok(()),
                    _ if self.has_element(*read, key, *write) => Ok(()),
                    _ if self.is_case_of(*read, scope) => Ok(()),
                    // An append stands where the lists show it.
                    _ if self.ops().any(|(op, _)| self.shows(op, *write, *read)) => Ok(()),
                    source => {
                        wrong(&format!("it may have seen {:?}, here {source:?}", self.candidates(*read, key)))
                    }
                }
            }
            (EdgeKind::Rw, Reason::Missed { read, write }) => {
                let Some(key) = edge.key else { return wrong("no key") };
                if owner(*read) != from || owner(*write) != edge.to {
                    return wrong("of others");
                }
                if self.missed(*read, key, *write, scope) || self.is_open(key) {
                    return Ok(());
                }
                wrong("nothing says that it came later")
            }
            (EdgeKind::Ww, Reason::Overwrote { first: Some(first), second, shown: Some(shown) }) => {
                if owner(*first) != from || owner(*second) != edge.to || !self.shows(*shown, *first, *second)
                {
                    return wrong("not shown");
                }
                Ok(())
            }
            (EdgeKind::Ww, Reason::Supposed) => {
                let order = (from, edge.to, edge.key);
                if scope.supposed.contains(&order) { Ok(()) } else { wrong("not supposed") }
            }
            (EdgeKind::Ww, Reason::Otherwise { because }) => {
                let mut scope = scope.clone();
                scope.supposed.push((edge.to, from, edge.key));
                self.argument(because, &scope, Some(edge)).map_err(|why| format!("{why}\nwithin {edge:?}"))
            }
            _ => wrong("no reason"),
        }
    }

    /// Whether what an operation changed is supposed here.
    fn is_case_of(&self, read: OpId, scope: &Scope) -> bool {
        scope.suppositions.iter().any(|it| matches!(*it, Supposition::Changed { op, .. } if op == read))
    }

    /// Whether somebody of unknown outcome is known to have taken effect: its write was seen.
    fn took_effect(&self, txn: TxnId, edge: &Edge, scope: &Scope) -> bool {
        let by = |write: Option<OpId>| write.is_some_and(|write| self.history.owner(write) == txn);
        let seen =
            |edge: &Edge| matches!(edge.reason, Reason::Saw { write, .. } if by(write)) && edge.to != txn;
        let supposed = |it: &Supposition| match it {
            Supposition::Source { write, .. } => by(*write),
            Supposition::Changed { .. } => false,
        };
        seen(edge)
            || scope.took_effect.contains(&txn)
            || scope.shown.iter().any(seen)
            || matches!(&edge.reason, Reason::Otherwise { because } if because.edges.iter().any(seen))
            || scope.suppositions.iter().any(supposed)
            || self.history.keys().ids().any(|key| self.is_open(key))
    }

    /// What a read saw of a key, as far as that is certain or supposed. The inner `None`: the initial state.
    fn source(&self, read: OpId, key: KeyId, scope: &Scope) -> Option<Option<OpId>> {
        let supposed = scope.suppositions.iter().rev().find_map(|it| match *it {
            Supposition::Source { read: it, key: at, write } if it == read && at == key => Some(write),
            _ => None,
        });
        let only = |all: Vec<Option<OpId>>| if let [only] = all[..] { Some(only) } else { None };
        supposed
            .or_else(|| only(self.candidates(read, key)))
            .or_else(|| only(self.seen_alone(read, key)))
            .or_else(|| only(self.possible(self.seen_alone(read, key))))
            .or_else(|| only(self.possible(self.candidates(read, key))))
    }

    fn missed(&self, read: OpId, key: KeyId, write: OpId, scope: &Scope) -> bool {
        if let Operation::Append { value, .. } = self.history.operation(write)
            && let Some(list) = self.list(read, key)
            && !list.contains(&value)
        {
            return true;
        }
        let (reader, writer) = (self.history.owner(read), self.history.owner(write));
        if !self.is_last(write, key) || reader == writer {
            return false;
        }
        let Some(source) = self.source(read, key, scope) else { return false };
        let Some(source) = source.map(|source| self.history.owner(source)) else { return true };
        // Whoever comes first does so on every key that both wrote.
        let supposed = scope.supposed.iter().any(|&(first, second, _)| (first, second) == (source, writer));
        let is_shown =
            |edge: &Edge| edge.kind == EdgeKind::Ww && edge.from == Some(source) && edge.to == writer;
        supposed || scope.shown.iter().any(is_shown)
    }

    fn list(&self, read: OpId, key: KeyId) -> Option<&'h [ValueId]> {
        let value = returned(&self.history.operation(read), key)?;
        if !self.is_appended_to(key) {
            return None;
        }
        match self.history.values().get(value) {
            ValueRef::List(elements) => Some(elements),
            ValueRef::Null => Some(&[]),
            _ => None,
        }
    }

    fn has_element(&self, read: OpId, key: KeyId, write: OpId) -> bool {
        let Operation::Append { key: at, value } = self.history.operation(write) else { return false };
        let appenders = self.ops().filter(
            |(_, it)| matches!(it, Operation::Append { key, value: it } if *key == at && *it == value),
        );
        at == key && appenders.count() == 1 && self.list(read, key).is_some_and(|list| list.contains(&value))
    }

    fn shows(&self, shown: OpId, first: OpId, second: OpId) -> bool {
        let (Operation::Append { key, value: one }, Operation::Append { key: at, value: two }) =
            (self.history.operation(first), self.history.operation(second))
        else {
            return false;
        };
        let Some(list) = self.list(shown, key).filter(|_| key == at) else { return false };
        let place = |element| list.iter().position(|&it| it == element);
        if self.history.owner(shown) == self.history.owner(first) && place(two).is_none() {
            return true;
        }
        let beside = self.history.transaction(self.history.owner(first)).ops();
        let beside = beside.filter_map(|(_, it)| match it {
            Operation::Append { key: at, value } if at == key => place(value),
            _ => None,
        });
        place(one).into_iter().chain(beside).any(|one| place(two).is_none_or(|two| one < two))
    }

    // ---- contradictions without an order ----

    /// Whether steps that close no cycle contradict the history by themselves; `None` if they are no such steps.
    fn direct(&self, edges: &[Edge], scope: &Scope) -> Option<Judged> {
        let wrong = |what: &str| Some(Err(format!("{what}: {edges:?}")));
        let judged = |holds: bool, what: &str| if holds { Some(Ok(())) } else { wrong(what) };
        match edges {
            [one, two]
                if one.kind == EdgeKind::Wr
                    && two.kind == EdgeKind::Wr
                    && !(Some(one.to) == two.from && Some(two.to) == one.from) =>
            {
                let list = |edge: &Edge| match edge.reason {
                    Reason::Saw { read, .. } => self.list(read, edge.key?),
                    _ => None,
                };
                let (Some(a), Some(b)) = (list(one), list(two)) else { return wrong("no lists") };
                let fits = a.starts_with(b) || b.starts_with(a);
                judged(!fits && one.key == two.key, "one list is the beginning of the other")
            }
            [only] => match only.reason {
                Reason::Saw { read, write: None } => {
                    let Some(key) = only.key else { return wrong("no key") };
                    judged(self.is_from_nowhere(read, key), "somebody wrote that")
                }
                Reason::Saw { read, write: Some(write) } => {
                    let Some(key) = only.key else { return wrong("no key") };
                    let supposed = scope.suppositions.iter().any(|it| {
                        matches!(*it, Supposition::Source { read: it, write: by, .. } if it == read && by == Some(write))
                    });
                    let alone =
                        || self.candidates(read, key).is_empty() && self.foul(read, key) == [Some(write)];
                    let is_list = self.list(read, key).is_some();
                    judged(supposed || is_list || alone(), "it may have seen another")
                }
                Reason::Missed { read, write } => {
                    let Some(key) = only.key else { return wrong("no key") };
                    let is_own = self.history.owner(read) == self.history.owner(write);
                    let misses = !self.fits_after(read, key, write);
                    judged(is_own && write < read && misses, "it did not miss its own write")
                }
                Reason::Impossible { op, why } => judged(self.is_impossible(op, why), "that is possible"),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether what an operation says of a key is true right after an own write.
    fn fits_after(&self, read: OpId, key: KeyId, write: OpId) -> bool {
        match (self.history.operation(write), self.list(read, key)) {
            (Operation::Append { value, .. }, Some(list)) => {
                list.last() == Some(&value) && self.own_end(read, key, list)
            }
            (deed, _) => made(&deed, key).is_some_and(|value| self.fits(read, key, value)),
        }
    }

    /// Whether a list ends with what its reader appended before.
    fn own_end(&self, read: OpId, key: KeyId, list: &[ValueId]) -> bool {
        let own = self.history.transaction(self.history.owner(read)).ops().take_while(|&(op, _)| op < read);
        let own: Vec<ValueId> = own
            .filter_map(|(_, it)| match it {
                Operation::Append { key: at, value } if at == key => Some(value),
                _ => None,
            })
            .collect();
        list.ends_with(&own)
    }

    fn is_impossible(&self, op: OpId, why: Impossible) -> bool {
        let ranks = self.history.keys().ranks();
        let rank = |key: KeyId| ranks[key.index()];
        let operation = self.history.operation(op);
        match (why, &operation) {
            (Impossible::Order, Operation::Scan { rows: Some(rows), .. }) => {
                rows.windows(2).any(|it| rank(it[0].key) > rank(it[1].key))
            }
            (Impossible::Order, Operation::Iterate { rows: Some(rows), reverse, .. }) => {
                rows.windows(2).any(|it| (rank(it[0].key) > rank(it[1].key)) != *reverse)
            }
            (Impossible::Row(key), Operation::Scan { range, .. } | Operation::Iterate { range, .. }) => {
                let inside = range.from.is_none_or(|it| rank(it) <= rank(key))
                    && range.to.is_none_or(|it| rank(key) < rank(it));
                !inside
            }
            (Impossible::Row(key), Operation::Query { predicate, rows: Some(rows) }) => {
                rows.iter().any(|row| row.key == key && !predicate.holds(self.history.values(), row.value))
            }
            (Impossible::Count, Operation::Update { .. } | Operation::DeleteWhere { .. }) => true,
            // What a predicate write found is open; that nothing of it fits is for the exhaustive search to say.
            (Impossible::Own(key), _) => self.is_open(key) || self.is_appended_to(key),
            (Impossible::Read(key), _) => self.is_open(key),
            (Impossible::Differs(other, key), _) => {
                let both = self.together(op.min(other), key);
                let open = self.is_appended_to(key) || self.history.keys().ids().any(|key| self.is_open(key));
                open || both.contains(&op.max(other)) && self.candidates(op.min(other), key).is_empty()
            }
            _ => false,
        }
    }

    // ---- the name ----

    fn name(&self, name: &str, end: &Argument) -> Judged {
        let [only] = &end.edges[..] else {
            let single =
                ["G1a", "G1b", "thin-air", "internal", "future-read", "duplicate-rows", "duplicate-elements"];
            let fits = !single.contains(&name) && !name.starts_with("impossible");
            return if fits { Ok(()) } else { Err(format!("{name} is one step")) };
        };
        let (key, owner) = (only.key, |op: OpId| self.history.owner(op));
        let is_open = |txn: TxnId| self.history.transaction(txn).status() == Status::Unknown;
        let fits = match (&only.reason, name) {
            // Who cannot have committed, and was seen.
            (_, "G1a") if is_open(only.to) => true,
            (Reason::Saw { write: None, .. }, "thin-air") => true,
            (Reason::Saw { read, write }, "duplicate-rows") => {
                let mut keys = rows_of(&self.history.operation(*read));
                keys.sort_unstable();
                keys.windows(2).any(|it| it[0] == it[1]) && write.is_none_or(|it| owner(it) == owner(*read))
            }
            (Reason::Saw { read, .. }, "duplicate-elements") => {
                let mut list = key.and_then(|key| self.list(*read, key)).unwrap_or_default().to_vec();
                list.sort_unstable();
                list.windows(2).any(|it| it[0] == it[1])
            }
            (Reason::Saw { read, write: Some(write) }, "G1a") => {
                let aborted = self.history.transaction(owner(*write)).status() == Status::Aborted;
                aborted && key.is_some_and(|key| self.gave(*read, key, *write))
            }
            (Reason::Saw { read, write: Some(write) }, "G1b") => {
                let committed = self.history.transaction(owner(*write)).status() != Status::Aborted;
                let last = key.is_some_and(|key| self.is_last(*write, key));
                committed && !last && key.is_some_and(|key| self.gave(*read, key, *write))
            }
            (Reason::Saw { read, write: Some(write) }, "future-read") => {
                owner(*read) == owner(*write) && write > read
            }
            (Reason::Saw { .. }, "incompatible-order") => key.is_some_and(|key| self.is_appended_to(key)),
            (Reason::Missed { read, write }, "internal") => owner(*read) == owner(*write),
            (Reason::Impossible { why, .. }, name) => match why {
                Impossible::Order => name == "impossible-order",
                Impossible::Row(_) => name == "impossible-row",
                Impossible::Count => name == "impossible-count",
                Impossible::Own(_) => name == "internal",
                Impossible::Read(_) => name == "impossible-read",
                Impossible::Differs(..) => name == "G-single-item",
            },
            _ => false,
        };
        if fits { Ok(()) } else { Err(format!("{name} does not fit {only:?}")) }
    }

    // ---- who wrote what ----

    fn ops(&self) -> impl Iterator<Item = (OpId, Operation<'h>)> + '_ {
        self.history.transactions().flat_map(|it| it.ops())
    }

    /// Whether what is written to a key depends on what is found there, so that writers are not simply counted.
    fn is_open(&self, key: KeyId) -> bool {
        let (mut appended, mut written, mut elements) = (false, false, Vec::new());
        for (_, operation) in self.ops() {
            match operation {
                Operation::Update { keys: None, .. } | Operation::DeleteWhere { keys: None, .. } => {
                    return true;
                }
                Operation::Append { key: at, value } if at == key => {
                    appended = true;
                    elements.push(value);
                }
                _ => written |= made(&operation, key).is_some(),
            }
        }
        elements.sort_unstable();
        let initial = self.history.initial_value(key);
        let is_scalar =
            initial != ValueId::ABSENT && !matches!(self.history.values().get(initial), ValueRef::List(_));
        appended && (written || is_scalar || elements.windows(2).any(|it| it[0] == it[1]))
    }

    fn is_appended_to(&self, key: KeyId) -> bool {
        self.ops().any(|(_, it)| matches!(it, Operation::Append { key: at, .. } if at == key))
    }

    fn is_last(&self, write: OpId, key: KeyId) -> bool {
        let mut later =
            self.history.transaction(self.history.owner(write)).ops().filter(|&(op, _)| op > write);
        !later.any(|(_, it)| {
            made(&it, key).is_some() || matches!(it, Operation::Append { key: at, .. } if at == key)
        })
    }

    fn fits(&self, read: OpId, key: KeyId, value: ValueId) -> bool {
        let values = self.history.values();
        let normal = |value: ValueId| match value.is_known().then(|| values.get(value)) {
            Some(ValueRef::List([])) => ValueId::ABSENT,
            _ => value,
        };
        let value = normal(value);
        let there = value != ValueId::ABSENT;
        let row = |rows: &[Row]| {
            // A row without a value says as much as no row.
            let seen = rows.iter().find(|row| row.key == key).map(|row| normal(row.value));
            seen.filter(|&seen| seen != ValueId::ABSENT)
        };
        match self.history.operation(read) {
            Operation::Read { value: seen, .. } => normal(seen) == value,
            Operation::Scan { rows: Some(rows), .. } | Operation::Iterate { rows: Some(rows), .. } => {
                match row(rows) {
                    Some(seen) if seen.is_known() => seen == value,
                    Some(_) => there,
                    None => !there,
                }
            }
            Operation::Query { predicate, rows: Some(rows) } => match row(rows) {
                Some(seen) if seen.is_known() => seen == value,
                shown => predicate.holds(values, value) == shown.is_some(),
            },
            Operation::Update { predicate, keys: Some(keys), .. }
            | Operation::DeleteWhere { predicate, keys: Some(keys), .. } => {
                predicate.holds(values, value) == keys.contains(&key)
            }
            _ => true,
        }
    }

    /// The operations of a transaction that say something of a key from outside, as far as they saw one version.
    fn together(&self, read: OpId, key: KeyId) -> Vec<OpId> {
        let one_state = matches!(self.level.rule, Rule::Serializable | Rule::SnapshotIsolation);
        if !one_state {
            return vec![read];
        }
        let own = self.history.transaction(self.history.owner(read)).ops();
        let mut all = vec![read];
        for (op, operation) in own {
            let is_asked = match operation {
                Operation::Read { key: at, value, .. } => at == key && value.is_known(),
                Operation::Scan { range, rows: Some(_) } => self.is_inside(range, key),
                Operation::Iterate { range, reverse, exhausted, rows: Some(rows) } => {
                    self.is_inside(range, key) && (exhausted || self.is_passed(rows, reverse, key))
                }
                Operation::Query { rows: Some(_), .. }
                | Operation::Update { keys: Some(_), .. }
                | Operation::DeleteWhere { keys: Some(_), .. } => true,
                _ => false,
            };
            all.extend(is_asked.then_some(op));
            if made(&operation, key).is_some() {
                break;
            }
        }
        all
    }

    fn is_inside(&self, range: history::Range, key: KeyId) -> bool {
        let ranks = self.history.keys().ranks();
        let rank = |key: KeyId| ranks[key.index()];
        range.from.is_none_or(|it| rank(it) <= rank(key)) && range.to.is_none_or(|it| rank(key) < rank(it))
    }

    fn is_passed(&self, rows: &[Row], reverse: bool, key: KeyId) -> bool {
        let ranks = self.history.keys().ranks();
        let rank = |key: KeyId| ranks[key.index()];
        rows.last().is_some_and(|last| match reverse {
            true => rank(last.key) <= rank(key),
            false => rank(key) <= rank(last.key),
        })
    }

    /// The versions that can be what was seen of a key by everything that saw one version; `None`: the initial one.
    fn candidates(&self, read: OpId, key: KeyId) -> Vec<Option<OpId>> {
        self.seen_by(read, key, &self.together(read, key))
    }

    /// Those of transactions that do not contradict themselves.
    fn possible(&self, mut all: Vec<Option<OpId>>) -> Vec<Option<OpId>> {
        let is_out = |write: OpId| {
            let writer = self.history.owner(write);
            self.history.transaction(writer).status() == Status::Unknown && self.contradicts_itself(writer)
        };
        all.retain(|write| !write.is_some_and(is_out));
        all
    }

    /// The versions that can be what one operation saw.
    fn seen_alone(&self, read: OpId, key: KeyId) -> Vec<Option<OpId>> {
        self.seen_by(read, key, &[read])
    }

    fn seen_by(&self, read: OpId, key: KeyId, all: &[OpId]) -> Vec<Option<OpId>> {
        if let Some(list) = self.list(read, key) {
            return self.appender_of(read, key, list);
        }
        let fits = |value: ValueId| all.iter().all(|&op| self.fits(op, key, value));
        let mut found = Vec::new();
        found.extend(fits(self.history.initial_value(key)).then_some(None));
        for transaction in self.history.transactions() {
            if transaction.status() == Status::Aborted || transaction.id() == self.history.owner(read) {
                continue;
            }
            let last = transaction.ops().filter_map(|(op, it)| Some((op, made(&it, key)?))).last();
            found.extend(last.filter(|(_, value)| fits(*value)).map(|(op, _)| Some(op)));
        }
        found
    }

    /// Whether a transaction read by keys what no transaction wrote, or not what it had written itself.
    fn contradicts_itself(&self, txn: TxnId) -> bool {
        let is_nowhere = |(op, it): (OpId, Operation<'_>)| match it {
            Operation::Read { key, value, .. } => value.is_known() && self.is_from_nowhere(op, key),
            it => rows_of(&it).into_iter().any(|key| self.is_from_nowhere(op, key)),
        };
        let own: Vec<(OpId, Operation<'_>)> = self.history.transaction(txn).ops().collect();
        let misses = |place: usize| {
            let (op, it) = &own[place];
            let keys = it.key().map_or_else(|| self.history.keys().ids().collect(), |key| vec![key]);
            keys.into_iter().filter(|&key| !self.is_appended_to(key)).any(|key| {
                let written = own[..place].iter().rev().find_map(|(_, it)| made(it, key));
                let is_asked =
                    it.key().is_some() || self.together(*op, key).len() > 1 || rows_of(it).contains(&key);
                is_asked && written.is_some_and(|value| !self.fits(*op, key, value))
            })
        };
        own.iter().any(|&it| is_nowhere(it)) || (0..own.len()).any(misses)
    }

    /// Whoever appended the last element that is not the reader's own.
    fn appender_of(&self, read: OpId, key: KeyId, list: &[ValueId]) -> Vec<Option<OpId>> {
        let reader = self.history.owner(read);
        let is_own = |element: &ValueId| {
            let mut own = self.history.transaction(reader).ops();
            own.any(|(_, it)| matches!(it, Operation::Append { key: at, value } if at == key && value == *element))
        };
        let Some(&last) = list.iter().rev().find(|element| !is_own(element)) else { return vec![None] };
        let appends = self.ops().filter(|(op, it)| {
            matches!(it, Operation::Append { key: at, value } if *at == key && *value == last)
                && self.history.transaction(self.history.owner(*op)).status() != Status::Aborted
        });
        let found: Vec<Option<OpId>> = appends.map(|(op, _)| Some(op)).collect();
        if found.is_empty() { vec![None] } else { found }
    }

    /// What was written, but not to be seen: by aborted transactions, overwritten, or later by the reader itself.
    fn foul(&self, read: OpId, key: KeyId) -> Vec<Option<OpId>> {
        let reader = self.history.owner(read);
        let fits = |(op, it): &(OpId, Operation<'_>)| {
            let own_before = self.history.owner(*op) == reader && *op <= read;
            !own_before && made(it, key).is_some_and(|value| self.fits(read, key, value))
        };
        self.ops().filter(fits).map(|(op, _)| Some(op)).collect()
    }

    fn is_from_nowhere(&self, read: OpId, key: KeyId) -> bool {
        if let Some(list) = self.list(read, key).filter(|list| !list.is_empty()) {
            let at_first = self.history.values_of(self.history.initial_value(key));
            return list.iter().any(|element| {
                !at_first.contains(element)
                    && !self.ops().any(|(_, it)| matches!(it, Operation::Append { key: at, value } if at == key && value == *element))
            });
        }
        let left = |(op, it): (OpId, Operation<'_>)| {
            op != read && made(&it, key).is_some_and(|value| self.fits(read, key, value))
        };
        !self.fits(read, key, self.history.initial_value(key)) && !self.ops().any(left)
    }

    /// Whether a write left what was seen.
    fn gave(&self, read: OpId, key: KeyId, write: OpId) -> bool {
        match (self.history.operation(write), self.list(read, key)) {
            (Operation::Append { key: at, value }, Some(list)) => at == key && list.contains(&value),
            (deed, _) => made(&deed, key).is_some_and(|value| self.fits(read, key, value)),
        }
    }
}

/// What an operation certainly left at a key as a whole, or would have, where nobody reported the keys.
fn made(operation: &Operation<'_>, key: KeyId) -> Option<ValueId> {
    let is_here = |keys: Option<&[KeyId]>| keys.is_none_or(|keys| keys.contains(&key));
    match *operation {
        Operation::Write { key: at, value } if at == key => Some(value),
        Operation::Delete { key: at } if at == key => Some(ValueId::ABSENT),
        Operation::Update { set, keys, .. } if is_here(keys) => Some(set),
        Operation::DeleteWhere { keys, .. } if is_here(keys) => Some(ValueId::ABSENT),
        _ => None,
    }
}

fn returned(operation: &Operation<'_>, key: KeyId) -> Option<ValueId> {
    let found = match *operation {
        Operation::Read { key: at, value, .. } if at == key => Some(value),
        Operation::Scan { rows, .. } | Operation::Iterate { rows, .. } | Operation::Query { rows, .. } => {
            rows?.iter().find(|row| row.key == key).map(|row| row.value)
        }
        _ => None,
    };
    found.filter(|value| value.is_known())
}

fn rows_of(operation: &Operation<'_>) -> Vec<KeyId> {
    match *operation {
        Operation::Scan { rows: Some(rows), .. }
        | Operation::Iterate { rows: Some(rows), .. }
        | Operation::Query { rows: Some(rows), .. } => rows.iter().map(|row| row.key).collect(),
        Operation::Update { keys: Some(keys), .. } | Operation::DeleteWhere { keys: Some(keys), .. } => {
            keys.to_vec()
        }
        _ => Vec::new(),
    }
}
