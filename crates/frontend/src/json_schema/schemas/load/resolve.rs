//! References: from the text of a `$ref` to the schema that it names.
//!
//! References such as `#` and `#/$defs/name` are followed from the root of the enclosing resource. That needs no
//! preparation, and nearly all references are of this kind. Addresses and anchors are looked up in an
//! [`Index`](super::index::Index) of all documents.

use super::super::super::json::Value;
use super::super::{Miss, SchemaId, uri};
use super::{Found, Loader, Origin, ResourceId, ScopeId};

/// The dynamic anchors of each scope: the name, and the resource that declares it. Scope 0 has none.
#[derive(Debug)]
pub(super) struct Scopes<'s>(Vec<Vec<(&'s str, ResourceId)>>);

impl Scopes<'_> {
    pub(super) fn new() -> Self {
        Self(vec![Vec::new()])
    }
}

impl<'s> Loader<'s, '_> {
    /// Returns the schema that the `$ref` of the schema `from` names.
    pub(super) fn resolve(&mut self, from: SchemaId, reference: &str) -> Result<SchemaId, Miss> {
        let Origin { at, scope } = self.origin(from);
        let found = self.find(from, at.resource, reference)?;
        Ok(self.enter(found, at.resource, scope, from))
    }

    /// Like [`Loader::resolve`], for `$dynamicRef` and `$recursiveRef`.
    pub(super) fn resolve_dynamic(&mut self, from: SchemaId, reference: &str) -> Result<SchemaId, Miss> {
        if !self.source.tracks_scopes {
            return Err(Miss::Scope);
        }
        let Origin { at, scope } = self.origin(from);
        self.build_index(from);
        let mut found = self.find(from, at.resource, reference)?;
        let name = reference.split_once('#').map_or("", |(_, fragment)| fragment);
        let anchor = |resource: ResourceId| self.index.as_ref()?.anchors.get(&(resource, name));
        // The dynamic scope matters only if the static target of the reference is a dynamic anchor.
        let is_dynamic = anchor(found.resource)
            .is_some_and(|anchor| anchor.is_dynamic && core::ptr::eq(anchor.value, found.value));
        let outermost = self.scopes.0[scope.0 as usize].iter().find(|(known, _)| *known == name);
        if let (true, Some(&(_, resource))) = (is_dynamic, outermost)
            && let Some(anchor) = anchor(resource)
        {
            found = Found { value: anchor.value, path: anchor.path, resource };
        }
        Ok(self.enter(found, at.resource, scope, from))
    }

    /// Returns the scope after entering a resource: the dynamic anchors of the resource are added unless the scope
    /// already has one of the same name.
    pub(super) fn scope_after_entering(
        &mut self,
        resource: ResourceId,
        scope: ScopeId,
        owner: SchemaId,
    ) -> ScopeId {
        if !self.source.tracks_scopes {
            return scope;
        }
        self.build_index(owner);
        let outer = &self.scopes.0[scope.0 as usize];
        let mut names = outer.clone();
        for ((at, name), anchor) in self.index.iter().flat_map(|index| &index.anchors) {
            if *at == resource && anchor.is_dynamic && !outer.iter().any(|(known, _)| known == name) {
                names.push((*name, resource));
            }
        }
        names.sort_unstable();
        let known = self.scopes.0.iter().position(|one| *one == names);
        let known = known.unwrap_or_else(|| {
            self.scopes.0.push(names);
            self.scopes.0.len() - 1
        });
        ScopeId(known as u32)
    }

    fn find(&mut self, owner: SchemaId, from: ResourceId, reference: &str) -> Result<Found<'s>, Miss> {
        let (address, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let mut resource = from;
        if !address.is_empty() {
            let base = &self.resource(from).address;
            let target = uri::resolve(base, address);
            if target != *base {
                self.build_index(owner);
                let known = self.index.as_ref().and_then(|index| index.by_address.get(&target));
                resource = *known.ok_or(Miss::Document(target))?;
            }
        }
        let fragment = percent_decoded(fragment).ok_or(Miss::Nothing)?;
        if !fragment.is_empty() && !fragment.starts_with('/') {
            self.build_index(owner);
            let anchor = self.index.as_ref().and_then(|index| index.anchors.get(&(resource, &*fragment)));
            let anchor = anchor.ok_or(Miss::Anchor)?;
            return Ok(Found { value: anchor.value, path: anchor.path, resource });
        }
        match self.follow(owner, resource, &fragment) {
            // Many schemas give their parts an `id` that is only a label, and still use pointers from the document's
            // root. So if the standard's reading finds nothing, the pointer is followed from that root.
            Err(Miss::Nothing) if address.is_empty() && from != ResourceId::ROOT => {
                self.follow(owner, ResourceId::ROOT, &fragment)
            }
            found => found,
        }
    }

    /// Follows a JSON pointer from the root of a resource.
    fn follow(&mut self, owner: SchemaId, resource: ResourceId, pointer: &str) -> Result<Found<'s>, Miss> {
        let root = self.resource(resource);
        let (mut value, mut path, mut resource) = (root.root, root.path, resource);
        for token in pointer.split('/').skip(1) {
            let token = unescaped(token).ok_or(Miss::Nothing)?;
            value = step(value, &token).ok_or(Miss::Nothing)?;
            path = self.paths.key(path, &token);
            resource = self.resource_at(value, path, resource, owner);
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

/// Decodes `~1` to a slash and `~0` to a tilde. Returns `None` for anything else after a tilde.
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
