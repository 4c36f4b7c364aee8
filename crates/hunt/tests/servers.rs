//! Hunts on real servers: what is known to be wrong is found, what is right is left alone, crashes are survived.
//!
//! Tests whose server is not installed are skipped; `scripts/setup` installs both.

use databases::{Database, Fault, MariaDb, Postgres};
use std::path::Path;
use std::time::Duration;
use taipan_hunt::{
    CampaignOptions, Examination, Group, Settings, Stage, Summary, Weights, campaign, examine, levels, script,
};
use workload::Random;

/// All supported levels, or the one at a place of the database's own list.
fn options(database: &dyn Database, level: Option<usize>, cases: u64) -> CampaignOptions {
    let levels = match level {
        Some(place) => vec![database.isolations()[place]],
        None => levels(database.isolations()),
    };
    CampaignOptions {
        settings: Settings::default(),
        examination: Examination::default(),
        levels,
        seed: 7,
        cases: Some(cases),
        time: None,
        reduction: Duration::from_secs(30),
        patience: Duration::from_secs(30),
        writes_see_snapshot: false,
        findings_max: Some(1),
    }
}

fn hunt(database: &dyn Database, options: &CampaignOptions) -> Summary {
    let scripted = database.scripted().expect("it speaks SQL");
    campaign(scripted, options, &mut || Ok(None), &mut |_| true).expect("it runs")
}

const REPEATABLE_READ: usize = 2;

/// MDEV-26642: a row that is set to the value it already has stays invisible to who set it.
#[test]
fn mariadb_hides_a_transactions_own_write() {
    let Some(mariadb) = corpus::server("mariadb", MariaDb::temporary(None, &[])) else { return };
    let options = options(&mariadb, Some(REPEATABLE_READ), 3000);
    let summary = hunt(&mariadb, &options);
    let [group] = summary.groups.as_slice() else { panic!("not found in {} cases", summary.cases) };
    assert!(group.signature.contains("update+equal"), "{}", group.signature);
    assert!(group.discovery.examined.case.statements().count() <= 4, "{}", group.discovery.script);
    let parsed = script::parse(&group.discovery.script).expect("what was written can be read");
    let replay = |database: &MariaDb, place: usize| {
        let scripted = database.scripted().expect("it speaks SQL");
        let mut stage = Stage::open(scripted, database.isolations()[place]).expect("it opens");
        examine(&mut stage, &parsed.case, &Examination::default(), &mut Random::new(0)).expect("it runs")
    };
    assert!(replay(&mariadb, REPEATABLE_READ).finding.is_some(), "the file shows it again");
    assert_eq!(replay(&mariadb, REPEATABLE_READ + 1).finding, None, "serializable is not blamed");
}

/// The twin of that bug in MySQL (#100328). `scripts/fetch-mysql-5.6` fetches the server; `TAIPAN_MYSQL` says where to.
#[test]
fn mysql_hides_a_transactions_own_write() {
    let folder = std::env::var("TAIPAN_MYSQL").unwrap_or("/var/cache/taipan/mysql-5.6.24/server".to_owned());
    if !Path::new(&folder).join("mysqld").exists() {
        return corpus::missing(
            "mysql",
            &format!("no MySQL is in {folder} (scripts/fetch-mysql-5.6 fetches it)"),
        );
    }
    let mysql = MariaDb::temporary_mysql(Some(Path::new(&folder)), &[]).expect("it starts");
    assert!(mysql.name().starts_with("MySQL 5.6"), "{}", mysql.name());
    let mut options = options(&mysql, Some(REPEATABLE_READ), 3000);
    options.findings_max = None;
    let is_it = |group: &Group| group.signature.contains("update+equal");
    // This server has other bugs as well.
    let mut watch = |summary: &Summary| !summary.groups.iter().any(is_it);
    let scripted = mysql.scripted().expect("it speaks SQL");
    let summary = campaign(scripted, &options, &mut || Ok(None), &mut watch).expect("it runs");
    assert!(summary.groups.iter().any(is_it), "not found in {} cases", summary.cases);
}

/// Figure 1 of the paper: held to the snapshot of their transactions, writes look at newer rows.
#[test]
fn mariadbs_writes_leave_the_snapshot() {
    let Some(mariadb) = corpus::server("mariadb", MariaDb::temporary(None, &[])) else { return };
    let mut options = options(&mariadb, Some(REPEATABLE_READ), 1500);
    options.writes_see_snapshot = true;
    let mut weights = Weights::default();
    assert!(weights.set("equal-update", 0));
    options.settings.weights = weights;
    let summary = hunt(&mariadb, &options);
    assert_eq!(summary.groups.len(), 1, "not found in {} cases", summary.cases);
}

#[test]
fn nothing_is_wrong_with_postgres() {
    let Some(postgres) = corpus::server("postgres", Postgres::temporary(None, &[])) else { return };
    let summary = hunt(&postgres, &options(&postgres, None, 60));
    let found: Vec<&str> = summary.groups.iter().map(|group| group.discovery.script.as_str()).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
    assert!(summary.tally.refused * 10 <= summary.tally.statements, "{:?}", summary.refusals);
    assert!(summary.tally.blocked > 0, "statements waited, and were recognised: {:?}", summary.tally);
}

#[test]
fn a_crash_is_a_finding_and_the_hunt_goes_on() {
    let Some(postgres) = corpus::server("postgres", Postgres::temporary(None, &[])) else { return };
    let mut options = options(&postgres, Some(0), 12);
    options.findings_max = None;
    let scripted = postgres.scripted().expect("it speaks SQL");
    let mut revive = || {
        let log = postgres.log_end();
        assert!(postgres.inflict(Fault::RestartServer)?, "the server is ours");
        Ok(log)
    };
    let mut watch = |summary: &Summary| {
        if summary.cases == 4 {
            postgres.inflict(Fault::KillServer).expect("the server is ours");
        }
        true
    };
    let summary = campaign(scripted, &options, &mut revive, &mut watch).expect("it goes on");
    assert_eq!(summary.cases, 12);
    assert!(summary.revived >= 1);
    let [group] = summary.groups.as_slice() else { panic!("{:?}", summary.groups) };
    assert!(group.signature.starts_with("crash"), "{}", group.signature);
    assert!(group.discovery.log.is_some(), "the log is kept");
}

/// A server that goes on but writes that something of its own is broken is a finding, too.
#[test]
fn a_complaint_in_the_log_is_a_finding() {
    let Some(postgres) = corpus::server("postgres", Postgres::temporary(None, &[])) else { return };
    let mut options = options(&postgres, Some(0), 12);
    options.findings_max = None;
    options.reduction = Duration::from_millis(100);
    let scripted = postgres.scripted().expect("it speaks SQL");
    let mut console = scripted.console().expect("it opens");
    let mut watch = |summary: &Summary| {
        if summary.cases == 4 {
            let sql = "DO $$BEGIN RAISE LOG 'TRAP: failed Assert(\"it is well\")'; END$$";
            console.send(sql).expect("it takes that");
        }
        true
    };
    let summary = campaign(scripted, &options, &mut || Ok(None), &mut watch).expect("it goes on");
    assert_eq!((summary.cases, summary.revived), (12, 0));
    let [group] = summary.groups.as_slice() else { panic!("{:?}", summary.groups) };
    assert!(group.signature.starts_with("complaint"), "{}", group.signature);
    assert!(group.discovery.script.contains("it is well"), "{}", group.discovery.script);
}
