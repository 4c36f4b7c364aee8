//! All levels at once: what holds, what is violated, and the frontier between them.
//!
//! **What.** [`survey`] finds out what every level comes to without checking every one: a level that follows from one that
//! holds, holds; a level from which one that is violated follows, is violated. What it returns is a mark for every level and
//! the frontier: accepted levels that no accepted level implies, violated levels that imply no other violated level.
//!
//! **Invariant.** The frontier is that of checking every level: a level on it follows from no other, so it was checked.
//!
//! **Steps.** The strongest level first, because most histories are right; after that the one that settles most levels
//! whichever way it turns out (a search by halves, on a partial order). An undecided level settles only itself, and is
//! settled if a later one says so.
//!
//! **Cost.** One check for a history that is right at every level; for others at most thirteen of twenty-one.

use crate::rows;
use crate::{Level, Verdict, implications};
use history::History;

/// What every level comes to.
#[derive(Clone, Debug)]
pub struct Survey<T> {
    /// Accepted, and implied by no other accepted level; strongest first.
    pub strongest: Vec<(Level, T)>,
    /// Violated, and implying no other violated level; weakest first.
    pub weakest: Vec<(Level, T)>,
    /// Not decided.
    pub undecided: Vec<(Level, T)>,
    /// Every level in the order of the table, with its mark.
    pub marks: Vec<(Level, Mark)>,
    /// Levels that are not on the frontier, each with one on it that settles it.
    pub follows: Vec<(Level, Level)>,
}

/// What a level comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mark {
    /// It holds.
    Accepted,
    /// It is violated.
    Violated,
    /// It could not be decided.
    Undecided,
}

impl Mark {
    /// As [`Verdict::name`].
    pub fn name(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Violated => "violated",
            Self::Undecided => "undecided",
        }
    }
}

/// Finds out what every level comes to. `check` decides one level and may keep what it likes beside the verdict; its first
/// error ends the survey.
pub fn survey<T, E>(
    history: &History,
    mut check: impl FnMut(Level) -> Result<T, E>,
    verdict: impl Fn(&T) -> &Verdict,
) -> Result<Survey<T>, E> {
    let order = Order::of(history);
    let mut marks: Vec<(Level, Option<Mark>)> = Level::all().map(|level| (level, None)).collect();
    let mut checked: Vec<(Level, T)> = Vec::new();
    while let Some(level) = next(&order, &marks, checked.is_empty()) {
        let result = check(level)?;
        let mark = match verdict(&result) {
            Verdict::Accepted(_) => Mark::Accepted,
            Verdict::Violated(_) => Mark::Violated,
            Verdict::Undecided(_) => Mark::Undecided,
        };
        for (other, known) in &mut marks {
            if *other == level || order.settles(level, mark, *other) {
                *known = Some(mark);
            }
        }
        checked.push((level, result));
    }
    let marks = marks.into_iter().map(|(level, mark)| (level, mark.unwrap_or(Mark::Undecided))).collect();
    Ok(frontier(&order, marks, checked))
}

/// The level to check next, if one is open.
fn next(order: &Order, marks: &[(Level, Option<Mark>)], first: bool) -> Option<Level> {
    let open = || marks.iter().filter(|(_, mark)| mark.is_none()).map(|&(level, _)| level);
    let settled =
        |level: Level, mark: Mark| open().filter(|&other| order.settles(level, mark, other)).count();
    open().max_by_key(|&level| {
        let (if_accepted, if_violated) = (settled(level, Mark::Accepted), settled(level, Mark::Violated));
        let certain = if first { 0 } else { if_accepted.min(if_violated) };
        (certain, if_accepted + if_violated, if_accepted)
    })
}

/// What was checked and follows from nothing else.
fn frontier<T>(order: &Order, marks: Vec<(Level, Mark)>, checked: Vec<(Level, T)>) -> Survey<T> {
    let is = |level: Level, mark: Mark| marks.contains(&(level, mark));
    let with = |mark: Mark| marks.iter().filter(move |(_, other)| *other == mark).map(|&(level, _)| level);
    let (mut strongest, mut weakest, mut undecided) = (Vec::new(), Vec::new(), Vec::new());
    for (level, result) in checked {
        if is(level, Mark::Undecided) {
            undecided.push((level, result));
        } else if is(level, Mark::Accepted) && !with(Mark::Accepted).any(|other| order.implies(other, level))
        {
            strongest.push((level, result));
        } else if is(level, Mark::Violated) && !with(Mark::Violated).any(|other| order.implies(level, other))
        {
            weakest.push((level, result));
        }
    }
    // The number of levels above one grows along every implication.
    let above = |level: Level| order.pairs.iter().filter(|(_, weaker)| *weaker == level).count();
    strongest.sort_by_key(|&(level, _)| above(level));
    weakest.sort_by_key(|&(level, _)| std::cmp::Reverse(above(level)));
    undecided.sort_by_key(|&(level, _)| above(level));
    let checked = strongest.iter().chain(&weakest).chain(&undecided);
    let on_it: Vec<Level> = checked.map(|&(level, _)| level).collect();
    let settled = |level: Level, mark: Mark| {
        let by = on_it.iter().find(|&&by| is(by, mark) && order.settles(by, mark, level));
        by.filter(|_| !on_it.contains(&level)).map(|&by| (level, by))
    };
    let follows = marks.iter().filter_map(|&(level, mark)| settled(level, mark)).collect();
    Survey { strongest, weakest, undecided, marks, follows }
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

    /// Whether the mark of one level gives another the same.
    fn settles(&self, level: Level, mark: Mark, other: Level) -> bool {
        match mark {
            Mark::Accepted => self.implies(level, other),
            Mark::Violated => self.implies(other, level),
            Mark::Undecided => false,
        }
    }
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
    fn few_levels_are_checked_and_all_are_marked() {
        let history = Builder::new().finish().expect("an empty history is a history");
        let order = Order::of(&history);
        // As if each level in turn, and what follows from it, were all that holds.
        for top in Level::all() {
            let holds = |level: Level| level == top || order.implies(top, level);
            let mut count = 0;
            let check = |level| -> Result<Verdict, ()> {
                count += 1;
                Ok(match holds(level) {
                    true => Verdict::Accepted(Witness::default()),
                    false => Verdict::Violated(Box::new(Evidence {
                        anomaly: Anomaly { name: "G0".into(), common: None },
                        transactions: Vec::new(),
                        edges: Vec::new(),
                        support: Vec::new(),
                    })),
                })
            };
            let survey = survey(&history, check, |verdict| verdict).expect("the check never fails");
            let expected = |level| if holds(level) { Mark::Accepted } else { Mark::Violated };
            assert!(survey.marks.iter().all(|&(level, mark)| mark == expected(level)), "{top}");
            assert_eq!(survey.strongest.iter().map(|(level, _)| *level).collect::<Vec<_>>(), [top]);
            assert!(count <= 13, "{top}: {count} levels were checked");
        }
    }

    #[test]
    fn undecided_levels_are_all_told() {
        let [_, _, undecided] = names(|_| None);
        assert_eq!(undecided.len(), Level::all().len());
    }
}
