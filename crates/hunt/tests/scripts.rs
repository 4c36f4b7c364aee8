//! Cases and their files: the same seed gives the same case, and what is written can be read.

use databases::{Grammar, Sight};
use taipan_hunt::{Settings, generate, script};

#[test]
fn a_seed_gives_the_same_case_and_another_seed_another() {
    let settings = Settings::default();
    let plan = |seed| generate(&settings, &Grammar::PLAIN, Sight::SNAPSHOT, 4, seed);
    assert_eq!(plan(9), plan(9));
    assert_ne!(plan(9), plan(10));
    assert_eq!(plan(9).views, plan(10).views, "cases share the schema");
}

#[test]
fn what_is_written_can_be_read() {
    let settings = Settings { depth: 4, ..Settings::default() };
    for sight in [Sight::SNAPSHOT, Sight::NEWEST, Sight::SPLIT] {
        for seed in 0..60 {
            let plan = generate(&settings, &Grammar::PLAIN, sight, seed, seed);
            let case = plan.case(&Grammar::PLAIN, sight);
            let text =
                script::write(&case, "some-level", &["a remark".into()], |step| vec![step.to_string()]);
            let parsed = script::parse(&text).expect("it was just written");
            assert_eq!(parsed.case, case, "{text}");
            assert_eq!(parsed.isolation, "some-level");
        }
    }
}

#[test]
fn what_is_wrong_with_a_file_is_told_with_its_line() {
    let check = |text: &str, line: usize, words: &str| {
        let error = script::parse(text).expect_err("it is no case");
        assert!(error.line == line && error.message.contains(words), "{error}");
    };
    let head = "-- taipan hunt case\n-- table: t\n-- schema\n-- rows\n-- schedule\n";
    let with = |rest: &str| format!("{head}{rest}");
    check("", 1, "expected");
    check("SELECT 1;", 1, "expected");
    check(head, 5, "is it truncated?");
    check("-- taipan hunt case\nSELECT 1;", 2, "before");
    check(&with("COMMIT;"), 6, "session");
    check(&with("-- T0 S1\nSELECT 1;"), 7, "is:");
    check(&with("-- T0 S1\n-- is: merge t 1 statement\n"), 7, "merge");
    check(&with("-- T0 S1\n-- is: update u 1 statement\n"), 7, "\"u\"");
    check(&with("-- T0 S1\n-- is: update t x statement\n"), 7, "version");
    check(&with("-- T0 S1\n-- is: update t 1 sometimes\n"), 7, "view");
    check(&with("-- T0 S1\n-- before: SELECT 1\n"), 7, "is:");
    check(&with("-- T900 S1\n"), 6, "at most");
    check(&with("-- T0 S1\nCOMMIT"), 7, "within");
}
