//! The one-line notation (`.hist`): histories as a person writes them, for tests, documents and explanations.
//!
//! What: one session a line, transactions separated by `|`. Everything a history holds can be written.
//! Invariant: [`to_string`] writes what [`parse`] reads as the same history, transactions in session order.
//! Steps: each line is read by recursive descent straight into the builder; nesting is limited.
//! Cost: one pass.
//!
//! ```
//! use taipan_history::formats::notation;
//!
//! let text = r#"
//! init: x=0                                   # before the first transaction; other keys are absent
//! s1: w(x,1) r(y,_) | r(x,1)                  # `_` is absent
//! s2: r(x,1) w(x,2)! | scan(a..m)=[b:3 c:4] | d(y) | a(l,5) r(l,[1 5])    # `!` aborted
//! s3: q(value>=2)=[x:2] | u(value=2 -> 3)?                                # `?` unknown outcome
//! "#;
//! let history = notation::parse(text).unwrap();
//! assert_eq!(history.len(), 8);
//! assert_eq!(
//!     notation::to_string(&history),
//!     "init: x=0\n\
//!      s1: w(x,1) r(y,_) | r(x,1)\n\
//!      s2: r(x,1) w(x,2)! | scan(a..m)=[b:3 c:4] | d(y) | a(l,5) r(l,[1 5])\n\
//!      s3: q(value>=2)=[x:2] | u(value=2 -> 3)?\n"
//! );
//! ```
//!
//! # Grammar
//!
//! White space (and, in lists, a comma) separates; `#` begins a comment that lasts to the end of its line.
//!
//! ```text
//! line         = [ "init:" { key "=" value } | "level:" name | "header:" object
//!                | name ":" transaction { "|" transaction } ]
//! transaction  = [ "[" name "]" ] ( operation { operation } | "()" ) { mark }
//! mark         = "!" | "?"                  aborted, outcome unknown; at most one of them
//!              | "@" time ".." [ time ]     the client's clock at begin and at the answer
//!              | "@@" stamp ".." [ stamp ]  the database's timestamps of start and commit
//!              | "~" name                   the level that the transaction asked for
//!              | "%%" object                its `ctx` and `seq`, as in %%{"ctx":{"sql":"COMMIT"}}
//! time         = integer
//! stamp        = integer [ "." integer ]    physical and logical part
//! operation    = ( one | ranged | filtered ) [ "^" time ".." [ time ] ] [ "%" object ]
//!                                           the client's clock around it; its `ctx`, as in %{"ctx":{}}
//! one          = ( "r" | "ru" | "rs" ) "(" key [ "," value ] ")"   read; locking for update; for share
//!              | "w(" key "," value ")"  |  "a(" key "," value ")"  |  "d(" key ")"   write, append, delete
//! ranged       = ( "scan" | "iter" ) "(" [ key ] ".." [ key ] [ "desc" ] ")" [ "=" rows ]
//! filtered     = "q(" predicate ")" [ "=" rows ]
//!              | "u(" predicate "->" value ")" [ "=" reported ]
//!              | "dw(" predicate ")" [ "=" reported ]
//! rows         = "[" { key ":" value } [ "end" ] "]"  |  "[ ? end ]"  |  "?"    `end`: the iterator was exhausted
//! reported     = integer [ "[" { key } "]" ]  |  "[" { key } "]"  |  "?"        rows changed, and which
//! predicate    = conjunction { "or" conjunction }
//! conjunction  = condition { "&" condition }
//! condition    = "*" | "none" | "not" condition | "(" predicate ")" | name comparison value
//! comparison   = "=" | "!=" | "<" | "<=" | ">" | ">="
//! key          = integer | name
//! value        = "_" | "?" | "true" | "false" | number | name | "[" { value } "]" | "{" { name ":" scalar } "}"
//! object       = a JSON object, on the same line
//! name         = word | string in double quotes, escaped as in JSON
//! word         = letters, digits, "_", "-", "/", "$", and "." before another of these
//! ```
//!
//! * A word that is an integer is the integer `1`; the string is `"1"`. Other words are strings, so `r(x,abc)` read
//!   the string `abc`.
//! * A result that is left out, or `?`, is not known: `r(x)`, `scan(a..m)`, `u(value=2 -> 3)`.
//! * A scalar answers to the column `value`. `*` holds for every row, `none` for none.
//! * A session may go on in a later line. `init`, `level` and `header` come before the first transaction; a
//!   session of that name is written in quotes.
//! * The end of a time may be left out where the answer never came: only if the transaction is not committed.
//!
//! ```
//! # use taipan_history::formats::notation;
//! # fn same(text: &str) {
//! #     assert_eq!(notation::to_string(&notation::parse(text).unwrap()), text);
//! # }
//! // Times of the client, timestamps of the database, names of transactions, levels.
//! same("1: [t7] w(x,1) @100..180 @@7..9.2 | ru(x,1)^5..7 ~read-committed | r(x)? @200..\n");
//! // Rows with columns, lists, texts that need quotes.
//! same("s1: w(x,{a:1 b:\"two words\"}) r(l,[1 _ true 1.5 []]) w(\"_\",\"1\")\n");
//! // Iterators: the first keys, or all of them; from the end.
//! same("s1: iter(a..m)=[b:3] iter(..)=[b:3 c:4 end] iter(1.. desc) scan(..9)=[]\n");
//! // Predicates.
//! same("s1: q(a>=1 & a<9 or not (b=x or c!=_))=[] dw(*)=2[x y] u(none -> _)=0\n");
//! ```

mod read;
mod write;

pub use read::{detect, read};
pub use write::write;

use super::{Fault, Warnings};
use crate::{Builder, History};

/// Reads a history from the notation.
pub fn parse(text: &str) -> Result<History, Fault> {
    let mut builder = Builder::new();
    read(text.as_bytes(), &mut builder, &mut Warnings::new(false))?;
    builder.finish().map_err(|error| Fault::new(0, error.to_string(), "a possible history"))
}

/// Writes a history in the notation without notes, which no check looks at: `ctx`, `seq` and the header's other fields.
/// [`write()`] keeps them.
pub fn to_string(history: &History) -> String {
    write::to_string(history)
}
