//! The core of a violation for programs that draw: Graphviz and Mermaid.

use crate::Finding;
use crate::picture::{Node, Picture, first_case, label};
use std::fmt::Write;

/// The core as a Graphviz digraph.
pub fn dot(finding: &Finding) -> String {
    let finding = &finding.printable();
    let picture = Picture::of(finding);
    let mut out = String::from("digraph core {\n");
    let title = title(finding);
    // Writing into a string cannot fail.
    let _ = writeln!(out, "  label={};", dot_text(&title));
    out.push_str("  labelloc=t;\n  node [shape=box, style=rounded, fontname=\"monospace\"];\n");
    out.push_str("  edge [fontname=\"monospace\"];\n");
    for (index, node) in picture.nodes.iter().enumerate() {
        let lines = lines(node).iter().map(|line| dot_escape(line)).collect::<Vec<_>>().join("\\l");
        let _ = writeln!(out, "  t{index} [label=\"{lines}\\l\"];");
    }
    for arrow in &picture.arrows {
        let (text, why) = (dot_text(&label(arrow.step)), dot_text(&arrow.step.said));
        let _ = writeln!(out, "  t{} -> t{} [label={text}, tooltip={why}];", arrow.from, arrow.to);
    }
    out.push_str("}\n");
    out
}

/// The core as a Mermaid flowchart.
pub fn mermaid(finding: &Finding) -> String {
    let finding = &finding.printable();
    let picture = Picture::of(finding);
    let mut out = format!("---\ntitle: \"{}\"\n---\nflowchart LR\n", mermaid_escape(&title(finding)));
    for (index, node) in picture.nodes.iter().enumerate() {
        let lines = lines(node).iter().map(|line| mermaid_escape(line)).collect::<Vec<_>>().join("<br/>");
        let _ = writeln!(out, "  t{index}[\"{lines}\"]");
    }
    for arrow in &picture.arrows {
        let text = mermaid_escape(&label(arrow.step));
        let _ = writeln!(out, "  t{} -->|\"{text}\"| t{}", arrow.from, arrow.to);
    }
    out
}

fn title(finding: &Finding) -> String {
    match &finding.anomaly {
        Some(anomaly) => {
            let case = first_case(finding).map(|case| format!(", {case}")).unwrap_or_default();
            format!("{}: not {}: {}{case}", finding.file, finding.claim, anomaly.in_words())
        }
        None => format!("{}: {} {}", finding.file, finding.claim, finding.verdict),
    }
}

fn lines(node: &Node<'_>) -> Vec<String> {
    let status = if node.status == "committed" { String::new() } else { format!(" ({})", node.status) };
    let mut lines = vec![format!("{}{status}", node.heading)];
    lines.extend(node.lines.iter().map(|(_, words)| (*words).to_owned()));
    if node.more > 0 {
        lines.push(format!("and {} more", node.more));
    }
    lines
}

fn dot_text(text: &str) -> String {
    format!("\"{}\"", dot_escape(text))
}

fn dot_escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', " ")
}

/// Mermaid takes HTML entities, written with `#` instead of `&`.
fn mermaid_escape(text: &str) -> String {
    let mut out = String::new();
    for letter in text.chars() {
        match letter {
            '"' | '<' | '>' | '&' | '#' | '|' | '`' | ';' | '\\' => {
                let _ = write!(out, "#{};", letter as u32);
            }
            '\n' => out.push(' '),
            _ => out.push(letter),
        }
    }
    out
}
