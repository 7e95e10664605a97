//! Combinators turned into cases.
//!
//! A node is expanded for one JSON type. Each member is taken from a list of things to do; what it says by itself joins the
//! case, and what it hands on joins the list. A choice (`anyOf`, a negated `allOf`, …) makes copies of the case,
//! one for each way:
//!
//! ```text
//! +{"required": ["a"], "oneOf": [x, y]}        for objects
//!
//! todo: +schema                   case: –
//! todo: oneOf                     case: +{"required": ["a"]}
//! todo: +x −y   |   todo: +y −x   case: the same, twice
//! ```
//!
//! A sign costs cases, so it is paid only where it matters: `−y` joins `+x` only if x and y can hold together, and a
//! case that is clearly empty ([`super::overlap`]) is dropped at once. That is what keeps a chain of `if`s about one
//! tag linear.
//!
//! # What was evaluated
//!
//! `unevaluatedProperties` is about the keys that no schema of the same value looked at, and in a finished case it is
//! known which schemas hold. Each such keyword opens a *tracker*, every schema that joins the case below it
//! contributes, and at the end the keyword is an `additionalProperties` beside all contributors. An `anyOf` below a tracker
//! is split into sets of branches and not into single ones, since a second branch that holds evaluates more.

use rustc_hash::FxHashSet;

use super::super::keywords::Keywords;
use super::super::schemas::{SchemaId, Step};
use super::super::types::TypeSet;
use super::Lowerer;
use super::node::{NodeId, Signed};

/// A conjunction: what schemas say by themselves about values of one type.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Case {
    /// Schemas without their combinators.
    pub(super) locals: Vec<Signed>,
    pub(super) others: Vec<Unevaluated>,
}

/// What `unevaluatedProperties` or `unevaluatedItems` means in one case.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Unevaluated {
    /// The schema with the keyword.
    pub(super) owner: SchemaId,
    /// The schemas that evaluate keys or items, the owner among them.
    pub(super) contributors: Vec<SchemaId>,
}

impl Case {
    pub(super) fn of(local: Signed) -> Self {
        Self { locals: vec![local], others: Vec::new() }
    }
}

/// How many pairs of branches of a `oneOf` may overlap. Each costs two signs.
const SIGNS: usize = 20_000;

/// How many branches of an `anyOf` are looked at in sets, below `unevaluatedProperties`.
const SETS: usize = 10;

/// A case in the making.
#[derive(Clone)]
struct Draft {
    case: Case,
    /// What is still to do; the last comes first.
    todo: Vec<Todo>,
    /// What was taken from the list, with its trackers. To say it again changes nothing, and `allOf` of two references to `allOf` of two
    /// references, and so on, would say it as often as there are paths.
    said: FxHashSet<(Signed, Vec<usize>)>,
}

#[derive(Clone)]
struct Todo {
    part: Signed,
    /// The trackers that the schema contributes to: places in [`Case::others`].
    trackers: Vec<usize>,
    /// The schemas that led here without a step into the value.
    trail: Vec<SchemaId>,
    /// Whether only what the schema says by itself is still to be added.
    own: bool,
}

impl Todo {
    fn new(part: Signed, trackers: &[usize], trail: &[SchemaId]) -> Self {
        Self { part, trackers: trackers.to_vec(), trail: trail.to_vec(), own: false }
    }
}

/// Ways to go on: each is a list of schemas that must hold, or must not.
type Ways = Vec<Vec<Signed>>;

impl<'s> Lowerer<'s> {
    /// The cases of a conjunction for values of one type; `None`, and a problem, if there are too many.
    pub(super) fn cases(&mut self, members: &[Signed], kind: TypeSet) -> Option<Vec<Case>> {
        let todo = members.iter().rev();
        let todo = todo.map(|&part| Todo::new(part, &[], &[])).collect();
        let mut work = vec![Draft { case: Case::default(), todo, said: FxHashSet::default() }];
        let (mut done, mut steps): (Vec<Case>, usize) = (Vec::new(), 0);
        let mut seen = FxHashSet::default();
        let limit = self.context.options.limits.cases;
        while let Some(mut draft) = work.pop() {
            steps += 1;
            if done.len() > limit || steps > limit.saturating_mul(20) {
                let path = self.path_of(members);
                let message =
                    format!("the combinations of this schema's branches make more than {limit} cases");
                self.exceed("cases", path, "", message);
                return None;
            }
            match self.advance(&mut draft, kind) {
                Advance::Done => {
                    if !is_known(&mut seen, done.iter(), &draft.case)
                        && !self.is_clearly_empty_case(&draft.case, kind)
                    {
                        done.push(draft.case);
                    }
                }
                Advance::Dead => {}
                Advance::Fork(drafts) => work.extend(drafts.into_iter().rev()),
            }
            if !self.context.error.is_empty() {
                return None;
            }
        }
        Some(done)
    }

    /// Works on a draft until it is finished, dead or has to fork.
    fn advance(&mut self, draft: &mut Draft, kind: TypeSet) -> Advance {
        while let Some(todo) = draft.todo.pop() {
            if self.is_halted() {
                return Advance::Dead;
            }
            if !todo.own && todo.trail.contains(&todo.part.id) {
                self.refuse_circle(todo.part.id);
                return Advance::Dead;
            }
            let keywords = self.keywords(todo.part.id);
            if !todo.own && !keywords.is_plain() && !draft.said.insert((todo.part, todo.trackers.clone())) {
                continue;
            }
            let step = if todo.part.negative {
                self.negative(&keywords, todo, draft, kind)
            } else {
                self.positive(&keywords, todo, draft, kind)
            };
            match step {
                Advance::Done => {}
                other => return other,
            }
        }
        Advance::Done
    }

    /// Adds what a schema says to a draft. `Done` means that the draft can go on.
    fn positive(&mut self, keywords: &Keywords<'s>, todo: Todo, draft: &mut Draft, kind: TypeSet) -> Advance {
        let id = todo.part.id;
        if !keywords.types.meets(kind) {
            return Advance::Dead;
        }
        if let Some(values) = keywords.listed()
            && !values.iter().any(|value| TypeSet::of(value).meets(kind))
        {
            return Advance::Dead;
        }
        if todo.own {
            return add(&mut draft.case, Signed::plus(id));
        }
        let mut trackers = todo.trackers;
        let unevaluated = if kind == TypeSet::OBJECT {
            keywords.unevaluated_properties
        } else {
            keywords.unevaluated_items.filter(|_| kind == TypeSet::ARRAY)
        };
        if unevaluated.is_some() {
            trackers.push(draft.case.others.len());
            draft.case.others.push(Unevaluated { owner: id, contributors: Vec::new() });
        }
        for &tracker in &trackers {
            let contributors = &mut draft.case.others[tracker].contributors;
            if !contributors.contains(&id) {
                contributors.push(id);
            }
        }
        let mut trail = todo.trail;
        trail.push(id);
        let says = says_about(keywords, kind);
        if says && (keywords.local_first || keywords.is_plain()) {
            if let Advance::Dead = add(&mut draft.case, Signed::plus(id)) {
                return Advance::Dead;
            }
        } else if says {
            // The keys of what the schema refers to come first, as its text has it.
            draft.todo.push(Todo { own: true, ..Todo::new(Signed::plus(id), &[], &trail) });
        }
        if keywords.is_plain() {
            return Advance::Done;
        }
        let mut beside: Vec<Signed> =
            draft.case.locals.iter().copied().filter(|local| !local.negative).collect();
        beside.retain(|local| local.id != id);
        if says {
            beside.push(Signed::plus(id));
        }
        let tracked = !trackers.is_empty();
        let Some((needed, choices)) = self.handed_on(id, keywords, kind, tracked, &beside) else {
            return Advance::Dead;
        };
        let base = draft.todo.len();
        draft.todo.extend(needed.into_iter().rev().map(|part| Todo::new(part, &trackers, &trail)));
        self.fork(draft, &choices, base, (&trackers, &trail), kind)
    }

    /// What the combinators of a schema hand the value on to: what must hold, and a list of choices.
    fn handed_on(
        &mut self,
        id: SchemaId,
        keywords: &Keywords<'s>,
        kind: TypeSet,
        tracked: bool,
        beside: &[Signed],
    ) -> Option<(Vec<Signed>, Vec<Ways>)> {
        let mut needed = Vec::new();
        let mut choices: Vec<Ways> = Vec::new();
        if let Some(reference) = keywords.reference {
            needed.push(Signed::plus(self.resolve(id, reference)?));
        }
        if let Some((reference, keyword)) = keywords.dynamic_reference {
            needed.push(Signed::plus(self.resolve_dynamic(id, reference, keyword)?));
        }
        let all = self.branches(id, keywords.all_of, "allOf");
        needed.extend(all.into_iter().map(Signed::plus));
        if let Some(not) = keywords.not {
            needed.push(Signed::minus(self.child(id, not, Step::Keyword("not"))));
        }
        if keywords.any_of.is_some() {
            let branches = self.branches(id, keywords.any_of, "anyOf");
            choices.push(self.any_of(&branches, kind, tracked));
        }
        if !keywords.choices.is_empty() {
            choices.push(self.any_of(&keywords.choices, kind, tracked));
        }
        if keywords.one_of.is_some() {
            let branches = self.branches(id, keywords.one_of, "oneOf");
            choices.push(self.one_of(&branches, kind, beside));
        }
        if let Some(condition) = keywords.if_then_else[0] {
            let condition = self.child(id, condition, Step::Keyword("if"));
            let mut ways = Ways::new();
            for (place, sign, keyword) in [(1, false, "then"), (2, true, "else")] {
                let mut way = vec![Signed { id: condition, negative: sign }];
                if let Some(branch) = keywords.if_then_else[place] {
                    way.push(Signed::plus(self.child(id, branch, Step::Keyword(keyword))));
                }
                ways.push(way);
            }
            if tracked || ways.iter().any(|way| way.len() > 1) {
                choices.push(ways);
            }
        }
        if kind == TypeSet::OBJECT {
            for &(name, schema, keyword) in &keywords.dependent_schemas {
                let present = self.schemas.presence(id, name);
                let schema = self.child(id, schema, Step::Key(keyword, name));
                choices.push(vec![
                    vec![Signed::minus(present)],
                    vec![Signed::plus(present), Signed::plus(schema)],
                ]);
            }
        }
        Some((needed, choices))
    }

    /// The ways in which one of some branches holds.
    fn any_of(&mut self, branches: &[SchemaId], kind: TypeSet, tracked: bool) -> Ways {
        let mut possible: Vec<SchemaId> = Vec::new();
        for &branch in branches {
            let node = self.node(branch);
            if node == NodeId::NEVER || !self.types_of(Signed::plus(branch), 4).meets(kind) {
                continue;
            }
            if node == NodeId::ANY && !tracked {
                return vec![Vec::new()];
            }
            possible.push(branch);
        }
        if !tracked || possible.len() > SETS {
            return possible.into_iter().map(|branch| vec![Signed::plus(branch)]).collect();
        }
        // Every set of branches that may hold together; the empty one is none.
        let mut ways: Ways = Vec::new();
        for branch in possible {
            let mut more: Ways = vec![vec![Signed::plus(branch)]];
            for way in &ways {
                let disjoint = way.iter().any(|other| self.is_disjoint(other.id, branch, kind));
                if !disjoint {
                    let mut larger = way.clone();
                    larger.push(Signed::plus(branch));
                    more.push(larger);
                }
            }
            ways.extend(more);
        }
        ways
    }

    /// The ways in which exactly one of some branches holds, beside some other schemas.
    pub(super) fn one_of(&mut self, branches: &[SchemaId], kind: TypeSet, beside: &[Signed]) -> Ways {
        let mut possible: Vec<SchemaId> = Vec::new();
        for &branch in branches {
            if self.node(branch) != NodeId::NEVER && self.types_of(Signed::plus(branch), 4).meets(kind) {
                possible.push(branch);
            }
        }
        let mut ways: Ways = possible.iter().map(|&branch| vec![Signed::plus(branch)]).collect();
        if self.is_tagged(&possible, kind) {
            return ways;
        }
        let help = "use `anyOf`, or require a key in each branch whose `const` tells them apart";
        let Some(pairs) = self.neighbours(&possible, kind) else {
            let message = "too many pairs of branches must be compared".to_owned();
            self.halt_with(self.here, "oneOf", message, help);
            return Ways::new();
        };
        let mut signs = 0;
        for (i, j) in pairs {
            if self.is_disjoint_beside(possible[i], possible[j], kind, beside) {
                continue;
            }
            ways[i].push(Signed::minus(possible[j]));
            ways[j].push(Signed::minus(possible[i]));
            signs += 1;
            if signs > SIGNS {
                let message = format!("more than {SIGNS} pairs of branches might hold at the same time");
                self.halt_with(self.here, "oneOf", message, help);
            }
            if self.is_halted() {
                return Ways::new();
            }
        }
        ways
    }

    /// Adds that a schema does not hold.
    fn negative(&mut self, keywords: &Keywords<'s>, todo: Todo, draft: &mut Draft, kind: TypeSet) -> Advance {
        let id = todo.part.id;
        if !keywords.types.meets(kind) {
            return Advance::Done;
        }
        let mut ways = Ways::new();
        let structured = kind == TypeSet::ARRAY || kind == TypeSet::OBJECT;
        let listed = keywords.listed().filter(|_| structured && !keywords.holds_values);
        if let Some(values) = listed {
            // Different from each of them, as structures.
            let unlike = values.iter().filter(|value| TypeSet::of(value).meets(kind));
            ways.push(unlike.map(|value| Signed::minus(self.schemas.constant(id, value))).collect());
        }
        let says = if structured { keywords.asserted.meets(kind) } else { says_about(keywords, kind) };
        if says {
            if draft.case.locals.contains(&Signed::plus(id)) && keywords.is_plain() && ways.is_empty() {
                return Advance::Dead;
            }
            ways.push(vec![Signed::minus(id)]);
        }
        let local_way = says.then(|| ways.len() - 1);
        if !keywords.is_plain() && !self.denied(id, keywords, kind, &mut ways) {
            return Advance::Dead;
        }
        let mut trail = todo.trail;
        trail.push(id);
        let mut drafts = Vec::with_capacity(ways.len());
        for (place, way) in ways.iter().enumerate() {
            let mut copy = draft.clone();
            if Some(place) == local_way {
                if !copy.case.locals.contains(&Signed::minus(id)) {
                    copy.case.locals.push(Signed::minus(id));
                }
            } else {
                if self.is_granted(way, kind) {
                    // One of the ways is open to every value of this type.
                    return Advance::Done;
                }
                copy.todo.extend(way.iter().rev().map(|&part| Todo::new(part, &[], &trail)));
            }
            drafts.push(copy);
        }
        match drafts.len() {
            0 => Advance::Dead,
            1 => {
                *draft = drafts.swap_remove(0);
                Advance::Done
            }
            _ => Advance::Fork(drafts),
        }
    }

    /// Whether a way asks for nothing of values of this type.
    fn is_granted(&mut self, way: &[Signed], kind: TypeSet) -> bool {
        way.iter().all(|part| part.negative && !self.types_of(part.flipped(), 4).meets(kind))
    }

    /// The ways in which a combinator of a schema fails.
    fn denied(&mut self, id: SchemaId, keywords: &Keywords<'s>, kind: TypeSet, ways: &mut Ways) -> bool {
        if let Some(reference) = keywords.reference {
            let Some(target) = self.resolve(id, reference) else { return false };
            ways.push(vec![Signed::minus(target)]);
        }
        if let Some((reference, keyword)) = keywords.dynamic_reference {
            let Some(target) = self.resolve_dynamic(id, reference, keyword) else { return false };
            ways.push(vec![Signed::minus(target)]);
        }
        for branch in self.branches(id, keywords.all_of, "allOf") {
            ways.push(vec![Signed::minus(branch)]);
        }
        if keywords.any_of.is_some() {
            let branches = self.branches(id, keywords.any_of, "anyOf");
            ways.push(branches.into_iter().map(Signed::minus).collect());
        }
        if !keywords.choices.is_empty() {
            ways.push(keywords.choices.iter().copied().map(Signed::minus).collect());
        }
        if keywords.one_of.is_some() {
            let branches = self.branches(id, keywords.one_of, "oneOf");
            ways.push(branches.iter().copied().map(Signed::minus).collect());
            for (i, &a) in branches.iter().enumerate() {
                for &b in &branches[..i] {
                    if !self.is_disjoint(a, b, kind) {
                        ways.push(vec![Signed::plus(b), Signed::plus(a)]);
                    }
                }
            }
        }
        if let Some(not) = keywords.not {
            ways.push(vec![Signed::plus(self.child(id, not, Step::Keyword("not")))]);
        }
        if let Some(condition) = keywords.if_then_else[0] {
            let condition = self.child(id, condition, Step::Keyword("if"));
            for (place, negative, keyword) in [(1, false, "then"), (2, true, "else")] {
                if let Some(branch) = keywords.if_then_else[place] {
                    let branch = self.child(id, branch, Step::Keyword(keyword));
                    ways.push(vec![Signed { id: condition, negative }, Signed::minus(branch)]);
                }
            }
        }
        if kind == TypeSet::OBJECT {
            for &(name, schema, keyword) in &keywords.dependent_schemas {
                let present = self.schemas.presence(id, name);
                let schema = self.child(id, schema, Step::Key(keyword, name));
                ways.push(vec![Signed::plus(present), Signed::minus(schema)]);
            }
        }
        let unevaluated = if kind == TypeSet::OBJECT {
            keywords.unevaluated_properties.map(|_| "unevaluatedProperties")
        } else {
            keywords.unevaluated_items.filter(|_| kind == TypeSet::ARRAY).map(|_| "unevaluatedItems")
        };
        if let Some(keyword) = unevaluated {
            let message = format!("`{keyword}` cannot be negated (by `not`, `oneOf` or `if`) yet");
            let help = "say it with `additionalProperties` or `items`, or negate it by hand";
            return self.unenforceable(self.schemas.path(id), keyword, message, help);
        }
        true
    }

    /// Goes on with one draft for each combination of ways, the clearly empty ones left out.
    fn fork(
        &mut self,
        draft: &mut Draft,
        choices: &[Ways],
        base: usize,
        (trackers, trail): (&[usize], &[SchemaId]),
        kind: TypeSet,
    ) -> Advance {
        if choices.is_empty() {
            return Advance::Done;
        }
        if self.is_clearly_empty_case(&draft.case, kind) {
            return Advance::Dead;
        }
        let limit = self.context.options.limits.cases;
        let mut drafts = vec![draft.clone()];
        for ways in choices {
            let mut next = Vec::with_capacity(drafts.len() * ways.len());
            for draft in &drafts {
                for way in ways {
                    let mut copy = draft.clone();
                    // After what the schema needs in any case, so that the order of its text is kept.
                    let base = base.min(copy.todo.len());
                    let later = way.iter().rev().map(|&part| Todo::new(part, trackers, trail));
                    copy.todo.splice(base..base, later);
                    next.push(copy);
                }
            }
            drafts = next;
            if drafts.len() > 1 && choices.len() > 1 {
                drafts = self.settled(drafts, kind);
            }
            if drafts.len() > limit.saturating_mul(4) {
                let id = trail.last().copied();
                let path = id.map_or(super::PathId::ROOT, |id| self.schemas.path(id));
                let message =
                    format!("the combinations of this schema's branches make more than {limit} cases");
                self.exceed("cases", path, "", message);
                return Advance::Dead;
            }
        }
        match drafts.len() {
            0 => Advance::Dead,
            1 => {
                *draft = drafts.swap_remove(0);
                Advance::Done
            }
            _ => Advance::Fork(drafts),
        }
    }

    /// Works on drafts until each is finished, so that those that are clearly empty do not multiply.
    fn settled(&mut self, drafts: Vec<Draft>, kind: TypeSet) -> Vec<Draft> {
        let limit = self.context.options.limits.cases.saturating_mul(4);
        let (mut done, mut work, mut steps): (Vec<Draft>, Vec<Draft>, usize) = (Vec::new(), drafts, 0);
        let mut seen = FxHashSet::default();
        work.reverse();
        while let Some(mut draft) = work.pop() {
            steps += 1;
            if steps > limit || self.is_halted() {
                done.push(draft);
                done.append(&mut work);
                break;
            }
            match self.advance(&mut draft, kind) {
                Advance::Done => {
                    if !is_known(&mut seen, done.iter().map(|other| &other.case), &draft.case)
                        && !self.is_clearly_empty_case(&draft.case, kind)
                    {
                        done.push(draft);
                    }
                }
                Advance::Dead => {}
                Advance::Fork(drafts) => work.extend(drafts.into_iter().rev()),
            }
        }
        done
    }

    /// The nodes whose union is the schema, if it is nothing but one `anyOf` or `oneOf`.
    pub(super) fn union(&mut self, id: SchemaId, keywords: &Keywords<'s>) -> Option<Vec<NodeId>> {
        let lone = keywords.is_silent()
            && keywords.reference.is_none()
            && keywords.dynamic_reference.is_none()
            && keywords.all_of.is_none_or(|all| all.len() == 1)
            && keywords.not.is_none()
            && keywords.if_then_else[0].is_none()
            && keywords.dependent_schemas.is_empty()
            && keywords.unevaluated_properties.is_none()
            && keywords.unevaluated_items.is_none();
        if !lone {
            return None;
        }
        match (keywords.all_of, keywords.any_of, keywords.one_of) {
            (Some(_), None, None) => {
                let branches = self.branches(id, keywords.all_of, "allOf");
                Some(branches.into_iter().map(|branch| self.node(branch)).collect())
            }
            (None, Some(_), None) => {
                let branches = self.branches(id, keywords.any_of, "anyOf");
                Some(branches.into_iter().map(|branch| self.node(branch)).collect())
            }
            (None, None, None) if !keywords.choices.is_empty() => {
                Some(keywords.choices.iter().map(|&branch| self.node(branch)).collect())
            }
            (None, None, Some(_)) => {
                let branches = self.branches(id, keywords.one_of, "oneOf");
                let ways = self.one_of(&branches, TypeSet::ALL, &[]);
                Some(ways.into_iter().map(|way| self.node_of(&way)).collect())
            }
            _ => None,
        }
    }
}

/// What became of a draft.
enum Advance {
    Done,
    Dead,
    Fork(Vec<Draft>),
}

/// Whether a case is among those that were met; it is from now on. A short list is searched, a long one hashed.
fn is_known<'c>(
    seen: &mut FxHashSet<Case>,
    mut done: impl ExactSizeIterator<Item = &'c Case>,
    case: &Case,
) -> bool {
    if done.len() < 32 {
        return done.any(|one| one == case);
    }
    if seen.is_empty() {
        seen.extend(done.cloned());
    }
    !seen.insert(case.clone())
}

/// Adds a schema to a case, unless its opposite is there.
fn add(case: &mut Case, local: Signed) -> Advance {
    if case.locals.contains(&local.flipped()) {
        return Advance::Dead;
    }
    if !case.locals.contains(&local) {
        case.locals.push(local);
    }
    Advance::Done
}

/// Whether a schema says something by itself about values of a type.
pub(super) fn says_about(keywords: &Keywords<'_>, kind: TypeSet) -> bool {
    keywords.asserted.meets(kind)
        || keywords.listed().is_some()
        || kind == TypeSet::NUMBER && !keywords.types.covers(TypeSet::NUMBER)
}
