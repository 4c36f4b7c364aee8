//! The overview of a history on a page: a strip of bars that can be zoomed, with the core and remarks on it.
//!
//! Without scripts the strip shows the whole history; what is on it is also a list, for whoever does not see it. With
//! scripts the wheel, `+`, `-`, `0` and the arrow keys choose a stretch, and every item of the lists leads to its place.

use crate::overview::Overview;
use crate::text::grouped;
use crate::{Finding, Member};
use maud::{Markup, PreEscaped, html};
use serde::Serialize;
use std::fmt::Write;

/// Bars of the strip as it is written; a script draws as many.
const BARS: usize = 240;
const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 96.0;
/// Where marks and remarks are, below the bars.
const FOOT: f64 = 22.0;

/// The kinds of outcome, in the order of a slot's counts.
const OUTCOMES: [&str; 3] = ["committed", "aborted", "unknown"];

/// A transaction of a core, and the slot in which it lies.
#[derive(Serialize)]
struct Mark<'f> {
    slot: usize,
    name: &'f str,
}

#[derive(Serialize)]
struct Span<'f> {
    slot: usize,
    end: usize,
    text: &'f str,
}

/// What the script draws from.
#[derive(Serialize)]
struct Data<'f> {
    from: i64,
    to: i64,
    slots: &'f [[u32; 3]],
    marks: &'f [Mark<'f>],
    remarks: &'f [Span<'f>],
}

/// The overview of a file, with the cores of what was found in it.
pub(crate) fn strip(overview: &Overview, findings: &[Finding]) -> Markup {
    let marks = marks(overview, findings);
    let remarks: Vec<Span<'_>> = overview
        .remarks
        .iter()
        .map(|remark| Span {
            slot: overview.slot(remark.at),
            end: overview.slot(remark.until.unwrap_or(remark.at)),
            text: &remark.text,
        })
        .collect();
    let total: [usize; 3] =
        std::array::from_fn(|kind| overview.slots.iter().map(|slot| slot[kind] as usize).sum());
    let data = Data {
        from: overview.from,
        to: overview.to,
        slots: &overview.slots,
        marks: &marks,
        remarks: &remarks,
    };
    let data = serde_json::to_string(&data).expect("names and numbers always have a JSON form");
    let by = if overview.by_clock { "by the clients' clocks" } else { "in the order of the file" };
    html! {
        section.overview {
            h2 { "The whole history: " code { (overview.file) } }
            p {
                @for (kind, count) in OUTCOMES.iter().zip(total) {
                    @if count > 0 { span.outcome.(kind) { (grouped(count)) " " (kind) } " " }
                }
                "transactions, " (by) ", from " span.from { (overview.from) } " to " span.to { (overview.to) } "."
            }
            div.strip tabindex="0" role="group" aria-label="Transactions over time; plus and minus zoom, arrow keys move, 0 shows all" {
                (PreEscaped(bars(overview, &marks, &remarks)))
            }
            p.hint { "Wheel or + and − zoom, arrow keys move, 0 shows all." }
            @if !marks.is_empty() {
                p.marks { "The core: " @for mark in &marks {
                    button type="button" data-slot=(mark.slot) { (mark.name) } " "
                } }
            }
            @if !remarks.is_empty() {
                ul.remarks { @for (remark, span) in overview.remarks.iter().zip(&remarks) {
                    li { button type="button" data-slot=(span.slot) {
                        (remark.at) @if let Some(until) = remark.until { "…" (until) }
                    } " " (remark.text) }
                } }
            }
            // `<` would end the element where a name says so.
            script type="application/json" { (PreEscaped(data.replace('<', "\\u003c"))) }
        }
    }
}

/// Every transaction of a core in the file, once.
fn marks<'f>(overview: &Overview, findings: &'f [Finding]) -> Vec<Mark<'f>> {
    let when = |member: &Member| match member.client {
        Some((begin, _)) if overview.by_clock => begin,
        _ => i64::try_from(member.place).unwrap_or(i64::MAX),
    };
    let mut marks: Vec<Mark<'f>> = Vec::new();
    for member in findings.iter().filter(|it| it.file == overview.file).flat_map(|it| &it.transactions) {
        if !marks.iter().any(|mark| mark.name == member.name) {
            marks.push(Mark { slot: overview.slot(when(member)), name: &member.name });
        }
    }
    marks
}

/// The strip as it is without scripts.
fn bars(overview: &Overview, marks: &[Mark<'_>], remarks: &[Span<'_>]) -> String {
    let slots = overview.slots.len();
    let bars = BARS.min(slots);
    let heights: Vec<[u32; 3]> = (0..bars)
        .map(|bar| {
            let of_bar =
                &overview.slots[bar * slots / bars..((bar + 1) * slots / bars).max(bar * slots / bars + 1)];
            std::array::from_fn(|kind| of_bar.iter().map(|slot| slot[kind]).sum())
        })
        .collect();
    let most = heights.iter().map(|it| it.iter().sum::<u32>()).max().unwrap_or(1).max(1);
    let x = |slot: f64| slot / slots as f64 * WIDTH;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {}\" preserveAspectRatio=\"none\" \
         aria-hidden=\"true\">",
        HEIGHT + FOOT
    );
    let width = WIDTH / bars as f64;
    for (bar, counts) in heights.iter().enumerate() {
        let mut below = 0.0;
        for (kind, &count) in OUTCOMES.iter().zip(counts).filter(|(_, count)| **count > 0) {
            let height = f64::from(count) / f64::from(most) * HEIGHT;
            // Writing into a string cannot fail.
            let _ = write!(
                out,
                "<rect class=\"{kind}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{height:.1}\"/>",
                bar as f64 * width,
                HEIGHT - below - height,
                width * 0.92
            );
            below += height;
        }
    }
    for span in remarks {
        let (from, to) = (x(span.slot as f64), x(span.end as f64 + 1.0));
        let _ = write!(
            out,
            "<rect class=\"remark\" x=\"{from:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"6\"/>",
            HEIGHT + 14.0,
            (to - from).max(3.0)
        );
    }
    for mark in marks {
        let _ =
            write!(out, "<path class=\"mark\" d=\"M{:.1} {HEIGHT}l5 11h-10z\"/>", x(mark.slot as f64 + 0.5));
    }
    out.push_str("</svg>");
    out
}

/// Styles of the strip.
pub(crate) const STRIP_STYLE: &str = "\
.strip{border:1px solid var(--line);border-radius:7px;background:var(--card);overflow:hidden}\
.strip:focus-visible{outline:2px solid var(--wr)}.strip svg{display:block;width:100%;height:8rem}\
.strip .committed{fill:var(--good)}.strip .aborted{fill:var(--open)}.strip .unknown{fill:var(--so)}\
.strip .mark{fill:var(--bad)}.strip .remark{fill:var(--ww)}.outcome.committed{color:var(--good)}\
.outcome.aborted{color:var(--open)}.outcome.unknown{color:var(--so)}.outcome{font-weight:700}\
.hint{color:var(--faint);font-size:.875rem;margin:.3rem 0}.remarks{font-size:.875rem;max-height:16rem;overflow-y:auto}";

/// Draws a stretch of the strip, and lets the wheel, keys and buttons choose it.
pub(crate) const STRIP_SCRIPT: &str = "\
document.querySelectorAll('.overview').forEach(function(box){\
var data=JSON.parse(box.querySelector('script').textContent),slots=data.slots,n=slots.length,\
strip=box.querySelector('.strip'),svg=strip.querySelector('svg'),a=0,b=n,W=960,H=96,\
kinds=['committed','aborted','unknown'],least=Math.min(n,8);\
function rect(kind,x,y,w,h){return '<rect class=\"'+kind+'\" x=\"'+x+'\" y=\"'+y+'\" width=\"'+w+'\" height=\"'+h+'\"/>'}\
function draw(){var bars=Math.max(1,Math.min(240,Math.round(b-a))),sums=[],most=1,out='',i,k;\
for(i=0;i<bars;i++){var from=Math.floor(a+(b-a)*i/bars),to=Math.max(from+1,Math.floor(a+(b-a)*(i+1)/bars)),s=[0,0,0];\
for(var j=from;j<to&&j<n;j++)for(k=0;k<3;k++)s[k]+=slots[j][k];sums.push(s);most=Math.max(most,s[0]+s[1]+s[2])}\
var w=W/bars;sums.forEach(function(s,i){var below=0;for(k=0;k<3;k++)if(s[k]){var h=s[k]/most*H;\
out+=rect(kinds[k],i*w,H-below-h,w*.92,h);below+=h}});\
function x(slot){return(slot-a)/(b-a)*W}\
data.remarks.forEach(function(r){if(r.end>=a&&r.slot<b){var f=Math.max(0,x(r.slot)),t=Math.min(W,x(r.end+1));\
out+=rect('remark',f,H+14,Math.max(3,t-f),6)}});\
data.marks.forEach(function(m){if(m.slot>=a&&m.slot<b)out+='<path class=\"mark\" d=\"M'+x(m.slot+.5)+' '+H+'l5 11h-10z\"/>'});\
svg.innerHTML=out;var unit=(data.to-data.from)/n;\
box.querySelector('.from').textContent=Math.round(data.from+unit*a);\
box.querySelector('.to').textContent=Math.round(data.from+unit*b)}\
function show(from,len){len=Math.max(least,Math.min(n,len));a=Math.max(0,Math.min(n-len,from));b=a+len;draw()}\
function zoom(factor,at){var len=(b-a)*factor,middle=a+(b-a)*at;len=Math.max(least,Math.min(n,len));show(middle-len*at,len)}\
strip.addEventListener('wheel',function(event){event.preventDefault();var r=strip.getBoundingClientRect();\
zoom(event.deltaY>0?1.25:.8,(event.clientX-r.left)/r.width)},{passive:false});\
strip.addEventListener('keydown',function(event){var key=event.key,step=(b-a)/8,used=true;\
if(key==='+'||key==='=')zoom(.5,.5);else if(key==='-')zoom(2,.5);else if(key==='0')show(0,n);\
else if(key==='ArrowLeft')show(a-step,b-a);else if(key==='ArrowRight')show(a+step,b-a);else used=false;\
if(used)event.preventDefault()});\
box.querySelectorAll('button[data-slot]').forEach(function(button){button.addEventListener('click',function(){\
var len=Math.min(b-a,n/16);show(+button.dataset.slot+.5-len/2,len);strip.focus()})})});";
