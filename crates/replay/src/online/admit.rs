//! A piece of a transaction enters the keys it speaks of.
//!
//! **Steps** (those of [`super::receive`] go before):
//!
//! 3. Its looks are compared with the versions that are here, and wait in the keys' timelines.
//! 4. Its writes become versions, and later looks at those keys are compared again ([`super::settle`]).

use super::keys::{KeyNo, Reader, Seen, Version, VersionKind};
use super::program::{Act, Outcome, Own, Program, Wrong};
use super::space::KeySpace;
use super::stamp::Stamp;
use super::timeline::Timeline;
use super::txns::{Moment, NOBODY, Touch, Txn, TxnNo};
use super::watch::Watcher;
use super::{Found, Kind};
use crate::Axiom;
use crate::datum::Datum;
use history::Name;
use std::collections::BTreeMap;
use std::io;

/// What a transaction saw of a key and left there.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) key: KeyNo,
    /// The first look at the outside, and which operation it was.
    pub(super) look: Option<(Datum, u32)>,
    pub(super) own: Own,
}

impl KeySpace {
    /// Steps 3 and 4 for single keys.
    pub(super) fn admit_points(&mut self, txn: Txn, pieces: &mut Vec<Piece>) -> io::Result<()> {
        let is_late = txn.commit <= self.watermark;
        let txn = self.txns.insert(txn);
        let look = self.txns.look_moment(txn, self.serial);
        let is_open = look.stamp > self.watermark;
        let mut touched = Vec::with_capacity(pieces.len());
        let mut judged = Vec::new();
        let (mut reads, mut writes) = (false, false);
        for Piece { key, look: seen, own } in pieces.drain(..) {
            let mut touch = Touch { key, read: false, wrote: false };
            if let Some((seen, op)) = seen.filter(|_| !is_late) {
                if is_open {
                    self.open_read(key, look, op, seen);
                    touch.read = true;
                } else {
                    judged.extend(self.judge_now(key, look, op, &seen)?);
                }
            }
            if own != Own::Nothing {
                touch.wrote = self.write(key, txn, own) && !is_late;
            }
            if touch.read || touch.wrote {
                self.keys.get_mut(key).pins += 1;
                touched.push(touch);
            }
            reads |= touch.read;
            writes |= touch.wrote;
        }
        self.tell_in_order(judged);
        self.txns.get_mut(txn).touched = touched;
        self.wait(txn, look, reads, writes);
        self.txns.release(txn);
        Ok(())
    }

    /// What a key holds before everything, unless that is known.
    pub(super) fn begin_with(&mut self, key: KeyNo, value: Datum) {
        let at_beginning = |version: &Version| version.txn == NOBODY;
        if self.keys.get(key).versions.first().is_some_and(at_beginning) {
            return;
        }
        let version = Version { commit: Stamp::MIN, txn: NOBODY, value, kind: VersionKind::Set };
        self.insert_version(key, version);
    }

    /// Queues a transaction for the verdicts that are open.
    fn wait(&mut self, txn: TxnNo, look: Moment, reads: bool, writes: bool) {
        if reads {
            self.txns.hold(txn);
            enqueue(&mut self.looks, look.stamp, txn);
        }
        if writes {
            self.txns.hold(txn);
            enqueue(&mut self.commits, self.txns.get(txn).commit, txn);
        }
    }

    fn open_read(&mut self, key: KeyNo, look: Moment, op: u32, seen: Datum) {
        let is_right = self.keys.get(key).shows(&seen, look, &self.txns);
        self.counts.provisional += u64::from(!is_right);
        self.load.open_results += 1;
        self.load.bytes += seen.heap_bytes();
        let reader = Reader { at: look.stamp, after: look.after, is_right, op, txn: look.txn, seen };
        let txns = &self.txns;
        let readers = self.keys.get_mut(key).readers.get_or_insert_default();
        let place = readers.find(look.stamp, |other| txns.compare(other.moment(), look).is_lt());
        readers.insert(place, reader);
    }

    /// A look at or before the watermark: what it had to see is certain.
    fn judge_now(&mut self, key: KeyNo, look: Moment, op: u32, seen: &Datum) -> io::Result<Option<Found>> {
        let mut wrong = None;
        let Some((expected, writer)) = self.certain_value(key, look)? else {
            return Ok(Some(self.unjudged(key, look.txn, op, seen)));
        };
        if !expected.is_known() {
            self.txns.release(writer);
            return Ok(Some(self.unjudged(key, look.txn, op, seen)));
        }
        if expected != *seen {
            let mut found = Found::about(Kind::Broken(Axiom::External), self.txns.named(look.txn));
            found.op = Some(op);
            found.key = Some(self.keys.get(key).name.clone());
            found.other = (writer != NOBODY).then(|| self.txns.named(writer));
            found.expected = Some(expected);
            found.seen = Some(seen.clone());
            wrong = Some(found);
        }
        self.txns.release(writer);
        Ok(wrong)
    }

    pub(super) fn unjudged(&self, key: KeyNo, txn: TxnNo, op: u32, seen: &Datum) -> Found {
        let mut found = Found::about(Kind::Unjudged, self.txns.named(txn));
        found.op = Some(op);
        found.key = Some(self.keys.get(key).name.clone());
        found.seen = Some(seen.clone());
        found
    }

    /// What a look at or before the watermark sees, with the writer held once; `None` if that lies before
    /// the horizon.
    pub(super) fn certain_value(&mut self, key: KeyNo, look: Moment) -> io::Result<Option<(Datum, TxnNo)>> {
        match self.keys.get(key).seen(look, &self.txns) {
            Seen::Version(value, writer) => {
                self.txns.hold(writer);
                Ok(Some((value, writer)))
            }
            Seen::Gone if look.stamp < self.horizon => Ok(None),
            Seen::Gone => match self.fetch(key, look.stamp)? {
                Some(version) => Ok(Some((version.value, version.txn))),
                None => Ok(Some((Datum::Absent, NOBODY))),
            },
        }
    }

    /// Steps 3 and 4 for programs.
    pub(super) fn admit_program(&mut self, txn: Txn, program: Program) -> io::Result<()> {
        let is_late = txn.commit <= self.watermark;
        let txn = self.txns.insert(txn);
        let look = self.txns.look_moment(txn, self.serial);
        let keys = self.keys_of(&program)?;
        let pinned = self.pin_named(&program);
        let mut watcher = Watcher { look, program, wrong: BTreeMap::new(), matched: BTreeMap::new(), pinned };
        let mut may_write = watcher.program.may_come_to_write();
        for key in keys {
            let outcome = self.run(&watcher, key)?;
            watcher.count_matches(&outcome);
            if !is_late {
                self.note_wrong(&mut watcher, key, outcome.wrong);
            }
            may_write |= self.write_of_program(txn, key, outcome.own, is_late);
        }
        self.watch.acts += watcher.program.acts.len();
        let is_open = look.stamp > self.watermark;
        match is_open {
            true => self.keep_watching(watcher),
            false => self.finish_watcher(txn, watcher, !is_late)?,
        }
        self.wait(txn, look, is_open, may_write && !is_late);
        self.txns.release(txn);
        Ok(())
    }

    /// What a program does to a key as things stand.
    fn run(&mut self, watcher: &Watcher, key: KeyNo) -> io::Result<Outcome> {
        let value = self.value_for(key, watcher.look)?;
        Ok(watcher.program.run(key, &self.keys.get(key).name, &value, self.ryow))
    }

    /// What a look finds; unknown if that lies before the horizon.
    fn value_for(&mut self, key: KeyNo, look: Moment) -> io::Result<Datum> {
        if look.stamp > self.watermark {
            return Ok(match self.keys.get(key).seen(look, &self.txns) {
                Seen::Version(value, _) => value,
                Seen::Gone => Datum::Absent,
            });
        }
        let Some((value, writer)) = self.certain_value(key, look)? else { return Ok(Datum::Unknown) };
        self.txns.release(writer);
        Ok(value)
    }

    /// Results of a program that are wrong as things stand; the key is pinned.
    fn note_wrong(&mut self, watcher: &mut Watcher, key: KeyNo, wrong: Vec<Wrong>) {
        if !wrong.is_empty() {
            self.counts.provisional += wrong.len() as u64;
            watcher.wrong.insert(key, wrong);
            self.keys.get_mut(key).pins += 1;
        }
    }

    /// What a program leaves in a key. Whether a verdict on that waits for the watermark.
    fn write_of_program(&mut self, txn: TxnNo, key: KeyNo, own: Own, is_late: bool) -> bool {
        let waits = own != Own::Nothing && self.write(key, txn, own) && !is_late;
        if waits {
            self.touch_written(txn, key);
        }
        waits
    }

    /// Whatever changes before the look of a program is run again.
    fn keep_watching(&mut self, watcher: Watcher) {
        let (look, txns) = (watcher.look, &self.txns);
        let place = self.watch.order.find(look.stamp, |other| txns.compare(*other, look).is_lt());
        self.watch.order.insert(place, look);
        self.watch.by_txn.insert(look.txn, watcher);
    }

    /// The keys that a program may have something to say of.
    pub(super) fn keys_of(&mut self, program: &Program) -> io::Result<Vec<KeyNo>> {
        if !program.is_wide() {
            return Ok(program.named_keys());
        }
        for (_, act) in &program.acts {
            match act {
                Act::Range { region, .. } => self.fetch_range(region.from.as_ref(), region.to.as_ref())?,
                Act::Query { .. } | Act::WriteIf { only: None, .. } => self.fetch_range(None, None)?,
                _ => {}
            }
        }
        let named = program.named_keys();
        // By name, so that nothing depends on the order of arrival.
        let ordered = self.keys.ordered();
        let concerned = |(name, key): (&Name, &KeyNo)| {
            (named.binary_search(key).is_ok() || program.concerns(name)).then_some(*key)
        };
        Ok(ordered.iter().filter_map(concerned).collect())
    }

    pub(super) fn pin_named(&mut self, program: &Program) -> Vec<KeyNo> {
        let named = program.named_keys();
        for &key in &named {
            self.keys.get_mut(key).pins += 1;
        }
        named
    }

    /// Remembers that a transaction wrote a key, so that the conflict is judged.
    pub(super) fn touch_written(&mut self, txn: TxnNo, key: KeyNo) {
        let record = self.txns.get_mut(txn);
        if !record.touched.iter().any(|touch| touch.key == key && touch.wrote) {
            record.touched.push(Touch { key, read: false, wrote: true });
            self.keys.get_mut(key).pins += 1;
        }
    }
}

/// Puts a transaction into a queue for the watermark.
pub(super) fn enqueue(queue: &mut Timeline<(Stamp, TxnNo)>, stamp: Stamp, txn: TxnNo) {
    let place = queue.find(stamp, |(other, _)| *other <= stamp);
    queue.insert(place, (stamp, txn));
}
