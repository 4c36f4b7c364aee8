//! The command line as a user sees it: every console block in `tests/cmd/*.md` is run and compared.
//!
//! `TRYCMD=overwrite cargo test -p taipan-cli --test cli` writes what the program says now into the blocks.

#[test]
fn console_blocks_show_what_the_program_does() {
    trycmd::TestCases::new()
        .env("NO_COLOR", "1")
        .env("TMPDIR", env!("CARGO_TARGET_TMPDIR"))
        .case("tests/cmd/*.md");
}
