//! Every history under `corpus/`, at every level and by every strategy: its folder names the strongest levels that hold.

use evidence::check;
use history::History;
use history::formats::notation;
use isolation::{Level, Options, Strategy, Undecided, Verdict, implications};
use std::path::{Path, PathBuf};

/// The folders, with the levels that they name.
fn folders() -> Vec<(Vec<Level>, PathBuf)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus");
    let entries = root.read_dir().expect("the corpus is part of the repository");
    let paths = entries.map(|entry| entry.expect("a folder can be listed").path());
    let of = |path: PathBuf| {
        let name = path.file_name()?.to_str()?.to_owned();
        let names = name.split('+').filter(|&name| name != "none");
        let levels = names.map(|name| Level::parse(name).expect("a folder is named for levels")).collect();
        Some((levels, path))
    };
    paths.filter(|path| path.is_dir()).filter_map(of).collect()
}

/// Whether one of some levels is this one, or implies it.
fn follows(strongest: &[Level], level: Level, with_predicates: bool) -> bool {
    let mut known = strongest.to_vec();
    let mut next = 0;
    while let Some(&stronger) = known.get(next) {
        next += 1;
        let direct = implications().iter().filter(|it| it.stronger == stronger);
        let direct = direct.filter(|it| !(it.without_predicates && with_predicates));
        for it in direct {
            if !known.contains(&it.weaker) {
                known.push(it.weaker);
            }
        }
    }
    known.contains(&level)
}

fn with_predicates(history: &History) -> bool {
    history.transactions().flat_map(|it| it.ops()).any(|(_, operation)| operation.key().is_none())
}

#[test]
fn folders_say_what_holds() {
    let mut files = 0;
    let mut by_others = 0;
    for (strongest, folder) in folders() {
        for entry in folder.read_dir().expect("a folder can be listed") {
            let path = entry.expect("a folder can be listed").path();
            let name = path.display();
            let text = std::fs::read_to_string(&path).expect("a file can be read");
            let history = notation::parse(&text).expect("the notation is right");
            files += 1;
            for level in Level::all() {
                let holds = follows(&strongest, level, with_predicates(&history));
                let expected = if holds { "accepted" } else { "violated" };
                for strategy in Strategy::ALL {
                    let verdict = check(&history, level, &Options { strategy, ..Options::default() }).verdict;
                    // The papers' encodings decide some levels and operations, and say so of the others.
                    let is_beyond = strategy != Strategy::Lazy
                        && matches!(verdict, Verdict::Undecided(Undecided::Unsupported(_)));
                    by_others += usize::from(strategy != Strategy::Lazy && !is_beyond);
                    assert!(
                        is_beyond || verdict.name() == expected,
                        "{name} at {level} by {strategy}: expected {expected}, found {}",
                        verdict.name()
                    );
                }
            }
        }
    }
    assert!(files >= 27 && by_others > 500, "{files} histories, {by_others} verdicts by other strategies");
}
