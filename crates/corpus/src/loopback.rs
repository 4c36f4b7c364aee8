//! Addresses of this machine that belong to one test.
//!
//! A test that starts several processes must tell each where all of them listen before any does. A port that was free a
//! moment ago may be taken by then. So a test holds an address for as long as it runs: it listens on one port of it
//! itself, which keeps every other test that asks here away from all its ports. Linux answers to all of 127.0.0.0/8;
//! elsewhere the test holds a block of ports of 127.0.0.1.

use std::io;
use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU32, Ordering};

/// An address that is held until this is dropped.
#[derive(Debug)]
pub struct Loopback {
    guard: TcpListener,
}

/// How many ports belong to a test.
const PORTS: u16 = 32;
/// Below the ports that systems give away by themselves.
const FIRST_PORT: u16 = 12_000;
const BLOCKS: u32 = 600;

impl Loopback {
    /// Takes an address that no other test has.
    pub fn hold() -> io::Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let mut last = io::Error::from(io::ErrorKind::AddrInUse);
        for _ in 0..BLOCKS {
            let number =
                std::process::id().wrapping_mul(31).wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
            let port = FIRST_PORT + (number % BLOCKS) as u16 * PORTS;
            let own = Ipv4Addr::new(
                127,
                100 + (number % 100) as u8,
                (number / 100) as u8,
                1 + (number % 199) as u8,
            );
            for ip in [own, Ipv4Addr::LOCALHOST] {
                match TcpListener::bind((ip, port)) {
                    Ok(guard) => return Ok(Self { guard }),
                    Err(error) => last = error,
                }
            }
        }
        Err(last)
    }

    /// So many addresses to listen on, `host:port`; always the same ones.
    ///
    /// # Panics
    /// If there are more than a test may have.
    pub fn addresses(&self, count: usize) -> Vec<String> {
        assert!(count < usize::from(PORTS), "a test holds {PORTS} ports");
        let (ip, port) =
            self.guard.local_addr().map_or((IpAddr::from([127, 0, 0, 1]), 0), |it| (it.ip(), it.port()));
        (1..=count).map(|number| format!("{ip}:{}", usize::from(port) + number)).collect()
    }
}
