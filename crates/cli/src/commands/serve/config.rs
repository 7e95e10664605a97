//! The settings of `maskwright serve`: as flags, and as a file with the same names.

use std::{num::NonZero, path::PathBuf, time::Duration};

use clap::ValueEnum;
use serde::Deserialize;

use crate::commands::model::Runtime;

/// All settings. In a file the names are those of the flags, without the leading dashes.
#[derive(Debug, Clone, Default, clap::Args, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Config {
    /// A GGUF file, a folder with a model, or `smollm2`, the small model that `make assets` fetches [default: smollm2]
    #[arg(long, value_name = "PATH", help_heading = "Model")]
    pub(crate) model: Option<PathBuf>,
    /// The name of the model for clients [default: the name of the file or folder]
    #[arg(long, value_name = "NAME", help_heading = "Model")]
    pub(crate) name: Option<String>,
    /// The runtime for the model [default: auto]
    #[arg(long, value_name = "NAME", help_heading = "Model")]
    pub(crate) runtime: Option<Runtime>,
    /// Threads that compute [default: one less than the number of processors]
    #[arg(long, value_name = "N", help_heading = "Model")]
    pub(crate) threads: Option<NonZero<usize>>,
    /// The maximum number of tokens of a text, if lower than the model's own limit
    #[arg(long, value_name = "N", help_heading = "Model")]
    pub(crate) context: Option<NonZero<usize>>,
    /// The maximum number of answers that are written at the same time [default: 16]
    #[arg(long, value_name = "N", help_heading = "Model")]
    pub(crate) max_batch: Option<NonZero<usize>>,
    /// The format of the model's tool calls: the name of a format, or a file with one [default: guessed from its
    /// template]
    #[arg(long, value_name = "NAME", help_heading = "Model")]
    pub(crate) tool_format: Option<String>,
    /// The temperature unless a request says otherwise: 0 always takes the best token, 1 samples from the model's
    /// distribution [default: what its files recommend, or 1]
    #[arg(long, value_name = "N", help_heading = "Model")]
    pub(crate) temperature: Option<f32>,
    /// Ask the model for every token, even if the constraint leaves no choice
    #[arg(long, help_heading = "Model")]
    pub(crate) no_jump_forward: bool,

    /// The address to listen on; other machines can reach 0.0.0.0 [default: 127.0.0.1]
    #[arg(long, value_name = "ADDRESS", help_heading = "Connections")]
    pub(crate) host: Option<String>,
    /// The port to listen on; 0 means any free port [default: 8000]
    #[arg(long, value_name = "PORT", help_heading = "Connections")]
    pub(crate) port: Option<u16>,
    /// A key that clients must send; repeat the flag for each key. Other users of this machine can see it, so a file is
    /// better
    #[arg(long, value_name = "KEY", help_heading = "Connections")]
    pub(crate) api_key: Vec<String>,
    /// A file with keys, one per line
    #[arg(long, value_name = "FILE", help_heading = "Connections")]
    pub(crate) api_key_file: Option<PathBuf>,
    /// An origin of web pages that may use the API, such as `https://example.org`; `*` means any. Repeat the flag for
    /// each origin
    #[arg(long, value_name = "ORIGIN", help_heading = "Connections")]
    pub(crate) cors_origin: Vec<String>,
    /// A host name that clients may use, besides `localhost` and addresses; other names are refused if the server only
    /// listens for this machine. Repeat the flag for each name
    #[arg(long, value_name = "NAME", help_heading = "Connections")]
    pub(crate) allowed_host: Vec<String>,
    /// The maximum size of a request in bytes, such as `16M` [default: 16M]
    #[arg(long, value_name = "SIZE", help_heading = "Connections")]
    pub(crate) max_body: Option<Size>,
    /// The maximum number of requests that wait for a place in the batch [default: 256]
    #[arg(long, value_name = "N", help_heading = "Connections")]
    pub(crate) queue: Option<usize>,
    /// The maximum size in bytes of responses that are kept in memory for `previous_response_id`; 0 keeps none
    /// [default: 64M]
    #[arg(long, value_name = "SIZE", help_heading = "Connections")]
    pub(crate) response_bytes: Option<Size>,
    /// The maximum duration of an answer in seconds [default: 600]
    #[arg(long, value_name = "SECONDS", help_heading = "Connections")]
    pub(crate) request_timeout: Option<u64>,

    /// The engine that matches constraints [default: maskwright]
    #[arg(long, value_name = "NAME", help_heading = "Constraints")]
    pub(crate) grammar_backend: Option<Backend>,
    /// The maximum size of all compiled constraints in bytes, such as `512M` [default: 512M]
    #[arg(long, value_name = "SIZE", help_heading = "Constraints")]
    pub(crate) cache_bytes: Option<Size>,
    /// The maximum duration of compiling a constraint in seconds [default: 10]
    #[arg(long, value_name = "SECONDS", help_heading = "Constraints")]
    pub(crate) compile_timeout: Option<u64>,
    /// Threads that compile; slow constraints do not delay others [default: 4]
    #[arg(long, value_name = "N", help_heading = "Constraints")]
    pub(crate) compile_threads: Option<NonZero<usize>>,
    /// Milliseconds for computing masks ahead after a constraint was compiled, unless another one waits; 0 disables it
    /// [default: 5]
    #[arg(long, value_name = "N", help_heading = "Constraints")]
    pub(crate) prepare: Option<u64>,
    /// The maximum number of steps for one mask or one token, at some nanoseconds each; a request that exceeds it ends
    /// with an error [default: 20000000]
    #[arg(long, value_name = "N", help_heading = "Constraints")]
    pub(crate) mask_steps: Option<NonZero<u64>>,
    /// Whether a constrained answer is complete when its tokens are used up [default: always]
    #[arg(long, value_name = "WHEN", help_heading = "Constraints")]
    pub(crate) finish: Option<When>,
    /// A file with the default grammar with probabilities, for requests with `{"type": "pcfg"}` that contain none
    #[arg(long, value_name = "FILE", help_heading = "Constraints")]
    pub(crate) pcfg: Option<PathBuf>,
    /// White space between the tokens of JSON, as a regular expression, unless a request says otherwise
    #[arg(
        long,
        value_name = "REGEX",
        allow_hyphen_values = true,
        conflicts_with = "constrained_json_disable_any_whitespace",
        help_heading = "Constraints"
    )]
    pub(crate) constrained_json_whitespace_pattern: Option<String>,
    /// No white space between the tokens of JSON, unless a request says otherwise
    #[arg(long, help_heading = "Constraints")]
    pub(crate) constrained_json_disable_any_whitespace: bool,
    /// A file with compiled constraints: read at the start if it exists, written at the end
    #[arg(long, value_name = "FILE", help_heading = "Constraints")]
    pub(crate) warm: Option<PathBuf>,

    /// The format of log lines [default: text]
    #[arg(long, visible_alias = "log-format", value_name = "FORM", help_heading = "Log")]
    #[serde(alias = "log-format")]
    pub(crate) log: Option<Log>,
}

/// An engine for constraints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Backend {
    /// The built-in engine
    Maskwright,
    /// llguidance, if the program was built with it (`--features llguidance`)
    Llguidance,
}

/// When constrained answers are completed within their tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum When {
    /// Yes, unless a request says otherwise
    Always,
    /// Only if a request says so
    Ask,
    /// Never
    Never,
}

impl From<When> for maskwright_server::Finish {
    fn from(when: When) -> Self {
        match when {
            When::Always => Self::Always,
            When::Ask => Self::Ask,
            When::Never => Self::Never,
        }
    }
}

/// The format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Log {
    /// For people
    Text,
    /// One JSON object per line
    Json,
    /// None
    Off,
}

impl Config {
    /// Combines the flags with the settings of the file; flags take precedence.
    pub(crate) fn over(self, file: Self) -> Self {
        let both = |flags: Vec<String>, file: Vec<String>| if flags.is_empty() { file } else { flags };
        let is_spaced = self.constrained_json_whitespace_pattern.is_some();
        let is_compact = self.constrained_json_disable_any_whitespace;
        Self {
            model: self.model.or(file.model),
            name: self.name.or(file.name),
            runtime: self.runtime.or(file.runtime),
            threads: self.threads.or(file.threads),
            context: self.context.or(file.context),
            max_batch: self.max_batch.or(file.max_batch),
            tool_format: self.tool_format.or(file.tool_format),
            temperature: self.temperature.or(file.temperature),
            no_jump_forward: self.no_jump_forward || file.no_jump_forward,
            host: self.host.or(file.host),
            port: self.port.or(file.port),
            api_key: both(self.api_key, file.api_key),
            api_key_file: self.api_key_file.or(file.api_key_file),
            cors_origin: both(self.cors_origin, file.cors_origin),
            allowed_host: both(self.allowed_host, file.allowed_host),
            max_body: self.max_body.or(file.max_body),
            queue: self.queue.or(file.queue),
            response_bytes: self.response_bytes.or(file.response_bytes),
            request_timeout: self.request_timeout.or(file.request_timeout),
            grammar_backend: self.grammar_backend.or(file.grammar_backend),
            cache_bytes: self.cache_bytes.or(file.cache_bytes),
            compile_timeout: self.compile_timeout.or(file.compile_timeout),
            compile_threads: self.compile_threads.or(file.compile_threads),
            prepare: self.prepare.or(file.prepare),
            mask_steps: self.mask_steps.or(file.mask_steps),
            finish: self.finish.or(file.finish),
            pcfg: self.pcfg.or(file.pcfg),
            // Both settings are about white space, so a flag for either overrides both settings of the file.
            constrained_json_whitespace_pattern: self
                .constrained_json_whitespace_pattern
                .or(file.constrained_json_whitespace_pattern.filter(|_| !is_compact)),
            constrained_json_disable_any_whitespace: is_compact
                || (file.constrained_json_disable_any_whitespace && !is_spaced),
            warm: self.warm.or(file.warm),
            log: self.log.or(file.log),
        }
    }
}

/// A number of bytes: `4096`, `64K`, `16M`, `2G`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Written")]
pub(crate) struct Size(pub(crate) usize);

/// A size in a file: a number or a string.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Number(usize),
    Text(String),
}

impl TryFrom<Written> for Size {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        match written {
            Written::Number(bytes) => Ok(Self(bytes)),
            Written::Text(text) => text.parse(),
        }
    }
}

impl std::str::FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let shift = match text[digits.len()..].to_ascii_uppercase().as_str() {
            "" | "B" => 0,
            "K" | "KB" | "KIB" => 10,
            "M" | "MB" | "MIB" => 20,
            "G" | "GB" | "GIB" => 30,
            other => return Err(format!("`{other}` is no unit; known are K, M and G")),
        };
        let number: usize =
            digits.parse().map_err(|_| format!("`{text}` is no number of bytes, as in 16M"))?;
        number.checked_mul(1 << shift).map(Self).ok_or_else(|| format!("`{text}` is too many bytes"))
    }
}

/// Returns a duration of at least one second.
pub(crate) fn seconds(given: Option<u64>, other: Duration) -> Duration {
    given.map_or(other, |seconds| Duration::from_secs(seconds.max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        let size = |text: &str| text.parse::<Size>().map(|size| size.0);
        assert_eq!(size("4096"), Ok(4096));
        assert_eq!(size("16m"), Ok(16 << 20));
        assert_eq!(size("2GiB"), Ok(2 << 30));
        assert!(size("M").is_err() && size("1X").is_err() && size("99999999999G").is_err());
    }

    #[test]
    fn flags_come_before_the_file() {
        let file: Config = toml::from_str(
            "model = \"a.gguf\"\nruntime = \"llama-cpp\"\nport = 1\nmax-body = \"1K\"\nconstrained-json-disable-any-whitespace = true\napi-key = [\"x\"]",
        )
        .unwrap();
        let flags = Config {
            port: Some(2),
            constrained_json_whitespace_pattern: Some(" ?".into()),
            ..Config::default()
        };
        let both = flags.over(file);
        assert_eq!(
            (both.port, both.max_body, both.api_key),
            (Some(2), Some(Size(1024)), vec!["x".to_owned()])
        );
        assert_eq!(both.runtime, Some(Runtime::LlamaCpp));
        assert!(!both.constrained_json_disable_any_whitespace);
        let log: Config = toml::from_str("log-format = \"json\"\nfinish = \"ask\"").unwrap();
        assert_eq!((log.log, log.finish), (Some(Log::Json), Some(When::Ask)));
        assert!(toml::from_str::<Config>("prot = 1").unwrap_err().to_string().contains("prot"));
    }
}
