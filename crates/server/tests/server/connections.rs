//! Many clients, slow clients, clients that go away; and the end.

use std::{sync::atomic::Ordering, time::Duration};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::fake::{Setup, dictated, says, start, start_with, with};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_four_at_once_and_everybody_gets_their_own_answer() {
    let running = start().await;
    let tasks: Vec<_> = (0..64_usize)
        .map(|number| {
            let client = running.client;
            tokio::spawn(async move {
                let text = format!("answer {number} {}", "x".repeat(number));
                let more = match number % 4 {
                    0 => json!({}),
                    1 => json!({"stream": true}),
                    2 => json!({"regex": format!("answer {number} x*")}),
                    _ => json!({"stream": true, "regex": format!("answer {number} x*")}),
                };
                let reply = client.chat(&with(dictated(&text), more)).await;
                let found: String = if number % 2 == 0 {
                    reply.good()["choices"][0]["message"]["content"].as_str().unwrap().to_owned()
                } else {
                    let chunks = reply.chunks();
                    chunks
                        .iter()
                        .filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str())
                        .collect()
                };
                assert_eq!(found, text);
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    running.idle().await;
}

#[tokio::test]
async fn who_goes_away_frees_their_place_at_once() {
    let running = start().await;
    let slow = |is_streamed: bool| json!({"messages": says("SLOW"), "max_tokens": 900, "logit_bias": {"257": -100}, "stream": is_streamed});
    for is_streamed in [true, false] {
        let mut stream = running.client.begin("/v1/chat/completions", &slow(is_streamed)).await;
        if is_streamed {
            let mut some = [0; 100];
            assert!(stream.read(&mut some).await.unwrap() > 0);
        }
        while running.health().await["running"] == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        drop(stream);
        running.idle().await;
    }
    // Nine hundred tokens at ten milliseconds would have been eighteen hundred steps.
    assert!(running.steps.load(Ordering::Relaxed) < 900);
}

#[tokio::test]
async fn a_full_queue_says_so_and_when_to_come_back() {
    let mut setup = Setup::default();
    (setup.scheduling.max_batch, setup.scheduling.max_queue) = (1, 1);
    let running = start_with(setup).await;
    let slow = json!({"messages": says("SLOW"), "max_tokens": 900, "logit_bias": {"257": -100}});
    let path = "/v1/chat/completions";
    let first = running.client.begin(path, &slow).await;
    while running.health().await["running"] == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let second = running.client.begin(path, &slow).await;
    while running.health().await["waiting"] == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let reply = running.client.chat(&dictated("a")).await;
    assert_eq!(reply.error(), (429, String::new(), "server_busy".into()));
    assert_eq!(reply.headers["retry-after"], "1");
    drop((first, second));
    running.idle().await;
    running.client.chat(&dictated("a")).await.good();
}

#[tokio::test]
async fn an_answer_may_not_take_for_ever() {
    let mut setup = Setup::default();
    setup.settings.request_timeout = Duration::from_millis(200);
    let running = start_with(setup).await;
    let slow = json!({"messages": says("SLOW"), "max_tokens": 900, "logit_bias": {"257": -100}});
    assert_eq!(running.client.chat(&slow).await.error().0, 504);
    let events = running.client.chat(&with(slow.clone(), json!({"stream": true}))).await.events();
    let last: Value = serde_json::from_str(&events.last().unwrap().1).unwrap();
    assert_eq!(last["error"]["code"], "timeout");
    let body = json!({"input": "SLOW", "logit_bias": {"257": -100}, "stream": true});
    let events = running.client.post("/v1/responses", &body).await.events();
    assert_eq!(events.last().unwrap().0, "response.failed");
    running.idle().await;
}

#[tokio::test]
async fn slow_heads_and_bodies_are_cut_off_and_others_go_on() {
    let mut setup = Setup::default();
    setup.settings.receive_timeout = Duration::from_millis(300);
    let running = start_with(setup).await;
    let mut head = running.client.open(b"POST /v1/chat/completions HTTP/1.1\r\nHost: te").await;
    let begun = b"POST /v1/chat/completions HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{";
    let mut body = running.client.open(begun).await;
    running.client.chat(&dictated("meanwhile")).await.good();
    let mut answer = Vec::new();
    let patience = Duration::from_secs(20);
    tokio::time::timeout(patience, head.read_to_end(&mut answer)).await.expect("closed").unwrap();
    assert!(!String::from_utf8_lossy(&answer).contains("200 OK"));
    let mut answer = vec![0; 4096];
    let read = tokio::time::timeout(patience, body.read(&mut answer)).await.expect("answered").unwrap();
    assert!(String::from_utf8_lossy(&answer[..read]).starts_with("HTTP/1.1 408"));
}

/// A client that asks for more than the buffers of both machines hold, and reads none of it, loses its connection.
#[tokio::test]
async fn who_reads_nothing_is_not_waited_for() {
    let mut setup = Setup::default();
    setup.settings.send_timeout = Duration::from_millis(300);
    setup.settings.stop_timeout = Duration::from_secs(600);
    let mut running = start_with(setup).await;
    let echo = json!({"prompt": vec!["x".repeat(900); 64], "max_tokens": 1, "echo": true, "n": 4});
    let body = echo.to_string();
    let head = format!(
        "POST /v1/completions HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let mut stream = running.client.open(&[head.as_bytes(), body.as_bytes()].concat()).await;
    let mut begun = [0; 15];
    stream.read_exact(&mut begun).await.unwrap();
    assert_eq!(begun, *b"HTTP/1.1 200 OK");
    // More and more answers, until nothing fits between them.
    let request = [head.as_bytes(), body.as_bytes()].concat();
    let full = tokio::time::timeout(Duration::from_secs(60), async {
        while stream.write_all(&request).await.is_ok() {}
    });
    full.await.expect("the connection is closed");
    // Nothing is open any more, so that a server which waits for its connections can end.
    running.stop();
    tokio::time::timeout(Duration::from_secs(60), running.stopped()).await.expect("it has ended");
}

#[tokio::test]
async fn half_closed_connections_hold_nothing() {
    let running = start().await;
    let slow =
        json!({"messages": says("SLOW"), "max_tokens": 900, "logit_bias": {"257": -100}, "stream": true});
    let mut stream = running.client.begin("/v1/chat/completions", &slow).await;
    while running.health().await["running"] == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    stream.shutdown().await.unwrap();
    running.idle().await;
}

#[tokio::test]
async fn a_stop_finishes_what_is_being_written() {
    let mut running = start().await;
    let body = with(dictated("SLOW but complete"), json!({"stream": true}));
    let mut stream = running.client.begin("/v1/chat/completions", &body).await;
    let mut some = [0; 200];
    let read = stream.read(&mut some).await.unwrap();
    assert!(read > 0);
    running.stop();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await.unwrap();
    assert!(String::from_utf8_lossy(&rest).contains("data: [DONE]"));
    let client = running.client;
    running.stopped().await;
    assert!(tokio::net::TcpStream::connect(client.address).await.is_err());
}

#[tokio::test]
async fn other_origins_are_let_in_only_if_asked() {
    let preflight = b"OPTIONS /v1/models HTTP/1.1\r\nHost: test\r\nConnection: close\r\nOrigin: https://example.org\r\nAccess-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: content-type\r\n\r\n";
    let closed = start().await;
    let reply = closed.client.send(preflight).await;
    assert!(!reply.headers.contains_key("access-control-allow-origin"), "{reply:?}");
    let mut setup = Setup::default();
    setup.settings.cors_origins = vec!["https://example.org".into()];
    let open = start_with(setup).await;
    let reply = open.client.send(preflight).await;
    assert_eq!(reply.headers["access-control-allow-origin"], "https://example.org");
    let others = String::from_utf8_lossy(preflight).replace("example.org", "example.com");
    let reply = open.client.send(others.as_bytes()).await;
    assert!(!reply.headers.contains_key("access-control-allow-origin"), "{reply:?}");
}
