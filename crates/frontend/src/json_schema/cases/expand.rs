//! Expands combinators into cases.
//!
//! A node is expanded for one JSON type. Its members wait in a list. When a schema is taken from the list, its local
//! keywords join the case, and the schemas of its combinators join the list. A choice (`anyOf`, a negated `allOf`, …)
//! copies the case, once for each alternative:
//!
//! ```text
//! +{"required": ["a"], "oneOf": [x, y]}        for objects
//!
//! todo: +schema                   case: –
//! todo: oneOf                     case: +{"required": ["a"]}
//! todo: +x −y   |   todo: +y −x   case: the same, twice
//! ```
//!
//! A negative sign costs cases. So `−y` joins `+x` only if x and y can hold together, and a case that is clearly empty
//! ([`super::overlap`]) is dropped immediately. This keeps a chain of `if`s about one tag linear.
//!
//! # Unevaluated properties and items
//!
//! `unevaluatedProperties` applies to the keys that no other schema of the same value evaluated, and a finished case
//! determines which schemas hold. Each such keyword opens a *tracker*. Every schema that joins the case below it is a
//! contributor, and in the end the keyword acts like an `additionalProperties` beside all contributors. An `anyOf`
//! below a tracker is split into sets of branches instead of single ones, because a second branch that holds evaluates
//! more.
//!
//! Such a keyword fails if the rest of its schema holds and a key or item that is not evaluated violates it. So its
//! negation is the schema itself, with a tracker that is *denied*.
//!
//! # Kept choices
//!
//! Twenty `if`s about different keys make a million cases. If there are too many cases, choices between conditions on
//! single keys of an object stay in the case unexpanded, and the emitter follows each from the first of its keys to the
//! last.

use rustc_hash::FxHashSet;

use super::super::schemas::{Keywords, SchemaId};
use super::super::types::TypeSet;
use super::Algebra;
use super::node::{NodeId, Signed};

/// A conjunction: the local keywords of some schemas, for values of one type.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Case {
    /// Signed schemas, without their combinators.
    pub(crate) locals: Vec<Signed>,
    pub(crate) unevaluated: Vec<Unevaluated>,
    pub(crate) choices: Vec<KeptChoice>,
}

/// A choice that was not expanded into cases: one of its alternatives holds. Each alternative is a list of schemas,
/// without their combinators, that have only conditions on single keys.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct KeptChoice {
    pub(crate) alternatives: Choice,
    /// The number of locals of the case that precede it in the text.
    pub(crate) after: usize,
}

/// The meaning of `unevaluatedProperties` or `unevaluatedItems` in one case.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Unevaluated {
    /// The schema that contains the keyword.
    pub(crate) owner: SchemaId,
    /// The schemas that evaluate keys or items, including the owner.
    pub(crate) contributors: Vec<SchemaId>,
    /// Whether some key or item that is not evaluated must violate the keyword.
    pub(crate) is_denied: bool,
}

impl Case {
    pub(crate) fn of(local: Signed) -> Self {
        Self { locals: vec![local], ..Self::default() }
    }

    /// Checks whether the case allows every value of its type.
    pub(crate) fn is_open(&self) -> bool {
        self.locals.is_empty() && self.unevaluated.is_empty() && self.choices.is_empty()
    }

    /// Returns the schemas that must hold.
    pub(crate) fn positive(&self) -> impl Iterator<Item = SchemaId> {
        self.locals.iter().filter(|local| !local.negative).map(|local| local.id)
    }

    /// Adds a schema. Returns false if the case contains its opposite.
    fn add(&mut self, local: Signed) -> bool {
        if self.locals.contains(&local.flipped()) {
            return false;
        }
        if !self.locals.contains(&local) {
            self.locals.push(local);
        }
        true
    }
}

/// The maximum number of branches of an `anyOf` below `unevaluatedProperties` that is split into sets of branches.
const MAX_BRANCHES_IN_SETS: usize = 10;

/// The factor by which kept choices must reduce the number of cases, where they are not needed to stay within the
/// limit.
const MIN_GAIN: usize = 4;

/// The maximum number of alternatives of a kept choice. Larger choices are expanded into cases.
const MAX_ALTERNATIVES: usize = 64;

/// The depth to which combinators are searched for the types of a branch.
pub(super) const BRANCH_TYPES_DEPTH: usize = 4;

/// An unfinished case.
#[derive(Clone)]
struct Draft {
    case: Case,
    /// The schemas still to be added. The last one is taken first.
    todo: Vec<Todo>,
    /// The schemas taken from the list, with their trackers; adding one again changes nothing. Without this set,
    /// `allOf` of two references to `allOf` of two references, and so on, would be added once for each path.
    done: FxHashSet<(Signed, Vec<usize>)>,
    /// Whether choices between conditions on single keys are kept.
    keeps_choices: bool,
}

#[derive(Clone)]
struct Todo {
    part: Signed,
    /// The trackers to which the schema contributes, as indices of [`Case::unevaluated`].
    trackers: Vec<usize>,
    /// The schemas that led to this one without a step into the value.
    trail: Vec<SchemaId>,
    /// Whether only the local keywords remain to be added.
    is_local: bool,
    /// Whether the schema holds except for its `unevaluatedProperties` or `unevaluatedItems`.
    is_denied: bool,
}

impl Draft {
    /// Adds a choice that is kept.
    fn keep(&mut self, mut choice: Choice) -> Progress {
        let is_opposite = |local: &Signed| self.case.locals.contains(&local.flipped());
        choice.retain(|locals| !locals.iter().any(is_opposite));
        if choice.iter().any(|locals| locals.iter().all(|local| self.case.locals.contains(local))) {
            return Progress::Done;
        }
        match &mut *choice {
            [] => return Progress::Dead,
            [only] => {
                let is_possible = only.iter().all(|local| self.case.add(*local));
                return if is_possible { Progress::Done } else { Progress::Dead };
            }
            _ => {}
        }
        if !self.case.choices.iter().any(|known| known.alternatives == choice) {
            let after = self.case.locals.len();
            self.case.choices.push(KeptChoice { alternatives: choice, after });
        }
        Progress::Done
    }
}

impl Todo {
    fn new(part: Signed, trackers: &[usize], trail: &[SchemaId]) -> Self {
        let (trackers, trail) = (trackers.to_vec(), trail.to_vec());
        Self { part, trackers, trail, is_local: false, is_denied: false }
    }
}

/// Alternatives, each a list of signed schemas.
pub(crate) type Choice = Vec<Vec<Signed>>;

/// The result of working on a draft.
enum Progress {
    Done,
    Dead,
    Fork(Vec<Draft>),
    /// The limit on the number of cases is exceeded.
    TooMany,
}

impl Progress {
    /// Continues with these drafts instead of `draft`.
    fn of(mut drafts: Vec<Draft>, draft: &mut Draft) -> Self {
        match drafts.len() {
            0 => Self::Dead,
            1 => {
                *draft = drafts.swap_remove(0);
                Self::Done
            }
            _ => Self::Fork(drafts),
        }
    }
}

impl<'s> Algebra<'s> {
    /// Returns the cases of a conjunction for values of one type. Returns `None`, and reports an error, if there are
    /// too many.
    pub(crate) fn cases(&mut self, members: &[Signed], kind: TypeSet) -> Option<Vec<Case>> {
        let mut found = self.expand(members, kind, false);
        if found.is_none() && kind == TypeSet::OBJECT && self.context.error.is_empty() {
            found = self.expand(members, kind, true);
        }
        if found.is_none() && self.context.error.is_empty() {
            let limit = self.context.options.limits.cases;
            let message = format!("the combinations of this schema's branches make more than {limit} cases");
            self.context.exceed("cases", self.path_of(members), "", message);
        }
        found
    }

    /// Returns the cases for objects with choices kept, if these are far fewer than `count` and keep the same order of
    /// keys.
    pub(crate) fn fewer_cases(&mut self, members: &[Signed], count: usize) -> Option<Vec<Case>> {
        let cases = self.expand(members, TypeSet::OBJECT, true)?;
        let is_gain = cases.len().saturating_mul(MIN_GAIN) <= count;
        (is_gain && cases.iter().all(|case| self.names_all_keys_first(case))).then_some(cases)
    }

    /// Checks whether the schemas before each choice list all keys that the choice concerns.
    fn names_all_keys_first(&mut self, case: &Case) -> bool {
        case.choices.iter().all(|kept| {
            let before: Vec<_> = case.locals[..kept.after]
                .iter()
                .filter(|local| !local.negative)
                .map(|local| self.keywords(local.id))
                .collect();
            let is_listed = |name: &str| before.iter().any(|keywords| keywords.properties.contains_key(name));
            kept.alternatives.iter().flatten().all(|local| {
                let keywords = self.keywords(local.id);
                keywords.properties.keys().chain(keywords.required.iter().copied()).all(is_listed)
            })
        })
    }

    /// Like [`Self::cases`], but returns `None` without an error if there are too many.
    fn expand(&mut self, members: &[Signed], kind: TypeSet, keeps_choices: bool) -> Option<Vec<Case>> {
        let todo = members.iter().rev().map(|&part| Todo::new(part, &[], &[])).collect();
        let mut work = vec![Draft { case: Case::default(), todo, done: FxHashSet::default(), keeps_choices }];
        let (mut done, mut steps): (Vec<Case>, usize) = (Vec::new(), 0);
        let mut seen = FxHashSet::default();
        let limit = self.context.options.limits.cases;
        while let Some(mut draft) = work.pop() {
            steps += 1;
            if done.len() > limit || steps > limit.saturating_mul(20) {
                return None;
            }
            match self.advance(&mut draft, kind) {
                Progress::Done => {
                    if !is_known(&mut seen, done.iter(), &draft.case)
                        && !self.is_clearly_empty_case(&draft.case, kind)
                    {
                        done.push(draft.case);
                    }
                }
                Progress::Dead => {}
                Progress::Fork(drafts) => work.extend(drafts.into_iter().rev()),
                Progress::TooMany => return None,
            }
            if !self.context.error.is_empty() {
                return None;
            }
        }
        Some(done)
    }

    /// Works on a draft until it is finished, dead, or has to fork.
    fn advance(&mut self, draft: &mut Draft, kind: TypeSet) -> Progress {
        while let Some(todo) = draft.todo.pop() {
            if self.context.is_halted() {
                return Progress::Dead;
            }
            if !todo.is_local && !todo.is_denied && todo.trail.contains(&todo.part.id) {
                self.refuse_circle(todo.part.id);
                return Progress::Dead;
            }
            let keywords = self.keywords(todo.part.id);
            if !todo.is_local
                && !todo.is_denied
                && !keywords.is_plain()
                && !draft.done.insert((todo.part, todo.trackers.clone()))
            {
                continue;
            }
            let progress = if todo.part.negative {
                self.add_negative(&keywords, todo, draft, kind)
            } else {
                self.add_positive(&keywords, todo, draft, kind)
            };
            match progress {
                Progress::Done => {}
                other => return other,
            }
        }
        Progress::Done
    }

    /// Adds a schema that holds.
    fn add_positive(
        &mut self,
        keywords: &Keywords<'s>,
        todo: Todo,
        draft: &mut Draft,
        kind: TypeSet,
    ) -> Progress {
        let local = todo.part;
        if !keywords.types.meets(kind) || !keywords.may_list(kind) {
            return Progress::Dead;
        }
        if todo.is_local {
            return if draft.case.add(local) { Progress::Done } else { Progress::Dead };
        }
        let Todo { mut trackers, mut trail, is_denied, .. } = todo;
        if keywords.unevaluated(kind).is_some() {
            trackers.push(draft.case.unevaluated.len());
            draft.case.unevaluated.push(Unevaluated { owner: local.id, contributors: Vec::new(), is_denied });
        }
        for &tracker in &trackers {
            let contributors = &mut draft.case.unevaluated[tracker].contributors;
            if !contributors.contains(&local.id) {
                contributors.push(local.id);
            }
        }
        trail.push(local.id);
        let constrains = keywords.constrains(kind);
        if constrains && (keywords.local_first || keywords.is_plain()) {
            if !draft.case.add(local) {
                return Progress::Dead;
            }
        } else if constrains {
            // The keys of the combinators come first, as in the text.
            draft.todo.push(Todo { is_local: true, ..Todo::new(local, &[], &trail) });
        }
        if keywords.is_plain() {
            return Progress::Done;
        }
        let mut beside: Vec<Signed> = draft.case.positive().map(Signed::plus).collect();
        if !keywords.one_of.is_empty() {
            // The schemas that still wait in the list hold as well.
            for todo in draft.todo.iter().rev().filter(|todo| !todo.part.negative) {
                if todo.is_local || self.keywords(todo.part.id).is_plain() {
                    beside.push(todo.part);
                }
            }
        }
        beside.retain(|other| other.id != local.id);
        if constrains {
            beside.push(local);
        }
        let Some(needed) = self.needed(local.id, keywords) else { return Progress::Dead };
        let is_exact = trackers.iter().any(|&tracker| draft.case.unevaluated[tracker].is_denied);
        let choices = self.choices(local.id, keywords, kind, (!trackers.is_empty(), is_exact), &beside);
        let base = draft.todo.len();
        draft.todo.extend(needed.into_iter().rev().map(|part| Todo::new(part, &trackers, &trail)));
        self.fork(draft, &choices, base, (&trackers, &trail), kind)
    }

    /// Returns the schemas that must hold, or must not hold, if a schema holds.
    fn needed(&mut self, id: SchemaId, keywords: &Keywords<'s>) -> Option<Vec<Signed>> {
        let targets = self.targets(id, keywords)?;
        let positive = targets.iter().chain(&keywords.all_of).copied().map(Signed::plus);
        Some(positive.chain(keywords.not.map(Signed::minus)).collect())
    }

    /// Returns the choices that a schema leaves open.
    fn choices(
        &mut self,
        id: SchemaId,
        keywords: &Keywords<'s>,
        kind: TypeSet,
        (is_tracked, is_exact): (bool, bool),
        beside: &[Signed],
    ) -> Vec<Choice> {
        let mut choices: Vec<Choice> = Vec::new();
        if !keywords.any_of.is_empty() {
            let mut sets = self.any_of(&keywords.any_of, kind, is_tracked);
            if is_exact {
                self.exclude_others(id, &keywords.any_of, &mut sets);
            }
            choices.push(sets);
        }
        if !keywords.one_of.is_empty() {
            choices.push(self.one_of(&keywords.one_of, kind, beside));
        }
        if let Some(conditional) = keywords.conditional {
            let ways = conditional.outcomes().map(|(negative, branch)| {
                let condition = Signed { id: conditional.condition, negative };
                [Some(condition), branch.map(Signed::plus)].into_iter().flatten().collect::<Vec<_>>()
            });
            if is_tracked || ways.iter().any(|way| way.len() > 1) {
                choices.push(ways.into());
            }
        }
        if kind == TypeSet::OBJECT {
            for &(name, schema) in &keywords.dependent_schemas {
                let present = self.presence(id, name);
                choices.push(vec![
                    vec![Signed::minus(present)],
                    vec![Signed::plus(present), Signed::plus(schema)],
                ]);
            }
        }
        choices
    }

    /// Returns the branches that may hold for values of a type.
    pub(super) fn possible_branches(&mut self, branches: &[SchemaId], kind: TypeSet) -> Vec<SchemaId> {
        let is_possible = |branch: &SchemaId| {
            let node = self.node(*branch);
            self.is_possible(*branch, node, kind)
        };
        branches.iter().copied().filter(is_possible).collect()
    }

    fn is_possible(&mut self, branch: SchemaId, node: NodeId, kind: TypeSet) -> bool {
        node != NodeId::NEVER && self.types_of(Signed::plus(branch), BRANCH_TYPES_DEPTH).meets(kind)
    }

    /// Returns the choice "at least one of these branches holds".
    fn any_of(&mut self, branches: &[SchemaId], kind: TypeSet, is_tracked: bool) -> Choice {
        let mut possible: Vec<Signed> = Vec::new();
        for &branch in branches {
            let node = self.node(branch);
            if self.is_possible(branch, node, kind) {
                if node == NodeId::ANY && !is_tracked {
                    return vec![Vec::new()];
                }
                possible.push(Signed::plus(branch));
            }
        }
        if !is_tracked || possible.len() > MAX_BRANCHES_IN_SETS {
            return possible.into_iter().map(|branch| vec![branch]).collect();
        }
        // Collects every set of branches that may hold together.
        let mut sets: Choice = Vec::new();
        for branch in possible {
            let mut more: Choice = vec![vec![branch]];
            for set in &sets {
                if !set.iter().any(|other| self.is_disjoint(other.id, branch.id, kind)) {
                    more.push([&**set, &[branch]].concat());
                }
            }
            sets.extend(more);
        }
        sets
    }

    /// Adds to each set of branches that the other branches do not hold. This is needed where a keyword about
    /// unevaluated parts must fail: a further branch that holds could evaluate the violating part.
    fn exclude_others(&mut self, id: SchemaId, branches: &[SchemaId], sets: &mut Choice) {
        if branches.len() > MAX_BRANCHES_IN_SETS {
            let message = format!(
                "an `anyOf` of more than {MAX_BRANCHES_IN_SETS} branches beside a negated `unevaluatedProperties` or `unevaluatedItems` cannot be enforced"
            );
            let help = "use `additionalProperties` or `items` instead, or write the negation out";
            self.context.unenforceable(self.path(id), "anyOf", message, help);
        }
        for set in sets {
            let others: Vec<Signed> = branches.iter().copied().map(Signed::minus).collect();
            let others = others.into_iter().filter(|other| !set.contains(&other.flipped()));
            *set = set.iter().copied().chain(others).collect();
        }
    }

    /// Adds a schema that does not hold.
    fn add_negative(
        &mut self,
        keywords: &Keywords<'s>,
        todo: Todo,
        draft: &mut Draft,
        kind: TypeSet,
    ) -> Progress {
        let local = todo.part;
        if !keywords.types.meets(kind) {
            return Progress::Done;
        }
        let mut ways = Choice::new();
        let is_structured = kind == TypeSet::ARRAY || kind == TypeSet::OBJECT;
        if let Some(values) = keywords.listed().filter(|_| is_structured && !keywords.is_structure) {
            // The value differs from each of them, as a structure.
            let listed = values.iter().filter(|value| TypeSet::of(value).meets(kind));
            ways.push(listed.map(|value| Signed::minus(self.constant(local.id, value))).collect());
        }
        let constrains =
            if is_structured { keywords.asserted.meets(kind) } else { keywords.constrains(kind) };
        if constrains {
            if draft.case.locals.contains(&local.flipped()) && keywords.is_plain() && ways.is_empty() {
                return Progress::Dead;
            }
            ways.push(vec![local]);
        }
        let local_way = constrains.then(|| ways.len() - 1);
        if !keywords.is_plain() && !self.denials(local.id, keywords, kind, &mut ways) {
            return Progress::Dead;
        }
        if draft.keeps_choices
            && keywords.unevaluated(kind).is_none()
            && ways.len() > 1
            && let Some(kept) = self.kept_choice(&ways, local_way, kind)
        {
            return draft.keep(kept);
        }
        let mut trail = todo.trail;
        trail.push(local.id);
        let mut drafts = Vec::with_capacity(ways.len() + 1);
        if keywords.unevaluated(kind).is_some() {
            let mut copy = draft.clone();
            copy.todo.push(Todo { is_denied: true, ..Todo::new(Signed::plus(local.id), &[], &trail) });
            drafts.push(copy);
        }
        for (place, way) in ways.iter().enumerate() {
            let mut copy = draft.clone();
            if Some(place) == local_way {
                if !copy.case.locals.contains(&local) {
                    copy.case.locals.push(local);
                }
            } else {
                if self.always_holds(way, kind) {
                    return Progress::Done;
                }
                copy.todo.extend(way.iter().rev().map(|&part| Todo::new(part, &[], &trail)));
            }
            drafts.push(copy);
        }
        Progress::of(drafts, draft)
    }

    /// Checks whether every value of this type satisfies these schemas, because they only negate schemas of other
    /// types.
    fn always_holds(&mut self, way: &[Signed], kind: TypeSet) -> bool {
        way.iter().all(|part| part.negative && !self.types_of(part.flipped(), BRANCH_TYPES_DEPTH).meets(kind))
    }

    /// Adds the ways in which a combinator of a schema can fail. Returns false after an error.
    fn denials(&mut self, id: SchemaId, keywords: &Keywords<'s>, kind: TypeSet, ways: &mut Choice) -> bool {
        let Some(targets) = self.targets(id, keywords) else { return false };
        ways.extend(targets.iter().chain(&keywords.all_of).map(|&schema| vec![Signed::minus(schema)]));
        for branches in [&keywords.any_of, &keywords.one_of] {
            if !branches.is_empty() {
                ways.push(branches.iter().copied().map(Signed::minus).collect());
            }
        }
        // A `oneOf` also fails if two of its branches hold.
        for (i, &a) in keywords.one_of.iter().enumerate() {
            for &b in &keywords.one_of[..i] {
                if !self.is_disjoint(a, b, kind) {
                    ways.push(vec![Signed::plus(b), Signed::plus(a)]);
                }
            }
        }
        ways.extend(keywords.not.map(|not| vec![Signed::plus(not)]));
        if let Some(conditional) = keywords.conditional {
            for (negative, branch) in conditional.outcomes() {
                let condition = Signed { id: conditional.condition, negative };
                ways.extend(branch.map(|branch| vec![condition, Signed::minus(branch)]));
            }
        }
        if kind == TypeSet::OBJECT {
            for &(name, schema) in &keywords.dependent_schemas {
                let present = self.presence(id, name);
                ways.push(vec![Signed::plus(present), Signed::minus(schema)]);
            }
        }
        true
    }

    /// Continues with one draft for each combination of alternatives. Clearly empty combinations are left out.
    fn fork(
        &mut self,
        draft: &mut Draft,
        choices: &[Choice],
        base: usize,
        (trackers, trail): (&[usize], &[SchemaId]),
        kind: TypeSet,
    ) -> Progress {
        if choices.is_empty() {
            return Progress::Done;
        }
        if self.is_clearly_empty_draft(&draft.case, kind) {
            return Progress::Dead;
        }
        let limit = self.context.options.limits.cases;
        let mut made_cases: Vec<&Choice> = Vec::with_capacity(choices.len());
        for ways in choices {
            let may_keep = draft.keeps_choices && trackers.is_empty() && ways.len() > 1;
            match may_keep.then(|| self.kept_choice(ways, None, kind)).flatten() {
                Some(kept) => match draft.keep(kept) {
                    Progress::Done => {}
                    other => return other,
                },
                None => made_cases.push(ways),
            }
        }
        let mut drafts = vec![draft.clone()];
        for ways in made_cases {
            let mut next = Vec::with_capacity(drafts.len() * ways.len());
            for draft in &drafts {
                for way in ways {
                    let mut copy = draft.clone();
                    // Inserted after the schemas that hold in any case, so that the order of the text is kept.
                    let base = base.min(copy.todo.len());
                    let later = way.iter().rev().map(|&part| Todo::new(part, trackers, trail));
                    copy.todo.splice(base..base, later);
                    next.push(copy);
                }
            }
            drafts = next;
            if drafts.len() > 1 && choices.len() > 1 {
                let Some(finished) = self.finish_drafts(drafts, kind) else { return Progress::TooMany };
                drafts = finished;
            }
            if drafts.len() > limit.saturating_mul(4) {
                return Progress::TooMany;
            }
        }
        Progress::of(drafts, draft)
    }

    /// Checks whether an unfinished case is clearly empty. Schemas that join later may evaluate more keys and items, so
    /// nothing can be concluded yet from unevaluated ones.
    fn is_clearly_empty_draft(&mut self, case: &Case, kind: TypeSet) -> bool {
        if case.unevaluated.is_empty() {
            return self.is_clearly_empty_case(case, kind);
        }
        let case = Case { locals: case.locals.clone(), ..Case::default() };
        self.is_clearly_empty_case(&case, kind)
    }

    /// Returns the alternatives of a choice between conditions on single keys, as lists of schemas without their
    /// combinators. Returns `None` for any other choice. `local_way` is the index of the way that negates only the
    /// local keywords of its schema.
    fn kept_choice(
        &mut self,
        ways: &[Vec<Signed>],
        local_way: Option<usize>,
        kind: TypeSet,
    ) -> Option<Choice> {
        let mut kept = Choice::new();
        for (place, way) in ways.iter().enumerate() {
            let cases = match way {
                way if Some(place) == local_way => {
                    vec![Case { locals: way.clone(), ..Case::default() }]
                }
                way => self.expand(way, kind, false)?,
            };
            for case in cases {
                if !case.unevaluated.is_empty()
                    || !case.locals.iter().all(|local| self.is_about_keys(local.id))
                {
                    return None;
                }
                if !kept.contains(&case.locals) {
                    kept.push(case.locals);
                }
                if kept.len() > MAX_ALTERNATIVES {
                    return None;
                }
            }
        }
        Some(kept)
    }

    /// Checks whether the local keywords of a schema are conditions on single keys that it names.
    fn is_about_keys(&mut self, id: SchemaId) -> bool {
        let keywords = self.keywords(id);
        keywords.listed().is_none()
            && keywords.pattern_properties.is_empty()
            && keywords.additional.is_none()
            && keywords.property_names.is_none()
            && keywords.dependent_required.is_empty()
            && keywords.property_count.is_open()
    }

    /// Works on drafts until each is finished, so that clearly empty ones do not multiply. Returns `None` if there are
    /// too many.
    fn finish_drafts(&mut self, drafts: Vec<Draft>, kind: TypeSet) -> Option<Vec<Draft>> {
        let limit = self.context.options.limits.cases.saturating_mul(4);
        let (mut done, mut work, mut steps): (Vec<Draft>, Vec<Draft>, usize) = (Vec::new(), drafts, 0);
        let mut seen = FxHashSet::default();
        work.reverse();
        while let Some(mut draft) = work.pop() {
            steps += 1;
            if steps > limit || self.context.is_halted() {
                done.push(draft);
                done.append(&mut work);
                break;
            }
            match self.advance(&mut draft, kind) {
                Progress::Done => {
                    if !is_known(&mut seen, done.iter().map(|other| &other.case), &draft.case)
                        && !self.is_clearly_empty_draft(&draft.case, kind)
                    {
                        done.push(draft);
                    }
                }
                Progress::Dead => {}
                Progress::Fork(drafts) => work.extend(drafts.into_iter().rev()),
                Progress::TooMany => return None,
            }
        }
        Some(done)
    }

    /// Returns the nodes whose union is the schema, if it consists of a single `anyOf` or `oneOf`, or of an `allOf`
    /// with one schema.
    pub(crate) fn union(&mut self, keywords: &Keywords<'s>) -> Option<Vec<NodeId>> {
        let is_lone = keywords.is_silent()
            && keywords.reference.is_none()
            && keywords.dynamic_reference.is_none()
            && keywords.not.is_none()
            && keywords.conditional.is_none()
            && keywords.dependent_schemas.is_empty()
            && keywords.unevaluated_properties.is_none()
            && keywords.unevaluated_items.is_none();
        if !is_lone {
            return None;
        }
        match (&*keywords.all_of, &*keywords.any_of, &*keywords.one_of) {
            ([only], [], []) => Some(vec![self.node(*only)]),
            ([], branches @ [_, ..], []) => Some(branches.iter().map(|&branch| self.node(branch)).collect()),
            ([], [], branches @ [_, ..]) => {
                let ways = self.one_of(branches, TypeSet::ALL, &[]);
                // Branches may be disjoint for objects even where they are not for all types together.
                if ways.iter().any(|way| way.len() > 1)
                    && branches
                        .iter()
                        .any(|&id| self.types_of(Signed::plus(id), BRANCH_TYPES_DEPTH).meets(TypeSet::OBJECT))
                {
                    return None;
                }
                Some(ways.into_iter().map(|way| self.node_of(&way)).collect())
            }
            _ => None,
        }
    }

    /// Returns the first schema of a case that lists its values.
    pub(crate) fn listing(&mut self, case: &Case) -> Option<SchemaId> {
        case.positive().find(|&id| self.keywords(id).listed().is_some())
    }
}

/// Checks whether a case was seen before, and remembers it. A short list is searched, a long one is hashed.
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
