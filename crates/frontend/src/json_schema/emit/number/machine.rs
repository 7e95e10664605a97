//! Automata that read a number's text, and the expression of the numbers that they accept.
//!
//! ```text
//! minimum 10.5          0  1  0  .  7  |            multipleOf 0.25     1  .  7  5  |
//! digits read        –  1  2  2        |            rest (of 25)     –  1     17 0  |
//! compared so far    –  <  =  =     >  | greater    places              0     1  2  | multiple
//! ```
//!
//! A state of the product is the phase of the text and the state of every automaton. The reachable states are explored,
//! dead states are dropped, and equivalent states are merged. If there are no cycles except self-loops, as with bounds,
//! the result is one expression; otherwise it is a rule for each state.

use core::cell::RefCell;
use core::cmp::Ordering;
use core::hash::BuildHasher;

use hashbrown::HashTable;
use maskwright_automata::{Grouped, must_stop};
use maskwright_grammar::{CharSet, ExprId, GrammarBuilder};
use rustc_hash::{FxBuildHasher, FxHashMap};

use super::super::super::decimal::Decimal;
use super::super::super::options::Numbers;
use super::{Conditions, Test, spelling};

/// Returns the expression of the numbers that meet the conditions, or a message if it is too large.
pub(super) fn build(
    grammar: &mut GrammarBuilder,
    conditions: &Conditions,
    limit: usize,
    numbers: Numbers,
) -> Result<ExprId, String> {
    let machines = Machines::new(conditions, limit)?;
    let table = explore(&machines, limit)?;
    let table = merge(&table);
    Ok(write(grammar, &table, numbers, conditions.characters()))
}

/// The maximum number of digits of a bound before the point, and of zeros between the point and its first digit.
const MAX_BOUND_MAGNITUDE: i64 = 400;

/// The maximum number of significant digits of a bound.
const MAX_BOUND_DIGITS: usize = 800;

/// The greatest divisor of `multipleOf`, which leaves room for ten times a remainder, and the maximum number of its
/// decimal places.
const MAX_DIVISOR: u64 = 1_000_000_000_000_000_000;
const MAX_DIVISOR_PLACES: u32 = 400;

/// The automata of all conditions.
struct Machines<'k> {
    conditions: &'k Conditions,
    parts: Vec<Part>,
    has_fraction: bool,
    /// Whether the sign matters.
    has_sign: bool,
}

enum Part {
    /// Compares the number with another one.
    Compare(Comparand),
    /// Divides the number by `modulus`, after shifting it by `places` decimal places.
    Divide { modulus: u64, places: u32, classes: Classes },
    /// Looks for a digit other than 0 in the fraction.
    Whole,
    /// Looks the number up in a list.
    List(List),
}

/// Classes of remainders that the same further digits lead to zero, each represented by the first remainder found.
///
/// A multiple of 100,000 ends in five zeros, so six states suffice instead of one for each remainder. Few digits lead a
/// remainder to zero in one way or not at all, and more digits than the modulus has always do. So the shortest such
/// digits identify the class.
#[derive(Default)]
struct Classes(RefCell<FxHashMap<(u32, u64), u64>>);

impl Classes {
    /// Returns the representative of a remainder.
    fn find(&self, rest: u64, modulus: u64) -> u64 {
        if !modulus.is_multiple_of(2) && !modulus.is_multiple_of(5) {
            return rest;
        }
        let (mut shifted, mut power, mut digits) = (rest, 1u64, 0);
        loop {
            let missing = (modulus - shifted) % modulus;
            if missing < power {
                return *self.0.borrow_mut().entry((digits, missing)).or_insert(rest);
            }
            (shifted, power, digits) = (shifted * 10 % modulus, power.saturating_mul(10), digits + 1);
        }
    }
}

/// A number with which others are compared.
struct Comparand {
    value: Decimal,
    /// The digits before the point, at least one.
    whole: Vec<u8>,
    fraction: Vec<u8>,
}

/// Numbers as a tree of their digits. Zeros at the end of a fraction are not part of the tree.
#[derive(Default)]
struct List {
    nodes: Vec<Node>,
}

/// A prefix of numbers of the list.
#[derive(Clone, Copy, Default)]
struct Node {
    /// The children by digit, and by the point; 0 for none.
    next: [u32; 11],
    /// The signs with which exactly this number is listed, and those of all listed numbers with this prefix.
    listed: Signs,
    below: Signs,
}

/// A set of signs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Signs(u8);

impl Signs {
    const BOTH: Self = Self(3);

    fn of(negative: bool) -> Self {
        Self(1 << u8::from(negative))
    }

    fn contains(self, negative: bool) -> bool {
        self.0 & Self::of(negative).0 != 0
    }

    fn insert(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

/// A position in the grammar of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Phase {
    Start,
    Sign,
    /// After a leading zero, where only a point may follow.
    Zero,
    Whole,
    Point,
    Fraction,
}

/// The phase of a text, and its sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Place {
    phase: Phase,
    negative: bool,
}

/// The state of one automaton.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum PartState {
    /// The number of digits read of the whole part or the fraction, and the result of comparing them.
    Compared {
        digits: u32,
        order: Ordering,
    },
    /// The remainder, the number of decimal places read, and whether a digit other than 0 followed the last of these
    /// places.
    Rest {
        rest: u64,
        places: u32,
        lost: bool,
    },
    Seen(bool),
    /// The node of a list, or `None` if only zeros can follow, and the signs with which the number is listed.
    Listed {
        node: Option<u32>,
        signs: Signs,
    },
}

/// The symbols of a number's text.
const SYMBOLS: [u8; 12] = *b"-.0123456789";

impl<'k> Machines<'k> {
    fn new(conditions: &'k Conditions, limit: usize) -> Result<Self, String> {
        let has_fraction = !conditions.all.contains(&Test::Integer);
        let mut machines = Self { conditions, parts: Vec::new(), has_fraction, has_sign: false };
        for test in conditions.all.iter().chain(conditions.not_all.iter().flatten()) {
            match test {
                Test::Integer => machines.parts.push(Part::Whole),
                Test::Above(value) | Test::AtLeast(value) | Test::Below(value) | Test::AtMost(value) => {
                    machines.parts.push(Part::Compare(Comparand::new(value)?));
                }
                Test::MultipleOf(step) => machines.parts.push(Part::divide(step)?),
                Test::OneOf(values) => machines.parts.push(Part::List(List::new(values, limit)?)),
            }
            machines.has_sign |= !matches!(test, Test::Integer | Test::MultipleOf(_));
        }
        Ok(machines)
    }

    /// Returns the states of the automata before anything is read.
    fn start(&self) -> Vec<PartState> {
        let first = |part: &Part| match part {
            Part::Compare(_) => PartState::Compared { digits: 0, order: Ordering::Equal },
            Part::Divide { .. } => PartState::Rest { rest: 0, places: 0, lost: false },
            Part::Whole => PartState::Seen(false),
            Part::List(_) => PartState::Listed { node: Some(0), signs: Signs::default() },
        };
        self.parts.iter().map(first).collect()
    }

    /// Returns the place after a symbol, and writes the states of the automata to `after`.
    fn step(
        &self,
        place: Place,
        known: &[PartState],
        symbol: u8,
        after: &mut Vec<PartState>,
    ) -> Option<Place> {
        use Phase as P;
        after.clear();
        let phase = match (place.phase, symbol) {
            (P::Start, b'-') => {
                after.extend_from_slice(known);
                return Some(Place { phase: P::Sign, negative: self.has_sign });
            }
            (P::Start | P::Sign, b'0') => P::Zero,
            (P::Start | P::Sign | P::Whole, b'0'..=b'9') => P::Whole,
            (P::Zero | P::Whole, b'.') if self.has_fraction => P::Point,
            (P::Point | P::Fraction, b'0'..=b'9') => P::Fraction,
            _ => return None,
        };
        let place = Place { phase, ..place };
        after.extend(self.parts.iter().zip(known).map(|(part, known)| part.step(*known, place, symbol)));
        Some(place)
    }

    fn accepts(&self, place: Place, known: &[PartState]) -> bool {
        if !matches!(place.phase, Phase::Zero | Phase::Whole | Phase::Fraction) {
            return false;
        }
        let mut answers = self.parts.iter().zip(known);
        let mut holds =
            |test: &Test| answers.next().is_some_and(|(part, known)| part.answer(*known, place, test));
        // Every test is evaluated, so that each consumes its own answer.
        let mut all_hold = |tests: &[Test]| {
            let mut all = true;
            for test in tests {
                all &= holds(test);
            }
            all
        };
        let mut right = all_hold(&self.conditions.all);
        for tests in &self.conditions.not_all {
            right &= !all_hold(tests);
        }
        right
    }
}

impl Comparand {
    fn new(value: &Decimal) -> Result<Self, String> {
        let magnitude = value.magnitude();
        if !value.is_zero() && !(-MAX_BOUND_MAGNITUDE..=MAX_BOUND_MAGNITUDE).contains(&magnitude)
            || value.digits().len() > MAX_BOUND_DIGITS
        {
            return Err(format!("a bound with more than {MAX_BOUND_MAGNITUDE} places cannot be enforced"));
        }
        let (digits, magnitude) = (value.digits(), usize::try_from(magnitude).unwrap_or(0));
        let mut whole: Vec<u8> =
            digits.iter().copied().chain(core::iter::repeat(b'0')).take(magnitude).collect();
        let mut fraction: Vec<u8> = Vec::new();
        if !value.is_zero() {
            let gap = usize::try_from(-value.magnitude()).unwrap_or(0);
            fraction.resize(gap, b'0');
            fraction.extend(digits.iter().skip(magnitude));
        }
        if whole.is_empty() {
            whole.push(b'0');
        }
        Ok(Self { value: value.clone(), whole, fraction })
    }
}

impl Part {
    fn divide(step: &Decimal) -> Result<Self, String> {
        let too_long = || {
            format!("a `multipleOf` whose digits, without the point, exceed {MAX_DIVISOR} cannot be enforced")
        };
        let digits = step.digits_as_u64().ok_or_else(too_long)?;
        let (zeros, places) = match u32::try_from(step.exponent()) {
            Ok(zeros) => (zeros, 0),
            Err(_) => (0, u32::try_from(-step.exponent()).map_err(|_| too_long())?),
        };
        let scale = 10u64.checked_pow(zeros).ok_or_else(too_long)?;
        let modulus = digits.checked_mul(scale).ok_or_else(too_long)?;
        if modulus > MAX_DIVISOR || places > MAX_DIVISOR_PLACES {
            return Err(too_long());
        }
        Ok(Self::Divide { modulus, places, classes: Classes::default() })
    }

    fn step(&self, known: PartState, place: Place, symbol: u8) -> PartState {
        let phase = place.phase;
        match (self, known) {
            (Self::Compare(comparand), PartState::Compared { digits, order }) => {
                comparand.step(digits, order, phase, symbol)
            }
            (Self::Divide { modulus, places: all, classes }, PartState::Rest { rest, places, lost }) => {
                let digit = u64::from(symbol.wrapping_sub(b'0'));
                // Once all places are read, a remainder counts like a further digit other than 0.
                let at = |places: u32, rest: u64| match rest {
                    _ if places < *all => PartState::Rest { rest, places, lost },
                    _ => PartState::Rest { rest: 0, places, lost: lost || rest != 0 },
                };
                match phase {
                    Phase::Point => at(places, rest),
                    Phase::Fraction if places == *all => at(places, digit),
                    Phase::Fraction => at(places + 1, (rest * 10 + digit) % modulus),
                    _ => {
                        let rest = classes.find((rest * 10 + digit) % modulus, *modulus);
                        PartState::Rest { rest, places, lost }
                    }
                }
            }
            (_, PartState::Seen(seen)) => PartState::Seen(seen || phase == Phase::Fraction && symbol != b'0'),
            (Self::List(list), PartState::Listed { node, signs }) => list.step(node, signs, place, symbol),
            (_, known) => known,
        }
    }

    /// Checks whether the test holds for the number that was read.
    fn answer(&self, known: PartState, place: Place, test: &Test) -> bool {
        match (self, known) {
            (Self::Compare(comparand), PartState::Compared { digits, order }) => {
                let order = comparand.compare(digits, order, place);
                match test {
                    Test::Above(_) => order.is_gt(),
                    Test::AtLeast(_) => order.is_ge(),
                    Test::Below(_) => order.is_lt(),
                    Test::AtMost(_) => order.is_le(),
                    _ => order.is_eq(),
                }
            }
            (Self::Divide { modulus, places: all, .. }, PartState::Rest { rest, places, lost }) => {
                let shifted = (places..*all).fold(rest, |rest, _| rest * 10 % modulus);
                shifted == 0 && !lost
            }
            (_, PartState::Seen(seen)) => !seen,
            (_, PartState::Listed { signs, .. }) => signs.contains(place.negative),
            _ => false,
        }
    }
}

impl Comparand {
    fn step(&self, digits: u32, order: Ordering, phase: Phase, symbol: u8) -> PartState {
        let length = self.whole.len() as u32;
        match phase {
            Phase::Point => PartState::Compared { digits: 0, order: self.whole_order(digits, order) },
            Phase::Fraction => {
                if order.is_ne() {
                    return PartState::Compared { digits: 0, order };
                }
                let place = digits as usize;
                let order = symbol.cmp(self.fraction.get(place).unwrap_or(&b'0'));
                let digits = if order.is_eq() { (digits + 1).min(self.fraction.len() as u32) } else { 0 };
                PartState::Compared { digits, order }
            }
            _ if digits >= length => PartState::Compared { digits: length + 1, order: Ordering::Greater },
            _ => {
                let here = symbol.cmp(&self.whole[digits as usize]);
                PartState::Compared { digits: digits + 1, order: order.then(here) }
            }
        }
    }

    /// Compares the complete whole part: the longer one is larger.
    fn whole_order(&self, digits: u32, order: Ordering) -> Ordering {
        digits.cmp(&(self.whole.len() as u32)).then(order)
    }

    /// Compares the number that was read with this one.
    fn compare(&self, digits: u32, order: Ordering, place: Place) -> Ordering {
        let magnitude = match place.phase {
            Phase::Fraction => order.then((digits as usize).cmp(&self.fraction.len())),
            _ => self.whole_order(digits, order).then(0.cmp(&self.fraction.len())),
        };
        match (place.negative, self.value.is_negative()) {
            (false, false) => magnitude,
            (false, true) => Ordering::Greater,
            (true, true) => magnitude.reverse(),
            // Minus zero equals zero.
            (true, false) if self.value.is_zero() && magnitude.is_eq() => Ordering::Equal,
            (true, false) => Ordering::Less,
        }
    }
}

impl List {
    fn new(values: &[Decimal], limit: usize) -> Result<Self, String> {
        let mut list = Self { nodes: vec![Node::default()] };
        for value in values {
            let Comparand { whole, fraction, .. } = Comparand::new(value)?;
            let signs = if value.is_zero() { Signs::BOTH } else { Signs::of(value.is_negative()) };
            let point = (!fraction.is_empty()).then_some(b'.');
            let mut at = 0;
            list.nodes[at].below.insert(signs);
            for symbol in whole.into_iter().chain(point).chain(fraction) {
                at = list.child(at, symbol);
                list.nodes[at].below.insert(signs);
            }
            list.nodes[at].listed.insert(signs);
            if list.nodes.len() > limit.saturating_mul(8) {
                return Err(too_many(limit));
            }
        }
        Ok(list)
    }

    /// Returns the child of a node by a symbol, and creates it if needed.
    fn child(&mut self, at: usize, symbol: u8) -> usize {
        let new = self.nodes.len() as u32;
        let next = &mut self.nodes[at].next[slot(symbol)];
        if *next == 0 {
            *next = new;
            self.nodes.push(Node::default());
            return new as usize;
        }
        *next as usize
    }

    /// Reads a symbol. The point, and zeros at the end of a fraction, do not change the number.
    fn step(&self, node: Option<u32>, signs: Signs, place: Place, symbol: u8) -> PartState {
        let stays = place.phase == Phase::Point || place.phase == Phase::Fraction && symbol == b'0';
        let mut signs = if stays { signs } else { Signs::default() };
        let next = node.map(|node| self.nodes[node as usize].next[slot(symbol)]).filter(|next| *next != 0);
        let next = next.filter(|next| self.nodes[*next as usize].below.contains(place.negative));
        if let Some(next) = next {
            signs.insert(self.nodes[next as usize].listed);
        }
        PartState::Listed { node: next, signs }
    }
}

/// Returns the index of a digit or the point among the children of a node.
fn slot(symbol: u8) -> usize {
    match symbol {
        b'0'..=b'9' => usize::from(symbol - b'0'),
        _ => 10,
    }
}

fn too_many(limit: usize) -> String {
    format!("the keywords about numbers need more than {limit} states, the limit `states`")
}

/// A state's successor for each symbol, and whether it accepts.
#[derive(Clone, Debug)]
struct Row {
    next: [Option<u32>; SYMBOLS.len()],
    accepts: bool,
}

/// Returns the reachable states, without transitions from which no number is accepted. The first state is the start.
fn explore(machines: &Machines<'_>, limit: usize) -> Result<Vec<Row>, String> {
    let most = limit.saturating_mul(8);
    let mut states = States { width: machines.parts.len(), ..States::default() };
    states.number(Place { phase: Phase::Start, negative: false }, &machines.start());
    let (mut rows, mut known, mut after) = (Vec::new(), Vec::new(), Vec::new());
    while let Some(&place) = states.places.get(rows.len()) {
        known.clear();
        known.extend_from_slice(states.known(rows.len() as u32));
        let mut next = [None; SYMBOLS.len()];
        for (slot, &symbol) in next.iter_mut().zip(&SYMBOLS) {
            let step = machines.step(place, &known, symbol, &mut after);
            *slot = step.map(|place| states.number(place, &after));
        }
        if states.places.len() > most || must_stop() {
            return Err(too_many(limit));
        }
        rows.push(Row { next, accepts: machines.accepts(place, &known) });
    }
    drop_dead(&mut rows);
    Ok(rows)
}

/// Numbered states. PERF: stored in flat lists, because `multipleOf` makes tens of thousands.
#[derive(Default)]
struct States {
    /// The number of automata.
    width: usize,
    places: Vec<Place>,
    known: Vec<PartState>,
    index: HashTable<u32>,
}

impl States {
    fn known(&self, number: u32) -> &[PartState] {
        &self.known[number as usize * self.width..][..self.width]
    }

    /// Returns the number of a state, a new one if the state is new.
    fn number(&mut self, place: Place, known: &[PartState]) -> u32 {
        let hash = |place: Place, known: &[PartState]| FxBuildHasher.hash_one((place, known));
        let conditions = hash(place, known);
        let is_same = |&number: &u32| self.places[number as usize] == place && self.known(number) == known;
        if let Some(&found) = self.index.find(conditions, is_same) {
            return found;
        }
        let number = self.places.len() as u32;
        self.places.push(place);
        self.known.extend_from_slice(known);
        let (places, all, width) = (&self.places, &self.known, self.width);
        self.index.insert_unique(conditions, number, |&number| {
            hash(places[number as usize], &all[number as usize * width..][..width])
        });
        number
    }
}

/// Removes the transitions from which no accepting state can be reached.
fn drop_dead(rows: &mut [Row]) {
    let edges = |(from, row)| <[Option<u32>]>::iter(row).flatten().map(move |&to| (to, from));
    let into = Grouped::new(rows.len(), (0u32..).zip(rows.iter().map(|row| &row.next[..])).flat_map(edges));
    let mut live: Vec<bool> = rows.iter().map(|row| row.accepts).collect();
    let mut work: Vec<u32> = (0..rows.len() as u32).filter(|&state| live[state as usize]).collect();
    while let Some(state) = work.pop() {
        for &from in into.of(state) {
            if !core::mem::replace(&mut live[from as usize], true) {
                work.push(from);
            }
        }
    }
    for row in rows {
        for slot in &mut row.next {
            *slot = slot.filter(|to| live[*to as usize]);
        }
    }
}

/// Merges equivalent states, by splitting classes until nothing changes.
fn merge(rows: &[Row]) -> Vec<Row> {
    let mut class: Vec<u32> = rows.iter().map(|row| u32::from(row.accepts)).collect();
    let mut count = 0;
    loop {
        let mut known: FxHashMap<(u32, [u32; SYMBOLS.len()]), u32> = FxHashMap::default();
        let mut next = Vec::with_capacity(rows.len());
        for (row, &own) in rows.iter().zip(&class) {
            // PERF: an array of numbers is hashed at once, options are hashed one by one.
            let targets = row.next.map(|to| to.map_or(u32::MAX, |to| class[to as usize]));
            let new = known.len() as u32;
            next.push(*known.entry((own, targets)).or_insert(new));
        }
        let grown = known.len();
        class = next;
        if grown == count {
            break;
        }
        count = grown;
    }
    let mut merged: Vec<Option<Row>> = vec![None; count];
    for (row, &own) in rows.iter().zip(&class) {
        merged[own as usize].get_or_insert_with(|| Row {
            next: row.next.map(|to| to.map(|to| class[to as usize])),
            accepts: row.accepts,
        });
    }
    // The start is the first state, so its class is the first one.
    merged.into_iter().flatten().collect()
}

/// Returns the expression of a table.
fn write(grammar: &mut GrammarBuilder, rows: &[Row], numbers: Numbers, more: u32) -> ExprId {
    if let Some(order) = topological_order(rows) {
        let never = grammar.never();
        let mut written = vec![never; rows.len()];
        for &state in order.iter().rev() {
            let row = &rows[state as usize];
            let ways = ways(grammar, row, Some(state), |_, to| written[to as usize]);
            let again = symbols(row, state).map(|set| grammar.class(set));
            written[state as usize] = match again {
                Some(again) => {
                    let again = grammar.repeat(again, 0, None);
                    grammar.seq([again, ways])
                }
                None => ways,
            };
        }
        if written[0] == never {
            return never;
        }
        // Without loops, all texts are short anyway.
        let has_loop = (0u32..).zip(rows).any(|(state, row)| symbols(row, state).is_some());
        let numbers = if has_loop { numbers } else { Numbers::Any };
        return spelling::capped(grammar, "number", written[0], numbers, more);
    }
    let is_live = |row: &Row| row.accepts || row.next.iter().any(Option::is_some);
    let rules: Vec<_> = rows.iter().map(|row| is_live(row).then(|| grammar.declare("digits"))).collect();
    let never = grammar.never();
    let calls: Vec<ExprId> = rules.iter().map(|rule| rule.map_or(never, |rule| grammar.rule(rule))).collect();
    for (row, &rule) in rows.iter().zip(&rules) {
        let body = ways(grammar, row, None, |_, to| calls[to as usize]);
        if let Some(rule) = rule {
            grammar.define(rule, body);
        }
    }
    calls[0]
}

/// Returns the continuations of a state: the end, or a symbol and the continuations of the next state.
fn ways(
    grammar: &mut GrammarBuilder,
    row: &Row,
    itself: Option<u32>,
    then: impl Fn(&Row, u32) -> ExprId,
) -> ExprId {
    let mut targets: Vec<u32> = row.next.iter().flatten().copied().filter(|to| Some(*to) != itself).collect();
    targets.sort_unstable();
    targets.dedup();
    let mut ways = Vec::with_capacity(targets.len() + 1);
    for to in targets {
        if let Some(set) = symbols(row, to) {
            let symbol = grammar.class(set);
            ways.push(grammar.seq([symbol, then(row, to)]));
        }
    }
    if row.accepts {
        ways.push(grammar.empty());
    }
    grammar.alt(ways)
}

/// Returns the symbols that lead to the state `to`.
fn symbols(row: &Row, to: u32) -> Option<CharSet> {
    let symbols = SYMBOLS.iter().zip(&row.next).filter(|(_, next)| **next == Some(to));
    let set = CharSet::from_ranges(symbols.map(|(&symbol, _)| (char::from(symbol), char::from(symbol))));
    (!set.is_empty()).then_some(set)
}

/// Returns the states in topological order, ignoring self-loops, or `None` if there is a longer cycle.
fn topological_order(rows: &[Row]) -> Option<Vec<u32>> {
    let mut arrivals = vec![0u32; rows.len()];
    let targets = |state: u32| {
        let mut targets: Vec<u32> = rows[state as usize].next.iter().flatten().copied().collect();
        targets.sort_unstable();
        targets.dedup();
        targets.retain(|to| *to != state);
        targets
    };
    for state in 0..rows.len() as u32 {
        for to in targets(state) {
            arrivals[to as usize] += 1;
        }
    }
    let mut ready: Vec<u32> = (0..rows.len() as u32).filter(|state| arrivals[*state as usize] == 0).collect();
    let mut order = Vec::with_capacity(rows.len());
    while let Some(state) = ready.pop() {
        order.push(state);
        for to in targets(state) {
            arrivals[to as usize] -= 1;
            if arrivals[to as usize] == 0 {
                ready.push(to);
            }
        }
    }
    (order.len() == rows.len()).then_some(order)
}
