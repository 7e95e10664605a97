//! Finds the part of a source because of which no text matches the whole.
//!
//! The suspect parts are ordered as in the text, and only the first ones are kept: with none of them some text matches,
//! with all of them no text does, so there is one part at which this changes. It is found by bisection. Other parts may
//! exclude everything as well; another one is then reported after this one is fixed.

/// Returns the index of the part with which the last matching text is lost. `is_empty` decides whether no text matches
/// if only this many parts are kept, and returns `None` if that is unknown.
///
/// Returns `None` if no part is the reason, or that is unknown.
pub(crate) fn culprit(parts: usize, mut is_empty: impl FnMut(usize) -> Option<bool>) -> Option<usize> {
    if parts == 0 || is_empty(0)? || !is_empty(parts)? {
        return None;
    }
    // Some text matches with `some` parts, and none with `none` parts.
    let (mut some, mut none) = (0, parts);
    while none - some > 1 {
        let middle = usize::midpoint(some, none);
        if is_empty(middle)? {
            none = middle;
        } else {
            some = middle;
        }
    }
    Some(some)
}

#[cfg(test)]
mod tests {
    use super::culprit;

    #[test]
    fn finds_the_part_with_which_the_last_text_is_lost() {
        for parts in 1..20 {
            for first in 0..parts {
                assert_eq!(culprit(parts, |kept| Some(kept > first)), Some(first), "{first} of {parts}");
            }
        }
    }

    #[test]
    fn blames_nobody_without_a_reason() {
        assert_eq!(culprit(0, |_| Some(true)), None);
        assert_eq!(culprit(3, |_| Some(true)), None, "it is empty without any of them");
        assert_eq!(culprit(3, |_| Some(false)), None, "it is not empty");
        assert_eq!(culprit(9, |kept| (kept != 4).then_some(kept > 2)), None, "that is not known of four");
    }
}
