//! Metrics for Prometheus: those of the compile service, of the scheduler, of requests and of answers.
//!
//! Durations are histograms. Those of masks and compilations are in the compile service; those of requests and answers
//! are here.

use std::{
    collections::BTreeMap,
    fmt::Write,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use maskwright::statistics::Histogram;
use maskwright_runtime::scheduler::Masses;

use crate::engine::Engine;

/// The bounds of all histograms here, in milliseconds.
const BOUNDS: [u64; 18] = [
    1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 60_000, 120_000, 300_000,
    600_000,
];

/// The counts and durations of requests and answers.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    /// The number of requests, by route and status.
    requests: Mutex<BTreeMap<(String, u16), u64>>,
    /// The time until the last byte was sent, by route.
    request_times: Times,
    /// The time from a request to the first token of an answer, by kind of constraint.
    first_tokens: Times,
    /// The average time between two tokens of an answer, by kind of constraint.
    tokens: Times,
    /// The time until the model started an answer, by kind of constraint.
    queue: Times,
}

/// Histograms by the value of a label with few values.
#[derive(Debug, Default)]
struct Times(Mutex<BTreeMap<String, Histogram>>);

impl Metrics {
    /// Counts a request. The route is one of the program's, not a path.
    pub(crate) fn request(&self, route: &str, status: u16) {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        *requests.entry((route.to_owned(), status)).or_default() += 1;
    }

    /// Records that the last byte of a response was sent, or that the client has disconnected.
    pub(crate) fn request_ended(&self, route: &str, time: Duration) {
        self.request_times.add(route, time);
    }

    /// Records the time of the first token of an answer.
    pub(crate) fn first_token(&self, constraint: &str, time: Duration) {
        self.first_tokens.add(constraint, time);
    }

    /// Records a finished answer: how long it waited for the model, and how long each token after the first ones took.
    pub(crate) fn answer(&self, constraint: &str, queued: Duration, token: Option<Duration>) {
        self.queue.add(constraint, queued);
        if let Some(token) = token {
            self.tokens.add(constraint, token);
        }
    }
}

impl Times {
    fn add(&self, label: &str, time: Duration) {
        let mut times = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let empty = || Histogram::with_bounds(BOUNDS.map(Duration::from_millis));
        times.entry(label.to_owned()).or_insert_with(empty).add(time);
    }

    fn write(&self, name: &str, help: &str, label: &str, page: &mut String) {
        let _ = writeln!(page, "# HELP {name} {help}\n# TYPE {name} histogram");
        for (value, times) in &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            page.push_str(&times.to_prometheus(name, &[(label, value)]));
        }
    }
}

/// Returns the metrics in Prometheus' text format.
pub(crate) fn page(engine: &Engine, metrics: &Metrics) -> String {
    let mut page = engine.grammars().service().statistics().to_prometheus(&[]);
    let now = engine.statistics();
    let mut family = |name: &str, kind: &str, help: &str, value: &str| {
        // Writing to a string cannot fail.
        let _ = writeln!(
            page,
            "# HELP maskwright_{name} {help}\n# TYPE maskwright_{name} {kind}\nmaskwright_{name} {value}"
        );
    };
    family("requests_waiting", "gauge", "Requests that wait for the model.", &now.waiting.to_string());
    family("batch_size", "gauge", "Answers that are being written.", &now.running.to_string());
    family("model_steps_total", "counter", "Steps of the model.", &now.steps.to_string());
    family("prompt_tokens_total", "counter", "Tokens of prompts, computed.", &now.prompt_tokens.to_string());
    family(
        "prompt_tokens_reused_total",
        "counter",
        "Tokens of prompts, reused.",
        &now.reused_tokens.to_string(),
    );
    family("answer_tokens_total", "counter", "Tokens of answers.", &now.answer_tokens.to_string());
    family(
        "answer_tokens_forced_total",
        "counter",
        "Tokens of answers that the constraint forced.",
        &now.forced_tokens.to_string(),
    );
    let seconds = |time: Duration| format!("{:.6}", time.as_secs_f64());
    family("model_seconds_total", "counter", "Time of the model.", &seconds(now.model));
    family("batch_mask_seconds_total", "counter", "Time spent on masks.", &seconds(now.mask));
    family(
        "mask_wait_seconds_total",
        "counter",
        "Time that the model's thread waited for masks.",
        &seconds(now.mask_wait),
    );
    family("sample_seconds_total", "counter", "Time spent on choosing tokens.", &seconds(now.sample));
    family("kv_cache_bytes", "gauge", "Bytes of keys and values.", &now.cache_bytes.to_string());
    masses(&now.masses, &mut page);
    requests(metrics, &mut page);
    page
}

/// Writes the metrics for how strongly constraints contradict the model.
fn masses(masses: &Masses, page: &mut String) {
    let _ = writeln!(
        page,
        "# HELP maskwright_mask_mass_nats Minus the logarithm of the model's probability of all tokens that a mask allowed, where that was asked for.\n\
         # TYPE maskwright_mask_mass_nats histogram"
    );
    let mut count = 0;
    let bounds = Masses::BOUNDS.iter().map(f32::to_string).chain(["+Inf".to_owned()]);
    for (bound, more) in bounds.zip(masses.counts) {
        count += more;
        let _ = writeln!(page, "maskwright_mask_mass_nats_bucket{{le=\"{bound}\"}} {count}");
    }
    let (whole, rest) = (masses.micros / 1_000_000, masses.micros % 1_000_000);
    let _ = writeln!(
        page,
        "maskwright_mask_mass_nats_sum {whole}.{rest:06}\nmaskwright_mask_mass_nats_count {count}"
    );
}

fn requests(metrics: &Metrics, page: &mut String) {
    let requests = metrics.requests.lock().unwrap_or_else(PoisonError::into_inner);
    let _ = writeln!(
        page,
        "# HELP maskwright_http_requests_total Requests by route and status.\n# TYPE maskwright_http_requests_total counter"
    );
    for ((route, status), count) in &*requests {
        let _ =
            writeln!(page, "maskwright_http_requests_total{{route=\"{route}\",status=\"{status}\"}} {count}");
    }
    let help = "Time of a request, until the last byte of its answer was sent.";
    metrics.request_times.write("maskwright_http_request_seconds", help, "route", page);
    let help = "Time from a request to the first token of an answer, by kind of constraint.";
    metrics.first_tokens.write("maskwright_first_token_seconds", help, "constraint", page);
    let help = "Time of a token after the first one, the average of an answer, by kind of constraint.";
    metrics.tokens.write("maskwright_token_seconds", help, "constraint", page);
    let help = "Time until the model took up an answer, by kind of constraint.";
    metrics.queue.write("maskwright_queue_seconds", help, "constraint", page);
}
