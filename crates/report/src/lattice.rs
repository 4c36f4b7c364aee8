//! The levels as a picture: the strongest on top, a line from each to what directly follows from it; marked, where a history
//! was checked at all of them.

use crate::escape::escape;
use crate::svg::COLOURS;
use isolation::{Implication, Level, LevelRow, TABLE, VerdictKind, implications};
use std::fmt::Write;

const BOX_WIDTH: f64 = 262.0;
const BOX_HEIGHT: f64 = 44.0;
const GAP_X: f64 = 18.0;
const GAP_Y: f64 = 46.0;
const MARGIN: f64 = 16.0;
/// How often the rows are put in order by their neighbours.
const SWEEPS: usize = 6;

pub(crate) const STYLE: &str = "\
.lattice{max-width:100%;min-width:54rem;height:auto;font:12px/1.4 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:var(--ink)}\
.lattice rect{fill:var(--card);stroke:var(--line);stroke-width:1.5}\
.lattice .accepted rect{stroke:var(--good);stroke-width:2.5}.lattice .violated rect{stroke:var(--bad);stroke-width:2.5;\
stroke-dasharray:6 3}.lattice .undecided rect{stroke:var(--open);stroke-width:2.5;stroke-dasharray:2 3}\
.lattice .accepted .mark{fill:var(--good)}.lattice .violated .mark{fill:var(--bad)}\
.lattice .undecided .mark{fill:var(--open)}.lattice .name{font-weight:700}.lattice .under{fill:var(--faint)}\
.lattice polyline{fill:none;stroke:var(--line);stroke-width:1.5}.lattice .sometimes{stroke-dasharray:4 4}\
.lattice text{text-anchor:middle}";

/// The picture of all levels. `marks` may be empty.
pub fn lattice(marks: &[(Level, VerdictKind)]) -> String {
    drawing(marks, &format!("<style>{COLOURS}{STYLE}</style>"))
}

/// The picture as a page of its own.
pub fn lattice_page(marks: &[(Level, VerdictKind)]) -> String {
    let body = maud::html! {
        (maud::DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "Isolation levels" }
                style {
                    (maud::PreEscaped(COLOURS)) (maud::PreEscaped(STYLE))
                    "body{margin:1.5rem;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,sans-serif}"
                    "table{border-collapse:collapse;margin-top:1.5rem}th,td{text-align:left;vertical-align:top;"
                    "padding:.35rem .8rem .35rem 0;border-bottom:1px solid var(--line)}.scroll{overflow-x:auto}"
                }
            }
            body {
                h1 { "Isolation levels" }
                p { "A line leads down to what directly follows; a dashed one holds only without predicates." }
                div.scroll { (maud::PreEscaped(drawing(marks, ""))) }
                table {
                    thead { tr {
                        th { "Level" } th { "Also called" } th { "Forbids" } th { "Broken by" } th { "Source" }
                    } }
                    tbody {
                        @for row in TABLE {
                            tr {
                                td { code { (row.name) } } td { (row.aliases.join(", ")) } td { (row.forbids) }
                                td { (row.anomaly) } td { (row.source) }
                            }
                        }
                    }
                }
            }
        }
    };
    body.into_string()
}

/// The picture as an `svg` element; `style` is put in first.
pub(crate) fn drawing(marks: &[(Level, VerdictKind)], style: &str) -> String {
    let rows = rows();
    let widest = rows.iter().map(Vec::len).max().unwrap_or(1);
    let width = 2.0 * MARGIN + widest as f64 * (BOX_WIDTH + GAP_X) - GAP_X;
    let height = 2.0 * MARGIN + rows.len() as f64 * (BOX_HEIGHT + GAP_Y) - GAP_Y;
    let mut out = String::new();
    // Writing into a string cannot fail.
    let _ = write!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"lattice\" role=\"img\" width=\"{width:.0}\" \
         height=\"{height:.0}\" viewBox=\"0 0 {width:.0} {height:.0}\">{style}<title>Isolation levels, the strongest \
         on top</title>"
    );
    let place = |level: Level| {
        rows.iter().enumerate().find_map(|(row, levels)| {
            let column = levels.iter().position(|&other| other == level)?;
            let used = levels.len() as f64 * (BOX_WIDTH + GAP_X) - GAP_X;
            let x = (width - used) / 2.0 + column as f64 * (BOX_WIDTH + GAP_X);
            Some((x, MARGIN + row as f64 * (BOX_HEIGHT + GAP_Y)))
        })
    };
    for implication in implications() {
        if let (Some(from), Some(to)) = (place(implication.stronger), place(implication.weaker)) {
            let way = way(&rows, width, from, to);
            write_line(&mut out, implication, &way);
        }
    }
    for row in TABLE {
        if let Some(at) = place(row.level) {
            let mark = marks.iter().find(|(level, _)| *level == row.level).map(|&(_, mark)| mark);
            write_box(&mut out, row, mark, at);
        }
    }
    out.push_str("</svg>");
    out
}

/// The corners of a line from one box down to another: past the boxes of the rows between, through the nearest gap.
fn way(rows: &[Vec<Level>], width: f64, from: (f64, f64), to: (f64, f64)) -> Vec<(f64, f64)> {
    let start = (from.0 + BOX_WIDTH / 2.0, from.1 + BOX_HEIGHT);
    let end = (to.0 + BOX_WIDTH / 2.0, to.1);
    let mut corners = vec![start];
    for (row, levels) in rows.iter().enumerate() {
        let top = MARGIN + row as f64 * (BOX_HEIGHT + GAP_Y);
        if top <= from.1 || top >= to.1 {
            continue;
        }
        let straight = start.0 + (end.0 - start.0) * (top - start.1) / (end.1 - start.1);
        let used = levels.len() as f64 * (BOX_WIDTH + GAP_X) - GAP_X;
        let first = (width - used) / 2.0 - GAP_X / 2.0;
        let gaps = (0..=levels.len()).map(|gap| first + gap as f64 * (BOX_WIDTH + GAP_X));
        let is_free = straight < first || straight > first + used + GAP_X;
        let nearest = gaps.min_by(|one, other| (one - straight).abs().total_cmp(&(other - straight).abs()));
        let x = nearest.filter(|_| !is_free).unwrap_or(straight);
        corners.extend([(x, top), (x, top + BOX_HEIGHT)]);
    }
    corners.push(end);
    corners
}

fn write_line(out: &mut String, implication: &Implication, way: &[(f64, f64)]) {
    let class = if implication.without_predicates { " class=\"sometimes\"" } else { "" };
    let points: Vec<String> = way.iter().map(|(x, y)| format!("{x:.0},{y:.0}")).collect();
    let _ = write!(out, "<polyline{class} points=\"{}\"/>", points.join(" "));
}

fn write_box(out: &mut String, row: &LevelRow, mark: Option<VerdictKind>, (x, y): (f64, f64)) {
    let class = mark.map_or("plain", VerdictKind::name);
    let middle = x + BOX_WIDTH / 2.0;
    let under = match mark {
        Some(mark) => format!("<tspan class=\"mark\">{}</tspan>", mark.name()),
        None => escape(row.anomaly),
    };
    let _ = write!(
        out,
        "<g class=\"{class}\"><title>{}</title><rect x=\"{x:.0}\" y=\"{y:.0}\" width=\"{BOX_WIDTH:.0}\" \
         height=\"{BOX_HEIGHT:.0}\" rx=\"7\"/><text class=\"name\" x=\"{middle:.0}\" y=\"{:.0}\">{}</text>\
         <text class=\"under\" x=\"{middle:.0}\" y=\"{:.0}\">{under}</text></g>",
        escape(&format!("{} forbids {} ({})", row.name, row.forbids, row.source)),
        y + 19.0,
        escape(row.name),
        y + 36.0,
    );
}

/// The levels in rows, each below all that imply it, neighbours near each other.
fn rows() -> Vec<Vec<Level>> {
    let mut depth: Vec<(Level, usize)> = Level::all().map(|level| (level, 0)).collect();
    // Implications have no cycle, so this ends after as many rounds as there are rows.
    loop {
        let mut changed = false;
        for implication in implications() {
            let of = |level: Level, all: &[(Level, usize)]| {
                all.iter().position(|&(other, _)| other == level).expect("every level is in the table")
            };
            let (above, below) = (of(implication.stronger, &depth), of(implication.weaker, &depth));
            if depth[below].1 <= depth[above].1 {
                depth[below].1 = depth[above].1 + 1;
                changed = true;
            }
        }
        if !changed {
            break;
        }
    }
    let count = depth.iter().map(|&(_, row)| row + 1).max().unwrap_or(0);
    let mut rows: Vec<Vec<Level>> = vec![Vec::new(); count];
    for (level, row) in depth {
        rows[row].push(level);
    }
    for _ in 0..SWEEPS {
        sweep(&mut rows);
    }
    rows
}

/// Puts every row in the order of the middles of what it is joined with.
fn sweep(rows: &mut [Vec<Level>]) {
    let centre = |rows: &[Vec<Level>], level: Level| {
        rows.iter().find_map(|row| {
            let place = row.iter().position(|&other| other == level)?;
            Some(place as f64 - (row.len() as f64 - 1.0) / 2.0)
        })
    };
    for row in 0..rows.len() {
        let mut wanted: Vec<(f64, Level)> = Vec::new();
        for &level in &rows[row] {
            let joined = implications().iter().filter_map(|it| match level {
                level if it.stronger == level => Some(it.weaker),
                level if it.weaker == level => Some(it.stronger),
                _ => None,
            });
            let centres: Vec<f64> = joined.filter_map(|other| centre(rows, other)).collect();
            let mean = centres.iter().sum::<f64>() / centres.len().max(1) as f64;
            wanted.push((mean, level));
        }
        wanted.sort_by(|one, two| one.0.total_cmp(&two.0));
        rows[row] = wanted.into_iter().map(|(_, level)| level).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_level_lies_below_what_implies_it() {
        let rows = rows();
        let row = |level: Level| rows.iter().position(|row| row.contains(&level)).expect("it is drawn");
        assert!(implications().iter().all(|it| row(it.stronger) < row(it.weaker)));
        assert_eq!(rows.iter().map(Vec::len).sum::<usize>(), TABLE.len());
    }

    #[test]
    fn no_line_crosses_a_box() {
        let rows = rows();
        let place = |row: usize, column: usize| {
            let used = rows[row].len() as f64 * (BOX_WIDTH + GAP_X) - GAP_X;
            let x = (1400.0 - used) / 2.0 + column as f64 * (BOX_WIDTH + GAP_X);
            (x, MARGIN + row as f64 * (BOX_HEIGHT + GAP_Y))
        };
        for column in 0..rows[0].len() {
            let last = rows.len() - 1;
            for (x, y) in way(&rows, 1400.0, place(0, column), place(last, 0)) {
                let inside = (1..last).any(|row| {
                    (0..rows[row].len()).any(|column| {
                        let (left, top) = place(row, column);
                        (left..left + BOX_WIDTH).contains(&x) && (top..top + BOX_HEIGHT).contains(&y)
                    })
                });
                assert!(!inside, "{x}, {y}");
            }
        }
    }

    #[test]
    fn marks_are_drawn() {
        let marks: Vec<(Level, VerdictKind)> =
            Level::all().map(|level| (level, VerdictKind::Violated)).collect();
        let picture = lattice(&marks[..1]);
        assert_eq!(picture.matches("class=\"violated\"").count(), 1, "{picture}");
        assert_eq!(picture.matches("<rect").count(), TABLE.len());
        assert!(lattice_page(&[]).contains("strict-serializable"));
    }
}
