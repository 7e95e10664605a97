//! The stream reader, with a text that is cut in two ways.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use maskwright::formats::{Choice, ModelFormat, Request, Tool};
use maskwright::stream::{Event, Reader};
use serde_json::json;

/// A reader for each format, of what it makes of a request with two tools.
static READERS: LazyLock<Vec<Reader>> = LazyLock::new(|| {
    let weather = json!({"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}, "required": ["city"]});
    let add =
        json!({"type": "object", "properties": {"numbers": {"type": "array", "items": {"type": "number"}}}});
    let tools = vec![Tool::function("weather", weather), Tool::function("add", add)];
    let request = Request { tools, choice: Choice::Auto, ..Request::default() };
    let reader = |name| {
        let tree = ModelFormat::named(name).expect("a known format").tag(&request).expect("a sound request");
        Reader::new(&tree).expect("a sound tree")
    };
    ModelFormat::names().map(reader).collect()
});

fuzz_target!(|input: &[u8]| {
    let [format, cut, text @ ..] = input else { return };
    let reader = &READERS[usize::from(*format) % READERS.len()];
    let (first, second) = text.split_at(usize::from(*cut).min(text.len()));
    assert_eq!(
        read(reader.clone(), &[text]),
        read(reader.clone(), &[first, second]),
        "how a text is cut changes what is read"
    );
});

/// What was read, with neighboring deltas joined.
fn read(mut reader: Reader, pieces: &[&[u8]]) -> Vec<String> {
    let mut events = Vec::new();
    for piece in pieces {
        reader.feed_bytes(piece, &mut events);
    }
    let finish = reader.finish(&mut events);
    let mut told: Vec<String> = Vec::new();
    let mut kind = String::new();
    for event in events {
        let (name, more) = match event {
            Event::Text(more) => ("text".to_owned(), more),
            Event::Reasoning(more) => ("reasoning".to_owned(), more),
            Event::ArgumentDelta { index, delta } => (format!("arguments {index}"), delta),
            other => (format!("{other:?}"), String::new()),
        };
        match told.last_mut().filter(|_| name == kind) {
            Some(last) => *last += &more,
            None => told.push(format!("{name}: {more}")),
        }
        kind = name;
    }
    told.push(format!("{finish:?}"));
    told
}
