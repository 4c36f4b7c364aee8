//! `examples/certify.py`, which shares nothing with this code, against it: it certifies every certificate that is written,
//! nothing that is false, and says what [`certify`] says. Needs `python3`.

#![allow(clippy::unwrap_used, reason = "a test may")]

mod cases;

use cases::mutants::mutate;
use cases::{least, seeds, strong_levels};
use certify::{Certificate, Claim, Fingerprint, Question, Ruling, certify};
use evidence::check;
use history::formats::{Format, notation, write_string};
use history::{History, Status};
use isolation::{Budget, Options, Ryow, Verdict};
use oracle::oracle;
use oracle::tiny::{Datum, Mix, Random, Shape, Sketch, SketchOp};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Rules on one case per line of its input: what is true of many certificates in one process.
const DRIVER: &str = r#"
import json, sys
import certify
for line in sys.stdin:
    case = json.loads(line)
    try:
        history = certify.History(case["history"].split("\n"))
    except certify.Malformed as error:
        print(json.dumps([3, str(error)]))
        continue
    print(json.dumps(certify.ruling(history, case["certificate"], [tuple(case["asked"])])))
"#;

struct Case {
    history: History,
    line: String,
    asked: Question,
}

/// The exit status for each case, and the sentence.
fn rulings(cases: &[Case]) -> Vec<(i32, String)> {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut python = Command::new("python3")
        .args(["-c", DRIVER])
        .env("PYTHONPATH", examples)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 is installed");
    let mut input = python.stdin.take().unwrap();
    let output = std::thread::scope(|scope| {
        scope.spawn(move || {
            for Case { history, line, asked } in cases {
                let Question { level, ryow, clock_skew } = asked;
                let case = serde_json::json!({
                    "history": write_string(history, Format::Jsonl).unwrap(),
                    "certificate": line,
                    "asked": (level.name(), ryow.name(), clock_skew),
                });
                writeln!(input, "{case}").unwrap();
            }
        });
        python.wait_with_output().unwrap()
    });
    assert!(output.status.success(), "{}", output.status);
    let text = String::from_utf8(output.stdout).unwrap();
    let rulings: Vec<_> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rulings.len(), cases.len());
    rulings
}

/// Every kind of operation, alone and together.
fn shapes() -> [Shape; 6] {
    let lists_too = Mix { read: 3, append: 4, scan: 2, iterate: 1, write: 1, delete: 1, ..Mix::default() };
    [
        Shape::registers(),
        Shape::lists(),
        Shape::ranges(),
        Shape::predicates(),
        Shape::everything(),
        Shape { mix: lists_too, keys_max: 2, mixed_up: 30, unknown: 20, ..Shape::lists() },
    ]
}

/// A random claim about a random history, and the certificate of its verdict.
fn drawn(shape: &Shape, random: &mut Random, seed: u64) -> (History, Certificate<'static>) {
    let ryow = *random.pick(&[Ryow::Must, Ryow::Must, Ryow::May, Ryow::Never]);
    let clock_skew = *random.pick(&[0, 0, 0, 8]);
    let history = shape.clone().with_ryow(ryow).history(seed);
    let options = Options { ryow, clock_skew, ..Options::default() };
    let level = *random.pick(&strong_levels());
    let verdict = check(&history, level, &options).verdict;
    assert!(!matches!(verdict, Verdict::Undecided(_)), "seed {seed}");
    let certificate = Certificate::new("h", &history, level, &options, &verdict);
    (history, certificate)
}

fn case(history: &History, certificate: &Certificate<'_>) -> Case {
    let mut line = Vec::new();
    certificate.write(&mut line).unwrap();
    let line = String::from_utf8(line).unwrap();
    Case { history: history.clone(), line, asked: certificate.question() }
}

fn show(case: &Case) -> String {
    format!("{}\n{}", notation::to_string(&case.history), case.line)
}

#[test]
fn every_certificate_is_certified() {
    let mut cases = Vec::new();
    for seed in seeds(1_500) {
        let mut random = Random::new(seed);
        for shape in shapes() {
            let (history, certificate) = drawn(&shape, &mut random, seed);
            cases.push(case(&history, &certificate));
        }
    }
    for (case, (status, sentence)) in cases.iter().zip(rulings(&cases)) {
        assert_eq!(status, 0, "{sentence}\n{}", show(case));
    }
    let violated = cases.iter().filter(|case| case.line.contains("violated")).count();
    assert!(
        violated.min(cases.len() - violated) > least(2_000),
        "{violated} of {} are violated",
        cases.len()
    );
}

/// A result of the history is another one, or a status.
fn changed(history: &History, random: &mut Random) -> Option<History> {
    let mut sketch = Sketch::of(history);
    let txn = random.below(sketch.transactions.len());
    let txn = &mut sketch.transactions[txn];
    if random.chance(10) {
        txn.status = *random.pick(&[Status::Committed, Status::Aborted, Status::Unknown]);
        return Some(sketch.build());
    }
    let place = random.below(txn.ops.len().max(1));
    let number = Datum::Int(random.below(4) as i64);
    match txn.ops.get_mut(place)? {
        SketchOp::Read { value, .. } => match value {
            Datum::List(elements) if random.chance(70) => drop(elements.pop()),
            value => *value = number,
        },
        SketchOp::Write { value, .. } | SketchOp::Append { value, .. } => *value = number,
        SketchOp::Scan { rows: Some(rows), .. }
        | SketchOp::Iterate { rows: Some(rows), .. }
        | SketchOp::Query { rows: Some(rows), .. } => drop(rows.pop()?),
        _ => return None,
    }
    Some(sketch.build())
}

fn status(ruling: &Ruling) -> i32 {
    match ruling {
        Ruling::Certified => 0,
        Ruling::Refused(_) => 1,
        Ruling::Beyond(_) => 2,
    }
}

/// Changed certificates, and true ones of histories that were changed.
#[test]
fn what_is_false_is_never_certified() {
    let mut cases = Vec::new();
    let mut expected = Vec::new();
    for seed in seeds(700) {
        let mut random = Random::new(seed);
        for shape in shapes() {
            let (history, original) = drawn(&shape, &mut random, seed);
            for _ in 0..4 {
                let mut mutant = original.clone();
                let history = match random.chance(30).then(|| changed(&history, &mut random)).flatten() {
                    Some(changed) => changed,
                    None => {
                        mutate(&history, &mut mutant, &mut random);
                        history.clone()
                    }
                };
                // It does not look at the fingerprint, nor at the argument for readers.
                mutant.fingerprint = Fingerprint::of(&history);
                if let Claim::Violated { edges, .. } = &mut mutant.claim {
                    edges.clear();
                }
                expected.push(certify(&history, &mutant, &Budget::unlimited()));
                cases.push(case(&history, &mutant));
            }
        }
    }
    let mut certified = 0;
    for ((case, ruling), (said, sentence)) in cases.iter().zip(&expected).zip(rulings(&cases)) {
        // It may see more than this crate's certifier; what it certifies is held against the oracle.
        assert!(said == 0 || said == status(ruling), "{sentence}, not {ruling:?}\n{}", show(case));
        if said == 0 {
            let Question { level, ryow, clock_skew } = case.asked;
            let options = Options { ryow, clock_skew, ..Options::default() };
            let truth = oracle(&case.history, level, &options).unwrap();
            assert!(case.line.contains(truth.name()), "{} is certified\n{}", truth.name(), show(case));
            certified += 1;
        }
    }
    let refused = expected.iter().filter(|ruling| matches!(ruling, Ruling::Refused(_))).count();
    assert!(certified.min(refused) > least(1_500), "{certified} certified, {refused} refused");
}

#[test]
fn another_question_is_refused() {
    let mut cases = Vec::new();
    for seed in seeds(200) {
        let mut random = Random::new(seed);
        let (history, certificate) = drawn(&Shape::everything(), &mut random, seed);
        let asked = certificate.question();
        let other = *random.pick(&strong_levels());
        let others = [
            Question { level: other, ..asked },
            Question { ryow: *random.pick(&[Ryow::Must, Ryow::May, Ryow::Never]), ..asked },
            Question { clock_skew: asked.clock_skew + 1, ..asked },
        ];
        let others = others.into_iter().filter(|other| *other != asked);
        cases.extend(others.map(|asked| Case { asked, ..case(&history, &certificate) }));
    }
    for (case, (status, sentence)) in cases.iter().zip(rulings(&cases)) {
        assert_eq!((status, &*sentence), (1, "refused: it answers another question"), "{}", show(case));
    }
}
