//! The page in a real browser: what is pointed at is marked, the keyboard reaches everything, nothing fails.
//!
//! Needs Chromium (`chromium`, `chromium-browser` or `google-chrome` in the path, or `TAIPAN_CHROMIUM`); says aloud that
//! it was skipped where there is none. `TAIPAN_PICTURES=FOLDER` keeps pictures of the page, light and dark, to be looked at.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Plays a user and writes down what the page does.
const VISITOR: &str = r#"<script>
window.addEventListener('load', function () {
  var seen = { errors: window.failures };
  function all(selector) { return Array.prototype.slice.call(document.querySelectorAll(selector)); }
  function fire(node, kind, more) { node.dispatchEvent(Object.assign(new Event(kind, { bubbles: true, cancelable: true }), more || {})); }
  function marked() { return all('[data-op].on').length; }
  var steps = all('li[data-step]'), edges = all('g[data-step]');
  seen.steps = steps.length;
  seen.edges = edges.length;
  fire(steps[0], 'mouseenter'); seen.hovered = marked(); fire(steps[0], 'mouseleave'); seen.left = marked();
  fire(edges[0], 'mouseenter'); seen.edge = marked(); fire(edges[0], 'mouseleave');
  steps[0].focus();
  if (document.activeElement === steps[0] && !document.hasFocus()) steps[0].dispatchEvent(new FocusEvent('focus'));
  seen.focused = marked();
  fire(steps[0], 'keydown', { key: 'ArrowDown' });
  seen.down = document.activeElement === steps[Math.min(1, steps.length - 1)];
  document.activeElement.blur();
  var walk = document.querySelector('.walk'), now = walk.querySelector('.now'), to = walk.querySelector('[data-walk="1"]');
  seen.walkable = !walk.hidden;
  to.click(); seen.first = now.textContent; seen.walked = marked();
  for (var i = 0; i < steps.length + 3; i++) fire(to, 'keydown', { key: 'ArrowRight' });
  seen.end = now.textContent; seen.conclusion = document.querySelector('.so.on') !== null;
  for (i = 0; i < steps.length + 3; i++) walk.querySelector('[data-walk="-1"]').click();
  seen.beginning = now.textContent + marked();
  seen.events = all('.event').length; seen.meaning = document.querySelector('.meaning').textContent;
  seen.marked = all('.lattice .violated').length; seen.allowed = all('.violation .clock').length;
  seen.part = document.querySelector('pre.part').textContent;
  seen.loose = all('svg.core').filter(function (core) {
    return core.querySelectorAll('.node').length > 1 && core.querySelectorAll('path.edge').length < core.querySelectorAll('.node').length - 1;
  }).length;
  var strip = document.querySelector('.strip'), from = document.querySelector('.from'), to = document.querySelector('.to');
  function view() { return [+from.textContent, +to.textContent]; }
  function bars() { return strip.querySelectorAll('rect').length; }
  seen.whole = view(); seen.bars = bars();
  strip.focus(); seen.reachable = document.activeElement === strip;
  fire(strip, 'keydown', { key: '+' }); seen.zoomed = view();
  fire(strip, 'keydown', { key: 'ArrowRight' }); seen.moved = view();
  fire(strip, 'keydown', { key: '0' }); seen.again = view();
  fire(strip, 'wheel', { deltaY: -1, clientX: 0 }); seen.wheeled = view();
  fire(strip, 'keydown', { key: '0' });
  document.querySelector('.marks button').click(); seen.shown = view();
  seen.marks = strip.querySelectorAll('.mark').length;
  seen.remarks = all('.remarks li').length;
  seen.unnamed = all('a,button,[tabindex]').filter(function (node) { return !(node.textContent.trim() || node.getAttribute('aria-label')); }).length;
  seen.external = all('[src],link[href]').length;
  var result = document.createElement('pre');
  result.id = 'visit'; result.textContent = JSON.stringify(seen);
  document.body.appendChild(result);
});
</script></body>"#;

/// Counts what fails, from the first line of the page on.
const WATCHER: &str = "<head><script>window.failures=[];window.onerror=function(m){window.failures.push(String(m))};\
    console.error=function(m){window.failures.push(String(m))}</script>";

fn chromium(browser: &Path, folder: &Path, arguments: &[&str]) -> Vec<u8> {
    let profile = format!("--user-data-dir={}", folder.join("profile").display());
    let output = Command::new(browser)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--hide-scrollbars",
            &profile,
        ])
        .args(arguments)
        .output()
        .expect("the browser can be started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// The page of a history of so many transactions with a bug in it.
fn page(folder: &Path, transactions: &str) -> String {
    let place = |name: &str| folder.join(name).display().to_string();
    let taipan = |arguments: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_taipan"))
            .args(arguments)
            .output()
            .expect("the program can be started")
    };
    let (history, page, remarks) = (place("h.jsonl"), place("page.html"), place("remarks.jsonl"));
    std::fs::write(&remarks, "{\"at\":1000,\"until\":9000000000000000,\"text\":\"node 2 was paused\"}\n")
        .expect("a file");
    let target = "sim:serializable?bug=write-skew";
    let generated = taipan(&["generate", "--target", target, "-n", transactions, &history]);
    assert!(generated.status.success(), "{generated:?}");
    let checked = taipan(&["check", "--by", "results", "--report", &page, "--remarks", &remarks, &history]);
    assert_eq!(checked.status.code(), Some(1), "{checked:?}");
    std::fs::read_to_string(&page).expect("the page was written")
}

fn visit(browser: &Path, folder: &Path, page: &str) -> Value {
    let watched = page.replacen("<head>", WATCHER, 1).replace("</body>", VISITOR);
    let path = folder.join("visited.html");
    std::fs::write(&path, watched).expect("a file");
    let address = format!("file://{}", path.display());
    let dom = chromium(browser, folder, &["--virtual-time-budget=5000", "--dump-dom", &address]);
    let dom = String::from_utf8_lossy(&dom);
    let (_, rest) = dom.split_once("<pre id=\"visit\">").expect("the visitor came to the end");
    let told = rest.split("</pre>").next().unwrap_or_default().replace("&lt;", "<").replace("&gt;", ">");
    serde_json::from_str(&told.replace("&amp;", "&")).expect("the visitor writes JSON")
}

#[test]
fn a_visitor_finds_everything() {
    let Some(browser) = corpus::browser() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let page = page(folder.path(), "20000");
    let seen = visit(&browser, folder.path(), &page);
    let number = |name: &str| seen[name].as_u64().unwrap_or_else(|| panic!("{name}: {seen}"));
    let view = |name: &str| {
        let ends = seen[name].as_array().unwrap_or_else(|| panic!("{name}: {seen}"));
        (ends[0].as_f64().unwrap_or_default(), ends[1].as_f64().unwrap_or_default())
    };
    assert_eq!(seen["errors"], serde_json::json!([]), "{seen}");
    assert!(number("steps") >= 2 && number("edges") >= 2, "{seen}");
    // Pointing at a step, at its edge, or moving the focus there marks the operations; leaving takes the marks away.
    assert!(number("hovered") > 0 && number("edge") > 0 && number("focused") > 0, "{seen}");
    assert_eq!(number("left"), 0, "{seen}");
    assert!(seen["down"] == true && seen["reachable"] == true, "{seen}");
    // The argument can be walked through, to its end and back.
    let text = |name: &str| seen[name].as_str().unwrap_or_else(|| panic!("{name}: {seen}"));
    assert!(seen["walkable"] == true && number("walked") > 0, "{seen}");
    assert!(text("first").starts_with("Step 1 of "), "{seen}");
    assert!(text("end").starts_with("Contradiction: ") && seen["conclusion"] == true, "{seen}");
    assert_eq!(text("beginning"), "0", "{seen}");
    // What a stranger needs: the meaning in a sentence, levels, what would have been allowed, something to send.
    assert!(text("meaning").starts_with("Write skew. ") && number("marked") > 0, "{seen}");
    assert!(number("allowed") > 0 && text("part").contains("level: serializable"), "{seen}");
    assert_eq!((number("loose"), number("events")), (0, 1), "{seen}");
    // The strip zooms, moves, and comes back.
    let (whole, zoomed, moved) = (view("whole"), view("zoomed"), view("moved"));
    assert!(zoomed.0 > whole.0 && zoomed.1 < whole.1, "{seen}");
    assert!(moved.0 > zoomed.0 && (moved.1 - moved.0 - (zoomed.1 - zoomed.0)).abs() <= 2.0, "{seen}");
    assert_eq!(view("again"), whole, "{seen}");
    assert!(view("wheeled").1 < whole.1, "{seen}");
    let shown = view("shown");
    assert!(shown.1 - shown.0 < (whole.1 - whole.0) / 8.0 && number("marks") > 0, "{seen}");
    assert!(number("bars") > 50 && number("remarks") == 1, "{seen}");
    assert_eq!((number("unnamed"), number("external")), (0, 0), "{seen}");
    keep_pictures(&browser, folder.path());
}

fn keep_pictures(browser: &Path, folder: &Path) {
    let Some(target) = std::env::var_os("TAIPAN_PICTURES").map(PathBuf::from) else { return };
    let address = format!("file://{}", folder.join("page.html").display());
    for (name, dark) in [("light", "0"), ("dark", "1")] {
        let picture = format!("--screenshot={}", target.join(format!("page-{name}.png")).display());
        let theme = format!("--blink-settings=preferredColorScheme={}", 1 - dark.parse::<u8>().unwrap_or(0));
        chromium(browser, folder, &["--window-size=1200,1600", &picture, &theme, &address]);
    }
}

/// What a history holds is shown and never run, wherever it appears: sessions, keys, values, ids, levels, remarks, the
/// file's own name.
#[test]
fn a_stored_script_stays_text() {
    let Some(browser) = corpus::browser() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let payloads = [
        "</script><script>window.owned=1</script>",
        "\"><img src=x onerror=window.owned=1>",
        "'-(window.owned=1)-'",
        "<svg onload=window.owned=1>",
        "--><style onload=window.owned=1></style>",
        "\\u003cscript>window.owned=1\\u003c/script>",
    ];
    for (number, payload) in payloads.iter().enumerate() {
        let json = |text: &str| serde_json::to_string(text).expect("text is JSON");
        let p = json(payload);
        let line = |session: u32, id: &str, ops: &str| {
            let (session, id) = (json(&format!("{payload}{session}")), json(&format!("{payload}{id}")));
            format!(
                "{{\"session\":{session},\"id\":{id},\"ctx\":{{\"note\":{p}}},\"client\":{{\"begin\":1,\"end\":9}},\"ops\":[{ops}]}}\n"
            )
        };
        let read = format!("{{\"op\":\"read\",\"key\":{p},\"value\":null}}");
        let write = |value: &str| {
            format!("{{\"op\":\"write\",\"key\":{p},\"value\":{}}}", json(&format!("{payload}{value}")))
        };
        let text = line(1, "a", &format!("{read},{}", write("1")))
            + &line(2, "b", &format!("{read},{}", write("2")));
        let history = at(&format!("h{number}.jsonl"));
        std::fs::write(&history, text).expect("a file");
        std::fs::write(at("remarks.jsonl"), format!("{{\"at\":3,\"text\":{p}}}\n")).expect("a file");
        let page = at("hostile.html");
        let checked = Command::new(env!("CARGO_BIN_EXE_taipan"))
            .args(["check", "--report"])
            .arg(&page)
            .arg("--remarks")
            .arg(at("remarks.jsonl"))
            .arg(&history)
            .output()
            .expect("the program can be started");
        assert_eq!(checked.status.code(), Some(1), "{payload}: {checked:?}");
        let html = std::fs::read_to_string(&page).expect("the page was written");
        let tell = "<script>window.addEventListener('load',function(){var it=document.createElement('pre');it.id='told';\
                    it.textContent=window.owned?'run':'shown';document.body.appendChild(it)})</script></body>";
        std::fs::write(&page, html.replace("</body>", tell)).expect("a file");
        let address = format!("file://{}", page.display());
        let dom = chromium(&browser, folder.path(), &["--virtual-time-budget=3000", "--dump-dom", &address]);
        let dom = String::from_utf8_lossy(&dom);
        assert!(
            dom.contains("<pre id=\"told\">shown</pre>"),
            "{payload}: it was run, or the page did not load"
        );
    }
}
