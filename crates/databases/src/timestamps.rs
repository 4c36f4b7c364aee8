//! Exact start and commit timestamps of an unmodified server, from what it tells its clients.
//!
//! Timestamps count commits. A snapshot that sees the first n commits gives its transaction the start
//! 2n + 1; the r-th commit has the timestamp 2r. So a transaction sees exactly the commits below its start,
//! and no start equals a commit. A transaction that wrote nothing commits at its start.
//!
//! **Snapshots as sets** (PostgreSQL: `xmin:xmax:xip`; C is the set of committed transactions that changed
//! something, from the server's log):
//!
//! 1. n of a snapshot is |{x ∈ C : x < xmax}| − |xip ∩ C|.
//! 2. Commits become visible one after the other under one lock, and snapshots are taken under the same
//!    lock, so snapshots are nested. Going through them by n, the transactions that one sees and the one
//!    before did not get the next ranks; among each other they are ordered by their place in the log.
//! 3. Invariant, checked: after a snapshot of n, exactly n transactions have a rank.
//!
//! The order of commit records in the log alone is not enough: a transaction becomes visible some time
//! after its record is written, and others overtake it there. Nor is the order of transaction ids.
//!
//! **Snapshots as positions** (MariaDB: a place in the binary log): n is the number of transactions that
//! end at or before the place, and the commit is the transaction's number in the log.
//!
//! Cost: O((C + Σ|xip|) log C). Source: derived from the servers' visibility rules and tried on them;
//! compare the timestamps of Chronos and Aion (Li et al., ICDE 2025) §II, which need a changed server or client-side oracles.

use crate::driver::Failure;
use record::Stamp;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap, HashSet};

/// Start and commit of a transaction.
pub(crate) type Times = (i64, i64);

fn start_time(seen: usize) -> i64 {
    2 * seen as i64 + 1
}

fn commit_time(rank: usize) -> i64 {
    2 * rank as i64
}

/// The last commit at or before a commit timestamp; all transactions that begin when it has happened, and
/// nothing else is open, start after it.
pub(crate) fn settled(commit: i64) -> i64 {
    commit - commit.rem_euclid(2)
}

/// Everything a set snapshot says: transactions below `xmax` are visible if they committed, except `xip`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct SetSnapshot {
    xmax: u64,
    /// Ascending.
    xip: Vec<u64>,
}

impl SetSnapshot {
    /// `xmin:xmax:xip,xip,…`
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(':');
        let _xmin: u64 = parts.next()?.parse().ok()?;
        let xmax = parts.next()?.parse().ok()?;
        let xip = parts.next()?.split(',').filter(|xid| !xid.is_empty());
        let mut xip = xip.map(|xid| xid.parse().ok()).collect::<Option<Vec<u64>>>()?;
        xip.sort_unstable();
        parts.next().is_none().then_some(Self { xmax, xip })
    }

    /// Whether a transaction had ended; if it committed, the snapshot holds what it wrote.
    pub(crate) fn sees(&self, xid: u64) -> bool {
        xid < self.xmax && self.xip.binary_search(&xid).is_err()
    }

    /// Whether the other one sees everything that this one sees.
    pub(crate) fn is_within(&self, other: &Self) -> bool {
        self.xmax <= other.xmax && other.xip.iter().all(|&xid| !self.sees(xid))
    }

    /// The whole id of a transaction of which the log tells the lower half, at a time when this is a snapshot.
    pub(crate) fn widen(&self, xid: u32) -> u64 {
        const HALF: u64 = 1 << 31;
        let near = (self.xmax & !u64::from(u32::MAX)) | u64::from(xid);
        match near {
            near if near > self.xmax + HALF => near.saturating_sub(2 * HALF),
            near if near + HALF < self.xmax => near + 2 * HALF,
            near => near,
        }
    }
}

/// Timestamps from set snapshots. `committed` holds the ids of C in the order of the log; `before` more came before
/// them, and every snapshot sees those.
pub(crate) fn from_sets(
    stamps: &[Option<Stamp>],
    before: usize,
    committed: &[u64],
) -> Result<Vec<Option<Times>>, Failure> {
    let unreadable = |text: &str| Failure::mistake(format!("the server's snapshot {text:?} cannot be read"));
    let place: HashMap<u64, usize> = committed.iter().enumerate().map(|(place, &xid)| (xid, place)).collect();
    let mut sorted = committed.to_vec();
    sorted.sort_unstable();
    // 1. How many commits each snapshot sees.
    let mut snapshots: Vec<Option<(usize, SetSnapshot)>> = Vec::with_capacity(stamps.len());
    for stamp in stamps {
        snapshots.push(match stamp {
            None => None,
            Some(stamp) => {
                let snapshot =
                    SetSnapshot::parse(&stamp.snapshot).ok_or_else(|| unreadable(&stamp.snapshot))?;
                let below = sorted.partition_point(|&xid| xid < snapshot.xmax);
                let running = snapshot.xip.iter().filter(|xid| place.contains_key(xid)).count();
                Some((below - running, snapshot))
            }
        });
    }
    // 2. Ranks in the order in which snapshots first see them.
    let rank = ranks(snapshots.iter().flatten(), &place)?;
    let time = |(stamp, snapshot): (&Option<Stamp>, &Option<(usize, SetSnapshot)>)| {
        let (stamp, (seen, _)) = (stamp.as_ref()?, snapshot.as_ref()?);
        let start = start_time(before + *seen);
        let xid: Option<u64> = stamp.commit.as_ref().and_then(|xid| xid.parse().ok());
        Some(match xid.and_then(|xid| rank.get(&xid)) {
            Some(&rank) => (start, commit_time(before + rank)),
            None => (start, start),
        })
    };
    Ok(stamps.iter().zip(&snapshots).map(time).collect())
}

fn ranks<'s>(
    snapshots: impl Iterator<Item = &'s (usize, SetSnapshot)>,
    place: &HashMap<u64, usize>,
) -> Result<HashMap<u64, usize>, Failure> {
    let mut by_size: Vec<&(usize, SetSnapshot)> = snapshots.collect();
    by_size.sort_by_key(|(seen, _)| *seen);
    by_size.dedup_by_key(|(seen, _)| *seen);
    let mut waiting: BTreeSet<u64> = place.keys().copied().collect();
    let mut rank = HashMap::with_capacity(place.len());
    let give = |mut newly: Vec<u64>, rank: &mut HashMap<u64, usize>, waiting: &mut BTreeSet<u64>| {
        newly.sort_unstable_by_key(|xid| place.get(xid));
        for xid in newly {
            waiting.remove(&xid);
            rank.insert(xid, rank.len() + 1);
        }
    };
    for (seen, snapshot) in by_size {
        let running: HashSet<u64> = snapshot.xip.iter().copied().collect();
        let newly = waiting.range(..snapshot.xmax).filter(|xid| !running.contains(xid)).copied().collect();
        give(newly, &mut rank, &mut waiting);
        if rank.len() != *seen {
            let message = format!(
                "the server's snapshots are not nested: one sees {seen} commits, all smaller ones {}",
                rank.len()
            );
            return Err(Failure::mistake(message));
        }
    }
    let rest = waiting.iter().copied().collect();
    give(rest, &mut rank, &mut waiting);
    Ok(rank)
}

/// A transaction in a log: its name, and the place where it ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Logged {
    pub(crate) name: String,
    pub(crate) end: LogPlace,
}

/// A place in a log of numbered files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LogPlace {
    pub(crate) file: u64,
    pub(crate) offset: u64,
}

impl LogPlace {
    /// `binlog.000001:344`: the file's number is what follows its last dot.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (file, offset) = text.rsplit_once(':')?;
        let (_, number) = file.rsplit_once('.')?;
        Some(Self { file: number.parse().ok()?, offset: offset.parse().ok()? })
    }
}

/// Timestamps from snapshots that are places in a log. `log` holds its transactions in order.
pub(crate) fn from_places(stamps: &[Option<Stamp>], log: &[Logged]) -> Result<Vec<Option<Times>>, Failure> {
    let rank: HashMap<&str, usize> =
        log.iter().enumerate().map(|(place, logged)| (logged.name.as_str(), place + 1)).collect();
    let time = |stamp: &Option<Stamp>| {
        let Some(stamp) = stamp else { return Ok(None) };
        let place = LogPlace::parse(&stamp.snapshot).ok_or_else(|| {
            Failure::mistake(format!("the server's snapshot {:?} cannot be read", stamp.snapshot))
        })?;
        let start = start_time(log.partition_point(|logged| logged.end <= place));
        let commit = match &stamp.commit {
            None => start,
            Some(name) => match rank.get(name.as_str()) {
                Some(&rank) => commit_time(rank),
                None => return Err(Failure::mistake(format!("transaction {name} is not in the binary log"))),
            },
        };
        Ok(Some((start, commit)))
    };
    stamps.iter().map(time).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(snapshot: &str, commit: Option<&str>) -> Option<Stamp> {
        Some(Stamp { snapshot: snapshot.into(), commit: commit.map(str::to_owned) })
    }

    #[test]
    fn visibility_counts_not_the_order_of_the_log() {
        // The log says 10, 11, 12; but the second snapshot sees 11 and not yet 10.
        let stamps = [
            stamp("10:10:", Some("10")),
            stamp("10:10:", Some("11")),
            stamp("10:12:10", Some("12")),
            stamp("13:13:", None),
            None,
            stamp("10:12:10", Some("13")), // rolled back, or only locked: not in the log
        ];
        let times = from_sets(&stamps, 0, &[10, 11, 12]).unwrap_or_default();
        assert_eq!(
            times,
            [Some((1, 4)), Some((1, 2)), Some((3, 6)), Some((7, 7)), None, Some((3, 3))],
            "11 is first, 10 second"
        );
    }

    #[test]
    fn ids_are_whole_though_the_log_has_half_of_them() {
        let near = |xmax: u64| SetSnapshot { xmax, xip: Vec::new() };
        assert_eq!(near(100).widen(99), 99);
        assert_eq!(near(100).widen(150), 150);
        assert_eq!(near((5 << 32) + 100).widen(99), (5 << 32) + 99);
        assert_eq!(near((5 << 32) + 100).widen(u32::MAX), (5 << 32) - 1);
        assert_eq!(near((6 << 32) - 2).widen(3), (6 << 32) + 3);
    }

    #[test]
    fn transactions_outside_the_committed_set_do_not_count() {
        // 9 was rolled back, 7 wrote nothing.
        let times = from_sets(&[stamp("5:20:7,9,12", None)], 0, &[5, 12, 13, 25]).unwrap_or_default();
        assert_eq!(times, [Some((5, 5))], "5 and 13 are seen");
        let times = from_sets(&[stamp("5:20:7,9,12", Some("25"))], 10, &[5, 12, 13, 25]).unwrap_or_default();
        assert_eq!(times, [Some((25, 28))], "behind ten others");
    }

    #[test]
    fn snapshots_that_contradict_each_other_are_reported() {
        let failure =
            from_sets(&[stamp("1:3:1", None), stamp("1:3:2", None), stamp("1:4:2,3", None)], 0, &[1, 2]);
        assert!(failure.is_ok(), "equal size: one of them is enough");
        let failure = from_sets(&[stamp("1:3:1", None), stamp("1:9:2,4", None)], 0, &[1, 2, 3, 4]);
        assert!(failure.is_err_and(|failure| failure.to_string().contains("not nested")));
        assert!(from_sets(&[stamp("1:x:", None)], 0, &[]).is_err());
    }

    #[test]
    fn places_in_a_log() {
        let logged = |name: &str, file, offset| Logged { name: name.into(), end: LogPlace { file, offset } };
        let log = [logged("0-1-5", 1, 100), logged("0-1-6", 1, 200), logged("0-1-7", 2, 50)];
        let stamps = [
            stamp("binlog.000001:100", Some("0-1-6")),
            stamp("binlog.000001:199", None),
            stamp("binlog.000002:4", Some("0-1-7")),
            None,
        ];
        let times = from_places(&stamps, &log).unwrap_or_default();
        assert_eq!(times, [Some((3, 4)), Some((3, 3)), Some((5, 6)), None]);
        assert!(from_places(&[stamp("binlog.000001:100", Some("0-1-9"))], &log).is_err());
        assert!(from_places(&[stamp("nonsense", None)], &log).is_err());
    }
}
