//! References: from the text of a `$ref` to the schema that it names.
//!
//! Only places in the document itself can be named: `#`, `#/$defs/name`, or the same after the document's own
//! address. The rest – other documents, anchors, schemas with an address of their own – is refused by name.

use serde_json::Value;

use super::context::Context;
use super::error::Reason;
use super::path::PathId;

/// The schema that the `$ref` at `path` names, with its place; `None`, and a problem, if there is none.
pub(crate) fn resolve<'s>(
    context: &mut Context<'s>,
    reference: &str,
    path: PathId,
) -> Option<(&'s Value, PathId)> {
    match find(context, reference, path) {
        Ok(found) => Some(found),
        Err(miss) => {
            let (reason, message, help) = miss.explain(reference);
            context.problem(reason, path, "$ref", message, help);
            None
        }
    }
}

/// Why a reference leads nowhere.
pub(crate) enum Miss {
    OtherDocument,
    Anchor,
    OwnAddress,
    Nothing,
}

impl Miss {
    fn explain(&self, reference: &str) -> (Reason, String, &'static str) {
        match self {
            Self::OtherDocument => (
                Reason::Unsupported,
                format!("`{reference}` is in another document, which is not fetched"),
                "copy the schema into `$defs` and refer to it there",
            ),
            Self::Anchor => (
                Reason::Unsupported,
                format!("`{reference}` names an anchor, which is not looked up yet"),
                "refer to the schema by its JSON pointer, such as `#/$defs/name`",
            ),
            Self::OwnAddress => (
                Reason::Unsupported,
                format!(
                    "`{reference}` is inside or leads into a schema with its own `$id`, which is not resolved yet"
                ),
                "remove the inner `$id`, or refer from the root of the document",
            ),
            Self::Nothing => (
                Reason::Reference,
                format!("`{reference}` leads to nothing in this schema"),
                "define the schema there or mend the reference",
            ),
        }
    }
}

/// The same without a problem.
pub(crate) fn find<'s>(
    context: &mut Context<'s>,
    reference: &str,
    path: PathId,
) -> Result<(&'s Value, PathId), Miss> {
    let fragment = match reference.strip_prefix('#') {
        Some(_) if context.report.paths.is_rebased(path) => return Err(Miss::OwnAddress),
        Some(fragment) => fragment,
        None => own_fragment(context, reference).ok_or(Miss::OtherDocument)?,
    };
    if !fragment.is_empty() && !fragment.starts_with('/') {
        return Err(Miss::Anchor);
    }
    let fragment = percent_decoded(fragment).ok_or(Miss::Nothing)?;
    let (mut schema, mut at) = (context.root, PathId::ROOT);
    for token in fragment.split('/').skip(1) {
        let token = unescaped(token).ok_or(Miss::Nothing)?;
        schema = step(schema, &token).ok_or(Miss::Nothing)?;
        at = context.report.paths.key(at, &token);
        let id = schema.get(context.dialect.id_keyword()).and_then(Value::as_str);
        if id.is_some_and(|id| !id.starts_with('#')) {
            context.report.paths.rebase(at);
        }
    }
    Ok((schema, at))
}

/// The fragment of a reference that names this document by its own address.
fn own_fragment<'r>(context: &Context<'_>, reference: &'r str) -> Option<&'r str> {
    let id = context.root.get("$id").or_else(|| context.root.get("id"))?.as_str()?;
    let id = id.trim_end_matches('#');
    if id.is_empty() {
        return None;
    }
    let rest = reference.strip_prefix(id)?;
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix('#') }
}

fn step<'s>(schema: &'s Value, token: &str) -> Option<&'s Value> {
    match schema {
        Value::Object(map) => map.get(token),
        Value::Array(list) => {
            let canonical = token == "0" || !token.starts_with(['0', '+']);
            token.parse::<usize>().ok().filter(|_| canonical).and_then(|index| list.get(index))
        }
        _ => None,
    }
}

/// `~1` is a slash and `~0` a tilde; anything else after a tilde is an error.
fn unescaped(token: &str) -> Option<String> {
    let mut out = String::with_capacity(token.len());
    let mut parts = token.split('~');
    out.push_str(parts.next()?);
    for part in parts {
        match part.as_bytes().first()? {
            b'0' => out.push('~'),
            b'1' => out.push('/'),
            _ => return None,
        }
        out.push_str(&part[1..]);
    }
    Some(out)
}

fn percent_decoded(text: &str) -> Option<String> {
    if !text.contains('%') {
        return Some(text.to_owned());
    }
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let high = char::from(bytes.next()?).to_digit(16)?;
            let low = char::from(bytes.next()?).to_digit(16)?;
            out.push((high * 16 + low) as u8);
        } else {
            out.push(byte);
        }
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_are_decoded() {
        assert_eq!(percent_decoded("/a%20b%C3%A9").as_deref(), Some("/a bé"));
        assert_eq!(percent_decoded("%F"), None);
        assert_eq!(percent_decoded("%FF"), None);
        assert_eq!(unescaped("a~1b~0c").as_deref(), Some("a/b~c"));
        assert_eq!(unescaped("~01").as_deref(), Some("~1"));
        assert_eq!(unescaped("~"), None);
        assert_eq!(unescaped("~2"), None);
    }
}
