//! Conditions on a whole object.
//!
//! A negated schema is *broken* by one key: by a value that its `properties` forbid, by the absence of a required key,
//! or by a key that its `propertyNames` excludes. Those are choices at each key, and one demand covers them all. Its
//! counts and dependencies are broken by the opposite condition, which makes a separate demand each.

use super::super::super::cases::ObjectCase;
use super::super::super::schemas::{SchemaId, Window};
use super::super::Emitter;

/// Conditions on a whole object.
#[derive(Clone, Debug, Default)]
pub(super) struct Demands<'s> {
    pub(super) window: Window,
    /// Schemas that some key must break.
    pub(super) broken: Vec<SchemaId>,
    pub(super) required: Vec<&'s str>,
    pub(super) forbidden: Vec<&'s str>,
}

impl Demands<'_> {
    /// Checks that there is no condition other than a count.
    pub(super) fn is_plain(&self) -> bool {
        self.broken.is_empty() && self.required.is_empty() && self.forbidden.is_empty()
    }
}

impl<'s> Emitter<'s> {
    /// Returns the alternative demands of a case. There are several if a negated schema can be broken in several ways.
    /// Returns `None` after an error.
    pub(super) fn object_demands(&mut self, object: &ObjectCase<'s>) -> Option<Vec<Demands<'s>>> {
        let mut window = Window::default();
        for &id in &object.positive {
            window = window.and(self.algebra.keywords(id).property_count);
        }
        let mut all = vec![Demands { window, ..Demands::default() }];
        for &id in &object.negative {
            let keywords = self.algebra.keywords(id);
            let is_broken_by_key = !keywords.properties.is_empty()
                || !keywords.pattern_properties.is_empty()
                || keywords.additional.is_some()
                || keywords.property_names.is_some();
            let mut ways: Vec<Demands<'s>> = Vec::new();
            for demands in &all {
                let mut add = |change: &dyn Fn(&mut Demands<'s>)| {
                    let mut way = demands.clone();
                    change(&mut way);
                    ways.push(way);
                };
                match &*keywords.required {
                    // A key whose absence breaks the schema is forbidden.
                    [name] if !is_broken_by_key => add(&|way| way.forbidden.push(name)),
                    [] if !is_broken_by_key => {}
                    _ => add(&|way| way.broken.push(id)),
                }
                for window in keywords.property_count.complement() {
                    add(&|way| way.window = way.window.and(window));
                }
                for (name, needed) in &keywords.dependent_required {
                    for missing in needed {
                        add(&|way| {
                            way.required.push(name);
                            way.forbidden.push(missing);
                        });
                    }
                }
            }
            all = ways;
            let limit = self.algebra.context.options.limits.cases;
            if all.len() > limit {
                let message = format!("the negated schemas make more than {limit} cases");
                self.algebra.context.exceed("cases", self.algebra.path(id), "", message);
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
