//! How a server works.

use std::time::Duration;

use maskwright::{Options, json_schema::Whitespace, regex::Dialect};

/// How a server works. The defaults suit a machine of one's own.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The most bytes of a body.
    pub max_body: usize,
    /// How long a request may take, from its arrival to the last token.
    pub request_timeout: Duration,
    /// How long the headers of a request may take to arrive, and then its body.
    pub receive_timeout: Duration,
    /// How long a client may read nothing of what is sent to it before its connection is closed.
    pub send_timeout: Duration,
    /// How long answers may go on when the server is asked to stop.
    pub stop_timeout: Duration,
    /// The most connections that are open at the same time; more wait.
    pub max_connections: usize,
    /// Who knows one of these may use the API. Empty: everybody.
    pub api_keys: Vec<String>,
    /// Pages from these origins may use the API, such as `https://example.org`; `*` is any. Empty: only our own.
    pub cors_origins: Vec<String>,
    /// The names by which clients may call the server in the header `Host`, without a port; addresses and `localhost` are always good. `None`: any. A server for
    /// one machine should know its names: otherwise a page of somebody else, whose name leads to this machine, could use it from a browser.
    pub hosts: Option<Vec<String>>,
    /// How constraints are read, unless a request says otherwise.
    pub options: Options,
    /// Whether a constrained answer is complete when its tokens are used up.
    pub finish: Finish,
    /// How many bytes of responses are kept in memory, so that later ones can go on from them; 0 keeps none.
    pub response_bytes: usize,
    /// The grammar with probabilities of requests that ask for one and bring none.
    pub pcfg: Option<String>,
}

/// Whether a constrained answer is complete when its tokens are used up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Finish {
    /// Yes, unless a request says otherwise. A constraint of which it is not known how far it is to the end may be cut off, and the answer says so.
    #[default]
    Always,
    /// If a request says so.
    Ask,
    /// No, and a request that says so is refused.
    Never,
}

impl Default for Settings {
    /// 16 MiB, ten minutes, 15 seconds, two minutes, 30 seconds, 4,096 connections, no keys, no other origins, any name; answers are finished, and 64 MiB of responses are kept.
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

/// As it is read everywhere, but without the many blank lines that small models are fond of, and with patterns in the dialect that
/// clients write.
fn tidy() -> Options {
    let mut options = Options::default().with_dialect(Dialect::Ecma);
    options.json_schema.whitespace = Whitespace::Tidy;
    options
}
