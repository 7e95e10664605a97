//! Small vocabularies.

use super::Rng;

/// Returns every string over the alphabet with 1 to `longest` bytes, the short ones first.
pub fn strings(alphabet: &[u8], longest: usize) -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = Vec::new();
    let mut last: Vec<Vec<u8>> = vec![Vec::new()];
    for _ in 0..longest {
        let longer = |shorter: &Vec<u8>| {
            let shorter = shorter.clone();
            alphabet.iter().map(move |&byte| [&shorter[..], &[byte]].concat())
        };
        last = last.iter().flat_map(longer).collect();
        all.extend_from_slice(&last);
    }
    all
}

/// Returns a vocabulary that can spell everything: each single byte, every string of two or three bytes over the
/// alphabet, `longer` random strings of four to nine bytes, and a few duplicates of all these; in random order.
pub fn vocabulary(rng: &mut Rng, alphabet: &[u8], longer: usize) -> Vec<Vec<u8>> {
    const ALIASES: usize = 3;
    let mut tokens: Vec<Vec<u8>> = (0..=u8::MAX).map(|byte| vec![byte]).collect();
    tokens.extend(strings(alphabet, 3).into_iter().filter(|token| token.len() > 1));
    for _ in 0..longer {
        let length = 4 + rng.below(6);
        tokens.push((0..length).filter_map(|_| rng.choose(alphabet).copied()).collect());
    }
    for _ in 0..ALIASES {
        tokens.push(tokens[rng.below(tokens.len())].clone());
    }
    for last in (1..tokens.len()).rev() {
        tokens.swap(last, rng.below(last + 1));
    }
    tokens
}
