//! The checker with its memory on disk: a function of batches and moments.
//!
//! **Steps** for batches that have arrived ([`Engine::take`]):
//! 1. all of them into the journal's file;
//! 2. each to the checker;
//! 3. the watermark, from the stream itself or from the pace of arrivals: into the journal, then to the checker;
//! 4. what is certain now goes out, once the journal is on disk: findings are numbered and written into the ledger, and
//!    whoever hands them on says when they went out ([`Engine::went_out`]).
//!
//! Whoever waits for a batch hears of it when the journal is on disk ([`Told::waiting`]); that may take a while, and the
//! checker need not wait for it.
//!
//! **Invariant.** The checker's state is a function of the checkpoint and the journal. So a restart comes to the
//! same state, finds the same findings with the same numbers, and tells those that the ledger does not hold, or of which
//! nobody said that they went out. So each goes out at least once, and stands in the ledger once.

use crate::checking::{self, Crew};
use crate::feed::{FEED, Join, Joiner, Output};
use crate::intake::{Acknowledge, Batch, Place};
use crate::journal::{Journal, Record, Synced};
use crate::lines::{cut, parse};
use crate::outlet::finding_line;
use crate::pace::{Pace, Pacer, Reached};
use crate::spill::Spill;
use crate::store::{Head, Ledger, Mark, Store, last_lines};
use history::{History, Timestamp};
use isolation::{Claim, Level};
use replay::online::{Found, Online, Settings};
use std::fmt;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// How an engine works.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// What is checked.
    pub settings: Settings,
    /// When verdicts become final.
    pub pace: Pace,
    /// The state folder; without one nothing outlives the process.
    pub state: Option<PathBuf>,
    /// Where versions go that do not fit into memory, if there is no state folder.
    pub spill: Option<PathBuf>,
    /// A checkpoint is due when the journal is longer.
    pub journal_max: u64,
    /// What arrives is put together with a change stream first.
    pub joiner: Option<Joiner>,
    /// Who has the keys, if not the engine's own thread. Findings do not depend on it.
    pub workers: Option<Crew>,
}

/// What one step brought.
#[derive(Default)]
pub struct Told {
    /// What is certain since the last step, in order.
    pub findings: Vec<Found>,
    /// The same as lines of JSON.
    pub lines: Vec<String>,
    /// By the number of a finding its transactions, as far as they are kept, as lines of JSON.
    pub transactions: Vec<(u64, Vec<String>)>,
    /// Lines that an earlier process wrote down before these, and may not have handed on.
    pub again: Vec<String>,
    /// Lines that could not be understood, a sentence each.
    pub refused: Vec<String>,
    /// Who is to hear that everything up to here is durable.
    pub waiting: Vec<Box<dyn Acknowledge>>,
    /// The journal that has to be on disk before; none if nothing outlives the process anyway.
    pub journal: Option<Synced>,
    /// What is to be noted.
    pub notes: Vec<String>,
}

impl fmt::Debug for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { findings, refused, waiting, .. } = self;
        let waiting = waiting.len();
        f.debug_struct("Told")
            .field("findings", findings)
            .field("refused", refused)
            .field("waiting", &waiting)
            .finish()
    }
}

/// What is checked, as a journal says it.
fn asked(settings: &Settings) -> String {
    format!("{} with own writes {}", settings.level, settings.ryow.name())
}

/// The checker, its journal and its checkpoints.
pub struct Engine {
    online: Online,
    join: Option<Box<dyn Join>>,
    pacer: Pacer,
    options: EngineOptions,
    durable: Option<Durable>,
    spill: Option<Spill>,
    places: Vec<Place>,
    /// How often the watermark had to hurry because memory was short.
    hurried: u64,
    violations: u64,
}

struct Durable {
    store: Store,
    journal: Journal,
    ledger: Ledger,
    /// How many findings went out.
    out: Mark,
}

impl Engine {
    /// Opens the state folder, if there is one, and comes to where the last process was. Also gives what that one
    /// found and had no time to tell.
    pub fn open(options: EngineOptions) -> io::Result<(Self, Told)> {
        match options.state.clone() {
            None => Ok((Self::without_state(options)?, Told::default())),
            Some(folder) => Self::with_state(options, &folder),
        }
    }

    fn without_state(options: EngineOptions) -> io::Result<Self> {
        let spill = options.spill.as_deref().map(|folder| Spill::create(folder, false)).transpose()?;
        Self::new(None, spill, &Head::default(), options)
    }

    fn new(
        saved: Option<&mut dyn Read>,
        spill: Option<Spill>,
        head: &Head,
        options: EngineOptions,
    ) -> io::Result<Self> {
        let online = checking::open(&options.settings, options.workers.as_ref(), saved, spill.as_ref())?;
        let pacer = Pacer::new(options.pace);
        let join = options.joiner.as_ref().map(|joiner| joiner.open(head.join.as_deref())).transpose()?;
        let places = head.places();
        Ok(Self { online, join, pacer, options, durable: None, spill, places, hurried: 0, violations: 0 })
    }

    fn with_state(options: EngineOptions, folder: &Path) -> io::Result<(Self, Told)> {
        let store = Store::open(folder)?;
        let (head, mut saved) = match store.load()? {
            None => (Head::default(), None),
            Some((head, input)) => (head, Some(input)),
        };
        let mut told = Told::default();
        let asked = asked(&options.settings);
        let journal = store.load_journal(head.records, &asked, &mut told.notes)?;
        let spill = Spill::open(&store.spill(), &head.spill, true)?;
        let findings = store.findings();
        let ledger = Ledger::open(&findings).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => store.refusal_of(&findings, &error),
            _ => error,
        })?;
        let out = Mark::open(&store.told(), ledger.count)?;
        let again = usize::try_from(ledger.count.saturating_sub(out.count)).unwrap_or(usize::MAX);
        told.again = if again > 0 { last_lines(&findings, again)? } else { Vec::new() };
        let is_saved = saved.is_some();
        let saved = saved.as_mut().map(|input| input as &mut dyn Read);
        let mut engine =
            Self::new(saved, Some(spill), &head, options).map_err(|error| match error.kind() {
                io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput if is_saved => store.refusal(&error),
                _ => error,
            })?;
        // All lines up to a checkpoint were on disk before it was.
        let (already_told, saved_count) = (ledger.count, engine.online.finding_count());
        let refused =
            |what: String| store.refusal_of(&findings, &io::Error::new(io::ErrorKind::InvalidData, what));
        if already_told < saved_count {
            return Err(refused(format!("{} lines are missing at the end", saved_count - already_told)));
        }
        if let Some(journal) = &journal {
            journal.each(|record| engine.replay(record, &mut told))?;
        }
        engine.online.catch_up()?;
        told.findings.extend(engine.online.findings()?);
        // Nothing is reported before the journal that it follows from is on disk.
        let count = engine.online.finding_count();
        if already_told > count {
            return Err(refused(format!(
                "it has {already_told} findings, and checkpoint and journal together make only {count}"
            )));
        }
        told.findings.retain(|found| found.number >= already_told);
        told.lines = told.findings.iter().map(finding_line).collect();
        let journal = store.open_journal(journal.as_ref(), &asked)?;
        engine.durable = Some(Durable { store, journal, ledger, out });
        engine.write_down(&told.lines)?;
        engine.violations = engine.count_violations();
        engine.pacer.arrived(0, engine.online.newest(), Instant::now());
        Ok((engine, told))
    }

    fn replay(&mut self, record: Record, told: &mut Told) -> io::Result<()> {
        match record {
            Record::Batch { place, bytes } if self.join.is_some() => {
                self.put_together(place.as_ref(), &bytes)?;
                self.take_place(place);
            }
            Record::Batch { place, bytes } => {
                let parsed = parse(&bytes);
                self.online.receive(&parsed.history)?;
                self.take_place(place);
                if let Some((watermark, horizon)) = parsed.told {
                    self.online.advance(watermark, horizon)?;
                }
            }
            Record::Advance(watermark, horizon) => self.online.advance(watermark, horizon)?,
        }
        told.findings.extend(self.online.findings()?);
        Ok(())
    }

    fn take_place(&mut self, place: Option<Place>) {
        let Some(place) = place else { return };
        match self.places.iter_mut().find(|other| other.source == place.source) {
            Some(other) => *other = place,
            None => self.places.push(place),
        }
    }

    /// Up to where a source's entries are in the journal.
    pub fn place(&self, source: &str) -> Option<(u64, u64)> {
        self.places.iter().find(|place| place.source == source).map(|place| place.at)
    }

    /// Takes what has arrived.
    pub fn take(&mut self, batches: Vec<Batch>, now: Instant) -> io::Result<Told> {
        let mut told = Told::default();
        // What cannot be judged is not in the journal: a restart would meet it again.
        batches.iter().try_for_each(|batch| self.promised(&batch.parsed.history))?;
        // 1.
        if let Some(durable) = &mut self.durable {
            for batch in &batches {
                durable.journal.add_batch(batch.place.as_ref(), &batch.bytes)?;
            }
            durable.journal.flush()?;
            if batches.iter().any(|batch| batch.waiting.is_some()) {
                told.journal = Some(durable.journal.handle()?);
            }
        }
        for batch in batches {
            // 2.
            if self.join.is_some() {
                told.refused.extend(self.put_together(batch.place.as_ref(), &batch.bytes)?);
            } else {
                self.online.receive(&batch.parsed.history)?;
            }
            self.take_place(batch.place);
            let count = batch.parsed.history.len() as u64;
            self.pacer.arrived(count, self.online.newest(), now);
            told.refused.extend(batch.parsed.refused);
            told.waiting.extend(batch.waiting);
            // 3. What the stream itself says is in the journal with the batch.
            if let (Some((watermark, horizon)), None) = (batch.parsed.told, &self.join) {
                self.online.advance(watermark, horizon)?;
            }
        }
        self.pass(now, &mut told)?;
        Ok(told)
    }

    /// Refuses transactions that asked for less than what is checked, as a check of a file does.
    fn promised(&self, part: &History) -> io::Result<()> {
        let level = self.options.settings.level;
        let Some((txn, asked)) = Claim::new(level).unpromised(part, |name| Level::parse(name).ok()) else {
            return Ok(());
        };
        let who = match txn.explicit_id() {
            Some(id) => format!("transaction {id}"),
            None => format!("a transaction of session {}", part.sessions().get(txn.session())),
        };
        Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!(
                "{who} asked for {asked}, which does not promise {level}: watch for a level that all transactions asked \
                 for, or leave weaker ones out of the stream and check their history with --mixed"
            ),
        ))
    }

    /// What arrived goes to the join, and what comes out of it to the checker. Returns what was not understood.
    fn put_together(&mut self, place: Option<&Place>, bytes: &[u8]) -> io::Result<Vec<String>> {
        let Some(join) = &mut self.join else { return Ok(Vec::new()) };
        let output = match place {
            Some(place) if place.source == FEED => join.take_changes(bytes),
            _ => join.take_traced(bytes),
        };
        self.check(output)
    }

    fn check(&mut self, output: Output) -> io::Result<Vec<String>> {
        let mut refused = output.refused;
        let mut pieces = Vec::new();
        cut(output.lines, &mut |piece| pieces.push(piece));
        for piece in pieces {
            let parsed = parse(&piece);
            refused.extend(parsed.refused);
            self.online.receive(&parsed.history)?;
            if let Some((watermark, horizon)) = parsed.told {
                self.online.advance(watermark, horizon)?;
            }
        }
        Ok(refused)
    }

    /// Nothing more will come, and nothing is kept: what waits to be joined is checked as it is.
    pub fn finish_join(&mut self) -> io::Result<Told> {
        let mut told = Told::default();
        if let (Some(join), None) = (&mut self.join, &self.durable) {
            let output = join.finish();
            told.refused = self.check(output)?;
            self.collect(&mut told)?;
        }
        Ok(told)
    }

    /// What the join did so far, in a few words.
    pub fn join_summary(&self) -> Option<String> {
        self.join.as_ref().map(|join| join.summary())
    }

    /// Time has passed.
    pub fn tick(&mut self, now: Instant) -> io::Result<Told> {
        let mut told = Told::default();
        self.pass(now, &mut told)?;
        Ok(told)
    }

    fn pass(&mut self, now: Instant, told: &mut Told) -> io::Result<()> {
        if let Some((watermark, horizon)) = self.pacer.reached(now) {
            self.advance(watermark, horizon)?;
        }
        while let Some((watermark, horizon)) = self.memory_is_short()? {
            self.hurried += 1;
            self.advance(watermark, horizon)?;
        }
        self.collect(told)
    }

    /// What is open does not fit into memory: an earlier watermark makes room.
    fn memory_is_short(&mut self) -> io::Result<Option<Reached>> {
        let Some(max) = self.options.settings.memory_max else { return Ok(None) };
        if self.online.size().bytes <= max {
            return Ok(None);
        }
        // It may have become less since workers last said.
        self.online.catch_up()?;
        Ok((self.online.size().bytes > max).then(|| self.pacer.hurry()).flatten())
    }

    fn advance(&mut self, watermark: Timestamp, horizon: Option<Timestamp>) -> io::Result<()> {
        if let Some(durable) = &mut self.durable {
            durable.journal.add_advance(watermark, horizon)?;
        }
        self.online.advance(watermark, horizon)
    }

    /// 4. The journal is on disk before anything that follows from it is reported.
    fn collect(&mut self, told: &mut Told) -> io::Result<()> {
        let findings = self.online.findings()?;
        let lines: Vec<String> = findings.iter().map(finding_line).collect();
        if let (Some(durable), false) = (&mut self.durable, lines.is_empty()) {
            durable.journal.sync()?;
        }
        self.write_down(&lines)?;
        self.violations += findings.iter().filter(|found| found.kind.is_violation()).count() as u64;
        let transactions = self.online.transactions_of(&findings);
        told.transactions.extend(findings.iter().map(|found| found.number).zip(transactions));
        told.findings.extend(findings);
        told.lines.extend(lines);
        Ok(())
    }

    fn write_down(&mut self, lines: &[String]) -> io::Result<()> {
        match &mut self.durable {
            Some(durable) => durable.ledger.add(lines),
            None => Ok(()),
        }
    }

    /// Everything that was told so far went out: a restart need not tell it again.
    pub fn went_out(&mut self) -> io::Result<()> {
        match &mut self.durable {
            Some(Durable { ledger, out, .. }) if out.count != ledger.count => out.set(ledger.count),
            _ => Ok(()),
        }
    }

    /// No transaction will arrive any more: every verdict is final.
    pub fn finish(&mut self) -> io::Result<Told> {
        let mut told = Told::default();
        let end = Timestamp { physical: i64::MAX, logical: u32::MAX };
        self.advance(end, None)?;
        self.write_checkpoint(&mut told)?;
        Ok(told)
    }

    /// Whether the journal is long enough for a checkpoint.
    pub fn checkpoint_is_due(&self) -> bool {
        self.durable.as_ref().is_some_and(|durable| durable.journal.len() > self.options.journal_max)
    }

    /// Writes the whole state down, so that a restart needs no journal. What workers found until then is reported.
    pub fn checkpoint(&mut self) -> io::Result<Told> {
        let mut told = Told::default();
        self.write_checkpoint(&mut told)?;
        Ok(told)
    }

    fn write_checkpoint(&mut self, told: &mut Told) -> io::Result<()> {
        self.online.catch_up()?;
        self.collect(told)?;
        let (Some(durable), Some(spill)) = (&mut self.durable, &self.spill) else { return Ok(()) };
        durable.journal.sync()?;
        durable.ledger.sync()?;
        let files = spill.files()?;
        let online = &mut self.online;
        let join = self.join.as_ref().map(|join| join.save());
        let head = Head::new(files.clone(), &self.places, durable.journal.next, join);
        let asked = asked(&self.options.settings);
        durable.journal = durable.store.save(&head, &asked, |out| online.save(out))?;
        spill.named(&files)
    }

    /// How many bytes the checker's state may take, by its own estimate.
    pub fn state_max(&self) -> Option<usize> {
        self.options.settings.memory_max
    }

    /// From now on it may take so many.
    pub fn set_state_max(&mut self, bytes: usize) {
        self.options.settings.memory_max = Some(bytes);
        self.online.set_memory_max(Some(bytes));
    }

    /// The checker.
    pub fn online(&self) -> &Online {
        &self.online
    }

    /// Violations found, by this process and those before it.
    pub fn violations(&self) -> u64 {
        self.violations
    }

    fn count_violations(&self) -> u64 {
        use replay::online::Kind;
        let found = self.online.counters().found;
        Kind::ALL.iter().zip(found).filter(|(kind, _)| kind.is_violation()).map(|(_, count)| count).sum()
    }

    /// How often the watermark had to hurry because memory was short.
    pub fn hurried(&self) -> u64 {
        self.hurried
    }

    /// Bytes of versions on disk, and of memory to find them.
    pub fn spilled(&self) -> (u64, usize) {
        self.spill.as_ref().map_or((0, 0), |spill| (spill.disk(), spill.memory()))
    }

    /// The last findings that were told, as lines; before this process, too.
    pub fn last_told(&self, max: usize) -> io::Result<Vec<String>> {
        match &self.durable {
            Some(durable) => last_lines(&durable.store.findings(), max),
            None => Ok(Vec::new()),
        }
    }
}
