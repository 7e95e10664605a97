//! References: from the text of a `$ref` to the schema that it names.
//!
//! `#` and `#/$defs/name` are followed from the root of the resource that the reference stands in; that needs no
//! preparation, and it is what nearly all references look like. Addresses and anchors are looked up in an index of
//! all documents. A document that is not there is remembered as missing, so that the driver can ask for it.

use super::super::json::Value;

use super::super::context::Context;
use super::super::error::Reason;
use super::super::path::PathId;
use super::{Entry, Kind, ResourceId, SchemaId, Schemas, ScopeId, uri};

/// Why a reference leads nowhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Miss {
    /// It is in a document that is not at hand.
    Document(String),
    Anchor,
    Nothing,
    /// What it leads to depends on the way, which was not recorded.
    Scope,
}

impl Miss {
    pub(crate) fn explain(&self, reference: &str) -> (Reason, String, &'static str) {
        match self {
            Self::Document(_) => (
                Reason::Unsupported,
                format!("`{reference}` is in another document, which is not fetched"),
                "copy the schema into `$defs` and refer to it there, or hand in a resolver",
            ),
            Self::Anchor => (
                Reason::Reference,
                format!("`{reference}` names an anchor that no schema declares"),
                "declare it with `$anchor` or fix the reference",
            ),
            Self::Nothing | Self::Scope => (
                Reason::Reference,
                format!("`{reference}` leads to nothing in this schema"),
                "define the schema there or fix the reference",
            ),
        }
    }
}

/// Where a reference leads.
#[derive(Clone, Copy)]
struct Found<'s> {
    value: &'s Value<'s>,
    path: PathId,
    resource: ResourceId,
}

impl<'s> Schemas<'s> {
    /// The schema that the `$ref` of the schema `from` names.
    pub(crate) fn resolve(
        &mut self,
        context: &mut Context<'_>,
        from: SchemaId,
        reference: &str,
    ) -> Result<SchemaId, Miss> {
        let Entry { resource, scope, target, .. } = self.entries[from.0 as usize];
        if let Some(target) = target {
            return Ok(target);
        }
        let found = self.find(context, resource, reference)?;
        let target = self.arrive(context, found, resource, scope);
        self.entries[from.0 as usize].target = Some(target);
        Ok(target)
    }

    /// The same for `$dynamicRef` and `$recursiveRef`.
    pub(crate) fn resolve_dynamic(
        &mut self,
        context: &mut Context<'_>,
        from: SchemaId,
        reference: &str,
    ) -> Result<SchemaId, Miss> {
        if !self.tracks_scopes {
            return Err(Miss::Scope);
        }
        let Entry { resource, scope, .. } = self.entries[from.0 as usize];
        self.build_index(context);
        let found = self.find(context, resource, reference)?;
        let name = reference.split_once('#').map_or("", |(_, fragment)| fragment);
        let anchor = self.index.as_ref().and_then(|index| index.anchors.get(&(found.resource, name)));
        // Only a reference that would lead to a dynamic anchor anyway looks further out.
        if anchor.is_some_and(|anchor| anchor.is_dynamic && core::ptr::eq(anchor.value, found.value)) {
            let scope = &self.scopes[scope.0 as usize];
            if let Some((_, target)) = scope.iter().find(|(known, _)| *known == name) {
                let target = *target;
                // The target keeps the scope in which it is arrived at, not the one in which it was first seen.
                let Entry { value, path, resource: inner, .. } = self.entries[target.0 as usize];
                let scope = self.entries[from.0 as usize].scope;
                return Ok(self.arrive(context, Found { value, path, resource: inner }, resource, scope));
            }
        }
        Ok(self.arrive(context, found, resource, scope))
    }

    /// The scope after a resource was entered: its dynamic anchors count unless their names are known.
    pub(super) fn entered(
        &mut self,
        context: &mut Context<'_>,
        resource: ResourceId,
        scope: ScopeId,
    ) -> ScopeId {
        if !self.tracks_scopes {
            return scope;
        }
        self.build_index(context);
        let mut names = self.scopes[scope.0 as usize].clone();
        let anchors = self.index.as_ref().map(|index| {
            let here = index.anchors.iter().filter(|((at, _), anchor)| *at == resource && anchor.is_dynamic);
            let mut here: Vec<_> = here.map(|((_, name), anchor)| (*name, *anchor)).collect();
            here.sort_by_key(|(name, _)| *name);
            here
        });
        for (name, anchor) in anchors.unwrap_or_default() {
            if !names.iter().any(|(known, _)| *known == name) {
                let id = self.intern(anchor.value, anchor.path, resource, ScopeId(0), Kind::Schema);
                names.push((name, id));
            }
        }
        if names.len() == self.scopes[scope.0 as usize].len() {
            return scope;
        }
        names.sort_unstable();
        if let Some(known) = self.scopes.iter().position(|one| *one == names) {
            return ScopeId(known as u32);
        }
        self.scopes.push(names);
        ScopeId(self.scopes.len() as u32 - 1)
    }

    fn arrive(
        &mut self,
        context: &mut Context<'_>,
        found: Found<'s>,
        from: ResourceId,
        scope: ScopeId,
    ) -> SchemaId {
        let scope = if found.resource == from { scope } else { self.entered(context, found.resource, scope) };
        let id = self.intern(found.value, found.path, found.resource, scope, Kind::Schema);
        self.entries[id.0 as usize].is_shared = true;
        id
    }

    fn find(
        &mut self,
        context: &mut Context<'_>,
        from: ResourceId,
        reference: &str,
    ) -> Result<Found<'s>, Miss> {
        let (address, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let resource = if address.is_empty() {
            from
        } else {
            let target = uri::resolve(&self.resources[from.0 as usize].address, address);
            if target == self.resources[from.0 as usize].address {
                from
            } else {
                self.build_index(context);
                let known = self.index.as_ref().and_then(|index| index.by_address.get(&target));
                *known.ok_or(Miss::Document(target))?
            }
        };
        let fragment = percent_decoded(fragment).ok_or(Miss::Nothing)?;
        if !fragment.is_empty() && !fragment.starts_with('/') {
            return self.anchor(context, resource, &fragment);
        }
        match self.follow(context, resource, &fragment) {
            // Many schemas give their parts an `id` that is only a label, and point from the document's root all the
            // same. Where the standard's reading leads to nothing, that one is taken.
            Err(Miss::Nothing) if address.is_empty() && from != ResourceId(0) => {
                self.follow(context, ResourceId(0), &fragment)
            }
            found => found,
        }
    }

    fn anchor(
        &mut self,
        context: &mut Context<'_>,
        resource: ResourceId,
        name: &str,
    ) -> Result<Found<'s>, Miss> {
        self.build_index(context);
        let anchor = self.index.as_ref().and_then(|index| index.anchors.get(&(resource, name)));
        let anchor = anchor.ok_or(Miss::Anchor)?;
        Ok(Found { value: anchor.value, path: anchor.path, resource })
    }

    /// Follows a JSON pointer from the root of a resource.
    fn follow(
        &mut self,
        context: &mut Context<'_>,
        resource: ResourceId,
        pointer: &str,
    ) -> Result<Found<'s>, Miss> {
        let root = &self.resources[resource.0 as usize];
        let (mut value, mut path, mut resource) = (root.root, root.path, resource);
        for token in pointer.split('/').skip(1) {
            let token = unescaped(token).ok_or(Miss::Nothing)?;
            value = step(value, &token).ok_or(Miss::Nothing)?;
            path = context.report.paths.key(path, &token);
            resource = self.resource_at(context, value, path, resource);
        }
        Ok(Found { value, path, resource })
    }
}

fn step<'s>(schema: &'s Value<'s>, token: &str) -> Option<&'s Value<'s>> {
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
