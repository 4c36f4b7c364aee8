//! All that is reported about an answer, by names.

use super::By;
use history::{History, Id, TxnId};
use isolation::{Edge, Evidence, Level, Options, Verdict};
use replay::Finding;
use taipan_cluster::Answer;

/// What one process says.
pub(crate) fn alone(history: &History, level: Level, by: By) -> Vec<String> {
    let options = Options { threads: 1, ..Options::default() };
    let by_timestamps = by != By::Results && replay::applies(history, level);
    if by_timestamps {
        let (outcome, findings) = replay::judge(history, level, &options);
        if by == By::Timestamps || matches!(outcome.verdict, Verdict::Accepted(_)) {
            return tell(history, &outcome.verdict, Some(&findings));
        }
    }
    tell(history, &evidence::check(history, level, &options).verdict, None)
}

/// What many say.
pub(crate) fn told(answer: &Answer, by: By) -> Vec<String> {
    let Some(found) = &answer.found else { return vec![answer.verdict.to_string()] };
    let findings = found.findings.as_deref().filter(|_| by != By::Results);
    match &found.outcome {
        None => vec![answer.verdict.to_string()],
        Some(outcome) => tell(&found.history, &outcome.verdict, findings),
    }
}

fn tell(history: &History, verdict: &Verdict, findings: Option<&[Finding]>) -> Vec<String> {
    let mut told = vec![verdict.name().to_owned()];
    if let Verdict::Violated(evidence) = verdict {
        let Evidence { anomaly, edges, .. } = &**evidence;
        told.push(anomaly.name.clone());
        // By timestamps the argument is the same, too; a search may find another core of the same kind.
        if findings.is_some() {
            told.extend(evidence.names(history));
            told.extend(edges.iter().map(|edge| tell_edge(history, edge)));
        }
    }
    told.extend(findings.unwrap_or(&[]).iter().map(|finding| {
        let op = finding.op.map(|op| op.index() - history.transaction(finding.txn).first_op().index());
        let key = finding.key.map(|key| history.keys().get(key).to_string());
        let (txn, other) = (name(history, Some(finding.txn)), name(history, finding.other));
        format!("{:?} {txn:?} {op:?} {key:?} {other:?}", finding.axiom)
    }));
    told
}

fn tell_edge(history: &History, edge: &Edge) -> String {
    let key = edge.key.map(|key| history.keys().get(key).to_string());
    format!("{:?} {:?} {:?} {key:?}", name(history, edge.from), name(history, Some(edge.to)), edge.kind)
}

fn name(history: &History, txn: Option<TxnId>) -> Option<String> {
    txn.map(|txn| history.transaction(txn).name().to_string())
}
