//! fjall, an embedded log-structured store with optimistic serializable transactions.

use crate::driver::{Access, Database, Failure, Session};
use crate::isolation::{self, Isolation};
use crate::schema::Schema;
use crate::scratch::Scratch;
use crate::store::{Bounds, Found, Store, StoreSession, StoreTransaction, encode_key, encode_value};
use crate::target::{self, Vendor, Written};
use fjall::{
    KeyspaceCreateOptions, OptimisticTxDatabase, OptimisticTxKeyspace, OptimisticWriteTx, Readable, Snapshot,
};
use history::Name;
use record::Value;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// A fjall database in a folder.
pub struct Fjall {
    database: OptimisticTxDatabase,
    /// The keyspace of the current table; each table gets a new one.
    keyspace: Mutex<Option<OptimisticTxKeyspace>>,
    probe: Probe,
    _folder: Option<Scratch>,
}

/// How a point read asks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Probe {
    /// For the value.
    #[default]
    Value,
    /// First for the value's size, and for the value only if there is one.
    Size,
}

pub(crate) const VENDOR: Vendor = Vendor {
    schemes: &["fjall"],
    forms: &[
        target::store(
            "fjall:",
            "fjall in a temporary folder; fjall:?probe=size calls size_of before each read",
        ),
        target::store("fjall:PATH", "a fjall folder"),
    ],
    open,
};

fn open(target: &Written<'_>) -> Result<Box<dyn Database>, Failure> {
    let (path, probe) = match target.rest.split_once('?') {
        None => (target.rest, Probe::Value),
        Some((path, "probe=value")) => (path, Probe::Value),
        Some((path, "probe=size")) => (path, Probe::Size),
        Some((_, option)) => {
            let message = format!("{}: {option:?} is not probe=value or probe=size", target.address);
            return Err(Failure::mistake(message));
        }
    };
    Ok(Box::new(match target::is_temporary(path) {
        true => Fjall::temporary(probe)?,
        false => Fjall::at(Path::new(path), probe)?,
    }))
}

impl Fjall {
    /// A new database in a temporary folder, removed with the value.
    pub fn temporary(probe: Probe) -> Result<Self, Failure> {
        let folder = Scratch::new("taipan-fjall-")?;
        let path = folder.path().to_owned();
        Self::open(&path, probe, Some(folder))
    }

    /// A database in a folder; made if it is not there.
    pub fn at(path: &Path, probe: Probe) -> Result<Self, Failure> {
        Self::open(path, probe, None)
    }

    fn open(path: &Path, probe: Probe, folder: Option<Scratch>) -> Result<Self, Failure> {
        let database = OptimisticTxDatabase::builder(path)
            .open()
            .map_err(|error| Failure::mistake(format!("cannot open fjall in {}: {error}", path.display())))?;
        Ok(Self { database, keyspace: Mutex::new(None), probe, _folder: folder })
    }

    fn keyspace(&self) -> Result<OptimisticTxKeyspace, Failure> {
        let current = self.keyspace.lock().unwrap_or_else(PoisonError::into_inner);
        current.clone().ok_or_else(|| Failure::mistake("the table was not created"))
    }
}

impl Database for Fjall {
    fn name(&self) -> String {
        "fjall 3".to_owned()
    }

    fn isolations(&self) -> &'static [Isolation] {
        &isolation::FJALL
    }

    fn create(&self, _schema: &Schema, initial: &[(Name, Value)]) -> Result<(), Failure> {
        let name = format!("taipan-{}", self.database.keyspace_count());
        let keyspace = self.database.keyspace(&name, KeyspaceCreateOptions::default).map_err(failure)?;
        let mut transaction = self.database.write_tx().map_err(failure)?;
        for (key, value) in initial {
            transaction.insert(&keyspace, encode_key(key), encode_value(value));
        }
        commit(transaction)?;
        *self.keyspace.lock().unwrap_or_else(PoisonError::into_inner) = Some(keyspace);
        Ok(())
    }

    fn connect(&self, _schema: &Schema) -> Result<Box<dyn Session>, Failure> {
        let handle =
            Handle { database: self.database.clone(), keyspace: self.keyspace()?, probe: self.probe };
        Ok(Box::new(StoreSession::new(handle)))
    }
}

#[derive(Clone)]
struct Handle {
    database: OptimisticTxDatabase,
    keyspace: OptimisticTxKeyspace,
    probe: Probe,
}

impl Store for Handle {
    fn begin(&self, _isolation: &Isolation, access: Access) -> Result<Box<dyn StoreTransaction>, Failure> {
        let (keyspace, probe) = (self.keyspace.clone(), self.probe);
        Ok(match access {
            Access::ReadOnly => Box::new(Reading { snapshot: self.database.read_tx(), keyspace }),
            Access::ReadWrite => {
                let transaction = self.database.write_tx().map_err(failure)?;
                Box::new(Writing { transaction, keyspace, probe })
            }
        })
    }
}

struct Writing {
    transaction: OptimisticWriteTx,
    keyspace: OptimisticTxKeyspace,
    probe: Probe,
}

impl StoreTransaction for Writing {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
        if self.probe == Probe::Size
            && self.transaction.size_of(&self.keyspace, key).map_err(failure)?.is_none()
        {
            return Ok(None);
        }
        let value = self.transaction.get(&self.keyspace, key).map_err(failure)?;
        Ok(value.map(|value| value.to_vec()))
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        self.transaction.insert(&self.keyspace, key, value);
        Ok(())
    }

    fn remove(&mut self, key: &[u8]) -> Result<(), Failure> {
        self.transaction.remove(&self.keyspace, key);
        Ok(())
    }

    fn range(&self, bounds: Bounds, reverse: bool, limit: usize) -> Result<Found, Failure> {
        collect(self.transaction.range(&self.keyspace, bounds), reverse, limit)
    }

    fn commit(self: Box<Self>) -> Result<(), Failure> {
        commit(self.transaction)
    }
}

struct Reading {
    snapshot: Snapshot,
    keyspace: OptimisticTxKeyspace,
}

fn read_only() -> Failure {
    Failure::mistake("a write in a read-only transaction")
}

impl StoreTransaction for Reading {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
        let value = self.snapshot.get(&self.keyspace, key).map_err(failure)?;
        Ok(value.map(|value| value.to_vec()))
    }

    fn put(&mut self, _key: &[u8], _value: &[u8]) -> Result<(), Failure> {
        Err(read_only())
    }

    fn remove(&mut self, _key: &[u8]) -> Result<(), Failure> {
        Err(read_only())
    }

    fn range(&self, bounds: Bounds, reverse: bool, limit: usize) -> Result<Found, Failure> {
        collect(self.snapshot.range(&self.keyspace, bounds), reverse, limit)
    }

    fn commit(self: Box<Self>) -> Result<(), Failure> {
        Ok(())
    }
}

fn collect(mut rows: fjall::Iter, reverse: bool, limit: usize) -> Result<Found, Failure> {
    let mut found = Vec::new();
    while found.len() < limit {
        let Some(row) = (if reverse { rows.next_back() } else { rows.next() }) else {
            return Ok((found, true));
        };
        let (key, value) = row.into_inner().map_err(failure)?;
        found.push((key.to_vec(), value.to_vec()));
    }
    Ok((found, false))
}

fn commit(transaction: OptimisticWriteTx) -> Result<(), Failure> {
    match transaction.commit() {
        Ok(Ok(())) => Ok(()),
        Ok(Err(conflict)) => Err(Failure::aborted("conflict", conflict.to_string())),
        Err(error) => Err(failure(error)),
    }
}

fn failure(error: fjall::Error) -> Failure {
    Failure::mistake(format!("fjall: {error}"))
}
