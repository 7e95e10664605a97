//! Responses that are stored for a while, so that a later request can continue from them (`previous_response_id`).
//!
//! They are only kept in memory, within a size limit; the oldest are dropped first. Each belongs to the key that it was
//! created with, and is invisible to others.

use std::{
    collections::{HashMap, VecDeque},
    hash::{BuildHasher, RandomState},
    sync::{Mutex, MutexGuard, PoisonError},
};

use axum::http::{HeaderMap, header};
use serde_json::Value;

/// The size of an entry without its texts, in bytes.
const OVERHEAD_BYTES: usize = 512;

/// The stored responses.
#[derive(Debug)]
pub(crate) struct Stored {
    /// The maximum size in bytes; 0 stores nothing.
    limit: usize,
    keys: RandomState,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    entries: HashMap<String, Entry>,
    /// The ids, oldest first.
    order: VecDeque<String>,
    bytes: usize,
}

#[derive(Debug)]
struct Entry {
    owner: Owner,
    /// The conversation including the response, in the format for templates, without instructions.
    messages: Vec<Value>,
    body: Value,
    bytes: usize,
}

/// The owner of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Owner(u64);

impl Stored {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, keys: RandomState::new(), inner: Mutex::default() }
    }

    /// Whether anything is stored.
    pub(crate) fn is_on(&self) -> bool {
        self.limit > 0
    }

    /// Returns the owner of a request.
    pub(crate) fn owner(&self, headers: &HeaderMap) -> Owner {
        Owner(self.keys.hash_one(headers.get(header::AUTHORIZATION).map(header::HeaderValue::as_bytes)))
    }

    /// Stores a response under its id.
    pub(crate) fn put(&self, id: &str, owner: Owner, messages: Vec<Value>, body: Value) {
        let bytes = OVERHEAD_BYTES + body.to_string().len() + messages.iter().map(size).sum::<usize>();
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

    /// Returns the conversation that ends with a response.
    pub(crate) fn messages(&self, id: &str, owner: Owner) -> Option<Vec<Value>> {
        self.lock().of(id, owner).map(|entry| entry.messages.clone())
    }

    /// Returns a response as it was sent.
    pub(crate) fn body(&self, id: &str, owner: Owner) -> Option<Value> {
        self.lock().of(id, owner).map(|entry| entry.body.clone())
    }

    /// Deletes a response. Returns whether it existed.
    pub(crate) fn delete(&self, id: &str, owner: Owner) -> bool {
        let mut inner = self.lock();
        if inner.of(id, owner).is_none() {
            return false;
        }
        inner.forget(id);
        // Ids of deleted responses must not accumulate.
        inner.order.retain(|known| known != id);
        true
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A poisoned lock is fine, because every change is complete.
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

/// Returns the approximate size of a value in bytes.
fn size(value: &Value) -> usize {
    64 + value.to_string().len()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_oldest_are_forgotten_first() {
        let stored = Stored::new(3 * (OVERHEAD_BYTES + 200));
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
        // A response that exceeds the limit is not stored, and evicts nothing.
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
