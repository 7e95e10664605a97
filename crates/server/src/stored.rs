//! Responses that are kept for a while, so that a later one can go on from them (`previous_response_id`).
//!
//! They are kept in memory alone, within a limit of bytes; the oldest are forgotten first. Each belongs to the key that it was made with: to others it is not there.

use std::{
    collections::{HashMap, VecDeque},
    hash::{BuildHasher, RandomState},
    sync::{Mutex, MutexGuard, PoisonError},
};

use axum::http::{HeaderMap, header};
use serde_json::Value;

/// What an entry takes besides its texts.
const OVERHEAD: usize = 512;

/// The responses that are kept.
#[derive(Debug)]
pub(crate) struct Stored {
    /// The most bytes; 0 keeps nothing.
    limit: usize,
    keys: RandomState,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    entries: HashMap<String, Entry>,
    /// The oldest first. Those that were deleted are still in it.
    order: VecDeque<String>,
    bytes: usize,
}

#[derive(Debug)]
struct Entry {
    owner: Owner,
    /// The conversation up to and with the response, as templates want it, without instructions.
    messages: Vec<Value>,
    body: Value,
    bytes: usize,
}

/// Whose response it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Owner(u64);

impl Stored {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, keys: RandomState::new(), inner: Mutex::default() }
    }

    /// Whether anything is kept.
    pub(crate) fn is_on(&self) -> bool {
        self.limit > 0
    }

    /// Who sends a request.
    pub(crate) fn owner(&self, headers: &HeaderMap) -> Owner {
        Owner(self.keys.hash_one(headers.get(header::AUTHORIZATION).map(header::HeaderValue::as_bytes)))
    }

    /// Keeps a response under its id.
    pub(crate) fn put(&self, id: &str, owner: Owner, messages: Vec<Value>, body: Value) {
        let bytes = OVERHEAD + body.to_string().len() + messages.iter().map(size).sum::<usize>();
        if bytes > self.limit {
            return;
        }
        let mut inner = self.lock();
        inner.bytes += bytes;
        inner.order.push_back(id.to_owned());
        inner.entries.insert(id.to_owned(), Entry { owner, messages, body, bytes });
        while inner.bytes > self.limit {
            let Some(oldest) = inner.order.pop_front() else { break };
            inner.forget(&oldest);
        }
    }

    /// The conversation that a response ended.
    pub(crate) fn messages(&self, id: &str, owner: Owner) -> Option<Vec<Value>> {
        self.lock().of(id, owner).map(|entry| entry.messages.clone())
    }

    /// A response as it was told.
    pub(crate) fn body(&self, id: &str, owner: Owner) -> Option<Value> {
        self.lock().of(id, owner).map(|entry| entry.body.clone())
    }

    /// Forgets a response. Returns whether it was there.
    pub(crate) fn delete(&self, id: &str, owner: Owner) -> bool {
        let mut inner = self.lock();
        if inner.of(id, owner).is_none() {
            return false;
        }
        inner.forget(id);
        // Names of what was deleted must not gather.
        inner.order.retain(|known| known != id);
        true
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Nothing in between can be seen: every change is whole.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn of(&self, id: &str, owner: Owner) -> Option<&Entry> {
        self.entries.get(id).filter(|entry| entry.owner == owner)
    }

    fn forget(&mut self, id: &str) {
        if let Some(entry) = self.entries.remove(id) {
            self.bytes -= entry.bytes;
        }
    }
}

/// About how many bytes a value takes.
fn size(value: &Value) -> usize {
    64 + value.to_string().len()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_oldest_are_forgotten_first() {
        let stored = Stored::new(3 * (OVERHEAD + 200));
        let me = stored.owner(&HeaderMap::new());
        let text = "x".repeat(100);
        for id in ["a", "b", "c", "d", "e"] {
            stored.put(id, me, vec![json!(text)], json!(id));
        }
        let kept: Vec<&str> =
            ["a", "b", "c", "d", "e"].into_iter().filter(|id| stored.body(id, me).is_some()).collect();
        assert_eq!(kept, ["c", "d", "e"]);
        assert!(stored.delete("c", me) && !stored.delete("c", me));
        stored.put("f", me, vec![json!(text)], json!("f"));
        assert_eq!(stored.body("d", me), Some(json!("d")));
        // What is larger than everything together is not kept, and pushes nothing out.
        stored.put("g", me, vec![json!("x".repeat(10_000))], json!("g"));
        assert!(stored.body("g", me).is_none() && stored.body("d", me).is_some());
    }

    #[test]
    fn a_response_is_there_for_its_key_alone() {
        let stored = Stored::new(1 << 20);
        let key = |key: &str| {
            let headers = [(header::AUTHORIZATION, key.parse().unwrap())];
            stored.owner(&headers.into_iter().collect())
        };
        stored.put("a", key("Bearer one"), vec![json!("x")], json!(1));
        assert_eq!(stored.messages("a", key("Bearer one")), Some(vec![json!("x")]));
        assert!(stored.messages("a", key("Bearer two")).is_none() && !stored.delete("a", key("Bearer two")));
    }
}
