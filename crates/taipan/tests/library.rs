//! The library says what the program says, proves it, and does not accept what was not tested.

use std::path::{Path, PathBuf};
use taipan::files::{Checker, Opened, ReadOptions};
use taipan::{By, Claim, Error, Level, Options, Ruling, VerdictKind};

fn level(name: &str) -> Level {
    name.parse().expect("a level of the table")
}

/// The histories of the corpus.
fn corpus() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus");
    let folders = std::fs::read_dir(root).expect("the corpus is there").flatten();
    let folders = folders.map(|entry| entry.path()).filter(|path| path.is_dir());
    let files = folders.flat_map(|folder| std::fs::read_dir(folder).expect("it can be listed").flatten());
    let mut files: Vec<PathBuf> = files.map(|entry| entry.path()).collect();
    files.sort();
    assert!(files.len() > 20, "{files:?}");
    files
}

#[test]
fn the_library_and_the_checker_of_files_agree_and_prove_it() {
    let checker = Checker { needs_witness: true, ..Checker::default() };
    let (mut certified, mut violated) = (0, 0);
    for path in corpus() {
        let history = taipan::read(&path).expect("a history");
        for level in
            ["serializable", "snapshot-isolation", "read-committed", "strict-serializable"].map(level)
        {
            let claim = Claim::new(level);
            let outcome = taipan::check(&history, &claim, &Options::default());
            let opened = Opened::new("corpus", history.clone());
            let Ok(checked) = checker.check(&opened, claim) else {
                assert_eq!(outcome.kind(), VerdictKind::Undecided, "{}: {level}", path.display());
                continue;
            };
            assert_eq!(outcome.kind(), checked.verdict.kind(), "{}: {level}", path.display());
            violated += usize::from(outcome.is_violated());
            if let Some(certificate) = outcome.certificate(&history) {
                let ruling = taipan::certify(&history, &claim, &certificate).expect("it is a certificate");
                assert!(!matches!(ruling, Ruling::Refused(_)), "{}: {level}: {ruling:?}", path.display());
                certified += usize::from(ruling == Ruling::Certified);
            }
        }
    }
    assert!(certified > 20 && violated > 20, "{certified} certified, {violated} violated");
}

#[test]
fn a_smallest_part_is_still_violated() {
    let text = "s1: r(x,_) w(x,1) | r(y,_) w(y,7)\ns2: r(x,_) w(x,2)\ns3: r(y,7)\n";
    let history = taipan::parse(text).expect("a history");
    let claim = Claim::serializable();
    let outcome = taipan::check(&history, &claim, &Options::default());
    assert_eq!(outcome.anomaly(), Some("lost-update"));
    let smallest = outcome.smallest(&history).expect("it is violated");
    assert_eq!(smallest.len(), 2);
    assert!(taipan::check(&smallest, &claim, &Options::default()).is_violated());
    let fine = taipan::parse("s1: w(x,1)\ns2: r(x,1)\n").expect("a history");
    let accepted = taipan::check(&fine, &claim, &Options::default());
    assert!(accepted.is_accepted() && accepted.smallest(&fine).is_none() && accepted.anomaly().is_none());
}

#[test]
fn what_was_not_tested_is_undecided() {
    let claim = Claim::serializable();
    for (text, why) in [
        ("s1: w(x,1)!\n", "none of them committed"),
        (
            "{\"history\":1}\n{\"session\":1,\"level\":\"read-committed\",\"ops\":[{\"op\":\"write\",\"key\":1,\"value\":1}]}\n",
            "does not promise serializable",
        ),
    ] {
        let history = taipan::parse(text).expect("a history");
        let outcome = taipan::check(&history, &claim, &Options::default());
        assert_eq!(outcome.kind(), VerdictKind::Undecided, "{text}");
        let said = outcome.explain(&history);
        assert!(said.contains(why), "{said}");
        assert!(outcome.certificate(&history).is_none());
    }
    // Without timestamps there is no order to judge by.
    let history = taipan::parse("s1: w(x,1)\ns2: r(x,1)\n").expect("a history");
    let outcome = taipan::check(&history, &claim.by(By::Timestamps), &Options::default());
    assert_eq!(outcome.kind(), VerdictKind::Undecided);
    assert!(outcome.certificate(&history).is_none());
}

#[test]
fn errors_say_where() {
    let error = taipan::parse("s1: w(x,1)\ns2: r(x\n").expect_err("a bracket is missing");
    assert_eq!(error.place().0, Some(2), "{error}");
    let missing = taipan::read("no-such-history.jsonl").expect_err("there is no such file");
    assert!(missing.to_string().contains("no-such-history.jsonl"), "{missing}");
    let folder = std::env::temp_dir().join(format!("taipan-library-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join("aborted.hist");
    std::fs::write(&file, "s1: w(x,1)!\n").expect("a file");
    let refused = Checker::default().open(&file, &ReadOptions::default()).expect_err("nothing is committed");
    assert!(matches!(refused, Error::NothingCommitted { transactions: 1 }), "{refused}");
    std::fs::remove_dir_all(folder).expect("it is there");
}
