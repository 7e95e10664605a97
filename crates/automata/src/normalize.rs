//! The constructors that normalize: concatenation, alternation, repetition, intersection, complement.
//!
//! Every rule is an equation of languages, so it never changes what an expression means. Together the rules make
//! alternation and intersection associative, commutative and idempotent, which Brzozowski's theorem requires: an
//! expression then has finitely many derivatives. The other rules keep the number small. Two of them matter in
//! practice:
//!
//! * `x{a,b}·t | x{c,d}·t` becomes one repetition when the ranges touch. Without this rule the states of `.*a.{0,20}`
//!   are sets of counters, a million of them; with it there are 22.
//! * `¬x ∧ ¬y` becomes `¬(x | y)`: "none of these names" stays one complement, for any number of names.

use crate::{ByteSet, Expr, ExprId, Exprs};

impl Exprs {
    /// Matches `a` followed by `b`.
    pub fn concat2(&mut self, a: ExprId, b: ExprId) -> ExprId {
        if a == ExprId::NEVER || b == ExprId::NEVER {
            return ExprId::NEVER;
        }
        let (mut heads, mut last) = (Vec::new(), a);
        while let Expr::Concat(head, tail) = *self.get(last) {
            heads.push(head);
            last = tail;
        }
        heads.push(last);
        heads.into_iter().rev().fold(b, |tail, head| self.prepend(head, tail))
    }

    /// Builds a sequence whose head is not a sequence.
    fn prepend(&mut self, head: ExprId, tail: ExprId) -> ExprId {
        match (head, tail) {
            (ExprId::EMPTY, other) | (other, ExprId::EMPTY) => other,
            _ => match self.join_repeats(head, tail) {
                Some(joined) => joined,
                None => self.intern(Expr::Concat(head, tail)),
            },
        }
    }

    /// `x{a,b}·x{c,d}·t = x{a+c,b+d}·t`
    fn join_repeats(&mut self, head: ExprId, tail: ExprId) -> Option<ExprId> {
        let Expr::Repeat { body, min, max } = *self.get(head) else { return None };
        let (next, rest) = self.split_head(tail);
        let Expr::Repeat { body: body2, min: min2, max: max2 } = *self.get(next) else { return None };
        if body != body2 {
            return None;
        }
        let min = min.checked_add(min2)?;
        let max = match (max, max2) {
            (Some(a), Some(b)) => Some(a.checked_add(b)?),
            _ => None,
        };
        let joined = self.repeat(body, min, max);
        Some(self.concat2(joined, rest))
    }

    /// Returns the head and the tail of a sequence. The tail of everything else is the empty string.
    fn split_head(&self, id: ExprId) -> (ExprId, ExprId) {
        match *self.get(id) {
            Expr::Concat(head, tail) => (head, tail),
            _ => (id, ExprId::EMPTY),
        }
    }

    /// Matches one of the parts.
    pub fn alt(&mut self, parts: impl IntoIterator<Item = ExprId>) -> ExprId {
        let mut flat: Vec<ExprId> = Vec::new();
        for part in parts {
            match self.get(part) {
                Expr::Alt(inner) => flat.extend_from_slice(inner),
                _ => flat.push(part),
            }
        }
        if let [only] = *flat {
            return only;
        }
        self.merge_repeats(&mut flat);
        if flat.contains(&ExprId::ANYTHING) {
            return ExprId::ANYTHING;
        }
        let (mut set, mut empty) = (ByteSet::EMPTY, false);
        flat.retain(|&part| match self.get(part) {
            Expr::Never => false,
            Expr::Empty => {
                empty = true;
                false
            }
            Expr::Set(other) => {
                set = set.union(*other);
                false
            }
            _ => true,
        });
        if empty && !flat.iter().any(|&part| self.is_nullable(part)) {
            flat.push(ExprId::EMPTY);
        }
        if !set.is_empty() {
            flat.push(self.set(set));
        }
        flat.sort_unstable();
        flat.dedup();
        if self.has_opposites(&flat) {
            return ExprId::ANYTHING;
        }
        match *flat {
            [] => ExprId::NEVER,
            [only] => only,
            _ => self.intern(Expr::Alt(flat.into())),
        }
    }

    /// `x{a,b}·t | x{c,d}·t = x{a,max(b,d)}·t` where `a ≤ c ≤ b + 1`.
    fn merge_repeats(&mut self, parts: &mut Vec<ExprId>) {
        let is_repeat = |id: &ExprId| matches!(self.get(self.split_head(*id).0), Expr::Repeat { .. });
        if parts.iter().filter(|id| is_repeat(id)).nth(1).is_none() {
            return;
        }
        let mut found: Vec<Counted> = Vec::new();
        parts.retain(|&part| {
            let (head, tail) = self.split_head(part);
            let Expr::Repeat { body, min, max } = *self.get(head) else { return true };
            found.push(Counted { body, tail, min, max });
            false
        });
        found.sort_unstable_by_key(|part| (part.body, part.tail, part.min));
        let mut merged: Vec<Counted> = Vec::with_capacity(found.len());
        for part in found {
            match merged.last_mut() {
                Some(last) if last.touches(&part) => {
                    last.max = last.max.zip(part.max).map(|(a, b)| a.max(b));
                }
                _ => merged.push(part),
            }
        }
        for part in merged {
            let head = self.repeat(part.body, part.min, part.max);
            parts.push(self.concat2(head, part.tail));
        }
    }

    /// Matches `body` at least `min` and at most `max` times; nothing if `max` is less than `min`.
    pub fn repeat(&mut self, mut body: ExprId, mut min: u32, mut max: Option<u32>) -> ExprId {
        if max.is_some_and(|max| max < min) {
            return ExprId::NEVER;
        }
        loop {
            // A body that matches the empty string can replace a missing repetition.
            if self.is_nullable(body) {
                min = 0;
            }
            if min == 0 {
                body = self.without_empty(body);
            }
            match (body, min, max) {
                (_, _, Some(0)) | (ExprId::EMPTY, _, _) | (ExprId::NEVER, 0, _) => return ExprId::EMPTY,
                (ExprId::NEVER, _, _) | (_, 1, Some(1)) => return body,
                _ => {}
            }
            let Some((inner, low, high)) = self.collapse(body, min, max) else {
                return self.intern(Expr::Repeat { body, min, max });
            };
            (body, min, max) = (inner, low, high);
        }
    }

    /// Returns `(x{i,j}){min,max}` as one repetition of `x`, if there is one: the sums of `min` to `max` numbers
    /// between `i` and `j` must have no gap.
    fn collapse(&self, body: ExprId, min: u32, max: Option<u32>) -> Option<(ExprId, u32, Option<u32>)> {
        let Expr::Repeat { body: inner, min: i, max: j } = *self.get(body) else { return None };
        let open = max.is_none() || j.is_none();
        if !(i == 0 || Some(min) == max || open && i == 1) {
            return None;
        }
        let high = match (max, j) {
            (Some(max), Some(j)) => Some(max.checked_mul(j)?),
            _ => None,
        };
        Some((inner, min.checked_mul(i)?, high))
    }

    /// Removes the empty string from the alternatives, where it is one of them.
    fn without_empty(&mut self, id: ExprId) -> ExprId {
        match self.get(id) {
            Expr::Alt(parts) if parts.contains(&ExprId::EMPTY) => {
                let parts: Vec<ExprId> =
                    parts.iter().copied().filter(|&part| part != ExprId::EMPTY).collect();
                self.alt(parts)
            }
            _ => id,
        }
    }

    /// Matches what all parts match; everything if there are no parts.
    pub fn and(&mut self, parts: impl IntoIterator<Item = ExprId>) -> ExprId {
        let mut flat: Vec<ExprId> = Vec::new();
        for part in parts {
            match self.get(part) {
                Expr::Never => return ExprId::NEVER,
                Expr::And(inner) => flat.extend_from_slice(inner),
                _ => flat.push(part),
            }
        }
        flat.sort_unstable();
        flat.dedup();
        if let [only] = *flat {
            return only;
        }
        let (mut set, mut excluded) = (None::<ByteSet>, Vec::new());
        flat.retain(|&part| match self.get(part) {
            Expr::Set(other) => {
                set = Some(set.map_or(*other, |set| set.intersection(*other)));
                false
            }
            Expr::Not(inner) => {
                excluded.push(*inner);
                false
            }
            _ => part != ExprId::ANYTHING,
        });
        if let Some(set) = set {
            flat.push(self.set(set));
        }
        if !excluded.is_empty() {
            let excluded = self.alt(excluded);
            flat.push(self.not(excluded));
        }
        if flat.contains(&ExprId::EMPTY) {
            let nullable = flat.iter().all(|&part| self.is_nullable(part));
            return if nullable { ExprId::EMPTY } else { ExprId::NEVER };
        }
        flat.sort_unstable();
        flat.dedup();
        if flat.contains(&ExprId::NEVER) || self.has_opposites(&flat) {
            return ExprId::NEVER;
        }
        match *flat {
            [] => ExprId::ANYTHING,
            [only] => only,
            _ => self.intern(Expr::And(flat.into())),
        }
    }

    /// Matches every byte string that `inner` does not match.
    pub fn not(&mut self, inner: ExprId) -> ExprId {
        match *self.get(inner) {
            Expr::Never => ExprId::ANYTHING,
            Expr::Not(inner) => inner,
            _ if inner == ExprId::ANYTHING => ExprId::NEVER,
            _ => self.intern(Expr::Not(inner)),
        }
    }

    /// Checks whether a sorted list contains both `x` and `¬x`.
    fn has_opposites(&self, sorted: &[ExprId]) -> bool {
        sorted.iter().any(|&part| match *self.get(part) {
            Expr::Not(inner) => sorted.binary_search(&inner).is_ok(),
            _ => false,
        })
    }
}

/// `body{min,max}·tail`
struct Counted {
    body: ExprId,
    tail: ExprId,
    min: u32,
    max: Option<u32>,
}

impl Counted {
    /// Checks whether the union with `next`, which must not begin earlier, is one range again.
    fn touches(&self, next: &Self) -> bool {
        self.body == next.body
            && self.tail == next.tail
            && self.max.is_none_or(|max| next.min <= max.saturating_add(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn abc(e: &mut Exprs) -> [ExprId; 3] {
        [e.bytes(b"ax"), e.bytes(b"bx"), e.bytes(b"cx")]
    }

    #[test]
    fn sequences_are_lists() {
        let mut e = Exprs::new();
        let [a, b, c] = abc(&mut e);
        let left = e.concat2(a, b);
        let left = e.concat2(left, c);
        let right = e.concat2(b, c);
        assert_eq!(left, e.concat2(a, right));
        assert_eq!(left, e.bytes(b"axbxcx"));
        assert_eq!(e.concat([a, ExprId::EMPTY, ExprId::NEVER]), ExprId::NEVER);
    }

    #[test]
    fn alternation_and_intersection_are_sets() {
        let mut e = Exprs::new();
        let [a, b, c] = abc(&mut e);
        let ab = e.alt([a, b]);
        assert_eq!(e.alt([ab, c]), e.alt([c, b, a, a, ExprId::NEVER]));
        let ab = e.and([a, b]);
        assert_eq!(e.and([ab, c]), e.and([c, b, a, ExprId::ANYTHING]));
        let not_a = e.not(a);
        assert_eq!(e.alt([a, b, not_a]), ExprId::ANYTHING);
        assert_eq!(e.and([a, b, not_a]), ExprId::NEVER);
        let not_b = e.not(b);
        let either = e.alt([a, b]);
        assert_eq!(e.and([not_a, not_b]), e.not(either));
        assert_eq!(e.not(not_a), a);
        assert_eq!(e.and([a, ExprId::EMPTY]), ExprId::NEVER);
        assert_eq!(e.and([]), ExprId::ANYTHING);
        assert_eq!(e.alt([]), ExprId::NEVER);
    }

    #[test]
    fn repetitions_of_repetitions_collapse() {
        let mut e = Exprs::new();
        let [a, ..] = abc(&mut e);
        let star = e.star(a);
        let plus = e.repeat(a, 1, None);
        let optional = e.optional(a);
        for inner in [star, plus, optional] {
            assert_eq!(e.star(inner), star, "{inner:?}");
        }
        assert_eq!(e.repeat(star, 2, Some(7)), star);
        assert_eq!(e.repeat(plus, 1, None), plus);
        let thousand = e.repeat(a, 1000, Some(1000));
        assert_eq!(e.repeat(thousand, 1000, Some(1000)), e.repeat(a, 1_000_000, Some(1_000_000)));
        assert_eq!(e.repeat(a, 3, Some(2)), ExprId::NEVER);
        assert_eq!(e.repeat(a, 1, Some(1)), a);
        assert_eq!(e.repeat(a, 0, Some(0)), ExprId::EMPTY);
    }

    #[test]
    fn counters_that_touch_are_one() {
        let mut e = Exprs::new();
        let [a, b, _] = abc(&mut e);
        let (low, high) = (e.repeat(a, 0, Some(3)), e.repeat(a, 4, Some(9)));
        let (low, high) = (e.concat2(low, b), e.concat2(high, b));
        let whole = e.repeat(a, 0, Some(9));
        let whole = e.concat2(whole, b);
        assert_eq!(e.alt([high, low]), whole);
        let apart = e.repeat(a, 5, Some(9));
        let apart = e.concat2(apart, b);
        assert!(matches!(e.alt([apart, low]), id if matches!(e.get(id), Expr::Alt(_))));
    }
}
