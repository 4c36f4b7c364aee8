//! The pieces of a saved state as bytes: numbers, texts, timestamps, names, values.

use super::stamp::Stamp;
use crate::datum::{Datum, Form};
use history::Name;
use std::io::{self, Read, Write};

pub(super) fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{what} is not as it was written"))
}

/// Writes the pieces of a state.
pub(super) struct Output<'w> {
    out: &'w mut dyn Write,
    pub(super) checksum: u64,
    /// Whether anybody asks for the checksum.
    sums: bool,
}

impl<'w> Output<'w> {
    pub(super) fn new(out: &'w mut dyn Write) -> Self {
        Self { out, checksum: 0, sums: true }
    }

    /// Without a checksum: for what does not leave the run.
    pub(super) fn unsummed(out: &'w mut dyn Write) -> Self {
        Self { out, checksum: 0, sums: false }
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.sums {
            self.checksum = sum(self.checksum, bytes);
        }
        self.out.write_all(bytes)
    }

    pub(super) fn byte(&mut self, byte: u8) -> io::Result<()> {
        self.bytes(&[byte])
    }

    pub(super) fn number(&mut self, mut number: u64) -> io::Result<()> {
        let mut buffer = [0; 10];
        let mut len = 0;
        loop {
            let more = number >= 0x80;
            buffer[len] = (number & 0x7f) as u8 | if more { 0x80 } else { 0 };
            len += 1;
            number >>= 7;
            if !more {
                return self.bytes(&buffer[..len]);
            }
        }
    }

    pub(super) fn integer(&mut self, value: i64) -> io::Result<()> {
        self.number((value << 1 ^ value >> 63) as u64)
    }

    pub(super) fn flag(&mut self, flag: bool) -> io::Result<()> {
        self.byte(u8::from(flag))
    }

    pub(super) fn text(&mut self, text: &str) -> io::Result<()> {
        self.number(text.len() as u64)?;
        self.bytes(text.as_bytes())
    }

    pub(super) fn stamp(&mut self, stamp: Stamp) -> io::Result<()> {
        for word in stamp.words() {
            self.bytes(&word.to_le_bytes())?;
        }
        Ok(())
    }

    pub(super) fn name(&mut self, name: &Name) -> io::Result<()> {
        match name {
            Name::Int(value) => {
                self.byte(0)?;
                self.integer(*value)
            }
            Name::Str(text) => {
                self.byte(1)?;
                self.text(text)
            }
        }
    }

    pub(super) fn option<T>(
        &mut self,
        value: Option<T>,
        put: impl FnOnce(&mut Self, T) -> io::Result<()>,
    ) -> io::Result<()> {
        self.flag(value.is_some())?;
        value.map_or(Ok(()), |value| put(self, value))
    }

    pub(super) fn list<T>(
        &mut self,
        len: usize,
        items: impl IntoIterator<Item = T>,
        mut put: impl FnMut(&mut Self, T) -> io::Result<()>,
    ) -> io::Result<()> {
        self.number(len as u64)?;
        for item in items {
            put(self, item)?;
        }
        Ok(())
    }

    pub(super) fn datum(&mut self, datum: &Datum) -> io::Result<()> {
        match datum {
            Datum::Absent => return self.byte(0),
            Datum::Unknown => return self.byte(1),
            Datum::Int(value) => {
                self.byte(2)?;
                return self.integer(*value);
            }
            Datum::Shared(_) => {}
        }
        match datum.form() {
            None => self.byte(0),
            Some(Form::Bool(value)) => self.bytes(&[3, u8::from(*value)]),
            Some(Form::UInt(value)) => {
                self.byte(4)?;
                self.number(*value)
            }
            Some(Form::Float(value)) => {
                self.byte(5)?;
                self.bytes(&value.to_bits().to_le_bytes())
            }
            Some(Form::Text(text)) => {
                self.byte(6)?;
                self.text(text)
            }
            Some(Form::Row(cells)) => {
                self.byte(7)?;
                self.list(cells.len(), cells.iter(), |out, (name, value)| {
                    out.text(name)?;
                    out.datum(value)
                })
            }
            Some(Form::List(_)) => {
                self.byte(8)?;
                // The last piece apart, so that an append can be taken back.
                let elements = datum.elements();
                let last = datum.last_piece().map_or(0, |piece| piece.len());
                self.number(last as u64)?;
                self.list(elements.len(), elements.iter(), Self::datum)
            }
        }
    }
}

/// Reads the pieces of a state.
pub(super) struct Input<'r> {
    input: &'r mut dyn Read,
    pub(super) checksum: u64,
    sums: bool,
    /// How deep in nested values or predicates the next one lies.
    depth: u32,
}

/// How deep values and predicates nest at most.
const DEPTH_MAX: u32 = 260;

impl<'r> Input<'r> {
    pub(super) fn new(input: &'r mut dyn Read) -> Self {
        Self { input, checksum: 0, sums: true, depth: 0 }
    }

    /// What was written without a checksum.
    pub(super) fn unsummed(input: &'r mut dyn Read) -> Self {
        Self { input, checksum: 0, sums: false, depth: 0 }
    }

    pub(super) fn bytes<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.input.read_exact(&mut bytes)?;
        if self.sums {
            self.checksum = sum(self.checksum, &bytes);
        }
        Ok(bytes)
    }

    pub(super) fn byte(&mut self) -> io::Result<u8> {
        Ok(self.bytes::<1>()?[0])
    }

    pub(super) fn number(&mut self) -> io::Result<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(invalid("a number"))
    }

    pub(super) fn count(&mut self) -> io::Result<usize> {
        usize::try_from(self.number()?).map_err(|_| invalid("a length"))
    }

    pub(super) fn small(&mut self) -> io::Result<u32> {
        u32::try_from(self.number()?).map_err(|_| invalid("a number"))
    }

    pub(super) fn integer(&mut self) -> io::Result<i64> {
        let number = self.number()?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    pub(super) fn flag(&mut self) -> io::Result<bool> {
        Ok(self.byte()? != 0)
    }

    pub(super) fn text(&mut self) -> io::Result<String> {
        let len = self.number()?;
        let mut bytes = Vec::new();
        let read = self.input.take(len).read_to_end(&mut bytes)?;
        if read as u64 != len {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if self.sums {
            self.checksum = sum(self.checksum, &bytes);
        }
        String::from_utf8(bytes).map_err(|_| invalid("a text"))
    }

    pub(super) fn stamp(&mut self) -> io::Result<Stamp> {
        let mut words = [0; 3];
        for word in &mut words {
            *word = u32::from_le_bytes(self.bytes()?);
        }
        Ok(Stamp::from_words(words))
    }

    pub(super) fn name(&mut self) -> io::Result<Name> {
        Ok(match self.byte()? {
            0 => Name::Int(self.integer()?),
            1 => Name::Str(self.text()?),
            _ => return Err(invalid("a name")),
        })
    }

    pub(super) fn option<T>(
        &mut self,
        get: impl FnOnce(&mut Self) -> io::Result<T>,
    ) -> io::Result<Option<T>> {
        if self.flag()? { get(self).map(Some) } else { Ok(None) }
    }

    pub(super) fn list<T>(&mut self, mut get: impl FnMut(&mut Self) -> io::Result<T>) -> io::Result<Vec<T>> {
        let len = self.count()?;
        // The length may be damaged: memory grows only as items are there.
        let mut items = Vec::with_capacity(len.min(1 << 16));
        for _ in 0..len {
            items.push(get(self)?);
        }
        Ok(items)
    }

    /// What lies within a value or a predicate. Readers of histories refuse what is nested deeper; so does this, whatever
    /// the bytes say.
    pub(super) fn nested<T>(&mut self, get: impl FnOnce(&mut Self) -> io::Result<T>) -> io::Result<T> {
        if self.depth == DEPTH_MAX {
            return Err(invalid("nesting"));
        }
        self.depth += 1;
        let got = get(self);
        self.depth -= 1;
        got
    }

    pub(super) fn datum(&mut self) -> io::Result<Datum> {
        self.nested(Self::datum_at_depth)
    }

    fn datum_at_depth(&mut self) -> io::Result<Datum> {
        Ok(match self.byte()? {
            0 => Datum::Absent,
            1 => Datum::Unknown,
            2 => Datum::Int(self.integer()?),
            3 => Datum::share(Form::Bool(self.flag()?)),
            4 => Datum::share(Form::UInt(self.number()?)),
            5 => Datum::share(Form::Float(f64::from_bits(u64::from_le_bytes(self.bytes()?)))),
            6 => Datum::share(Form::Text(self.text()?.into())),
            7 => Datum::row(self.list(|input| Ok((input.text()?.into(), input.datum()?)))?),
            8 => {
                let last = self.count()?;
                let mut elements = self.list(Self::datum)?;
                if last == 0 || last > elements.len() {
                    return Err(invalid("a list"));
                }
                let piece = elements.split_off(elements.len() - last);
                match elements.is_empty() {
                    true => Datum::list(piece),
                    false => Datum::list(elements).append(piece.into()),
                }
            }
            _ => return Err(invalid("a value")),
        })
    }
}

/// A simple checksum: enough to notice a file that was cut off or flipped, not an attacker.
fn sum(sum: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(sum, |sum, &byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3).rotate_left(3))
}
