//! gzip and Zstandard: what tells them, and both directions.
//!
//! Without the feature `compression` files are told apart all the same, and refused.

use std::io::{self, BufWriter, Read, Write};

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// gzip.
    Gzip,
    /// Zstandard.
    Zstd,
}

impl Compression {
    /// What a file's first bytes say.
    pub fn from_head(head: &[u8]) -> Self {
        match head {
            [0x1f, 0x8b, ..] => Self::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Self::Zstd,
            _ => Self::None,
        }
    }

    /// What a file's name asks for.
    pub fn from_file_name(name: &str) -> Self {
        match name {
            name if name.ends_with(".gz") => Self::Gzip,
            name if name.ends_with(".zst") => Self::Zstd,
            _ => Self::None,
        }
    }

    /// What gives the bytes of a file that is compressed so.
    #[cfg(feature = "compression")]
    pub(super) fn decoder<'a>(self, reader: impl Read + 'a) -> io::Result<Box<dyn Read + 'a>> {
        Ok(match self {
            Self::None => Box::new(reader),
            Self::Gzip => Box::new(flate2::read::MultiGzDecoder::new(reader)),
            Self::Zstd => Box::new(zstd::stream::read::Decoder::new(reader)?),
        })
    }

    /// What writes a file that is to be compressed so.
    #[cfg(feature = "compression")]
    pub(super) fn encoder(self, out: Sink<'_>) -> io::Result<Encoder<'_>> {
        Ok(match self {
            Self::None => Encoder::Plain(out),
            Self::Gzip => {
                Encoder::Gzip(Box::new(flate2::write::GzEncoder::new(out, flate2::Compression::default())))
            }
            Self::Zstd => Encoder::Zstd(zstd::stream::write::Encoder::new(out, 0)?),
        })
    }

    /// What gives the bytes of a file, if it is not compressed.
    #[cfg(not(feature = "compression"))]
    pub(super) fn decoder<'a>(self, reader: impl Read + 'a) -> io::Result<Box<dyn Read + 'a>> {
        self.none().map(|()| Box::new(reader) as Box<dyn Read + 'a>)
    }

    /// What writes a file, if it is not to be compressed.
    #[cfg(not(feature = "compression"))]
    pub(super) fn encoder(self, out: Sink<'_>) -> io::Result<Encoder<'_>> {
        self.none().map(|()| Encoder::Plain(out))
    }

    #[cfg(not(feature = "compression"))]
    fn none(self) -> io::Result<()> {
        match self {
            Self::None => Ok(()),
            Self::Gzip | Self::Zstd => Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "this build handles no compressed files; taipan-history has the feature `compression`",
            )),
        }
    }
}

/// Where the bytes of a file go.
pub(super) type Sink<'a> = BufWriter<Box<dyn Write + 'a>>;

/// A file while it is written.
pub(super) enum Encoder<'a> {
    /// It is complete.
    Closed,
    /// As it is.
    Plain(Sink<'a>),
    /// In gzip.
    #[cfg(feature = "compression")]
    Gzip(Box<flate2::write::GzEncoder<Sink<'a>>>),
    /// In Zstandard.
    #[cfg(feature = "compression")]
    Zstd(zstd::stream::write::Encoder<'static, Sink<'a>>),
}

impl Encoder<'_> {
    /// Where to write; nowhere if the file is complete.
    pub(super) fn writer(&mut self) -> Option<&mut dyn Write> {
        match self {
            Self::Closed => None,
            Self::Plain(out) => Some(out),
            #[cfg(feature = "compression")]
            Self::Gzip(out) => Some(out),
            #[cfg(feature = "compression")]
            Self::Zstd(out) => Some(out),
        }
    }

    /// Writes what is still to be written, and closes the file. False if it was closed before.
    pub(super) fn finish(self) -> io::Result<bool> {
        let mut out = match self {
            Self::Closed => return Ok(false),
            Self::Plain(out) => out,
            #[cfg(feature = "compression")]
            Self::Gzip(out) => out.finish()?,
            #[cfg(feature = "compression")]
            Self::Zstd(out) => out.finish()?,
        };
        out.flush()?;
        Ok(true)
    }
}
