//! The online checker, whatever the order of arrival, against the offline one.

use crate::campaign::Wrong;
use crate::simulated;
use history::formats::{Format, ReadOptions, read_bytes, write_string};
use history::{History, Id, Status};
use isolation::{Level, Options};
use oracle::tiny::Random;
use replay::online::{Online, Settings};

/// A finding: its kind, the transaction, the operation's place in it, the key.
type Words = (String, String, Option<usize>, Option<String>);

pub(crate) fn case(seed: u64) -> Result<u64, Wrong> {
    let mut random = Random::new(seed ^ 0x0911e);
    let (history, made) = simulated::history(&mut random, (10, 200));
    let level = *random.pick(&[Level::SNAPSHOT_ISOLATION, Level::SERIALIZABLE]);
    // Those are compared by verdict, in a campaign of their own.
    let has_unknown = history.transactions().any(|txn| txn.status() == Status::Unknown);
    if history.is_empty() || has_unknown || !replay::applies(&history, level) {
        return Ok(0);
    }
    let report = match replay::check(&history, level, &Options::default()) {
        Ok(report) => report,
        Err(refusal) => return Err(Wrong::with(format!("{refusal:?}; {made}"), &history)),
    };
    let mut expected: Vec<Words> = Vec::new();
    for finding in &report.findings {
        let transaction = history.transaction(finding.txn);
        let first = transaction.op_ids().next().map_or(0, Id::index);
        expected.push((
            finding.axiom.name().to_owned(),
            transaction.name().to_string(),
            finding.op.map(|op| op.index() - first),
            finding.key.map(|key| history.keys().get(key).to_string()),
        ));
    }
    expected.sort();
    let mut found = streamed(&history, level, &mut random).map_err(|what| Wrong::with(what, &history))?;
    found.sort();
    if found != expected {
        let what = format!("{level}: online {found:?}, offline {expected:?}; {made}");
        return Err(Wrong::with(what, &history));
    }
    Ok(1 + expected.len() as u64)
}

/// Feeds the history as lines that come out of order, with restarts in between.
fn streamed(history: &History, level: Level, random: &mut Random) -> Result<Vec<Words>, String> {
    let text = write_string(history, Format::Jsonl).map_err(|error| error.to_string())?;
    let (headers, lines): (Vec<&str>, Vec<&str>) =
        text.lines().partition(|line| line.starts_with("{\"history\""));
    let jitter = *random.pick(&[0, 3, 20, 1_000]);
    let mut order: Vec<(usize, String)> = Vec::new();
    for (place, (line, transaction)) in lines.iter().zip(history.transactions()).enumerate() {
        let line = format!("{{\"seq\":{},{}", transaction.position(), &line[1..]);
        order.push((place + random.below(jitter + 1), line));
    }
    order.sort();
    let settings = Settings::new(level);
    let words = |error: &dyn std::fmt::Display| error.to_string();
    let mut online = Online::new(settings.clone()).map_err(|refusal| format!("{refusal:?}"))?;
    for header in headers {
        online.receive(&part(header)?).map_err(|error| words(&error))?;
    }
    let mut found = Vec::new();
    let mut rest = order.as_slice();
    while !rest.is_empty() {
        let (batch, later) = rest.split_at(random.between(1, 9).min(rest.len()));
        let text: Vec<&str> = batch.iter().map(|(_, line)| line.as_str()).collect();
        online.receive(&part(&text.join("\n"))?).map_err(|error| words(&error))?;
        found.extend(online.findings().map_err(|error| words(&error))?);
        rest = later;
        if random.chance(5) {
            let mut state = Vec::new();
            online.save(&mut state).map_err(|error| words(&error))?;
            online =
                Online::restore(settings.clone(), &mut state.as_slice()).map_err(|error| words(&error))?;
        }
    }
    online.finish().map_err(|error| words(&error))?;
    found.extend(online.findings().map_err(|error| words(&error))?);
    let told = found.iter().map(|it| {
        let key = it.key.as_ref().map(ToString::to_string);
        (it.kind.name().to_owned(), it.txn.name.clone(), it.op.map(|op| op as usize), key)
    });
    Ok(told.collect())
}

fn part(text: &str) -> Result<History, String> {
    let options = ReadOptions { format: Some(Format::Jsonl), ..ReadOptions::default() };
    read_bytes("part", text.as_bytes(), &options).map(|it| it.history).map_err(|error| error.to_string())
}
