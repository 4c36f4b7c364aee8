//! One self-contained page: no external assets, light and dark, usable by keyboard and without scripts.
//!
//! The page is a list of verdicts; a violation has its argument as steps, its core as a graph, and its
//! transactions on the lanes of their sessions. Pointing at a step or an edge, or moving the focus to it, marks the
//! operations it speaks of in all three. Below, the whole history at a glance, with the core and what else happened.

use crate::lanes::{Lane, lanes};
use crate::picture::shown_operations;
use crate::strip::{STRIP_SCRIPT, STRIP_STYLE, strip};
use crate::svg::{COLOURS, STYLE, drawing};
use crate::told::Tally;
use crate::{Finding, Member, Step, Surveyed, Told};
use checker::Coverage;
use maud::{DOCTYPE, Markup, PreEscaped, html};

/// Everything a run has to tell as a page.
pub fn html(told: &Told) -> String {
    let tally = told.tally();
    let title = headline(told, tally);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                style { (PreEscaped(COLOURS)) (PreEscaped(STYLE)) (PreEscaped(PAGE_STYLE)) (PreEscaped(STRIP_STYLE)) }
            }
            body {
                header {
                    h1 { (title) }
                    (counts(tally))
                }
                main {
                    (summary(told))
                    @for surveyed in &told.surveys { (all_levels(surveyed)) }
                    @for (index, finding) in told.findings.iter().enumerate() {
                        @if finding.anomaly.is_some() { (violation(index, finding)) }
                    }
                    @for overview in &told.overviews { (strip(overview, &told.findings)) }
                    @if !told.troubles.is_empty() { (troubles(told)) }
                }
                footer { "Taipan " (env!("CARGO_PKG_VERSION")) }
                script { (PreEscaped(SCRIPT)) (PreEscaped(STRIP_SCRIPT)) }
            }
        }
    };
    page.into_string()
}

fn headline(told: &Told, tally: Tally) -> String {
    let file = match told.findings.as_slice() {
        [] => None,
        [first, rest @ ..] => rest.iter().all(|other| other.file == first.file).then_some(&first.file),
    };
    let what = match (tally.violated, tally.undecided, tally.accepted) {
        (0, 0, 0) => "nothing was checked",
        (0, 0, _) => "accepted",
        (0, _, _) => "undecided",
        _ => "violated",
    };
    match file {
        Some(file) => format!("{file}: {what}"),
        None => format!("Isolation check: {what}"),
    }
}

fn counts(tally: Tally) -> Markup {
    html! {
        p.counts {
            @for (class, count, what) in [
                ("violated", tally.violated, "violated"),
                ("undecided", tally.undecided, "undecided"),
                ("accepted", tally.accepted, "accepted"),
                ("trouble", tally.troubles, "not readable"),
            ] {
                @if count > 0 { span.badge.(class) { (count) " " (what) } " " }
            }
        }
    }
}

fn summary(told: &Told) -> Markup {
    html! {
        table {
            thead { tr {
                th scope="col" { "History" }
                th scope="col" { "Level" }
                th scope="col" { "Verdict" }
                th scope="col" { "Why" }
                th.number scope="col" { "Transactions" }
                th.number scope="col" { "Checked in" }
            } }
            tbody {
                @for (index, finding) in told.findings.iter().enumerate() {
                    tr {
                        td.file { (finding.file) }
                        td.level { (finding.level) }
                        td { span.badge.(finding.verdict) { (finding.verdict) } }
                        td.why {
                            @if let Some(anomaly) = &finding.anomaly {
                                a href={ "#violation-" (index) } { (anomaly) }
                            } @else if let Some(reason) = &finding.reason {
                                (reason)
                            } @else if let Some(coverage) = &finding.coverage {
                                (tested(coverage))
                            }
                        }
                        td.number { (finding.size.transactions) }
                        td.number { (format!("{:.1} ms", finding.cost.check_ms)) }
                    }
                }
            }
        }
    }
}

/// What an accepted history tested, and what it lacks to test more.
fn tested(coverage: &Coverage) -> Markup {
    let lacks: Vec<String> =
        coverage.blind_spots.iter().map(|spot| format!("{}: {}", spot.anomaly, spot.lacks)).collect();
    html! { div title=(lacks.join("\n")) { (crate::text::coverage_lines(coverage).join("; ")) } }
}

fn all_levels(surveyed: &Surveyed) -> Markup {
    html! {
        section {
            h2 { "All levels: " code { (surveyed.file) } }
            div.scroll { (PreEscaped(crate::lattice(&surveyed.marks))) }
        }
    }
}

fn violation(index: usize, finding: &Finding) -> Markup {
    let anomaly = finding.anomaly.as_ref().map(ToString::to_string).unwrap_or_default();
    html! {
        section.violation id={ "violation-" (index) } {
            h2 { span.badge.violated { "violated" } " " (anomaly) }
            p {
                code { (finding.file) } ": nothing that " strong { (finding.level) } " allows explains "
                @if finding.transactions.len() == 1 { "this transaction." }
                @else { "these " (finding.transactions.len()) " transactions together." }
            }
            @if !finding.explanation.is_empty() {
                h3 { "The argument" }
                ol.steps {
                    @for (place, step) in finding.explanation.iter().enumerate() {
                        (argument_step(step, Some(place)))
                    }
                }
                @if let Some(end) = crate::text::conclusion(finding) { p.so { "So " (end) "." } }
                h3 { "The transactions and what orders them" }
                div.scroll { (PreEscaped(drawing(finding, ""))) }
            }
            @if !finding.support.is_empty() {
                h3 { "Where" }
                ul.steps { @for step in &finding.support { (argument_step(step, None)) } }
            }
            h3 { "The sessions" }
            div.scroll { (session_lanes(finding)) }
        }
    }
}

/// A step with the steps it follows from. Steps of the argument itself can be pointed at.
fn argument_step(step: &Step, place: Option<usize>) -> Markup {
    let ops: Vec<String> =
        step.places.iter().map(|place| format!("{}/{}", place.transaction, place.operation)).collect();
    let label = crate::picture::label(step);
    let edge = html! {
        span.edge.(step.edge) { (step.from.as_deref().unwrap_or("initial state")) " → " (step.to) " " (label) }
        " " (step.why)
        @if !step.because.is_empty() {
            ul.steps { @for inner in &step.because { (argument_step(inner, None)) } }
        }
    };
    match place {
        Some(place) => html! { li tabindex="0" data-step=(place) data-ops=(ops.join("\n")) { (edge) } },
        None => html! { li { (edge) } },
    }
}

/// One lane a session; columns are moments in the order of the clients' clocks where all have them.
fn session_lanes(finding: &Finding) -> Markup {
    let (lanes, columns) = lanes(&finding.transactions);
    html! {
        div.lanes style={ "grid-template-columns:max-content repeat(" (columns) ",auto)" } {
            @for (row, lane) in lanes.iter().enumerate() { (session_lane(finding, lane, row + 1)) }
        }
    }
}

fn session_lane(finding: &Finding, lane: &Lane<'_>, row: usize) -> Markup {
    html! {
        div.session style={ "grid-row:" (row) } { "session " (lane.session) }
        @for stay in &lane.stays {
            div.txn.(stay.member.status) style={ "grid-row:" (row) ";grid-column:" (stay.from + 2) "/" (stay.to + 3) } {
                (transaction(finding, stay.member))
            }
        }
    }
}

fn transaction(finding: &Finding, member: &Member) -> Markup {
    let (operations, more) = shown_operations(finding, member, 12);
    html! {
        div.name {
            (member.name)
            @if member.status != "committed" { " (" (member.status) ")" }
            @if let Some((begin, end)) = member.client { span.clock { " " (begin) "…" (end) } }
            @if let Some((start, commit)) = &member.db { span.clock { " db " (start) "…" (commit) } }
        }
        ol {
            @for (place, words) in operations { li data-op={ (member.name) "/" (place) } { (words) } }
            @if more > 0 { li.more { "and " (more) " more" } }
        }
        @if let Some(ctx) = &member.ctx { div.ctx { (ctx) } }
    }
}

fn troubles(told: &Told) -> Markup {
    html! {
        section {
            h2 { "Files that could not be checked" }
            @for trouble in &told.troubles { pre.trouble { (trouble.message) } }
        }
    }
}

const PAGE_STYLE: &str = "\
*{box-sizing:border-box}body{margin:0 auto;max-width:76rem;padding:1.5rem;background:var(--paper);color:var(--ink);\
font:16px/1.5 system-ui,sans-serif}h1{font-size:1.5rem;margin:0 0 .5rem;overflow-wrap:anywhere}\
h2{margin:2.5rem 0 .5rem;font-size:1.25rem}h3{margin:1.5rem 0 .5rem;font-size:1rem;color:var(--faint)}\
table{border-collapse:collapse;width:100%;margin-top:1rem}th,td{text-align:left;padding:.35rem .6rem;\
border-bottom:1px solid var(--line);vertical-align:top}th{color:var(--faint);font-weight:600}\
.file{min-width:12rem}.file,.why{overflow-wrap:anywhere}.level{white-space:nowrap}\
.number{text-align:right;white-space:nowrap}.badge{font-weight:700;white-space:nowrap}.counts .badge{margin-right:1rem}\
.badge.accepted{color:var(--good)}.badge.violated,.badge.trouble{color:var(--bad)}.badge.undecided{color:var(--open)}\
a{color:var(--wr)}code,pre,.txn,.steps{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}\
code{overflow-wrap:anywhere}.steps{font-size:.875rem;line-height:1.7}.steps .steps{padding-left:1.5rem}\
.steps>li[tabindex]{border-radius:4px;padding:0 .4rem;cursor:default}\
.steps .edge{font-weight:700;white-space:nowrap}.edge.wr{color:var(--wr)}.edge.ww{color:var(--ww)}\
.edge.rw{color:var(--rw)}.edge.so,.edge.rt,.edge.ts{color:var(--so)}.scroll{overflow-x:auto}\
.lanes{display:grid;gap:.5rem;align-items:start;width:max-content;min-width:100%;font-size:.8125rem}\
.session{color:var(--faint);padding:.5rem 1rem .5rem 0;grid-column:1;white-space:nowrap}\
.txn{background:var(--card);border:1.5px solid var(--line);border-radius:7px;padding:.4rem .6rem}\
.txn.aborted,.txn.unknown{border-style:dashed}.txn .name{font-weight:700}.txn .clock,.txn .more,.ctx{color:var(--faint);\
font-weight:400}.txn ol{list-style:none;margin:0;padding:0}.txn li{padding:0 .2rem;border-radius:3px;white-space:nowrap}\
.ctx{max-width:24rem;overflow-wrap:anywhere}pre.trouble{white-space:pre-wrap;background:var(--card);padding:.8rem;\
border-radius:7px}footer{margin-top:3rem;color:var(--faint);font-size:.875rem}\
.on,.steps>li[tabindex]:hover,.steps>li[tabindex]:focus{background:var(--glow);outline:none}\
.steps>li[tabindex]:focus-visible{outline:2px solid var(--wr)}\
.core .op.on{font-weight:700;text-decoration:underline}.core .on path.edge{stroke-width:4}\
@media print{.scroll{overflow:visible}}";

/// Marks what a step speaks of while it is pointed at or has the focus.
const SCRIPT: &str = "\
document.querySelectorAll('.violation').forEach(function(box){\
var steps=box.querySelectorAll('li[data-step]');\
function mark(step,on){var ops=(step.dataset.ops||'').split('\\n');\
step.classList.toggle('on',on);\
box.querySelectorAll('[data-op]').forEach(function(op){\
if(ops.indexOf(op.dataset.op)>=0)op.classList.toggle('on',on)});\
box.querySelectorAll('g[data-step=\"'+step.dataset.step+'\"]').forEach(function(edge){edge.classList.toggle('on',on)})}\
steps.forEach(function(step,place){\
step.addEventListener('mouseenter',function(){mark(step,true)});\
step.addEventListener('mouseleave',function(){mark(step,false)});\
step.addEventListener('focus',function(){mark(step,true)});\
step.addEventListener('blur',function(){mark(step,false)});\
step.addEventListener('keydown',function(event){\
var to=event.key==='ArrowDown'?place+1:event.key==='ArrowUp'?place-1:-1;\
if(steps[to]){event.preventDefault();steps[to].focus()}})});\
box.querySelectorAll('g[data-step]').forEach(function(edge){\
var step=box.querySelector('li[data-step=\"'+edge.dataset.step+'\"]');if(!step)return;\
edge.addEventListener('mouseenter',function(){mark(step,true)});\
edge.addEventListener('mouseleave',function(){mark(step,false)});\
edge.addEventListener('click',function(){step.focus()})})});";
