//! Replaces the tokens that a grammar requests by bytes.
//!
//! A special token has no text, but on the tries of a vocabulary it has a spelling: a byte that UTF-8 does not use,
//! followed by its number ([`number_spelling`]). So `<|call|>`, with number 300 = 2 · 128 + 44, becomes the literal `FF
//! 00 00 02 2C`, and a set of tokens becomes a few ranges of such numbers. After this pass, no code has to know about
//! special tokens.

use std::borrow::Cow;

use maskwright_grammar::{CharSet, Expr, ExprId, Grammar, GrammarBuilder, TokenBase, TokenRef, TokenSet};
use maskwright_vocab::{MARK, TokenId, Vocabulary, number_spelling};

use super::CompileError;

/// A grammar without tokens.
#[derive(Debug)]
pub struct Resolved<'g> {
    /// The grammar. Borrowed if it requested no tokens.
    pub grammar: Cow<'g, Grammar>,
    /// Whether it requests ordinary tokens by number, so that the vocabulary must be [numbered](Vocabulary::numbered).
    pub needs_numbers: bool,
    /// Whether it requests a token that ends the text elsewhere.
    pub asks_for_end: bool,
}

/// Replaces every [`Expr::Token`] by the spelling of its tokens in a vocabulary.
///
/// ```
/// use maskwright_engine::resolve;
/// use maskwright_grammar::{GrammarBuilder, TokenRef, TokenSet};
/// use maskwright_vocab::{TokenId, VocabularyBuilder};
///
/// let mut vocabulary = VocabularyBuilder::new();
/// vocabulary.special(TokenId(300), "<|call|>")?;
/// let vocabulary = vocabulary.finish()?;
/// let mut g = GrammarBuilder::new();
/// let call = g.token(TokenSet::these([TokenRef::name("<|call|>")]));
/// let root = g.declare("root");
/// g.define(root, call);
/// let grammar = g.finish(root)?;
/// let resolved = resolve(&grammar, &vocabulary)?;
/// assert_eq!(resolved.grammar.to_string(), r#"root ::= "\xff\x00\x00\x02,""#);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn resolve<'g>(grammar: &'g Grammar, vocabulary: &Vocabulary) -> Result<Resolved<'g>, CompileError> {
    if !grammar.has_tokens() {
        return Ok(Resolved { grammar: Cow::Borrowed(grammar), needs_numbers: false, asks_for_end: false });
    }
    let (mut needs_numbers, mut asks_for_end) = (false, false);
    let mut failed = None;
    let resolved = grammar.replacing(|g, expr| {
        let Expr::Token(set) = expr else { return None };
        match members(set, vocabulary) {
            Ok(tokens) => {
                needs_numbers |= tokens.iter().any(|token| !vocabulary.is_special(*token));
                asks_for_end |= tokens.iter().any(|token| vocabulary.eos().contains(token));
                Some(spellings(g, &tokens))
            }
            Err(error) => {
                failed = Some(error);
                None
            }
        }
    });
    if let Some(error) = failed {
        return Err(error);
    }
    match resolved {
        Ok(grammar) => Ok(Resolved { grammar: Cow::Owned(grammar), needs_numbers, asks_for_end }),
        // The grammar was finished before, and its rules are the same.
        Err(error) => Err(CompileError::Tokens(error.to_string())),
    }
}

/// Returns the tokens of a set in ascending order.
fn members(set: &TokenSet, vocabulary: &Vocabulary) -> Result<Vec<TokenId>, CompileError> {
    let mut listed: Vec<TokenId> = Vec::new();
    for token in set.listed() {
        let before = listed.len();
        match token {
            TokenRef::Name(name) => listed.extend(named(name, vocabulary)),
            TokenRef::Ids(first, last) => {
                let last = (*last).min((vocabulary.size() as u32).saturating_sub(1));
                listed.extend((*first..=last).map(TokenId).filter(|id| vocabulary.is_used(*id)));
            }
        }
        if listed.len() == before && set.base() == TokenBase::Nothing {
            return Err(CompileError::UnknownToken(unknown(token, vocabulary)));
        }
    }
    listed.sort_unstable();
    listed.dedup();
    let is_left = |id: &TokenId| listed.binary_search(id).is_err() && !vocabulary.eos().contains(id);
    Ok(match set.base() {
        TokenBase::Nothing => listed,
        TokenBase::Specials => vocabulary.specials().map(|(id, _)| id).filter(is_left).collect(),
        TokenBase::Everything => {
            let ids = (0..vocabulary.size() as u32).map(TokenId);
            ids.filter(|id| vocabulary.is_used(*id)).filter(is_left).collect()
        }
    })
}

/// Returns the special token with this name, or else the ordinary tokens with this text.
fn named(name: &str, vocabulary: &Vocabulary) -> Vec<TokenId> {
    if let Some(token) = vocabulary.special(name) {
        return vec![token];
    }
    let trie = vocabulary.trie();
    let node = trie.find(name.as_bytes());
    node.map_or_else(Vec::new, |node| trie.tokens(node).iter().copied().map(TokenId).collect())
}

/// Formats the message for an unknown token, with a similar name if there is one.
fn unknown(token: &TokenRef, vocabulary: &Vocabulary) -> String {
    let name = match token {
        TokenRef::Ids(first, last) if first == last => return format!("there is no token {first}"),
        TokenRef::Ids(first, last) => return format!("there is no token from {first} to {last}"),
        TokenRef::Name(name) => name,
    };
    let plain = |name: &str| -> String {
        name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
    };
    let near = vocabulary.specials().find(|(_, known)| plain(known) == plain(name));
    let near = near.map_or_else(
        || "the special tokens are listed by `maskwright vocab`".to_owned(),
        |(_, known)| format!("is `{known}` meant?"),
    );
    format!("there is no token `{name}`; {near}")
}

/// Builds an expression that matches the spelling of any of these tokens, which are in ascending order.
fn spellings(g: &mut GrammarBuilder, tokens: &[TokenId]) -> ExprId {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for &TokenId(id) in tokens {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == id => *last = id,
            _ => runs.push((id, id)),
        }
    }
    let mut parts = Vec::new();
    for (first, last) in runs {
        let [first, last] = [first, last].map(|id| number_spelling(TokenId(id)));
        between(&first[1..], &last[1..], &mut Vec::new(), &mut |ranges| {
            let digits: Vec<ExprId> = ranges.iter().map(|&range| digit(g, range)).collect();
            parts.push(g.seq(digits));
        });
    }
    let mark = g.bytes(&[MARK]);
    let numbers = g.alt(parts);
    g.seq([mark, numbers])
}

fn digit(g: &mut GrammarBuilder, (first, last): (u8, u8)) -> ExprId {
    g.class(CharSet::from_ranges([(char::from(first), char::from(last))]))
}

/// Cuts the interval between two numbers of equal length into boxes, each with a range for every digit.
fn between(first: &[u8], last: &[u8], before: &mut Vec<(u8, u8)>, found: &mut impl FnMut(&[(u8, u8)])) {
    const LEAST: u8 = 0;
    const MOST: u8 = 0x7F;
    let ([low, first @ ..], [high, last @ ..]) = (first, last) else { return found(before) };
    let all = |digits: &[u8], digit: u8| digits.iter().all(|d| *d == digit);
    let mut with = |range: (u8, u8), first: &[u8], last: &[u8]| {
        before.push(range);
        between(first, last, before, found);
        before.pop();
    };
    if low == high {
        return with((*low, *low), first, last);
    }
    let (least, most) = (vec![LEAST; first.len()], vec![MOST; first.len()]);
    let from = if all(first, LEAST) { *low } else { low + 1 };
    let to = if all(last, MOST) { *high } else { high - 1 };
    if from > *low {
        with((*low, *low), first, &most);
    }
    if from <= to {
        with((from, to), &least, &most);
    }
    if to < *high {
        with((*high, *high), &least, last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_hold_exactly_the_numbers_between() {
        let number = |digits: [u8; 2]| u32::from(digits[0]) * 128 + u32::from(digits[1]);
        let digits = |number: u32| [(number >> 7) as u8, (number & 0x7F) as u8];
        for (first, last) in
            [(0, 0), (5, 5), (0, 127), (5, 130), (127, 128), (128, 383), (3, 700), (0, 16_383)]
        {
            let mut held = Vec::new();
            between(&digits(first), &digits(last), &mut Vec::new(), &mut |boxes| {
                for a in boxes[0].0..=boxes[0].1 {
                    held.extend((boxes[1].0..=boxes[1].1).map(|b| number([a, b])));
                }
            });
            held.sort_unstable();
            assert_eq!(held, (first..=last).collect::<Vec<_>>());
        }
    }
}
