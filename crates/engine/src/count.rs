//! Counters of counted repetition, as sets of values.
//!
//! In `(x{1,20} ?){1,50}` the text `xxxx` has many readings: one round of four, two rounds, and so on. What a reading has counted does
//! not matter; what matters is how much may still come. A count of `c` units within `{min,max}` leaves room for `min - c` to `max - c`
//! more, a *window*. Two readings that differ in a count alone are one reading with the union of their windows:
//!
//! ```text
//!   {3,20}  after 1 unit   [2, 19]
//!           after 3 units  [0, 17]     together [0, 19]
//! ```
//! Windows that overlap or touch become one, so a set is nearly always a single window, and a window inside another disappears: what can
//! stop earlier and go on longer is all that is kept. The language behind a set is the union of the languages behind its windows, so
//! nothing is lost.
//!
//! A [`Count`] is a plain number as long as one number says it all, which is the case for every unambiguous text. Other sets are interned
//! in [`CountSets`].

use smallvec::SmallVec;

use crate::store::Slices;

/// How many units may follow: at least `need`, at most `room`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Window {
    pub(crate) need: u32,
    /// [`UNBOUNDED`] if there is no maximum.
    pub(crate) room: u32,
}

/// No maximum.
pub(crate) const UNBOUNDED: u32 = u32::MAX;

/// Disjoint windows that do not touch, ascending.
pub(crate) type Windows = SmallVec<[Window; 2]>;

/// The bounds of a counted repetition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) min: u32,
    /// [`UNBOUNDED`] if there is no maximum.
    pub(crate) max: u32,
}

/// Units that were begun: a number, or the number of a set in [`CountSets`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Count(u32);

const IS_SET: u32 = 1 << 31;

impl Count {
    pub(crate) const ZERO: Self = Self(0);

    /// A single value.
    #[inline]
    pub(crate) fn of(units: u32) -> Self {
        debug_assert!(units < IS_SET, "texts are shorter than that");
        Self(units)
    }

    /// The first unit, counted no further than it matters.
    #[inline]
    pub(crate) fn first(bounds: Bounds) -> Self {
        Self(if bounds.max == UNBOUNDED { bounds.min.min(1) } else { 1 })
    }

    pub(crate) fn from_raw(raw: u32) -> Self {
        Self(raw)
    }

    #[inline]
    pub(crate) fn raw(self) -> u32 {
        self.0
    }

    /// The value, if it is a single one.
    #[inline]
    pub(crate) fn single(self) -> Option<u32> {
        (self.0 & IS_SET == 0).then_some(self.0)
    }

    /// A value for display: the only one, or nothing.
    pub(crate) fn shown(self) -> u32 {
        self.single().unwrap_or(0)
    }
}

impl Bounds {
    /// What may follow `units`.
    #[inline]
    pub(crate) fn window(self, units: u32) -> Window {
        let room = if self.max == UNBOUNDED { UNBOUNDED } else { self.max.saturating_sub(units) };
        Window { need: self.min.saturating_sub(units), room }
    }

    /// The number of units that leaves exactly this window, if there is one.
    fn units(self, window: Window) -> Option<u32> {
        let units = if self.max == UNBOUNDED {
            self.min.checked_sub(window.need)?
        } else {
            self.max.checked_sub(window.room)?
        };
        (units < IS_SET && self.window(units) == window).then_some(units)
    }
}

/// All sets of one program. Sets are never removed; there are as many as texts have led to.
#[derive(Debug)]
pub(crate) struct CountSets {
    sets: Slices<Window>,
}

impl CountSets {
    pub(crate) fn new() -> Self {
        Self { sets: Slices::new() }
    }

    /// What may follow a count.
    #[inline]
    pub(crate) fn windows(&self, count: Count, bounds: Bounds) -> Windows {
        match count.single() {
            Some(units) => Windows::from_slice(&[bounds.window(units)]),
            None => Windows::from_slice(self.set(count)),
        }
    }

    /// The windows of a count that is not a single number.
    #[cold]
    fn set(&self, count: Count) -> &[Window] {
        self.sets.get(count.0 & !IS_SET)
    }

    /// The count behind which these windows follow.
    fn count(&self, windows: &[Window], bounds: Bounds) -> Count {
        if let &[only] = windows
            && let Some(units) = bounds.units(only)
        {
            return Count(units);
        }
        Count(self.intern(windows) | IS_SET)
    }

    /// The number of a set, the same for equal sets.
    pub(crate) fn intern(&self, windows: &[Window]) -> u32 {
        self.sets.number(windows)
    }

    /// The count after one more unit; nothing if there is no room for it.
    #[inline]
    pub(crate) fn advance(&self, count: Count, bounds: Bounds) -> Option<Count> {
        match count.single() {
            Some(units) if bounds.max == UNBOUNDED => Some(Count((units + 1).min(bounds.min))),
            Some(units) => (units < bounds.max).then_some(Count(units + 1)),
            None => self.advance_set(count, bounds),
        }
    }

    #[cold]
    fn advance_set(&self, count: Count, bounds: Bounds) -> Option<Count> {
        let after = |window: Window| Window {
            need: window.need.saturating_sub(1),
            room: if window.room == UNBOUNDED { UNBOUNDED } else { window.room - 1 },
        };
        let windows = self.set(count).iter().filter(|window| window.room > 0);
        let windows = normalize(windows.map(|&window| after(window)).collect());
        (!windows.is_empty()).then(|| self.count(&windows, bounds))
    }

    /// At least so many units may follow, and any number of them.
    pub(crate) fn unlimited(&self, need: u32) -> Count {
        Count(self.intern(&[Window { need, room: UNBOUNDED }]) | IS_SET)
    }

    /// Whether nothing more is needed.
    #[inline]
    pub(crate) fn may_stop(&self, count: Count, bounds: Bounds) -> bool {
        match count.single() {
            Some(units) => units >= bounds.min,
            None => self.set(count)[0].need == 0,
        }
    }

    /// How many units may follow at most.
    #[inline]
    pub(crate) fn room(&self, count: Count, bounds: Bounds) -> u32 {
        match count.single() {
            Some(_) if bounds.max == UNBOUNDED => UNBOUNDED,
            Some(units) => bounds.max.saturating_sub(units),
            None => self.set(count).last().map_or(0, |window| window.room),
        }
    }

    /// How many units must follow at least.
    pub(crate) fn need(&self, count: Count, bounds: Bounds) -> u32 {
        self.windows(count, bounds)[0].need
    }

    /// Both counts.
    pub(crate) fn union(&self, a: Count, b: Count, bounds: Bounds) -> Count {
        if a == b {
            return a;
        }
        let mut windows = self.windows(a, bounds);
        windows.extend(self.windows(b, bounds));
        self.count(&normalize(windows), bounds)
    }

    /// Whether whatever may follow `b` may follow `a`.
    pub(crate) fn contains(&self, a: Count, b: Count, bounds: Bounds) -> bool {
        if a == b {
            return true;
        }
        let outer = self.windows(a, bounds);
        let is_inside = |inner: &Window| {
            outer.iter().any(|window| window.need <= inner.need && inner.room <= window.room)
        };
        self.windows(b, bounds).iter().all(is_inside)
    }

    /// A count as far as somebody sees who looks no further than `far` units: what is missing, and what is left. Equal numbers mean
    /// equal views.
    #[inline]
    pub(crate) fn view(&self, count: Count, bounds: Bounds, far: u32) -> u64 {
        self.view_of_room(count, bounds, far, u32::MAX)
    }

    /// The same for somebody to whom any room from `enough` on is the same.
    #[inline]
    pub(crate) fn view_of_room(&self, count: Count, bounds: Bounds, far: u32, enough: u32) -> u64 {
        let clamp = |window: Window| Window { need: window.need.min(far), room: window.room.min(far) };
        if let Some(units) = count.single() {
            return one_view(clamp(bounds.window(units)), enough);
        }
        let windows = self.windows(count, bounds);
        match *normalize(windows.into_iter().map(clamp).collect()) {
            [only] => one_view(only, enough),
            ref windows => 1 << 63 | u64::from(self.intern(windows)),
        }
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.sets.heap_bytes()
    }
}

/// Exactly so much room and any room from there on are two views.
#[inline]
fn one_view(Window { need, room }: Window, enough: u32) -> u64 {
    let room = if room >= enough { u64::from(enough) | 1 << 31 } else { u64::from(room) };
    u64::from(need) << 32 | room
}

/// Sorts windows and joins those that overlap or touch.
fn normalize(mut windows: Windows) -> Windows {
    windows.sort_unstable();
    let mut joined = Windows::new();
    for window in windows {
        match joined.last_mut() {
            Some(last) if window.need <= last.room.saturating_add(1) => {
                last.room = last.room.max(window.room);
            }
            _ => joined.push(window),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of units up to a limit that may follow a count.
    fn follow(sets: &CountSets, count: Count, bounds: Bounds, limit: u32) -> Vec<u32> {
        let windows = sets.windows(count, bounds);
        let may = |units: &u32| windows.iter().any(|w| w.need <= *units && *units <= w.room);
        (0..=limit).filter(may).collect()
    }

    /// Unions, steps and views against sets of numbers, for all small bounds and all pairs of counts.
    #[test]
    fn counts_are_sets_of_what_may_follow() {
        const LIMIT: u32 = 12;
        let sets = CountSets::new();
        for (min, max) in (0..6).flat_map(|min| (min..8).chain([UNBOUNDED]).map(move |max| (min, max))) {
            let bounds = Bounds { min, max };
            let most = if max == UNBOUNDED { min } else { max };
            let counts: Vec<Count> = (0..=most).map(Count::of).collect();
            for &a in &counts {
                for &b in &counts {
                    let both = sets.union(a, b, bounds);
                    let mut expected = follow(&sets, a, bounds, LIMIT);
                    expected.extend(follow(&sets, b, bounds, LIMIT));
                    expected.sort_unstable();
                    expected.dedup();
                    assert_eq!(follow(&sets, both, bounds, LIMIT), expected, "{a:?} and {b:?} of {bounds:?}");
                    assert_eq!(sets.union(b, a, bounds), both);
                    assert!(sets.contains(both, a, bounds) && sets.contains(both, b, bounds));
                    assert_eq!(sets.contains(a, b, bounds), sets.union(a, b, bounds) == a);
                    assert_eq!(sets.may_stop(both, bounds), expected.contains(&0));
                    assert_eq!(sets.need(both, bounds), expected[0]);
                    let after: Vec<u32> = expected.iter().filter_map(|units| units.checked_sub(1)).collect();
                    match sets.advance(both, bounds) {
                        None => assert!(after.is_empty()),
                        Some(count) => assert_eq!(follow(&sets, count, bounds, LIMIT - 1), after),
                    }
                }
            }
        }
    }

    #[test]
    fn views_differ_only_within_reach() {
        let sets = CountSets::new();
        let bounds = Bounds { min: 10, max: 1000 };
        let view = |units| sets.view(Count::of(units), bounds, 20);
        assert_eq!(view(100), view(900));
        assert_ne!(view(900), view(990));
        assert_ne!(view(3), view(4));
        let set = sets.union(Count::of(100), Count::of(900), bounds);
        assert_eq!(sets.view(set, bounds, 20), view(100));
    }
}
