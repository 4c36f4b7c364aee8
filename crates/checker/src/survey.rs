//! All levels at once: the strongest that hold and the weakest that are violated.
//!
//! **What.** [`survey`] checks a history at level after level, strongest first, and skips a level that follows from one
//! that holds. What it returns is the frontier: accepted levels that no accepted level implies, violated levels that
//! imply no other violated level, and everything that could not be decided.
//!
//! **Invariant.** A level that was skipped is implied by one that was accepted, so the frontier is that of checking
//! every level.
//!
//! **Cost.** One check for every level that is not implied by an accepted one.

use crate::rows;
use crate::{Level, Verdict, implications};
use history::History;

/// What every level comes to, without what follows from it.
#[derive(Clone, Debug)]
pub struct Survey<T> {
    /// Accepted, and implied by no other accepted level; strongest first.
    pub strongest: Vec<(Level, T)>,
    /// Violated, and implying no other violated level; weakest last.
    pub weakest: Vec<(Level, T)>,
    /// Not decided.
    pub undecided: Vec<(Level, T)>,
}

/// Checks a history at all levels. `check` decides one level and may keep what it likes beside the verdict; its first
/// error ends the survey.
pub fn survey<T, E>(
    history: &History,
    mut check: impl FnMut(Level) -> Result<T, E>,
    verdict: impl Fn(&T) -> &Verdict,
) -> Result<Survey<T>, E> {
    let order = Order::of(history);
    let mut survey = Survey { strongest: Vec::new(), weakest: Vec::new(), undecided: Vec::new() };
    for level in strongest_first(&order) {
        if survey.strongest.iter().any(|(stronger, _)| order.implies(*stronger, level)) {
            continue;
        }
        let checked = check(level)?;
        match verdict(&checked) {
            Verdict::Accepted(_) => survey.strongest.push((level, checked)),
            Verdict::Violated(_) => survey.weakest.push((level, checked)),
            Verdict::Undecided(_) => survey.undecided.push((level, checked)),
        }
    }
    let violated: Vec<Level> = survey.weakest.iter().map(|(level, _)| *level).collect();
    survey.weakest.retain(|(level, _)| !violated.iter().any(|weaker| order.implies(*level, *weaker)));
    Ok(survey)
}

/// Which level implies which, for one history.
struct Order {
    /// Every pair, also the indirect ones.
    pairs: Vec<(Level, Level)>,
}

impl Order {
    fn of(history: &History) -> Self {
        let predicates = rows::has_many(history);
        let mut pairs: Vec<(Level, Level)> = implications()
            .iter()
            .filter(|it| !(it.without_predicates && predicates))
            .map(|it| (it.stronger, it.weaker))
            .collect();
        // The closure: pairs are appended while the list is walked, so every new one is extended in turn.
        let direct = pairs.clone();
        let mut next = 0;
        while let Some(&(stronger, middle)) = pairs.get(next) {
            for &(_, weaker) in direct.iter().filter(|(from, _)| *from == middle) {
                if !pairs.contains(&(stronger, weaker)) {
                    pairs.push((stronger, weaker));
                }
            }
            next += 1;
        }
        Self { pairs }
    }

    fn implies(&self, stronger: Level, weaker: Level) -> bool {
        self.pairs.contains(&(stronger, weaker))
    }
}

/// All levels, none before one that implies it.
fn strongest_first(order: &Order) -> Vec<Level> {
    let mut levels: Vec<Level> = Level::all().collect();
    // The number of levels above one grows along every implication.
    levels.sort_by_key(|&level| order.pairs.iter().filter(|(_, weaker)| *weaker == level).count());
    levels
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Anomaly, Evidence, Undecided, Witness};
    use history::Builder;

    /// Surveys an empty history as if exactly the levels that `holds` were accepted.
    fn names(holds: impl Fn(Level) -> Option<bool>) -> [Vec<&'static str>; 3] {
        let history = Builder::new().finish().expect("an empty history is a history");
        let check = |level| -> Result<Verdict, ()> {
            Ok(match holds(level) {
                Some(true) => Verdict::Accepted(Witness::default()),
                Some(false) => Verdict::Violated(Box::new(Evidence {
                    anomaly: Anomaly { name: "G0".into(), common: None },
                    transactions: Vec::new(),
                    edges: Vec::new(),
                    support: Vec::new(),
                })),
                None => Verdict::Undecided(Undecided::Timeout),
            })
        };
        let survey = survey(&history, check, |verdict| verdict).expect("the check never fails");
        let of = |levels: Vec<(Level, Verdict)>| levels.iter().map(|(level, _)| level.name()).collect();
        [of(survey.strongest), of(survey.weakest), of(survey.undecided)]
    }

    #[test]
    fn all_hold() {
        let [strongest, weakest, undecided] = names(|_| Some(true));
        assert_eq!(strongest, ["strict-serializable"]);
        assert_eq!((weakest.len(), undecided.len()), (0, 0));
    }

    #[test]
    fn none_holds() {
        let [strongest, weakest, _] = names(|_| Some(false));
        assert_eq!(strongest.len(), 0);
        assert_eq!(weakest, ["read-uncommitted"]);
    }

    #[test]
    fn a_write_skew_lies_between() {
        let serial = crate::Rule::Serializable;
        let update = crate::Rule::UpdateSerializable;
        let repeatable = crate::Rule::RepeatableRead;
        let [strongest, weakest, _] =
            names(|level| Some(![serial, update, repeatable].contains(&level.rule)));
        assert_eq!(strongest, ["strong-snapshot-isolation"]);
        let mut weakest = weakest;
        weakest.sort_unstable();
        assert_eq!(weakest, ["repeatable-read", "update-serializable"]);
    }

    #[test]
    fn undecided_levels_are_all_told() {
        let [_, _, undecided] = names(|_| None);
        assert_eq!(undecided.len(), Level::all().len());
    }
}
