//! What is written down about requests.

use std::{
    io::{self, Write},
    sync::{Mutex, Once, PoisonError},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::io::AsyncReadExt;

use crate::{
    client::request,
    fake::{dictated, says, start, with},
};

static LINES: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// Writes log lines where a test can read them.
struct Memory;

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        LINES.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn listen() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| tracing_subscriber::fmt().json().with_writer(|| Memory).init());
}

/// The fields of a line about a request, as soon as it is there.
async fn line(id: &str, message: &str) -> Value {
    for _ in 0..500 {
        let text = LINES.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let lines =
            text.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice::<Value>(line).ok());
        let is_it = |line: &Value| line["span"]["id"] == id && line["fields"]["message"] == message;
        if let Some(found) = lines.into_iter().find(is_it) {
            return found["fields"].clone();
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("there is no line {message:?} about {id}");
}

#[tokio::test]
async fn every_answer_is_written_down_when_it_ends() {
    listen();
    let running = start().await;
    let path = "/v1/chat/completions";
    let body = with(dictated("1945"), json!({"regex": "19[0-9]{2}"}));
    for (id, more, cache) in [("log-1", json!({}), "miss"), ("log-2", json!({"stream": true}), "hit")] {
        let reply = running.client.post_with(path, &with(body.clone(), more), &[("X-Request-Id", id)]).await;
        assert_eq!(reply.status, 200);
        let ended = line(id, "generated").await;
        for (name, value) in [
            ("constraint", json!("regex")),
            ("cache", json!(cache)),
            ("tokens", json!(4)),
            ("finish", json!("stop")),
            ("squeezed", json!(false)),
        ] {
            assert_eq!(ended[name], value, "{name} of {ended}");
        }
        assert!(
            ended["hash"].as_str().is_some_and(|hash| hash.len() == 16)
                && ended["compile_micros"].is_number(),
            "{ended}"
        );
        // What was asked and answered is nobody's business.
        assert!(!ended.to_string().contains("1945") && !ended.to_string().contains("19["), "{ended}");
    }
    let wrong = with(dictated("a"), json!({"regex": "("}));
    running.client.post_with(path, &wrong, &[("X-Request-Id", "log-3")]).await;
    let answered = line("log-3", "answered").await;
    assert_eq!((&answered["status"], &answered["error"]), (&json!(400), &json!("invalid_regex")));
}

#[tokio::test]
async fn who_leaves_is_written_down() {
    listen();
    let running = start().await;
    for (id, is_streamed) in [("left-1", true), ("left-2", false)] {
        let body = json!({"messages": says("SLOW"), "max_tokens": 900, "logit_bias": {"257": -100}, "stream": is_streamed});
        let headers = [("Content-Type", "application/json"), ("X-Request-Id", id)];
        let bytes = request("POST", "/v1/chat/completions", &headers, body.to_string().as_bytes());
        let mut stream = running.client.open(&bytes).await;
        if is_streamed {
            let mut some = [0; 100];
            assert!(stream.read(&mut some).await.unwrap() > 0);
        }
        while running.health().await["running"] == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        drop(stream);
        assert_eq!(line(id, "generated").await["finish"], "client_left");
        running.idle().await;
    }
}
