//! The reader and the judge of certificates. Whatever a certificate says of a history, nothing may panic, and what is
//! certified must be what the exhaustive oracle finds.

use certify::{Certificate, Claim, Fingerprint, Ruling, certify};
use history::History;
use history::formats::notation;
use isolation::{Budget, Options, Verdict};
use oracle::oracle;
use std::sync::LazyLock;
use std::time::Duration;

/// Tiny histories, possible and impossible ones; the first byte of an input chooses. Seeds begin with `0` for the first.
const HISTORIES: [&str; 8] = [
    "s1: w(x,1) | r(x,1)\ns2: r(x,1) w(x,2)\n",
    "s1: r(x,_) w(x,1)\ns2: r(x,_) w(x,2)\n",
    "s1: r(x,_) w(y,1)\ns2: r(y,_) w(x,1)\n",
    "s1: w(x,1) @1..2\ns2: r(x,_) @3..4\ns3: w(x,2)?\n",
    "init: x=0\ns1: w(x,1)! | w(x,1)\ns2: r(x,1) d(x) | r(x,_)\n",
    "s1: a(l,1) | a(l,2)\ns2: r(l,[1 2]) r(m,_)\ns3: r(l,[2]) a(m,1)\n",
    "s1: w(a,1) w(b,1)\ns2: scan(a..c)=[a:1] | iter(a..z desc)=[b:1]\n",
    "s1: w(a,1) | u(value=1 -> 2)=1[a]\ns2: q(value>=1)=[a:2] | dw(value=2)\n",
];

static PARSED: LazyLock<Vec<History>> = LazyLock::new(|| {
    HISTORIES.iter().map(|text| notation::parse(text).expect("these are histories")).collect()
});

/// One byte that chooses a history, then one line.
pub fn certificate(bytes: &[u8]) {
    let Some((&choice, line)) = bytes.split_first() else { return };
    let Ok(line) = std::str::from_utf8(line) else { return };
    let history = &PARSED[usize::from(choice) % PARSED.len()];
    let mut certificate = match Certificate::parse(line) {
        Ok(certificate) => certificate,
        Err(malformed) => return assert!(!malformed.to_string().is_empty()),
    };
    let again = written(&certificate);
    assert_eq!(Certificate::parse(&again).as_ref(), Ok(&certificate), "{again}");
    // Every other byte would have to fit the history's fingerprint: not a thing that chance finds.
    certificate.fingerprint = Fingerprint::of(history);
    judge(history, &certificate);
}

fn judge(history: &History, certificate: &Certificate<'_>) {
    let budget = Budget::unlimited().with_timeout(Duration::from_secs(2));
    let Certificate { level, ryow, clock_skew, ref claim, .. } = *certificate;
    match certify(history, certificate, &budget) {
        Ruling::Certified => {
            let options = Options { ryow, clock_skew, budget, ..Options::default() };
            let truth = oracle(history, level, &options).expect("tiny histories are within its size");
            let agrees = matches!(
                (claim, &truth),
                (Claim::Accepted { .. }, Verdict::Accepted(_))
                    | (Claim::Violated { .. }, Verdict::Violated(_))
            );
            assert!(agrees, "{} was certified, the truth is {truth:?}", written(certificate));
        }
        Ruling::Refused(refusal) => assert!(!refusal.to_string().is_empty()),
        Ruling::Beyond(why) => assert!(!why.is_empty()),
    }
}

fn written(certificate: &Certificate<'_>) -> String {
    let mut line = Vec::new();
    certificate.write(&mut line).expect("a vector takes everything");
    String::from_utf8(line).expect("JSON is text")
}
