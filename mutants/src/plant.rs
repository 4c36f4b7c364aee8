//! Where faults go: source text in, source text with switches out.
//!
//! *What*: every mutant of a crate is compiled at once, each behind a switch that is off. So a crate is built once, and
//! a mutant costs no more than the tests that reach it (mutant schemata: Untch, Offutt and Harrold, ISSTA 1993).
//!
//! *Invariant*: with all switches off the program does what it did. Operands are neither copied nor moved about, only
//! wrapped, so faults inside each other do not multiply the text:
//!
//! ```text
//!   a < b     →  crate::switch::lt(7, &(a), &(b))                 on: <=
//!   a && b    →  { let left__ = a; if left__ != crate::switch::on(8) { b } else { left__ } }    on: ||
//!   a + b     →  crate::switch::add(9, a, b)                      on: -
//!   !a        →  crate::switch::not(10, a)                        on: a
//!   call(x);  →  if !crate::switch::on(11) { call(x); }           on: nothing
//!   fn f() -> bool { …  →  { if crate::switch::on(12) { return true; } …
//! ```
//!
//! What a compiler refuses in this form is found by compiling, and left out.

use proc_macro2::Span;
use std::ops::Range;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{BinOp, Block, Expr, ReturnType, Signature, Stmt, Type, UnOp};

/// The switches, for the crate that is planted into.
pub(crate) const SWITCH: &str = include_str!("switch.rs.txt");

/// One fault.
#[derive(Clone, Debug)]
pub(crate) struct Mutant {
    pub(crate) number: u32,
    pub(crate) line: usize,
    /// What it does, in words.
    pub(crate) what: String,
    /// The function it is in.
    pub(crate) function: String,
}

/// The text with all faults that are not `refused`, and what they are.
pub(crate) fn plant(
    source: &str,
    next: &mut u32,
    refused: impl Fn(u32) -> bool,
) -> Result<(String, Vec<Mutant>), syn::Error> {
    let file = syn::parse_file(source)?;
    let mut planting = Planting {
        source,
        next,
        refused: &refused,
        edits: Vec::new(),
        mutants: Vec::new(),
        functions: Vec::new(),
    };
    planting.visit_file(&file);
    let Planting { edits, mutants, .. } = planting;
    Ok((edited(source, edits), mutants))
}

/// A change of the text: at one place, closing what inner faults opened before opening what outer ones do.
struct Edit {
    at: usize,
    is_open: bool,
    removed: usize,
    text: String,
}

fn edited(source: &str, edits: Vec<Edit>) -> String {
    // Outer expressions are visited first: at one place they open first and close last.
    let mut edits: Vec<(usize, Edit)> = edits.into_iter().enumerate().collect();
    edits.sort_by_key(|(number, edit)| {
        let number = i64::try_from(*number).unwrap_or(i64::MAX);
        (edit.at, edit.is_open, if edit.is_open { number } else { -number })
    });
    let mut text = String::with_capacity(source.len() * 2);
    let mut done = 0;
    for (_, edit) in edits {
        text.push_str(&source[done..edit.at]);
        text.push_str(&edit.text);
        done = edit.at + edit.removed;
    }
    text.push_str(&source[done..]);
    text
}

struct Planting<'s> {
    source: &'s str,
    next: &'s mut u32,
    refused: &'s dyn Fn(u32) -> bool,
    edits: Vec<Edit>,
    mutants: Vec<Mutant>,
    functions: Vec<String>,
}

impl Planting<'_> {
    /// The number of a new fault; none if it is refused.
    fn number(&mut self, span: Span, what: String) -> Option<u32> {
        let number = *self.next;
        *self.next += 1;
        if (self.refused)(number) {
            return None;
        }
        let function = self.functions.last().cloned().unwrap_or_default();
        self.mutants.push(Mutant { number, line: span.start().line, what, function });
        Some(number)
    }

    fn open(&mut self, at: usize, text: String) {
        self.edits.push(Edit { at, is_open: true, removed: 0, text });
    }

    fn close(&mut self, at: usize, text: &str) {
        self.edits.push(Edit { at, is_open: false, removed: 0, text: text.to_owned() });
    }

    fn replace(&mut self, range: Range<usize>, text: &str) {
        self.edits.push(Edit { at: range.start, is_open: true, removed: range.len(), text: text.to_owned() });
    }

    fn binary(&mut self, binary: &syn::ExprBinary) {
        let Some((name, instead)) = other(&binary.op) else { return };
        if matches!(name, "and" | "or") && (is_chained(&binary.left) || is_chained(&binary.right)) {
            return;
        }
        let operator = binary.op.span();
        let (left, right) = (binary.left.span().byte_range(), binary.right.span().byte_range());
        let was = &self.source[operator.byte_range()];
        let Some(number) = self.number(operator, format!("{was} becomes {instead}")) else { return };
        let (begin, middle, end) = match name {
            "and" => (
                "{ let left__: bool = ".to_owned(),
                format!("; if left__ != crate::switch::on({number}) {{ "),
                " } else { left__ } }",
            ),
            "or" => (
                "{ let left__: bool = ".to_owned(),
                format!("; if left__ == crate::switch::on({number}) {{ "),
                " } else { left__ } }",
            ),
            "add" | "sub" => (format!("crate::switch::{name}({number}, "), ", ".to_owned(), ")"),
            _ => (format!("crate::switch::{name}({number}, &("), "), &(".to_owned(), "))"),
        };
        // A block at the beginning of a statement would be one by itself.
        let (begin, end) = (format!("({begin}"), format!("{end})"));
        self.open(left.start, begin);
        self.replace(operator.byte_range(), &middle);
        self.close(right.end, &end);
    }

    fn body(&mut self, signature: &Signature, block: &Block) {
        let begin = block.brace_token.span.open().byte_range().end;
        for value in instead_of(signature) {
            let what = match *value {
                "" => "does nothing".to_owned(),
                value => format!("returns {value}"),
            };
            if let Some(number) = self.number(signature.ident.span(), what) {
                self.open(begin, format!(" if crate::switch::on({number}) {{ return {value}; }} "));
            }
        }
    }
}

/// Whether an operand is part of a chain of `let`s.
fn is_chained(operand: &Expr) -> bool {
    match operand {
        Expr::Let(_) => true,
        Expr::Binary(binary) if matches!(binary.op, BinOp::And(_)) => {
            is_chained(&binary.left) || is_chained(&binary.right)
        }
        _ => false,
    }
}

/// The name of an operator's switch, and what it becomes.
fn other(operator: &BinOp) -> Option<(&'static str, &'static str)> {
    Some(match operator {
        BinOp::Lt(_) => ("lt", "<="),
        BinOp::Le(_) => ("le", "<"),
        BinOp::Gt(_) => ("gt", ">="),
        BinOp::Ge(_) => ("ge", ">"),
        BinOp::Eq(_) => ("eq", "!="),
        BinOp::Ne(_) => ("ne", "=="),
        BinOp::And(_) => ("and", "||"),
        BinOp::Or(_) => ("or", "&&"),
        BinOp::Add(_) => ("add", "-"),
        BinOp::Sub(_) => ("sub", "+"),
        _ => return None,
    })
}

/// What a function may return instead.
fn instead_of(signature: &Signature) -> &'static [&'static str] {
    let ReturnType::Type(_, returned) = &signature.output else { return &[""] };
    match &**returned {
        Type::Tuple(tuple) if tuple.elems.is_empty() => &[""],
        Type::Path(path) => {
            let name = path.path.segments.last().map(|last| last.ident.to_string());
            match name.as_deref() {
                Some("bool") => &["true", "false"],
                Some("usize" | "u64" | "u32" | "i64" | "u128") => &["0", "1"],
                Some("Option") => &["None"],
                Some("Vec" | "FxHashMap" | "FxHashSet" | "HashMap" | "HashSet" | "BTreeMap" | "BTreeSet") => {
                    &["Default::default()"]
                }
                _ => &[],
            }
        }
        _ => &[],
    }
}

fn is_of_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("test")
            || attribute.path().is_ident("cfg")
                && attribute.parse_args::<syn::Ident>().is_ok_and(|it| it == "test")
    })
}

impl<'ast> Visit<'ast> for Planting<'_> {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if !is_of_tests(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }

    // What is computed while compiling has no switches.
    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}
    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}
    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_trait_item_const(&mut self, _: &'ast syn::TraitItemConst) {}
    fn visit_type(&mut self, _: &'ast Type) {}
    fn visit_pat(&mut self, _: &'ast syn::Pat) {}
    fn visit_item_enum(&mut self, _: &'ast syn::ItemEnum) {}
    fn visit_generic_argument(&mut self, _: &'ast syn::GenericArgument) {}
    fn visit_expr_repeat(&mut self, repeat: &'ast syn::ExprRepeat) {
        self.visit_expr(&repeat.expr);
    }

    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        if function.sig.constness.is_some() || is_of_tests(&function.attrs) {
            return;
        }
        self.functions.push(function.sig.ident.to_string());
        self.body(&function.sig, &function.block);
        self.visit_block(&function.block);
        self.functions.pop();
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        if function.sig.constness.is_some() {
            return;
        }
        self.functions.push(function.sig.ident.to_string());
        self.body(&function.sig, &function.block);
        self.visit_block(&function.block);
        self.functions.pop();
    }

    fn visit_expr_binary(&mut self, binary: &'ast syn::ExprBinary) {
        self.binary(binary);
        visit::visit_expr_binary(self, binary);
    }

    fn visit_expr_unary(&mut self, unary: &'ast syn::ExprUnary) {
        if let UnOp::Not(not) = unary.op
            && let Some(number) = self.number(not.span(), "! goes away".to_owned())
        {
            self.replace(not.span().byte_range(), &format!("crate::switch::not({number}, "));
            self.close(unary.span().byte_range().end, ")");
        }
        visit::visit_expr_unary(self, unary);
    }

    fn visit_stmt(&mut self, statement: &'ast Stmt) {
        if let Stmt::Expr(expression, Some(_)) = statement {
            let is_assigning = matches!(expression, Expr::Binary(binary) if is_assignment(&binary.op));
            if is_assigning || matches!(expression, Expr::MethodCall(_) | Expr::Call(_) | Expr::Assign(_)) {
                let range = statement.span().byte_range();
                let text = self.source[range.clone()].lines().next().unwrap_or_default().to_owned();
                if let Some(number) = self.number(statement.span(), format!("without `{text}`")) {
                    self.open(range.start, format!("if !crate::switch::on({number}) {{ "));
                    self.close(range.end, " }");
                }
            }
        }
        visit::visit_stmt(self, statement);
    }
}

fn is_assignment(operator: &BinOp) -> bool {
    matches!(
        operator,
        BinOp::AddAssign(_)
            | BinOp::SubAssign(_)
            | BinOp::MulAssign(_)
            | BinOp::BitAndAssign(_)
            | BinOp::BitOrAssign(_)
            | BinOp::BitXorAssign(_)
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails where it unwraps")]

    use super::plant;

    fn planted(source: &str) -> String {
        plant(source, &mut 1, |_| false).unwrap().0
    }

    #[test]
    fn faults_inside_each_other_open_and_close_in_turn() {
        assert_eq!(
            planted("fn f(a: u8) -> u8 { if a < 1 && !b { c } else { d } }"),
            "fn f(a: u8) -> u8 { if ({ let left__: bool = (crate::switch::lt(2, &(a ), &( 1))) ; if left__ != \
             crate::switch::on(1) {  crate::switch::not(3, b) } else { left__ } }) { c } else { d } }"
        );
    }

    #[test]
    fn what_is_refused_keeps_its_number() {
        let source = "fn f() -> bool { g(); a == b }";
        let (text, mutants) = plant(source, &mut 1, |number| number == 2).unwrap();
        let numbers: Vec<u32> = mutants.iter().map(|mutant| mutant.number).collect();
        assert_eq!(numbers, [1, 3, 4], "{text}");
        assert!(text.contains("return true") && !text.contains("return false"), "{text}");
    }

    #[test]
    fn tests_constants_and_chains_of_lets_stay_as_they_are() {
        for source in [
            "const A: usize = 1 + 2;",
            "#[cfg(test)] mod tests { fn f() -> bool { a < b } }",
            "fn f() -> &str { if let Some(a) = b && let Some(c) = d { e } else { g } }",
            "const fn f() -> bool { a < b }",
        ] {
            assert_eq!(planted(source), source);
        }
    }
}
