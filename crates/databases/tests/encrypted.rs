//! Connections by TLS: the certificate counts, and nothing is sent in the clear where encryption is asked for.

#![cfg(feature = "tls")]
#![allow(clippy::unwrap_used, reason = "a test may")]

mod support;

use corpus::Loopback;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use std::path::PathBuf;
use taipan_databases::{Database, Value, open};
use tempfile::TempDir;

/// An authority, and the certificate of a server called `localhost`.
struct Certificates {
    folder: TempDir,
    certificate: String,
    key: String,
}

impl Certificates {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &authority).unwrap().pem();
        let folder = TempDir::new().unwrap();
        std::fs::write(folder.path().join("authority.pem"), authority.pem()).unwrap();
        let stranger = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        std::fs::write(folder.path().join("stranger.pem"), stranger.cert.pem()).unwrap();
        Self { folder, certificate, key: key.serialize_pem() }
    }

    fn file(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }
}

/// The answer to a query on a new connection to a target.
fn first(target: &str, sql: &str) -> Result<Value, String> {
    let database = open(target).map_err(|failure| failure.to_string())?;
    let mut console = database.scripted().unwrap().console().map_err(|failure| failure.to_string())?;
    Ok(console.send(sql).unwrap().pop().unwrap().pop().unwrap())
}

#[test]
fn postgres_by_tls() {
    let held = Loopback::hold().unwrap();
    let port = held.addresses(1)[0].rsplit_once(':').unwrap().1.to_owned();
    let settings = [("listen_addresses", "127.0.0.1"), ("port", port.as_str()), ("fsync", "off")];
    let Some(server) = support::postgres(&settings) else { return };
    let certificates = Certificates::new();
    let mut console = server.scripted().unwrap().console().unwrap();
    // The server writes its own files: it refuses keys that others own.
    for (file, text) in [("server.crt", &certificates.certificate), ("server.key", &certificates.key)] {
        let lines = text.trim_end().replace('\n', "\\n");
        let command = format!("umask 077; printf '%b\\n' \"{lines}\" > {file}").replace('\'', "''");
        console.send(&format!("COPY (SELECT 1) TO PROGRAM '{command}'")).unwrap();
    }
    let url = |query: &str| format!("postgres://taipan@localhost:{port}/postgres{query}");
    let encrypted = "SELECT ssl::text FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
    let is = |text: &str| Ok(Value::Text(text.to_owned()));
    assert!(first(&url("?sslmode=require"), encrypted).is_err(), "the server has no TLS yet");
    assert_eq!(first(&url(""), encrypted), is("false"), "and none is asked for");
    console.send("ALTER SYSTEM SET ssl = on").unwrap();
    console.send("SELECT pg_reload_conf()").unwrap();
    let on = || first(&url("?sslmode=require"), encrypted);
    assert!((0..100).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        on() == is("true")
    }));

    let authority = certificates.file("authority.pem");
    let stranger = certificates.file("stranger.pem");
    assert_eq!(first(&url(""), encrypted), is("true"), "offered is taken");
    assert_eq!(first(&url("?sslmode=disable"), encrypted), is("false"));
    assert_eq!(first(&url(&format!("?sslmode=verify-full&sslrootcert={authority}")), encrypted), is("true"));
    let by_number =
        url(&format!("?sslmode=verify-full&sslrootcert={authority}")).replace("localhost", "127.0.0.1");
    assert!(first(&by_number, encrypted).is_err(), "the certificate is for another name");
    let by_number = by_number.replace("verify-full", "verify-ca");
    assert_eq!(first(&by_number, encrypted), is("true"), "which does not count here");
    for mode in ["verify-full", "verify-ca"] {
        let said = first(&url(&format!("?sslmode={mode}&sslrootcert={stranger}")), encrypted).unwrap_err();
        assert!(said.contains("certificate"), "{said}");
    }
    let missing = PathBuf::from("/nowhere/ca.pem");
    let said = first(&url(&format!("?sslmode=verify-full&sslrootcert={}", missing.display())), encrypted);
    assert!(said.unwrap_err().contains("/nowhere/ca.pem"));
}

#[test]
fn mariadb_by_tls() {
    let held = Loopback::hold().unwrap();
    let port = held.addresses(1)[0].rsplit_once(':').unwrap().1.to_owned();
    let certificates = Certificates::new();
    // The server's user reads them, too.
    make_readable(certificates.folder.path());
    for (file, text) in [("server.crt", &certificates.certificate), ("server.key", &certificates.key)] {
        std::fs::write(certificates.file(file), text).unwrap();
    }
    let (certificate, key) = (certificates.file("server.crt"), certificates.file("server.key"));
    let settings = [
        ("skip_networking", "0"),
        ("bind_address", "127.0.0.1"),
        ("port", port.as_str()),
        ("ssl_cert", certificate.as_str()),
        ("ssl_key", key.as_str()),
    ];
    let Some(server) = support::mariadb(&settings) else { return };
    let mut console = server.scripted().unwrap().console().unwrap();
    console.send("CREATE USER secure@'%' IDENTIFIED BY 'word' REQUIRE SSL").unwrap();
    console.send("GRANT ALL ON *.* TO secure@'%'").unwrap();
    let url = |query: &str| format!("mysql://secure:word@localhost:{port}/taipan{query}");
    let cipher =
        "SELECT VARIABLE_VALUE FROM information_schema.SESSION_STATUS WHERE VARIABLE_NAME = 'Ssl_cipher'";
    let is_encrypted = |query: &str| match first(&url(query), cipher)? {
        Value::Text(cipher) => Ok::<_, String>(!cipher.is_empty()),
        other => panic!("{other:?}"),
    };
    let authority = certificates.file("authority.pem");
    let stranger = certificates.file("stranger.pem");
    assert!(is_encrypted("").is_err(), "the server refuses this user in the clear");
    assert_eq!(is_encrypted("?ssl-mode=REQUIRED"), Ok(true));
    assert_eq!(is_encrypted(&format!("?ssl-mode=VERIFY_IDENTITY&ssl-ca={authority}")), Ok(true));
    assert_eq!(is_encrypted(&format!("?ssl-ca={authority}")), Ok(true));
    for mode in ["VERIFY_IDENTITY", "VERIFY_CA"] {
        let said = is_encrypted(&format!("?ssl-mode={mode}&ssl-ca={stranger}")).unwrap_err();
        assert!(said.contains("ertificate"), "{said}");
    }
}

fn make_readable(folder: &std::path::Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755)).unwrap();
}
