//! Transactions on the lanes of their sessions.
//!
//! Where every transaction has client clocks, a column is a moment: two transactions share columns exactly if they
//! overlapped. Otherwise a lane only shows the order within its session.

use crate::{Member, Remark};

/// Sessions side by side, and what happened meanwhile.
pub(crate) struct Lanes<'f> {
    pub(crate) lanes: Vec<Lane<'f>>,
    pub(crate) columns: usize,
    pub(crate) events: Vec<Event<'f>>,
}

/// A session and its transactions.
pub(crate) struct Lane<'f> {
    pub(crate) session: &'f str,
    pub(crate) stays: Vec<Stay<'f>>,
}

/// A transaction and the columns it covers, both ends included.
pub(crate) struct Stay<'f> {
    pub(crate) member: &'f Member,
    pub(crate) from: usize,
    pub(crate) to: usize,
}

/// Something that happened beside the transactions, and the columns it covers.
pub(crate) struct Event<'f> {
    pub(crate) remark: &'f Remark,
    pub(crate) from: usize,
    pub(crate) to: usize,
}

/// How many events are shown.
const EVENTS_MAX: usize = 20;

/// The lanes, in the order in which the argument names the sessions, how many columns they need, and the remarks that
/// fall between the first begin and the last end.
pub(crate) fn lanes<'f>(members: &'f [Member], remarks: &'f [Remark]) -> Lanes<'f> {
    let mut lanes: Vec<Lane<'f>> = Vec::new();
    let mut sorted: Vec<&Member> = members.iter().collect();
    sorted.sort_by_key(|member| member.position);
    for member in members {
        if !lanes.iter().any(|lane| lane.session == member.session) {
            lanes.push(Lane { session: &member.session, stays: Vec::new() });
        }
    }
    let moments = moments(members);
    for member in sorted {
        let Some(lane) = lanes.iter_mut().find(|lane| lane.session == member.session) else { continue };
        let (from, to) = match (&moments, member.client) {
            (Some(moments), Some((begin, end))) => (column(moments, begin), column(moments, end)),
            _ => (lane.stays.len(), lane.stays.len()),
        };
        // Transactions of one session never overlap, even if its clock says so.
        let from = lane.stays.last().map_or(from, |before| from.max(before.to + 1));
        lane.stays.push(Stay { member, from, to: to.max(from) });
    }
    let columns = lanes.iter().flat_map(|lane| &lane.stays).map(|stay| stay.to + 1).max().unwrap_or(1);
    let events = moments.map_or(Vec::new(), |moments| events(&moments, remarks, columns));
    Lanes { lanes, columns, events }
}

/// The remarks between the first moment and the last.
fn events<'f>(moments: &[i64], remarks: &'f [Remark], columns: usize) -> Vec<Event<'f>> {
    let (Some(&first), Some(&last)) = (moments.first(), moments.last()) else { return Vec::new() };
    let meanwhile = |remark: &&Remark| remark.at <= last && remark.until.unwrap_or(remark.at) >= first;
    let place = |moment: i64| column(moments, moment).min(columns - 1);
    let event = |remark: &'f Remark| {
        let (from, to) = (place(remark.at), place(remark.until.unwrap_or(remark.at)));
        Event { remark, from, to: to.max(from) }
    };
    remarks.iter().filter(meanwhile).take(EVENTS_MAX).map(event).collect()
}

/// All begins and ends in order, if every member has them.
fn moments(members: &[Member]) -> Option<Vec<i64>> {
    let mut moments = Vec::new();
    for member in members {
        let (begin, end) = member.client?;
        moments.extend([begin, end]);
    }
    moments.sort_unstable();
    moments.dedup();
    Some(moments)
}

fn column(moments: &[i64], moment: i64) -> usize {
    moments.partition_point(|&other| other < moment)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happens_meanwhile_has_columns() {
        let remark = |at, until| Remark { at, until, text: String::new() };
        let remarks =
            [remark(0, None), remark(0, Some(15)), remark(12, None), remark(25, Some(99)), remark(41, None)];
        let events = events(&[10, 20, 30, 40], &remarks, 4);
        let columns: Vec<(usize, usize)> = events.iter().map(|event| (event.from, event.to)).collect();
        assert_eq!(columns, [(0, 1), (1, 1), (2, 3)]);
    }
}
