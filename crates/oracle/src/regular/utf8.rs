//! Splits ranges of characters into sequences of byte ranges.
//!
//! `['a'-'é']` is one byte `61`–`7F`, or `C2` and one byte `80`–`BF`, or `C3` and one byte `80`–`A9`. A range is first
//! cut where the encoding changes its length (and around the surrogates, which have no encoding), then from the left
//! byte to the right until every part is a box of byte ranges.

/// One byte range for each byte of the encoding.
pub(super) type ByteRanges = Vec<(u8, u8)>;

/// Returns the encodings of all characters from `first` to `last`, as boxes that do not overlap.
pub(super) fn byte_ranges(first: char, last: char) -> Vec<ByteRanges> {
    const SAME_LENGTH: [(u32, u32); 5] =
        [(0, 0x7F), (0x80, 0x7FF), (0x800, 0xD7FF), (0xE000, 0xFFFF), (0x1_0000, 0x10_FFFF)];
    let mut boxes = Vec::new();
    for (low, high) in SAME_LENGTH {
        let low = low.max(u32::from(first));
        let high = high.min(u32::from(last));
        if let (true, Some(low), Some(high)) = (low <= high, char::from_u32(low), char::from_u32(high)) {
            let (mut from, mut to) = ([0; 4], [0; 4]);
            let from = low.encode_utf8(&mut from).as_bytes();
            let to = high.encode_utf8(&mut to).as_bytes();
            split(&mut Vec::new(), from, to, &mut boxes);
        }
    }
    boxes
}

/// Splits the encodings between `from` and `to`, which have the same length, into boxes that begin with `before`.
fn split(before: &mut ByteRanges, from: &[u8], to: &[u8], boxes: &mut Vec<ByteRanges>) {
    let (&[low, ref from_rest @ ..], &[high, ref to_rest @ ..]) = (from, to) else {
        boxes.push(before.clone());
        return;
    };
    let from_is_least = from_rest.iter().all(|&b| b == 0x80);
    let to_is_greatest = to_rest.iter().all(|&b| b == 0xBF);
    if low == high || (from_is_least && to_is_greatest) {
        let tails = if low == high { (from_rest, to_rest) } else { (LEAST, GREATEST) };
        within(before, (low, high), (&tails.0[..from_rest.len()], &tails.1[..from_rest.len()]), boxes);
        return;
    }
    // Cut off the ragged ends, so that the rest is a box.
    let (mut low, mut high) = (low, high);
    if !from_is_least {
        within(before, (low, low), (from_rest, &GREATEST[..from_rest.len()]), boxes);
        low += 1;
    }
    let ragged_end = (!to_is_greatest).then_some(high);
    if ragged_end.is_some() {
        high -= 1;
    }
    if low <= high {
        within(before, (low, high), (&LEAST[..from_rest.len()], &GREATEST[..from_rest.len()]), boxes);
    }
    if let Some(high) = ragged_end {
        within(before, (high, high), (&LEAST[..to_rest.len()], to_rest), boxes);
    }
}

const LEAST: &[u8] = &[0x80; 3];
const GREATEST: &[u8] = &[0xBF; 3];

fn within(before: &mut ByteRanges, byte: (u8, u8), rest: (&[u8], &[u8]), boxes: &mut Vec<ByteRanges>) {
    before.push(byte);
    split(before, rest.0, rest.1, boxes);
    before.pop();
}

#[cfg(test)]
mod tests {
    use super::byte_ranges;

    fn holds(boxes: &[Vec<(u8, u8)>], bytes: &[u8]) -> usize {
        let fits = |ranges: &&Vec<(u8, u8)>| {
            ranges.len() == bytes.len()
                && ranges.iter().zip(bytes).all(|(&(low, high), b)| (low..=high).contains(b))
        };
        boxes.iter().filter(fits).count()
    }

    #[test]
    fn every_character_lies_in_one_box_exactly_when_it_is_in_the_range() {
        let edges = [
            ('\0', char::MAX),
            ('a', 'é'),
            ('\u{7F}', '\u{80}'),
            ('\u{7FF}', '\u{800}'),
            ('\u{FFF}', '\u{1001}'),
            ('\u{D7FF}', '\u{E000}'),
            ('\u{ABCD}', '\u{1_2345}'),
            ('\u{3_FFFF}', '\u{10_0000}'),
            ('x', 'x'),
            ('😀', '😀'),
        ];
        for (first, last) in edges {
            let boxes = byte_ranges(first, last);
            for c in '\0'..=char::MAX {
                let expected = usize::from((first..=last).contains(&c));
                let got = holds(&boxes, c.encode_utf8(&mut [0; 4]).as_bytes());
                assert_eq!(got, expected, "{c:?} in {first:?}..={last:?}");
            }
        }
    }

    #[test]
    fn nothing_but_characters_is_encoded() {
        let total: u64 = byte_ranges('\0', char::MAX)
            .iter()
            .map(|ranges| ranges.iter().map(|&(low, high)| u64::from(high - low) + 1).product::<u64>())
            .sum();
        assert_eq!(total, 0x11_0000 - 0x800);
    }
}
