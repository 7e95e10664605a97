//! Converts a language of texts to the JSON strings that spell them.
//!
//! A character may be written as itself, by a short escape, by `\uXXXX`, or, beyond U+FFFF, by a pair of these. So
//! every class becomes a choice of at most four parts:
//!
//! ```text
//! [a"]   ──▶   [a] | \\["] | \\u00(61|22)
//! ```

use maskwright_grammar::CharSet;
use rustc_hash::FxHashMap;

use super::parts::{Part, PartId, Parts};

/// Returns the strings, including quotes, whose decoded text is in the language.
pub(super) fn json_string(parts: &mut Parts, text: PartId) -> PartId {
    let spelled = spell(parts, text);
    let quote = parts.text("\"");
    parts.seq([quote, spelled, quote])
}

/// Returns the language with every class spelled out.
fn spell(parts: &mut Parts, root: PartId) -> PartId {
    let mut done: FxHashMap<PartId, PartId> = FxHashMap::default();
    let mut work = vec![(root, false)];
    while let Some((id, ready)) = work.pop() {
        if done.contains_key(&id) {
            continue;
        }
        let part = parts.get(id).clone();
        if !ready {
            work.push((id, true));
            match &part {
                Part::Seq(list) | Part::Alt(list) => work.extend(list.iter().map(|id| (*id, false))),
                Part::Repeat { body, .. } => work.push((*body, false)),
                Part::Never | Part::Empty | Part::Class(_) => {}
            }
            continue;
        }
        let get = |id: &PartId| done.get(id).copied().unwrap_or(PartId::NEVER);
        let spelled = match part {
            Part::Never | Part::Empty => id,
            Part::Class(set) => character(parts, &set),
            Part::Seq(list) => {
                let list: Vec<PartId> = list.iter().map(get).collect();
                parts.seq(list)
            }
            Part::Alt(list) => {
                let list: Vec<PartId> = list.iter().map(get).collect();
                parts.alt(list)
            }
            Part::Repeat { body, min, max } => parts.repeat(get(&body), min, max),
        };
        done.insert(id, spelled);
    }
    done.get(&root).copied().unwrap_or(PartId::NEVER)
}

/// The short escapes: the character after the backslash, and its meaning.
const SHORT: [(char, char); 8] = [
    ('"', '"'),
    ('\\', '\\'),
    ('/', '/'),
    ('b', '\u{8}'),
    ('f', '\u{C}'),
    ('n', '\n'),
    ('r', '\r'),
    ('t', '\t'),
];

/// Returns all spellings of one character of a set.
fn character(parts: &mut Parts, set: &CharSet) -> PartId {
    let special = CharSet::from_ranges([('\0', '\u{1F}'), ('"', '"'), ('\\', '\\')]);
    let plain = parts.class(set.intersection(&special.complement()));
    let letters =
        SHORT.iter().filter(|(_, meaning)| set.contains(*meaning)).map(|(letter, _)| (*letter, *letter));
    let short = parts.class(CharSet::from_ranges(letters));
    let numbers = numbers(set);
    let hex = hex_ranges(parts, &numbers.basic, 4);
    let u = parts.text("u");
    let long = parts.seq([u, hex]);
    let backslash = parts.text("\\");
    let pair = pairs(parts, &numbers.beyond);
    let pair = parts.seq([u, pair]);
    let escape = parts.alt([short, long, pair]);
    let escape = parts.seq([backslash, escape]);
    parts.alt([plain, escape])
}

/// The code points of the members of a set, up to U+FFFF and beyond.
struct Numbers {
    basic: Ranges,
    beyond: Ranges,
}

fn numbers(set: &CharSet) -> Numbers {
    let (mut basic, mut beyond) = (Vec::new(), Vec::new());
    for &(first, last) in set.ranges() {
        let (first, last) = (u32::from(first), u32::from(last));
        // The surrogates are not characters, so a range is interrupted by them.
        for (low, high) in [(0, 0xD7FF), (0xE000, 0xFFFF)] {
            let (low, high) = (first.max(low), last.min(high));
            if low <= high {
                basic.push((low, high));
            }
        }
        if last > 0xFFFF {
            beyond.push((first.max(0x1_0000), last));
        }
    }
    Numbers { basic, beyond }
}

/// Returns pairs of surrogates, without the first `\u`: a high one, `\u`, and a low one.
fn pairs(parts: &mut Parts, ranges: &[(u32, u32)]) -> PartId {
    let between = parts.text("\\u");
    let mut ways = Vec::new();
    for &(first, last) in ranges {
        let (first, last) = (first - 0x1_0000, last - 0x1_0000);
        for (high, low) in split(first, last, 10) {
            let high = hex_ranges(parts, &[(0xD800 + high.0, 0xD800 + high.1)], 4);
            let low = hex_ranges(parts, &[(0xDC00 + low.0, 0xDC00 + low.1)], 4);
            ways.push(parts.seq([high, between, low]));
        }
    }
    parts.alt(ways)
}

/// Splits a range of numbers into at most three products of a range of the upper bits and a range of the lower bits.
fn split(first: u32, last: u32, bits: u32) -> Vec<((u32, u32), (u32, u32))> {
    let full = (1 << bits) - 1;
    let (top, bottom) = (first >> bits, last >> bits);
    if top == bottom {
        return vec![((top, top), (first & full, last & full))];
    }
    let mut out = Vec::new();
    let (mut from, mut to) = (top, bottom);
    if first & full != 0 {
        out.push(((top, top), (first & full, full)));
        from += 1;
    }
    if last & full != full {
        to -= 1;
    }
    if from <= to {
        out.push(((from, to), (0, full)));
    }
    if last & full != full {
        out.push(((bottom, bottom), (0, last & full)));
    }
    out
}

/// Inclusive ranges of numbers.
type Ranges = Vec<(u32, u32)>;

/// Returns numbers with this many hexadecimal digits, in either case. The depth of the recursion is the number of
/// digits.
fn hex_ranges(parts: &mut Parts, ranges: &[(u32, u32)], digits: u32) -> PartId {
    let Some(less) = digits.checked_sub(1) else {
        return if ranges.is_empty() { PartId::NEVER } else { PartId::EMPTY };
    };
    // The ranges that may follow each first digit. Digits with the same ranges are written together.
    let mut groups: Vec<(Ranges, Vec<u32>)> = Vec::new();
    for digit in 0..16u32 {
        let low = digit << (4 * less);
        let high = low + (1 << (4 * less)) - 1;
        let rest: Ranges = ranges
            .iter()
            .map(|&(first, last)| (first.max(low), last.min(high)))
            .filter(|(first, last)| first <= last)
            .map(|(first, last)| (first - low, last - low))
            .collect();
        let rest = merged(rest);
        if rest.is_empty() {
            continue;
        }
        match groups.iter_mut().find(|group| group.0 == rest) {
            Some(group) => group.1.push(digit),
            None => groups.push((rest, vec![digit])),
        }
    }
    let ways: Vec<PartId> = groups
        .into_iter()
        .map(|(rest, digits)| {
            let letters = digits.into_iter().filter_map(|digit| char::from_digit(digit, 16));
            let cases = letters.flat_map(|c| [(c, c), (c.to_ascii_uppercase(), c.to_ascii_uppercase())]);
            let head = parts.class(CharSet::from_ranges(cases));
            let tail = hex_ranges(parts, &rest, less);
            parts.seq([head, tail])
        })
        .collect();
    parts.alt(ways)
}

/// Sorts ranges and merges those that touch.
fn merged(mut ranges: Ranges) -> Ranges {
    ranges.sort_unstable();
    let mut out: Ranges = Vec::new();
    for (first, last) in ranges {
        match out.last_mut() {
            Some(range) if first <= range.1 + 1 => range.1 = range.1.max(last),
            _ => out.push((first, last)),
        }
    }
    out
}
