#!/usr/bin/env python3
"""Re-checks certificates of Taipan with nothing of Taipan but the format.

    taipan check --level SER --certificate proof.jsonl history.jsonl
    python3 certify.py --level SER history.jsonl proof.jsonl

A history holds one transaction per line: a session, a status, operations and what they returned. A certificate holds
one JSON object per line, for one level:

  {"certificate":1, "file":…, "history":FINGERPRINT, "level":"serializable", "session_order":false, "real_time":false,
   "by":"results", "ryow":"must", "clock_skew":0, "verdict":"accepted", "order":["1:0","2:0"]}
  {…, "verdict":"violated", "core":["1:0","2:0"], "edges":[…], "proof":[…]}

"order" is the witness: running the transactions in that order, one after the other on one store, gives every recorded
result. At snapshot isolation each is mentioned twice: it sees the store of its first mention and commits at its second,
and nothing else may commit in between what it writes. So an accepted history is checked by one replay.

"core" names transactions that have no explanation, whatever the others did. What they saw is weakened first to what the
others cannot have caused (see `weaken`); then all orders of them are tried, and none may fit. "edges" (the argument for
readers) and "proof" (for cores that are too large to try) are not looked at: a core of more than --core transactions
is `not checked`.

The fingerprint tells mixed-up files apart and proves nothing; the evidence is held against the history that is given.
Exit status: 0 certified, 1 refused, 2 not checked, 3 a file or a line cannot be read. The whole format is described in
docs/book/src/certificates.md."""

import argparse
import gzip
import json
import sys
from collections import Counter
from operator import eq, ge, gt, le, lt, ne
from types import SimpleNamespace

LEVELS = {  # whether it is serial, counts session order, counts real-time order
    "serializable": (True, False, False),
    "strong-session-serializable": (True, True, False),
    "strict-serializable": (True, True, True),
    "snapshot-isolation": (False, False, False),
    "strong-session-snapshot-isolation": (False, True, False),
    "strong-snapshot-isolation": (False, True, True),
}
SHORT = {"SER": "serializable", "SSER": "strict-serializable", "SI": "snapshot-isolation"}
POLICIES = ("must", "may", "never")  # whether reads see their own transaction's earlier writes
COMPARE = {"=": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}
STATUSES = ("committed", "aborted", "unknown")
FIELDS = {
    "read": "key value lock", "write": "key value", "append": "key value", "delete": "key", "scan": "from to rows",
    "iterate": "from to reverse rows exhausted", "query": "where rows", "update": "where set count keys",
    "delete-where": "where count keys",
}
CERTIFICATE = "certificate file history level session_order real_time ryow clock_skew verdict"
EVIDENCE = {"accepted": ("order", ""), "violated": ("core", "edges proof"), "undecided": ("reason", "")}
NOT_RECORDED = ("not recorded",)
STEPS_MAX = 300_000
WRONG_SHAPE = (KeyError, TypeError, AttributeError, ValueError, RecursionError)  # what unexpected JSON leads to


class Malformed(Exception):
    """A line is not what it should be."""


class Refused(Exception):
    """The evidence does not hold."""


class NotChecked(Exception):
    """Nothing is wrong, but the evidence is beyond this program."""


class Misfit(Exception):
    """An operation does not return what was recorded."""


# ---- reading ----


def parse(line):
    def unique(pairs):
        if len(dict(pairs)) < len(pairs):
            raise Malformed("a field is given twice")
        return dict(pairs)

    return json.loads(line, object_pairs_hook=unique, parse_constant=int)  # `int` refuses NaN and Infinity


def only(what, it, known):
    for field in it.keys() - set(known.split()):
        raise Malformed(f"{what} has no field {field!r}")


def one_of(it, choices):
    if it not in choices:
        raise Malformed(f"{it!r} is none of {', '.join(choices)}")
    return it


def name(it):
    """A key or a session. Integers sort before strings."""
    if type(it) not in (int, str):
        raise Malformed(f"{it!r} is neither an integer nor a string")
    return (type(it) is str, it)


def value(it):
    """Two values are equal exactly if this is: 1 is 1.0, and true is not 1."""
    if isinstance(it, list):
        return ("list", tuple(map(value, it)))
    if isinstance(it, dict):
        return ("row", frozenset((column, value(cell)) for column, cell in it.items()))
    return ("number" if type(it) in (int, float) else type(it).__name__, it)


def content(it):
    """What a key holds: None for nothing, which the empty list is too."""
    return None if it is None or it == [] else value(it)


def elements(held):
    """What appends build on: an append to a single value makes a list of it."""
    return () if held is None else held[1] if held[0] == "list" else (held,)


def a_list(elements):
    return ("list", elements) if elements else None


def predicate(it):
    """A function from a content to whether every entry holds. Nothing satisfies nothing."""

    def compare(column, symbol, constant):
        constant, null = content(constant), value(None)

        def holds(held):
            # The column of a row; anything but a row answers to the column `value`.
            found = dict(held[1] if held[0] == "row" else [("value", held)]).get(column, null)
            is_ordered = constant and found[0] == constant[0] and found[0] in ("number", "str", "bool")
            # Null satisfies nothing, not even `!=`.
            return found != null and (symbol in ("=", "!=") or is_ordered) and COMPARE[symbol](found, constant)

        return holds

    parts = []
    for column, test in it.items():
        if column == "or" and isinstance(test, list):
            parts.append(lambda held, some=[predicate(part) for part in test]: any(part(held) for part in some))
        elif column == "not" and isinstance(test, dict):
            parts.append(lambda held, part=predicate(test): not part(held))
        else:
            for symbol, constant in (test if isinstance(test, dict) else {"=": test}).items():
                parts.append(compare(column, one_of(symbol, COMPARE), constant))
    return lambda held: held is not None and all(part(held) for part in parts)


def make(kind, key=None, value=None, **more):
    """An operation: `value` is what was read, written or appended, or what an update sets; a scan or an iterator passes
    the keys from `low` up to `high`, which it excludes."""
    defaults = dict(low=None, high=None, rows=None, reverse=False, exhausted=True, where=None, count=None, keys=None)
    return SimpleNamespace(kind=kind, key=key, value=value, **{**defaults, **more})


def operation(it):
    kind = one_of(it.get("op"), FIELDS)
    only(kind, it, "op at ctx " + FIELDS[kind])
    if kind == "read":
        return make(kind, name(it["key"]), content(it["value"]) if "value" in it else NOT_RECORDED)
    if kind in ("write", "append", "delete"):
        read = {"write": content, "append": value, "delete": lambda _: None}[kind]
        return make(kind, name(it["key"]), read(it["value"] if kind != "delete" else None))
    rows = [(name(key), content(held)) for key, held in it["rows"]] if "rows" in it else None
    if kind in ("scan", "iterate"):
        low, high = (None if it.get(bound) is None else name(it[bound]) for bound in ("from", "to"))
        exhausted = kind == "scan" or it.get("exhausted", False)
        return make(kind, low=low, high=high, rows=rows, reverse=it.get("reverse", False), exhausted=exhausted)
    keys = sorted(map(name, it["keys"])) if "keys" in it else None
    changed = content(it["set"]) if kind == "update" else None
    return make(kind, None, changed, where=predicate(it["where"]), rows=rows, count=it.get("count"), keys=keys)


class History:
    """The initial store, the transactions, the level in the header, and all keys."""

    def __init__(self, lines):
        self.level, self.transactions, self.places, initial = None, [], {}, []
        lengths, commits = Counter(), Counter()  # of sessions, so far
        for number, line in enumerate(lines, 1):
            try:
                it = parse(line) if line.strip() else None
                if it is not None and not self.transactions and "history" in it and "ops" not in it:
                    self.level, initial = it.get("level"), it.get("initial", [])
                elif it is not None:
                    self.transaction(it, lengths, commits)
            except WRONG_SHAPE + (Malformed,) as error:
                raise Malformed(f"line {number}: {type(error).__name__}: {error}") from None
        mentioned = (key for txn in self.transactions for op in txn.ops for key in keys_of(op))
        self.keys = {key for key in mentioned if key is not None}
        as_object = isinstance(initial, dict)
        pairs = list(initial.items() if as_object else initial)
        # In an object the key 1 is written "1": it is the integer, unless the history knows the string alone.
        ints = {it for it, _ in pairs if as_object and it.removeprefix("-").isdigit() and str(int(it)) == it}
        strings = {it for it in ints if (True, it) in self.keys and (False, int(it)) not in self.keys}
        if strings and not any((False, int(it)) in self.keys for it in ints):
            strings = ints
        self.initial = {(False, int(key)) if key in ints - strings else name(key): content(it) for key, it in pairs}
        self.keys |= self.initial.keys()

    def transaction(self, it, lengths, commits):
        only("a transaction", it, "session id seq status client db level ops ctx")
        session, status, clock = name(it["session"]), one_of(it.get("status", "committed"), STATUSES), it.get("client")
        position, earlier, is_committed = lengths[session], commits[session], status == "committed"
        lengths[session] += 1
        commits[session] += is_committed
        begin, end = (clock["begin"], clock.get("end")) if clock else (None, None)
        called = str(it.get("id", f"{session[1]}:{position}"))
        self.places.setdefault(called, []).append(len(self.transactions))
        self.transactions.append(SimpleNamespace(
            name=called, session=session, position=position, earlier=earlier, status=status,
            is_committed=is_committed, begin=begin, end=end, ops=[operation(op) for op in it["ops"]]))

    def find(self, mention):
        """A transaction by its name, or by its place where several have the name."""
        if type(mention) is int and 0 <= mention < len(self.transactions):
            return mention
        found = self.places.get(mention, []) if isinstance(mention, str) else []
        if len(found) != 1:
            raise Refused(f"{mention!r} names {'several transactions' if found else 'no transaction'}")
        return found[0]


def keys_of(op):
    return [op.key, op.low, op.high] + (op.keys or []) + [key for key, _ in op.rows or []]


# ---- one transaction on a store ----


def run(ops, store, ryow):
    """What a transaction writes that starts from `store`; Misfit if a result is not what was recorded."""
    own = {}

    def current(key):
        return own[key] if key in own else store.get(key)

    def may_see(key, test):
        return (key in own and ryow != "never" and test(own[key])
                or (key not in own or ryow != "must") and test(store.get(key)))

    def shows(op):
        """Whether each key shows its row. No row, or a row of nothing: it is not there or not wanted."""
        rows, wanted = dict(op.rows), op.where or (lambda held: True)
        for key in filter(lambda key: passes(op, key), store.keys() | own.keys() | rows.keys()):
            seen = rows.get(key)
            if not may_see(key, lambda held: held == seen if held is not None and wanted(held) else seen is None):
                return False
        return is_possible(op)

    for place, op in enumerate(ops):
        fits = True
        if op.kind == "read":
            fits = op.value == NOT_RECORDED or may_see(op.key, lambda held: held == op.value)
        elif op.kind in ("write", "delete"):
            own[op.key] = op.value
        elif op.kind == "append":
            own[op.key] = a_list(elements(current(op.key)) + (op.value,))
        elif op.kind in ("update", "delete-where"):
            matched = sorted(key for key in store.keys() | own.keys() if op.where(current(key)))
            own.update((key, op.value) for key in matched)
            fits = op.count in (None, len(matched)) and op.keys in (None, matched)
        elif op.rows is not None:
            fits = shows(op)
        if not fits:
            raise Misfit(place)
    return own


def in_range(op, key):
    return (op.low is None or key >= op.low) and (op.high is None or key < op.high)


def passes(op, key):
    """Whether the operation looked at the key: an iterator that was left early stopped at its last row."""
    if not in_range(op, key) or op.exhausted or not op.rows:
        return in_range(op, key) and op.exhausted
    last = op.rows[-1][0]
    return key >= last if op.reverse else key <= last


def is_possible(op):
    """Whether the rows can be those of any store: each key once, those of a range within it and in order, and those of
    a query such as it asks for."""
    keys = [key for key, _ in op.rows or []]
    if op.where is not None and any(held is not None and not op.where(held) for _, held in op.rows or []):
        return False
    in_order = op.where is not None or keys == sorted(keys, reverse=op.reverse)
    return in_order and len(set(keys)) == len(keys) and all(in_range(op, key) for key in keys)


# ---- accepted: the witness is replayed ----


def replay(history, level, ryow, skew, order):
    serial, sessions, clocks = LEVELS[level]
    txns, store, written, running, done = history.transactions, dict(history.initial), {}, {}, set()
    committed = [place for place, txn in enumerate(txns) if txn.is_committed]
    count = Counter()  # how many of a session have committed
    waiting = sorted((place for place in committed if txns[place].end is not None), key=lambda it: -txns[it].end)
    for now, place in enumerate(order):
        txn = txns[place]
        if place in done or txn.status == "aborted":
            raise Refused(f"{txn.name} is in the order {'again' if place in done else 'and was aborted'}")
        if place not in running:
            while waiting and waiting[-1] in done:
                waiting.pop()
            first_to_end = txns[waiting[-1]].end if clocks and waiting else None
            if sessions and count[txn.session] < txn.earlier:
                raise Refused(f"{txn.name} begins before an earlier transaction of its session has committed")
            if None not in (first_to_end, txn.begin) and first_to_end + skew < txn.begin:
                raise Refused(f"{txn.name} begins before one has committed that had ended by then")
            try:
                running[place] = now, run(txn.ops, store, ryow)
            except Misfit as misfit:
                raise Refused(f"{txn.name}: the order does not give operation {misfit.args[0] + 1}") from None
            if not serial:
                continue
        begun, writes = running.pop(place)
        for key in writes:
            if written.get(key, -1) > begun:
                raise Refused(f"{txn.name} commits {key[1]!r}, which another one committed since it began")
            written[key] = now
        store.update(writes)
        done.add(place)
        count[txn.session] += txn.is_committed
    for place in [place for place in committed if place not in done] + list(running):
        raise Refused(f"{txns[place].name} does not commit in the order")


# ---- violated: all orders of the core are tried ----


def results(op, keys):
    """What the operation says that single keys hold, as reads of them would; `keys` are all there are."""
    if op.kind == "read" and op.value != NOT_RECORDED:
        yield op.key, op.value
    elif op.kind == "query":
        yield from ((key, held) for key, held in op.rows or [] if held is not None)
    elif op.kind in ("scan", "iterate") and op.rows is not None:
        rows = dict(op.rows)
        yield from ((key, rows.get(key)) for key in keys if passes(op, key))


def overwrites(op):
    """The keys that it overwrote; None if that was not reported."""
    if op.kind in ("update", "delete-where"):
        return op.keys if op.keys is not None else [] if op.count == 0 else None
    return [op.key] if op.kind in ("write", "delete") else []


def writes_of(txn):
    """Its writes from the last to the first: the key (None: not reported), the operation, whether it is the last."""
    later = set()
    for op in reversed(txn.ops):
        for key in [op.key] if op.kind == "append" else [None] if overwrites(op) is None else overwrites(op):
            yield key, op, key not in later
            later.add(key)


def contradicts_itself(txn, ryow, keys):
    """Whether no store that the transaction can have started from gives its results: for some key, neither what a read
    of it returned nor that without elements that the transaction appended itself."""
    if not all(map(is_possible, txn.ops)):
        return True
    for key in {key for op in txn.ops for key, _ in results(op, keys)}:
        ops, starts, appended, sure = [], set(), 0, True
        for op in txn.ops:
            if overwrites(op) is None:
                sure = False  # of what it left in the key nothing is known, until it overwrites it
            elif key in overwrites(op):
                sure, ops = True, ops + [make("write", key, op.value)]
            elif op.kind == "append" and op.key == key:
                appended, ops = appended + 1, ops + [op]
            for _, seen in filter(lambda it: it[0] == key and (sure or ryow == "never"), results(op, keys)):
                ops.append(make("read", key, seen))
                rests = [elements(seen)[:-cut] for cut in range(1, appended + 1)]
                starts |= {seen, *map(a_list, rests), *(rest[0] for rest in rests if len(rest) == 1)}
        if starts and not any(fits(ops, {key: start}, ryow) for start in starts):
            return True
    return False


def fits(ops, store, ryow):
    try:
        return run(ops, store, ryow) is not None
    except Misfit:
        return False


def weaken(history, core, ryow):
    """The core's operations, of what they saw only what the others cannot have caused; None instead of a transaction's
    operations if it took effect in no explanation. Strike the others out of an order that explains the history: a read
    of a value that only the core, or the initial state, can have left still finds it, and a list keeps the elements that
    the core appended, in their order. So what is left has an explanation if the history has one."""
    txns = history.transactions
    effective = [place for place, txn in enumerate(txns) if txn.status != "aborted"]
    if len(core) == len(effective):
        return {place: txns[place].ops for place in core}
    writes = [(place, *write) for place in effective for write in writes_of(txns[place])]
    appended = {key for _, key, op, _ in writes if op.kind == "append"}
    # What any transaction left: one of unknown outcome that read anything else took no effect.
    ever = {(key, op.value) for _, key, op, is_last in writes if is_last}

    def took_no_effect(place):
        own = {(key, op.value) for key, op, _ in writes_of(txns[place])}
        baseless = (seen != history.initial.get(key) and key not in appended and (key, seen) not in ever | own
                    for op in txns[place].ops for key, seen in results(op, history.keys))
        hidden = any(key is None for _, key, _, _ in writes)
        return contradicts_itself(txns[place], ryow, history.keys) or not hidden and any(baseless)

    idle = {it for it in effective if txns[it].status == "unknown" and it not in core and took_no_effect(it)}
    writes = [write for write in writes if write[0] not in idle]
    overwrote = [(place, key, op.value, is_last) for place, key, op, is_last in writes
                 if op.kind != "append" and key is not None]
    anywhere = {op.value for _, key, op, _ in writes if key is None}  # in no one knows which keys
    overwritten = {key for _, key, _, _ in overwrote}
    left = {(key, held) for place, key, held, is_last in overwrote if is_last and place not in core}
    written_by_others = {key for place, key, _, _ in writes if place not in core}
    by_core, by_others = ({(key, op.value) for place, key, op, _ in writes if op.kind == "append" and
                           (place in core) == inside} for inside in (True, False))
    sources = by_core | by_others | {(key, it) for _, key, held, _ in overwrote for it in elements(held)}
    last = {(key, (op.value,) if op.kind == "append" else elements(op.value)[-1:]) for _, key, op, is_last in writes
            if is_last and key is not None}

    def is_explained(txn, key, seen):
        """Whether each element of a list comes from somewhere, and its last one ends what some transaction left."""
        given = anywhere | {history.initial.get(key)}
        if any((key, it) not in sources and not any(it in elements(held) for held in given) for it in elements(seen)):
            return False
        wrote = any(at in (key, None) for at, _, _ in writes_of(txn))
        end = elements(seen)[-1:]
        return wrote or (key, end) in last or any(elements(held)[-1:] == end for held in given)

    def weakened(txn, op):
        if op.kind in ("write", "delete", "append"):
            yield op
        elif op.where is not None:  # a predicate write that reported its keys wrote exactly those
            yield from (make("write", key, op.value) for key in overwrites(op) or [])
        for key, seen in results(op, history.keys):
            if seen is None or seen[0] != "list" or key not in appended:
                stays = (key, seen) not in left and seen not in anywhere
            elif key in overwritten or anywhere:
                stays = key not in written_by_others and not anywhere
            else:
                initial = elements(history.initial.get(key))
                added = elements(seen)[len(initial):]
                stays = not any((key, it) in by_core & by_others for it in added)
                if added and elements(seen)[:len(initial)] == initial:
                    kept = tuple(it for it in added if (key, it) in by_core)
                    seen = a_list(initial + kept) if kept else history.initial.get(key)
            if stays:
                yield make("read", key, seen)

    def part(txn):
        lists = ((key, seen) for op in txn.ops for key, seen in results(op, history.keys) if seen and seen[0] == "list")
        if contradicts_itself(txn, ryow, history.keys) or not all(is_explained(txn, *it) for it in lists):
            return None
        return [it for op in txn.ops for it in weakened(txn, op)]

    return {place: part(txns[place]) for place in core}


def explain(history, core, level, ryow, skew):
    """An order that explains the core, or None if there is none."""
    serial, sessions, clocks = LEVELS[level]
    parts, txns = weaken(history, core, ryow), {place: history.transactions[place] for place in core}

    def precedes(a, b):
        in_time = clocks and None not in (a.end, b.begin) and a.end + skew < b.begin
        return a.is_committed and (in_time or sessions and a.session == b.session and a.position < b.position)

    before = {it: {other for other in core if precedes(txns[other], txns[it])} for it in core}
    must = {place for place in core if txns[place].is_committed}
    failed, steps = set(), 0

    def extend(done, running, store):
        """Goes on from the transactions that committed, the writes of those that run, and the store."""
        nonlocal steps
        if must <= done and not running:
            return []
        point = (done, frozenset((it, frozenset(own.items())) for it, own in running.items()), frozenset(store.items()))
        for place in core if point not in failed else []:
            steps += 1
            if steps > STEPS_MAX:
                raise NotChecked(f"{len(core)} transactions: too many orders")
            others, writes = {it: own for it, own in running.items() if it != place}, running.get(place)
            if writes is None:
                if place in done or parts[place] is None or not before[place] <= done:
                    continue
                if not fits(parts[place], store, ryow):
                    continue
                writes = run(parts[place], store, ryow)
            elif any(writes.keys() & own.keys() for own in others.values()):
                continue  # one that runs wrote the key too, and must commit
            if serial or place in running or not writes:
                found = extend(done | {place}, others, {**store, **writes})
            else:
                found = extend(done, {**running, place: writes}, store)
            if found is not None:
                return [txns[place].name] + found
        failed.add(point)
        return None

    return extend(frozenset(), {}, history.initial)


# ---- one line of a certificate ----


def certify(history, line, asked, core_max=12):
    """Returns if what the line claims is true and was asked; raises what is wrong otherwise. A question is a level, a
    policy on own writes and a clock skew."""
    it = parse(line)
    evidence, optional = EVIDENCE[one_of(it["verdict"], EVIDENCE)]
    only("a certificate", it, f"{CERTIFICATE} by {evidence} {optional}")
    if any(field not in it for field in CERTIFICATE.split() + [evidence]):
        raise Malformed("a field is missing")
    level, ryow, skew = it["level"], one_of(it["ryow"], POLICIES), it["clock_skew"]
    if it["certificate"] != 1 or it.get("by", "results") != "results" or type(skew) is not int:
        raise Malformed("it is of another version, by timestamps, or its clock skew is no integer")
    if skew < 0:
        raise Refused("its clock skew is negative")
    if level not in LEVELS:
        raise NotChecked(f"there are no certificates of {level}")
    if (it["session_order"], it["real_time"]) != LEVELS[level][1:]:
        raise Malformed("it names other orders than the level does")
    if (level, ryow, skew) not in asked:
        raise Refused("it answers another question")
    if evidence == "reason":
        raise NotChecked("nothing is claimed")
    places = [history.find(mention) for mention in it[evidence]]
    if evidence == "order":
        return replay(history, level, ryow, skew, places)
    core = sorted({place for place in places if history.transactions[place].status != "aborted"})
    if len(core) > core_max:
        raise NotChecked(f"{len(core)} transactions")
    order = explain(history, core, level, ryow, skew)
    if order is not None:
        raise Refused(f"the core proves nothing: {', '.join(order) or 'no transaction'} explains it")


def ruling(history, line, asked, core_max=12):
    """The exit status and a sentence."""
    try:
        certify(history, line, asked, core_max)
    except Refused as error:
        return 1, f"refused: {error}"
    except NotChecked as error:
        return 2, f"not checked: {error}"
    except WRONG_SHAPE + (Malformed,) as error:
        return 3, f"not a certificate: {type(error).__name__}: {error}"
    return 0, "certified"


def main():
    cli = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    cli.add_argument("history", help="JSON lines, also .gz")
    cli.add_argument("certificate")
    cli.add_argument("--level", help="with commas between [default: the one in the history's header, else serializable]")
    cli.add_argument("--ryow", default="must", choices=POLICIES, help="whether reads see own writes")
    cli.add_argument("--clock-skew", type=int, default=0, help="how far the clients' clocks may differ")
    cli.add_argument("--assume", choices=["realtime"], help="count session and real-time order at every level")
    cli.add_argument("--core", type=int, default=12, help="try the orders of at most so many transactions")
    flags = cli.parse_args()
    try:
        with (gzip.open if flags.history.endswith(".gz") else open)(flags.history, "rt", encoding="utf-8") as file:
            history = History(file)
        with open(flags.certificate, encoding="utf-8") as file:
            lines = [(line, parse(line)) for line in file if line.strip()]
        if len({it["file"] for _, it in lines}) > 1:  # the lines about other files are left alone
            lines = [(line, it) for line, it in lines if it["file"] == flags.history]
        asked = set()
        for level in (flags.level or history.level or "serializable").split(","):
            wanted = LEVELS[one_of(SHORT.get(level, level), LEVELS)]
            wanted = (wanted[0], True, True) if flags.assume else wanted
            asked |= {(level, flags.ryow, flags.clock_skew) for level in LEVELS if LEVELS[level] == wanted}
    except WRONG_SHAPE + (Malformed, OSError, EOFError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 3
    worst = []
    for line, it in lines:
        status, sentence = ruling(history, line, asked, flags.core)
        claim = (it.get("level"), it.get("ryow"), it.get("clock_skew"))
        print(f"{flags.history}: {claim[0]} (ryow {claim[1]}, clock skew {claim[2]}): {it.get('verdict')}: {sentence}")
        asked -= {claim} if status in (0, 2) else set()
        worst.append(status)
    for level, ryow, skew in sorted(asked - {(None, None, None)}):
        print(f"{flags.history}: {level} (ryow {ryow}, clock skew {skew}): no certificate proves it")
    return max(worst + [1] * bool(asked), key=[0, 2, 1, 3].index, default=1)


if __name__ == "__main__":
    sys.exit(main())
