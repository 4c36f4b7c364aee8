//! The page in a real browser: Chromium, headless.

use isolation::{Level, Rule};
use replay::online::Settings;
use std::io::Write;
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use taipan_service::{EngineOptions, HttpOptions, Options, Outlets, Pace, Service, Source};

const SI: Level = Level::new(Rule::SnapshotIsolation, true, false);
const ANY: &str = "127.0.0.1:0";

/// A service with so many stale reads, and a few findings of other kinds.
fn service(stale: u64) -> Service {
    let address = ANY.parse().expect("an address");
    let options = Options {
        engine: EngineOptions {
            settings: Settings::new(SI),
            pace: Pace::Told,
            state: None,
            spill: None,
            journal_max: u64::MAX,
            joiner: None,
            workers: None,
        },
        sources: vec![
            Source::Http(HttpOptions {
                address,
                token: Some("secret".to_owned()),
                body_max: 1 << 20,
                patience: HttpOptions::PATIENCE,
            }),
            Source::Tcp { address, token: None },
        ],
        outlets: Outlets::default(),
        checkpoint_every: Duration::from_secs(3600),
        memory_max: None,
        notes: Box::new(|_| {}),
    };
    let service = Service::start(options).expect("it starts");
    let mut lines = String::new();
    for number in 1..=stale {
        let at = 10 * number;
        lines += &format!(
            "{{\"session\":\"writer\",\"seq\":{number},\"db\":{{\"start\":{at},\"commit\":{}}},\"ops\":[{{\"op\":\"write\",\"key\":\"k{}\",\"value\":{number}}}]}}\n",
            at + 2,
            number % 50
        );
        lines += &format!(
            "{{\"session\":\"reader\",\"seq\":{number},\"db\":{{\"start\":{},\"commit\":{}}},\"ops\":[{{\"op\":\"read\",\"key\":\"k{}\",\"value\":-1}}]}}\n",
            at + 4,
            at + 6,
            number % 50
        );
    }
    let at = 10 * stale + 10;
    lines += &format!(
        "{{\"session\":\"a\",\"db\":{{\"start\":{at},\"commit\":{}}},\"ops\":[{{\"op\":\"write\",\"key\":\"y\",\"value\":1}}]}}\n",
        at + 4
    );
    let more: String =
        (0..20).map(|key| format!(",{{\"op\":\"write\",\"key\":\"z{key}\",\"value\":1}}")).collect();
    let long = format!("<img src=x>{}", "long ".repeat(60));
    lines += &format!(
        "{{\"session\":\"<b>\",\"db\":{{\"start\":{},\"commit\":{}}},\"ops\":[{{\"op\":\"write\",\"key\":\"y\",\"value\":2}},{{\"op\":\"write\",\"key\":\"y\",\"value\":\"{long}\"}}{more}]}}\n",
        at + 2,
        at + 6
    );
    lines += &format!("{{\"watermark\":{}}}\n", at + 9);
    let mut stream = TcpStream::connect(service.bound[1]).expect("it listens");
    stream.write_all(lines.as_bytes()).expect("it reads");
    let end = Instant::now() + Duration::from_secs(30);
    while service.status().violations < stale + 1 {
        assert!(Instant::now() < end, "waited in vain: {:?}", service.status());
        std::thread::sleep(Duration::from_millis(10));
    }
    // The plots need two seconds to have something to show.
    std::thread::sleep(Duration::from_millis(2500));
    service
}

/// What the page has become after its script ran for a while.
fn shown(browser: &Path, url: &str, picture: Option<&Path>) -> String {
    let profile = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(browser);
    command
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--window-size=1280,1500",
            "--virtual-time-budget=3500",
        ])
        .arg(format!("--user-data-dir={}", profile.path().display()));
    match picture {
        Some(file) => command.arg(format!("--screenshot={}", file.display())),
        None => command.arg("--dump-dom"),
    };
    let output = command.arg(url).output().expect("the browser runs");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn findings_are_shown_and_explained_also_if_there_are_ten_thousand() {
    let Some(browser) = corpus::browser() else { return };
    let browser = browser.as_path();
    let service = service(10_000);
    let url = format!("http://{}/", service.bound[0]);
    if let Some(folder) = std::env::var_os("TAIPAN_SCREENSHOTS") {
        let folder = Path::new(&folder);
        shown(browser, &format!("{url}#token=secret"), Some(&folder.join("watch.png")));
        shown(browser, &format!("{url}#token=secret&finding=17"), Some(&folder.join("stale.png")));
        shown(browser, &format!("{url}#token=secret&finding=10000"), Some(&folder.join("conflict.png")));
    }
    let page = shown(browser, &format!("{url}#token=secret"), None);
    assert!(page.contains("10\u{202f}001 violations"), "{page}");
    assert!(page.contains("strong-session-snapshot-isolation"), "the level");
    let rows = page.matches("class=\"row").count();
    assert!((10..100).contains(&rows), "only the rows in sight are made: {rows}");
    assert!(
        page.contains("before a:0 committed y at 100014, and still overwrote it"),
        "the newest is on top"
    );
    assert!(!page.contains("<b>:"), "names are text, not markup");
    assert!(page.matches("<polyline").count() >= 4, "the plots are drawn");
    let page = shown(browser, &format!("{url}#token=secret&finding=17"), None);
    assert!(page.contains("Finding 17: ext"), "its explanation is open");
    assert!(page.contains("wrote k18 = 18") && page.contains("saw k18 = -1"), "on a time line");
    assert!(
        page.contains("0: read k18, saw -1") && page.contains("0: write k18 = 18"),
        "what both did: {page}"
    );
    let page = shown(browser, &format!("{url}#token=secret&finding=10000"), None);
    assert!(page.contains("Finding 10000: noconflict") && page.contains("overwrote y without seeing that"));
    assert!(page.contains("0: write y = 2") && page.contains("0: write y = 1"), "{page}");
    assert!(
        page.contains("&lt;img src=x&gt;") && !page.contains("<img src=x>"),
        "values are text, not markup"
    );
    assert!(
        page.contains("<summary>20 more operations</summary>"),
        "what has nothing to do with it is folded"
    );
    assert!(page.contains("<details><summary>1: write y = \"&lt;img"), "what is long is folded");
    let page = shown(browser, &url, None);
    assert!(page.contains("this page needs a token"), "without a token nothing is shown");
    service.switch().store(true, Ordering::Relaxed);
    service.wait().expect("it ends well");
}
