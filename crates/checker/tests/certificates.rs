//! Certificates against the exhaustive oracle, on random tiny histories: what is true is certified, what is certified
//! is true, also after somebody changed the certificate. `TAIPAN_LONG=1` runs twenty times as many.

mod cases;

use cases::mutants::mutate;
use cases::{expect_no_fault, least, seeds, strong_levels};
use certify::{
    Atom, Certificate, Claim, Fingerprint, Lemma, Mention, Question, Refusal, Ruling, Step, certify,
};
use evidence::{Crowd, add_proof, check};
use history::formats::notation;
use history::{Builder, History, Status, TxnId};
use isolation::{Anomaly, Budget, Evidence, Level, Options, Rule, Ryow, Verdict};
use oracle::oracle;
use oracle::tiny::{Mix, Random, Shape};

fn exhaustive(history: &History, level: Level, options: &Options) -> Verdict {
    match oracle(history, level, options) {
        Ok(Verdict::Violated(evidence)) => {
            // Everybody who can have taken effect: that needs no shrinking to be a core.
            let effective = history.transactions().filter(|txn| txn.status() != Status::Aborted);
            let transactions: Vec<TxnId> = effective.map(|txn| txn.id()).collect();
            Verdict::Violated(Box::new(Evidence { transactions, ..*evidence }))
        }
        Ok(verdict) => verdict,
        Err(too_large) => panic!("a tiny history is always decided: {too_large}"),
    }
}

fn written(certificate: &Certificate<'_>) -> String {
    let mut line = Vec::new();
    certificate.write(&mut line).expect("a vector takes everything");
    String::from_utf8(line).expect("JSON is text")
}

/// What is wrong with the certificate of a verdict, if anything, after a trip through its text form.
fn doubt(history: &History, level: Level, options: &Options, verdict: &Verdict) -> Option<String> {
    let certificate = Certificate::new("h", history, level, options, verdict);
    let line = written(&certificate);
    let read = match Certificate::parse(&line) {
        Ok(read) => read,
        Err(malformed) => return Some(format!("{line}: {malformed}")),
    };
    assert_eq!(read, certificate);
    match certify(history, &read, &Budget::unlimited()) {
        Ruling::Certified => None,
        other => Some(format!("{line}: {other:?}")),
    }
}

fn expect_none(
    shape: &Shape,
    seeds: std::ops::Range<u64>,
    options: &Options,
    verdict: impl Fn(&History, Level, &Options) -> Verdict,
) {
    let doubt =
        |history: &History, level: Level| doubt(history, level, options, &verdict(history, level, options));
    expect_no_fault(shape, seeds, &strong_levels(), doubt);
}

fn policies() -> [Options; 3] {
    [Ryow::Must, Ryow::May, Ryow::Never].map(|ryow| Options { ryow, ..Options::default() })
}

/// The oracle's own witnesses and the whole of what it rejects, over every kind of operation.
#[test]
fn exhaustive_verdicts_are_certified() {
    for options in policies() {
        let shapes = [
            Shape::registers(),
            Shape::lists(),
            Shape::ranges(),
            Shape::predicates(),
            Shape::everything(),
            Shape::swaps(),
        ];
        for shape in shapes {
            expect_none(&shape.with_ryow(options.ryow), seeds(300), &options, exhaustive);
        }
    }
}

#[test]
fn clock_skew_counts() {
    let options = Options { clock_skew: 8, ..Options::default() };
    expect_none(&Shape { clocks: 100, ..Shape::registers() }, seeds(300), &options, exhaustive);
}

fn pipeline(history: &History, level: Level, options: &Options) -> Verdict {
    check(history, level, options).verdict
}

#[test]
fn verdicts_on_registers_are_certified() {
    expect_none(&Shape::registers(), seeds(1500), &Options::default(), pipeline);
}

#[test]
fn verdicts_on_lists_are_certified() {
    expect_none(&Shape::lists(), seeds(1500), &Options::default(), pipeline);
}

#[test]
fn verdicts_on_contended_keys_are_certified() {
    let shape = Shape { transactions: (4, 8), keys_max: 2, ..Shape::registers() };
    expect_none(&shape, seeds(600), &Options::default(), pipeline);
}

#[test]
fn verdicts_on_duplicates_and_unknown_outcomes_are_certified() {
    let shape = Shape { unique_values: 0, unknown: 30, transactions: (3, 7), ..Shape::registers() };
    expect_none(&shape, seeds(800), &Options::default(), pipeline);
}

#[test]
fn verdicts_by_every_policy_are_certified() {
    for options in policies() {
        expect_none(&Shape::registers().with_ryow(options.ryow), seeds(300), &options, pipeline);
        expect_none(&Shape::lists().with_ryow(options.ryow), seeds(300), &options, pipeline);
    }
}

#[test]
fn verdicts_on_every_kind_of_operation_are_certified() {
    for shape in [Shape::ranges(), Shape::predicates(), Shape::everything(), Shape::swaps_and_everything()] {
        expect_none(&shape, seeds(200), &Options::default(), pipeline);
    }
}

/// The order of a list that is scanned, too, is in the core with whoever read it.
#[test]
fn verdicts_on_lists_that_are_scanned_are_certified() {
    let mix = Mix { read: 3, append: 4, scan: 2, iterate: 1, ..Mix::default() };
    let shape = Shape { mix, keys_max: 2, spoiled: 50, ..Shape::lists() };
    expect_none(&shape, seeds(1_500), &Options::default(), pipeline);
    let shown_by_one = "1: a(y,1)\n2: scan(y..)=[] a(y,2)\n3: r(y,[1 2])\n";
    let missed_by_one = "1: scan(..)=[x:[3]] r(x,[3])\n0: a(x,2) | a(x,3)\n";
    // Whoever iterated over what nobody wrote took no effect.
    let from_nowhere = "1: w(x,2) w(z,2) | scan(..)=[z:2]\n0: iter(x..)=[y:2 end] w(z,2)?\n";
    // What differs is a list without the own element.
    let own = "1: a(x,1) | r(y,[2 3]) a(y,3) scan(..)=[x:[1] y:[2 3]]\n";
    for text in [shown_by_one, missed_by_one, from_nowhere, own] {
        let history = read(text);
        for level in strong_levels() {
            let verdict = pipeline(&history, level, &Options::default());
            assert_eq!(doubt(&history, level, &Options::default(), &verdict), None, "{text} at {level}");
        }
    }
}

/// What is wrong with a core by itself: the certificate may enlarge it where it is not sure, and must not need to.
fn core_doubt(history: &History, level: Level, options: &Options) -> Option<String> {
    let Verdict::Violated(evidence) = pipeline(history, level, options) else { return None };
    let core = evidence.transactions.iter().map(|txn| Mention::Place(u64::from(txn.0))).collect();
    let certificate = Certificate {
        ryow: options.ryow,
        clock_skew: options.clock_skew,
        claim: Claim::Violated { core, edges: Vec::new(), proof: Vec::new() },
        ..accepted(history, level, &[])
    };
    match ruling(history, &certificate) {
        Ruling::Certified => None,
        other => Some(format!("{:?} of {:?}: {other:?}", evidence.transactions, options.ryow)),
    }
}

/// Lists that show what others appended behind or between own elements, too little, or in another order: whoever
/// appended what makes them impossible is in the core, and so is whoever shows that somebody of unknown outcome took
/// effect.
#[test]
fn cores_of_mixed_up_lists_stand_by_themselves() {
    let scans = Mix { read: 2, append: 4, scan: 2, iterate: 1, ..Mix::default() };
    let shapes = [
        Shape { mix: scans, keys_max: 1, unknown: 0, ..Shape::lists() },
        Shape { mix: scans, keys_max: 2, unknown: 30, ..Shape::lists() },
        Shape { keys_max: 2, unknown: 40, ..Shape::lists() },
    ];
    for options in policies() {
        for shape in &shapes {
            let shape = Shape { mixed_up: 80, unique_values: 100, initial: 0, ops_max: 5, ..shape.clone() };
            expect_no_fault(
                &shape.with_ryow(options.ryow),
                seeds(400),
                &strong_levels(),
                |history, level| {
                    core_doubt(history, level, &options)
                        .or_else(|| doubt(history, level, &options, &pipeline(history, level, &options)))
                },
            );
        }
    }
}

// ---- changed certificates ----

/// Certified means true: whatever a certificate says, the oracle says so too.
fn assert_true_if_certified(history: &History, certificate: &Certificate<'_>) -> bool {
    let ruling = certify(history, certificate, &Budget::unlimited());
    if ruling != Ruling::Certified {
        return false;
    }
    assert_eq!(certificate.fingerprint, Fingerprint::of(history));
    let options =
        Options { ryow: certificate.ryow, clock_skew: certificate.clock_skew, ..Options::default() };
    assert!(certificate.clock_skew >= 0, "clocks do not differ by less than nothing");
    let truth = exhaustive(history, certificate.level, &options);
    assert_eq!(
        certificate.claim.verdict(),
        truth.kind(),
        "{}\n{}",
        written(certificate),
        notation::to_string(history)
    );
    true
}

#[test]
fn changed_certificates_are_refused_or_still_true() {
    let (mut certified, mut refused) = (0, 0);
    let shapes = [Shape::registers(), Shape::lists(), Shape::everything()];
    for (seed, shape) in seeds(500).flat_map(|seed| shapes.iter().map(move |shape| (seed, shape))) {
        let history = shape.history(seed);
        let mut random = Random::new(seed);
        let options = Options::default();
        let level = *random.pick(&strong_levels());
        let verdict = exhaustive(&history, level, &options);
        let original = Certificate::new("h", &history, level, &options, &verdict);
        for _ in 0..12 {
            let mut changed = original.clone();
            for _ in 0..random.between(1, 3) {
                mutate(&history, &mut changed, &mut random);
            }
            match assert_true_if_certified(&history, &changed) {
                true => certified += 1,
                false => refused += 1,
            }
        }
    }
    assert!(refused > 2 * certified && certified > least(500), "{certified} certified, {refused} refused");
}

/// Bytes of the text are changed, taken away or repeated.
#[test]
fn damaged_text_is_malformed_refused_or_still_true() {
    let (mut malformed, mut judged) = (0, 0);
    for seed in seeds(600) {
        let history = Shape::registers().history(seed);
        let mut random = Random::new(seed);
        let options = Options::default();
        let level = *random.pick(&strong_levels());
        let verdict = exhaustive(&history, level, &options);
        let line = written(&Certificate::new("h", &history, level, &options, &verdict));
        for cut in 0..line.trim_end().len() {
            assert!(Certificate::parse(&line[..cut]).is_err(), "{}", &line[..cut]);
        }
        for _ in 0..20 {
            let mut bytes = line.clone().into_bytes();
            let place = random.below(bytes.len());
            match random.below(3) {
                0 => bytes[place] = *random.pick(b"0123456789:,\"[]{}abcdefx"),
                1 => drop(bytes.remove(place)),
                _ => bytes.insert(place, bytes[place]),
            }
            let Ok(text) = String::from_utf8(bytes) else { continue };
            match Certificate::parse(&text) {
                Err(_) => malformed += 1,
                Ok(read) => {
                    assert_true_if_certified(&history, &read);
                    judged += 1;
                }
            }
        }
    }
    assert!(malformed.min(judged) > least(1000), "{malformed} malformed, {judged} judged");
}

// ---- single cases ----

fn read(text: &str) -> History {
    notation::parse(text).expect("the notation is right")
}

fn accepted(history: &History, level: Level, order: &[&str]) -> Certificate<'static> {
    let order = order.iter().map(|name| Mention::Name((*name).to_owned().into())).collect();
    Certificate {
        file: "h".into(),
        fingerprint: Fingerprint::of(history),
        level,
        ryow: Ryow::Must,
        clock_skew: 0,
        claim: Claim::Accepted { order },
    }
}

fn violated(history: &History, level: Level, core: &[&str]) -> Certificate<'static> {
    let core = core.iter().map(|name| Mention::Name((*name).to_owned().into())).collect();
    Certificate {
        claim: Claim::Violated { core, edges: Vec::new(), proof: Vec::new() },
        ..accepted(history, level, &[])
    }
}

/// A certificate is true of its own question and answers no other.
#[test]
fn a_certificate_answers_one_question() {
    let history = read("s1: w(x,1) r(x,_)\n");
    let own = Certificate { ryow: Ryow::May, ..accepted(&history, Level::SERIALIZABLE, &["s1:0"]) };
    assert_eq!(ruling(&history, &own), Ruling::Certified);
    assert_eq!(own.answers(own.question()), Ok(()));
    let questions = [
        Question { ryow: Ryow::Must, ..own.question() },
        Question { level: Level::SNAPSHOT_ISOLATION, ..own.question() },
        Question { clock_skew: 1, ..own.question() },
    ];
    for asked in questions {
        let expected = Refusal::OtherQuestion { claimed: own.question(), asked };
        assert_eq!(own.answers(asked), Err(expected));
    }
}

#[test]
fn a_negative_skew_is_refused() {
    let history = read("s1: w(x,1)\ns2: r(x,1)\n");
    for skew in [-1, i64::MIN] {
        let certificate = Certificate {
            clock_skew: skew,
            ..accepted(&history, Level::STRICT_SERIALIZABLE, &["s1:0", "s2:0"])
        };
        assert_eq!(refusal(&history, &certificate), Refusal::NegativeSkew { skew });
    }
}

fn ruling(history: &History, certificate: &Certificate<'_>) -> Ruling {
    certify(history, certificate, &Budget::unlimited())
}

fn refusal(history: &History, certificate: &Certificate<'_>) -> Refusal {
    match ruling(history, certificate) {
        Ruling::Refused(refusal) => refusal,
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_flaw_of_a_witness_has_its_sentence() {
    let history = read("s1: w(x,1) | r(x,1)\ns2: r(x,_) w(y,2)\ns3: w(z,1)!\ns4: w(y,9)?\n");
    let serial = Level::SERIALIZABLE;
    let says = |order: &[&str], sentence: &str| {
        let refusal = refusal(&history, &accepted(&history, serial, order)).to_string();
        assert!(refusal.contains(sentence), "{order:?}: {refusal}");
    };
    assert_eq!(ruling(&history, &accepted(&history, serial, &["s2:0", "s1:0", "s1:1"])), Ruling::Certified);
    assert_eq!(
        ruling(&history, &accepted(&history, serial, &["s2:0", "s4:0", "s1:0", "s1:1"])),
        Ruling::Certified
    );
    says(&["s2:0", "s1:0"], "s1:1 was committed and is not in the order");
    says(&["s2:0", "s1:0", "s1:1", "s1:0"], "s1:0 is in the order again");
    says(&["s2:0", "s3:0", "s1:0", "s1:1"], "s3:0 was aborted");
    says(&["s1:0", "s2:0", "s1:1"], "s2:0, operation 1: it read x = absent, and the order gives 1");
    says(&["s2:0", "s1:7"], "no transaction \"s1:7\"");

    let session = Level { session: true, ..serial };
    let early = read("s1: w(x,1) | w(y,1)\n");
    let refusal = refusal(&early, &accepted(&early, session, &["s1:1", "s1:0"])).to_string();
    assert!(refusal.contains("earlier transaction of its session"), "{refusal}");
    assert_eq!(ruling(&early, &accepted(&early, serial, &["s1:1", "s1:0"])), Ruling::Certified);
}

#[test]
fn snapshots_are_taken_at_the_first_mention() {
    let history = read("s1: r(x,_) w(y,1)\ns2: r(y,_) w(x,1)\n");
    let level = Level::SNAPSHOT_ISOLATION;
    let rules = |order: &[&str]| ruling(&history, &accepted(&history, level, order));
    assert_eq!(rules(&["s1:0", "s2:0", "s1:0", "s2:0"]), Ruling::Certified);
    assert!(matches!(rules(&["s1:0", "s1:0", "s2:0", "s2:0"]), Ruling::Refused(Refusal::Result { .. })));
    assert!(matches!(rules(&["s1:0", "s2:0", "s1:0"]), Ruling::Refused(Refusal::NeverCommits { .. })));

    let history = read("s1: w(x,1)\ns2: w(x,2)\n");
    let overlapping = accepted(&history, level, &["s1:0", "s2:0", "s1:0", "s2:0"]);
    assert!(matches!(ruling(&history, &overlapping), Ruling::Refused(Refusal::Overlap { .. })));
}

#[test]
fn real_time_counts_with_the_skew() {
    let history = read("s1: w(x,1) @0..10\ns2: r(x,_) @20..30\n");
    let order = ["s2:0", "s1:0"];
    let strict = accepted(&history, Level::STRICT_SERIALIZABLE, &order);
    assert!(matches!(ruling(&history, &strict), Ruling::Refused(Refusal::RealTime { .. })));
    assert_eq!(ruling(&history, &Certificate { clock_skew: 10, ..strict }), Ruling::Certified);
    assert_eq!(ruling(&history, &accepted(&history, Level::SERIALIZABLE, &order)), Ruling::Certified);
}

#[test]
fn invented_edges_are_refused() {
    let history = read("s1: r(x,_) w(y,1) @1..5\ns2: r(y,_) w(x,1) @2..6\ns3: w(z,1) | w(z,2)\ns4: r(z,1)\n");
    let claimed = |from: &str, to: &str, edge: &str, key: Option<&str>| {
        let mention = |name: &str| Mention::Name(name.to_owned().into());
        let step = Step {
            from: Some(mention(from)),
            to: mention(to),
            edge: edge.to_owned().into(),
            key: key.map(|key| key.to_owned().into()),
        };
        let core = vec![mention("s1:0"), mention("s2:0")];
        let claim = Claim::Violated { core, edges: vec![step], proof: Vec::new() };
        ruling(&history, &Certificate { claim, ..accepted(&history, Level::SERIALIZABLE, &[]) })
    };
    for (from, to, edge, key) in [
        ("s1:0", "s2:0", "rw", Some("x")),
        ("s3:0", "s4:0", "wr", Some("z")),
        ("s3:0", "s3:1", "ww", Some("z")),
        ("s3:0", "s3:1", "so", None),
    ] {
        assert_eq!(claimed(from, to, edge, key), Ruling::Certified, "{from} -{edge}-> {to}");
    }
    for (from, to, edge, key) in [
        ("s1:0", "s2:0", "wr", Some("y")), // It read y, and not what was written.
        ("s3:1", "s4:0", "wr", Some("z")), // It read what another one wrote.
        ("s1:0", "s4:0", "wr", Some("z")),
        ("s4:0", "s1:0", "rw", Some("z")),
        ("s3:0", "s3:1", "rw", Some("z")), // It wrote z without reading it.
        ("s3:0", "s2:0", "rw", None),
        ("s2:0", "s1:0", "rw", Some("x")), // It wrote x and read y.
        ("s4:0", "s3:1", "ww", Some("z")), // It read z without writing it.
        ("s3:0", "s4:0", "ww", Some("z")),
        ("s3:0", "s3:0", "so", None),
        ("s1:0", "s2:0", "ww", Some("x")),
        ("s3:1", "s3:0", "so", None),
        ("s1:0", "s2:0", "so", None),
        ("s1:0", "s2:0", "rt", None),
        ("s1:0", "s2:0", "ts", None),
        ("s1:0", "s2:0", "rw", Some("nowhere")),
        ("s1:0", "s2:0", "guessed", None),
    ] {
        let ruling = claimed(from, to, edge, key);
        let refused = matches!(ruling, Ruling::Refused(Refusal::Edge { place: 0, .. }));
        assert!(refused, "{from} -{edge}-> {to}: {ruling:?}");
    }
}

#[test]
fn a_core_must_have_no_explanation() {
    let history = read("s1: r(x,_) w(y,1)\ns2: r(y,_) w(x,1)\ns3: w(z,1)\n");
    let serial = Level::SERIALIZABLE;
    assert_eq!(ruling(&history, &violated(&history, serial, &["s1:0", "s2:0"])), Ruling::Certified);
    assert_eq!(ruling(&history, &violated(&history, serial, &["s1:0", "s2:0", "s3:0"])), Ruling::Certified);
    for core in [&["s1:0", "s3:0"][..], &[]] {
        let refusal = refusal(&history, &violated(&history, serial, core)).to_string();
        assert!(refusal.contains("proves nothing"), "{refusal}");
    }
    let snapshot = violated(&history, Level::SNAPSHOT_ISOLATION, &["s1:0", "s2:0"]);
    assert!(matches!(ruling(&history, &snapshot), Ruling::Refused(Refusal::Explained { .. })));
}

/// One who says of itself what cannot be, or read what was never there, took no effect: nobody saw what it would have
/// left, and a core does without it. Whoever can have taken effect must be in the core.
#[test]
fn whom_nobody_can_have_seen_is_not_missed_in_a_core() {
    let cases = [
        ("w(x,5) r(x,6)?", true),                    // contradicts itself
        ("r(y,9) w(x,5)?", true),                    // nobody wrote 9
        ("r(y,1) w(x,5)?\ns3: w(y,1)!", true),       // 1 was aborted
        ("r(y,1) w(x,5)?\ns3: w(y,1) w(y,2)", true), // or overwritten before anybody saw it
        ("r(y,1) w(x,5)?\ns3: w(y,2) w(y,1)", false),
        ("w(y,1) r(y,1) w(y,2) w(x,5)?", false),       // its own
        ("r(y,1) w(x,5)?\ns3: r(z,9) w(y,1)?", false), // nobody left 1, but that takes all three to see
        ("r(y,_) w(x,5)?", false),
        ("w(x,5)?", false),
    ];
    for (others, takes_no_effect) in cases {
        let history = read(&format!("s1: r(x,5)\ns2: {others}\n"));
        for level in [Level::SERIALIZABLE, Level::SNAPSHOT_ISOLATION] {
            let core = violated(&history, level, &["s1:0"]);
            let is_certified = ruling(&history, &core) == Ruling::Certified;
            assert_eq!(is_certified, takes_no_effect, "{others} at {level}");
            let verdict = pipeline(&history, level, &Options::default());
            assert_eq!(doubt(&history, level, &Options::default(), &verdict), None, "{others} at {level}");
            if let Verdict::Violated(evidence) = verdict {
                assert_eq!(evidence.anomaly.name, "G1a", "{others} at {level}");
            }
        }
    }
    // Who need not see its own writes does not contradict itself.
    let history = read("s1: r(x,5)\ns2: w(x,5) r(x,_)?\n");
    let strict = violated(&history, Level::SERIALIZABLE, &["s1:0"]);
    assert_eq!(ruling(&history, &strict), Ruling::Certified);
    let lax = Certificate { ryow: Ryow::May, ..strict };
    assert_ne!(ruling(&history, &lax), Ruling::Certified);
}

#[test]
fn large_cores_and_other_levels_are_left_undecided() {
    let lines: String = (0..40).map(|session| format!("s{session}: w(x,{session})\n")).collect();
    let history = read(&format!("{lines}t: r(x,77)\n"));
    let all: Vec<String> = history.transactions().map(|txn| txn.name().to_string()).collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let Ruling::Beyond(why) = ruling(&history, &violated(&history, Level::SERIALIZABLE, &all)) else {
        panic!("41 transactions are too many");
    };
    assert_eq!(why, "a core of 41 transactions is beyond exhaustive replay");
    assert_eq!(ruling(&history, &violated(&history, Level::SERIALIZABLE, &["t:0"])), Ruling::Certified);
    let other = Level::new(Rule::ReadCommitted, false, false);
    assert!(matches!(ruling(&history, &violated(&history, other, &["t:0"])), Ruling::Beyond(_)));
}

/// A circle of anti-dependencies that needs all of its transactions.
fn ring(size: usize) -> History {
    let line = |place: usize| format!("s{place}: r(k{place},_) w(k{},{place})\n", (place + 1) % size);
    read(&(0..size).map(line).collect::<String>())
}

/// The certificate of a violation with everybody as its core, and a proof.
fn with_proof(history: &History, level: Level) -> Certificate<'static> {
    let options = Options::default();
    let transactions = history.transactions().map(|txn| txn.id()).collect();
    let anomaly = Anomaly { name: "G2".into(), common: None };
    let evidence = Evidence { anomaly, transactions, edges: Vec::new(), support: Vec::new(), cases: None };
    let verdict = Verdict::Violated(Box::new(evidence));
    let mut certificate = Certificate::new("h", history, level, &options, &verdict);
    add_proof(&mut certificate, history, &options);
    certificate
}

fn proof_of<'c>(certificate: &'c mut Certificate<'static>) -> &'c mut Vec<Lemma> {
    match &mut certificate.claim {
        Claim::Violated { proof, .. } => proof,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_large_core_is_proved() {
    let history = ring(40);
    let serial = Level::SERIALIZABLE;
    let found = check(&history, serial, &Options::default()).verdict;
    let Verdict::Violated(evidence) = &found else { panic!("{}", found.name()) };
    assert_eq!(evidence.transactions.len(), 40);
    let mut certificate = with_proof(&history, serial);
    assert!(!proof_of(&mut certificate).is_empty());
    assert_eq!(ruling(&history, &certificate), Ruling::Certified);
    let line = written(&certificate);
    assert!(line.contains("\"proof\":[{\"") && line.contains("{\"cycle\":["), "{line}");
    assert_eq!(Certificate::parse(&line), Ok(certificate.clone()));
    // Without its last lemma there is no contradiction; without the first, some other does not follow.
    let lemmas = proof_of(&mut certificate).clone();
    *proof_of(&mut certificate) = vec![Lemma::Clause(vec![Atom::Before(0, 1)])];
    assert_eq!(refusal(&history, &certificate), Refusal::Proof { place: Some(0) });
    *proof_of(&mut certificate) = vec![Lemma::Cycle(vec![0, 1, 2])];
    assert_eq!(refusal(&history, &certificate), Refusal::Proof { place: None });
    *proof_of(&mut certificate) = vec![Lemma::Cycle(vec![0, 40])];
    assert_eq!(refusal(&history, &certificate), Refusal::Proof { place: Some(0) });
    *proof_of(&mut certificate) = lemmas;
    // At snapshot isolation the same circle is fine, so no proof of it can be.
    assert_eq!(proof_of(&mut with_proof(&history, Level::SNAPSHOT_ISOLATION)).len(), 0);
    let elsewhere = Certificate { level: Level::SNAPSHOT_ISOLATION, ..certificate };
    assert!(matches!(ruling(&history, &elsewhere), Ruling::Refused(Refusal::Proof { .. })));
}

/// Everybody appends to two lists, before the one and behind the other; who came first, only the lists tell.
#[test]
fn a_large_core_of_list_orders_is_proved() {
    let count = 20;
    let appends = (0..count).map(|it| format!("s{it}: a(k{it},{it}) a(k{},{it})\n", (it + 1) % count));
    let lists = (0..count).map(|it| format!(" r(k{},[{it} {}])", (it + 1) % count, (it + 1) % count));
    let history = read(&format!("{}all:{}\n", appends.collect::<String>(), lists.collect::<String>()));
    for level in strong_levels() {
        let verdict = pipeline(&history, level, &Options::default());
        let Verdict::Violated(evidence) = &verdict else { panic!("{level}: {}", verdict.name()) };
        assert!(evidence.transactions.len() > count, "{level}: {:?}", evidence.transactions);
        let mut certificate = Certificate::new("h", &history, level, &Options::default(), &verdict);
        add_proof(&mut certificate, &history, &Options::default());
        assert_eq!(ruling(&history, &certificate), Ruling::Certified, "{level}");
    }
}

/// A lock that so many clients took, and one less than one less gave back.
fn crowded(takers: usize) -> History {
    let took = (0..takers).map(|session| format!("s{session}: r(lock,0) w(lock,1)\n"));
    let gave = (0..takers - 2).map(|session| format!("t{session}: r(lock,1) w(lock,0)\n"));
    read(&["init: lock=0\n".to_owned()].into_iter().chain(took).chain(gave).collect::<String>())
}

/// A search would try whom to blame: that there are too many is seen by counting, and so is the proof.
#[test]
fn more_that_replaced_a_value_than_versions_of_it_are_counted() {
    let options = Options::default();
    let history = crowded(40);
    for rule in [Rule::CursorStability, Rule::ConsistentView, Rule::UpdateSerializable] {
        let verdict = check(&history, Level::new(rule, false, false), &options).verdict;
        let Verdict::Violated(evidence) = &verdict else { panic!("{rule:?}: {}", verdict.name()) };
        assert_eq!((evidence.anomaly.name.as_str(), evidence.transactions.len()), ("lost-update", 78));
    }
    for level in [Level::SERIALIZABLE, Level::new(Rule::SnapshotIsolation, true, false)] {
        let verdict = check(&history, level, &options).verdict;
        let Verdict::Violated(evidence) = &verdict else { panic!("{level}: {}", verdict.name()) };
        assert_eq!((evidence.anomaly.name.as_str(), evidence.transactions.len()), ("lost-update", 78));
        let found = Crowd::shown_by(evidence, &history).expect("it is one");
        assert_eq!((found.reads.len(), found.writers.len(), found.from_start), (40, 38, true));
        let mut certificate = Certificate::new("h", &history, level, &options, &verdict);
        add_proof(&mut certificate, &history, &options);
        assert_eq!(ruling(&history, &certificate), Ruling::Certified);
        assert_eq!(Certificate::parse(&written(&certificate)), Ok(certificate.clone()));
        let Lemma::Crowd(takers) = proof_of(&mut certificate)[0].clone() else { panic!("it is counted") };
        // One less is no crowd, nor is one of them twice, nor anybody else among them.
        for wrong in [&takers[1..], &[&takers[1..], &takers[1..2]].concat(), &[&takers[1..], &[77]].concat()]
        {
            *proof_of(&mut certificate) = vec![Lemma::Crowd(wrong.to_vec())];
            assert_eq!(ruling(&history, &certificate), Ruling::Refused(Refusal::Proof { place: Some(0) }));
        }
    }
}

fn mutate_lemma(lemma: &mut Lemma, random: &mut Random) {
    match lemma {
        Lemma::Cycle(events) | Lemma::Crowd(events) if !events.is_empty() => {
            let place = random.below(events.len());
            match random.below(3) {
                0 => drop(events.remove(place)),
                1 => events[place] = random.below(20) as u32,
                _ => events.reverse(),
            }
        }
        Lemma::Clause(atoms) if !atoms.is_empty() => {
            let place = random.below(atoms.len());
            match (random.below(3), atoms[place]) {
                (0, _) => drop(atoms.remove(place)),
                (1, Atom::Before(first, second)) => atoms[place] = Atom::Before(second, first),
                (1, Atom::Saw(txn, op, source)) => atoms[place] = Atom::Missed(txn, op, source),
                (1, Atom::Missed(txn, op, source)) => atoms[place] = Atom::Saw(txn, op, source),
                _ => atoms[place] = Atom::Before(random.below(20) as u32, random.below(20) as u32),
            }
        }
        _ => {}
    }
}

/// Random histories of more transactions than are tried, with repeated values: every violation is proved, and a proof
/// that was changed, or is about another history, is refused or still proves something true.
fn expect_proofs(shape: &Shape, at_least: usize) {
    let (mut proved, mut refused, mut foreign) = (0, 0, 0);
    let shape = Shape { transactions: (13, 14), sessions_max: 6, keys_max: 4, ..shape.clone() };
    let mut before: Option<(Level, Vec<Lemma>)> = None;
    for seed in seeds(400) {
        let history = shape.history(seed);
        let mut random = Random::new(seed);
        let level = *random.pick(&strong_levels());
        let is_violated = match check(&history, level, &Options::default()).verdict {
            Verdict::Violated(_) => true,
            Verdict::Accepted(_) => false,
            Verdict::Undecided(why) => panic!("seed {seed}: {why}"),
        };
        let mut certificate = with_proof(&history, level);
        let lemmas = proof_of(&mut certificate).clone();
        if !is_violated {
            assert!(lemmas.is_empty(), "seed {seed}: a proof of what is not so");
            if let Some((level, lemmas)) = &before {
                certificate.level = *level;
                if matches!(check(&history, *level, &Options::default()).verdict, Verdict::Accepted(_)) {
                    *proof_of(&mut certificate) = lemmas.clone();
                    assert_ne!(ruling(&history, &certificate), Ruling::Certified, "seed {seed}");
                    foreign += 1;
                }
            }
            continue;
        }
        if lemmas.is_empty() {
            continue; // some transaction contradicts itself, or was aborted: fewer are left than need a proof
        }
        assert_eq!(ruling(&history, &certificate), Ruling::Certified, "seed {seed} at {level}");
        proved += 1;
        for _ in 0..4 {
            let place = random.below(lemmas.len());
            mutate_lemma(&mut proof_of(&mut certificate)[place], &mut random);
            refused += usize::from(ruling(&history, &certificate) != Ruling::Certified);
        }
        before = Some((level, lemmas));
    }
    assert!(
        proved.min(refused) >= least(at_least) && foreign > least(10),
        "{proved} proved, {refused} refused, {foreign} foreign"
    );
}

#[test]
fn proofs_are_found_and_changed_ones_prove_nothing_false() {
    expect_proofs(&Shape { unknown: 0, ..Shape::registers() }, 40);
}

#[test]
fn proofs_speak_of_unknown_outcomes() {
    expect_proofs(&Shape { unknown: 15, ..Shape::registers() }, 20);
}

#[test]
fn proofs_speak_of_lists() {
    expect_proofs(&Shape { unknown: 5, initial: 0, unique_values: 100, spoiled: 0, ..Shape::lists() }, 10);
}

/// A session called 1 and one called "1" have transactions of the same name: their places tell them apart.
#[test]
fn names_that_look_alike_are_told_apart() {
    let mut builder = history::Builder::new();
    let key = builder.key("x".into());
    let one = builder.int(1);
    for (session, is_writer) in [(history::NameRef::Int(1), true), (history::NameRef::Str("1"), false)] {
        let session = builder.session(session);
        builder.begin(session);
        if is_writer {
            builder.write(key, one);
        } else {
            builder.read(key, one, history::Lock::None);
        }
        builder.end().expect("it is complete");
    }
    let history = builder.finish().expect("names are as the builder allows");
    let options = Options::default();
    let verdict = exhaustive(&history, Level::SERIALIZABLE, &options);
    let certificate = Certificate::new("h", &history, Level::SERIALIZABLE, &options, &verdict);
    assert_eq!(certificate.claim, Claim::Accepted { order: vec![Mention::Place(0), Mention::Place(1)] });
    assert_eq!(doubt(&history, Level::SERIALIZABLE, &options, &verdict), None);
    let by_name = accepted(&history, Level::SERIALIZABLE, &["1:0", "1:0"]);
    assert!(matches!(ruling(&history, &by_name), Ruling::Refused(Refusal::AmbiguousName { .. })));
}

/// Names and values that run into each other, whatever stands between them.
#[test]
fn where_a_name_ends_is_part_of_the_fingerprint() {
    let written = |key: &str, value: &str| {
        let mut builder = Builder::new();
        let session = builder.session(0.into());
        builder.begin(session);
        let (key, value) = (builder.key(key.into()), builder.text(value));
        builder.write(key, value);
        builder.end().expect("it is short");
        Fingerprint::of(&builder.finish().expect("one transaction"))
    };
    for between in '\0'..='\u{20}' {
        let (early, late) = (written("a", &format!("b{between}c")), written(&format!("a{between}b"), "c"));
        assert_ne!(early, late, "{between:?}");
    }
}

#[test]
fn the_text_form_is_the_documented_one() {
    let history = read("s1: r(x,_) w(y,1)\ns2: r(y,_) w(x,1)\n");
    let core = violated(&history, Level::SERIALIZABLE, &["s1:0", "s2:0"]);
    let fingerprint = Fingerprint::of(&history);
    assert_eq!(
        written(&core),
        format!(
            "{{\"certificate\":1,\"file\":\"h\",\"history\":\"{fingerprint}\",\"level\":\"serializable\",\
             \"session_order\":false,\"real_time\":false,\"by\":\"results\",\"ryow\":\"must\",\"clock_skew\":0,\
             \"verdict\":\"violated\",\"core\":[\"s1:0\",\"s2:0\"]}}\n"
        )
    );
    let line = written(&core);
    for (from, to, message) in [
        ("\"certificate\":1", "\"certificate\":2,\"new\":0", "version 2"),
        ("\"real_time\":false", "\"real_time\":true", "serializable means false and false"),
        ("\"core\":", "\"order\":", "a violated one \"core\""),
        ("\"must\"", "\"sometimes\"", "must, may, never"),
        ("\"clock_skew\":0,", "", "missing field `clock_skew`"),
        ("\"clock_skew\":0,", "\"clock_skew\":0,\"clock_skew\":0,", "duplicate field"),
        ("\"clock_skew\":0,", "\"clock_skew\":0,\"note\":0,", "unknown field `note`"),
        ("\"level\":\"serializable\"", "\"level\":\"linear\"", "unknown isolation level"),
    ] {
        let changed = line.replace(from, to);
        assert_ne!(changed, line);
        let malformed = Certificate::parse(&changed).expect_err(to).to_string();
        assert!(malformed.contains(message), "{malformed}");
    }
}

/// Edges are only told; still they must not contradict what is plain to see.
#[test]
fn edges_must_fit_the_history() {
    let history =
        read("s1: r(x,_) w(y,1) @0..5\ns2: r(y,_) w(x,1) @10..15\ns3: w(z,1) @@1..2 | w(z,2) @@3..4\n");
    let text = |edge: &str| {
        let line = written(&violated(&history, Level::SERIALIZABLE, &["s1:0", "s2:0"]));
        line.replace("[\"s1:0\",\"s2:0\"]}", &format!("[\"s1:0\",\"s2:0\"],\"edges\":[{edge}]}}"))
    };
    for (edge, fits) in [
        (r#"{"from":"s1:0","to":"s2:0","edge":"rw","key":"x"}"#, true),
        (r#"{"from":"s1:0","to":"s2:0","edge":"rt"}"#, true),
        (r#"{"from":null,"to":"s2:0","edge":"wr","key":"y"}"#, true),
        (r#"{"from":"s3:0","to":"s3:1","edge":"ts"}"#, true),
        (r#"{"from":"s1:0","to":"s3:0","edge":"ts"}"#, false),
        (r#"{"from":"s3:0","to":"s1:0","edge":"ts"}"#, false),
        (r#"{"from":"s2:0","to":"s1:0","edge":"rt"}"#, false),
        (r#"{"from":"s1:0","to":"s2:0","edge":"so"}"#, false),
        (r#"{"from":"s1:0","to":"s2:0","edge":"rw","key":"y"}"#, false),
        (r#"{"from":"s1:0","to":"s2:0","edge":"ww","key":"nowhere"}"#, false),
        (r#"{"from":"s1:0","to":"s2:0","edge":"sideways"}"#, false),
        (r#"{"from":"s1:0","to":"s9:0","edge":"rw"}"#, false),
    ] {
        let line = text(edge);
        let certificate = Certificate::parse(&line).expect("it is well formed");
        assert_eq!(ruling(&history, &certificate) == Ruling::Certified, fits, "{edge}");
        assert_eq!(written(&certificate), line);
    }
}

/// What the pipeline will one day say of a violation is written as it says it.
#[test]
fn an_undecided_verdict_claims_nothing() {
    let history = read("s1: w(x,1)\n");
    let evidence = Evidence {
        anomaly: Anomaly { name: "G2".into(), common: None },
        transactions: vec![TxnId(0)],
        edges: Vec::new(),
        support: Vec::new(),
        cases: None,
    };
    let options = Options::default();
    let level = Level::SERIALIZABLE;
    let wrong = Certificate::new("h", &history, level, &options, &Verdict::Violated(Box::new(evidence)));
    assert!(matches!(ruling(&history, &wrong), Ruling::Refused(Refusal::Explained { .. })));
    let undecided = Verdict::Undecided(isolation::Undecided::Timeout);
    let open = Certificate::new("h", &history, level, &options, &undecided);
    assert_eq!(ruling(&history, &open), Ruling::Beyond("nothing is claimed: timed out".into()));
    let line = written(&open);
    assert_eq!(Certificate::parse(&line), Ok(open));
}
