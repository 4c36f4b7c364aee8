//! Which format is it? The content decides, the name only where the content does not.

use super::Format;

/// How sure a format is that the content is its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Likeness {
    /// It is something else.
    No,
    /// It may be, if nothing else claims it.
    Possible,
    /// It is.
    Certain,
}

/// What a format may look at to recognise its own.
#[derive(Clone, Copy, Debug, Default)]
pub struct Probe<'a> {
    /// The first bytes of the content, decompressed; empty for a directory.
    pub head: &'a [u8],
    /// Whether `head` is the whole content.
    pub complete: bool,
    /// For a directory: its files, in natural order.
    pub files: Option<&'a [String]>,
}

impl<'a> Probe<'a> {
    /// How many bytes of the content a format gets to see.
    pub const HEAD_LEN: usize = 64 * 1024;

    /// The first bytes as text, without a byte order mark and up to the first byte that is none.
    pub fn text(&self) -> &'a str {
        let head = self.head.strip_prefix(BYTE_ORDER_MARK).unwrap_or(self.head);
        let valid = std::str::from_utf8(head).map_or_else(|error| error.valid_up_to(), str::len);
        std::str::from_utf8(&head[..valid]).unwrap_or("")
    }

    /// Whether the first bytes are text, but for a character that they may cut off.
    pub fn is_text(&self) -> bool {
        match std::str::from_utf8(self.head) {
            Ok(text) => !text.contains('\0'),
            Err(error) => error.error_len().is_none() && !self.complete,
        }
    }

    /// Whether it is a directory.
    pub fn is_directory(&self) -> bool {
        self.files.is_some()
    }
}

/// What some editors put before UTF-8 text.
pub(super) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The format of some content: the first that is certain; else the one that is possible and that the name asks
/// for; else the first that is possible; else, for text, the one that the name asks for, whose reader then says
/// what is wrong.
pub(super) fn detect(probe: &Probe<'_>, file_name: &str) -> Option<Format> {
    let mut possible = Vec::new();
    for &format in Format::ALL {
        match (format.row().detect)(probe) {
            Likeness::Certain => return Some(format),
            Likeness::Possible => possible.push(format),
            Likeness::No => {}
        }
    }
    let named = Format::from_file_name(file_name);
    let named_and_possible = named.filter(|format| possible.contains(format));
    named_and_possible
        .or(possible.first().copied())
        .or(named.filter(|_| !probe.is_directory() && probe.is_text()))
}

/// Why nothing recognised the content, in words that help.
pub(super) fn why_unrecognised(probe: &Probe<'_>) -> String {
    let head = probe.head;
    if head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff") {
        return "it is UTF-16 text; histories are UTF-8 (iconv -f UTF-16 -t UTF-8 converts it)".into();
    }
    let zeros = head.iter().take(256).filter(|&&byte| byte == 0).count();
    let zeros_at_odd = head.iter().take(256).skip(1).step_by(2).filter(|&&byte| byte == 0).count();
    if zeros > 20 && zeros == zeros_at_odd {
        return "it looks like UTF-16 text; histories are UTF-8 (iconv -f UTF-16LE -t UTF-8 converts it)"
            .into();
    }
    if !probe.is_text() {
        return "binary data of no known format, or damaged at its start".into();
    }
    "its first lines match no known format".into()
}
