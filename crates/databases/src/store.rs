//! Embedded ordered key-value stores: requests on top of a sorted map of bytes.
//!
//! Keys are encoded so that their bytes sort as the native format sorts keys: a tag, then an integer with
//! its sign bit flipped in big-endian order, or the text. Values are JSON.

use crate::dialect::{encode_element, from_json};
use crate::driver::{Access, Failure, Session};
use crate::isolation::Isolation;
use history::Name;
use record::{Condition, KeyRange, Request, Response, Value, satisfies};
use std::ops::Bound;

/// A range of encoded keys.
pub(crate) type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// Encoded rows in iteration order, and whether the iterator reported the end after them.
pub(crate) type Found = (Vec<(Vec<u8>, Vec<u8>)>, bool);

/// What a vendor's file provides: transactions over a sorted map of bytes.
pub(crate) trait Store: Send {
    /// Begins a transaction.
    fn begin(&self, isolation: &Isolation, access: Access) -> Result<Box<dyn StoreTransaction>, Failure>;
}

/// A transaction of a store. Dropping it rolls it back.
pub(crate) trait StoreTransaction: Send {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Failure>;
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Failure>;
    fn remove(&mut self, key: &[u8]) -> Result<(), Failure>;
    /// The first `limit` rows of a range.
    fn range(&self, bounds: Bounds, reverse: bool, limit: usize) -> Result<Found, Failure>;
    fn commit(self: Box<Self>) -> Result<(), Failure>;
}

/// A [`Session`] over a store.
pub(crate) struct StoreSession<S> {
    store: S,
    open: Option<Box<dyn StoreTransaction>>,
}

impl<S: Store> StoreSession<S> {
    pub(crate) fn new(store: S) -> Self {
        Self { store, open: None }
    }
}

fn no_transaction() -> Failure {
    Failure::mistake("an operation outside a transaction")
}

impl<S: Store> Session for StoreSession<S> {
    fn begin(&mut self, isolation: &Isolation, access: Access) -> Result<(), Failure> {
        // A store with one writer would wait for the transaction that this session still holds.
        self.open = None;
        self.open = Some(self.store.begin(isolation, access)?);
        Ok(())
    }

    fn execute(&mut self, request: &Request) -> Result<Response, Failure> {
        let open = self.open.as_mut().ok_or_else(no_transaction)?;
        execute(&mut **open, request)
    }

    fn commit(&mut self) -> Result<(), Failure> {
        self.open.take().ok_or_else(no_transaction)?.commit()
    }

    fn rollback(&mut self) -> Result<(), Failure> {
        self.open = None;
        Ok(())
    }
}

fn execute(open: &mut dyn StoreTransaction, request: &Request) -> Result<Response, Failure> {
    match request {
        Request::Read { key, .. } => match open.get(&encode_key(key))? {
            None => Ok(Response::Value(Value::Null)),
            Some(bytes) => decode_value(&bytes).map(Response::Value),
        },
        Request::Write { key, value } => {
            open.put(&encode_key(key), &encode_value(value))?;
            Ok(Response::Done)
        }
        Request::Append { key, value } => append(open, &encode_key(key), value),
        Request::Delete { key } => {
            open.remove(&encode_key(key))?;
            Ok(Response::Done)
        }
        Request::Scan { range } => rows(open, range, false, usize::MAX),
        Request::Iterate { range, reverse, limit } => rows(open, range, *reverse, *limit as usize),
        Request::Query { condition } => {
            Ok(Response::Rows { rows: matching(open, condition)?, exhausted: true })
        }
        Request::Update { condition, set } => {
            let keys: Vec<Name> = matching(open, condition)?.into_iter().map(|(key, _)| key).collect();
            for key in &keys {
                open.put(&encode_key(key), &encode_value(set))?;
            }
            Ok(Response::Changed { count: Some(keys.len() as u64), keys: Some(keys) })
        }
        Request::DeleteWhere { condition } => {
            let keys: Vec<Name> = matching(open, condition)?.into_iter().map(|(key, _)| key).collect();
            for key in &keys {
                open.remove(&encode_key(key))?;
            }
            Ok(Response::Changed { count: Some(keys.len() as u64), keys: Some(keys) })
        }
    }
}

fn append(open: &mut dyn StoreTransaction, key: &[u8], value: &Value) -> Result<Response, Failure> {
    encode_element(value)?;
    let mut elements = match open.get(key)? {
        None => Vec::new(),
        Some(bytes) => match decode_value(&bytes)? {
            Value::List(elements) => elements,
            other => return Err(Failure::mistake(format!("appended to {other:?}, which is not a list"))),
        },
    };
    elements.push(value.clone());
    open.put(key, &encode_value(&Value::List(elements)))?;
    Ok(Response::Done)
}

fn rows(
    open: &dyn StoreTransaction,
    range: &KeyRange,
    reverse: bool,
    limit: usize,
) -> Result<Response, Failure> {
    let empty = matches!((&range.from, &range.to), (Some(from), Some(to)) if from >= to);
    if empty {
        return Ok(Response::Rows { rows: Vec::new(), exhausted: true });
    }
    let bounds = (
        range.from.as_ref().map_or(Bound::Unbounded, |key| Bound::Included(encode_key(key))),
        range.to.as_ref().map_or(Bound::Unbounded, |key| Bound::Excluded(encode_key(key))),
    );
    let (found, exhausted) = open.range(bounds, reverse, limit)?;
    let rows = found
        .iter()
        .map(|(key, value)| Ok((decode_key(key)?, decode_value(value)?)))
        .collect::<Result<_, Failure>>()?;
    Ok(Response::Rows { rows, exhausted })
}

fn matching(open: &dyn StoreTransaction, condition: &Condition) -> Result<Vec<(Name, Value)>, Failure> {
    match rows(open, &KeyRange::default(), false, usize::MAX)? {
        Response::Rows { rows, .. } => {
            Ok(rows.into_iter().filter(|(_, value)| satisfies(condition, value)).collect())
        }
        _ => Ok(Vec::new()),
    }
}

const INT_TAG: u8 = 1;
const TEXT_TAG: u8 = 2;

pub(crate) fn encode_key(key: &Name) -> Vec<u8> {
    match key {
        Name::Int(value) => {
            let mut bytes = vec![INT_TAG];
            bytes.extend((*value as u64 ^ (1 << 63)).to_be_bytes());
            bytes
        }
        Name::Str(text) => [&[TEXT_TAG], text.as_bytes()].concat(),
    }
}

fn decode_key(bytes: &[u8]) -> Result<Name, Failure> {
    let foreign = || Failure::mistake("the store holds a key that this program did not write");
    match bytes.split_first() {
        Some((&INT_TAG, rest)) => {
            let number: [u8; 8] = rest.try_into().map_err(|_| foreign())?;
            Ok(Name::Int((u64::from_be_bytes(number) ^ (1 << 63)) as i64))
        }
        Some((&TEXT_TAG, rest)) => String::from_utf8(rest.to_vec()).map(Name::Str).map_err(|_| foreign()),
        _ => Err(foreign()),
    }
}

pub(crate) fn encode_value(value: &Value) -> Vec<u8> {
    serde_json::Value::from(value).to_string().into_bytes()
}

fn decode_value(bytes: &[u8]) -> Result<Value, Failure> {
    let value: serde_json::Value = serde_json::from_slice(bytes)
        .map_err(|_| Failure::mistake("the store holds a value that this program did not write"))?;
    Ok(from_json(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoded_keys_sort_as_keys_do() {
        let mut keys: Vec<Name> = [i64::MIN, -7, -1, 0, 1, 255, 256, i64::MAX].map(Name::Int).to_vec();
        keys.extend(["", "a", "a ", "ab", "b", "é"].map(Name::from));
        for pair in keys.windows(2) {
            assert!(pair[0] < pair[1] && encode_key(&pair[0]) < encode_key(&pair[1]), "{pair:?}");
        }
        for key in keys {
            assert_eq!(decode_key(&encode_key(&key)), Ok(key));
        }
    }
}
