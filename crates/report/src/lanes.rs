//! Transactions on the lanes of their sessions.
//!
//! Where every transaction has client clocks, a column is a moment: two transactions share columns exactly if they
//! overlapped. Otherwise a lane only shows the order within its session.

use crate::Member;

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

/// The lanes, in the order in which the argument names the sessions, and how many columns they need.
pub(crate) fn lanes(members: &[Member]) -> (Vec<Lane<'_>>, usize) {
    let mut lanes: Vec<Lane<'_>> = Vec::new();
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
    (lanes, columns)
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
