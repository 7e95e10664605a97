//! The settings of a server.

use std::time::Duration;

use maskwright::{Options, json_schema::Whitespace, regex::Dialect};

/// The settings of a server. The defaults suit a private machine.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The maximum size of a body in bytes.
    pub max_body: usize,
    /// The time limit of a request, from its arrival to the last token.
    pub request_timeout: Duration,
    /// The time limit for the headers of a request to arrive, and then for its body.
    pub receive_timeout: Duration,
    /// How long a client may read nothing of what is sent to it before its connection is closed.
    pub send_timeout: Duration,
    /// How long answers may continue after the server was asked to stop.
    pub stop_timeout: Duration,
    /// The maximum number of connections that are open at the same time; more wait.
    pub max_connections: usize,
    /// The keys that allow using the API. If empty, everybody may use it.
    pub api_keys: Vec<String>,
    /// The origins of web pages that may use the API, such as `https://example.org`; `*` means any. If empty, only our
    /// own page may.
    pub cors_origins: Vec<String>,
    /// The host names that clients may use in the header `Host`, without a port; addresses and `localhost` are always
    /// allowed. `None` allows any name. A server for one machine should list its names: otherwise a foreign web page,
    /// whose host name resolves to this machine, could use it from a browser.
    pub hosts: Option<Vec<String>>,
    /// How constraints are read, unless a request says otherwise.
    pub options: Options,
    /// Whether a constrained answer is complete when its tokens are used up.
    pub finish: Finish,
    /// The maximum size of stored responses in bytes, so that later requests can continue from them; 0 stores none.
    pub response_bytes: usize,
    /// The grammar with probabilities for requests that use one without providing it.
    pub pcfg: Option<String>,
}

/// Whether a constrained answer is complete when its tokens are used up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Finish {
    /// Yes, unless a request says otherwise. If the distance to the end is unknown for a constraint, its answer may be
    /// cut off, and the response says so.
    #[default]
    Always,
    /// Only if a request says so.
    Ask,
    /// No, and a request that asks for it is refused.
    Never,
}

impl Default for Settings {
    /// 16 MiB, ten minutes, 15 seconds, two minutes, 30 seconds, 4,096 connections, no keys, no other origins, any host
    /// name; answers are finished, and 64 MiB of responses are stored.
    fn default() -> Self {
        Self {
            max_body: 16 << 20,
            request_timeout: Duration::from_secs(600),
            receive_timeout: Duration::from_secs(15),
            send_timeout: Duration::from_secs(120),
            stop_timeout: Duration::from_secs(30),
            max_connections: 4096,
            api_keys: Vec::new(),
            cors_origins: Vec::new(),
            hosts: None,
            options: tidy(),
            finish: Finish::default(),
            response_bytes: 64 << 20,
            pcfg: None,
        }
    }
}

/// Returns the default options, but without the many blank lines that small models tend to write, and with patterns in
/// the dialect that clients use.
fn tidy() -> Options {
    let mut options = Options::default().with_dialect(Dialect::Ecma);
    options.json_schema.whitespace = Whitespace::Tidy;
    options
}
