//! Where boxes and arrows go.
//!
//! **What.** Cores are small and are cycles, so boxes lie on an ellipse in the order in which the argument visits
//! them: the cycle is seen as one. Every arrow is a quadratic curve that bends outwards, so that the two arrows
//! between a pair of boxes do not cover each other. More boxes than an ellipse has room for on a page go down one column
//! and up another. Boxes that the argument only rests on stand in rows below.
//!
//! **Invariant.** No two boxes overlap: the ellipse grows until none does, and columns leave room between them.
//!
//! **Cost.** Quadratic in the number of boxes, which is bounded by what a person can look at.

/// A place on the drawing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Point {
    pub(crate) x: f64,
    pub(crate) y: f64,
}

/// A box: its middle and its size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Block {
    pub(crate) middle: Point,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

/// An arrow from border to border, with the place of its label.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Curve {
    pub(crate) start: Point,
    pub(crate) control: Point,
    pub(crate) end: Point,
    pub(crate) label: Point,
}

/// The drawing.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) blocks: Vec<Block>,
    pub(crate) curves: Vec<Curve>,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

/// Free space around the drawing and between boxes.
const MARGIN: f64 = 24.0;
const GAP: f64 = 90.0;

/// Lays out boxes of these sizes, the first `ring` of them in a ring, and arrows between them.
pub(crate) fn layout(sizes: &[(f64, f64)], ring: usize, arrows: &[(usize, usize)]) -> Layout {
    let ring = if ring == 0 { sizes.len() } else { ring.min(sizes.len()) };
    let mut blocks = match ring {
        0..=ELLIPSE_MAX => on_an_ellipse(&sizes[..ring]),
        _ => in_two_columns(&sizes[..ring]),
    };
    in_rows_below(&mut blocks, &sizes[ring..]);
    let mut curves: Vec<Curve> = Vec::new();
    for (index, &(from, to)) in arrows.iter().enumerate() {
        let parallel = arrows[..index].iter().filter(|&&other| other == (from, to)).count();
        curves.push(if from == to {
            around(blocks[from], parallel)
        } else {
            between(blocks[from], blocks[to], parallel)
        });
    }
    part_labels(&mut curves);
    let (width, height) = move_into_view(&mut blocks, &mut curves);
    Layout { blocks, curves, width, height }
}

/// So many boxes are on an ellipse at most: with more it is wider than a page.
const ELLIPSE_MAX: usize = 10;

/// Down on the right and up on the left: a ring, too.
fn in_two_columns(sizes: &[(f64, f64)]) -> Vec<Block> {
    let half = sizes.len().div_ceil(2);
    let widest = sizes.iter().map(|size| size.0).fold(0.0, f64::max);
    let highest = sizes.iter().map(|size| size.1).fold(0.0, f64::max);
    let block = |(index, &(width, height)): (usize, &(f64, f64))| {
        let (side, row) = if index < half { (1.0, index) } else { (-1.0, sizes.len() - 1 - index) };
        // Wide enough apart for the labels of both columns.
        let middle = Point { x: side * (widest / 2.0 + GAP), y: row as f64 * (highest + GAP / 2.0) };
        Block { middle, width, height }
    };
    sizes.iter().enumerate().map(block).collect()
}

fn on_an_ellipse(sizes: &[(f64, f64)]) -> Vec<Block> {
    let count = sizes.len();
    let widest = sizes.iter().map(|size| size.0).fold(0.0, f64::max);
    let highest = sizes.iter().map(|size| size.1).fold(0.0, f64::max);
    let place = |radius_x: f64, radius_y: f64| -> Vec<Block> {
        let block = |(index, &(width, height)): (usize, &(f64, f64))| {
            // Two boxes side by side; more than two beginning at the top, clockwise.
            let turn = index as f64 / count as f64 - if count == 2 { 0.5 } else { 0.25 };
            let angle = turn * std::f64::consts::TAU;
            Block { middle: Point { x: radius_x * angle.cos(), y: radius_y * angle.sin() }, width, height }
        };
        sizes.iter().enumerate().map(block).collect()
    };
    let mut radius_x = (widest + GAP) / 2.0;
    let mut radius_y = if count <= 2 { 0.0 } else { (highest + GAP) / 2.0 };
    loop {
        let blocks = place(radius_x, radius_y);
        if !any_overlap(&blocks) {
            return blocks;
        }
        radius_x *= 1.1;
        radius_y *= 1.1;
    }
}

/// How many boxes are in a row below the ring.
const ROW_LEN: usize = 3;

/// Adds boxes in rows below those that are there.
fn in_rows_below(blocks: &mut Vec<Block>, sizes: &[(f64, f64)]) {
    let bottom = |blocks: &[Block]| blocks.iter().map(|it| it.middle.y + it.height / 2.0).fold(0.0, f64::max);
    let mut top = bottom(blocks) + 1.5 * GAP;
    for row in sizes.chunks(ROW_LEN) {
        let width: f64 = row.iter().map(|size| size.0).sum::<f64>() + GAP * (row.len() - 1) as f64;
        let height = row.iter().map(|size| size.1).fold(0.0, f64::max);
        let mut left = -width / 2.0;
        for &(width, own) in row {
            let middle = Point { x: left + width / 2.0, y: top + height / 2.0 };
            blocks.push(Block { middle, width, height: own });
            left += width + GAP;
        }
        top += height + GAP;
    }
}

fn any_overlap(blocks: &[Block]) -> bool {
    let near = |a: &Block, b: &Block| {
        (a.middle.x - b.middle.x).abs() < (a.width + b.width) / 2.0 + GAP / 2.0
            && (a.middle.y - b.middle.y).abs() < (a.height + b.height) / 2.0 + GAP / 2.0
    };
    blocks.iter().enumerate().any(|(index, a)| blocks[index + 1..].iter().any(|b| near(a, b)))
}

/// A curve between two boxes that bends to its left; the more parallels, the more it bends.
fn between(from: Block, to: Block, parallel: usize) -> Curve {
    let (a, b) = (from.middle, to.middle);
    let (dx, dy) = (b.x - a.x, b.y - a.y);
    let length = dx.hypot(dy).max(1.0);
    let bend = length * 0.18 + 26.0 + 34.0 * parallel as f64;
    let control = Point {
        x: (a.x + b.x) / 2.0 + dy / length * bend * 2.0,
        y: (a.y + b.y) / 2.0 - dx / length * bend * 2.0,
    };
    let at = |t: f64| along(a, control, b, t);
    let steps = 200;
    let times = (0..=steps).map(|step| f64::from(step) / f64::from(steps));
    let leave = times.clone().find(|&t| !inside(from, at(t))).unwrap_or(0.0);
    let arrive = times.rev().find(|&t| !inside(to, at(t))).unwrap_or(1.0);
    cut(a, control, b, leave.min(arrive), arrive.max(leave))
}

/// The piece of a quadratic curve between two times, itself a quadratic curve (de Casteljau).
fn cut(a: Point, control: Point, b: Point, from: f64, to: f64) -> Curve {
    let mix = |p: Point, q: Point, t: f64| Point { x: p.x + (q.x - p.x) * t, y: p.y + (q.y - p.y) * t };
    let (start, end) = (along(a, control, b, from), along(a, control, b, to));
    // The blossom of the curve at (from, to) is the control point of its piece.
    let middle = mix(mix(a, control, from), mix(control, b, from), to);
    Curve { start, control: middle, end, label: along(start, middle, end, 0.5) }
}

fn along(a: Point, control: Point, b: Point, t: f64) -> Point {
    let (u, v, w) = ((1.0 - t) * (1.0 - t), 2.0 * t * (1.0 - t), t * t);
    Point { x: u * a.x + v * control.x + w * b.x, y: u * a.y + v * control.y + w * b.y }
}

fn inside(block: Block, point: Point) -> bool {
    (point.x - block.middle.x).abs() <= block.width / 2.0 + 3.0
        && (point.y - block.middle.y).abs() <= block.height / 2.0 + 3.0
}

/// A loop on top of a box.
fn around(block: Block, parallel: usize) -> Curve {
    let top = block.middle.y - block.height / 2.0 - 3.0;
    let half = (block.width / 4.0).min(40.0);
    let control = Point { x: block.middle.x, y: top - 70.0 - 40.0 * parallel as f64 };
    let start = Point { x: block.middle.x - half, y: top };
    let end = Point { x: block.middle.x + half, y: top };
    Curve { start, control, end, label: along(start, control, end, 0.5) }
}

/// Moves labels along their curves until none covers another, if that can be done.
fn part_labels(curves: &mut [Curve]) {
    const PLACES: [f64; 7] = [0.5, 0.36, 0.64, 0.25, 0.75, 0.16, 0.84];
    for index in 0..curves.len() {
        let (placed, rest) = curves.split_at_mut(index);
        let Some(curve) = rest.first_mut() else { return };
        let is_free = |point: Point| {
            !placed
                .iter()
                .any(|it| (it.label.x - point.x).abs() < LABEL.0 && (it.label.y - point.y).abs() < LABEL.1)
        };
        let places = PLACES.into_iter().map(|t| along(curve.start, curve.control, curve.end, t));
        curve.label = places.into_iter().find(|&point| is_free(point)).unwrap_or(curve.label);
    }
}

/// Labels that are nearer to each other than this, to the side and up or down, may overlap.
const LABEL: (f64, f64) = (60.0, 17.0);

/// Moves everything so that it begins at the margin; returns the size of the drawing.
fn move_into_view(blocks: &mut [Block], curves: &mut [Curve]) -> (f64, f64) {
    // Labels are written around their place: this much room is theirs.
    let (label_x, label_y) = (70.0, 12.0);
    let mut low = Point { x: f64::MAX, y: f64::MAX };
    let mut high = Point { x: f64::MIN, y: f64::MIN };
    let mut cover = |x: f64, y: f64| {
        low = Point { x: low.x.min(x), y: low.y.min(y) };
        high = Point { x: high.x.max(x), y: high.y.max(y) };
    };
    for block in blocks.iter() {
        cover(block.middle.x - block.width / 2.0, block.middle.y - block.height / 2.0);
        cover(block.middle.x + block.width / 2.0, block.middle.y + block.height / 2.0);
    }
    for curve in curves.iter() {
        cover(curve.label.x - label_x, curve.label.y - label_y);
        cover(curve.label.x + label_x, curve.label.y + label_y);
    }
    if blocks.is_empty() {
        return (2.0 * MARGIN, 2.0 * MARGIN);
    }
    let shift = |point: &mut Point| {
        point.x += MARGIN - low.x;
        point.y += MARGIN - low.y;
    };
    blocks.iter_mut().for_each(|block| shift(&mut block.middle));
    for curve in curves {
        for point in [&mut curve.start, &mut curve.control, &mut curve.end, &mut curve.label] {
            shift(point);
        }
    }
    (high.x - low.x + 2.0 * MARGIN, high.y - low.y + 2.0 * MARGIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_do_not_overlap_and_lie_in_view() {
        for count in (0..12).chain([25, 40]) {
            let sizes: Vec<(f64, f64)> = (0..count)
                .map(|index| (80.0 + 40.0 * f64::from(index % 4), 30.0 + 25.0 * f64::from(index % 3)))
                .collect();
            let arrows: Vec<(usize, usize)> =
                (0..sizes.len()).map(|index| (index, (index + 1) % sizes.len())).collect();
            for ring in [sizes.len(), sizes.len() / 2] {
                let layout = layout(&sizes, ring, &arrows);
                assert!(!any_overlap(&layout.blocks));
                for block in &layout.blocks {
                    assert!(block.middle.x - block.width / 2.0 >= 0.0);
                    assert!(block.middle.x + block.width / 2.0 <= layout.width);
                    assert!(block.middle.y + block.height / 2.0 <= layout.height);
                }
            }
        }
    }

    #[test]
    fn a_long_ring_is_no_wider_than_a_page() {
        let arrows: Vec<(usize, usize)> = (0..40).map(|index| (index, (index + 1) % 40)).collect();
        let layout = layout(&[(200.0, 70.0); 40], 40, &arrows);
        assert!(layout.width < 1_100.0, "{} wide", layout.width);
    }

    #[test]
    fn arrows_go_from_border_to_border_and_pairs_do_not_cover_each_other() {
        let layout = layout(&[(100.0, 40.0), (100.0, 40.0)], 2, &[(0, 1), (1, 0), (0, 1), (0, 0)]);
        let [there, back, again, itself] = layout.curves[..] else { panic!("four arrows") };
        for curve in [there, back, again] {
            assert!(!inside(Block { width: 90.0, height: 30.0, ..layout.blocks[0] }, curve.start));
            assert!(!inside(Block { width: 90.0, height: 30.0, ..layout.blocks[1] }, curve.end));
        }
        let far = |a: Point, b: Point| (a.x - b.x).hypot(a.y - b.y) > 20.0;
        assert!(
            far(there.label, back.label) && far(there.label, again.label) && far(itself.label, there.label)
        );
    }
}
