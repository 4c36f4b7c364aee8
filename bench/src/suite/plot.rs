//! Pictures of measurements: lines over two axes, and bars made of pieces. Plain SVG, no scripts, no fonts of its own.

use std::fmt::Write as _;

/// What a line picture shows.
pub(crate) struct Axes<'a> {
    pub(crate) title: &'a str,
    pub(crate) x: &'a str,
    pub(crate) y: &'a str,
    /// Whether both axes are logarithmic; else both begin at 0.
    pub(crate) log: bool,
}

/// A line with its name.
pub(crate) struct Line {
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, f64)>,
}

/// A bar: what it is, its pieces, and what stands behind it.
pub(crate) struct Bar {
    pub(crate) label: String,
    pub(crate) pieces: Vec<(String, f64)>,
    pub(crate) note: String,
}

const COLOURS: [&str; 10] = [
    "#1f6feb", "#c2410c", "#177245", "#7a3fc4", "#b8860b", "#b42318", "#0e7490", "#667085", "#d6409f",
    "#4d7c0f",
];
const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 430.0;
/// Left, top, right and bottom of the field; names of lines are on its right.
const FIELD: (f64, f64, f64, f64) = (78.0, 44.0, 585.0, 372.0);

/// One axis: values onto places.
struct Scale {
    low: f64,
    high: f64,
    log: bool,
    from: f64,
    to: f64,
}

impl Scale {
    fn new(values: impl Iterator<Item = f64> + Clone, log: bool, from: f64, to: f64) -> Self {
        let high = values.clone().fold(f64::MIN, f64::max).max(1e-9);
        let low = values.fold(f64::MAX, f64::min).clamp(1e-9, high);
        match log {
            true => {
                let (low, high) = (10f64.powf(low.log10().floor()), 10f64.powf(high.log10().ceil()));
                Self { low, high: high.max(low * 10.0), log, from, to }
            }
            false => Self { low: 0.0, high: high * 1.05, log, from, to },
        }
    }

    fn place(&self, value: f64) -> f64 {
        let share = match self.log {
            true => (value.max(self.low) / self.low).log10() / (self.high / self.low).log10(),
            false => (value - self.low) / (self.high - self.low),
        };
        self.from + share * (self.to - self.from)
    }

    /// Where a line of the grid is drawn.
    fn marks(&self) -> Vec<f64> {
        if self.log {
            let (first, last) = (self.low.log10().round() as i32, self.high.log10().round() as i32);
            return (first..=last).map(|power| 10f64.powi(power)).collect();
        }
        let rough = self.high / 5.0;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|it| it * power).into_iter().find(|&it| it >= rough);
        let step = step.unwrap_or(rough);
        (0..).map(|index| f64::from(index) * step).take_while(|&mark| mark <= self.high).collect()
    }
}

/// `10k`, `0.001`.
fn number(value: f64) -> String {
    match value {
        value if value >= 1e6 => format!("{}M", value / 1e6),
        value if value >= 1e3 => format!("{}k", value / 1e3),
        value if value >= 10.0 || value == 0.0 => format!("{value:.0}"),
        value if value >= 1.0 => format!("{value}"),
        value => format!("{value:.6}").trim_end_matches('0').to_owned(),
    }
}

/// Light or dark, as the viewer prefers.
const STYLE: &str = "text:not([fill]){fill:#1d2330}text[fill=\"#667085\"]{fill:#5b6475}.paper{fill:#fff}\
                     @media(prefers-color-scheme:dark){text:not([fill]){fill:#e6e9ef}text[fill=\"#667085\"]{fill:#a7b0c0}\
                     .paper{fill:#12151c}path[stroke=\"#e4e7ec\"]{stroke:#2b3140}}";

pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn begin(title: &str, height: f64) -> String {
    let title = escape(title);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"system-ui,sans-serif\" font-size=\"12\"><title>{title}</title><style>{STYLE}</style>\
         <rect class=\"paper\" width=\"{WIDTH}\" height=\"{height}\"/>\
         <text x=\"16\" y=\"24\" font-size=\"15\" font-weight=\"600\">{title}</text>"
    )
}

/// Lines over two axes. Writing into a string cannot fail.
pub(crate) fn lines(axes: &Axes<'_>, lines: &[Line]) -> String {
    let (left, top, right, bottom) = FIELD;
    let points = lines.iter().flat_map(|line| &line.points);
    let across = Scale::new(points.clone().map(|point| point.0), axes.log, left, right);
    let up = Scale::new(points.map(|point| point.1), axes.log, bottom, top);
    let mut out = begin(axes.title, HEIGHT);
    for mark in across.marks() {
        let (x, text) = (across.place(mark), number(mark));
        let _ = write!(
            out,
            "<path d=\"M{x:.1} {top}V{bottom}\" stroke=\"#e4e7ec\"/>\
             <text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\" fill=\"#667085\">{text}</text>",
            bottom + 18.0
        );
    }
    for mark in up.marks() {
        let (y, text) = (up.place(mark), number(mark));
        let _ = write!(
            out,
            "<path d=\"M{left} {y:.1}H{right}\" stroke=\"#e4e7ec\"/>\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#667085\">{text}</text>",
            left - 8.0,
            y + 4.0
        );
    }
    let (middle, low) = ((left + right) / 2.0, bottom + 40.0);
    let _ = write!(
        out,
        "<text x=\"{middle}\" y=\"{low}\" text-anchor=\"middle\">{}</text>\
         <text transform=\"translate(20 {}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
        escape(axes.x),
        (top + bottom) / 2.0,
        escape(axes.y)
    );
    // Names stand beside the end of their line, as far as there is room.
    let mut names: Vec<(f64, usize)> = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let colour = COLOURS[index % COLOURS.len()];
        let path: Vec<String> =
            line.points.iter().map(|&(x, y)| format!("{:.1} {:.1}", across.place(x), up.place(y))).collect();
        let _ = write!(
            out,
            "<path d=\"M{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
            path.join("L")
        );
        if line.points.len() <= 12 {
            for &(x, y) in &line.points {
                let _ = write!(
                    out,
                    "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\" fill=\"{colour}\"><title>{}: {}, {}</title></circle>",
                    across.place(x),
                    up.place(y),
                    escape(&line.name),
                    number(x),
                    number(y)
                );
            }
        }
        names.push((line.points.last().map_or(bottom, |&(_, y)| up.place(y)), index));
    }
    names.sort_by(|one, two| one.0.total_cmp(&two.0));
    let mut last = top - 8.0;
    for (y, index) in names {
        last = y.max(last + 16.0);
        let _ = write!(
            out,
            "<text x=\"{}\" y=\"{:.1}\" fill=\"{}\" font-weight=\"600\">{}</text>",
            right + 10.0,
            last + 4.0,
            COLOURS[index % COLOURS.len()],
            escape(&lines[index].name)
        );
    }
    out + "</svg>"
}

/// Bars side by side, each made of pieces; pieces of one name have one colour.
pub(crate) fn bars(title: &str, unit: &str, bars: &[Bar]) -> String {
    const BAR: f64 = 24.0;
    let letters = bars.iter().map(|bar| bar.label.chars().count()).max().unwrap_or(0);
    // Labels are on the left of the bars, notes behind them.
    let left = (6.4 * letters as f64 + 24.0).clamp(150.0, 480.0);
    let length = WIDTH - left - 150.0;
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in bars.iter().flat_map(|bar| &bar.pieces) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let longest =
        bars.iter().map(|bar| bar.pieces.iter().map(|piece| piece.1).sum::<f64>()).fold(1e-9, f64::max);
    let above = if names.len() > 1 { 70.0 } else { 46.0 };
    let mut out = begin(title, above + BAR * bars.len() as f64 + 14.0);
    if names.len() > 1 {
        let mut x = 16.0;
        for (index, name) in names.iter().enumerate() {
            let _ = write!(
                out,
                "<rect x=\"{x:.0}\" y=\"38\" width=\"11\" height=\"11\" fill=\"{}\"/><text x=\"{:.0}\" y=\"48\">{}</text>",
                COLOURS[index % COLOURS.len()],
                x + 15.0,
                escape(name)
            );
            x += 34.0 + 6.8 * name.chars().count() as f64;
        }
    }
    for (row, bar) in bars.iter().enumerate() {
        let y = above + BAR * row as f64;
        let _ = write!(
            out,
            "<text x=\"{}\" y=\"{:.0}\" text-anchor=\"end\">{}</text>",
            left - 8.0,
            y + 14.0,
            escape(&bar.label)
        );
        let mut x = left;
        for (name, value) in &bar.pieces {
            let width = value / longest * length;
            let colour =
                names.iter().position(|it| it == name).map_or(COLOURS[0], |it| COLOURS[it % COLOURS.len()]);
            let _ = write!(
                out,
                "<rect x=\"{x:.1}\" y=\"{y:.0}\" width=\"{width:.1}\" height=\"18\" fill=\"{colour}\"><title>{}: {value:.1} {}</title></rect>",
                escape(name),
                escape(unit)
            );
            x += width;
        }
        let _ = write!(
            out,
            "<text x=\"{:.1}\" y=\"{:.0}\" fill=\"#667085\">{}</text>",
            x + 6.0,
            y + 14.0,
            escape(&bar.note)
        );
    }
    out + "</svg>"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_follow_the_scale() {
        let log = Scale::new([12.0, 950.0].into_iter(), true, 0.0, 200.0);
        assert_eq!((log.low, log.high), (10.0, 1000.0));
        assert!((log.place(100.0) - 100.0).abs() < 1e-9);
        assert_eq!(log.marks(), [10.0, 100.0, 1000.0]);
        let plain = Scale::new([3.0, 9.0].into_iter(), false, 0.0, 100.0);
        assert!(plain.place(0.0).abs() < 1e-9 && plain.place(9.0) < 100.0);
        assert_eq!(plain.marks(), [0.0, 2.0, 4.0, 6.0, 8.0]);
    }

    #[test]
    fn pictures_hold_everything_and_escape_names() {
        let line = Line { name: "a<b".to_owned(), points: vec![(1.0, 2.0), (10.0, 20.0)] };
        let axes = Axes { title: "t & u", x: "x", y: "y", log: true };
        let picture = lines(&axes, &[line]);
        assert!(picture.contains("a&lt;b") && picture.contains("t &amp; u"));
        assert_eq!(picture.matches("<circle").count(), 2);
        assert!(!picture.contains("NaN"));
        let piece = |name: &str, value: f64| (name.to_owned(), value);
        let bar = Bar {
            label: "l".to_owned(),
            pieces: vec![piece("one", 1.0), piece("two", 3.0)],
            note: "n".to_owned(),
        };
        let picture = bars("t", "ms", &[bar]);
        assert!(picture.contains("width=\"140.0\"") && picture.contains("width=\"420.0\""), "{picture}");
        assert!(!lines(&axes, &[]).contains("NaN") && !bars("t", "ms", &[]).contains("NaN"));
    }
}
