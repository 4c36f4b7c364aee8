//! Ids of transactions: each names one.

use super::{Builder, canonical_integer, earlier};
use crate::model::NO_ID;
use crate::{Id, NameRef, SessionId};
use rustc_hash::FxHashSet;

/// What is known of ids beside the table of those that were given.
#[derive(Debug, Default)]
pub(super) struct Identity {
    /// Whether an explicit id could be taken for another transaction's default id.
    pub(super) has_colon_ids: bool,
    /// Whether this is a piece of a history, and places in sessions count from its beginning; see [`Builder::piece`].
    pub(super) is_piece: bool,
    /// Whether transactions may have the same id; see [`Builder::stream`].
    pub(super) has_repeats: bool,
    /// Transactions with default ids, made when the first explicit id looks like one.
    pub(super) defaults: Option<FxHashSet<(SessionId, u32)>>,
    /// Ids of parts already taken, where ids are to be unique across parts.
    pub(super) earlier: Option<Box<earlier::Earlier>>,
}

impl Builder {
    /// Whether an explicit id is another transaction's `SESSION:N`.
    pub(super) fn is_default_id(&mut self, id: NameRef<'_>) -> bool {
        let NameRef::Str(text) = id else { return false };
        let Some((session, position)) = text.rsplit_once(':').filter(|_| !self.identity.is_piece) else {
            return false;
        };
        let Some(position) = canonical_integer(position).and_then(|n| u32::try_from(n).ok()) else {
            return false;
        };
        self.identity.has_colon_ids = true;
        let number = canonical_integer(session).map(NameRef::Int);
        let names = std::iter::once(NameRef::Str(session)).chain(number);
        if names.clone().any(|session| self.was_default(session, position)) {
            return true;
        }
        let history = &self.history;
        names.filter_map(|session| self.interned.sessions.find(session)).any(|session| {
            let defaults = || {
                let unnamed = history.session.ids().filter(|&txn| history.id[txn] == NO_ID);
                unnamed.map(|txn| (history.session[txn], history.position[txn])).collect()
            };
            self.lengths.of[session.index()] > position
                && self.identity.defaults.get_or_insert_with(defaults).contains(&(session, position))
        })
    }

    /// Whether the default id of the transaction to be closed is another one's explicit id.
    pub(super) fn default_id_is_taken(&mut self, session: SessionId, position: u32) -> Option<String> {
        if let Some(defaults) = &mut self.identity.defaults {
            defaults.insert((session, position));
        }
        if self.identity.is_piece || !self.identity.has_colon_ids && !self.earlier_has_defaults() {
            return None;
        }
        let name = format!("{}:{position}", self.interned.sessions.names.get(session));
        let id = NameRef::Str(&name);
        (self.interned.ids.find(id).is_some() || self.came_before(id)).then_some(name)
    }
}
