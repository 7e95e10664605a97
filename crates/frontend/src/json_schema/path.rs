//! Places in a schema, as ids.
//!
//! A place is a JSON pointer such as `/properties/name/maxLength`. Writing the text for every keyword would cost more
//! than lowering it. So a place is a node with a parent and one segment, and the text is written only for an error or
//! for a reader of the report.

/// The id of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PathId(u32);

/// All places seen so far.
#[derive(Clone, Debug)]
pub(crate) struct Paths {
    nodes: Vec<Node>,
    /// The segments that are not keywords, concatenated.
    text: String,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    parent: u32,
    segment: Segment,
}

#[derive(Clone, Copy, Debug)]
enum Segment {
    Root,
    /// The root of another document, given by its address.
    Document {
        start: u32,
        len: u32,
    },
    Keyword(&'static str),
    Text {
        start: u32,
        len: u32,
    },
    Index(u32),
}

impl PathId {
    /// The root of the schema's own document.
    pub(crate) const ROOT: Self = Self(0);
}

impl Paths {
    pub(crate) fn new() -> Self {
        let mut nodes = Vec::with_capacity(128);
        nodes.push(Node { parent: 0, segment: Segment::Root });
        Self { nodes, text: String::with_capacity(1024) }
    }

    pub(crate) fn keyword(&mut self, parent: PathId, name: &'static str) -> PathId {
        self.push(parent, Segment::Keyword(name))
    }

    pub(crate) fn key(&mut self, parent: PathId, key: &str) -> PathId {
        let start = self.text.len() as u32;
        self.text.push_str(key);
        self.push(parent, Segment::Text { start, len: key.len() as u32 })
    }

    /// Adds the root of another document.
    pub(crate) fn document(&mut self, address: &str) -> PathId {
        let start = self.text.len() as u32;
        self.text.push_str(address);
        self.push(PathId::ROOT, Segment::Document { start, len: address.len() as u32 })
    }

    pub(crate) fn index(&mut self, parent: PathId, index: usize) -> PathId {
        self.push(parent, Segment::Index(index as u32))
    }

    /// Returns the last segment as written in the schema, or the empty text for the root and for an index.
    pub(crate) fn last(&self, path: PathId) -> &str {
        match self.nodes[path.0 as usize].segment {
            Segment::Root | Segment::Index(_) => "",
            Segment::Keyword(name) => name,
            Segment::Text { start, len } | Segment::Document { start, len } => {
                &self.text[start as usize..][..len as usize]
            }
        }
    }

    /// Returns the JSON pointer (RFC 6901) of a place. It is empty for the whole document.
    pub(crate) fn pointer(&self, path: PathId) -> String {
        let mut chain = Vec::new();
        let mut at = path;
        while at != PathId::ROOT {
            chain.push(at);
            at = PathId(self.nodes[at.0 as usize].parent);
        }
        let mut out = String::new();
        for &at in chain.iter().rev() {
            let segment = self.nodes[at.0 as usize].segment;
            if let Segment::Document { .. } = segment {
                out.push_str(self.last(at));
                out.push('#');
                continue;
            }
            out.push('/');
            match segment {
                Segment::Index(index) => out.push_str(&index.to_string()),
                _ => out.push_str(&escaped(self.last(at))),
            }
        }
        out
    }

    /// Returns the JSON pointer of a keyword of the schema at `path`, or of the schema itself if `keyword` is empty.
    pub(crate) fn pointer_to(&self, path: PathId, keyword: &str) -> String {
        let mut pointer = self.pointer(path);
        if !keyword.is_empty() {
            pointer.push('/');
            pointer.push_str(keyword);
        }
        pointer
    }

    fn push(&mut self, parent: PathId, segment: Segment) -> PathId {
        self.nodes.push(Node { parent: parent.0, segment });
        PathId(self.nodes.len() as u32 - 1)
    }
}

/// Escapes a name for use as a segment of a JSON pointer.
pub(crate) fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_are_escaped() {
        let mut paths = Paths::new();
        assert_eq!(paths.pointer(PathId::ROOT), "");
        let properties = paths.keyword(PathId::ROOT, "properties");
        let odd = paths.key(properties, "a/b~c");
        let items = paths.keyword(odd, "items");
        let second = paths.index(items, 1);
        assert_eq!(paths.pointer(second), "/properties/a~1b~0c/items/1");
        assert_eq!(paths.last(odd), "a/b~c");
    }
}
