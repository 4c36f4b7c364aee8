//! The text form of a certificate: one JSON object a line.
//!
//! The shape is a contract with other programs; the book's chapter on certificates describes it. Reading is strict: a
//! field that is missing, twice or unknown, a level whose flags are not its own, an order beside a violation — all of
//! that is malformed. What the text says is judged elsewhere.

use super::{Certificate, Claim, Fingerprint, Lemma, Mention, Step};
use isolation::{Level, Ryow, VerdictKind};
use serde::de::{Deserializer, Error, Visitor};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use std::io;

/// The version of the format that is written, and the only one that is read.
const VERSION: u32 = 1;

/// Text that is not a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// The column where reading stopped, from 1; `None` where no single place is wrong.
    pub column: Option<usize>,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Malformed {}

fn malformed(message: impl Into<String>) -> Malformed {
    Malformed { column: None, message: message.into() }
}

impl<'a> Certificate<'a> {
    /// Reads one line.
    pub fn parse(line: &'a str) -> Result<Self, Malformed> {
        match serde_json::from_str::<Record<'a>>(line) {
            Ok(record) => record.into_certificate(),
            Err(error) => Err(refused(line, &error)),
        }
    }

    /// Writes one line, with its line break.
    pub fn write(&self, out: &mut impl io::Write) -> io::Result<()> {
        serde_json::to_writer(&mut *out, &Record::from(self))?;
        out.write_all(b"\n")
    }
}

/// Another version may have other fields, so that is looked at first.
fn refused(line: &str, error: &serde_json::Error) -> Malformed {
    #[derive(Deserialize)]
    struct Version {
        certificate: u64,
    }
    match serde_json::from_str::<Version>(line) {
        Ok(Version { certificate }) if certificate != u64::from(VERSION) => other_version(certificate),
        _ => {
            let said = error.to_string();
            let message = said.split(" at line ").next().unwrap_or_default().to_owned();
            Malformed { column: Some(error.column()), message }
        }
    }
}

fn other_version(found: u64) -> Malformed {
    malformed(format!("it is written in version {found} of the format; version {VERSION} is understood"))
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record<'a> {
    certificate: u32,
    #[serde(borrow)]
    file: Cow<'a, str>,
    #[serde(borrow)]
    history: Cow<'a, str>,
    #[serde(borrow)]
    level: Cow<'a, str>,
    session_order: bool,
    real_time: bool,
    /// Missing in certificates of earlier releases, which had no others.
    #[serde(borrow, default = "by_results")]
    by: Cow<'a, str>,
    #[serde(borrow)]
    ryow: Cow<'a, str>,
    clock_skew: i64,
    #[serde(borrow)]
    verdict: Cow<'a, str>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    order: Option<Cow<'a, [Mention<'a>]>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    core: Option<Cow<'a, [Mention<'a>]>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    edges: Option<Cow<'a, [Step<'a>]>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    reason: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    proof: Option<Cow<'a, [Lemma]>>,
}

/// What the order is judged by: there are no certificates by timestamps.
const BY: &str = "results";

fn by_results() -> Cow<'static, str> {
    BY.into()
}

const POLICIES: [Ryow; 3] = [Ryow::Must, Ryow::May, Ryow::Never];

impl<'a> Record<'a> {
    fn from(certificate: &'a Certificate<'_>) -> Self {
        let Certificate { file, fingerprint, level, ryow, clock_skew, claim } = certificate;
        let (order, core, edges, proof, reason) = match claim {
            Claim::Accepted { order } => (Some(Cow::from(order)), None, None, None, None),
            Claim::Violated { core, edges, proof } => {
                let edges = (!edges.is_empty()).then(|| Cow::from(edges));
                let proof = (!proof.is_empty()).then(|| Cow::from(proof));
                (None, Some(Cow::from(core)), edges, proof, None)
            }
            Claim::Undecided { reason } => (None, None, None, None, Some(Cow::from(&**reason))),
        };
        Self {
            certificate: VERSION,
            file: Cow::from(&**file),
            history: fingerprint.to_string().into(),
            level: level.name().into(),
            session_order: level.session,
            real_time: level.realtime,
            by: BY.into(),
            ryow: ryow.name().into(),
            clock_skew: *clock_skew,
            verdict: claim.verdict().name().into(),
            order,
            core,
            edges,
            reason,
            proof,
        }
    }

    fn into_certificate(self) -> Result<Certificate<'a>, Malformed> {
        if self.certificate != VERSION {
            return Err(other_version(self.certificate.into()));
        }
        let fingerprint = Fingerprint::parse(&self.history)
            .ok_or_else(|| malformed("\"history\" is not a fingerprint of 32 hexadecimal digits"))?;
        let level = Level::parse(&self.level).map_err(|unknown| malformed(unknown.to_string()))?;
        if (level.session, level.realtime) != (self.session_order, self.real_time) {
            return Err(malformed(format!(
                "\"session_order\" and \"real_time\" are {} and {}, and {level} means {} and {}",
                self.session_order, self.real_time, level.session, level.realtime
            )));
        }
        if self.by != BY {
            return Err(malformed(format!("\"by\" is not {BY:?}: there are no other certificates")));
        }
        let ryow = (POLICIES.into_iter())
            .find(|policy| policy.name() == self.ryow)
            .ok_or_else(|| malformed("\"ryow\" is not one of must, may, never"))?;
        let verdict: VerdictKind = (self.verdict.parse())
            .map_err(|_| malformed("\"verdict\" is not one of accepted, violated, undecided"))?;
        let fields = (verdict, self.order, self.core, self.edges, self.proof, self.reason);
        let claim = match fields {
            (VerdictKind::Accepted, Some(order), None, None, None, None) => {
                Claim::Accepted { order: order.into_owned() }
            }
            (VerdictKind::Violated, None, Some(core), edges, proof, None) => Claim::Violated {
                core: core.into_owned(),
                edges: edges.map(Cow::into_owned).unwrap_or_default(),
                proof: proof.map(Cow::into_owned).unwrap_or_default(),
            },
            (VerdictKind::Undecided, None, None, None, None, Some(reason)) => Claim::Undecided { reason },
            (VerdictKind::Accepted | VerdictKind::Violated | VerdictKind::Undecided, ..) => {
                return Err(malformed(
                    "an accepted history has \"order\", a violated one \"core\" and perhaps \"edges\" and \
                     \"proof\", an undecided one \"reason\", and nothing else",
                ));
            }
        };
        Ok(Certificate { file: self.file, fingerprint, level, ryow, clock_skew: self.clock_skew, claim })
    }
}

impl Serialize for Mention<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Name(name) => serializer.serialize_str(name),
            Self::Place(place) => serializer.serialize_u64(*place),
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Mention<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameOrPlace;
        impl<'de> Visitor<'de> for NameOrPlace {
            type Value = Mention<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a transaction's name, or its place in the history")
            }

            fn visit_borrowed_str<E: Error>(self, name: &'de str) -> Result<Self::Value, E> {
                Ok(Mention::Name(Cow::Borrowed(name)))
            }

            fn visit_str<E: Error>(self, name: &str) -> Result<Self::Value, E> {
                Ok(Mention::Name(Cow::Owned(name.to_owned())))
            }

            fn visit_u64<E: Error>(self, place: u64) -> Result<Self::Value, E> {
                Ok(Mention::Place(place))
            }
        }
        deserializer.deserialize_any(NameOrPlace)
    }
}
