//! A gallery of violations: each is a tiny history, checked by the checker and rendered in every form.
//!
//! `INSTA_UPDATE=always cargo test -p taipan-report` accepts what the renderings say now; read the change before you
//! commit it.

mod explained;

use explained::explained;
use history::formats::notation;
use taipan_report::{Detail, Finding, Overview, Palette, Remark, Told};

/// A violation: its name, the level that forbids it, and a history.
struct Case {
    name: &'static str,
    level: &'static str,
    history: &'static str,
}

const fn case(name: &'static str, level: &'static str, history: &'static str) -> Case {
    Case { name, level, history }
}

const GALLERY: &[Case] = &[
    case("g0", "SER", "s1: a(x,1) a(y,1)\ns2: a(x,2) a(y,2)\ns3: r(x,[1 2]) r(y,[2 1])"),
    case("g1a", "SER", "s1: w(x,1)!\ns2: r(x,1)"),
    case("g1b", "SER", "s1: w(x,1) w(x,2)\ns2: r(x,1)"),
    case("g1c", "SI", "s1: w(x,1) r(y,1)\ns2: w(y,1) r(x,1)"),
    case("thin_air", "SI", "s1: r(x,7)"),
    case("thin_air_in_a_scan", "SER", "init: x=1 y=1\ns1: scan(..)=[x:1 y:5]"),
    case("thin_air_initial", "SER", "init: x=0\ns1: r(x,_)"),
    case("internal", "SER", "s1: w(x,1) r(x,2)\ns2: w(x,2)"),
    case("future_read", "SER", "s1: r(x,1) w(x,1)"),
    case("lost_update", "SI", "init: x=0\ns1: r(x,0) w(x,1)\ns2: r(x,0) w(x,2)"),
    case("lost_update_of_a_write", "SER", "s1: w(x,1) | r(x,1) w(x,2)\ns2: r(x,1) w(x,3)"),
    case("lost_append", "SER", "s1: r(x,_) a(x,1)\ns2: r(x,_) a(x,2)\ns3: r(x,[1 2])"),
    case("write_skew", "SER", "init: x=0 y=0\ns1: r(x,0) r(y,0) w(x,1)\ns2: r(x,0) r(y,0) w(y,1)"),
    case("read_skew", "SI", "init: x=0 y=0\ns1: w(x,1) w(y,1)\ns2: r(x,0) r(y,1)"),
    case("fractured_read", "strong-session-SI", "s1: w(x,1) w(y,1) | w(x,2) w(y,2)\ns2: r(x,1) r(y,2)"),
    case("long_fork", "SI", "s1: w(x,1)\ns2: w(y,1)\ns3: r(x,1) r(y,_)\ns4: r(x,_) r(y,1)"),
    case("non_repeatable_read", "SER", "init: x=0\ns1: w(x,1)\ns2: r(x,0) r(x,1)"),
    case("stale_read", "strict-serializable", "s1: w(x,1) @1..2\ns2: r(x,_) @3..4"),
    case("stale_read_in_session", "strong-session-SER", "s1: w(x,1) | r(x,_)"),
    case("causality_violation", "SI", "s1: w(x,1)\ns2: r(x,1) w(y,1)\ns3: r(y,1) r(x,_)"),
    case("duplicate_elements", "SER", "s1: a(x,1)\ns2: r(x,[1 1])"),
    case("incompatible_order", "SER", "s1: a(x,1)\ns2: a(x,2)\ns3: r(x,[1 2])\ns4: r(x,[2 1])"),
    case("deleted", "SER", "init: x=0\ns1: d(x) w(y,1)\ns2: r(x,0) r(y,1)"),
    case("unknown_outcome", "strong-session-SER", "s1: w(x,1)?\ns2: r(x,1) | r(x,_)"),
    case("cycle_of_three", "SER", "s1: r(x,_) w(y,1)\ns2: r(y,_) w(z,1)\ns3: r(z,_) w(x,1)"),
    case(
        "inferred_order",
        "SER",
        "s1: w(x,1) w(y,1)\ns2: w(x,2) w(y,2)\ns3: r(x,1) r(y,2)\ns4: r(x,2) r(y,1)",
    ),
    case(
        "repeated_values",
        "strong-session-SER",
        "s1: w(x,1) | r(x,2)\ns2: w(x,2) | r(x,1) | w(x,1) | r(x,2)",
    ),
    case("numbers_as_keys", "SER", "s1: r(7,_) w(8,1)\ns2: r(8,_) w(7,1)"),
    case(
        "long_list",
        "SER",
        "s1: a(x,1) a(x,2) a(x,3) a(x,4) a(x,5) a(x,6) a(x,7) a(x,8) a(x,9) a(x,10) a(x,11) a(x,12) a(x,13)\n\
         s2: a(x,14) a(y,1)\ns3: r(x,[1 2 3 4 5 6 7 8 9 10 11 12 13 14])\ns4: r(y,[1]) r(x,_)",
    ),
    case("write_skew_by_predicate", "SER", "s1: q(value>=1)=[] w(x,1)\ns2: q(value>=1)=[] w(y,1)"),
    case("predicate_write", "SER", "s1: w(x,1) w(y,1)\ns2: r(y,1) u(value=1 -> 2)=1[y]"),
    case(
        "long_texts",
        "SER",
        "s1: w(x,\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa1bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\")\n\
         s2: r(x,\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa1bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\") w(x,\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa2bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\")\n\
         s3: r(x,\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa1bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\") w(x,\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa3bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\")",
    ),
    case(
        "long_lists_that_differ",
        "SER",
        "s1: a(x,1) a(x,2) a(x,3) a(x,4) a(x,5) a(x,6) a(x,7) a(x,8) a(x,9) a(x,10)\n\
         s2: a(x,11)\ns3: a(x,12)\ns4: a(x,13) a(x,14) a(x,15) a(x,16) a(x,17) a(x,18) a(x,19) a(x,20)\n\
         s5: r(x,[1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20])\n\
         s6: r(x,[1 2 3 4 5 6 7 8 9 10 12 11 13 14 15 16 17 18 19 20])",
    ),
    case("phantom", "SER", "s1: scan(a..c)=[] scan(a..c)=[b:1]\ns2: w(b,1)"),
];

fn finding(case: &Case) -> Finding {
    explained("gallery.hist", case.level, case.history)
}

/// The part of a page that is about a violation, a tag a line; pictures have snapshots of their own.
fn section(page: &str) -> String {
    let (_, rest) = page.split_once("<section class=\"violation\"").expect("the page is about a violation");
    let section = rest.split("</section>").next().unwrap_or_default();
    let mut text = String::from("<section class=\"violation\"");
    for (index, piece) in section.split("<svg ").enumerate() {
        let after = piece.split_once("</svg>").map_or(piece, |(_, after)| after);
        text += if index == 0 { piece } else { "<svg/>" };
        text += if index == 0 { "" } else { after };
    }
    text.replace("><", ">\n<")
}

#[test]
fn every_violation_is_explained() {
    assert!(GALLERY.len() >= 25);
    for case in GALLERY {
        let finding = finding(case);
        assert_eq!(finding.verdict, isolation::VerdictKind::Violated, "{}", case.name);
        let shown = format!(
            "{}\n\n{}\n{}\n\n{}",
            case.history,
            taipan_report::text(&finding, Detail::Full, Palette::plain()),
            taipan_report::json_line(&finding),
            taipan_report::mermaid(&finding),
        );
        insta::assert_snapshot!(case.name, shown);
        insta::assert_snapshot!(format!("{}_svg", case.name), taipan_report::svg(&finding));
        let page = taipan_report::html(&Told { findings: vec![finding], ..Told::default() });
        insta::assert_snapshot!(format!("{}_html", case.name), section(&page));
    }
}

/// What a history's renderings say of its transactions, each with its argument taken out where it has one.
fn lists_of_transactions(finding: &Finding) -> [(&'static str, String); 4] {
    let text = taipan_report::text(finding, Detail::Full, Palette::plain());
    let (text, _) = text.split_once("  T1 before T2").expect("there is an argument");
    let page = taipan_report::html(&Told { findings: vec![finding.clone()], ..Told::default() });
    let (_, lanes) = page.split_once("<h3>The sessions</h3>").expect("the page shows sessions");
    let (lanes, _) = lanes.split_once("<h3>").expect("more follows");
    [
        ("text", text.to_owned()),
        ("page", lanes.to_owned()),
        ("picture", taipan_report::svg(finding)),
        ("mermaid", taipan_report::mermaid(finding)),
    ]
}

/// Two reads of a list of 200 elements that differ in the middle.
#[test]
fn what_differs_in_long_lists_stays_visible() {
    let elements = |swapped: bool| {
        let mut all: Vec<u32> = (1..=200).collect();
        if swapped {
            all.swap(120, 121);
        }
        all.iter().map(u32::to_string).collect::<Vec<_>>().join(" ")
    };
    let appends = |range: std::ops::RangeInclusive<u32>| {
        range.map(|element| format!("a(x,{element})")).collect::<Vec<_>>().join(" ")
    };
    let history = format!(
        "s1: {} | a(x,121)\ns2: a(x,122) | {}\ns3: r(x,[{}])\ns4: r(x,[{}])",
        appends(1..=120),
        appends(123..=200),
        elements(false),
        elements(true)
    );
    let finding = explained("long.hist", "SER", &history);
    for (form, told) in lists_of_transactions(&finding) {
        let plain = told.replace('\n', " ");
        assert!(plain.contains("121 122") && plain.contains("122 121"), "{form}: {told}");
        assert!(!plain.contains("60 61"), "{form} shows the rest, too: {told}");
        assert!(told.len() < 40_000, "{form} is long: {}", told.len());
    }
}

/// Values of 5 kB that differ in one letter, far inside.
#[test]
fn what_differs_in_long_values_stays_visible() {
    let value = |letter: char| format!("{}{letter}{}", "k".repeat(3000), "l".repeat(2000));
    let (one, two, three) = (value('1'), value('2'), value('3'));
    let history =
        format!("s1: w(x,\"{one}\")\ns2: r(x,\"{one}\") w(x,\"{two}\")\ns3: r(x,\"{one}\") w(x,\"{three}\")");
    let finding = explained("long.hist", "SER", &history);
    for (form, told) in lists_of_transactions(&finding) {
        for wanted in ["k1l", "k2l", "k3l"] {
            assert!(told.contains(wanted), "{form} hides {wanted}: {told}");
        }
        assert!(told.len() < 40_000, "{form} is long: {}", told.len());
    }
    let text = taipan_report::text(&finding, Detail::Full, Palette::plain());
    let (_, allowed) = text.split_once("would have been allowed:").expect("something would have been");
    assert!(allowed.contains("k2l") && allowed.contains("k3l"), "{allowed}");
}

/// A core that is too large to be argued about: the first transactions, how many more, what to do, and a page to read.
#[test]
fn a_large_core_is_told_in_few_lines() {
    let skew = GALLERY.iter().find(|case| case.name == "write_skew").expect("it is in the gallery");
    let mut large = finding(skew);
    let one = large.transactions[0].clone();
    large.transactions = (0..260)
        .map(|place| taipan_report::Member {
            name: format!("{place}:0"),
            session: place.to_string(),
            ..one.clone()
        })
        .collect();
    large.explanation.clear();
    let common = Some("no order explains so many together");
    large.anomaly = Some(taipan_report::Named { name: "no-order".to_owned(), common });
    let text = taipan_report::text(&large, Detail::Full, Palette::plain());
    assert!(text.contains("These 260 transactions cannot all have happened under serializable"), "{text}");
    assert!(text.contains("and 244 more (too many to show; --save FILE.hist keeps all)"), "{text}");
    assert!(text.contains("taipan explain --anomaly"), "{text}");
    assert!(text.lines().count() < 40, "{text}");
    let page = taipan_report::html(&Told { findings: vec![large], ..Told::default() });
    assert!(page.contains("No order at all") && page.contains("and 244 more"), "{page}");
}

/// A lock that more clients took than it was free: nobody can say which two, but it is reported why.
#[test]
fn what_counting_shows_is_told() {
    let took = (0..8).map(|session| format!("s{session}: r(lock,0) w(lock,1)\n"));
    let gave = (0..6).map(|session| format!("t{session}: r(lock,1) w(lock,0)\n"));
    let text = format!("init: lock=0\n{}{}", took.collect::<String>(), gave.collect::<String>());
    let history = notation::parse(&text).expect("the notation is right");
    let level = isolation::Level::SERIALIZABLE;
    let verdict = evidence::check(&history, level, &isolation::Options::default()).verdict;
    let finding =
        Finding::new("h", isolation::Claim::new(level), &history, &verdict, taipan_report::Cost::default());
    let why = "lock was 0 only 7 times (initially and after 6 writes), yet 8 transactions read 0 and overwrote it, \
               so two of them overwrote the same version";
    let text = taipan_report::text(&finding, Detail::Full, Palette::plain());
    assert!(text.contains(&format!("Contradiction: {why}.\n")), "{text}");
    assert!(taipan_report::json_line(&finding).contains(&format!("\"counted\":\"{why}\"")));
    let page = taipan_report::html(&Told { findings: vec![finding], ..Told::default() });
    assert!(page.contains(&format!("Contradiction: {why}.")), "{page}");
}

#[test]
fn pictures_and_pages() {
    let skew = GALLERY.iter().find(|case| case.name == "write_skew").expect("it is in the gallery");
    let skew = finding(skew);
    insta::assert_snapshot!("write_skew_dot", taipan_report::dot(&skew));
    let told = Told { findings: vec![skew], ..Told::default() };
    insta::assert_snapshot!("write_skew_sarif", taipan_report::sarif(&told));
    insta::assert_snapshot!("write_skew_markdown", taipan_report::markdown(&told));
}

#[test]
fn hostile_names_are_escaped() {
    let hostile = case("hostile", "SER", r#""<b>&\"1\"": r("<script>alert(1)</script>",7)"#);
    let finding = finding(&hostile);
    let told = Told { findings: vec![finding.clone()], ..Told::default() };
    let history = notation::parse(hostile.history).expect("the gallery is well written");
    let remark = Remark { at: 0, until: None, text: "</script><script>alert(1)</script><b>".to_owned() };
    let overviews = vec![Overview::of("gallery.hist", &history, &[remark])];
    let told = Told { overviews, ..told };
    for page in [taipan_report::html(&told), taipan_report::svg(&finding), taipan_report::junit(&told)] {
        assert!(!page.contains("<script>alert"), "{page}");
        assert!(!page.contains("<b>"), "{page}");
    }
    for drawing in [taipan_report::dot(&finding), taipan_report::mermaid(&finding)] {
        assert!(!drawing.contains("\"1\""), "{drawing}");
    }
}
