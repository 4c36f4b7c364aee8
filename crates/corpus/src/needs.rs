//! What tests need beside the code: programs.
//!
//! A test whose server or browser is not installed is skipped aloud, so that the tests run anywhere. A runner hides what a
//! test prints, so in continuous integration `TAIPAN_REQUIRE` names what must be there, separated by commas; a test
//! that misses it fails.

use std::fmt::Display;

use std::path::{Path, PathBuf};

/// The variable that names what must be there.
const REQUIRE: &str = "TAIPAN_REQUIRE";

/// Whether a program is there. Says aloud that it is not; fails where it is required.
///
/// `what` is the name in `TAIPAN_REQUIRE`: `chromium`, `postgres`, `mariadb`, `redis`, `python`, or a program's own.
pub fn needs(what: &str) -> bool {
    let names: &[&str] = match what {
        "postgres" => &["initdb"],
        "mariadb" => &["mariadbd"],
        "redis" => &["redis-server"],
        "python" => &["python3"],
        "chromium" => return browser().is_some(),
        other => &[other],
    };
    let found = program(names).is_some();
    if !found {
        missing(what, &format!("no program {} is installed", names.join(" or ")));
    }
    found
}

/// A browser without a window: the one that `TAIPAN_CHROMIUM` names, or one that is installed.
pub fn browser() -> Option<PathBuf> {
    let named = std::env::var_os("TAIPAN_CHROMIUM").map(PathBuf::from).filter(|path| path.is_file());
    let found = named.or_else(|| program(&["chromium", "chromium-browser", "google-chrome"]));
    if found.is_none() {
        missing("chromium", &"no Chromium is installed");
    }
    found
}

/// A throw-away server, unless its programs are not installed.
pub fn server<T, E: Display>(what: &str, started: Result<T, E>) -> Option<T> {
    match started {
        Ok(server) => Some(server),
        Err(failure) if failure.to_string().contains("server is installed") => {
            missing(what, &failure);
            None
        }
        Err(failure) => panic!("{failure}"),
    }
}

/// Says aloud that a test is skipped because something is missing; fails where it is required.
#[allow(clippy::print_stderr, reason = "a test that is skipped says so")]
pub fn missing(what: &str, why: &dyn Display) {
    let required = std::env::var(REQUIRE).unwrap_or_default();
    assert!(
        !is_named(what, &required),
        "{why}: {REQUIRE} names {what}, so this test must not be skipped (scripts/setup installs what tests need)"
    );
    eprintln!("SKIPPED: {why} (scripts/setup installs what tests need)");
}

fn is_named(what: &str, required: &str) -> bool {
    required.split(',').any(|name| name.trim() == what)
}

/// The first of these programs, on the path or where packages of servers put them.
fn program(names: &[&str]) -> Option<PathBuf> {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let folders = std::env::split_paths(&paths)
        .chain([Path::new("/usr/sbin").to_owned()])
        .chain(versions.map(|version| version.path().join("bin")));
    folders.flat_map(|folder| names.iter().map(move |name| folder.join(name))).find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_required_is_a_list() {
        assert!(is_named("redis", "postgres, redis") && is_named("z3", "z3"));
        assert!(!is_named("redis", "") && !is_named("post", "postgres"));
    }

    #[test]
    fn programs_are_found_or_not() {
        assert!(needs("sh") && !needs("no-such-program-anywhere"));
    }
}
