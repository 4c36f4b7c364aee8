//! What a run came to, written down: `README.md` with pictures beside it, and `page.html`, which holds everything.

use super::Case;
use super::baseline::Changes;
use super::plot::{Axes, Bar, Line, bars, escape, lines};
use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;

/// All there is to write down.
pub(crate) struct Told<'a> {
    pub(crate) machine: String,
    pub(crate) load: String,
    pub(crate) minutes: f64,
    pub(crate) cases: &'a [Case],
    pub(crate) printed: &'a [(String, String)],
    pub(crate) changes: &'a Changes,
    pub(crate) is_baseline: bool,
}

/// A chapter: words, pictures with their file names, a table.
struct Section {
    title: &'static str,
    words: &'static str,
    pictures: Vec<(&'static str, String)>,
    head: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Told<'_> {
    /// Writes everything into a folder.
    pub(crate) fn write(&self, folder: &Path) -> Result<(), Box<dyn Error>> {
        let sections = self.sections();
        for (name, picture) in sections.iter().flat_map(|section| &section.pictures) {
            std::fs::write(folder.join(name), format!("{picture}\n"))?;
        }
        std::fs::write(folder.join("README.md"), self.markdown(&sections))?;
        std::fs::write(folder.join("page.html"), self.html(&sections))?;
        Ok(())
    }

    fn of(&self, benchmark: &str) -> Vec<&Case> {
        self.cases.iter().filter(|case| case.benchmark == benchmark).collect()
    }

    fn sections(&self) -> Vec<Section> {
        let all = [
            self.growth(),
            self.stages(),
            self.every_level(),
            self.workloads(),
            self.corpus(),
            self.side_by_side(),
            self.ablations(),
            self.online(),
            self.rivals(),
        ];
        all.into_iter().filter(|section| !section.rows.is_empty()).collect()
    }

    fn growth(&self) -> Section {
        let cases = self.of("growth");
        let mut seconds = by_series(&cases, |case| case.cpu_s);
        let mut reading = Line { name: "merely reading".to_owned(), points: Vec::new() };
        for case in cases.iter().filter(|case| Some(&case.series) == cases.first().map(|it| &it.series)) {
            reading.points.push((case.transactions as f64, case.read_s));
        }
        seconds.push(reading);
        let axes = Axes {
            title: "From ten thousand to a million transactions",
            x: "transactions of eight operations",
            y: "CPU seconds, reading included",
            log: true,
        };
        let memory = Axes { title: "Memory", y: "peak, MB", ..axes };
        let of_memory = by_series(&cases, |case| case.peak_mb);
        Section {
            title: "Growth",
            words: "Blind writes on a serializable store: half of the operations reads, a tenth as many keys as transactions, \
                    24 sessions. From JSON lines, with timestamps only where the row says so; those files are larger.",
            pictures: vec![
                ("growth.svg", lines(&axes, &seconds)),
                ("growth-memory.svg", lines(&memory, &of_memory)),
            ],
            head: HEAD.to_vec(),
            rows: cases.into_iter().map(row).collect(),
        }
    }

    fn stages(&self) -> Section {
        let cases = self.of("stages");
        let bar = |case: &&Case| {
            let mut pieces = vec![("read".to_owned(), case.read_s * 1e3)];
            pieces.extend(case.stages.iter().cloned());
            let told: f64 = pieces.iter().map(|piece| piece.1).sum();
            let rest = case.wall_s * 1e3 - told;
            if rest > 0.0 {
                pieces.push(("rest".to_owned(), rest));
            }
            Bar {
                label: format!("{}, {}", case.input, shorter(&case.series)),
                pieces,
                note: format!("{:.0} ms", case.wall_s * 1e3),
            }
        };
        let picture = bars(
            "Where the time goes, in milliseconds of wall time",
            "ms",
            &cases.iter().map(bar).collect::<Vec<_>>(),
        );
        let rows = cases.iter().map(|case| {
            let stages: Vec<String> =
                case.stages.iter().map(|(name, ms)| format!("{name} {ms:.0}")).collect();
            vec![
                case.input.clone(),
                case.series.clone(),
                format!("{:.0}", case.read_s * 1e3),
                stages.join(", "),
                format!("{:.0}", case.wall_s * 1e3),
                case.verdict.clone(),
            ]
        });
        Section {
            title: "Stages",
            words: "What each stage of a check takes. Parts of a history are explained on several threads, so that stages can \
                    sum up to more than the whole.",
            pictures: vec![("stages.svg", picture)],
            head: vec!["history", "level", "read ms", "stages, ms", "in all ms", "verdict"],
            rows: rows.collect(),
        }
    }

    fn every_level(&self) -> Section {
        let cases = self.of("every-level");
        let picture = simple_bars("Every level, CPU milliseconds", &cases, |case| case.series.clone());
        Section {
            title: "Every level",
            words: "One history, checked at each level of the table by itself.",
            pictures: vec![("levels.svg", picture)],
            head: HEAD.to_vec(),
            rows: cases.into_iter().map(row).collect(),
        }
    }

    fn workloads(&self) -> Section {
        let cases = self.of("workloads");
        let picture = simple_bars("Workloads, CPU milliseconds", &cases, |case| {
            format!("{}, {}", case.input, shorter(&case.series))
        });
        Section {
            title: "Workloads",
            words: "Every generator of the simulator, applications, ranges and predicates included.",
            pictures: vec![("workloads.svg", picture)],
            head: HEAD.to_vec(),
            rows: cases.into_iter().map(row).collect(),
        }
    }

    fn corpus(&self) -> Section {
        Section {
            title: "Histories of the papers",
            words: "Recorded by the authors of VeriStrong, PolySI and Cobra.",
            pictures: Vec::new(),
            head: HEAD.to_vec(),
            rows: self.of("corpus").into_iter().map(row).collect(),
        }
    }

    fn side_by_side(&self) -> Section {
        let cases = self.of("side-by-side");
        let grown: Vec<&Case> = cases
            .iter()
            .copied()
            .filter(|case| case.input.starts_with("blind") && case.is_decided())
            .collect();
        let axes = Axes {
            title: "Strategies side by side",
            x: "transactions of eight operations",
            y: "CPU seconds, reading included",
            log: true,
        };
        Section {
            title: "Strategies",
            words: "The encodings of the papers beside the default, `lazy`, at serializability (Viper's and PolySI's at snapshot \
                    isolation). A line ends where three seconds were not enough or the encoding would be too large.",
            pictures: vec![("strategies.svg", lines(&axes, &by_series(&grown, |case| case.cpu_s)))],
            head: HEAD.to_vec(),
            rows: cases.into_iter().map(row).collect(),
        }
    }

    fn ablations(&self) -> Section {
        let cases = self.of("ablations");
        let whole = |case: &Case| {
            cases
                .iter()
                .find(|it| it.input == case.input && it.series == "all passes")
                .map_or(f64::NAN, |it| it.cpu_s)
        };
        let rows: Vec<Vec<String>> = cases
            .iter()
            .map(|case| {
                vec![
                    case.input.clone(),
                    case.series.clone(),
                    brief(&case.verdict),
                    format!("{:.3}", case.cpu_s),
                    format!("{:.2}×", case.cpu_s / whole(case)),
                    format!("{:.0}", case.peak_mb),
                ]
            })
            .collect();
        let picture = bars(
            "Each pass left out: times the time with all passes",
            "×",
            &cases
                .iter()
                .filter(|case| case.series != "all passes")
                .map(|case| {
                    let factor = case.cpu_s / whole(case);
                    let open = if case.is_decided() { "" } else { " and no answer" };
                    Bar {
                        label: format!("{}: {}", case.input.replace("snapshot-isolation", "SI"), case.series),
                        pieces: vec![("factor".to_owned(), factor.min(20.0))],
                        note: format!("{factor:.2}×{open}"),
                    }
                })
                .collect::<Vec<_>>(),
        );
        Section {
            title: "Ablations",
            words: "Each pass and heuristic that can be left out, left out by itself. Verdicts do not change, except for timeouts.",
            pictures: vec![("ablations.svg", picture)],
            head: vec!["what", "passes", "verdict", "CPU s", "times all passes", "peak MB"],
            rows,
        }
    }

    fn online(&self) -> Section {
        let cases = self.of("online");
        let axes = Axes {
            title: "Memory of the online checker during a stream",
            x: "transactions received",
            y: "state, MB",
            log: false,
        };
        let samples: Vec<Line> = cases
            .iter()
            .map(|case| Line { name: case.series.clone(), points: case.samples.clone() })
            .collect();
        let rows = cases.iter().map(|case| {
            let check_s = case.cpu_s - case.read_s;
            vec![
                case.series.clone(),
                case.transactions.to_string(),
                format!("{:.0}", case.transactions as f64 / check_s / 1e3),
                format!("{:.2}", check_s),
                format!("{:.1}×", check_s / case.read_s),
                format!("{:.0}", case.peak_mb),
            ]
        });
        Section {
            title: "Online",
            words: "Snapshot isolation by timestamps while transactions arrive, late by up to 4,000, in batches of 500; verdicts are \
                    final after 50,000 transactions (20,000 where memory is limited). The checker's own CPU time; the ratio is to creating \
                    the transactions and batching them.",
            pictures: vec![("online.svg", lines(&axes, &samples))],
            head: vec!["stream", "transactions", "thousand a second", "CPU s", "ratio", "largest state MB"],
            rows: rows.collect(),
        }
    }

    fn rivals(&self) -> Section {
        let cases = self.of("rivals");
        let ours = |case: &Case| {
            cases
                .iter()
                .find(|it| it.input == case.input && it.series == "taipan")
                .map_or(f64::NAN, |it| it.cpu_s)
        };
        let rows = cases.iter().map(|case| {
            vec![
                case.input.clone(),
                case.series.clone(),
                brief(&case.verdict),
                format!("{:.3}", case.cpu_s),
                format!("{:.1}×", case.cpu_s / ours(case)),
                format!("{:.3}", case.wall_s),
                format!("{:.0}", case.peak_mb),
            ]
        });
        Section {
            title: "Compared with other tools",
            words: "The same files in the same run, reading included.",
            pictures: vec![("rivals.svg", rivals_picture(self.cases))],
            head: vec!["history, level", "program", "verdict", "CPU s", "times ours", "wall s", "peak MB"],
            rows: rows.collect(),
        }
    }

    /// How far runs of the same case differ: half of them by less than the first, nine of ten by less than the second.
    fn noise(&self) -> (f64, f64) {
        let mut spreads: Vec<f64> =
            self.cases.iter().map(|case| case.spread).filter(|&it| it > 0.0).collect();
        spreads.sort_by(f64::total_cmp);
        let at =
            |share: f64| spreads.get((spreads.len() as f64 * share) as usize).copied().unwrap_or_default();
        (at(0.5), at(0.9))
    }

    fn preface(&self) -> Vec<String> {
        let (half, most) = self.noise();
        vec![
            format!(
                "`cargo run --release -p taipan-bench -- all` made this page in {:.0} minutes. {}",
                self.minutes, self.machine
            ),
            format!(
                "Measurements below a second are the best of three; the slowest of the three took {:.0} % more in the median case and \
                 {:.0} % more in one of ten. The machine's load at the end was {}: wall times show what else ran.",
                half * 100.0,
                most * 100.0,
                self.load
            ),
            match self.is_baseline {
                true => "This run is the recorded baseline.".to_owned(),
                false => format!("{}.", self.changes.summary().lines().next().unwrap_or_default()),
            },
        ]
    }

    fn markdown(&self, sections: &[Section]) -> String {
        let mut out = String::from("# Measurements\n\n");
        for paragraph in self.preface() {
            let _ = write!(out, "{paragraph}\n\n");
        }
        if !self.changes.changed.is_empty() && !self.is_baseline {
            let changed = self.changes.summary();
            let _ = write!(out, "```text\n{changed}\n```\n\n");
        }
        for section in sections {
            let _ = write!(out, "## {}\n\n{}\n\n", section.title, section.words);
            for (name, _) in &section.pictures {
                let _ = write!(out, "![{}]({name})\n\n", section.title);
            }
            let _ = write!(out, "| {} |\n|{}\n", section.head.join(" | "), "---|".repeat(section.head.len()));
            for row in &section.rows {
                let _ = writeln!(out, "| {} |", row.join(" | "));
            }
            out.push('\n');
        }
        for (title, text) in self.printed {
            let _ = write!(out, "## {title}\n\n```text\n{}\n```\n\n", text.trim_end());
        }
        out.trim_end().to_owned() + "\n"
    }

    fn html(&self, sections: &[Section]) -> String {
        let mut out = String::from(
            "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>Taipan, measured</title><style>\
             body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1d2330;background:#fff}\
             table{border-collapse:collapse;font-size:.8125rem;margin:1rem 0}th,td{padding:.2rem .6rem;border-bottom:1px solid #d0d5dd;text-align:left}\
             td{font-variant-numeric:tabular-nums}svg{max-width:100%;height:auto;border:1px solid #e4e7ec;border-radius:6px;margin:.5rem 0}\
             pre{background:#f7f8fa;padding:.8rem;overflow-x:auto;font-size:.75rem}summary{cursor:pointer;color:#1f6feb}nav a{margin-right:1rem}\
             </style></head><body><h1>Taipan, measured</h1>",
        );
        for paragraph in self.preface() {
            let _ = write!(out, "<p>{}</p>", escape(&paragraph.replace('`', "")));
        }
        if !self.changes.changed.is_empty() && !self.is_baseline {
            let _ = write!(out, "<pre>{}</pre>", escape(&self.changes.summary()));
        }
        out.push_str("<nav>");
        for section in sections {
            let _ = write!(out, "<a href=\"#{}\">{}</a>", anchor(section.title), escape(section.title));
        }
        out.push_str("</nav>");
        for section in sections {
            let (title, words) = (escape(section.title), escape(&section.words.replace('`', "")));
            let id = anchor(section.title);
            let _ = write!(out, "<section id=\"{id}\"><h2>{title}</h2><p>{words}</p>");
            for (_, picture) in &section.pictures {
                out.push_str(picture);
            }
            let open = if section.pictures.is_empty() { " open" } else { "" };
            let _ = write!(
                out,
                "<details{open}><summary>{} numbers</summary><table><thead><tr>",
                section.rows.len()
            );
            for head in &section.head {
                let _ = write!(out, "<th scope=\"col\">{}</th>", escape(head));
            }
            out.push_str("</tr></thead><tbody>");
            for row in &section.rows {
                let cells: String = row.iter().map(|cell| format!("<td>{}</td>", escape(cell))).collect();
                let _ = write!(out, "<tr>{cells}</tr>");
            }
            out.push_str("</tbody></table></details></section>");
        }
        for (title, text) in self.printed {
            let _ = write!(
                out,
                "<section><h2>{}</h2><pre>{}</pre></section>",
                escape(title),
                escape(text.trim_end())
            );
        }
        out + "</body></html>\n"
    }
}

const HEAD: [&str; 9] =
    ["history", "what", "transactions", "verdict", "read s", "CPU s", "× reading", "wall s", "peak MB"];

fn row(case: &Case) -> Vec<String> {
    vec![
        case.input.clone(),
        case.series.clone(),
        case.transactions.to_string(),
        brief(&case.verdict),
        format!("{:.3}", case.read_s),
        format!("{:.3}", case.cpu_s),
        format!("{:.1}", case.ratio()),
        format!("{:.3}", case.wall_s),
        format!("{:.0}", case.peak_mb),
    ]
}

/// A verdict without the whole reason.
fn brief(verdict: &str) -> String {
    let reason = verdict.strip_prefix("undecided: ").unwrap_or(verdict);
    match reason {
        reason if reason.contains("time is up") => "time is up".to_owned(),
        reason if reason.len() > 40 => "not covered".to_owned(),
        reason => reason.to_owned(),
    }
}

fn shorter(series: &str) -> &str {
    match series {
        "snapshot isolation" => "SI",
        "serializable" => "SER",
        other => other,
    }
}

/// One line a series, over the number of transactions.
fn by_series(cases: &[&Case], y: impl Fn(&Case) -> f64) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for case in cases {
        let point = (case.transactions as f64, y(case));
        match lines.iter_mut().find(|line| line.name == case.series) {
            Some(line) => line.points.push(point),
            None => lines.push(Line { name: case.series.clone(), points: vec![point] }),
        }
    }
    lines
}

/// A bar a case: reading, and the rest.
/// Taipan and other programs on the largest history that both checked, by level.
pub(crate) fn rivals_picture(cases: &[Case]) -> String {
    let rivals: Vec<&Case> = cases.iter().filter(|case| case.benchmark == "rivals").collect();
    let largest = rivals.iter().map(|case| case.transactions).max().unwrap_or_default();
    let name = |case: &Case| match case.series.as_str() {
        "taipan" => "Taipan".to_owned(),
        "awdit" => "AWDIT".to_owned(),
        other => other.to_owned(),
    };
    let bar = |case: &&Case| Bar {
        label: format!("{}: {}", case.input, name(case)),
        pieces: vec![(name(case), case.cpu_s)],
        note: format!("{:.2} s, {:.0} MB", case.cpu_s, case.peak_mb),
    };
    let of_largest = rivals.iter().filter(|case| case.transactions == largest);
    let bars_of: Vec<Bar> = of_largest.map(bar).collect();
    bars("CPU seconds on the same files, reading included", "s", &bars_of)
}

fn simple_bars(title: &str, cases: &[&Case], label: impl Fn(&Case) -> String) -> String {
    let bar = |case: &&Case| Bar {
        label: label(case),
        pieces: vec![
            ("read".to_owned(), case.read_s * 1e3),
            ("check".to_owned(), (case.cpu_s - case.read_s).max(0.0) * 1e3),
        ],
        note: format!("{:.0} ms, {:.1}× reading", case.cpu_s * 1e3, case.ratio()),
    };
    bars(title, "ms", &cases.iter().map(bar).collect::<Vec<_>>())
}

fn anchor(title: &str) -> String {
    title.to_lowercase().replace(' ', "-")
}
