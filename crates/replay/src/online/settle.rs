//! A version comes or goes: who looks again?
//!
//! **What.** Between a version and the next one every look sees the same value. When that value changes,
//! exactly the looks in between are compared again; a look that is a program may thereby write something
//! else, which changes the value after its own commit, later in the same key. Nothing ever moves backwards
//! in time and nothing leaves the key, so a change runs through it once, like a ripple.
//!
//! ```text
//!   versions   a ────────── c ────────── d(append)
//!   looks         r1  r2       w  r3          r4        b arrives: r2 looks again
//!                   b                                   d grew from c: unchanged
//! ```
//!
//! **Invariant.** After a ripple every open look of the key has been compared with what it sees now, and
//! every version made by an append is the version before it with its own elements more.
//!
//! **Steps**, for each change in the order of moments:
//! 1. the value after it, and where its stretch ends: at the next version or the next change. A look at the
//!    moment of its own version (at serial levels) sees what is before, so it belongs to the stretch;
//! 2. programs in the stretch are run again on the key; what they write differently is a new change, and
//!    where it falls into the stretch, the stretch ends there;
//! 3. readers in the stretch are compared again;
//! 4. if the next version is an append, it grows from the new value: a new change.

use super::keys::{Before, KeyNo, Version, VersionKind};
use super::program::Own;
use super::space::KeySpace;
use super::stamp::Stamp;
use super::txns::{Moment, NOBODY, TxnNo};
use crate::datum::Datum;

/// What changed: looks after this moment, up to the next version, were last compared with `old`.
struct Change {
    from: Moment,
    old: Datum,
}

impl KeySpace {
    /// A transaction writes a key. False if the version is of no use: it was overwritten long ago.
    pub(super) fn write(&mut self, key: KeyNo, txn: TxnNo, own: Own) -> bool {
        let moment = self.txns.commit_moment(txn);
        let slot = self.keys.get(key);
        let place =
            slot.versions.find(moment.stamp, |version| self.txns.compare(version.moment(), moment).is_lt());
        let before = match slot.versions.previous(place).and_then(|place| slot.versions.get(place)) {
            Some(version) => version.value.clone(),
            None if slot.before == Before::Nothing => Datum::Absent,
            None => return false,
        };
        if self.is_there(key, txn, &own) {
            return false;
        }
        let own = if self.may_have_been_overwritten(key, txn) { Own::Value(Datum::Unknown) } else { own };
        let slot = self.keys.get(key);
        let next = slot.versions.get(slot.versions.settle(place));
        let next = next.map(|version| (version.moment(), version.kind));
        let kind = if matches!(own, Own::Appended(_)) { VersionKind::Append } else { VersionKind::Set };
        let value = match own {
            Own::Value(value) => value,
            own => own.over(&before),
        };
        let version = Version { commit: moment.stamp, txn, value, kind };
        self.hold_version(&version);
        let simple = self.watch.is_empty() && next.is_none_or(|(_, kind)| kind == VersionKind::Set);
        if simple {
            // The usual case: looks up to the next version are compared again, and that is all.
            if version.value != before {
                self.recheck_readers(key, moment, next.map(|(moment, _)| moment), &version.value);
            }
            self.keys.get_mut(key).versions.insert(place, version);
        } else {
            self.keys.get_mut(key).versions.insert(place, version);
            self.ripple(key, Change { from: moment, old: before });
        }
        true
    }

    /// Whether what a late transaction appends is there: it was delivered again, when its first time had been forgotten.
    fn is_there(&self, key: KeyNo, txn: TxnNo, own: &Own) -> bool {
        let Own::Appended(elements) = own else { return false };
        let record = self.txns.get(txn);
        if record.commit > self.watermark {
            return false;
        }
        let is_same = |other: TxnNo| {
            let other = self.txns.get(other);
            (other.session, other.start, other.commit) == (record.session, record.start, record.commit)
        };
        let at = self.txns.commit_moment(txn);
        let version = self.keys.get(key).version_at(at, &self.txns);
        version.is_some_and(|version| {
            version.txn != NOBODY
                && is_same(version.txn)
                && version.value.last_piece().is_some_and(|piece| *piece == **elements)
        })
    }

    /// Whether a late transaction writes a key of which nothing is known, before the horizon: the key may have been written
    /// and deleted since, and be forgotten.
    fn may_have_been_overwritten(&self, key: KeyNo, txn: TxnNo) -> bool {
        let slot = self.keys.get(key);
        slot.versions.is_empty()
            && slot.before == Before::Nothing
            && self.txns.get(txn).commit <= self.horizon
            && self.horizon != Stamp::MIN
    }

    /// What the key holds right before a moment; `None` if that is not known here.
    fn value_before(&self, key: KeyNo, moment: Moment) -> Option<Datum> {
        let key = self.keys.get(key);
        let place =
            key.versions.find(moment.stamp, |version| self.txns.compare(version.moment(), moment).is_lt());
        match key.versions.previous(place).and_then(|place| key.versions.get(place)) {
            Some(version) => Some(version.value.clone()),
            None => (key.before == Before::Nothing).then_some(Datum::Absent),
        }
    }

    pub(super) fn insert_version(&mut self, key: KeyNo, version: Version) {
        let moment = version.moment();
        let old = self.put_version(key, version);
        self.ripple(key, Change { from: moment, old });
    }

    /// Puts a version into its place and returns what was there to see.
    fn put_version(&mut self, key: KeyNo, version: Version) -> Datum {
        let moment = version.moment();
        self.hold_version(&version);
        let txns = &self.txns;
        let slot = self.keys.get_mut(key);
        let place = slot.versions.find(moment.stamp, |other| txns.compare(other.moment(), moment).is_lt());
        let before = slot.versions.previous(place).and_then(|place| slot.versions.get(place));
        let old = before.map_or(Datum::Absent, |version| version.value.clone());
        slot.versions.insert(place, version);
        old
    }

    /// Whether anybody can notice that a key changed after a moment.
    fn is_noticed(&self, key: KeyNo, from: Moment) -> bool {
        if !self.watch.is_empty() {
            return true;
        }
        let slot = self.keys.get(key);
        let last_read = slot.readers.as_deref().and_then(|readers| readers.last());
        if last_read.is_some_and(|reader| self.txns.compare(reader.moment(), from).is_gt()) {
            return true;
        }
        // A later version that grew from this one.
        slot.versions.last().is_some_and(|last| self.txns.compare(last.moment(), from).is_gt())
    }

    fn ripple(&mut self, key: KeyNo, change: Change) {
        if !self.is_noticed(key, change.from) {
            return;
        }
        // In the order of moments; seldom more than one.
        let mut changes = vec![change];
        while !changes.is_empty() {
            let Change { from, old } = changes.remove(0);
            // 1.
            let new = self.value_after(key, from);
            let next = self.next_version(key, from);
            let until = match (next, changes.first().map(|change| change.from)) {
                (Some(a), Some(b)) => Some(if self.txns.compare(a, b).is_lt() { a } else { b }),
                (a, b) => a.or(b),
            };
            if new != old {
                // 2.
                let until = self.rerun_programs(key, from, until, &old, &new, &mut changes);
                // 3.
                self.recheck_readers(key, from, until, &new);
            }
            // 4.
            let next_change = changes.first().map(|change| change.from);
            if let Some(next) = self.next_version(key, from)
                && next_change.is_none_or(|change| self.txns.compare(next, change).is_lt())
            {
                self.regrow(key, next, &mut changes);
            }
        }
    }

    /// The value that looks right after a moment see.
    fn value_after(&self, key: KeyNo, from: Moment) -> Datum {
        let slot = self.keys.get(key);
        let place =
            slot.versions.find(from.stamp, |version| self.txns.compare(version.moment(), from).is_le());
        let version = slot.versions.previous(place).and_then(|place| slot.versions.get(place));
        version.map_or(Datum::Absent, |version| version.value.clone())
    }

    fn next_version(&self, key: KeyNo, from: Moment) -> Option<Moment> {
        let slot = self.keys.get(key);
        let place =
            slot.versions.find(from.stamp, |version| self.txns.compare(version.moment(), from).is_le());
        slot.versions.get(slot.versions.settle(place)).map(Version::moment)
    }

    fn recheck_readers(&mut self, key: KeyNo, from: Moment, until: Option<Moment>, new: &Datum) {
        let txns = &self.txns;
        let slot = self.keys.get_mut(key);
        let Some(readers) = slot.readers.as_deref_mut() else { return };
        // Mostly nobody has looked that late.
        if readers.last().is_some_and(|last| txns.compare(last.moment(), from).is_le()) {
            return;
        }
        let mut place =
            readers.settle(readers.find(from.stamp, |reader| txns.compare(reader.moment(), from).is_le()));
        while let Some(reader) = readers.get_mut(place) {
            if until.is_some_and(|until| txns.compare(reader.moment(), until).is_gt()) {
                break;
            }
            self.counts.rechecks += 1;
            let is_right = reader.seen == *new || !new.is_known();
            if is_right != reader.is_right {
                reader.is_right = is_right;
                self.counts.flips += 1;
                if is_right {
                    self.counts.provisional -= 1;
                } else {
                    self.counts.provisional += 1;
                }
            }
            place = readers.next(place);
        }
    }

    /// Returns where the stretch ends now.
    fn rerun_programs(
        &mut self,
        key: KeyNo,
        from: Moment,
        mut until: Option<Moment>,
        old: &Datum,
        new: &Datum,
        changes: &mut Vec<Change>,
    ) -> Option<Moment> {
        if self.watch.is_empty() {
            return until;
        }
        let mut after = from;
        loop {
            let order = &self.watch.order;
            let place = order.settle(order.find(after.stamp, |look| self.txns.compare(*look, after).is_le()));
            let Some(&look) = order.get(place) else { return until };
            if until.is_some_and(|until| self.txns.compare(look, until).is_gt()) {
                return until;
            }
            after = look;
            let Some(own) = self.rerun(key, look.txn, old, new) else { continue };
            let moment = self.txns.commit_moment(look.txn);
            if !changes.iter().any(|change| change.from == moment) {
                let old = self.last_compared(key, moment, &Change { from, old: old.clone() }, changes);
                let place = changes.partition_point(|other| self.txns.compare(other.from, moment).is_lt());
                changes.insert(place, Change { from: moment, old });
            }
            self.rewrite(key, look.txn, own);
            if until.is_none_or(|until| self.txns.compare(moment, until).is_lt()) {
                until = Some(moment);
            }
        }
    }

    /// Runs a program again on a key that changed before its look; returns what it writes, if that is
    /// something else now.
    fn rerun(&mut self, key: KeyNo, txn: TxnNo, old: &Datum, new: &Datum) -> Option<Own> {
        let ryow = self.ryow;
        let name = &self.keys.get(key).name;
        let watcher = self.watch.by_txn.get_mut(&txn)?;
        let names_it = watcher.pinned.binary_search(&key).is_ok();
        if !names_it && !watcher.program.concerns(name) {
            return None;
        }
        self.counts.rechecks += 1;
        let before = watcher.program.run(key, name, old, ryow);
        let now = watcher.program.run(key, name, new, ryow);
        for op in &before.matched {
            let matched = watcher.matched.entry(*op).or_default();
            // At a worker only the sum over all workers means something.
            *matched = matched.wrapping_sub(1);
        }
        for op in &now.matched {
            let matched = watcher.matched.entry(*op).or_default();
            *matched = matched.wrapping_add(1);
        }
        self.counts.flips += u64::from(before.wrong.is_empty() != now.wrong.is_empty());
        self.counts.provisional -= before.wrong.len() as u64;
        self.counts.provisional += now.wrong.len() as u64;
        let is_wrong = !now.wrong.is_empty();
        let was_wrong = match is_wrong {
            true => watcher.wrong.insert(key, now.wrong).is_some(),
            false => watcher.wrong.remove(&key).is_some(),
        };
        match (was_wrong, is_wrong) {
            (false, true) => self.keys.get_mut(key).pins += 1,
            (true, false) => self.unpin(key),
            _ => {}
        }
        (before.own != now.own).then_some(now.own)
    }

    /// What looks right after a moment were last compared with: the value of the change that has yet to
    /// run through there, or of the version that is there.
    fn last_compared(&self, key: KeyNo, moment: Moment, current: &Change, changes: &[Change]) -> Datum {
        let is_before = |change: &&Change| self.txns.compare(change.from, moment).is_le();
        let change = changes.iter().rev().find(is_before).unwrap_or(current);
        let slot = self.keys.get(key);
        let place =
            slot.versions.find(moment.stamp, |version| self.txns.compare(version.moment(), moment).is_le());
        match slot.versions.previous(place).and_then(|place| slot.versions.get(place)) {
            Some(version) if self.txns.compare(version.moment(), change.from).is_gt() => {
                version.value.clone()
            }
            _ => change.old.clone(),
        }
    }

    /// A program writes something else now.
    fn rewrite(&mut self, key: KeyNo, txn: TxnNo, own: Own) {
        let moment = self.txns.commit_moment(txn);
        self.take_version(key, moment);
        if own == Own::Nothing {
            self.untouch_written(txn, key);
            return;
        }
        let before = self.value_before(key, moment).unwrap_or_default();
        let kind = if matches!(own, Own::Appended(_)) { VersionKind::Append } else { VersionKind::Set };
        let value = own.over(&before);
        self.put_version(key, Version { commit: moment.stamp, txn, value, kind });
        self.touch_written(txn, key);
    }

    fn take_version(&mut self, key: KeyNo, moment: Moment) {
        let txns = &self.txns;
        let slot = self.keys.get_mut(key);
        let place = slot
            .versions
            .settle(slot.versions.find(moment.stamp, |other| txns.compare(other.moment(), moment).is_lt()));
        if slot.versions.get(place).is_some_and(|version| version.txn == moment.txn)
            && let Some(version) = slot.versions.remove(place)
        {
            self.drop_version(&version);
        }
    }

    fn untouch_written(&mut self, txn: TxnNo, key: KeyNo) {
        let touched = &mut self.txns.get_mut(txn).touched;
        let before = touched.len();
        touched.retain(|touch| !(touch.key == key && touch.wrote));
        if touched.len() < before {
            self.unpin(key);
        }
    }

    /// A version that grew by an append grows from what is before it now.
    fn regrow(&mut self, key: KeyNo, moment: Moment, changes: &mut Vec<Change>) {
        let Some(before) = self.value_before(key, moment) else { return };
        let txns = &self.txns;
        let slot = self.keys.get_mut(key);
        let place = slot
            .versions
            .settle(slot.versions.find(moment.stamp, |other| txns.compare(other.moment(), moment).is_lt()));
        let Some(version) = slot.versions.get_mut(place) else { return };
        if version.kind != VersionKind::Append {
            return;
        }
        let Some(piece) = version.value.last_piece() else { return };
        let value = before.append(piece);
        if value == version.value {
            return;
        }
        let old = std::mem::replace(&mut version.value, value);
        let grown = version.value.heap_bytes();
        self.load.unknown_versions += usize::from(!version.value.is_known());
        self.load.bytes = self.load.bytes + grown - old.heap_bytes();
        let place = changes.partition_point(|other| self.txns.compare(other.from, moment).is_lt());
        changes.insert(place, Change { from: moment, old });
    }
}
