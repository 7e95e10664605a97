//! Counters of counted repetitions, as sets of values.
//!
//! In `(x{1,20} ?){1,50}` the text `xxxx` has many readings: one round of four, two rounds, and so on. The count of a
//! reading matters only through what may still follow. After `c` units, `{min,max}` leaves a *window*: at least `min -
//! c` and at most `max - c` more. Two readings that differ only in their count become one reading with the union of
//! their windows:
//!
//! ```text
//!   {3,20}  after 1 unit   [2, 19]
//!           after 3 units  [0, 17]     together [0, 19]
//! ```
//! Windows that overlap or touch are merged, and a window inside another disappears. So a set is nearly always a single
//! window. The language of a set is the union of the languages of its windows, so merging loses nothing.
//!
//! A [`Count`] is a plain number as long as one number describes the set, which is true for every unambiguous text.
//! Other sets are interned in [`CountSets`].

use smallvec::SmallVec;

use crate::store::Slices;

/// A number of units that may follow: at least `need`, at most `room`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Window {
    pub(crate) need: u32,
    /// The maximum, or [`UNBOUNDED`].
    pub(crate) room: u32,
}

/// Stands for "no maximum".
pub(crate) const UNBOUNDED: u32 = u32::MAX;

/// Disjoint windows that do not touch, in ascending order.
pub(crate) type Windows = SmallVec<[Window; 2]>;

/// The bounds of a counted repetition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) min: u32,
    /// The maximum, or [`UNBOUNDED`].
    pub(crate) max: u32,
}

/// The number of units that have begun: a plain number, or the id of a set in [`CountSets`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Count(u32);

const IS_SET: u32 = 1 << 31;

impl Count {
    pub(crate) const ZERO: Self = Self(0);

    /// Returns the count that is this single number.
    #[inline]
    pub(crate) fn of(units: u32) -> Self {
        debug_assert!(units < IS_SET, "texts are shorter than that");
        Self(units)
    }

    /// Returns the count after the first unit. Without a maximum, counting stops at the minimum.
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

    /// Returns the number, if the count is a single one.
    #[inline]
    pub(crate) fn single(self) -> Option<u32> {
        (self.0 & IS_SET == 0).then_some(self.0)
    }

    /// Returns a number for display: the count if it is a single number, otherwise 0.
    pub(crate) fn shown(self) -> u32 {
        self.single().unwrap_or(0)
    }
}

impl Bounds {
    /// Returns the window that is left after `units` units.
    #[inline]
    pub(crate) fn window(self, units: u32) -> Window {
        let room = if self.max == UNBOUNDED { UNBOUNDED } else { self.max.saturating_sub(units) };
        Window { need: self.min.saturating_sub(units), room }
    }

    /// Returns the number of units after which exactly this window is left, if there is one.
    fn units(self, window: Window) -> Option<u32> {
        let units = if self.max == UNBOUNDED {
            self.min.checked_sub(window.need)?
        } else {
            self.max.checked_sub(window.room)?
        };
        (units < IS_SET && self.window(units) == window).then_some(units)
    }
}

/// All count sets of one program. Sets are never removed; only those that texts have led to exist.
#[derive(Debug)]
pub(crate) struct CountSets {
    sets: Slices<Window>,
}

impl CountSets {
    pub(crate) fn new() -> Self {
        Self { sets: Slices::new() }
    }

    /// Returns the windows that are left at a count.
    #[inline]
    pub(crate) fn windows(&self, count: Count, bounds: Bounds) -> Windows {
        match count.single() {
            Some(units) => Windows::from_slice(&[bounds.window(units)]),
            None => Windows::from_slice(self.set(count)),
        }
    }

    /// Returns the windows of a count that is not a single number.
    #[cold]
    fn set(&self, count: Count) -> &[Window] {
        self.sets.get(count.0 & !IS_SET)
    }

    /// Returns the count for which exactly these windows are left.
    fn count(&self, windows: &[Window], bounds: Bounds) -> Count {
        if let &[only] = windows
            && let Some(units) = bounds.units(only)
        {
            return Count(units);
        }
        Count(self.intern(windows) | IS_SET)
    }

    /// Returns the id of a set. Equal sets have equal ids.
    pub(crate) fn intern(&self, windows: &[Window]) -> u32 {
        self.sets.number(windows)
    }

    /// Returns the count after one more unit, or `None` if there is no room for it.
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

    /// Returns a count after which at least `need` units must follow, without a maximum.
    pub(crate) fn unlimited(&self, need: u32) -> Count {
        Count(self.intern(&[Window { need, room: UNBOUNDED }]) | IS_SET)
    }

    /// Checks whether the repetition may stop at this count.
    #[inline]
    pub(crate) fn may_stop(&self, count: Count, bounds: Bounds) -> bool {
        match count.single() {
            Some(units) => units >= bounds.min,
            None => self.set(count)[0].need == 0,
        }
    }

    /// Returns the greatest number of units that may follow.
    #[inline]
    pub(crate) fn room(&self, count: Count, bounds: Bounds) -> u32 {
        match count.single() {
            Some(_) if bounds.max == UNBOUNDED => UNBOUNDED,
            Some(units) => bounds.max.saturating_sub(units),
            None => self.set(count).last().map_or(0, |window| window.room),
        }
    }

    /// Returns the least number of units that must follow.
    pub(crate) fn need(&self, count: Count, bounds: Bounds) -> u32 {
        self.windows(count, bounds)[0].need
    }

    /// Returns the union of two counts.
    pub(crate) fn union(&self, a: Count, b: Count, bounds: Bounds) -> Count {
        if a == b {
            return a;
        }
        let mut windows = self.windows(a, bounds);
        windows.extend(self.windows(b, bounds));
        self.count(&normalize(windows), bounds)
    }

    /// Checks whether each number of units that may follow `b` may also follow `a`, window by window.
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

    /// Returns a key for a count as seen by an observer that looks at most `far` units ahead. Counts with equal keys
    /// are indistinguishable for it.
    #[inline]
    pub(crate) fn view(&self, count: Count, bounds: Bounds, far: u32) -> u64 {
        self.view_of_room(count, bounds, far, u32::MAX)
    }

    /// Returns the same key for an observer that does not distinguish rooms of `enough` units or more.
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

/// Returns the key of a single window. A flag marks `room >= enough`, so this key differs from that of any smaller
/// room.
#[inline]
fn one_view(Window { need, room }: Window, enough: u32) -> u64 {
    let room = if room >= enough { u64::from(enough) | 1 << 31 } else { u64::from(room) };
    u64::from(need) << 32 | room
}

/// Sorts windows and merges those that overlap or touch.
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

    /// Returns the numbers of units, up to a limit, that may follow a count.
    fn follow(sets: &CountSets, count: Count, bounds: Bounds, limit: u32) -> Vec<u32> {
        let windows = sets.windows(count, bounds);
        let may = |units: &u32| windows.iter().any(|w| w.need <= *units && *units <= w.room);
        (0..=limit).filter(may).collect()
    }

    /// Compares unions, steps and views with sets of numbers, for all small bounds and all pairs of counts.
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
