//! All levels at once: what holds, what is violated, and the frontier between them.
//!
//! **What.** [`survey`] finds out what every level comes to without checking every one: a level that follows from one that
//! holds, holds; a level from which one that is violated follows, is violated. What it returns is a mark for every level and
//! the frontier: accepted levels that no accepted level implies, violated levels that imply no other violated level.
//!
//! **Invariant.** The frontier is that of checking every level: a level on it follows from no other, so it was checked.
//!
//! **Steps.** The level that settles most if it holds comes first. Where it is violated, the core alone is asked at every
//! level that is still open ([`Fragment`]), the weakest first: it is tiny, and what it violates the whole violates. So what
//! is left open is likely to hold, and what takes no search is asked before the rest. An undecided level settles only
//! itself, and is settled if a later one says so.
//!
//! **Cost.** A check for every level that is accepted and not implied, and one for every core: two or three where a
//! history is at fault in one way.

use crate::Fragment;
use history::History;
use isolation::{Level, Rule, Verdict, VerdictKind, implications};
use search::rows;

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
    pub marks: Vec<(Level, VerdictKind)>,
    /// Levels that are not on the frontier, each with one on it that settles it.
    pub follows: Vec<(Level, Level)>,
}

/// Finds out what every level comes to. `check` decides one level and may keep what it likes beside the verdict; its first
/// error ends the survey. `probe` asks a fragment, and gives what `check` would if that violates the level.
pub fn survey<T, E>(
    history: &History,
    mut check: impl FnMut(Level) -> Result<T, E>,
    mut probe: impl FnMut(Level, &Fragment<'_>) -> Result<Option<T>, E>,
    verdict: impl Fn(&T) -> &Verdict,
) -> Result<Survey<T>, E> {
    let order = Order::of(history);
    let mut marks: Vec<(Level, Option<VerdictKind>)> = Level::all().map(|level| (level, None)).collect();
    let mut checked: Vec<(Level, T)> = Vec::new();
    while let Some(level) = next(&order, &marks) {
        let result = check(level)?;
        let mark = verdict(&result).kind();
        order.spread(level, mark, &mut marks);
        let fragment = match verdict(&result) {
            Verdict::Violated(evidence) => Some(Fragment::new(history, &evidence.transactions)),
            _ => None,
        };
        checked.push((level, result));
        // What a fragment shows by predicate is judged with the whole only.
        let Some(fragment) = fragment.filter(|_| !rows::has_claims(history)) else { continue };
        for open in order.weakest_first() {
            if !marks.contains(&(open, None)) {
                continue;
            }
            if let Some(result) = probe(open, &fragment)? {
                order.spread(open, VerdictKind::Violated, &mut marks);
                checked.push((open, result));
            }
        }
    }
    let marks =
        marks.into_iter().map(|(level, mark)| (level, mark.unwrap_or(VerdictKind::Undecided))).collect();
    Ok(frontier(&order, marks, checked))
}

/// The level to check next, if one is open: it settles most if it holds. Below snapshot isolation what takes no search comes
/// first.
fn next(order: &Order, marks: &[(Level, Option<VerdictKind>)]) -> Option<Level> {
    let open = || marks.iter().filter(|(_, mark)| mark.is_none()).map(|&(level, _)| level);
    let below = |&level: &Level| open().filter(|&other| order.implies(level, other)).count();
    let strongest = open().max_by_key(below)?;
    if matches!(strongest.rule, Rule::Serializable | Rule::SnapshotIsolation) {
        return Some(strongest);
    }
    open().filter(|&level| takes_no_search(level)).max_by_key(below).or(Some(strongest))
}

/// Whether a level is decided in near-linear time where every value is written once.
fn takes_no_search(level: Level) -> bool {
    let rules = [Rule::ReadCommitted, Rule::AxiomaticReadCommitted, Rule::ReadAtomic, Rule::Causal];
    rules.contains(&level.rule)
}

/// What was checked and follows from nothing else.
fn frontier<T>(order: &Order, marks: Vec<(Level, VerdictKind)>, checked: Vec<(Level, T)>) -> Survey<T> {
    let is = |level: Level, mark: VerdictKind| marks.contains(&(level, mark));
    let with =
        |mark: VerdictKind| marks.iter().filter(move |(_, other)| *other == mark).map(|&(level, _)| level);
    let (mut strongest, mut weakest, mut undecided) = (Vec::new(), Vec::new(), Vec::new());
    for (level, result) in checked {
        if is(level, VerdictKind::Undecided) {
            undecided.push((level, result));
        } else if is(level, VerdictKind::Accepted)
            && !with(VerdictKind::Accepted).any(|other| order.implies(other, level))
        {
            strongest.push((level, result));
        } else if is(level, VerdictKind::Violated)
            && !with(VerdictKind::Violated).any(|other| order.implies(level, other))
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
    let settled = |level: Level, mark: VerdictKind| {
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
        let predicates = rows::has_claims(history);
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

    /// All levels, none before one that follows from it.
    fn weakest_first(&self) -> Vec<Level> {
        let mut levels: Vec<Level> = Level::all().collect();
        levels.sort_by_key(|&level| self.pairs.iter().filter(|(stronger, _)| *stronger == level).count());
        levels
    }

    /// Marks a level and whatever follows.
    fn spread(&self, level: Level, mark: VerdictKind, marks: &mut [(Level, Option<VerdictKind>)]) {
        for (other, known) in marks {
            if *other == level || self.settles(level, mark, *other) {
                *known = Some(mark);
            }
        }
    }

    /// Whether the mark of one level gives another the same.
    fn settles(&self, level: Level, mark: VerdictKind, other: Level) -> bool {
        match mark {
            VerdictKind::Accepted => self.implies(level, other),
            VerdictKind::Violated => self.implies(other, level),
            VerdictKind::Undecided => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check;
    use history::Builder;
    use history::formats::notation;
    use isolation::{Anomaly, Evidence, Options, Undecided, Witness};

    #[test]
    fn no_level_comes_before_one_that_follows_from_it() {
        let order = Order::of(&Builder::new().finish().expect("an empty history is a history"));
        let levels = order.weakest_first();
        for (place, &level) in levels.iter().enumerate() {
            let follows = levels[place + 1..].iter().find(|&&later| order.implies(level, later));
            assert_eq!(follows, None, "behind {level}");
        }
    }

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
                    cases: None,
                })),
                None => Verdict::Undecided(Undecided::Timeout),
            })
        };
        let survey =
            survey(&history, check, |_, _| Ok(None), |verdict| verdict).expect("the check never fails");
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
        let serial = isolation::Rule::Serializable;
        let update = isolation::Rule::UpdateSerializable;
        let repeatable = isolation::Rule::RepeatableRead;
        let [strongest, weakest, _] =
            names(|level| Some(![serial, update, repeatable].contains(&level.rule)));
        assert_eq!(strongest, ["strong-snapshot-isolation"]);
        let mut weakest = weakest;
        weakest.sort_unstable();
        assert_eq!(weakest, ["repeatable-read", "update-serializable"]);
    }

    #[test]
    fn a_core_settles_what_it_violates() {
        let skew = notation::parse("a: r(x,_) w(y,1)\nb: r(y,_) w(x,1)\nc: r(x,_)\n").expect("well written");
        let options = Options::default();
        let mut checked = Vec::new();
        let survey = survey(
            &skew,
            |level| {
                checked.push(level.name());
                Ok::<_, ()>(check(&skew, level, &options).verdict)
            },
            |level, fragment| {
                Ok(fragment.violates(level, &options).map(|it| Verdict::Violated(Box::new(it))))
            },
            |verdict| verdict,
        );
        let survey = survey.expect("the check never fails");
        assert_eq!(checked, ["strict-serializable", "strong-snapshot-isolation"]);
        let names = |levels: &[(Level, Verdict)]| -> Vec<_> { levels.iter().map(|it| it.0.name()).collect() };
        assert_eq!(names(&survey.strongest), ["strong-snapshot-isolation"]);
        let mut weakest = names(&survey.weakest);
        weakest.sort_unstable();
        assert_eq!(weakest, ["repeatable-read", "update-serializable"]);
        for (level, mark) in survey.marks {
            assert_eq!(mark.name(), check(&skew, level, &options).verdict.name(), "{level}");
        }
    }

    #[test]
    fn undecided_levels_are_all_told() {
        let [_, _, undecided] = names(|_| None);
        assert_eq!(undecided.len(), Level::all().len());
    }
}
