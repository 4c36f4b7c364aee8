//! What may be said of a history when a budget ends the work at any place: what is said without a budget, or nothing.

use certify::{Certificate, Ruling, certify};
use evidence::{Fragment, add_proof, check, check_sharing, instead, inventory, reduce, survey};
use history::History;
use isolation::{Budget, Level, Options, Rule, Strategy, Undecided, Verdict, VerdictKind};
use oracle::{oracle, tiny::Random};
use search::LookedAt;
use std::convert::Infallible;

/// Ends work at many places, and compares.
pub(crate) struct Comparison<'r> {
    /// At how many places each piece of work is ended.
    pub(crate) places: u64,
    pub(crate) random: &'r mut Random,
    /// How many pieces of work were ended.
    pub(crate) cases: u64,
}

/// What was said that must not be.
type Compared = Result<(), String>;

impl Comparison<'_> {
    /// Everything that can be asked of a history at a level.
    pub(crate) fn everything(&mut self, history: &History, level: Level, options: &Options) -> Compared {
        self.verdicts(history, level, options)?;
        self.evidence(history, level, options)?;
        self.by_trying_everything(history, level, options)
    }

    /// Does some work with budgets that end it at many places.
    fn cut(&mut self, options: &Options, mut work: impl FnMut(&Options) -> Compared) -> Compared {
        let endless = with_steps(options, u64::MAX);
        work(&endless)?;
        let asked = u64::MAX - endless.budget.steps_left().unwrap_or(u64::MAX);
        let places = asked.min(self.places);
        for place in 0..places {
            let (from, to) = (asked * place / places, asked * (place + 1) / places - 1);
            let steps = self.random.between(from as usize, to as usize) as u64;
            self.cases += 1;
            work(&with_steps(options, steps))
                .map_err(|what| format!("{what} (after {steps} of {asked} steps)"))?;
        }
        Ok(())
    }

    /// The verdict, with its certificate.
    pub(crate) fn verdicts(&mut self, history: &History, level: Level, options: &Options) -> Compared {
        let unlimited = check(history, level, options).verdict;
        let is_certified =
            matches!(level.rule, Rule::Serializable | Rule::SnapshotIsolation) && !options.mixed;
        self.cut(options, |limited| {
            let verdict = check(history, level, limited).verdict;
            agree(&verdict, &unlimited)?;
            if is_certified {
                let mut certificate = Certificate::new("h", history, level, limited, &verdict);
                add_proof(&mut certificate, history, limited);
                holds(&certify(history, &certificate, &Budget::unlimited()))?;
            }
            Ok(())
        })?;
        if is_certified {
            let mut certificate = Certificate::new("h", history, level, options, &unlimited);
            add_proof(&mut certificate, history, options);
            let unlimited = certify(history, &certificate, &Budget::unlimited());
            self.cut(options, |limited| match certify(history, &certificate, &limited.budget) {
                Ruling::Beyond(_) => Ok(()),
                ruling if ruling == unlimited => Ok(()),
                ruling => Err(format!("the ruling is {ruling:?}, without a limit {unlimited:?}")),
            })?;
        }
        if !replay::applies(history, level) {
            return Ok(());
        }
        let unlimited = replay::judge(history, level, options).0.verdict;
        self.cut(options, |limited| agree(&replay::judge(history, level, limited).0.verdict, &unlimited))
    }

    /// What is said of a violation beside the verdict.
    fn evidence(&mut self, history: &History, level: Level, options: &Options) -> Compared {
        let judge = |part: &History, options: &Options| check(part, level, options).verdict;
        let unlimited = judge(history, options);
        let Verdict::Violated(evidence) = &unlimited else { return Ok(()) };
        let all = inventory(history, level, options);
        self.cut(options, |limited| {
            let found = inventory(history, level, limited);
            let is_wrong = found.is_complete && found.kinds.is_empty() && !all.kinds.is_empty();
            if is_wrong { Err("a complete list of nothing".to_owned()) } else { Ok(()) }
        })?;
        let mut smallest = None;
        self.cut(options, |limited| {
            let reduced = reduce(history, level, limited, evidence, |part| judge(part, limited));
            let Some(reduced) = reduced else { return Ok(()) };
            // A history of its own may ask for more than the part that it was cut from.
            match judge(&reduced.history, options) {
                Verdict::Violated(_) => smallest = Some(reduced.history),
                verdict => return Err(format!("reduced to something {}", verdict.name())),
            }
            Ok(())
        })?;
        if let Some(part) = smallest {
            self.cut(options, |limited| {
                let allowed = instead(&part, limited, |part| judge(part, limited));
                let wrong =
                    allowed.iter().find(|it| !matches!(judge(&it.changed, options), Verdict::Accepted(_)));
                wrong.map_or(Ok(()), |it| Err(format!("{it:?} is not allowed")))
            })?;
        }
        let fragment = Fragment::new(history, &evidence.transactions);
        let violated = fragment.violates(level, options).is_some();
        self.cut(options, |limited| match fragment.violates(level, limited) {
            Some(_) if !violated => Err("a fragment is violated only within a limit".to_owned()),
            _ => Ok(()),
        })
    }

    /// All levels at once, sharing what they find out.
    pub(crate) fn survey(&mut self, history: &History, options: &Options) -> Compared {
        let of = |options: &Options| {
            let shared = LookedAt::default();
            let check = |level| Ok::<_, Infallible>(check_sharing(history, level, options, &shared).verdict);
            let probe = |level: Level, fragment: &Fragment<'_>| {
                Ok(fragment.violates(level, options).map(|evidence| Verdict::Violated(Box::new(evidence))))
            };
            let Ok(survey) = survey(history, check, probe, |verdict| verdict);
            survey.marks
        };
        let unlimited = of(options);
        self.cut(options, |limited| {
            let both = of(limited).into_iter().zip(&unlimited);
            let differs = |((_, mark), (_, expected)): &((Level, VerdictKind), &(Level, VerdictKind))| {
                *mark != VerdictKind::Undecided && mark != expected
            };
            let wrong = both.into_iter().find(differs);
            wrong
                .map_or(Ok(()), |((level, mark), _)| Err(format!("{level} is {} of all levels", mark.name())))
        })
    }

    /// Every strategy that decides the level.
    pub(crate) fn strategies(&mut self, history: &History, level: Level, options: &Options) -> Compared {
        Strategy::ALL.into_iter().try_for_each(|strategy| {
            let options = Options { strategy, ..options.clone() };
            self.verdicts(history, level, &options).map_err(|what| format!("{strategy}: {what}"))
        })
    }

    fn by_trying_everything(&mut self, history: &History, level: Level, options: &Options) -> Compared {
        let Ok(unlimited) = oracle(history, level, options) else { return Ok(()) };
        self.cut(options, |limited| match oracle(history, level, limited) {
            Ok(verdict) => agree(&verdict, &unlimited),
            Err(_) => Ok(()),
        })
    }
}

fn with_steps(options: &Options, steps: u64) -> Options {
    let then = if steps.is_multiple_of(2) { Undecided::Timeout } else { Undecided::Memory };
    Options { budget: Budget::unlimited().with_steps(steps, then), ..options.clone() }
}

fn agree(limited: &Verdict, unlimited: &Verdict) -> Compared {
    if matches!(limited, Verdict::Undecided(_)) || limited.name() == unlimited.name() {
        return Ok(());
    }
    Err(format!("{} within a limit, {} without", limited.name(), unlimited.name()))
}

fn holds(ruling: &Ruling) -> Compared {
    match ruling {
        Ruling::Refused(refusal) => Err(format!("its certificate is refused: {refusal}")),
        Ruling::Certified | Ruling::Beyond(_) => Ok(()),
    }
}
