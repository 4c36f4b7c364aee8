//! What a violation is recognised by in another run: the claim, the kind of anomaly and the shape of its argument.
//!
//! Ids, keys and values differ from run to run; the shape does not: the kinds of edges in order, and how many
//! transactions there are. Where a cycle begins is chance, so of all its beginnings the first in the alphabet counts.

use isolation::{Claim, Edge, Evidence};

/// A core without an argument and with more transactions than this is as large as chance made it.
const COUNTED_MAX: usize = 16;

/// `serializable/G2-item/rw,rw/2`.
pub(crate) fn fingerprint(claim: &Claim, evidence: &Evidence) -> String {
    let Evidence { anomaly, transactions, edges, .. } = evidence;
    let mut kinds: Vec<String> = edges.iter().map(kind).collect();
    if is_cycle(edges) {
        kinds = (0..kinds.len()).map(|start| rotated(&kinds, start)).min().unwrap_or_default();
    }
    let shape = if kinds.is_empty() { "-".to_owned() } else { kinds.join(",") };
    let count = match transactions.len() {
        count if edges.is_empty() && count > COUNTED_MAX => "many".to_owned(),
        count => count.to_string(),
    };
    format!("{claim}/{}/{shape}/{count}", anomaly.name)
}

fn kind(edge: &Edge) -> String {
    let predicate = if edge.predicate { "-predicate" } else { "" };
    format!("{}{predicate}", edge.kind.name())
}

fn is_cycle(edges: &[Edge]) -> bool {
    let nexts = edges.iter().cycle().skip(1);
    edges.len() > 1 && edges.iter().zip(nexts).all(|(edge, next)| Some(edge.to) == next.from)
}

fn rotated(kinds: &[String], start: usize) -> Vec<String> {
    kinds[start..].iter().chain(&kinds[..start]).cloned().collect()
}
