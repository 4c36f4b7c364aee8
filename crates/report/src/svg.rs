//! The core of a violation as a picture.

use crate::Finding;
use crate::layout::{Block, Curve, layout};
use crate::picture::{Arrow, Node, Picture, label};
use std::fmt::Write;

/// Sizes of the monospaced text in a box.
const LETTER_WIDTH: f64 = 7.3;
const LINE_HEIGHT: f64 = 17.0;
const PADDING: f64 = 10.0;
/// Lines are cut to this many letters; the whole line is in its tooltip.
const LETTERS_MAX: usize = 44;

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
.core .label{font-weight:700;text-anchor:middle;paint-order:stroke;stroke:var(--paper);stroke-width:5px;\
stroke-linejoin:round}";

/// The core as one self-contained picture.
pub fn svg(finding: &Finding) -> String {
    drawing(finding, &format!("<style>{COLOURS}{STYLE}</style>"), "")
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
        layout.height,
        escape(&title(finding)),
        escape(&finding.explanation.iter().map(|step| step.why.as_str()).collect::<Vec<_>>().join(". ")),
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
    out.push_str("</svg>");
    out
}

fn title(finding: &Finding) -> String {
    let anomaly = finding.anomaly.as_ref().map(|anomaly| format!(": {anomaly}")).unwrap_or_default();
    format!("{} {}{anomaly}", finding.level, finding.verdict)
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
    let _ = write!(
        out,
        "<g {place}><title>{}</title><path class=\"edge\" marker-end=\"url(#{prefix}tip-{kind})\" \
         d=\"M{:.1} {:.1}Q{:.1} {:.1} {:.1} {:.1}\"/><text class=\"label\" x=\"{:.1}\" y=\"{:.1}\">{}</text></g>",
        escape(&arrow.step.why),
        start.x,
        start.y,
        control.x,
        control.y,
        end.x,
        end.y,
        at.x,
        at.y + 4.0,
        escape(&label(arrow.step)),
    );
}

/// The text of a box.
struct Text {
    heading: String,
    lines: Vec<Line>,
}

struct Line {
    shown: String,
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
                shown: cut(words),
                whole: words.to_owned(),
                op: Some(format!("{}/{place}", node.name)),
            })
            .collect();
        if node.more > 0 {
            let more = format!("and {} more", node.more);
            lines.push(Line { shown: more.clone(), whole: more, op: None });
        }
        Self { heading: cut(&format!("{}{status}", node.name)), lines }
    }

    fn size(&self) -> (f64, f64) {
        let letters = |text: &str| text.chars().count();
        let widest = self.lines.iter().map(|line| letters(&line.shown)).max().unwrap_or(0);
        let widest = widest.max(letters(&self.heading)).max(4);
        let height = LINE_HEIGHT * (self.lines.len() + 1) as f64;
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
            line_y += LINE_HEIGHT;
            let (class, op) = match &line.op {
                Some(op) => ("op", format!(" data-op=\"{}\"", escape(op))),
                None => ("more", String::new()),
            };
            let tip = if line.shown == line.whole {
                String::new()
            } else {
                format!("<title>{}</title>", escape(&line.whole))
            };
            let _ = write!(
                out,
                "<text class=\"{class}\"{op} x=\"{left:.1}\" y=\"{line_y:.1}\">{tip}{}</text>",
                escape(&line.shown)
            );
        }
        out.push_str("</g>");
    }
}

fn cut(text: &str) -> String {
    if text.chars().count() <= LETTERS_MAX {
        return text.to_owned();
    }
    let kept: String = text.chars().take(LETTERS_MAX - 1).collect();
    format!("{kept}…")
}

/// Text for XML: the five special characters escaped, control characters replaced.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            letter if letter.is_control() => out.push('\u{b7}'),
            letter => out.push(letter),
        }
    }
    out
}
