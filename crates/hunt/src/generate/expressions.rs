//! Typed expressions over the sources in scope.

use super::{Generator, InScope};
use crate::tree::{Arithmetic, Column, Comparison, Expr, Function, Literal, Type};

impl Generator<'_> {
    /// A value for a column: small enough that no chain of statements makes it overflow.
    pub(super) fn stored(&mut self, column: &Column, scope: &[InScope]) -> Expr {
        let depth = self.settings.depth.min(2);
        match column.kind {
            Type::Text if self.one_in(2) => self.leaf(Type::Text, scope),
            // Joined texts would grow without end.
            Type::Text => Expr::Literal(self.literal(Type::Text)),
            Type::Real => match self.one_in(2) {
                true => self.leaf(Type::Real, scope),
                false => Expr::Literal(self.literal(Type::Real)),
            },
            kind => bounded(self.value(kind, scope, depth)),
        }
    }

    /// A value for a column, without sub-queries.
    pub(super) fn plain(&mut self, column: &Column, scope: &[InScope]) -> Expr {
        match column.kind {
            Type::Integer => {
                let (left, right) = (self.leaf(Type::Integer, scope), self.leaf(Type::Integer, scope));
                bounded(Expr::Arithmetic(Arithmetic::Add, Box::new(left), Box::new(right)))
            }
            kind => self.leaf(kind, scope),
        }
    }

    /// A column of the type in scope, or a constant.
    pub(super) fn leaf(&mut self, kind: Type, scope: &[InScope]) -> Expr {
        let fitting: Vec<Expr> = scope
            .iter()
            .flat_map(|source| {
                let columns = source.columns.iter().filter(|column| column.kind == kind);
                columns.map(|column| Expr::Column { source: source.alias.clone(), column: column.clone() })
            })
            .collect();
        match self.pick(&fitting) {
            Some(column) if !self.one_in(4) => column.clone(),
            _ => Expr::Literal(self.literal(kind)),
        }
    }

    /// A value of a type.
    pub(super) fn value(&mut self, kind: Type, scope: &[InScope], depth: u32) -> Expr {
        if depth == 0 || self.one_in(3) {
            return self.leaf(kind, scope);
        }
        let depth = depth - 1;
        match self.random.below(10) {
            0 => {
                let (when, then) = (self.condition(scope, depth), self.value(kind, scope, depth));
                Expr::Case(Box::new(when), Box::new(then), Box::new(self.value(kind, scope, depth)))
            }
            1 => Expr::Call(
                Function::Coalesce,
                vec![self.value(kind, scope, depth), self.value(kind, scope, depth)],
            ),
            2 => Expr::Call(Function::NullIf, vec![self.value(kind, scope, depth), self.leaf(kind, scope)]),
            3 | 4 => self.scalar(kind, scope, depth),
            _ => match kind {
                Type::Integer => self.integer(scope, depth),
                Type::Real => self.real(scope, depth),
                Type::Text => self.text(scope, depth),
                Type::Truth => self.condition(scope, depth),
            },
        }
    }

    fn integer(&mut self, scope: &[InScope], depth: u32) -> Expr {
        match self.random.below(7) {
            0 => Expr::Call(Function::Length, vec![self.value(Type::Text, scope, depth)]),
            1 => Expr::Call(Function::Abs, vec![self.value(Type::Integer, scope, depth)]),
            2 => {
                let (left, right) = (self.leaf(Type::Integer, scope), self.leaf(Type::Integer, scope));
                let product =
                    Expr::Arithmetic(Arithmetic::Multiply, Box::new(bounded(left)), Box::new(bounded(right)));
                bounded(product)
            }
            3 => bounded(self.value(Type::Integer, scope, depth)),
            number => {
                let operator = if number < 6 { Arithmetic::Add } else { Arithmetic::Subtract };
                let left = bounded(self.value(Type::Integer, scope, depth));
                let right = bounded(self.value(Type::Integer, scope, depth));
                Expr::Arithmetic(operator, Box::new(left), Box::new(right))
            }
        }
    }

    fn real(&mut self, scope: &[InScope], depth: u32) -> Expr {
        match self.random.below(3) {
            0 => Expr::Call(Function::Abs, vec![self.value(Type::Real, scope, depth)]),
            number => {
                let operator = if number == 1 { Arithmetic::Add } else { Arithmetic::Subtract };
                let (left, right) = (self.leaf(Type::Real, scope), self.leaf(Type::Real, scope));
                Expr::Arithmetic(operator, Box::new(left), Box::new(right))
            }
        }
    }

    fn text(&mut self, scope: &[InScope], depth: u32) -> Expr {
        match self.random.below(2) {
            0 => Expr::Call(Function::Trim, vec![self.value(Type::Text, scope, depth)]),
            _ => {
                Expr::Call(Function::Concat, vec![self.leaf(Type::Text, scope), self.leaf(Type::Text, scope)])
            }
        }
    }

    /// A condition.
    pub(super) fn condition(&mut self, scope: &[InScope], depth: u32) -> Expr {
        let below = depth.saturating_sub(1);
        let choice = if depth == 0 { self.random.below(5) } else { self.random.below(13) };
        match choice {
            0..=2 => self.comparison(scope, below),
            3 => {
                let value = self.any_leaf(scope);
                Expr::IsNull(Box::new(value), self.one_in(2))
            }
            4 => self.in_list(scope),
            5 => {
                let (low, high) = (self.leaf(Type::Integer, scope), self.leaf(Type::Integer, scope));
                let value = self.value(Type::Integer, scope, below);
                Expr::Between(Box::new(value), Box::new(low), Box::new(high))
            }
            6 => {
                const PATTERNS: [&str; 5] = ["a%", "%b", "%", "_", "%a%"];
                let pattern = self.pick(&PATTERNS).copied().unwrap_or("%").to_owned();
                Expr::Like(Box::new(self.value(Type::Text, scope, below)), pattern)
            }
            7 | 8 => {
                let (left, right) = (self.condition(scope, below), self.condition(scope, below));
                Expr::Junction(self.one_in(2), Box::new(left), Box::new(right))
            }
            9 => Expr::Not(Box::new(self.condition(scope, below))),
            10 => {
                let query = self.exists_query(scope, below);
                Expr::Exists(Box::new(query), self.one_in(3))
            }
            11 => {
                let kind = self.column_type();
                let value = self.leaf(kind, scope);
                let query = self.in_query(kind, scope, below);
                Expr::In(Box::new(value), Box::new(query), self.one_in(3))
            }
            _ => {
                let kind = self.column_type();
                let (left, right) = (self.leaf(kind, scope), self.scalar(kind, scope, below));
                Expr::Compare(self.operator(), Box::new(left), Box::new(right))
            }
        }
    }

    fn operator(&mut self) -> Comparison {
        self.pick(&Comparison::ALL).copied().unwrap_or(Comparison::Equal)
    }

    fn comparison(&mut self, scope: &[InScope], depth: u32) -> Expr {
        let kind = self.column_type();
        let (left, right) = (self.leaf(kind, scope), self.value(kind, scope, depth));
        Expr::Compare(self.operator(), Box::new(left), Box::new(right))
    }

    fn any_leaf(&mut self, scope: &[InScope]) -> Expr {
        let kind = self.column_type();
        self.leaf(kind, scope)
    }

    fn in_list(&mut self, scope: &[InScope]) -> Expr {
        let kind = self.column_type();
        let value = self.leaf(kind, scope);
        let list = (0..self.random.between(1, 4)).map(|_| Expr::Literal(self.literal(kind))).collect();
        Expr::InList(Box::new(value), list, self.one_in(3))
    }
}

/// An integer between -1000 and 1000.
fn bounded(value: Expr) -> Expr {
    match value {
        Expr::Literal(Literal::Integer(_)) => value,
        value => Expr::Arithmetic(Arithmetic::Remainder, Box::new(value), Box::new(Expr::integer(1000))),
    }
}
