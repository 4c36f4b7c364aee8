//! Streams that may keep a reader waiting: standard input and named pipes, read by a thread of their own, so that
//! limits hold while nothing comes.
//!
//! The thread reads ahead by a few blocks. When the reader gives up, the thread ends with its next block, or with
//! the process.

use history::Interrupt;
use std::io::{self, Read};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

/// A stream whose reader gives up when it is interrupted.
pub struct Patient {
    blocks: Receiver<io::Result<Vec<u8>>>,
    block: io::Cursor<Vec<u8>>,
    interrupt: Interrupt,
}

const BLOCK_LEN: usize = 256 * 1024;
const BLOCKS_AHEAD: usize = 4;
/// How often a reader that waits looks whether it should go on waiting.
const LOOK_EVERY: Duration = Duration::from_millis(20);

impl Patient {
    /// Opens and reads a stream elsewhere.
    pub fn new<R: Read>(open: impl FnOnce() -> io::Result<R> + Send + 'static, interrupt: Interrupt) -> Self {
        let (sender, blocks) = mpsc::sync_channel(BLOCKS_AHEAD);
        std::thread::spawn(move || {
            let mut stream = match open() {
                Ok(stream) => stream,
                // Nobody listens any more if this fails.
                Err(error) => return drop(sender.send(Err(error))),
            };
            loop {
                let mut block = vec![0; BLOCK_LEN];
                let read = stream.read(&mut block).map(|len| {
                    block.truncate(len);
                    block
                });
                let goes_on = match &read {
                    Ok(block) => !block.is_empty(),
                    Err(error) => error.kind() == io::ErrorKind::Interrupted,
                };
                if sender.send(read).is_err() || !goes_on {
                    return;
                }
            }
        });
        Self { blocks, block: io::Cursor::default(), interrupt }
    }
}

impl Read for Patient {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let len = self.block.read(buffer)?;
            if len > 0 || buffer.is_empty() {
                return Ok(len);
            }
            match self.blocks.recv_timeout(LOOK_EVERY) {
                Ok(Ok(block)) if block.is_empty() => return Ok(0),
                Ok(Ok(block)) => self.block = io::Cursor::new(block),
                Ok(Err(error)) => return Err(error),
                Err(RecvTimeoutError::Disconnected) => return Ok(0),
                Err(RecvTimeoutError::Timeout) if self.interrupt.is_due(0) => {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stream that never says anything.
    struct Silent;

    impl Read for Silent {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            loop {
                std::thread::park();
            }
        }
    }

    #[test]
    fn all_of_a_stream_comes_through() {
        let bytes: Vec<u8> = (0..3 * BLOCK_LEN + 17).map(|place| (place % 251) as u8).collect();
        let source = io::Cursor::new(bytes.clone());
        let mut patient = Patient::new(move || Ok(source), Interrupt::never());
        let mut read = Vec::new();
        patient.read_to_end(&mut read).expect("nothing fails");
        assert!(read == bytes);
    }

    #[test]
    fn a_silent_stream_is_left_when_the_time_is_over() {
        let mut patient = Patient::new(|| Ok(Silent), Interrupt::when(|_| true));
        let error = patient.read(&mut [0; 8]).expect_err("nothing comes");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[test]
    fn a_stream_that_cannot_be_opened_says_so() {
        let mut patient =
            Patient::new(|| Err::<Silent, _>(io::ErrorKind::NotFound.into()), Interrupt::never());
        assert_eq!(patient.read(&mut [0; 8]).expect_err("no stream").kind(), io::ErrorKind::NotFound);
    }
}
