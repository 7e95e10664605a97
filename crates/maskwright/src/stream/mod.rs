//! Parses what a model wrote under a structural tag into text, reasoning and tool calls, piece by piece.
//!
//! ```
//! use maskwright::stream::{Event, Reader};
//! use maskwright::tag;
//!
//! let format = tag::parse(r#"{"type": "triggered_tags", "triggers": ["<call="], "tags": [{
//!     "begin": "<call=add>", "end": "</call>", "role": {"call": "add"},
//!     "content": {"type": "json_schema", "json_schema": {"type": "array"}}
//! }]}"#, &tag::Options::default())?;
//! let mut reader = Reader::new(&format)?;
//! let mut events = Vec::new();
//! for piece in ["Let me see. <ca", "ll=add>[1", ", 2]</c", "all>"] {
//!     reader.feed(piece, &mut events);
//! }
//! assert!(reader.finish(&mut events).is_complete());
//! assert_eq!(events, [
//!     Event::Text("Let me see. ".into()),
//!     Event::CallBegun { index: 0, name: "add".into() },
//!     Event::ArgumentDelta { index: 0, delta: "[1".into() },
//!     Event::ArgumentDelta { index: 0, delta: ", 2]".into() },
//!     Event::CallDone { index: 0, name: "add".into(), arguments: "[1, 2]".into() },
//! ]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # One spec, two readers
//!
//! The reader uses the same typed tree, [`tag::Format`](crate::tag::Format), that the grammar is built from. So it
//! knows exactly the markers that a constrained model can write, and finds them by the same rule: free text ends with
//! the first marker that may follow it. A text that the grammar accepts is read to its end ([`Finish::Complete`]). How
//! the text is split into pieces affects only how the deltas are split.
//!
//! ```text
//!   Format ─ plan ─▶ Plan: a small machine of steps        a piece ─▶ Reader ─▶ events
//!                    "free text up to <call=", "a JSON value", "</call>"
//! ```
//!
//! A model that writes without a mask can write anything. Text that does not fit is reported as text, or as a call that
//! [failed](Event::CallFailed) with everything that belongs to it, and reading continues at the next place where free
//! text is allowed.
//!
//! # Special tokens
//!
//! The reader treats a special token and its name alike. Feed it the decoded text including special tokens, or the
//! tokens themselves ([`Reader::feed_token`]).

mod document;
mod literal;
mod plan;
mod reader;

pub use plan::PlanError;
pub use reader::{Event, Finish, Reader};
