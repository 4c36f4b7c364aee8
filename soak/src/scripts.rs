//! Random SQL: a case that is written to a file is the case that is read from it.

use crate::campaign::Wrong;
use databases::{Grammar, Sight};
use hunt::{Settings, generate, script};

pub(crate) fn case(seed: u64) -> Result<u64, Wrong> {
    let settings = Settings { depth: 2 + (seed % 4) as u32, ..Settings::default() };
    let mut comparisons = 0;
    for sight in [Sight::SNAPSHOT, Sight::NEWEST, Sight::SPLIT] {
        let plan = generate(&settings, &Grammar::PLAIN, sight, seed, seed);
        let case = plan.case(&Grammar::PLAIN, sight);
        let text = script::write(&case, "some-level", &["a remark".into()], |step| vec![step.to_string()]);
        match script::parse(&text) {
            Ok(parsed) if parsed.case == case => comparisons += 1,
            Ok(_) => return Err(Wrong::new(format!("another case came back:\n{text}"))),
            Err(error) => return Err(Wrong::new(format!("{error}:\n{text}"))),
        }
    }
    Ok(comparisons)
}
