//! Suggests a name in place of an unknown one.

/// Returns the name that is most similar to `name`, if one is similar enough.
pub(crate) fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // A comparison costs the product of the lengths, for every rule, so long names and huge grammars are not compared.
    const MAX_BYTES: usize = 64;
    const MAX_NAMES: usize = 10_000;
    let near_enough = (name.chars().count() / 3).max(1);
    names
        .take(MAX_NAMES)
        .filter(|other| name.len().max(other.len()) <= MAX_BYTES)
        .map(|other| (distance(name, other), other))
        .filter(|(distance, _)| *distance <= near_enough)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, other)| other)
}

/// Returns the number of characters that must be inserted, removed or changed to turn `a` into `b`. Case is ignored,
/// and swapping two adjacent characters counts as one change.
fn distance(a: &str, b: &str) -> usize {
    let fold = |text: &str| text.to_lowercase().chars().collect::<Vec<char>>();
    let (a, b) = (fold(a), fold(b));
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for i in 0..a.len() {
        let mut row = vec![i + 1];
        for j in 0..b.len() {
            let change = above[j] + usize::from(a[i] != b[j]);
            let mut least = change.min(above[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                least = least.min(before[j - 1] + 1);
            }
            row.push(least);
        }
        before = core::mem::replace(&mut above, row);
    }
    above[b.len()]
}

#[cfg(test)]
mod tests {
    use super::distance;

    #[test]
    fn distance_counts_edits() {
        assert_eq!(distance("digit", "digit"), 0);
        assert_eq!(distance("digit", "digits"), 1);
        assert_eq!(distance("digit", "dgiit"), 1);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("Expr", "expr"), 0);
    }
}
