//! The page: one file without anything from elsewhere.

/// The page.
pub(crate) const PAGE: &str = include_str!("page.html");

/// It may run its own script and ask its own server, and nothing else.
pub(crate) const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; img-src data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";
