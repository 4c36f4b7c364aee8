//! On a healthy engine there is nothing to find.

use databases::{Database, Sqlite};
use taipan_hunt::{Examination, Finding, Settings, Stage, Tally, examine, generate};
use workload::Random;

#[test]
fn nothing_is_found_on_a_healthy_engine() {
    let sqlite = Sqlite::temporary().expect("a temporary folder");
    let scripted = sqlite.scripted().expect("it speaks SQL");
    let isolation = *sqlite.isolations().last().expect("it has a level");
    let sight = isolation.sight.expect("it keeps to what is committed");
    let mut stage = Stage::open(scripted, isolation).expect("it opens");
    let settings = Settings { transactions: 6, ..Settings::default() };
    let mut tally = Tally::default();
    for seed in 0..150 {
        let plan = generate(&settings, scripted.grammar(), sight, seed / 10, seed);
        let case = plan.case(scripted.grammar(), sight);
        let how = Examination::default();
        let examined = examine(&mut stage, &case, &how, &mut Random::new(seed)).expect("it runs");
        tally.add(&examined.tally);
        if let Some(Finding::Difference(difference)) = &examined.finding {
            let of_step = |step| vec![format!("{:?}", examined.run.observed.get(&step))];
            let text = taipan_hunt::script::write(&examined.case, isolation.name, &[], of_step);
            panic!("seed {seed}: {difference:?}\n{text}");
        }
        assert_eq!(examined.finding, None, "seed {seed}");
    }
    assert!(tally.refused * 10 <= tally.statements, "at least nine in ten are accepted: {tally:?}");
    assert!(tally.committed > 150 && tally.compared > 500, "{tally:?}");
}
