//! No password is in anything that the program prints or writes.
#![allow(clippy::unwrap_used, reason = "a test fails where it unwraps")]

use databases::{Database, Postgres};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

const PASSWORD: &str = "s3cr3t";

/// Runs the program in a folder; the exit status and what it printed, in which there is no password.
fn taipan(arguments: &[&str], variables: &[(&str, &str)], folder: &Path) -> (i32, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_taipan"));
    for name in ["PGPASSWORD", "PGPASSFILE", "MYSQL_PWD", "MYSQL_HOME"] {
        command.env_remove(name);
    }
    command.env("HOME", folder).envs(variables.iter().copied());
    let output = command.args(arguments).current_dir(folder).stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(!text.contains(PASSWORD), "{arguments:?}: {text}");
    (output.status.code().unwrap(), text.into_owned())
}

/// Whether any file here holds the password.
fn holds_password(folder: &Path) -> bool {
    fs::read_dir(folder).unwrap().flatten().any(|entry| {
        let path = entry.path();
        let is_ours = path.file_name().is_some_and(|name| name == ".pgpass" || name == ".my.cnf");
        match path.is_dir() {
            true => holds_password(&path),
            false => !is_ours && String::from_utf8_lossy(&fs::read(&path).unwrap()).contains(PASSWORD),
        }
    })
}

#[test]
fn malformed_targets_are_told_without_their_password() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for scheme in ["postgres", "postgresql", "mysql", "mariadb", "postgress", "oracle", "redis", "http"] {
        for rest in [
            "//u:s3cr3t@127.0.0.1:1/db",
            "//u:x@s3cr3t@127.0.0.1:1/db",
            "//u:s3cr3t/x@127.0.0.1:1/db",
            "//u:s3cr3t?x@127.0.0.1:1/db",
            "//u:s3cr3t@127.0.0.1:port/db",
            "//u:s3cr3t@127.0.0.1:1/db?no_such_option=1",
            "//u@127.0.0.1:1/db?password=s3cr3t&connect_timeout=x",
            "//u:s3cr3t",
            "u:s3cr3t@127.0.0.1/db",
            "/u:s3cr3t@127.0.0.1/db",
        ] {
            let target = format!("{scheme}:{rest}");
            for arguments in [
                &["run", &target, "-n", "1"][..],
                &["run", &target, "--output", "json"],
                &["hunt", &target, "--cases", "1"],
                &["matrix", &target],
                &["check", &target],
                &["stats", &target],
                &["watch", &target],
                &["run", "sqlite:", &target],
                &["watch", "--broker", &target, "--no-such-flag"],
                &["watch", &format!("--broker={target}x&y=z"), "--stdin"],
            ] {
                // A broker that cannot be reached is waited for.
                let waits = arguments[1].contains("--broker=redis://u");
                if !waits {
                    assert_eq!(taipan(arguments, &[], folder).0, 3, "{arguments:?}");
                }
            }
        }
    }
}

#[test]
fn a_run_with_a_password_leaves_it_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
    let hba = folder.join("hba.conf");
    fs::write(&hba, "local all taipan trust\nlocal all all scram-sha-256\n").unwrap();
    let settings =
        [("hba_file".to_owned(), hba.display().to_string()), ("fsync".to_owned(), "off".to_owned())];
    let Some(server) = corpus::server("postgres", Postgres::temporary(None, &settings)) else { return };
    let mut console = server.scripted().unwrap().console().unwrap();
    console.send(&format!("CREATE ROLE u SUPERUSER LOGIN PASSWORD '{PASSWORD}'")).unwrap();
    let without = server.url().unwrap().replace("taipan@", "u@");
    let with = server.url().unwrap().replace("taipan@", &format!("u:{PASSWORD}@"));
    let run = |url: &str, variables: &[(&str, &str)]| {
        let arguments =
            ["run", url, "-n", "30", "--output", "json", "--record", "h.jsonl", "--report", "page.html"];
        taipan(&arguments, variables, folder)
    };

    assert_eq!(run(&without, &[]).0, 3, "a password is needed");
    let (exit, text) = run(&without, &[("PGPASSWORD", "wrong")]);
    assert!(exit == 3 && text.contains("password"), "{text}");
    let (exit, text) = run(&with, &[]);
    assert_eq!(exit, 0, "{text}");
    assert_eq!(run(&without, &[("PGPASSWORD", PASSWORD)]).0, 0);
    fs::write(folder.join(".pgpass"), format!("*:*:*:u:{PASSWORD}\n")).unwrap();
    fs::set_permissions(folder.join(".pgpass"), fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(run(&without, &[]).0, 0, "the file in the home folder");
    assert_eq!(run(&without, &[("PGPASSFILE", "/nowhere")]).0, 3);

    let (exit, text) = taipan(&["run", &with, "-n", "30"], &[], folder);
    assert!(exit == 0 && text.contains("u:***@"), "the target is shown without it: {text}");
    assert_eq!(taipan(&["matrix", &with], &[], folder).0, 0);
    taipan(&["hunt", &with, "--cases", "3", "--save", "found"], &[], folder);
    assert!(!holds_password(folder), "a file holds the password");
}

#[test]
fn passwords_of_mariadb_come_from_the_environment_and_option_files() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let server = databases::MariaDb::temporary(None, &[]);
    let Some(server) = corpus::server("mariadb", server) else { return };
    let mut console = server.scripted().unwrap().console().unwrap();
    console.send(&format!("CREATE USER u@localhost IDENTIFIED BY '{PASSWORD}'")).unwrap();
    console.send("GRANT ALL ON *.* TO u@localhost").unwrap();
    let rows = console.send("SELECT @@socket").unwrap();
    let databases::Value::Text(socket) = &rows[0][0] else { panic!("a path") };
    let socket = socket.replace('/', "%2F");
    let run = |login: &str, variables: &[(&str, &str)]| {
        let url = format!("mysql://{login}@localhost/taipan?socket={socket}");
        taipan(&["run", &url, "-n", "30", "--record", "h.jsonl"], variables, folder)
    };
    assert_eq!(run("u", &[]).0, 3, "a password is needed");
    let (exit, text) = run("u:s3cr3t", &[]);
    assert_eq!(exit, 0, "{text}");
    assert_eq!(run("u", &[("MYSQL_PWD", PASSWORD)]).0, 0);
    assert_eq!(run("u", &[("MYSQL_PWD", "wrong")]).0, 3);
    fs::write(folder.join(".my.cnf"), format!("[client]\npassword = \"{PASSWORD}\"\n")).unwrap();
    fs::set_permissions(folder.join(".my.cnf"), fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(run("u", &[("MYSQL_PWD", "wrong")]).0, 0, "the file comes first");
    assert!(!holds_password(folder));
}
