//! `taipan watch postgres://…`: the database's change stream as a source of the service.

use crate::flags::WatchFlags;
use crate::input::passwords;
use databases::{Address, Failure, FollowOptions, Follower, Patience, Postgres};
use service::{Feed, Join, Joiner, News, OpenFeed, Output};
use std::io;
use std::time::{Duration, Instant};

/// How long a server that went away may take to come back.
const COME_BACK: Duration = Duration::from_secs(300);
/// The slot's name where it is to outlive the process and no other is given.
const SLOT: &str = "taipan_watch";

/// The source, and what joins it with the others.
pub(crate) fn follow(
    url: Address,
    flags: &WatchFlags,
    note: impl Fn(String) + Send + 'static,
) -> (OpenFeed, Joiner) {
    let patience = Patience { grace_ms: milliseconds(flags.grace), longest_ms: milliseconds(flags.longest) };
    let slot = flags.slot.clone().or_else(|| flags.state.as_ref().map(|_| SLOT.to_owned()));
    let keeps = flags.state.is_some();
    let tables = flags.table.clone();
    let open = move |resume: Option<u64>| {
        let postgres = Postgres::at(&url, &passwords()).map_err(trouble)?;
        let follower = postgres.follow(FollowOptions { tables, slot, resume }).map_err(trouble)?;
        let kept = match keeps {
            true => format!(
                "; the server keeps its log for slot {slot} until SELECT pg_drop_replication_slot('{slot}')",
                slot = follower.slot()
            ),
            false => String::new(),
        };
        note(format!("following {}{kept}", follower.tables().join(", ")));
        Ok(Box::new(Changes(follower)) as Box<dyn Feed>)
    };
    let joiner = Joiner::new(move |saved| {
        let join = databases::Join::new(patience, saved)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))?;
        Ok(Box::new(Joining(join)) as Box<dyn Join>)
    });
    (Box::new(open), joiner)
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX / 4)
}

fn trouble(failure: Failure) -> io::Error {
    io::Error::other(failure.to_string())
}

struct Changes(Follower);

impl Changes {
    /// Does something with the server; if it went away, waits for it.
    fn patiently<T>(&mut self, mut act: impl FnMut(&mut Follower) -> Result<T, Failure>) -> io::Result<T> {
        let until = Instant::now() + COME_BACK;
        let mut lost = match act(&mut self.0) {
            Ok(done) => return Ok(done),
            Err(failure) => failure,
        };
        let mut pause = Duration::from_millis(50);
        while matches!(lost, Failure::Lost { .. } | Failure::Silent { .. } | Failure::Unreachable { .. })
            && Instant::now() < until
        {
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_secs(2));
            lost = match self.0.reconnect().and_then(|()| act(&mut self.0)) {
                Ok(done) => return Ok(done),
                Err(failure) => failure,
            };
        }
        Err(trouble(lost))
    }
}

impl Feed for Changes {
    fn poll(&mut self) -> io::Result<News> {
        let changes = self.patiently(Follower::poll)?;
        let databases::Changes { lines, place, troubles, is_more } = changes;
        Ok(News { lines, place, notes: troubles, is_more })
    }

    fn confirm(&mut self, place: u64) -> io::Result<()> {
        self.patiently(|follower| follower.confirm(place))
    }
}

struct Joining(databases::Join);

fn output(joined: databases::Joined) -> Output {
    Output { lines: joined.lines, refused: joined.refused }
}

impl Join for Joining {
    fn take_changes(&mut self, lines: &[u8]) -> Output {
        output(self.0.take_changes(lines))
    }

    fn take_traced(&mut self, lines: &[u8]) -> Output {
        output(self.0.take_traced(lines))
    }

    fn finish(&mut self) -> Output {
        output(self.0.finish())
    }

    fn save(&self) -> String {
        self.0.save()
    }

    fn summary(&self) -> String {
        let databases::Matched { placed, untraced, unplaced, late, again } = self.0.matched();
        let mut text = format!(
            "{placed} traced transactions joined with the change stream, {untraced} commits untraced"
        );
        let rest = [
            (unplaced, "did not fit any snapshot"),
            (late, "arrived too late"),
            (again, "arrived again and are left out"),
        ];
        for (count, what) in rest {
            if count > 0 {
                text += &format!(", {count} traced {what}");
            }
        }
        text
    }
}
