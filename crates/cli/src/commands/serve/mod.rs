//! `maskwright serve`: serves a model with the API of `OpenAI`, and a page to try it.

mod config;

use std::{
    fs,
    io::{self, IsTerminal, Write},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use maskwright::{
    Compiler, Constraint,
    backend::Backend as Engines,
    formats::ModelFormat,
    json_schema::Whitespace,
    service::{Client, LoadError, Service, Settings as Compiling},
};
use maskwright_runtime::{Loaded, model::LoadOptions, scheduler::Options};
use maskwright_server::{Engine, Parts, Server, Settings};

use self::config::{Backend, Config, Log, seconds};
use crate::args::{file_name, read_text};
use crate::failure::{Failure, Verdict};
use crate::source::Source;

/// Serve a model with the API of `OpenAI`, and a page to try it
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    config: Config,
    /// A TOML file with the same settings, such as `max-batch = 8`; flags take precedence
    #[arg(long = "config", value_name = "FILE")]
    file: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  maskwright serve
  maskwright serve --model model.gguf --name my-model --port 9000 --max-batch 32
  maskwright serve --host 0.0.0.0 --api-key-file keys.txt --warm constraints.warm
  maskwright serve --config server.toml --log json
  curl http://127.0.0.1:8000/v1/chat/completions -H 'Content-Type: application/json' -d '{
    \"messages\": [{\"role\": \"user\", \"content\": \"When did the Second World War end?\"}],
    \"response_format\": {\"type\": \"regex\", \"pattern\": \"19[0-9]{2}\"}}'

The page is at http://127.0.0.1:8000/. Ctrl-C or SIGTERM stops the server when the answers that are being written are finished.";

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> Result<Verdict, Failure> {
    let config = match &args.file {
        None => args.config.clone(),
        Some(path) => {
            let file = toml::from_str(&read_text(path)?)
                .map_err(|error| Failure::sentence(format!("{}: {error}", path.display())))?;
            args.config.clone().over(file)
        }
    };
    start_log(config.log.unwrap_or(Log::Text));
    let settings = settings(&config)?;
    let model = config.model.clone().unwrap_or_else(|| "smollm2".into());
    let name = config.name.clone().unwrap_or_else(|| name_of(&model));
    let load = LoadOptions { threads: config.threads, context: config.context };
    let scheduling = scheduling(&config);
    // One text for each answer, and further texts that are kept.
    let texts = scheduling.max_batch.saturating_add(scheduling.kept_texts);
    let loaded = config.runtime.unwrap_or_default().open(&model, load, texts)?;
    let backend = backend(&config, &loaded)?;
    let service = Service::new(compiling(&config)).map_err(sentence)?;
    let mut parts = Parts::loaded(loaded, name.as_str());
    if let Some(temperature) = config.temperature {
        parts.sampling.temperature = temperature;
        parts.sampling.check().map_err(sentence)?;
    }
    parts.format = config.tool_format.as_deref().map(tool_format).transpose()?;
    let engine = Engine::start(parts, scheduling, &service, backend).map_err(sentence)?;
    if let Some(path) = &config.warm {
        warm(path, engine.grammars())?;
    }
    let server = Server::new(engine, settings);
    // The server uses four threads, or one for each processor, for slow work. A thread that has finished is not
    // immediately free for the next task, so there are twice as many.
    let threads = 2 * std::thread::available_parallelism().map_or(1, std::num::NonZero::get).max(4);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(threads)
        .enable_all()
        .build()
        .map_err(sentence)?;
    runtime.block_on(serve(server.clone(), &config, &name, out))?;
    if let Some(path) = &config.warm {
        save(path, server.engine().grammars())?;
    }
    Ok(Verdict::Yes)
}

async fn serve(server: Server, config: &Config, name: &str, out: &mut dyn Write) -> Result<(), Failure> {
    let host = config.host.as_deref().unwrap_or("127.0.0.1");
    let port = config.port.unwrap_or(8000);
    let listener = tokio::net::TcpListener::bind((host, port)).await;
    let listener = listener
        .map_err(|error| Failure::sentence(format!("cannot listen at {host}, port {port}: {error}")))?;
    let address = listener.local_addr().map_err(sentence)?;
    if is_open(address.ip(), config) {
        // This is no reason not to start: the network may be private.
        let _ = writeln!(
            io::stderr(),
            "warning: everybody who reaches {host} can use the server; give a key with --api-key-file, or listen at 127.0.0.1"
        );
    }
    writeln!(out, "serving {name} at http://{address}")?;
    out.flush()?;
    server.serve(listener, stopped()).await.map_err(sentence)
}

/// Whether other machines can use the server without a key.
fn is_open(address: std::net::IpAddr, config: &Config) -> bool {
    !address.is_loopback() && config.api_key.is_empty() && config.api_key_file.is_none()
}

/// Is ready when the program is asked to stop.
async fn stopped() {
    // If there is no handler, a signal ends the program.
    let interrupt = async {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    #[cfg(unix)]
    let terminate = async {
        match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
            Ok(mut signal) => _ = signal.recv().await,
            Err(_) => std::future::pending::<()>().await,
        }
    };
    #[cfg(not(unix))]
    let terminate = std::future::pending::<()>();
    tokio::select! {
        () = interrupt => {}
        () = terminate => {}
    }
}

fn settings(config: &Config) -> Result<Settings, Failure> {
    let mut settings = Settings::default();
    settings.max_body = config.max_body.map_or(settings.max_body, |size| size.0);
    settings.request_timeout = seconds(config.request_timeout, settings.request_timeout);
    settings.api_keys.clone_from(&config.api_key);
    if let Some(path) = &config.api_key_file {
        let text = read_text(path)?;
        settings
            .api_keys
            .extend(text.lines().map(|line| line.trim().to_owned()).filter(|key| !key.is_empty()));
        if settings.api_keys.is_empty() {
            return Err(Failure::sentence(format!("{} has no key in it", path.display())));
        }
    }
    if settings.api_keys.iter().any(String::is_empty) {
        return Err(Failure::sentence("an API key is empty, which would let everyone in"));
    }
    settings.cors_origins.clone_from(&config.cors_origin);
    // Host names are checked if they were listed, or if only this machine can reach the server: then few names are
    // possible.
    if is_local(config.host.as_deref().unwrap_or("127.0.0.1")) || !config.allowed_host.is_empty() {
        settings.hosts = Some(config.allowed_host.clone());
    }
    settings.response_bytes = config.response_bytes.map_or(settings.response_bytes, |size| size.0);
    settings.finish = config.finish.map_or(settings.finish, Into::into);
    if let Some(path) = &config.pcfg {
        let text = read_text(path)?;
        let source = Source::new(&file_name(path), &text, Constraint::pcfg(&text));
        // An error at the start is better than an error in the first answer.
        source.constraint.grammar(&source.options, None).map_err(|error| source.failure(&error))?;
        settings.pcfg = Some(text);
    }
    let limits = &mut settings.options.limits;
    limits.mask_steps = config.mask_steps.map_or(limits.mask_steps, std::num::NonZero::get);
    let whitespace = &mut settings.options.json_schema.whitespace;
    match (&config.constrained_json_whitespace_pattern, config.constrained_json_disable_any_whitespace) {
        (Some(_), true) => {
            let sentence = "constrained-json-whitespace-pattern and constrained-json-disable-any-whitespace exclude each other";
            return Err(Failure::sentence(sentence));
        }
        (Some(pattern), false) => *whitespace = Whitespace::Pattern(pattern.clone()),
        (None, true) => *whitespace = Whitespace::Compact,
        // llguidance has its own fixed white space, and would refuse every schema with this setting.
        (None, false) if config.grammar_backend == Some(Backend::Llguidance) => {
            *whitespace = Whitespace::default();
        }
        (None, false) => {}
    }
    // An invalid pattern would make every request fail.
    let options =
        maskwright::Options { json_schema: settings.options.json_schema.clone(), ..Default::default() };
    Constraint::json_schema(r#"{"type": "array"}"#)
        .grammar(&options, None)
        .map_err(|error| Failure::sentence(format!("constrained-json-whitespace-pattern: {error}")))?;
    Ok(settings)
}

/// Whether only this machine can reach an address.
fn is_local(host: &str) -> bool {
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn compiling(config: &Config) -> Compiling {
    let settings = Compiling::default();
    Compiling {
        workers: config.compile_threads.map_or(settings.workers, std::num::NonZero::get),
        budget: config.cache_bytes.map_or(settings.budget, |size| size.0),
        timeout: seconds(config.compile_timeout, settings.timeout),
        when_slow: Some(make_room),
        // Meanwhile the model reads the prompt, and leaves a processor free.
        prepare: Duration::from_millis(config.prepare.unwrap_or(5)),
        ..settings
    }
}

/// Lowers the priority of this thread, so that a constraint that takes long to compile does not slow down answers.
fn make_room() {
    // On other systems this would affect the whole program. A failure is ignored.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::setpriority_process(None, LOW_PRIORITY);
}

/// About a tenth of the processor time of a normal thread if all are busy: enough to compile within the time limit.
#[cfg(target_os = "linux")]
const LOW_PRIORITY: i32 = 10;

fn scheduling(config: &Config) -> Options {
    let options = Options::default();
    Options {
        max_batch: config.max_batch.map_or(options.max_batch, std::num::NonZero::get),
        max_queue: config.queue.unwrap_or(options.max_queue),
        jump_forward: !config.no_jump_forward,
        ..options
    }
}

fn backend(config: &Config, loaded: &Loaded) -> Result<Arc<dyn Engines>, Failure> {
    let vocabulary = loaded.tokenizer.vocabulary().clone();
    match config.grammar_backend.unwrap_or(Backend::Maskwright) {
        Backend::Maskwright => Ok(Arc::new(Compiler::new(vocabulary))),
        #[cfg(feature = "llguidance")]
        Backend::Llguidance => {
            Ok(Arc::new(maskwright::backend::Llguidance::new(vocabulary).map_err(sentence)?))
        }
        #[cfg(not(feature = "llguidance"))]
        Backend::Llguidance => Err(Failure::sentence(
            "this program was built without llguidance; build it with `cargo build --features llguidance`",
        )),
    }
}

/// Returns a format by name, or reads it from a file.
fn tool_format(name: &str) -> Result<ModelFormat, Failure> {
    if ModelFormat::names().any(|known| known == name) || !Path::new(name).exists() {
        return ModelFormat::named(name).map_err(sentence);
    }
    let text = read_text(Path::new(name))?;
    ModelFormat::parse(&text).map_err(|error| Failure::sentence(format!("{name}: {error}")))
}

/// Loads the constraints of a file, if it exists. A file of another program version or model is ignored with a warning.
fn warm(path: &Path, client: &Client) -> Result<(), Failure> {
    let file = match fs::read(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Failure::sentence(format!("cannot read {}: {error}", path.display()))),
    };
    match client.load(&file) {
        Ok(warm) => {
            if let Some((_, error)) = warm.refused.first() {
                let count = warm.refused.len();
                let _ = writeln!(
                    io::stderr(),
                    "warning: {}: {count} constraints were refused, the first because: {error}",
                    path.display()
                );
            }
            Ok(())
        }
        // The file may be needed for something else, and would be overwritten.
        Err(LoadError::Open(maskwright::service::OpenError::Foreign)) => Err(Failure::sentence(format!(
            "{} is not a file with compiled constraints; name another one",
            path.display()
        ))),
        Err(error) => {
            let _ = writeln!(io::stderr(), "warning: {}: {error}", path.display());
            Ok(())
        }
    }
}

/// Writes a new file and renames it, so that the old one survives a crash.
fn save(path: &Path, client: &Client) -> Result<(), Failure> {
    let cannot = |error: io::Error| Failure::sentence(format!("cannot write {}: {error}", path.display()));
    let mut content = Vec::new();
    client.save(&mut content).map_err(cannot)?;
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    fs::write(&beside, &content).map_err(cannot)?;
    fs::rename(&beside, path).map_err(cannot)
}

fn name_of(model: &Path) -> String {
    model.file_stem().map_or_else(|| "model".into(), |stem| stem.to_string_lossy().into_owned())
}

/// Starts the log on standard error, with color on a terminal.
fn start_log(form: Log) {
    let has_color = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let lines = tracing_subscriber::fmt().with_writer(io::stderr).with_ansi(has_color).with_target(false);
    // There is no other logger, so this cannot fail.
    match form {
        Log::Text => lines.init(),
        Log::Json => lines.json().init(),
        Log::Off => {}
    }
}

fn sentence(error: impl std::fmt::Display) -> Failure {
    Failure::sentence(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_is_what_the_backend_can_do() {
        let whitespace =
            |config: &Config| settings(config).expect("it is right").options.json_schema.whitespace;
        assert_eq!(whitespace(&Config::default()), Whitespace::Tidy);
        let other = Config { grammar_backend: Some(Backend::Llguidance), ..Config::default() };
        assert_eq!(whitespace(&other), maskwright::Options::default().json_schema.whitespace);
        let compact = Config { constrained_json_disable_any_whitespace: true, ..other };
        assert_eq!(whitespace(&compact), Whitespace::Compact);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_slow_compile_makes_room_for_others_and_nobody_else_does() {
        let priority = || rustix::process::getpriority_process(None).expect("it is known");
        let before = priority();
        let slow = std::thread::spawn(move || {
            make_room();
            priority()
        });
        assert_eq!(slow.join().expect("it ends"), LOW_PRIORITY);
        assert_eq!(priority(), before, "it is the priority of one thread");
        assert!(compiling(&Config::default()).when_slow.is_some());
    }

    #[test]
    fn a_wrong_pattern_fails_at_the_start() {
        let config = Config { constrained_json_whitespace_pattern: Some("[ ".into()), ..Config::default() };
        let Err(Failure::Sentence(error)) = settings(&config) else { panic!("it is refused") };
        assert!(error.starts_with("constrained-json-whitespace-pattern: "), "{error}");
    }

    #[test]
    fn a_server_for_everybody_without_a_key_is_worth_a_warning() {
        let open = |address: &str, keys: &[&str]| {
            let api_key = keys.iter().map(|&key| key.to_owned()).collect();
            is_open(address.parse().expect("an address"), &Config { api_key, ..Config::default() })
        };
        assert!(open("0.0.0.0", &[]) && open("::", &[]) && open("192.168.1.7", &[]));
        assert!(!open("127.0.0.1", &[]) && !open("::1", &[]) && !open("0.0.0.0", &["secret"]));
    }

    #[test]
    fn names_are_asked_for_where_nobody_else_comes() {
        let hosts = |host: Option<&str>, allowed: &[&str]| {
            let allowed_host = allowed.iter().map(|&name| name.to_owned()).collect();
            let config = Config { host: host.map(str::to_owned), allowed_host, ..Config::default() };
            settings(&config).expect("it is right").hosts
        };
        assert_eq!(hosts(None, &[]), Some(Vec::new()));
        assert_eq!(hosts(Some("::1"), &["a.example"]), Some(vec!["a.example".to_owned()]));
        assert_eq!(hosts(Some("0.0.0.0"), &[]), None);
        assert_eq!(hosts(Some("0.0.0.0"), &["a.example"]), Some(vec!["a.example".to_owned()]));
    }
}
