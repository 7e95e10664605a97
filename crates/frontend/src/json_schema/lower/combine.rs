//! `$ref`, `anyOf`, `oneOf` and `allOf`.
//!
//! A combinator is lowered by handing the set of possible types down to its branches, which is exact as long as no other
//! keyword beside it is about one of these types. `oneOf` asks for exactly one branch; where the
//! branches exclude one another, that is the same as `anyOf`, and elsewhere it is refused for now.

use std::collections::HashMap;

use maskwright_grammar::{ExprId, RuleId};
use serde_json::Value;

use super::super::error::Reason;
use super::super::keywords::Keywords;
use super::super::path::PathId;
use super::super::resolve::resolve;
use super::super::types::TypeSet;
use super::Lowerer;
use super::disjoint;

/// A reference that leads from one rule to another before anything is written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hop {
    from: RuleId,
    to: RuleId,
    path: PathId,
}

impl<'s> Lowerer<'s> {
    /// The values that the combinator of a schema allows.
    pub(super) fn combined(&mut self, keywords: &Keywords<'s>, path: PathId, types: TypeSet) -> ExprId {
        if !self.stands_alone(keywords, path, types) {
            return self.grammar.never();
        }
        if let Some(reference) = keywords.reference {
            return self.reference(reference, path, types);
        }
        if let Some(branches) = keywords.any_of {
            return self.branches(branches, "anyOf", path, types);
        }
        if let Some(branches) = keywords.one_of {
            let Some((a, b)) = disjoint::overlap(&mut self.context, branches, types) else {
                return self.branches(branches, "oneOf", path, types);
            };
            let message = format!(
                "`oneOf` is not enforced yet where two branches may hold at once (as {a} and {b} may)"
            );
            self.context.unsupported(
                path,
                "oneOf",
                message,
                "use `anyOf`, or give the branches different types or a required property with different constants",
            );
            return self.grammar.never();
        }
        let branches = keywords.all_of.unwrap_or_default();
        if branches.len() == 1 {
            return self.branches(branches, "allOf", path, types);
        }
        let message = format!("`allOf` with {} schemas is not enforced yet", branches.len());
        self.context.unsupported(path, "allOf", message, "merge them into one schema");
        self.grammar.never()
    }

    /// Whether there is one combinator and nothing beside it that would have to be merged into its branches.
    fn stands_alone(&mut self, keywords: &Keywords<'s>, path: PathId, types: TypeSet) -> bool {
        let mut combinators = keywords.combinators();
        let (first, second) = (combinators.next().unwrap_or("allOf"), combinators.next());
        if let Some(second) = second {
            let message = format!("`{second}` beside `{first}` is not enforced yet");
            self.context.unsupported(path, second, message, "merge the two by hand");
            return false;
        }
        if keywords.asserted.meets(types) {
            let message =
                format!("`{first}` beside other keywords that constrain the same value is not enforced yet");
            self.context.unsupported(path, first, message, "move the other keywords into each branch");
            return false;
        }
        true
    }

    fn branches(
        &mut self,
        branches: &'s [Value],
        keyword: &'static str,
        path: PathId,
        types: TypeSet,
    ) -> ExprId {
        let path = self.context.report.paths.keyword(path, keyword);
        let mut parts = Vec::with_capacity(branches.len());
        for (i, branch) in branches.iter().enumerate() {
            let path = self.context.report.paths.index(path, i);
            parts.push(self.schema(branch, path, types));
        }
        self.grammar.alt(parts)
    }

    fn reference(&mut self, reference: &str, path: PathId, types: TypeSet) -> ExprId {
        let Some((target, at)) = resolve(&mut self.context, reference, path) else {
            return self.grammar.never();
        };
        self.referred = true;
        let rule = self.rule_for(target, at, types);
        if let Some(from) = self.from {
            self.hops.push(Hop { from, to: rule, path });
        }
        self.grammar.rule(rule)
    }

    /// Refuses references that lead in a circle without writing anything, such as `{"$ref": "#"}` at the root.
    pub(super) fn refuse_idle_references(&mut self) {
        // Rules that only lead out of the graph are taken away until none is left; what remains holds a circle.
        let mut leads: HashMap<RuleId, usize> = HashMap::new();
        let mut arrivals: HashMap<RuleId, Vec<RuleId>> = HashMap::new();
        for hop in &self.hops {
            *leads.entry(hop.from).or_default() += 1;
            arrivals.entry(hop.to).or_default().push(hop.from);
        }
        let mut done: Vec<RuleId> =
            arrivals.keys().copied().filter(|rule| !leads.contains_key(rule)).collect();
        while let Some(rule) = done.pop() {
            for from in arrivals.remove(&rule).unwrap_or_default() {
                if let Some(count) = leads.get_mut(&from) {
                    *count -= 1;
                    if *count == 0 {
                        leads.remove(&from);
                        done.push(from);
                    }
                }
            }
        }
        if let Some(hop) =
            self.hops.iter().find(|hop| leads.contains_key(&hop.from) && leads.contains_key(&hop.to))
        {
            let message = "the reference leads back to itself without describing anything".to_owned();
            let help = "let one schema on the way describe a value";
            self.context.problem(Reason::Reference, hop.path, "$ref", message, help);
        }
    }
}
