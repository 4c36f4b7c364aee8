//! Connections to named servers, plain or by TLS.
//!
//! One place decides whom TLS trusts, for databases, brokers and webhooks: [`Trust`]. Without the feature `tls`, whatever
//! asks for TLS is refused with that reason, and nothing is ever sent in the clear instead.
//!
//! ```no_run
//! use std::io::Write;
//! use std::time::Duration;
//! use taipan_net::{Security, Trust, connect};
//!
//! let mut stream = connect("example.org:443", &Security::Tls(Trust::System), Duration::from_secs(5))?;
//! stream.write_all(b"GET / HTTP/1.0\r\n\r\n")?;
//! # std::io::Result::Ok(())
//! ```

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;

#[cfg(feature = "tls")]
mod tls;

#[cfg(feature = "tls")]
pub use tls::{client_config, system_authorities};

/// The authorities of this machine: none without the feature.
#[cfg(not(feature = "tls"))]
pub fn system_authorities() -> io::Result<Vec<Vec<u8>>> {
    Err(io::Error::new(io::ErrorKind::Unsupported, NO_TLS))
}

/// Whose word counts when a server says who it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// The certificate authorities of this machine, or those in `SSL_CERT_FILE` and `SSL_CERT_DIR`.
    System,
    /// The authorities in a PEM file.
    File(PathBuf),
    /// The authorities in a PEM file, for a server of any name.
    FileForAnyName(PathBuf),
    /// Nobody's: the connection is encrypted, and the server may be anybody.
    Anybody,
}

/// Whether a connection is encrypted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Security {
    /// It is not.
    Plain,
    /// It is, with a server that is trusted so.
    Tls(Trust),
}

/// What a build without the feature says where TLS is asked for.
pub const NO_TLS: &str = "this build of taipan has no TLS; build it with --features tls";

/// A connection.
#[derive(Debug)]
pub enum Stream {
    /// In the clear.
    Plain(TcpStream),
    /// Encrypted.
    #[cfg(feature = "tls")]
    Tls(Box<rustls::StreamOwned<rustls::ClientConnection, TcpStream>>),
}

/// Connects to `HOST:PORT`. Connecting, each read and each write may take `patience`.
pub fn connect(address: &str, security: &Security, patience: Duration) -> io::Result<Stream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    let connected = address
        .to_socket_addrs()?
        .find_map(|to| TcpStream::connect_timeout(&to, patience).map_err(|error| last = error).ok());
    let stream = connected.ok_or(last)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    match security {
        Security::Plain => Ok(Stream::Plain(stream)),
        #[cfg(feature = "tls")]
        Security::Tls(trust) => Ok(Stream::Tls(Box::new(tls::secure(stream, address, trust)?))),
        #[cfg(not(feature = "tls"))]
        Security::Tls(_) => Err(io::Error::new(io::ErrorKind::Unsupported, NO_TLS)),
    }
}

impl Stream {
    /// How long a read may wait from now on.
    pub fn set_read_timeout(&self, patience: Duration) -> io::Result<()> {
        match self {
            Self::Plain(stream) => stream.set_read_timeout(Some(patience)),
            #[cfg(feature = "tls")]
            Self::Tls(stream) => stream.sock.set_read_timeout(Some(patience)),
        }
    }
}

impl Read for Stream {
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.read(space),
            #[cfg(feature = "tls")]
            Self::Tls(stream) => stream.read(space),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.write(bytes),
            #[cfg(feature = "tls")]
            Self::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(stream) => stream.flush(),
            #[cfg(feature = "tls")]
            Self::Tls(stream) => stream.flush(),
        }
    }
}
