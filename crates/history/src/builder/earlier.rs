//! Ids of parts that were already taken.
//!
//! What: a builder that hands out parts still refuses an id that comes a second time, in whatever part.
//! Invariant: an id is refused if and only if a builder that keeps everything would refuse it; but where odd ids are kept
//! as hashes, one that may have come before is only suspected, and somebody must look ([`Builder::take_suspected`]).
//! Default ids, `SESSION:N`, are no names of their own: of each session it is known which of its transactions had none.
//! Cost: see [`IdSet`]; for default ids an interval a session, if all or none of its transactions have names.

use super::Builder;
use crate::id_set::{Intervals, Runs};
use crate::model::NO_ID;
use crate::{BuildError, Id, IdSet, Known, Name, NameRef, Names, SessionId, TxnId};

#[derive(Debug)]
pub(super) struct Earlier {
    ids: IdSet,
    /// For each session the places of those without a name.
    unnamed: Vec<Intervals>,
    suspected: Vec<Name>,
    /// The names of the part at hand, if it came as a whole and they are counted.
    runs: Option<Runs>,
}

impl Earlier {
    /// Whether an id came before. One that may have come is noted.
    fn knows(&mut self, id: NameRef<'_>) -> bool {
        match self.ids.knows(id) {
            Known::No => false,
            Known::Yes => true,
            Known::Maybe => {
                self.suspected.push(id.to_owned());
                false
            }
        }
    }

    fn is_unnamed(&self, session: SessionId, position: u32) -> bool {
        self.unnamed.get(session.index()).is_some_and(|unnamed| unnamed.contains(position.into()))
    }
}

impl Builder {
    /// From now on, ids of parts that were taken are remembered.
    pub(crate) fn remember_ids(&mut self, ids: IdSet) {
        let earlier = Earlier { ids, unnamed: Vec::new(), suspected: Vec::new(), runs: None };
        self.identity.earlier = Some(Box::new(earlier));
    }

    /// Ids that may have come twice; whether they have, the file tells.
    pub(crate) fn take_suspected(&mut self) -> Vec<Name> {
        self.identity.earlier.as_mut().map_or_else(Vec::new, |earlier| std::mem::take(&mut earlier.suspected))
    }

    /// Whether an id of a part already taken could be a default one.
    pub(super) fn earlier_has_defaults(&self) -> bool {
        self.identity.earlier.as_ref().is_some_and(|earlier| earlier.ids.has_defaults())
    }

    /// Whether an id was one of a part already taken.
    pub(super) fn came_before(&mut self, id: NameRef<'_>) -> bool {
        self.identity.earlier.as_mut().is_some_and(|earlier| earlier.knows(id))
    }

    /// Refuses the first of these ids that was one of a part already taken.
    pub(super) fn refuse_earlier(&mut self, ids: &Names<TxnId>) -> Result<(), BuildError> {
        let Some(earlier) = &mut self.identity.earlier else { return Ok(()) };
        earlier.runs = Runs::of(ids);
        if earlier.runs.as_ref().is_some_and(|runs| earlier.ids.are_apart(runs)) {
            return Ok(());
        }
        let mut is_apart = true;
        earlier.ids.known_of(ids, |_, _| is_apart = false);
        if is_apart {
            return Ok(());
        }
        let first = ids.ids().map(|id| ids.get(id)).find(|id| earlier.knows(*id));
        first.map_or(Ok(()), |id| Err(BuildError::DuplicateId(id.to_string())))
    }

    /// Whether a transaction of a part already taken has this default id.
    pub(super) fn was_default(&self, session: NameRef<'_>, position: u32) -> bool {
        let Some(earlier) = &self.identity.earlier else { return false };
        self.lengths.carried.find(session).is_some_and(|session| earlier.is_unnamed(session, position))
    }

    /// Remembers the ids of the part that is being taken. `carried` has its sessions, each with its new number and how
    /// many transactions it had before.
    pub(super) fn remember_part(&mut self, carried: &[(SessionId, u32)]) {
        let Some(earlier) = &mut self.identity.earlier else { return };
        match earlier.runs.take().filter(|runs| runs.names == self.interned.ids.names.len()) {
            Some(runs) => earlier.ids.add_runs(&runs),
            None => earlier.ids.add_all(&self.interned.ids.names),
        }
        let most = carried.iter().map(|(session, _)| session.index() + 1).max().unwrap_or(0);
        if earlier.unnamed.len() < most {
            earlier.unnamed.resize(most, Intervals::default());
        }
        if self.interned.ids.names.is_empty() {
            for (&(session, before), &len) in carried.iter().zip(&self.lengths.of) {
                if before < len {
                    earlier.unnamed[session.index()].add(before.into(), i64::from(len) - 1, true);
                }
            }
            return;
        }
        for txn in self.history.session.ids().filter(|&txn| self.history.id[txn] == NO_ID) {
            let (session, _) = carried[self.history.session[txn].index()];
            let position = self.history.position[txn].into();
            earlier.unnamed[session.index()].add(position, position, true);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::formats::{Fault, FrameBytes, FrameError, Part, Warnings, binary, jsonl};
    use crate::{Builder, IdSet, Name};
    use proptest::prelude::*;
    use proptest::test_runner::FileFailurePersistence;

    /// Transactions as lines, with names of all kinds, some of them default names of others.
    fn lines() -> impl Strategy<Value = Vec<String>> {
        let session = prop_oneof![Just("1"), Just("\"1\""), Just("\"a\"")];
        let id = prop_oneof![
            6 => Just(None),
            3 => (0..40u8).prop_map(|number| Some(number.to_string())),
            3 => (0..40).prop_map(|number| Some(format!("\"t{number}\""))),
            2 => (0..8).prop_map(|number| Some(format!("\"1:{number}\""))),
            1 => (0..8).prop_map(|number| Some(format!("\"a:{number}\""))),
            2 => "[x-z]{1,2}".prop_map(|text| Some(format!("\"{text}\""))),
        ];
        let line = (session, id).prop_map(|(session, id)| {
            let id = id.map_or(String::new(), |id| format!("\"id\":{id},"));
            format!("{{\"session\":{session},{id}\"ops\":[]}}\n")
        });
        prop::collection::vec(line, 1..40)
    }

    /// Which line or frame is refused first, and why.
    type Refused = Option<(usize, String)>;

    /// Which line or frame is refused first, and why; and what was suspected until then.
    fn read<'a>(
        pieces: impl IntoIterator<Item = &'a [u8]>,
        ids: Option<IdSet>,
        cut: usize,
        read: crate::formats::Read,
    ) -> (Refused, Vec<(usize, Name)>) {
        let mut builder = Builder::new();
        let is_cut = ids.is_some();
        if let Some(ids) = ids {
            builder.remember_ids(ids);
        }
        let mut suspected = Vec::new();
        for (number, piece) in pieces.into_iter().enumerate() {
            if let Err(fault) = read(piece, &mut builder, &mut Warnings::new(false)) {
                return (Some((number, fault.problem)), suspected);
            }
            suspected.extend(builder.take_suspected().into_iter().map(|name| (number, name)));
            if is_cut && number % cut == cut - 1 {
                builder.take_part().expect("a part");
            }
        }
        (None, suspected)
    }

    fn is_as_whole(
        pieces: &[&[u8]],
        cut: usize,
        format: crate::formats::Read,
        told: impl Fn(Refused) -> Refused,
    ) -> Result<(), TestCaseError> {
        let pieces = || pieces.iter().copied();
        let (whole, _) = read(pieces(), None, cut, format);
        let whole = told(whole);
        prop_assert_eq!(&told(read(pieces(), Some(IdSet::whole()), cut, format).0), &whole);
        let (hashed, suspected) = read(pieces(), Some(IdSet::hashed()), cut, format);
        // A hash may tell that something is wrong and not what; then one looks again.
        match suspected.first() {
            Some((number, _)) => {
                prop_assert_eq!(*number, whole.as_ref().map_or(usize::MAX, |(number, _)| *number));
                let names = suspected.iter().map(|(_, name)| name.clone());
                prop_assert_eq!(told(read(pieces(), Some(IdSet::about(names)), cut, format).0), whole);
            }
            None => prop_assert_eq!(told(hashed), whole),
        }
        Ok(())
    }

    fn read_frame(bytes: &[u8], builder: &mut Builder, _: &mut Warnings) -> Result<(), Fault> {
        let len = bytes.len() as u64;
        binary::read(&mut FrameBytes::new(&mut &*bytes, len, len), builder).map_err(|error| match error {
            FrameError::Fault(fault) => fault,
            FrameError::Broken(error) => panic!("{error}"),
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 500, failure_persistence: Some(Box::new(FileFailurePersistence::Direct("proptest-regressions/earlier.txt"))), ..ProptestConfig::default() })]

        #[test]
        fn lines_in_parts_are_refused_as_in_one(lines in lines(), cut in 1usize..8) {
            let pieces: Vec<&[u8]> = lines.iter().map(|line| line.as_bytes()).collect();
            is_as_whole(&pieces, cut, jsonl::read, |first| first)?;
        }

        #[test]
        fn frames_in_parts_are_refused_as_in_one(lines in lines(), len in 1usize..8, cut in 1usize..4) {
            let mut builder = Builder::new();
            let mut frames: Vec<Vec<u8>> = vec![Vec::new()];
            for line in &lines {
                // What is refused within a frame is not what is looked for.
                let _ = jsonl::read(line.as_bytes(), &mut builder, &mut Warnings::new(true));
                if builder.len() == len {
                    let part = builder.take_part().expect("a part");
                    let index = frames.len() as u64 - 1;
                    let place = Part { index, last: false, transactions_before: 0, operations_before: 0 };
                    let mut bytes = Vec::new();
                    binary::write(&part, place, &mut bytes).expect("bytes");
                    if index == 0 {
                        frames[0] = bytes.drain(..16).collect();
                    }
                    frames.push(bytes);
                }
            }
            let pieces: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
            if pieces.len() > 1 {
                // Of several in one frame any may be reported.
                let told = |first: Refused| first.map(|(number, _)| (number, String::new()));
                is_as_whole(&pieces, cut, read_frame, told)?;
            }
        }
    }
}
