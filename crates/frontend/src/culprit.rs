//! Which part of a source is to blame if no text matches the whole.
//!
//! Parts that may be to blame are put in the order of the text, and the last of them are left out: with none of them some text matches, with all of them none does, so
//! there is one part with which that changes. It is found by halving. Others may rule out everything as well; then another one is told after this one is mended.

/// The number of the part with which the last text is lost. `is_empty` says whether no text matches if only so many parts are kept; `None` if that is not known.
///
/// `None` if no part is to blame, or that cannot be known.
pub(crate) fn culprit(parts: usize, mut is_empty: impl FnMut(usize) -> Option<bool>) -> Option<usize> {
    if parts == 0 || is_empty(0)? || !is_empty(parts)? {
        return None;
    }
    // Some text matches with so many, and none with so many.
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
