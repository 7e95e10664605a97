//! Tokens of the vocabulary, in the notation of Lark and GBNF: `<name>`, `<[12]>`, `<[3-5,7]>`, `<[^9]>`, `<[*]>`.

use maskwright_grammar::{TokenRef, TokenSet};

/// The forms of tokens, for messages.
pub(crate) const FORMS: &str = "write `<name>`, `<[12]>`, `<[3-5,7]>`, `<[^9]>` or `<[*]>`, without blanks";

/// Returns the length in bytes of the token at the start of `text`, which is a `<`, or `None` if there is no token.
pub(crate) fn length(text: &str) -> Option<usize> {
    let len = 1 + text[1..].find(|c: char| c == '<' || c == '>' || c.is_whitespace())?;
    (len > 1 && text[len..].starts_with('>')).then_some(len + 1)
}

/// Returns the tokens that `text`, including both signs, stands for. With `negated`, all others.
pub(crate) fn read(text: &str, negated: bool) -> Result<TokenSet, String> {
    let numbers = text.strip_prefix("<[").and_then(|text| text.strip_suffix("]>"));
    let (listed, is_inverted) = match numbers {
        None => (vec![TokenRef::name(text)], false),
        Some("*") => (Vec::new(), true),
        Some(numbers) => {
            let (numbers, is_inverted) = match numbers.strip_prefix('^') {
                Some(numbers) => (numbers, true),
                None => (numbers, false),
            };
            (numbers.split(',').map(range).collect::<Result<_, _>>()?, is_inverted)
        }
    };
    match (negated, is_inverted) {
        (false, false) => Ok(TokenSet::these(listed)),
        (true, false) | (false, true) => Ok(TokenSet::all_but(listed)),
        (true, true) if listed.is_empty() => Err("this leaves no token".into()),
        (true, true) => Ok(TokenSet::these(listed)),
    }
}

/// Reads a number, or a range of numbers.
fn range(text: &str) -> Result<TokenRef, String> {
    let number =
        |digits: &str| digits.parse::<u32>().map_err(|_| format!("`{digits}` is no number of a token"));
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (number(first)?, number(last)?);
    if first > last {
        return Err(format!("the range `{text}` goes backwards"));
    }
    Ok(TokenRef::Ids(first, last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms() {
        let ids = TokenRef::Ids;
        assert_eq!(read("<|a|>", false), Ok(TokenSet::these([TokenRef::name("<|a|>")])));
        assert_eq!(read("<[3-5,7]>", false), Ok(TokenSet::these([ids(3, 5), ids(7, 7)])));
        assert_eq!(read("<[^3]>", false), Ok(TokenSet::all_but([ids(3, 3)])));
        assert_eq!(read("<[3]>", true), Ok(TokenSet::all_but([ids(3, 3)])));
        assert_eq!(read("<[^3]>", true), Ok(TokenSet::these([ids(3, 3)])));
        assert_eq!(read("<[*]>", false), Ok(TokenSet::all_but([])));
        for bad in
            ["<[]>", "<[,]>", "<[5-3]>", "<[a]>", "<[-1]>", "<[1-]>", "<[*,1]>", "<[99999999999]>", "<[^*]>"]
        {
            assert!(read(bad, false).is_err(), "{bad}");
        }
        assert!(read("<[*]>", true).is_err());
        let lengths = ["<a>b", "<a", "<>", "< a>", "<a<b>", "<[1]>"].map(length);
        assert_eq!(lengths, [Some(3), None, None, None, None, Some(5)]);
    }
}
