//! What is asked of an object as a whole.
//!
//! A negated schema is *broken* by one key: a value that its `properties` forbid, a required key that is missing, a key that
//! `propertyNames` rules out. Those are choices on the way, and one demand covers them all. What it says about
//! counts and dependencies is broken by the opposite, which makes demands of their own.

use super::super::super::keywords::Window;
use super::super::super::schemas::SchemaId;
use super::super::Lowerer;
use super::super::array::outside;
use super::{Facts, is_open};

/// What is asked of an object as a whole.
#[derive(Clone, Debug, Default)]
pub(super) struct Demands<'s> {
    pub(super) window: Window,
    /// Schemas that some key must break.
    pub(super) broken: Vec<SchemaId>,
    pub(super) required: Vec<&'s str>,
    pub(super) forbidden: Vec<&'s str>,
}

impl Demands<'_> {
    /// Whether nothing but a count is asked for.
    pub(super) fn is_plain(&self) -> bool {
        self.broken.is_empty() && self.required.is_empty() && self.forbidden.is_empty()
    }
}

impl<'s> Lowerer<'s> {
    /// The demands of a case: several, if a negated schema can be broken in several ways. `None` after a problem.
    pub(super) fn object_demands(&mut self, facts: &Facts<'s>) -> Option<Vec<Demands<'s>>> {
        let mut window = Window::default();
        for &id in &facts.positive {
            window = window.and(self.keywords(id).property_count);
        }
        let mut all = vec![Demands { window, ..Demands::default() }];
        for &id in &facts.negative {
            let keywords = self.keywords(id);
            let by_key = keywords.properties.is_some_and(|map| !map.is_empty())
                || keywords.pattern_properties.is_some()
                || keywords.additional.is_some()
                || keywords.property_names.is_some();
            let mut ways: Vec<Demands<'s>> = Vec::new();
            for demands in &all {
                if let (false, [name]) = (by_key, &*keywords.required) {
                    // A key that must be missing is simply forbidden.
                    let mut way = demands.clone();
                    way.forbidden.push(name);
                    ways.push(way);
                } else if by_key || !keywords.required.is_empty() {
                    let mut way = demands.clone();
                    way.broken.push(id);
                    ways.push(way);
                }
                if !is_open(keywords.property_count) {
                    for window in outside(keywords.property_count) {
                        let mut way = demands.clone();
                        way.window = way.window.and(window);
                        ways.push(way);
                    }
                }
                for (name, needed) in &keywords.dependent_required {
                    for missing in needed {
                        let mut way = demands.clone();
                        way.required.push(name);
                        way.forbidden.push(missing);
                        ways.push(way);
                    }
                }
            }
            all = ways;
            if all.len() > self.context.options.limits.cases {
                let limit = self.context.options.limits.cases;
                let message = format!("the negated schemas make more than {limit} cases");
                self.exceed("cases", self.schemas.path(id), "", message);
                return None;
            }
        }
        all.retain(|demands| !demands.required.iter().any(|name| demands.forbidden.contains(name)));
        if all.len() > 1 {
            all.retain(|demands| !demands.window.is_empty());
        }
        Some(all)
    }
}
