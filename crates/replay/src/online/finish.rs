//! The watermark moves: verdicts become final.
//!
//! **Steps.** Looks that the watermark has passed are reported, in the order of looks; then writes, in the
//! order of commits: a version that was overwritten unseen is a conflict. What nobody can ask for any more
//! is dropped on the way.

use super::keys::{Before, KeyNo, Reader, Seen};
use super::program::Wrong;
use super::rank::Share;
use super::space::KeySpace;
use super::stamp::Stamp;
use super::timeline::Timeline;
use super::txns::{Moment, NOBODY, Touch, TxnNo};
use super::watch::Watcher;
use super::{Found, Kind};
use crate::Axiom;
use std::io;

impl KeySpace {
    /// Everything up to the watermark has arrived, and nothing that starts before the horizon will.
    pub(super) fn advance_to(&mut self, watermark: Stamp, horizon: Stamp) -> io::Result<()> {
        self.watermark = self.watermark.max(watermark);
        self.horizon = self.horizon.max(horizon.min(self.watermark));
        self.settle_looks()?;
        while let Some(&(_, txn)) = self.commits.first().filter(|(stamp, _)| *stamp <= self.watermark) {
            self.commits.pop_first();
            self.rank_write(txn);
            self.settle_writes(txn);
        }
        // Only now: a version may be dropped that the next conflict was about.
        for key in std::mem::take(&mut self.written) {
            self.prune(key);
        }
        self.forget_empty_keys();
        Ok(())
    }

    /// Looks up to the watermark become final.
    fn settle_looks(&mut self) -> io::Result<()> {
        let mut together: Vec<TxnNo> = Vec::new();
        while let Some(&(stamp, _)) = self.looks.first().filter(|(stamp, _)| *stamp <= self.watermark) {
            while let Some(&(_, txn)) = self.looks.first().filter(|(other, _)| *other == stamp) {
                self.looks.pop_first();
                together.push(txn);
            }
            self.sort_looks(&mut together);
            for txn in together.drain(..) {
                self.rank_look(txn);
                self.settle_look(txn)?;
            }
        }
        Ok(())
    }

    /// Looks at the same moment, in an order that does not depend on arrival.
    fn sort_looks(&self, together: &mut [TxnNo]) {
        if together.len() > 1 {
            let look = |txn: TxnNo| self.txns.look_moment(txn, self.serial);
            together.sort_by(|&a, &b| {
                let (a, b) = (look(a), look(b));
                a.after.cmp(&b.after).then_with(|| self.compare_names(a.txn, b.txn))
            });
        }
    }

    fn compare_names(&self, a: TxnNo, b: TxnNo) -> std::cmp::Ordering {
        let both = (self.txns.commit_moment(a), self.txns.commit_moment(b));
        let key = |txn: TxnNo| {
            let record = self.txns.get(txn);
            (self.txns.sessions.get(record.session as usize), record.position)
        };
        if self.txns.get(a).start >= self.txns.get(a).commit || self.serial {
            return self.txns.compare(both.0, both.1);
        }
        key(a).cmp(&key(b))
    }

    fn settle_look(&mut self, txn: TxnNo) -> io::Result<()> {
        if let Some(watcher) = self.watch.by_txn.remove(&txn) {
            let txns = &self.txns;
            let order = &mut self.watch.order;
            let place = order
                .settle(order.find(watcher.look.stamp, |other| txns.compare(*other, watcher.look).is_lt()));
            order.remove(place);
            self.finish_watcher(txn, watcher, true)?;
        } else {
            self.settle_reads(txn);
        }
        self.txns.release(txn);
        Ok(())
    }

    fn settle_reads(&mut self, txn: TxnNo) {
        let look = self.txns.look_moment(txn, self.serial);
        let mut touched = std::mem::take(&mut self.txns.get_mut(txn).touched);
        let mut wrong: Vec<Found> = Vec::new();
        for touch in touched.iter_mut().filter(|touch| touch.read) {
            touch.read = false;
            if let Some(reader) = self.take_reader(touch.key, look) {
                if !reader.is_right {
                    self.counts.provisional -= 1;
                    wrong.push(self.wrong_read(touch.key, &reader));
                } else if self.load.unknown_versions > 0 && self.sees_unknown(touch.key, look) {
                    wrong.push(self.unjudged(touch.key, txn, reader.op, &reader.seen));
                }
                self.load.open_results -= 1;
                self.load.bytes -= reader.seen.heap_bytes();
            }
            if !touch.wrote {
                self.unpin(touch.key);
            }
        }
        touched.retain(|touch| touch.wrote);
        self.txns.get_mut(txn).touched = touched;
        self.tell_in_order(wrong);
    }

    pub(super) fn tell_in_order(&mut self, mut wrong: Vec<Found>) {
        wrong.sort_by(|a, b| (a.op, &a.key).cmp(&(b.op, &b.key)));
        for found in wrong {
            self.tell(found);
        }
    }

    fn sees_unknown(&self, key: KeyNo, look: Moment) -> bool {
        let version = self.keys.get(key).version_at(look, &self.txns);
        version.is_some_and(|version| !version.value.is_known())
    }

    fn take_reader(&mut self, key: KeyNo, look: Moment) -> Option<Reader> {
        let txns = &self.txns;
        let slot = self.keys.get_mut(key);
        let readers = slot.readers.as_deref_mut()?;
        // Mostly the first: verdicts become final in the order of looks.
        let reader = if readers.first().is_some_and(|first| first.txn == look.txn) {
            readers.pop_first()
        } else {
            let place =
                readers.settle(readers.find(look.stamp, |other| txns.compare(other.moment(), look).is_lt()));
            readers.get(place).filter(|reader| reader.txn == look.txn)?;
            readers.remove(place)
        };
        if readers.is_empty() {
            slot.readers = None;
        }
        reader
    }

    /// Reads that are wrong as things stand.
    pub(super) fn wrong_reads(&self) -> impl Iterator<Item = Found> {
        self.keys.all().flat_map(move |key| {
            let readers = self.keys.get(key).readers.as_deref().into_iter().flat_map(Timeline::iter);
            readers.filter(|reader| !reader.is_right).map(move |reader| self.wrong_read(key, reader))
        })
    }

    /// What is wrong with a read as things stand.
    pub(super) fn wrong_read(&self, key: KeyNo, reader: &Reader) -> Found {
        let slot = self.keys.get(key);
        let mut found = Found::about(Kind::Broken(Axiom::External), self.txns.named(reader.txn));
        found.op = Some(reader.op);
        found.key = Some(slot.name.clone());
        found.seen = Some(reader.seen.clone());
        if let Seen::Version(value, writer) = slot.seen(reader.moment(), &self.txns) {
            found.expected = Some(value);
            found.other = (writer != NOBODY).then(|| self.txns.named(writer));
        }
        found
    }

    /// The verdict on a program is final; with `judges`, it is reported.
    pub(super) fn finish_watcher(&mut self, txn: TxnNo, watcher: Watcher, judges: bool) -> io::Result<()> {
        let mut wrong = Vec::new();
        for (key, wrongs) in &watcher.wrong {
            self.counts.provisional -= wrongs.len() as u64;
            for one in wrongs {
                wrong.push(self.wrong_result(*key, one, txn, watcher.look)?);
            }
        }
        for (op, count) in watcher.program.counts() {
            let expected = watcher.matched.get(&op).copied().unwrap_or(0);
            let named = self.txns.named(txn);
            if let Some(ranked) = self.ranked_mut().filter(|_| judges) {
                let share = Share { txn: named, op, matched: expected, told: count };
                ranked.shares.push((ranked.now.clone(), share));
            } else if judges && expected != count {
                let mut found = Found::about(Kind::Broken(Axiom::External), named);
                found.op = Some(op);
                found.counts = Some((expected, count));
                wrong.push(found);
            }
        }
        self.tell_in_order(wrong);
        self.watch.acts -= watcher.program.acts.len();
        for key in watcher.pinned.into_iter().chain(watcher.wrong.into_keys()) {
            self.unpin(key);
        }
        Ok(())
    }

    fn wrong_result(&mut self, key: KeyNo, wrong: &Wrong, txn: TxnNo, look: Moment) -> io::Result<Found> {
        let mut found = Found::about(Kind::Broken(wrong.axiom), self.txns.named(txn));
        found.op = Some(wrong.op);
        found.key = Some(self.keys.get(key).name.clone());
        found.expected = Some(wrong.expected.clone());
        found.seen = Some(wrong.seen.clone());
        if wrong.names_writer
            && let Some((_, writer)) = self.certain_value(key, look)?
        {
            found.other = (writer != NOBODY).then(|| self.txns.named(writer));
            self.txns.release(writer);
        }
        Ok(found)
    }

    // ---- writes ----

    fn settle_writes(&mut self, txn: TxnNo) {
        let mut touched = std::mem::take(&mut self.txns.get_mut(txn).touched);
        let mut conflicts = Vec::new();
        for touch in &mut touched {
            let Touch { key, wrote, .. } = *touch;
            if !wrote {
                continue;
            }
            touch.wrote = false;
            if !self.serial {
                conflicts.extend(self.judge_conflict(txn, key));
            }
            self.written.push(key);
            if !touch.read {
                self.unpin(key);
            }
        }
        touched.retain(|touch| touch.read);
        self.txns.get_mut(txn).touched = touched;
        self.tell_in_order(conflicts);
        self.txns.release(txn);
    }

    /// Whether the version that a transaction overwrote was in its snapshot.
    fn judge_conflict(&self, txn: TxnNo, key: KeyNo) -> Option<Found> {
        let moment = self.txns.commit_moment(txn);
        let versions = &self.keys.get(key).versions;
        let place =
            versions.find(moment.stamp, |version| self.txns.compare(version.moment(), moment).is_lt());
        let other = versions.get(versions.previous(place)?)?;
        if other.txn == NOBODY || other.commit <= self.txns.get(txn).start {
            return None;
        }
        let mut found = Found::about(Kind::Broken(Axiom::NoConflict), self.txns.named(txn));
        found.key = Some(self.keys.get(key).name.clone());
        found.other = Some(self.txns.named(other.txn));
        Some(found)
    }

    /// Somebody no longer speaks of a key.
    pub(super) fn unpin(&mut self, key: KeyNo) {
        let slot = self.keys.get_mut(key);
        slot.pins -= 1;
        if slot.pins == 0 && slot.versions.last().is_none_or(|last| !last.value.is_present()) {
            self.empty.push(key);
        }
    }

    /// Forgets keys that are absent and were never anything else, as far as anybody can ask.
    fn forget_empty_keys(&mut self) {
        for key in std::mem::take(&mut self.empty) {
            // It may have been evicted since, and its slot be another's.
            if key as usize >= self.keys.slot_count() {
                continue;
            }
            let slot = self.keys.get(key);
            if !slot.is_here || !slot.is_idle() || slot.before == Before::Cold || slot.first_is_cold {
                continue;
            }
            let mut versions = slot.versions.iter();
            let absent = match (versions.next(), versions.next()) {
                (None, _) => slot.before == Before::Nothing,
                (Some(only), None) => !only.value.is_present() && only.commit <= self.horizon,
                _ => false,
            };
            drop(versions);
            if absent {
                let removed = self.keys.remove(key);
                for version in removed.versions.iter() {
                    self.drop_version(version);
                }
            }
        }
    }

    /// Drops the versions of a key that no look from the horizon on can see.
    fn prune(&mut self, key: KeyNo) {
        while self.is_first_obsolete(key, self.horizon) {
            let slot = self.keys.get_mut(key);
            slot.before = if slot.before == Before::Cold { Before::Cold } else { Before::Dropped };
            slot.first_is_cold = false;
            if let Some(version) = slot.versions.pop_first() {
                self.drop_version(&version);
            }
        }
    }
}
