//! `taipan watch` by TLS: a Redis stream on the way in, a webhook on the way out.

#![cfg(feature = "tls")]
#![allow(clippy::unwrap_used, reason = "a test may")]

use corpus::Loopback;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// A transaction with a stale read, as two lines, and the watermark that makes it final.
const STALE: [&str; 3] = [
    r#"{"session":1,"seq":0,"db":{"start":10,"commit":11},"ops":[{"op":"write","key":"x","value":1}]}"#,
    r#"{"session":2,"seq":0,"db":{"start":20,"commit":21},"ops":[{"op":"read","key":"x","value":null}]}"#,
    r#"{"watermark":1000}"#,
];

/// The files `authority.pem`, and `server.pem` with `server.key` of a server called `localhost`.
fn certificates(folder: &Path) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &authority).unwrap();
    std::fs::write(folder.join("authority.pem"), authority.pem()).unwrap();
    std::fs::write(folder.join("server.pem"), certificate.pem()).unwrap();
    std::fs::write(folder.join("server.key"), key.serialize_pem()).unwrap();
    let stranger = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    std::fs::write(folder.join("stranger.pem"), stranger.cert.pem()).unwrap();
}

fn watch(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_taipan"));
    command.arg("watch").args(arguments).arg("-q").current_dir(folder);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Takes one POST by TLS and gives its body.
fn receiver(folder: &Path, listener: TcpListener) -> JoinHandle<String> {
    let chain =
        CertificateDer::pem_file_iter(folder.join("server.pem")).unwrap().map(Result::unwrap).collect();
    let key = PrivateKeyDer::from_pem_file(folder.join("server.key")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    let config = Arc::new(config);
    std::thread::spawn(move || {
        loop {
            let (stream, _) = listener.accept().unwrap();
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut reader = BufReader::new(StreamOwned::new(connection, stream));
            let (mut len, mut line) = (0, String::new());
            while line != "\r\n" {
                line.clear();
                // A client that does not trust us goes away.
                if reader.read_line(&mut line).unwrap_or(0) == 0 {
                    break;
                }
                if let Some(value) = line.strip_prefix("Content-Length: ") {
                    len = value.trim().parse().unwrap();
                }
            }
            if len > 0 {
                let mut body = vec![0; len];
                reader.read_exact(&mut body).unwrap();
                reader.get_mut().write_all(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap();
                reader.get_mut().flush().unwrap();
                return String::from_utf8(body).unwrap();
            }
        }
    })
}

#[test]
fn a_webhook_by_tls_gets_findings_only_if_it_is_who_it_says() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    certificates(at);
    std::fs::write(at.join("h.jsonl"), STALE.join("\n")).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://localhost:{}/alarm", listener.local_addr().unwrap().port());
    let receiver = receiver(at, listener);
    for authority in ["stranger.pem", "authority.pem"] {
        let out =
            watch(at, &["h.jsonl", "--webhook", &url]).env("SSL_CERT_FILE", authority).output().unwrap();
        assert_eq!(out.status.code(), Some(1), "{}", String::from_utf8_lossy(&out.stderr));
        assert_eq!(receiver.is_finished(), authority == "authority.pem", "{authority}");
    }
    let body = receiver.join().unwrap();
    assert!(body.contains("\"kind\":\"ext\""), "{body}");
}

/// A Redis server that speaks nothing but TLS.
struct Redis(Child);

impl Redis {
    fn start(folder: &Path, address: &str) -> Self {
        let (host, port) = address.rsplit_once(':').unwrap();
        let child = Command::new("redis-server")
            .args([
                "--port",
                "0",
                "--tls-port",
                port,
                "--bind",
                host,
                "--save",
                "",
                "--tls-auth-clients",
                "no",
            ])
            .args(["--tls-cert-file", "server.pem", "--tls-key-file", "server.key"])
            .args(["--tls-ca-cert-file", "authority.pem", "--unixsocket", "redis.sock"])
            .current_dir(folder)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Self(child)
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Puts the lines into the stream `txns`, as soon as the server answers.
fn add(folder: &Path) {
    use std::os::unix::net::UnixStream;
    let socket = folder.join("redis.sock");
    for _ in 0..600 {
        if let Ok(mut stream) = UnixStream::connect(&socket) {
            let mut answers = BufReader::new(stream.try_clone().unwrap());
            for line in STALE {
                let words = ["XADD", "txns", "*", "txn", line];
                let request: String =
                    words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len())).collect();
                stream.write_all(format!("*5\r\n{request}").as_bytes()).unwrap();
                let mut answer = String::new();
                answers.read_line(&mut answer).unwrap();
                assert!(answer.starts_with('$'), "{answer}");
                answers.read_line(&mut answer).unwrap();
            }
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("the server does not answer");
}

#[test]
fn a_broker_by_tls_is_read_only_if_it_is_who_it_says() {
    if !corpus::needs("redis") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    certificates(at);
    let held = Loopback::hold().unwrap();
    let address = held.addresses(1).remove(0);
    let (_, port) = address.rsplit_once(':').unwrap();
    let redis = Redis::start(at, &format!("127.0.0.1:{port}"));
    add(at);
    let broker = |authority: &str| format!("rediss://localhost:{port}?stream=txns&ca={authority}");

    let out = watch(at, &["--broker", &broker("stranger.pem")]).output().unwrap();
    let said = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(3), "{said}");
    assert!(said.contains("certificate"), "{said}");

    let mut child = watch(at, &["--broker", &broker("authority.pem")]).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("\"kind\":\"ext\""), "{line}");
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1));
    drop(redis);
}
