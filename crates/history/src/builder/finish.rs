//! A builder's transactions as a history.

use super::Builder;
use crate::model::NO_SPAN;
use crate::{BuildError, History, Id, Span, Timestamp, TxnId};

impl Builder {
    /// The transactions so far as a history of their own; the builder goes on with what follows them. Sessions
    /// keep counting, keys and values are forgotten, so that memory does not grow with the number of parts.
    /// Equal transaction ids are only noticed within a part; readers of files have a builder that remembers more.
    pub fn take_part(&mut self) -> Result<History, BuildError> {
        self.abandon();
        let mut next = Self { started: true, ..Self::default() };
        next.identity.is_piece = self.identity.is_piece;
        next.identity.has_repeats = self.identity.has_repeats;
        next.interrupt = self.interrupt.clone();
        next.taken = (self.total_transactions(), self.total_operations());
        next.lengths.carried = std::mem::take(&mut self.lengths.carried);
        next.lengths.carried_len = std::mem::take(&mut self.lengths.carried_len);
        let mut carried = Vec::with_capacity(self.lengths.of.len());
        for (session, &len) in self.interned.sessions.names.ids().zip(&self.lengths.of) {
            let id = next.lengths.carried.intern(self.interned.sessions.names.get(session));
            if id.index() == next.lengths.carried_len.len() {
                next.lengths.carried_len.push(0);
            }
            carried.push((id, std::mem::replace(&mut next.lengths.carried_len[id.index()], len)));
        }
        self.remember_part(&carried);
        next.identity.earlier = self.identity.earlier.take();
        std::mem::replace(self, next).finish()
    }

    /// The finished history; a transaction still open is dropped.
    pub fn finish(mut self) -> Result<History, BuildError> {
        self.abandon();
        self.settle_initial_names();
        self.check_room()?;
        let mut history = self.history;
        if history.first_op.is_empty() {
            history.first_op.push(0);
        }
        // Columns that some transactions filled are complete for all.
        let count = history.session.len();
        if !history.client.is_empty() {
            history.client.resize(count, NO_SPAN);
        }
        if !history.db.is_empty() {
            history.db.resize(count, NO_SPAN);
        }
        if !history.db_logical.is_empty() {
            history.db_logical.resize(count, [0, 0]);
        }
        self.initial.seen.reverse();
        self.initial.seen.sort_by_key(|row| row.key);
        self.initial.seen.dedup_by_key(|row| row.key);
        history.initial = self.initial.seen;
        history.keys = self.interned.keys.names;
        history.sessions = self.interned.sessions.names;
        history.ids = self.interned.ids.names;
        history.values = self.interned.values.finish();
        history.index_sessions();
        history.shrink();
        Ok(history)
    }
}

impl History {
    /// Gives transactions the database's timestamps after the fact: some databases tell the order of
    /// commits only when all is over. What `times` does not know stays without.
    pub fn set_db_timestamps(
        &mut self,
        mut times: impl FnMut(TxnId) -> Option<(Timestamp, Timestamp)>,
    ) -> Result<(), BuildError> {
        let mut spans = Vec::with_capacity(self.len());
        let mut logical = Vec::with_capacity(self.len());
        for txn in self.session.ids() {
            let Some((start, commit)) = times(txn) else {
                spans.push(NO_SPAN);
                logical.push([0, 0]);
                continue;
            };
            let span = Span { begin: start.physical, end: commit.physical };
            if span == NO_SPAN {
                return Err(BuildError::DbOutOfRange);
            }
            spans.push(span);
            logical.push([start.logical, commit.logical]);
        }
        let is_hybrid = logical.iter().any(|parts| *parts != [0, 0]);
        self.db = if spans.iter().all(|span| *span == NO_SPAN) { Vec::new() } else { spans };
        self.db_logical = if is_hybrid { logical } else { Vec::new() };
        Ok(())
    }

    /// Gives back memory that is not in use.
    fn shrink(&mut self) {
        self.session.shrink();
        self.position.shrink();
        self.status.shrink();
        self.id.shrink();
        self.first_op.shrink_to_fit();
        self.client.shrink_to_fit();
        self.db.shrink_to_fit();
        self.db_logical.shrink_to_fit();
        self.ops.shrink();
        self.compounds.shrink_to_fit();
        self.rows.shrink_to_fit();
        self.key_lists.shrink_to_fit();
        self.predicates.shrink_to_fit();
        self.op_clocks.shrink();
        self.op_extra.shrink_to_fit();
        self.txn_extra.shrink_to_fit();
    }

    /// Gives transactions their places in their sessions, counted from the first that is here.
    pub(crate) fn number_within(&mut self) {
        let mut lens = vec![0u32; self.sessions.len()];
        self.position.reserve(self.session.len());
        for session in self.session.iter() {
            let len = &mut lens[session.index()];
            self.position.push(*len);
            *len += 1;
        }
        self.index_sessions();
    }

    /// Fills `by_session` from `session`: a counting sort that keeps the order of the file.
    pub(crate) fn index_sessions(&mut self) {
        let mut start = vec![0u32; self.sessions.len() + 1];
        for &session in self.session.iter() {
            start[session.index() + 1] += 1;
        }
        for index in 1..start.len() {
            start[index] += start[index - 1];
        }
        let mut next = start.clone();
        let mut by_session = vec![TxnId(0); self.session.len()];
        for txn in self.session.ids() {
            let place = &mut next[self.session[txn].index()];
            by_session[*place as usize] = txn;
            *place += 1;
        }
        self.by_session = by_session;
        self.session_start = start;
    }
}
