//! The second validator, with a time limit.
//!
//! boon evaluates a schema again for each branch that leads to it, so a recursion through two branches takes 2ⁿ steps
//! for a document of depth n. So it runs on a separate thread. If that does not answer in time, it is abandoned,
//! another thread replaces it, and the schema is not checked again: its documents count as disputed.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use boon::{SchemaIndex, Schemas};
use serde_json::Value;

/// The time limit for an answer. Nearly all take less than a millisecond.
const TIME_LIMIT: Duration = Duration::from_secs(10);
/// The usual stack size of a program's main thread.
const STACK_BYTES: usize = 8 << 20;

/// A schema, compiled by boon.
pub(crate) struct Second {
    compiled: Arc<(Schemas, SchemaIndex)>,
    patience: Duration,
    /// Whether an answer took too long.
    is_slow: Cell<bool>,
}

impl fmt::Debug for Second {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Second").field("is_slow", &self.is_slow).finish_non_exhaustive()
    }
}

/// A document to check.
struct Question {
    compiled: Arc<(Schemas, SchemaIndex)>,
    value: Value,
}

/// A thread that checks documents.
struct Worker {
    questions: Sender<Question>,
    answers: Receiver<bool>,
}

thread_local! {
    static WORKER: RefCell<Option<Worker>> = const { RefCell::new(None) };
}

impl Second {
    /// Compiles a schema; `None` if boon does not accept it.
    pub(crate) fn new(schema: &Value) -> Option<Self> {
        const PLACE: &str = "http://localhost/schema.json";
        let mut schemas = Schemas::new();
        let mut compiler = boon::Compiler::new();
        compiler.enable_format_assertions();
        compiler.add_resource(PLACE, schema.clone()).ok()?;
        let index = compiler.compile(PLACE, &mut schemas).ok()?;
        Some(Self { compiled: Arc::new((schemas, index)), patience: TIME_LIMIT, is_slow: Cell::new(false) })
    }

    /// Whether a value satisfies the schema; `None` if that takes too long.
    pub(crate) fn is_valid(&self, value: &Value) -> Option<bool> {
        if self.is_slow.get() {
            return None;
        }
        let worker = WORKER.take().unwrap_or_else(Worker::new);
        let question = Question { compiled: self.compiled.clone(), value: value.clone() };
        worker.questions.send(question).expect("the worker waits for questions");
        match worker.answers.recv_timeout(self.patience) {
            Ok(is_valid) => {
                WORKER.set(Some(worker));
                Some(is_valid)
            }
            Err(RecvTimeoutError::Timeout) => {
                self.is_slow.set(true);
                None
            }
            Err(RecvTimeoutError::Disconnected) => panic!("the second validator panics"),
        }
    }
}

impl Worker {
    fn new() -> Self {
        let (questions, asked) = channel::<Question>();
        let (answer, answers) = channel();
        let judge = move || {
            for Question { compiled, value } in asked {
                let (schemas, index) = &*compiled;
                // The receiver may be gone.
                if answer.send(schemas.validate(&value, *index).is_ok()).is_err() {
                    break;
                }
            }
        };
        thread::Builder::new().stack_size(STACK_BYTES).spawn(judge).expect("a thread");
        Self { questions, answers }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::Second;

    #[test]
    fn nobody_waits_for_ever() {
        let twice = json!({"items": {"$ref": "#"}, "oneOf": [{"$ref": "#/$defs/a"}, {"items": {"$ref": "#"}}], "$defs": {"a": {"type": "null"}}});
        let mut second = Second::new(&twice).expect("a schema");
        assert_eq!(second.is_valid(&json!([])), Some(true));
        // This would take some centuries.
        let deep = (0..90).fold(json!([]), |inner, _| json!([inner]));
        second.patience = Duration::ZERO;
        assert_eq!(second.is_valid(&deep), None);
        second.patience = Duration::MAX;
        assert_eq!(second.is_valid(&json!([])), None, "it is not asked again");
        let other = Second::new(&json!({"type": "array"})).expect("a schema");
        assert_eq!(other.is_valid(&deep), Some(true));
    }
}
