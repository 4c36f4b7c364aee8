//! The core of a violation as a picture.

use crate::Finding;
use crate::escape::escape;
use crate::layout::{Block, Curve, layout};
use crate::picture::{Arrow, Node, Picture, first_case, label};
use std::fmt::Write;

/// Sizes of the monospaced text in a box.
const LETTER_WIDTH: f64 = 7.3;
const LINE_HEIGHT: f64 = 17.0;
const PADDING: f64 = 10.0;
/// Lines are broken at this many letters.
const LETTERS_MAX: usize = 44;
/// So many lines of an operation are drawn; its tooltip has all of it.
const LINES_MAX: usize = 6;

/// Colours, light and dark, shared by the picture and the page.
pub(crate) const COLOURS: &str = "\
:root{color-scheme:light dark;--paper:#fff;--ink:#1d2330;--faint:#667085;--line:#d0d5dd;--card:#f7f8fa;\
--good:#177245;--bad:#b42318;--open:#8a5a00;--wr:#1f6feb;--ww:#7a3fc4;--rw:#c2410c;--so:#667085;--rt:#667085;\
--glow:#fff3c4}\
@media(prefers-color-scheme:dark){:root{--paper:#12151c;--ink:#e6e9ef;--faint:#98a2b3;--line:#3a4150;\
--card:#1b202a;--good:#4cc38a;--bad:#ff7b6b;--open:#e0b341;--wr:#6ea8fe;--ww:#b592f0;--rw:#ff9b5e;\
--so:#98a2b3;--rt:#98a2b3;--glow:#4a3f12}}";

/// Styles of the picture.
pub(crate) const STYLE: &str = "\
.core{font:12px/1.4 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:var(--ink)}\
.core .box{fill:var(--card);stroke:var(--line);stroke-width:1.5}\
.core .name{font-weight:700}.core .more{fill:var(--faint)}\
.core path.edge{fill:none;stroke-width:2}\
.core .wr path.edge{stroke:var(--wr)}.core .ww path.edge{stroke:var(--ww)}.core .rw path.edge{stroke:var(--rw)}\
.core .so path.edge,.core .rt path.edge,.core .ts path.edge,.core .added path.edge{stroke:var(--so);stroke-dasharray:5 4}\
.core .support path.edge{stroke-width:1;opacity:.7}.core .support .label{font-weight:400}\
.core .wr .label,.core marker.wr path{fill:var(--wr)}.core .ww .label,.core marker.ww path{fill:var(--ww)}\
.core .rw .label,.core marker.rw path{fill:var(--rw)}.core .so .label,.core .rt .label,.core .ts .label,\
.core .added .label,.core marker.so path,.core marker.rt path,.core marker.ts path,.core marker.added path{fill:var(--so)}\
.core .label{font-weight:700;text-anchor:middle}.core .behind{fill:var(--paper)}";

/// The core as one self-contained picture.
pub fn svg(finding: &Finding) -> String {
    drawing(&finding.printable(), &format!("<style>{COLOURS}{STYLE}</style>"), "")
}

/// The core as an `svg` element; `style` is put in first, `prefix` before every id. Edges carry `data-step`, operations `data-op`, so that a
/// page can point at them.
pub(crate) fn drawing(finding: &Finding, style: &str, prefix: &str) -> String {
    let picture = Picture::of(finding);
    let boxes: Vec<Text> = picture.nodes.iter().map(Text::of).collect();
    let sizes: Vec<(f64, f64)> = boxes.iter().map(Text::size).collect();
    let arrows: Vec<(usize, usize)> = picture.arrows.iter().map(|arrow| (arrow.from, arrow.to)).collect();
    let layout = layout(&sizes, picture.visited, &arrows);
    let mut out = String::new();
    // Writing into a string cannot fail.
    let _ = write!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"core\" role=\"img\" width=\"{0:.0}\" height=\"{1:.0}\" \
         viewBox=\"0 0 {0:.0} {1:.0}\">{style}<title>{2}</title><desc>{3}</desc><defs>",
        layout.width,
        layout.height + if finding.cases.is_some() { 20.0 } else { 0.0 },
        escape(&title(finding)),
        escape(&finding.explanation.iter().map(|step| step.said.as_str()).collect::<Vec<_>>().join(". ")),
    );
    for kind in KINDS.into_iter().filter(|kind| picture.arrows.iter().any(|arrow| arrow.step.edge == *kind)) {
        let _ = write!(
            out,
            "<marker id=\"{prefix}tip-{kind}\" class=\"{kind}\" viewBox=\"0 0 10 10\" refX=\"9\" refY=\"5\" markerWidth=\"7\" \
             markerHeight=\"7\" orient=\"auto-start-reverse\"><path d=\"M0 0L10 5L0 10z\"/></marker>"
        );
    }
    out.push_str("</defs>");
    for (arrow, curve) in picture.arrows.iter().zip(&layout.curves) {
        write_arrow(&mut out, prefix, arrow, curve);
    }
    for (text, block) in boxes.iter().zip(&layout.blocks) {
        text.write(&mut out, block);
    }
    if let Some(case) = first_case(finding) {
        let _ = write!(
            out,
            "<text class=\"label\" x=\"8\" y=\"{:.1}\">{}</text>",
            layout.height + 13.0,
            escape(&case)
        );
    }
    out.push_str("</svg>");
    out
}

fn title(finding: &Finding) -> String {
    let anomaly = finding.anomaly.as_ref().map(|anomaly| format!(": {anomaly}")).unwrap_or_default();
    format!("{} {}{anomaly}", finding.claim, finding.verdict)
}

/// Every kind of edge.
const KINDS: [&str; 7] = ["wr", "ww", "rw", "so", "rt", "ts", "added"];

fn write_arrow(out: &mut String, prefix: &str, arrow: &Arrow<'_>, curve: &Curve) {
    let kind = arrow.step.edge;
    let place = match arrow.place {
        Some(place) => format!("class=\"{kind}\" data-step=\"{place}\""),
        None => format!("class=\"{kind} support\""),
    };
    let Curve { start, control, end, label: at } = curve;
    let label = label(arrow.step);
    let width = (label.chars().count() as f64 + 0.6) * LETTER_WIDTH;
    let _ = write!(
        out,
        "<g {place}><title>{}</title><path class=\"edge\" marker-end=\"url(#{prefix}tip-{kind})\" \
         d=\"M{:.1} {:.1}Q{:.1} {:.1} {:.1} {:.1}\"/>\
         <rect class=\"behind\" x=\"{:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"16\"/><text class=\"label\" x=\"{:.1}\" y=\"{:.1}\">{}</text></g>",
        escape(&arrow.step.said),
        start.x,
        start.y,
        control.x,
        control.y,
        end.x,
        end.y,
        at.x - width / 2.0,
        at.y - 8.0,
        at.x,
        at.y + 4.0,
        escape(&label),
    );
}

/// The text of a box.
struct Text {
    heading: String,
    lines: Vec<Line>,
}

/// An operation, or how many are left out.
struct Line {
    shown: Vec<String>,
    whole: String,
    /// `TRANSACTION/PLACE` for an operation.
    op: Option<String>,
}

impl Text {
    fn of(node: &Node<'_>) -> Self {
        let status = if node.status == "committed" { String::new() } else { format!(" ({})", node.status) };
        let mut lines: Vec<Line> = node
            .lines
            .iter()
            .map(|&(place, words)| Line {
                shown: broken(words),
                whole: words.to_owned(),
                op: Some(format!("{}/{place}", node.name)),
            })
            .collect();
        if node.more > 0 {
            let more = format!("and {} more", node.more);
            lines.push(Line { shown: vec![more.clone()], whole: more, op: None });
        }
        let heading = format!("{}{status}", node.heading);
        Self { heading: cut(&heading), lines }
    }

    fn size(&self) -> (f64, f64) {
        let letters = |text: &str| text.chars().count();
        let rows = || self.lines.iter().flat_map(|line| &line.shown);
        let widest = rows().map(|row| letters(row)).max().unwrap_or(0);
        let widest = widest.max(letters(&self.heading)).max(4);
        let height = LINE_HEIGHT * (rows().count() + 1) as f64;
        (widest as f64 * LETTER_WIDTH + 2.0 * PADDING, height + 2.0 * PADDING)
    }

    fn write(&self, out: &mut String, block: &Block) {
        let (x, y) = (block.middle.x - block.width / 2.0, block.middle.y - block.height / 2.0);
        let _ = write!(
            out,
            "<g class=\"node\"><rect class=\"box\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"7\"/>",
            block.width, block.height
        );
        let mut line_y = y + PADDING + 12.0;
        let left = x + PADDING;
        let _ = write!(
            out,
            "<text class=\"name\" x=\"{left:.1}\" y=\"{line_y:.1}\">{}</text>",
            escape(&self.heading)
        );
        for line in &self.lines {
            let (class, op) = match &line.op {
                Some(op) => ("op", format!(" data-op=\"{}\"", escape(op))),
                None => ("more", String::new()),
            };
            let is_cut =
                line.shown.last().is_some_and(|last| last.ends_with('…') && !line.whole.ends_with('…'));
            let tip = if is_cut { format!("<title>{}</title>", escape(&line.whole)) } else { String::new() };
            for row in &line.shown {
                line_y += LINE_HEIGHT;
                let _ = write!(
                    out,
                    "<text class=\"{class}\"{op} x=\"{left:.1}\" y=\"{line_y:.1}\">{tip}{}</text>",
                    escape(row)
                );
            }
        }
        out.push_str("</g>");
    }
}

/// A sentence in lines, broken at blanks where there are some; those after the first are indented.
fn broken(text: &str) -> Vec<String> {
    const INDENT: &str = "\u{a0}\u{a0}";
    let mut rows: Vec<String> = Vec::new();
    let mut left: Vec<char> = text.chars().collect();
    loop {
        let indent = if rows.is_empty() { "" } else { INDENT };
        let room = LETTERS_MAX - indent.chars().count();
        if left.len() <= room {
            rows.push(indent.chars().chain(left).collect());
            return rows;
        }
        if rows.len() + 1 == LINES_MAX {
            rows.push(indent.chars().chain(left.drain(..room - 1)).chain(['…']).collect());
            return rows;
        }
        // A blank far to the left would waste most of the line.
        let blank = left[..=room].iter().rposition(|&letter| letter == ' ').filter(|&at| at > room / 2);
        let rest = left.split_off(blank.unwrap_or(room));
        rows.push(indent.chars().chain(left).collect());
        left = rest.into_iter().skip(usize::from(blank.is_some())).collect();
    }
}

fn cut(text: &str) -> String {
    if text.chars().count() <= LETTERS_MAX {
        return text.to_owned();
    }
    text.chars().take(LETTERS_MAX - 1).chain(['…']).collect()
}
