//! Figure 1 of the TxCheck paper, from its recorded execution: the graph of Figure 6, the order of Figure 9, and the
//! difference that made it a bug.

use databases::Value;
use taipan_hunt::case::{StepNo, TableNo};
use taipan_hunt::{
    Alone, Dependency, Fate, Graph, Observed, Place, Rows, Run, compare, cycles, script, topological,
};
use workload::Random;

/// Figure 5, bottom: the transactions with all reads inserted.
const CASE: &str = "-- taipan hunt case
-- isolation: repeatable-read
-- table: t0
-- table: t1
-- schema
CREATE TABLE t0 (pkey INT PRIMARY KEY, vkey INT);
CREATE TABLE t1 (pkey INT PRIMARY KEY, vkey INT, c0 INT);
-- rows
INSERT INTO t0 VALUES (1, 20);
INSERT INTO t1 VALUES (2, 43, 8), (3, 43, 53);
-- schedule
-- T0 S0
BEGIN;
-- T0 S1
-- is: update t0 162 transaction
-- versions t0: SELECT * FROM t0
-- before: SELECT * FROM t0
-- after: SELECT * FROM t0 WHERE vkey = 162
UPDATE t0 SET vkey = 162;
-- T0 S2
-- is: select - 0 transaction items=t1
-- versions t1: SELECT * FROM t1
SELECT * FROM t1;
-- T1 S10
BEGIN;
-- T1 S11
-- is: select - 0 transaction items=t0
-- versions t0: SELECT * FROM t0
SELECT * FROM t0;
-- T0 S3
COMMIT;
-- T1 S12
-- is: select - 0 transaction items=t1
-- versions t0: SELECT * FROM t0
-- versions t1: SELECT * FROM t1
SELECT * FROM t1 WHERE t1.c0 <= (SELECT MIN(vkey) FROM t0);
-- T1 S13
-- is: update t1 63 transaction
-- versions t0: SELECT * FROM t0
-- versions t1: SELECT * FROM t1
-- before: SELECT * FROM t1 WHERE t1.c0 <= (SELECT MIN(vkey) FROM t0)
-- after: SELECT * FROM t1 WHERE vkey = 63
UPDATE t1 SET vkey = 63 WHERE t1.c0 <= (SELECT MIN(vkey) FROM t0);
-- T1 S14
COMMIT;
";

const T0: TableNo = TableNo(0);
const T1: TableNo = TableNo(1);

fn rows(cells: &[&[i64]]) -> Rows {
    cells.iter().map(|row| row.iter().map(|cell| Value::Int(*cell)).collect()).collect()
}

/// What the server answered, as the paper tells it.
fn recorded() -> Run {
    let t0 = (T0, vec![(1, 20)]);
    let t1 = (T1, vec![(2, 43), (3, 43)]);
    let both = rows(&[&[2, 43, 8], &[3, 43, 53]]);
    let write = |at, versions, before, after| {
        let output = Rows::new();
        Observed { at, versions, before, output, after }
    };
    let read = |at, versions, output| Observed { at, versions, output, ..Observed::default() };
    let observed = [
        (1, write(1, vec![t0.clone()], rows(&[&[1, 20]]), rows(&[&[1, 162]]))),
        (2, read(2, vec![t1.clone()], both)),
        (11, read(4, vec![t0.clone()], rows(&[&[1, 20]]))),
        (12, read(6, vec![t0.clone(), t1.clone()], rows(&[&[2, 43, 8]]))),
        (13, write(7, vec![t0, t1], rows(&[&[2, 43, 8]]), rows(&[&[2, 63, 8], &[3, 63, 53]]))),
    ];
    Run {
        observed: observed.into_iter().map(|(step, seen)| (StepNo(step), seen)).collect(),
        fates: vec![Fate::Committed(5), Fate::Committed(8)],
        order: [0, 1, 2, 10, 11, 3, 12, 13, 14].map(StepNo).to_vec(),
        finals: vec![rows(&[&[1, 162]]), rows(&[&[2, 63, 8], &[3, 63, 53]])],
        ..Run::default()
    }
}

#[test]
fn the_graph_is_that_of_figure_6() {
    let case = script::parse(CASE).expect("it is well-formed").case;
    let graph = Graph::of(&case, &recorded());
    let edges: Vec<(u32, u32, Vec<Dependency>)> = graph
        .edges
        .iter()
        .map(|((from, to), kinds)| (graph.nodes[from.index()].0, graph.nodes[to.index()].0, kinds.clone()))
        .collect();
    use Dependency::{ItemAnti, PredicateAnti, ValueWrite};
    let expected = [
        // T0.S2 and T1.S2 show the row that T1.S3 overwrites.
        (2, 13, vec![ItemAnti, PredicateAnti]),
        (12, 13, vec![ItemAnti, PredicateAnti]),
        // T1.S1 shows, and T1.S2 and T1.S3 look at, the row that T0.S1 overwrites.
        (11, 1, vec![ItemAnti, PredicateAnti]),
        (12, 1, vec![PredicateAnti]),
        (13, 1, vec![ValueWrite]),
    ];
    assert_eq!(edges.len(), expected.len(), "{edges:?}");
    assert!(expected.iter().all(|edge| edges.contains(edge)), "{edges:?}");
    assert!(cycles(&graph).is_empty());
    for seed in 0..20 {
        let order = topological(&graph, &mut Random::new(seed)).expect("there is no cycle");
        assert_eq!(order.last().map(|node| graph.nodes[node.index()]), Some(StepNo(1)), "T0.S1 comes last");
    }
}

/// Figure 9: without transactions only one row is updated.
#[test]
fn the_difference_is_that_of_figure_9() {
    let case = script::parse(CASE).expect("it is well-formed").case;
    let order = [2, 11, 12, 13, 1].map(StepNo);
    let read = |output| Observed { output, ..Observed::default() };
    let write = |before, after| Observed { before, after, ..Observed::default() };
    let with_update = |updated: Rows| {
        vec![
            Ok(read(rows(&[&[2, 43, 8], &[3, 43, 53]]))),
            Ok(read(rows(&[&[1, 20]]))),
            Ok(read(rows(&[&[2, 43, 8]]))),
            Ok(write(rows(&[&[2, 43, 8]]), updated)),
            Ok(write(rows(&[&[1, 20]]), rows(&[&[1, 162]]))),
        ]
    };
    let answers = with_update(rows(&[&[2, 63, 8]]));
    let finals = vec![rows(&[&[1, 162]]), rows(&[&[2, 63, 8], &[3, 43, 53]])];
    let found =
        compare(&case, &recorded(), &order, Alone { answers, finals: finals.clone() }).expect("it is a bug");
    assert_eq!(found.place, Place::After(StepNo(13)));
    assert_eq!(found.in_transactions, rows(&[&[2, 63, 8], &[3, 63, 53]]));
    // Had only the tables been compared, as in the figure, t1 would differ.
    let answers = with_update(rows(&[&[2, 63, 8], &[3, 63, 53]]));
    let found = compare(&case, &recorded(), &order, Alone { answers, finals }).expect("it is a bug");
    assert_eq!(found.place, Place::Table(T1));
}
