//! A verdict with its evidence: an engine decides, then the core that it found is shrunk and argued about.

use crate::{shrink, simpler};
use history::History;
use isolation::{
    Evidence, Level, Options, Outcome, Rule, Stats, Strategy, Undecided, Verdict, Witness, modules,
};
use search::{Decision, LookedAt};
use std::time::Instant;

/// Decides whether a history is possible under a level.
pub fn check(history: &History, level: Level, options: &Options) -> Outcome {
    check_sharing(history, level, options, &LookedAt::default())
}

/// As [`check`], for a history that is asked at several levels.
pub fn check_sharing(history: &History, level: Level, options: &Options, shared: &LookedAt) -> Outcome {
    judge(history, level, options, shared, simpler::evidence)
}

/// As [`check`], with the evidence that is found first.
pub(crate) fn check_as_found(history: &History, level: Level, options: &Options) -> Outcome {
    judge(history, level, options, &LookedAt::default(), |_, _, _, found| found)
}

fn judge(
    history: &History,
    level: Level,
    options: &Options,
    shared: &LookedAt,
    improve: impl FnOnce(&History, Level, &Options, Evidence) -> Evidence,
) -> Outcome {
    let mut stats = Stats::default();
    if let Err(why) = modules::additions(history, level) {
        return Outcome { verdict: Verdict::Undecided(Undecided::Unsupported(why)), stats };
    }
    let verdict = match decide(history, level, options, shared, &mut stats) {
        Decision::Possible(witness) => Verdict::Accepted(witness),
        Decision::Impossible(core) => {
            let started = Instant::now();
            let lazily = Options { strategy: Strategy::Lazy, ..options.clone() };
            let evidence = shrink::evidence(history, level, &lazily, core);
            let evidence = improve(history, level, &lazily, evidence);
            stats.record("explain_ms", milliseconds(started));
            Verdict::Violated(Box::new(evidence))
        }
        Decision::Open(why) => Verdict::Undecided(why),
        Decision::NotHere(why) if options.mixed => Verdict::Undecided(Undecided::Unsupported(why)),
        Decision::NotHere(why) => match by_trying_everything(history, level, options, why) {
            Verdict::Undecided(_) if by_a_stronger(history, level, options, shared) => {
                Verdict::Accepted(Witness::default())
            }
            verdict => verdict,
        },
    };
    Outcome { verdict, stats }
}

/// The engine that the options ask for. No evidence is worked out.
fn decide(
    history: &History,
    level: Level,
    options: &Options,
    shared: &LookedAt,
    stats: &mut Stats,
) -> Decision {
    match options.strategy {
        // Levels that transactions asked for themselves are nobody's encoding.
        _ if options.mixed => search::decide_sharing(history, level, options, shared, stats),
        Strategy::Lazy => search::decide_sharing(history, level, options, shared, stats),
        _ => encodings::decide(history, level, options, stats),
    }
}

/// Whether a stronger level holds, which the pipeline decides of every history.
fn by_a_stronger(history: &History, level: Level, options: &Options, shared: &LookedAt) -> bool {
    let rule = match level.rule {
        Rule::Serializable | Rule::SnapshotIsolation => return false,
        Rule::RepeatableRead | Rule::UpdateSerializable => Rule::Serializable,
        _ => Rule::SnapshotIsolation,
    };
    let mut stronger = vec![Level { rule, ..level }];
    if level.rule == Rule::ReadUncommitted {
        stronger.insert(0, Level { rule: Rule::ReadCommitted, ..level });
    }
    stronger.into_iter().any(|stronger| {
        let decision = decide(history, stronger, options, shared, &mut Stats::default());
        matches!(decision, Decision::Possible(_))
    })
}

/// What the pipeline does not cover is decided by the oracle where it is small enough.
fn by_trying_everything(history: &History, level: Level, options: &Options, why: String) -> Verdict {
    match oracle::oracle(history, level, options) {
        Ok(Verdict::Violated(_)) => Verdict::Violated(Box::new(oracle::evidence(history, level, options))),
        Ok(verdict) => verdict,
        Err(too_large) => Verdict::Undecided(Undecided::Unsupported(format!("{why}; {too_large}"))),
    }
}

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;
    use history::formats::notation;

    /// What a level does not decide by itself holds where a stronger one does.
    #[test]
    fn a_stronger_level_settles_what_a_weaker_leaves_open() {
        let many = |line: &dyn Fn(usize) -> String| {
            let text: String = (0..30).map(|it| line(it) + "\n").collect();
            notation::parse(&text).expect("the notation is right")
        };
        let overwritten = many(&|it| format!("s{it}: a(k{it},1) | r(k{it},[1]) | w(k{it},[]) | a(k{it},1)"));
        let set = many(&|it| format!("s{it}: w(k{it},{it}) | u(value={it} -> 99)=1"));
        let half = many(&|it| format!("s{it}: a(k{it},1) a(l,{it}) | w(k{it},[]) r(k{it},[1])"));
        for (history, level, expected) in [
            (&overwritten, "causal", "accepted"),
            (&overwritten, "monotonic-view", "accepted"),
            (&overwritten, "read-uncommitted", "accepted"),
            (&set, "read-uncommitted", "accepted"),
            (&half, "causal", "violated"),
        ] {
            let level = Level::parse(level).expect("a name of the table");
            assert_eq!(check(history, level, &Options::default()).verdict.name(), expected, "{level}");
        }
    }

    fn mixed(text: &str) -> &'static str {
        let history = notation::parse(text).expect("the notation is right");
        let options = Options { mixed: true, ..Options::default() };
        let verdict = check(&history, Level::SERIALIZABLE, &options).verdict;
        if let Verdict::Violated(evidence) = &verdict {
            assert!(!evidence.transactions.is_empty() && !evidence.edges.is_empty(), "{text}: {evidence:?}");
        }
        verdict.name()
    }

    #[test]
    fn each_transaction_gets_what_it_asked_for() {
        for (text, expected) in [
            // A write skew needs both to be serializable.
            ("a: r(x,_) w(y,1)\nb: r(y,_) w(x,1)\n", "violated"),
            ("a: r(x,_) w(y,1) ~RC\nb: r(y,_) w(x,1) ~serializable\n", "accepted"),
            // So does a lost update.
            ("a: r(x,_) w(x,1)\nb: r(x,_) w(x,2)\n", "violated"),
            ("a: r(x,_) w(x,1) ~RC\nb: r(x,_) w(x,2)\n", "accepted"),
            // Circular information flow needs two that read committed data.
            ("a: w(x,1) r(y,1) ~RC\nb: w(y,1) r(x,1) ~RC\n", "violated"),
            ("a: w(x,1) r(y,1) ~RC\nb: w(y,1) r(x,1) ~RU\n", "accepted"),
            // An aborted read is a fault of whoever reads.
            ("a: w(x,1)!\nb: r(x,1) ~RC\n", "violated"),
            ("a: w(x,1)!\nb: r(x,1) ~RU\n", "accepted"),
            ("a: r(x,1) ~RU\n", "violated"),
            // The serializable one must not miss half of the other.
            ("a: w(x,1) w(y,1) ~RC\nb: r(x,1) r(y,_)\n", "violated"),
            ("a: w(x,1) w(y,1)\nb: r(x,1) r(y,_) ~RC\n", "accepted"),
            // What the theorem does not speak of.
            ("a: r(x,_) ~SI\n", "undecided"),
        ] {
            assert_eq!(mixed(text), expected, "{text}");
        }
    }
}
