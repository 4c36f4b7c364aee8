//! Ids that come twice, in files that different workers read: refused if and only if one reader refuses them.

use super::{By, SER, SI, job, processes};
use history::formats::{ReadOptions, read_path};
use std::path::PathBuf;
use taipan_cluster::{Failure, Setup, Share};

/// A small deterministic generator.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// Shards whose names are all of one kind, or a mixture, drawn so that about half of the histories have one twice.
fn shards(seed: u64, folder: &std::path::Path) -> Vec<PathBuf> {
    let mut random = Random(seed);
    let count = 2 + random.below(3);
    let kind = random.below(6);
    let many = 20 + random.below(2_000);
    let mut number = 0;
    let shard = |shard: u64| {
        let mut text = String::new();
        for _ in 0..2 + random.below(12) {
            number += 1;
            let session = ["1", "\"1\"", "\"a\"", "2"][random.below(4) as usize];
            let drawn = random.below(many);
            let id = match if kind == 5 { random.below(5) } else { kind } {
                0 => format!("\"id\":{drawn},"),
                1 => format!("\"id\":\"t{drawn}\","),
                2 => format!("\"id\":\"{}x\",", drawn.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
                3 if random.below(4) == 0 => {
                    format!("\"id\":\"{}:{}\",", 1 + random.below(2), random.below(9))
                }
                _ => String::new(),
            };
            let times = format!("{{\"start\":{},\"commit\":{}}}", 2 * number, 2 * number + 1);
            let write = format!("{{\"op\":\"write\",\"key\":{},\"value\":{number}}}", number % 5);
            text += &format!("{{\"session\":{session},{id}\"db\":{times},\"ops\":[{write}]}}\n");
        }
        let path = folder.join(format!("shard-{shard:04}.jsonl"));
        std::fs::write(&path, text).expect("written");
        path
    };
    (0..count).map(shard).collect()
}

#[test]
fn an_id_is_refused_if_one_reader_refuses_it() {
    let mut refused = 0;
    for seed in 0..120 {
        let folder = tempfile::tempdir().expect("a folder");
        let shards = shards(seed, folder.path());
        let alone = read_path(folder.path(), &ReadOptions::default());
        let expected = alone.as_ref().err().map(ToString::to_string);
        refused += u64::from(expected.is_some());
        let by = [(By::Timestamps, SI), (By::Results, SI), (By::Results, SER)][seed as usize % 3];
        let whole = || vec![folder.path().to_owned()];
        let mut told = Vec::new();
        for workers in [1, 3] {
            told.push(taipan_cluster::check(job(Setup::threads(workers), whole(), Share::All, by.1, by.0)));
        }
        if seed % 4 == 0 {
            told.extend(processes(2, 2, |setup, process| {
                let own: Vec<PathBuf> = shards.iter().skip(process).step_by(2).cloned().collect();
                job(setup, own, Share::Own, by.1, by.0)
            }));
        }
        for (number, told) in told.into_iter().enumerate() {
            match (told, &expected) {
                (Ok(_), None) => {}
                (Err(Failure::Input(why)), Some(_)) => {
                    assert!(why.contains("is used twice: ids must be unique"), "{seed}: {why}");
                    assert!(number < 2 || why.starts_with("process "), "{seed}: {why}");
                }
                (told, expected) => panic!("{seed}, {number}: {told:?} where one says {expected:?}"),
            }
        }
    }
    assert!((30..100).contains(&refused), "both kinds are drawn: {refused}");
}
