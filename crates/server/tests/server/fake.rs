//! A model that says what its prompt tells it to say.
//!
//! Tokens 0 to 255 are bytes. A prompt with `SAY:hello|` is answered by `hello` and the end, as far as a constraint lets it; any other is
//! answered by chance, but always in the same way. `SLOW` in a prompt makes every token take a while.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use maskwright::{
    Compiler,
    formats::ModelFormat,
    service::{Service, Settings as Compiling},
};
use maskwright_runtime::{
    Sampling,
    model::{ByText, chance},
    scheduler::Options,
    text::chat::ChatTemplate,
};
use maskwright_server::{Engine, Parts, Server, Settings};
use maskwright_tokenizers::{Tokenizer, hf};
use maskwright_vocab::TokenId;
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::oneshot, task::JoinHandle};

use crate::client::Client;

const START: &str = "<|im_start|>";
const END: &str = "<|im_end|>";
const CONTEXT: usize = 1000;
const WIDTH: usize = 258;

const TEMPLATE: &str = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}\
                        {% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

/// What a test may want to be different.
#[derive(Default)]
pub(crate) struct Setup {
    pub(crate) settings: Settings,
    pub(crate) scheduling: Options,
    pub(crate) compiling: Compiling,
    pub(crate) format: Option<ModelFormat>,
    pub(crate) sampling: Sampling,
    /// A chat template, if it is to be another.
    pub(crate) template: Option<&'static str>,
}

/// A server that runs.
pub(crate) struct Running {
    pub(crate) client: Client,
    /// How often the model was asked for a token.
    pub(crate) steps: Arc<AtomicUsize>,
    pub(crate) server: Server,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

pub(crate) async fn start() -> Running {
    start_with(Setup::default()).await
}

pub(crate) async fn start_with(setup: Setup) -> Running {
    let source = setup.template.unwrap_or(TEMPLATE);
    let tokenizer = Arc::new(tokenizer());
    let steps = Arc::new(AtomicUsize::new(0));
    let counted = steps.clone();
    let model = ByText::new(WIDTH, CONTEXT, move |text: &[TokenId], row: &mut [f32]| {
        counted.fetch_add(1, Ordering::Relaxed);
        write(text, row);
    });
    let compiler = Arc::new(Compiler::new(tokenizer.vocabulary().clone()));
    let template = Some(Arc::new(ChatTemplate::new(source).unwrap()));
    let parts = Parts {
        name: "fake".into(),
        model: Box::new(model),
        tokenizer,
        template,
        first: None,
        format: setup.format,
        sampling: setup.sampling,
    };
    let service = Service::new(setup.compiling).unwrap();
    let engine = Engine::start(parts, setup.scheduling, &service, compiler).unwrap();
    run(Server::new(engine, setup.settings), steps).await
}

pub(crate) async fn run(server: Server, steps: Arc<AtomicUsize>) -> Running {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = Client::new(listener.local_addr().unwrap());
    let (stop, stopped) = oneshot::channel();
    let serving = server.clone();
    let task = tokio::spawn(async move {
        let stopped = async { stopped.await.unwrap_or_default() };
        serving.serve(listener, stopped).await.unwrap();
    });
    Running { client, steps, server, stop: Some(stop), task }
}

impl Running {
    /// Asks the server to stop.
    pub(crate) fn stop(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
    }

    /// Waits until it has.
    pub(crate) async fn stopped(self) {
        self.task.await.unwrap();
    }

    /// What `/health` says.
    pub(crate) async fn health(&self) -> Value {
        self.client.get("/health").await.json()
    }

    /// Waits until nothing runs and nothing waits.
    pub(crate) async fn idle(&self) {
        for _ in 0..500 {
            let health = self.health().await;
            if health["running"] == 0 && health["waiting"] == 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("the server does not come to rest: {}", self.health().await);
    }
}

/// A user who says this.
pub(crate) fn says(text: &str) -> Value {
    json!([{"role": "user", "content": text}])
}

/// A chat request that is to be answered by this text.
pub(crate) fn dictated(text: &str) -> Value {
    json!({"model": "fake", "messages": says(&format!("SAY:{text}|")), "temperature": 0})
}

/// The same with more fields.
pub(crate) fn with(mut body: Value, more: Value) -> Value {
    let (Value::Object(body_map), Value::Object(more)) = (&mut body, more) else { panic!("objects") };
    body_map.extend(more);
    body
}

fn tokenizer() -> Tokenizer {
    let vocab: serde_json::Map<String, Value> =
        (0..=255_u8).map(|byte| (byte_char(byte).to_string(), byte.into())).collect();
    let added = |id: u32, content: &str| {
        json!({"id": id, "content": content, "special": true,
               "single_word": false, "lstrip": false, "rstrip": false, "normalized": false})
    };
    let file = json!({
        "version": "1.0",
        "added_tokens": [added(256, START), added(257, END)],
        "normalizer": null,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
        "post_processor": null,
        "decoder": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
        "model": {"type": "BPE", "vocab": vocab, "merges": []},
    });
    let options = maskwright_tokenizers::Options {
        eos: Some(vec![TokenId(257)]),
        ..maskwright_tokenizers::Options::default()
    };
    hf::from_bytes_with(file.to_string().as_bytes(), &options).unwrap()
}

/// The character of a byte in the alphabet of GPT-2.
fn byte_char(byte: u8) -> char {
    let plain = |byte: u8| matches!(byte, 0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF);
    if plain(byte) {
        return char::from(byte);
    }
    let before = (0..byte).filter(|&other| !plain(other)).count();
    char::from_u32(0x100 + before as u32).unwrap()
}

/// A little of chance, and a lot of what was dictated.
fn write(text: &[TokenId], row: &mut [f32]) {
    chance(text, row);
    if let Some(next) = dictation(text) {
        row[next] = 50.0;
    }
    let bytes: Vec<u8> = text.iter().map(|token| u8::try_from(token.0).unwrap_or(0)).collect();
    if find(&bytes, b"SLOW").is_some() {
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The token that was dictated for this place.
fn dictation(tokens: &[TokenId]) -> Option<usize> {
    let text: Vec<u8> = tokens.iter().map(|token| u8::try_from(token.0).unwrap_or(0)).collect();
    let begin = find(&text, b"SAY:")? + 4;
    let end = begin + find(&text[begin..], b"|")?;
    // In a conversation the answer begins behind the last special token and its role.
    let answer = match tokens.iter().rposition(|token| token.0 == 256) {
        Some(at) => at + 1 + find(&text[at..], b"\n")?,
        None => end + 1,
    };
    let written = &text[answer.min(text.len())..];
    let rest = text[begin..end].strip_prefix(written)?;
    Some(rest.first().map_or(257, |&byte| usize::from(byte)))
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}
