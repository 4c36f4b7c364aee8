//! What does not fit into memory: versions at or before the watermark, in a store that the caller gives.
//!
//! **What.** Idle keys go with all their versions; of busy keys, when no horizon lets them be dropped, the
//! versions before the newest final one. A key that is touched again comes back with its newest version;
//! an older one is fetched when a look needs it.
//!
//! **Invariant.** What is in the store never changes: only final versions go there. A key's newest version
//! is in memory, or the key is not in memory at all.
//!
//! The choice of keys is the clock's: the hand goes round the table, spares what was used since its last
//! visit, and takes the rest.

use super::codec::{Input, Output};
use super::keys::{Before, Key, KeyNo, Version};
use super::save;
use super::space::KeySpace;
use super::stamp::Stamp;
use super::txns::NOBODY;
use history::{Name, NameRef};
use std::collections::BTreeMap;
use std::io;

/// A key as bytes that sort as names do: integers first, then strings.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ColdKey(pub Box<[u8]>);

/// A timestamp as bytes that sort as timestamps do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ColdTime(pub [u8; 12]);

/// One version of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColdRecord {
    /// Whose version it is.
    pub key: ColdKey,
    /// When it was committed.
    pub time: ColdTime,
    /// The rest, opaque to the store.
    pub content: Box<[u8]>,
}

/// A store for versions. Several versions of a key may have the same time; of those, the one that was put
/// last counts as the newest.
pub trait Cold: Send {
    /// Stores versions, which are sorted by key and of each key by time.
    fn put(&mut self, records: Vec<ColdRecord>) -> io::Result<()>;
    /// The newest version of a key at or before a time.
    fn newest(&mut self, key: &ColdKey, until: ColdTime) -> io::Result<Option<ColdRecord>>;
    /// The keys from one (included) to another (excluded), ascending; a missing bound is open.
    fn keys(&mut self, from: Option<&ColdKey>, to: Option<&ColdKey>) -> io::Result<Vec<ColdKey>>;
    /// Of each key, what is older than its newest version at or before this time may be forgotten.
    fn forget(&mut self, until: ColdTime) -> io::Result<()>;
    /// How many bytes it takes.
    fn bytes(&self) -> u64;
}

impl ColdKey {
    /// Of a key's name.
    pub fn of(name: NameRef<'_>) -> Self {
        let mut bytes = Vec::with_capacity(16);
        match name {
            NameRef::Int(value) => {
                bytes.push(1);
                bytes.extend_from_slice(&(value as u64 ^ (1 << 63)).to_be_bytes());
            }
            NameRef::Str(text) => {
                bytes.push(2);
                bytes.extend_from_slice(text.as_bytes());
            }
        }
        Self(bytes.into())
    }

    /// The key's name.
    pub fn name(&self) -> Option<Name> {
        match self.0.split_first()? {
            (1, rest) => {
                let bits = u64::from_be_bytes(rest.try_into().ok()?);
                Some(Name::Int((bits ^ (1 << 63)) as i64))
            }
            (2, rest) => Some(Name::Str(String::from_utf8(rest.to_vec()).ok()?)),
            _ => None,
        }
    }
}

impl From<Stamp> for ColdTime {
    fn from(stamp: Stamp) -> Self {
        let mut bytes = [0; 12];
        for (place, word) in stamp.words().into_iter().enumerate() {
            bytes[4 * place..4 * place + 4].copy_from_slice(&word.to_be_bytes());
        }
        Self(bytes)
    }
}

impl ColdTime {
    /// After all others.
    pub const MAX: Self = Self([0xff; 12]);
}

/// By time, and at the same time by the order of putting.
type VersionsByTime = BTreeMap<(ColdTime, u64), Box<[u8]>>;

/// A cold store in memory, for tests and for those who want none.
#[derive(Debug, Default)]
pub struct MemoryCold {
    versions: BTreeMap<ColdKey, VersionsByTime>,
    next: u64,
    bytes: u64,
}

impl Cold for MemoryCold {
    fn put(&mut self, records: Vec<ColdRecord>) -> io::Result<()> {
        for record in records {
            self.bytes += (record.key.0.len() + record.content.len()) as u64;
            self.next += 1;
            self.versions.entry(record.key).or_default().insert((record.time, self.next), record.content);
        }
        Ok(())
    }

    fn newest(&mut self, key: &ColdKey, until: ColdTime) -> io::Result<Option<ColdRecord>> {
        let Some(versions) = self.versions.get(key) else { return Ok(None) };
        let found = versions.range(..=(until, u64::MAX)).next_back();
        Ok(found.map(|(&(time, _), content)| ColdRecord { key: key.clone(), time, content: content.clone() }))
    }

    fn keys(&mut self, from: Option<&ColdKey>, to: Option<&ColdKey>) -> io::Result<Vec<ColdKey>> {
        let inside = |key: &&ColdKey| from.is_none_or(|from| *key >= from) && to.is_none_or(|to| *key < to);
        Ok(self.versions.keys().filter(inside).cloned().collect())
    }

    fn forget(&mut self, until: ColdTime) -> io::Result<()> {
        for versions in self.versions.values_mut() {
            let Some((&newest, _)) = versions.range(..=(until, u64::MAX)).next_back() else { continue };
            *versions = versions.split_off(&newest);
        }
        Ok(())
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl KeySpace {
    /// The key of a name, fetched from the cold store or made.
    pub(super) fn key(&mut self, name: NameRef<'_>) -> io::Result<KeyNo> {
        if let Some(key) = self.keys.find(name) {
            self.keys.get_mut(key).is_fresh = true;
            return Ok(key);
        }
        let fetched = match &mut self.spilled.store {
            Some(cold) if self.spilled.is_used => cold.newest(&ColdKey::of(name), ColdTime::MAX)?,
            _ => None,
        };
        let key = self.keys.insert(name.to_owned());
        if let Some(record) = fetched {
            self.counts.fetched += 1;
            let version = self.thaw(&record)?;
            self.hold_version(&version);
            self.txns.release(version.txn);
            let slot = self.keys.get_mut(key);
            slot.before = Before::Cold;
            slot.first_is_cold = true;
            slot.versions.insert(slot.versions.find(Stamp::MAX, |_| true), version);
        }
        Ok(key)
    }

    /// The newest version of a key before a look, from the cold store; its writer is held once.
    pub(super) fn fetch(&mut self, key: KeyNo, until: Stamp) -> io::Result<Option<Version>> {
        let Some(cold) = &mut self.spilled.store else { return Ok(None) };
        let name = ColdKey::of(self.keys.get(key).name.as_ref());
        let record = cold.newest(&name, until.into())?;
        self.counts.fetched += 1;
        record.map(|record| self.thaw(&record)).transpose()
    }

    /// Fetches every key between two bounds that is not in memory.
    pub(super) fn fetch_range(&mut self, from: Option<&Name>, to: Option<&Name>) -> io::Result<()> {
        if !self.spilled.is_used {
            return Ok(());
        }
        let Some(cold) = &mut self.spilled.store else { return Ok(()) };
        let bound = |name: Option<&Name>| name.map(|name| ColdKey::of(name.as_ref()));
        for key in cold.keys(bound(from).as_ref(), bound(to).as_ref())? {
            let name = key.name().ok_or_else(|| damaged("a key"))?;
            self.key(name.as_ref())?;
        }
        Ok(())
    }

    fn freeze(&self, name: &ColdKey, version: &Version) -> ColdRecord {
        let mut content = Vec::new();
        let mut out = Output::new(&mut content);
        // Writing into a vector cannot fail.
        let _ = save::put_writer(&mut out, version.txn, &self.txns);
        let _ = out.datum(&version.value);
        ColdRecord { key: name.clone(), time: version.commit.into(), content: content.into() }
    }

    /// A version from its record; its writer is held once.
    fn thaw(&mut self, record: &ColdRecord) -> io::Result<Version> {
        let mut content: &[u8] = &record.content;
        let mut input = Input::new(&mut content);
        let txn = save::get_writer(&mut input, &mut self.txns)?;
        let value = input.datum()?;
        let commit = if txn == NOBODY { Stamp::MIN } else { self.txns.get(txn).commit };
        Ok(Version { commit, txn, value, kind: super::keys::VersionKind::Set })
    }

    /// Makes room, if there is less than there may be.
    pub(super) fn make_room(&mut self) -> io::Result<()> {
        let Some(max) = self.memory_max.filter(|_| self.spilled.store.is_some()) else { return Ok(()) };
        if self.size().bytes <= max {
            return Ok(());
        }
        let goal = max - max / 4;
        let mut records = Vec::new();
        // Twice round: what was spared the first time may go the second.
        for _ in 0..2 * self.keys.slot_count() {
            if self.size().bytes <= goal {
                break;
            }
            if self.spilled.hand >= self.keys.slot_count() {
                self.spilled.hand = 0;
            }
            let key = self.spilled.hand as KeyNo;
            self.spilled.hand += 1;
            self.evict(key, &mut records);
        }
        self.keys.shrink();
        records.sort_by(|a, b| (&a.key, a.time).cmp(&(&b.key, b.time)));
        if let Some(cold) = &mut self.spilled.store {
            if !records.is_empty() {
                cold.put(records)?;
            }
            if self.horizon != Stamp::MIN {
                cold.forget(self.horizon.into())?;
            }
        }
        Ok(())
    }

    /// Moves what can go of a key into `records`.
    fn evict(&mut self, number: KeyNo, records: &mut Vec<ColdRecord>) {
        let key = self.keys.get_mut(number);
        if !key.is_here {
            return;
        }
        let is_fresh = std::mem::take(&mut key.is_fresh);
        let name = ColdKey::of(key.name.as_ref());
        self.evict_old(number, &name, records);
        let key = self.keys.get(number);
        let is_final = key.versions.last().is_none_or(|version| version.commit <= self.watermark);
        if is_fresh || !key.is_idle() || !is_final {
            return;
        }
        let Key { versions, first_is_cold, before, .. } = self.keys.remove(number);
        // A key that was never written and has nothing in the store needs no record: it is absent.
        debug_assert!(versions.len() <= 1 || before != Before::Nothing || !first_is_cold);
        for (place, version) in versions.iter().enumerate() {
            if !(first_is_cold && place == 0) {
                records.push(self.freeze(&name, version));
            }
            self.drop_version(version);
        }
        if versions.is_empty() {
            return;
        }
        self.counts.evicted += 1;
        self.spilled.is_used = true;
    }

    /// The final versions of a key that are not its newest final one.
    fn evict_old(&mut self, number: KeyNo, name: &ColdKey, records: &mut Vec<ColdRecord>) {
        loop {
            if !self.is_first_obsolete(number, self.watermark) {
                return;
            }
            let key = self.keys.get(number);
            let Some(first) = key.versions.first() else { return };
            if !key.first_is_cold {
                let record = self.freeze(name, first);
                records.push(record);
                self.counts.evicted += 1;
                self.spilled.is_used = true;
            }
            let key = self.keys.get_mut(number);
            key.first_is_cold = false;
            key.before = Before::Cold;
            if let Some(version) = key.versions.pop_first() {
                self.drop_version(&version);
            }
        }
    }

    /// Whether a later version is at or before a bound, so that no look after it sees the first version and no conflict
    /// is about it.
    pub(super) fn is_first_obsolete(&self, number: KeyNo, bound: Stamp) -> bool {
        self.keys.get(number).versions.second().is_some_and(|second| second.commit <= bound)
    }

    pub(super) fn hold_version(&mut self, version: &Version) {
        self.txns.hold(version.txn);
        self.load.versions += 1;
        self.load.unknown_versions += usize::from(!version.value.is_known());
        self.load.bytes += version.value.heap_bytes();
    }

    pub(super) fn drop_version(&mut self, version: &Version) {
        self.txns.release(version.txn);
        self.load.versions -= 1;
        self.load.unknown_versions -= usize::from(!version.value.is_known());
        self.load.bytes -= version.value.heap_bytes();
    }
}

/// What was put into the store does not come back as it was.
pub(super) fn damaged(what: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("the store for what does not fit into memory gave back {what} that was never put there"),
    )
}
