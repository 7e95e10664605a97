//! Resolves a reference against a base address, as in RFC 3986, section 5.2.

/// Returns the absolute address that `reference` names from `base`, without its fragment.
pub(super) fn resolve(base: &str, reference: &str) -> String {
    let reference = reference.split_once('#').map_or(reference, |(before, _)| before);
    let target = Parts::of(reference);
    if target.scheme.is_some() {
        return target.spelled(&without_dots(target.path));
    }
    let base = Parts::of(base);
    if target.authority.is_some() {
        return Parts { scheme: base.scheme, ..target }.spelled(&without_dots(target.path));
    }
    let joined = Parts { scheme: base.scheme, authority: base.authority, ..target };
    if target.path.is_empty() {
        let query = target.query.or(base.query);
        return Parts { query, ..joined }.spelled(base.path);
    }
    if target.path.starts_with('/') {
        return joined.spelled(&without_dots(target.path));
    }
    let folder = match base.path.rfind('/') {
        Some(at) => &base.path[..=at],
        None if base.authority.is_some() => "/",
        None => "",
    };
    joined.spelled(&without_dots(&format!("{folder}{}", target.path)))
}

#[derive(Clone, Copy)]
struct Parts<'a> {
    scheme: Option<&'a str>,
    authority: Option<&'a str>,
    path: &'a str,
    query: Option<&'a str>,
}

impl<'a> Parts<'a> {
    fn of(text: &'a str) -> Self {
        let is_scheme = |scheme: &str| {
            scheme.starts_with(|c: char| c.is_ascii_alphabetic())
                && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
        };
        let (scheme, rest) = match text.split_once(':') {
            Some((scheme, rest)) if is_scheme(scheme) => (Some(scheme), rest),
            _ => (None, text),
        };
        let (rest, query) = match rest.split_once('?') {
            Some((rest, query)) => (rest, Some(query)),
            None => (rest, None),
        };
        let (authority, path) = match rest.strip_prefix("//") {
            Some(rest) => {
                let at = rest.find('/').unwrap_or(rest.len());
                (Some(&rest[..at]), &rest[at..])
            }
            None => (None, rest),
        };
        Self { scheme, authority, path, query }
    }

    fn spelled(&self, path: &str) -> String {
        let mut out = String::new();
        if let Some(scheme) = self.scheme {
            out.extend([scheme, ":"]);
        }
        if let Some(authority) = self.authority {
            out.extend(["//", authority]);
        }
        out.push_str(path);
        if let Some(query) = self.query {
            out.extend(["?", query]);
        }
        out
    }
}

/// Resolves `.` and `..` in a path.
fn without_dots(path: &str) -> String {
    if !path.contains("./") && !path.ends_with('.') {
        return path.to_owned();
    }
    let mut kept: Vec<&str> = Vec::new();
    let mut segments = path.split('/').peekable();
    while let Some(segment) = segments.next() {
        let is_last = segments.peek().is_none();
        match segment {
            "." => {}
            ".." => {
                // The empty segment before the first slash is kept.
                if kept.len() > 1 || kept.first().is_some_and(|first| !first.is_empty()) {
                    kept.pop();
                }
            }
            _ => {
                kept.push(segment);
                continue;
            }
        }
        if is_last {
            kept.push("");
        }
    }
    kept.join("/")
}

#[cfg(test)]
mod tests {
    use super::resolve;

    #[test]
    fn examples_of_the_rfc() {
        let base = "http://a/b/c/d;p?q";
        for (reference, target) in [
            ("g", "http://a/b/c/g"),
            ("./g", "http://a/b/c/g"),
            ("g/", "http://a/b/c/g/"),
            ("/g", "http://a/g"),
            ("//g", "http://g"),
            ("?y", "http://a/b/c/d;p?y"),
            ("g?y", "http://a/b/c/g?y"),
            ("", "http://a/b/c/d;p?q"),
            (".", "http://a/b/c/"),
            ("..", "http://a/b/"),
            ("../g", "http://a/b/g"),
            ("../../g", "http://a/g"),
            ("../../../g", "http://a/g"),
            ("urn:x:y", "urn:x:y"),
            ("g#s", "http://a/b/c/g"),
        ] {
            assert_eq!(resolve(base, reference), target, "{reference}");
        }
        assert_eq!(resolve("", "item.json"), "item.json");
    }
}
