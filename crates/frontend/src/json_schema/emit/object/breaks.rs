//! The ways in which members break schemas that must be broken: negated schemas, and those for keys that no other
//! schema evaluates.

use super::super::super::cases::{NodeId, ObjectCase, Signed};
use super::super::super::json::Value;
use super::super::super::path::PathId;
use super::super::super::schemas::SchemaId;
use super::super::Emitter;
use super::Member;

/// The maximum number of negated schemas of one object that must be broken key by key.
pub(super) const MAX_BROKEN_SCHEMAS: usize = 120;

/// The maximum number of ways to write one member.
pub(super) const MAX_MEMBER_WAYS: usize = 512;

/// The ways in which a member breaks a schema.
#[derive(Clone, Debug, Default)]
pub(super) struct Breaks {
    /// Whether the absence of the member breaks the schema.
    pub(super) absent: bool,
    /// Conditions on the value, each of which breaks the schema. `None` means that the key alone breaks it.
    pub(super) by: Vec<Option<Signed>>,
}

/// Returns the schemas that the absence of a member breaks, as bits.
pub(super) fn by_absence(row: &[Breaks]) -> u128 {
    row.iter().enumerate().fold(0, |bits, (i, breaks)| bits | u128::from(breaks.absent) << i)
}

/// Keeps the elements of a list at some positions.
pub(super) fn keep_places<T>(list: &mut Vec<T>, is_kept: impl Fn(usize) -> bool) {
    let mut place = 0..;
    list.retain(|_| place.next().is_some_and(&is_kept));
}

impl<'s> Emitter<'s> {
    /// Returns, for each member and each schema that must be broken, how the member breaks the schema.
    pub(super) fn member_breaks(
        &mut self,
        object: &ObjectCase<'s>,
        broken: &[SchemaId],
        members: &[Member<'s>],
    ) -> Vec<Vec<Breaks>> {
        let mut all = Vec::with_capacity(members.len());
        for member in members {
            let mut row = Vec::with_capacity(broken.len());
            for &id in broken {
                row.push(self.breaks_of(id, member));
            }
            for denied in &object.denied {
                let schema = self.algebra.unevaluated_member(denied, member.name);
                let by = schema.map(|schema| Some(Signed::minus(schema))).into_iter().collect();
                row.push(Breaks { absent: false, by });
            }
            all.push(row);
        }
        all
    }

    /// Returns how a member breaks a schema.
    pub(super) fn breaks_of(&mut self, id: SchemaId, member: &Member<'s>) -> Breaks {
        let keywords = self.algebra.keywords(id);
        let absent = !member.required && keywords.required.contains(&member.name);
        let schemas = self.algebra.member_schemas(id, &keywords, member.name);
        let mut by: Vec<Option<Signed>> =
            schemas.into_iter().map(|schema| Some(Signed::minus(schema))).collect();
        if let Some(names) = keywords.property_names
            && self.algebra.satisfies(&Value::String(member.name.into()), &[Signed::minus(names)])
        {
            by.push(None);
        }
        Breaks { absent, by }
    }

    /// Returns the ways to write one member: the schemas that its value must satisfy in addition to `parts`, and the
    /// schemas that are broken then. `broken` are the schemas broken before, `due` those that this member must break at
    /// the latest.
    ///
    /// A value that does not break a schema must satisfy it, so that the ways exclude one another and every text is
    /// parsed in one way only. The exception is a schema with a narrow format
    /// ([`Algebra::has_narrow_format`](super::super::super::cases::Algebra::has_narrow_format)), where the value may be
    /// any. Clearly empty ways are dropped, so there are few.
    pub(super) fn breaking_ways<'b>(
        &mut self,
        parts: &[Signed],
        breaks: impl Iterator<Item = &'b [Option<Signed>]>,
        (broken, due): (u128, u128),
        path: PathId,
    ) -> Vec<(Vec<Signed>, u128)> {
        let mut ways: Vec<(Vec<Signed>, u128)> = vec![(Vec::new(), broken)];
        for (i, by) in breaks.enumerate() {
            let bit = 1 << i;
            if broken & bit != 0 || by.is_empty() && due & bit == 0 {
                continue;
            }
            if by.contains(&None) {
                for way in &mut ways {
                    way.1 |= bit;
                }
                continue;
            }
            let mut next = Vec::with_capacity(ways.len() + 1);
            for (mut satisfied, broken) in ways {
                for part in by.iter().flatten() {
                    let breaking = [&*satisfied, &[*part]].concat();
                    if self.is_possible(parts, &breaking) {
                        next.push((breaking, broken | bit));
                    }
                    if !self.algebra.has_narrow_format(part.id) {
                        satisfied.push(part.flipped());
                    }
                }
                if due & bit == 0 && self.is_possible(parts, &satisfied) {
                    next.push((satisfied, broken));
                }
            }
            ways = next;
            if ways.len() > MAX_MEMBER_WAYS {
                let message =
                    format!("the negated schemas split one key into more than {MAX_MEMBER_WAYS} ways");
                self.algebra.context.halt(path, "", message, "negate fewer schemas of this object");
                return Vec::new();
            }
        }
        ways
    }

    pub(super) fn is_possible(&mut self, parts: &[Signed], more: &[Signed]) -> bool {
        self.algebra.possible_node_of(&[parts, more].concat()) != NodeId::NEVER
    }
}
