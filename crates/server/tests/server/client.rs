//! A client that sends exactly the bytes it is told to.

use std::{collections::BTreeMap, net::SocketAddr, time::Duration};

use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// How long a test waits before it calls a server stuck.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Clone, Copy)]
pub(crate) struct Client {
    pub(crate) address: SocketAddr,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

impl Client {
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self { address }
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.send(&request("GET", path, &[], b"")).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Reply {
        self.post_with(path, body, &[]).await
    }

    pub(crate) async fn post_with(&self, path: &str, body: &Value, headers: &[(&str, &str)]) -> Reply {
        let headers = [headers, &[("Content-Type", "application/json")]].concat();
        self.send(&request("POST", path, &headers, body.to_string().as_bytes())).await
    }

    pub(crate) async fn chat(&self, body: &Value) -> Reply {
        self.post("/v1/chat/completions", body).await
    }

    /// Sends bytes, and reads until the server closes the connection.
    pub(crate) async fn send(&self, bytes: &[u8]) -> Reply {
        let mut stream = self.open(bytes).await;
        let mut answer = Vec::new();
        let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await;
        read.expect("the server answers in time").unwrap();
        Reply::parse(&answer)
    }

    /// Sends bytes, and keeps the connection.
    pub(crate) async fn open(&self, bytes: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        stream
    }

    /// Sends a request, and keeps the connection.
    pub(crate) async fn begin(&self, path: &str, body: &Value) -> TcpStream {
        let headers = [("Content-Type", "application/json")];
        self.open(&request("POST", path, &headers, body.to_string().as_bytes())).await
    }
}

pub(crate) fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut text = format!("{method} {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n");
    for (name, value) in headers {
        text.extend([name, ": ", value, "\r\n"]);
    }
    text.extend(["Content-Length: ", &body.len().to_string(), "\r\n\r\n"]);
    [text.as_bytes(), body].concat()
}

impl Reply {
    fn parse(bytes: &[u8]) -> Self {
        let split = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
        let head = String::from_utf8(bytes[..split].to_vec()).unwrap();
        let mut lines = head.lines();
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let headers: BTreeMap<String, String> = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
            .collect();
        let rest = &bytes[split + 4..];
        let is_chunked = headers.get("transfer-encoding").is_some_and(|coding| coding == "chunked");
        let body = if is_chunked { joined(rest) } else { rest.to_vec() };
        Self { status, headers, body }
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&self.body)))
    }

    /// The answer, which must be good.
    pub(crate) fn good(&self) -> Value {
        assert_eq!(self.status, 200, "{}", String::from_utf8_lossy(&self.body));
        self.json()
    }

    /// Status, `param` and `code` of an error, which must have its shape.
    pub(crate) fn error(&self) -> (u16, String, String) {
        let body = self.json();
        let error = body["error"].as_object().unwrap_or_else(|| panic!("no error: {} {body}", self.status));
        let keys: Vec<&str> = error.keys().map(String::as_str).collect();
        assert_eq!(keys, ["message", "type", "param", "code"]);
        assert!(error["message"].as_str().is_some_and(|message| message.len() > 10), "{body}");
        let text = |name: &str| error[name].as_str().unwrap_or_default().to_owned();
        (self.status, text("param"), text("code"))
    }

    /// The server-sent events: names and data.
    pub(crate) fn events(&self) -> Vec<(String, String)> {
        assert_eq!(self.status, 200, "{}", String::from_utf8_lossy(&self.body));
        assert_eq!(self.headers["content-type"], "text/event-stream");
        let text = String::from_utf8(self.body.clone()).unwrap();
        let event = |block: &str| {
            let field =
                |name: &str| block.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("").trim();
            (field("event:").to_owned(), field("data:").to_owned())
        };
        text.split("\n\n").filter(|block| !block.trim().is_empty()).map(event).collect()
    }

    /// The data of events, as JSON, up to `[DONE]`, which must be the last.
    pub(crate) fn chunks(&self) -> Vec<Value> {
        let mut events = self.events();
        assert_eq!(events.pop().map(|(_, data)| data).as_deref(), Some("[DONE]"));
        events.iter().map(|(_, data)| serde_json::from_str(data).unwrap()).collect()
    }
}

/// Undoes the chunks of HTTP.
fn joined(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(line) = rest.windows(2).position(|two| two == b"\r\n") {
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..line]).unwrap(), 16).unwrap();
        body.extend_from_slice(&rest[line + 2..line + 2 + size]);
        rest = &rest[line + 2 + size + 2..];
        if size == 0 {
            break;
        }
    }
    body
}
