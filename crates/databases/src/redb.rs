//! redb, an embedded copy-on-write tree: one writer at a time, any number of readers on snapshots.

use crate::driver::{Access, Database, Failure, Session};
use crate::isolation::{self, Isolation};
use crate::schema::Schema;
use crate::scratch::Scratch;
use crate::store::{Bounds, Found, Store, StoreSession, StoreTransaction, encode_key, encode_value};
use crate::target::{self, Vendor};
use history::Name;
use record::Value;
use redb::{ReadTransaction, ReadableDatabase, ReadableTable, TableDefinition, WriteTransaction};
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

const TABLE: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("taipan_kv");

/// A redb file.
pub struct Redb {
    database: Arc<redb::Database>,
    _folder: Option<Scratch>,
}

pub(crate) const VENDOR: Vendor = Vendor {
    schemes: &["redb"],
    forms: &[target::store("redb:", "redb in a temporary folder"), target::store("redb:PATH", "a redb file")],
    open: |target| match target.is_temporary() {
        true => Ok(Box::new(Redb::temporary()?)),
        false => Ok(Box::new(Redb::at(Path::new(target.rest))?)),
    },
};

impl Redb {
    /// A new database in a temporary folder, removed with the value.
    pub fn temporary() -> Result<Self, Failure> {
        let folder = Scratch::new("taipan-redb-")?;
        let path = folder.path().join("taipan.redb");
        Self::open(&path, Some(folder))
    }

    /// A database file; made if it is not there.
    pub fn at(path: &Path) -> Result<Self, Failure> {
        Self::open(path, None)
    }

    fn open(path: &Path, folder: Option<Scratch>) -> Result<Self, Failure> {
        let database = redb::Database::create(path).map_err(|error| {
            Failure::mistake(format!("cannot open the redb file {}: {error}", path.display()))
        })?;
        Ok(Self { database: Arc::new(database), _folder: folder })
    }
}

impl Database for Redb {
    fn name(&self) -> String {
        "redb 4".to_owned()
    }

    fn isolations(&self) -> &'static [Isolation] {
        &isolation::REDB
    }

    fn create(&self, _schema: &Schema, initial: &[(Name, Value)]) -> Result<(), Failure> {
        let transaction = self.database.begin_write().map_err(failure)?;
        transaction.delete_table(TABLE).map_err(failure)?;
        {
            let mut table = transaction.open_table(TABLE).map_err(failure)?;
            for (key, value) in initial {
                let (key, value) = (encode_key(key), encode_value(value));
                table.insert(key.as_slice(), value.as_slice()).map_err(failure)?;
            }
        }
        transaction.commit().map_err(failure)
    }

    fn connect(&self, _schema: &Schema) -> Result<Box<dyn Session>, Failure> {
        Ok(Box::new(StoreSession::new(Handle(Arc::clone(&self.database)))))
    }
}

struct Handle(Arc<redb::Database>);

impl Store for Handle {
    fn begin(&self, _isolation: &Isolation, access: Access) -> Result<Box<dyn StoreTransaction>, Failure> {
        Ok(match access {
            Access::ReadOnly => Box::new(Reading(self.0.begin_read().map_err(failure)?)),
            Access::ReadWrite => Box::new(Writing(self.0.begin_write().map_err(failure)?)),
        })
    }
}

struct Writing(WriteTransaction);

impl StoreTransaction for Writing {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
        get(&self.0.open_table(TABLE).map_err(failure)?, key)
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        let mut table = self.0.open_table(TABLE).map_err(failure)?;
        table.insert(key, value).map(drop).map_err(failure)
    }

    fn remove(&mut self, key: &[u8]) -> Result<(), Failure> {
        let mut table = self.0.open_table(TABLE).map_err(failure)?;
        table.remove(key).map(drop).map_err(failure)
    }

    fn range(&self, bounds: Bounds, reverse: bool, limit: usize) -> Result<Found, Failure> {
        range(&self.0.open_table(TABLE).map_err(failure)?, bounds, reverse, limit)
    }

    fn commit(self: Box<Self>) -> Result<(), Failure> {
        self.0.commit().map_err(failure)
    }
}

struct Reading(ReadTransaction);

fn read_only() -> Failure {
    Failure::mistake("a write in a read-only transaction")
}

impl StoreTransaction for Reading {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
        get(&self.0.open_table(TABLE).map_err(failure)?, key)
    }

    fn put(&mut self, _key: &[u8], _value: &[u8]) -> Result<(), Failure> {
        Err(read_only())
    }

    fn remove(&mut self, _key: &[u8]) -> Result<(), Failure> {
        Err(read_only())
    }

    fn range(&self, bounds: Bounds, reverse: bool, limit: usize) -> Result<Found, Failure> {
        range(&self.0.open_table(TABLE).map_err(failure)?, bounds, reverse, limit)
    }

    fn commit(self: Box<Self>) -> Result<(), Failure> {
        Ok(())
    }
}

fn get(
    table: &impl ReadableTable<&'static [u8], &'static [u8]>,
    key: &[u8],
) -> Result<Option<Vec<u8>>, Failure> {
    Ok(table.get(key).map_err(failure)?.map(|value| value.value().to_vec()))
}

fn range(
    table: &impl ReadableTable<&'static [u8], &'static [u8]>,
    bounds: Bounds,
    reverse: bool,
    limit: usize,
) -> Result<Found, Failure> {
    let bounds: (Bound<&[u8]>, Bound<&[u8]>) =
        (bounds.0.as_ref().map(Vec::as_slice), bounds.1.as_ref().map(Vec::as_slice));
    let mut rows = table.range::<&[u8]>(bounds).map_err(failure)?;
    let mut found = Vec::new();
    while found.len() < limit {
        let Some(row) = (if reverse { rows.next_back() } else { rows.next() }) else {
            return Ok((found, true));
        };
        let (key, value) = row.map_err(failure)?;
        found.push((key.value().to_vec(), value.value().to_vec()));
    }
    Ok((found, false))
}

fn failure(error: impl std::fmt::Display) -> Failure {
    Failure::mistake(format!("redb: {error}"))
}
