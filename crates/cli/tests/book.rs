//! What the book shows can be done: its commands are understood, its examples of formats are read.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn taipan(arguments: &[String]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_taipan"))
        .args(arguments)
        .env("NO_COLOR", "1")
        .output()
        .expect("the program can be started")
}

fn pages(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).expect("the book is there") {
            let path = entry.expect("it can be listed").path();
            match path.extension().is_some_and(|end| end == "md") {
                true => found.push(path),
                false if path.is_dir() => open.push(path),
                false => {}
            }
        }
    }
    found.sort();
    found
}

fn book() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/book/src")
}

/// The fenced blocks of a page.
fn blocks(page: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut lines = page.lines();
    while lines.by_ref().any(|line| line.trim_start().starts_with("```")) {
        let block: Vec<&str> =
            lines.by_ref().take_while(|line| !line.trim_start().starts_with("```")).collect();
        blocks.push(block.join("\n"));
    }
    blocks
}

/// The words of a command, without what the shell does with it.
fn words(command: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut quote = None;
    let mut word: Option<String> = None;
    for letter in command.chars() {
        match (quote, letter) {
            (None, '|' | '>' | '#' | ';' | '&') => break,
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (Some(open), letter) if open == letter => quote = None,
            (None, letter) if letter.is_whitespace() => words.extend(word.take()),
            (_, letter) => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}

#[test]
fn every_command_of_the_book_is_understood() {
    let mut count = 0;
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    for path in pages(&book()).into_iter().chain([readme]) {
        let page = std::fs::read_to_string(&path).expect("a page");
        let joined: Vec<String> = blocks(&page).iter().map(|block| block.replace("\\\n", " ")).collect();
        for line in joined.iter().flat_map(|block| block.lines()) {
            let line = line.trim_start().trim_start_matches("- run: ").trim_start_matches("$ ");
            let Some(rest) = line.strip_prefix("taipan ") else { continue };
            // Two blanks end a command, and a remark follows.
            let mut arguments = words(rest.split("   ").next().unwrap_or_default());
            if arguments.first().is_none_or(|command| command != "help") {
                arguments.push("--help".to_owned());
            }
            let output = taipan(&arguments);
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{}: taipan {rest}: {said}", path.display());
            count += 1;
        }
    }
    assert!(count >= 20, "only {count} commands were found");
}

#[test]
fn every_example_of_a_format_is_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let formats = [
        "awdit",
        "dbcop-hist",
        "dbcop-json",
        "elle-edn",
        "elle-json",
        "jsonl",
        "notation",
        "text",
        "timekiller",
        "viper",
    ];
    for format in formats {
        let name = if format == "jsonl" { "native" } else { format };
        let page = book().join("formats").join(format!("{name}.md"));
        let page = std::fs::read_to_string(page).expect("every format has a page");
        let example = blocks(&page).into_iter().next().expect("every page has an example");
        // A history of Viper is a folder of logs.
        let path = folder.path().join(format);
        if format == "viper" {
            std::fs::create_dir(&path).expect("a folder");
            std::fs::write(path.join("J0.log"), example + "\n").expect("a file");
        } else {
            std::fs::write(&path, example + "\n").expect("a file");
        }
        let arguments = ["stats", "--allow-empty", "--format", format, &path.display().to_string()];
        let output = taipan(&arguments.map(str::to_owned));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{format}: {said}");
        assert!(String::from_utf8_lossy(&output.stdout).contains("transactions"), "{format}");
    }
}

/// The operations that pages on the native format show in their tables are read.
#[test]
fn every_example_of_an_operation_is_read() {
    for page in ["formats/native.md", "databases/recording.md"] {
        let text = std::fs::read_to_string(book().join(page)).expect("a page");
        let examples: Vec<&str> = text.split('`').filter(|part| part.starts_with("{\"op\":")).collect();
        assert!(examples.len() >= 4, "{page}");
        let line = format!("{{\"session\":1,\"ops\":[{}]}}\n", examples.join(","));
        let name = format!("{}.jsonl", page.replace('/', "-"));
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::write(&file, line).expect("a file for tests");
        let output = taipan(&["stats".to_owned(), file.display().to_string()]);
        assert!(output.status.success(), "{page}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

/// Every command shows examples, and they are understood.
#[test]
fn every_command_has_examples_that_are_understood() {
    let said = |arguments: &[&str]| {
        let arguments: Vec<String> = arguments.iter().map(|&word| word.to_owned()).collect();
        let output = taipan(&arguments);
        assert!(output.status.success(), "{arguments:?}");
        String::from_utf8(output.stdout).expect("help is text")
    };
    let help = said(&["--help"]);
    let (_, rest) = help.split_once("Commands:\n").expect("there are commands");
    let (list, _) = rest.split_once("\n\n").expect("more follows");
    let is_command = |line: &&str| line.starts_with("  ") && !line.starts_with("   ");
    let commands = list.lines().filter(is_command).filter_map(|line| line.split_whitespace().next());
    let mut count = 0;
    for command in commands.filter(|&command| command != "help") {
        let help = said(&["help", command]);
        let (_, examples) = help.split_once("Examples:\n").unwrap_or_else(|| panic!("{command} has none"));
        for line in examples.lines().map_while(|line| line.strip_prefix("  ")) {
            let Some(rest) = line.strip_prefix("taipan ") else { continue };
            let mut arguments = words(rest.split("  ").next().unwrap_or_default());
            arguments.push("--help".to_owned());
            assert!(taipan(&arguments).status.success(), "taipan help {command}: {line}");
            count += 1;
        }
    }
    assert!(count >= 30, "only {count} examples");
}

/// Shells and `man` get something that they understand, as far as they are there to be asked.
#[test]
#[allow(clippy::print_stderr, reason = "what was not tried is said aloud")]
fn completions_and_manual_pages_are_sound() {
    for (shell, check) in [("bash", "-n"), ("zsh", "-n"), ("fish", "--no-execute")] {
        let script = taipan(&["completions".to_owned(), shell.to_owned()]);
        assert!(script.status.success() && script.stdout.len() > 10_000, "{shell}");
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("completions.{shell}"));
        std::fs::write(&file, &script.stdout).expect("the folder for tests can be written");
        match Command::new(shell).arg(check).arg(&file).status() {
            Ok(status) => assert!(status.success(), "{shell} does not understand its script"),
            Err(missing) => eprintln!("the script for {shell} was not tried: {missing}"),
        }
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("man1");
    let made = taipan(&["man".to_owned(), "--dir".to_owned(), folder.display().to_string()]);
    assert!(made.status.success());
    for (page, wanted) in [("taipan.1", "taipan\\-check(1)"), ("taipan-check.1", "Exit status")] {
        let text = std::fs::read_to_string(folder.join(page)).expect("the page was written");
        assert!(text.contains(".TH taipan") && text.contains(wanted), "{page}: {text}");
    }
}

/// The history in README is a write skew, as README says.
#[test]
fn the_history_of_the_readme_is_violated() {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let readme = std::fs::read_to_string(readme).expect("there is one");
    let shown = blocks(&readme);
    let history = shown.iter().find(|block| block.starts_with("s1: ")).expect("it shows a history");
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("readme-skew.hist");
    std::fs::write(&file, format!("{history}\n")).expect("a file for tests");
    let output = taipan(&["check".to_owned(), file.display().to_string()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stdout).contains("write skew"));
}

/// The histories that the book keeps of real bugs are violated at the level in their header.
#[test]
fn the_histories_of_real_bugs_are_violated() {
    let folder = book().join("databases");
    let files =
        std::fs::read_dir(&folder).expect("the book is there").map(|entry| entry.expect("listed").path());
    let histories: Vec<PathBuf> =
        files.filter(|file| file.extension().is_some_and(|end| end == "hist")).collect();
    assert!(histories.len() >= 4, "{histories:?}");
    for file in histories {
        let output = taipan(&["check".to_owned(), file.display().to_string()]);
        assert_eq!(output.status.code(), Some(1), "{}", file.display());
    }
}
