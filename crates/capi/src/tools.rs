//! Tool calls: creating constraints for them, and parsing what a model wrote.

use core::ffi::c_char;

use maskwright::explain::Explanation;
use maskwright::formats::{ModelFormat, Request};
use maskwright::stream::{Event, Finish, Reader as Stream};
use maskwright::{TokenId, tag};
use serde_json::{Value, json};

use crate::guard::{discard, guard, write_whole};
use crate::matcher::Matcher;
use crate::pointer::{Given, Mut, Out, Owned, Ref};
use crate::status::{Failure, Status};
use crate::vocabulary::{Vocabulary, check_token};

/// `mw_reader`: parses one text.
#[derive(Debug)]
pub struct Reader {
    stream: Stream,
    vocabulary: Option<Vocabulary>,
    /// Events that were not fetched yet.
    events: Vec<Event>,
}

/// Returns the structural tag of what a model may write with the tools of a request.
#[unsafe(no_mangle)]
pub extern "C" fn mw_tool_format_tag(
    format: Ref<'_, c_char>,
    request: Ref<'_, c_char>,
    tag: Mut<'_, c_char>,
    capacity: usize,
    length: Out<'_, usize>,
    message: Mut<'_, c_char>,
    message_size: usize,
) -> Status {
    guard(message, message_size, || {
        let wrong = |error: &dyn core::fmt::Display| Failure::new(Status::Constraint, error.to_string());
        let name = format.c_text("format")?;
        let known = if name.trim_start().starts_with('{') {
            ModelFormat::parse(name)
        } else {
            ModelFormat::named(name)
        };
        let request: Value = serde_json::from_str(request.c_text("request")?)
            .map_err(|error| wrong(&format!("the request is no JSON: {error}")))?;
        let request = Request::from_json(&request).map_err(|error| wrong(&error))?;
        let tree = known.and_then(|known| known.tag(&request)).map_err(|error| wrong(&error))?;
        let text = json!({"type": "structural_tag", "format": tree.to_value()}).to_string();
        write_whole(&text, tag, capacity, length)
    })
}

/// Creates a reader for texts under a structural tag.
#[unsafe(no_mangle)]
pub extern "C" fn mw_reader_new(
    tag: Ref<'_, c_char>,
    vocabulary: Ref<'_, Vocabulary>,
    reader: Out<'_, Given<Reader>>,
    message: Mut<'_, c_char>,
    message_size: usize,
) -> Status {
    guard(message, message_size, || {
        let reader = reader.get("reader")?.write(Given::none());
        let wrong = |error: &dyn core::fmt::Display| Failure::new(Status::Constraint, error.to_string());
        let tree = tag::parse(tag.c_text("tag")?, &tag::Options::default()).map_err(|error| wrong(&error))?;
        let stream = Stream::new(&tree).map_err(|error| wrong(&error))?;
        let vocabulary = vocabulary.optional("vocabulary")?.cloned();
        *reader = Given::new(Reader { stream, vocabulary, events: Vec::new() });
        Ok(())
    })
}

/// Reads some bytes of a text.
#[unsafe(no_mangle)]
pub extern "C" fn mw_reader_feed(
    reader: Mut<'_, Reader>,
    bytes: Ref<'_, u8>,
    byte_count: usize,
    message: Mut<'_, c_char>,
    message_size: usize,
) -> Status {
    guard(message, message_size, || {
        let reader = reader.get("reader")?;
        reader.stream.feed_bytes(bytes.list("bytes", byte_count)?, &mut reader.events);
        Ok(())
    })
}

/// Reads some tokens of a text.
#[unsafe(no_mangle)]
pub extern "C" fn mw_reader_feed_tokens(
    reader: Mut<'_, Reader>,
    tokens: Ref<'_, u32>,
    token_count: usize,
    message: Mut<'_, c_char>,
    message_size: usize,
) -> Status {
    guard(message, message_size, || {
        let reader = reader.get("reader")?;
        let tokens = tokens.list("tokens", token_count)?;
        let Some(vocabulary) = &reader.vocabulary else {
            return Err(Failure::new(
                Status::Argument,
                "a reader without a vocabulary is fed with bytes; give the vocabulary when the reader is made",
            ));
        };
        tokens.iter().try_for_each(|token| check_token(TokenId(*token), &vocabulary.tokens))?;
        for token in tokens {
            reader.stream.feed_token(TokenId(*token), &vocabulary.tokens, &mut reader.events);
        }
        Ok(())
    })
}

/// Ends the text.
#[unsafe(no_mangle)]
pub extern "C" fn mw_reader_finish(
    reader: Mut<'_, Reader>,
    finish: Out<'_, i32>,
    message: Mut<'_, c_char>,
    message_size: usize,
) -> Status {
    guard(message, message_size, || {
        let finish = finish.get("finish")?.write(0);
        let reader = reader.get("reader")?;
        *finish = match reader.stream.finish(&mut reader.events) {
            Finish::Complete => 0,
            Finish::Cut => 1,
            Finish::Strayed => 2,
        };
        Ok(())
    })
}

/// Returns the events since the last call, as a list in JSON.
#[unsafe(no_mangle)]
pub extern "C" fn mw_reader_events(
    reader: Mut<'_, Reader>,
    events: Mut<'_, c_char>,
    capacity: usize,
    length: Out<'_, usize>,
    message: Mut<'_, c_char>,
    message_size: usize,
) -> Status {
    guard(message, message_size, || {
        let reader = reader.get("reader")?;
        let list: Vec<Value> = reader.events.iter().map(told).collect();
        write_whole(&Value::from(list).to_string(), events, capacity, length)?;
        reader.events.clear();
        Ok(())
    })
}

/// Frees a reader.
#[unsafe(no_mangle)]
pub extern "C" fn mw_reader_free(reader: Owned<Reader>) {
    discard(reader);
}

/// Explains why a token may come next or not, in JSON.
#[unsafe(no_mangle)]
pub extern "C" fn mw_matcher_explain(
    matcher: Mut<'_, Matcher>,
    token: u32,
    explanation: Mut<'_, c_char>,
    capacity: usize,
    length: Out<'_, usize>,
    message: Mut<'_, c_char>,
    message_size: usize,
) -> Status {
    guard(message, message_size, || {
        let matcher = matcher.get("matcher")?;
        check_token(TokenId(token), &matcher.vocabulary().tokens)?;
        let why = matcher.engine(|engine| Ok(Explanation::of(engine, TokenId(token))))?;
        let text = json!({
            "token": token,
            "allowed": why.is_allowed(),
            "fitting": why.fitting,
            "reason": why.reason(),
            "then": why.expectation.json(),
        });
        write_whole(&text.to_string(), explanation, capacity, length)
    })
}

fn told(event: &Event) -> Value {
    let mut told = json!({"kind": event.kind(), "text": event.text()});
    if let Some(index) = event.index() {
        told["index"] = index.into();
    }
    if let Some(name) = event.name() {
        told["name"] = name.into();
    }
    told
}
