//! The items of a response, and the events for each of them.
//!
//! ```text
//! response.output_item.added ─▶ deltas ─▶ …done ─▶ response.output_item.done
//! ```
//! At most one item is open at a time: a message, reasoning, or a call. Content of another kind closes it.

use serde_json::{Value, json};

use super::{gather::Call, sse::Outbox};
use crate::state::new_id;

/// The items so far.
#[derive(Debug, Default)]
pub(crate) struct Items {
    /// The complete items.
    pub(crate) done: Vec<Value>,
    open: Option<Open>,
    /// The number of the next event.
    number: u64,
}

#[derive(Debug)]
struct Open {
    kind: Kind,
    id: String,
    /// The text that was sent of it.
    text: String,
    logprobs: Vec<Value>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Message,
    Reasoning,
    Call { call_id: String, name: String, is_custom: bool },
}

impl Items {
    /// Sends an event with the next number.
    pub(crate) fn send(&mut self, outbox: &mut Outbox, name: &str, mut event: Value) {
        event["type"] = name.into();
        event["sequence_number"] = self.number.into();
        self.number += 1;
        outbox.named(name, &event);
    }

    /// Adds text to a message.
    pub(crate) fn text(&mut self, delta: &str, logprobs: Value, outbox: &mut Outbox) {
        self.ensure(&Kind::Message, outbox);
        let mut event = self.place();
        event["delta"] = delta.into();
        event["logprobs"] = logprobs.clone();
        if let (Some(open), Value::Array(entries)) = (&mut self.open, logprobs) {
            open.text += delta;
            open.logprobs.extend(entries);
        }
        self.send(outbox, "response.output_text.delta", event);
    }

    /// Adds text to the reasoning.
    pub(crate) fn reasoning(&mut self, delta: &str, outbox: &mut Outbox) {
        self.ensure(&Kind::Reasoning, outbox);
        let mut event = self.place();
        event["delta"] = delta.into();
        self.grow(delta);
        self.send(outbox, "response.reasoning_text.delta", event);
    }

    /// Begins a call.
    pub(crate) fn call(&mut self, call: &Call, outbox: &mut Outbox) {
        let Call { id, name, is_custom, .. } = call;
        self.close("completed", outbox);
        self.begin(Kind::Call { call_id: id.clone(), name: name.clone(), is_custom: *is_custom }, outbox);
    }

    /// Adds to the arguments of the open call.
    pub(crate) fn arguments(&mut self, delta: &str, outbox: &mut Outbox) {
        let Some(Open { kind: Kind::Call { is_custom, .. }, id, .. }) = &self.open else { return };
        let name = if *is_custom {
            "response.custom_tool_call_input.delta"
        } else {
            "response.function_call_arguments.delta"
        };
        let event = json!({"item_id": id, "output_index": self.done.len(), "delta": delta});
        self.grow(delta);
        self.send(outbox, name, event);
    }

    /// Closes the last item. A response without any items gets an empty message.
    pub(crate) fn finish(&mut self, status: &str, outbox: &mut Outbox) {
        if self.open.is_none() && self.done.is_empty() {
            self.begin(Kind::Message, outbox);
        }
        self.close(status, outbox);
    }

    /// Closes the open item, if any.
    pub(crate) fn close(&mut self, status: &str, outbox: &mut Outbox) {
        let Some(open) = self.open.take() else { return };
        let index = self.done.len();
        let item = open.item(status);
        match &open.kind {
            Kind::Message => {
                let place = json!({"item_id": open.id, "output_index": index, "content_index": 0});
                let mut event = place.clone();
                event["text"] = open.text.as_str().into();
                event["logprobs"] = open.logprobs.clone().into();
                self.send(outbox, "response.output_text.done", event);
                let mut event = place;
                event["part"] = item["content"][0].clone();
                self.send(outbox, "response.content_part.done", event);
            }
            Kind::Reasoning => {
                let event =
                    json!({"item_id": open.id, "output_index": index, "content_index": 0, "text": open.text});
                self.send(outbox, "response.reasoning_text.done", event);
            }
            Kind::Call { name, is_custom, .. } => {
                let mut event = json!({"item_id": open.id, "output_index": index});
                let done = if *is_custom {
                    event["input"] = open.text.as_str().into();
                    "response.custom_tool_call_input.done"
                } else {
                    event["arguments"] = open.text.as_str().into();
                    event["name"] = name.as_str().into();
                    "response.function_call_arguments.done"
                };
                self.send(outbox, done, event);
            }
        }
        self.send(outbox, "response.output_item.done", json!({"output_index": index, "item": item}));
        self.done.push(item);
    }

    /// Makes sure that an item of this kind is open.
    fn ensure(&mut self, kind: &Kind, outbox: &mut Outbox) {
        if self.open.as_ref().is_some_and(|open| open.kind == *kind) {
            return;
        }
        self.close("completed", outbox);
        self.begin(kind.clone(), outbox);
    }

    fn begin(&mut self, kind: Kind, outbox: &mut Outbox) {
        let id = new_id(match kind {
            Kind::Message => "msg_",
            Kind::Reasoning => "rs_",
            Kind::Call { .. } => "fc_",
        });
        let open = Open { kind, id, text: String::new(), logprobs: Vec::new() };
        let is_message = open.kind == Kind::Message;
        let mut item = open.item("in_progress");
        if is_message {
            item["content"] = json!([]);
        }
        self.open = Some(open);
        self.send(
            outbox,
            "response.output_item.added",
            json!({"output_index": self.done.len(), "item": item}),
        );
        if is_message {
            let mut event = self.place();
            event["part"] = json!({"type": "output_text", "text": "", "annotations": [], "logprobs": []});
            self.send(outbox, "response.content_part.added", event);
        }
    }

    fn grow(&mut self, delta: &str) {
        if let Some(open) = &mut self.open {
            open.text += delta;
        }
    }

    /// Returns the position of the open item's text.
    fn place(&self) -> Value {
        let id = self.open.as_ref().map_or("", |open| &open.id);
        json!({"item_id": id, "output_index": self.done.len(), "content_index": 0})
    }
}

impl Open {
    fn item(&self, status: &str) -> Value {
        let Self { kind, id, text, logprobs } = self;
        match kind {
            Kind::Message => json!({
                "id": id, "type": "message", "role": "assistant", "status": status,
                "content": [{"type": "output_text", "text": text, "annotations": [], "logprobs": logprobs}],
            }),
            Kind::Reasoning => json!({
                "id": id, "type": "reasoning", "summary": [], "status": status,
                "content": [{"type": "reasoning_text", "text": text}],
            }),
            Kind::Call { call_id, name, is_custom: false } => json!({
                "id": id, "type": "function_call", "call_id": call_id, "name": name, "arguments": text, "status": status,
            }),
            Kind::Call { call_id, name, is_custom: true } => json!({
                "id": id, "type": "custom_tool_call", "call_id": call_id, "name": name, "input": text, "status": status,
            }),
        }
    }
}
