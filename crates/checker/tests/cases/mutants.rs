//! Certificates that are not what they were.

use super::strong_levels;
use certify::{Certificate, Claim, Mention};
use history::{History, TxnId};
use isolation::{Level, Ryow};
use oracle::tiny::Random;

fn mutate_mentions(history: &History, mentions: &mut Vec<Mention<'_>>, random: &mut Random) {
    let some = |random: &mut Random| {
        let txn = history.transaction(TxnId(random.below(history.len()) as u32));
        match random.below(12) {
            0 => Mention::Name("nobody".into()),
            1 => Mention::Place(random.below(history.len() + 2) as u64),
            _ => Mention::Name(txn.name().to_string().into()),
        }
    };
    let len = mentions.len();
    match random.below(5) {
        0 if len > 0 => drop(mentions.remove(random.below(len))),
        1 if len > 0 => {
            let copy = mentions[random.below(len)].clone();
            mentions.insert(random.below(len + 1), copy);
        }
        2 if len > 1 => mentions.swap(random.below(len), random.below(len)),
        3 if len > 0 => mentions[random.below(len)] = some(random),
        _ => mentions.insert(random.below(len + 1), some(random)),
    }
}

/// Changes one thing.
pub(crate) fn mutate(history: &History, certificate: &mut Certificate<'_>, random: &mut Random) {
    match random.below(10) {
        0 => certificate.level = *random.pick(&Level::all().collect::<Vec<_>>()),
        1 => certificate.level = *random.pick(&strong_levels()),
        2 => certificate.ryow = *random.pick(&[Ryow::Must, Ryow::May, Ryow::Never]),
        3 => certificate.clock_skew = *random.pick(&[0, 5, 40, -7, i64::MAX, i64::MIN]),
        4 => certificate.fingerprint.0 ^= 1 << random.below(128),
        5 => {
            certificate.claim =
                match std::mem::replace(&mut certificate.claim, Claim::Undecided { reason: "".into() }) {
                    Claim::Accepted { order } => {
                        Claim::Violated { core: order, edges: Vec::new(), proof: Vec::new() }
                    }
                    Claim::Violated { core, .. } => Claim::Accepted { order: core },
                    undecided => undecided,
                };
        }
        _ => match &mut certificate.claim {
            Claim::Accepted { order: mentions } | Claim::Violated { core: mentions, .. } => {
                mutate_mentions(history, mentions, random);
            }
            Claim::Undecided { .. } => {}
        },
    }
}
