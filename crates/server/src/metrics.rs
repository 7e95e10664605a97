//! Numbers for Prometheus: those of the compile service, of the scheduler, and of the requests.

use std::{
    collections::BTreeMap,
    fmt::Write,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use maskwright_runtime::scheduler::Masses;

use crate::engine::Engine;

/// Requests that were answered.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    /// How many, and how long until their headers were sent, by route and status.
    requests: Mutex<BTreeMap<(String, u16), (u64, Duration)>>,
}

impl Metrics {
    /// Counts a request. Routes are those of the program, so there are few.
    pub(crate) fn request(&self, route: &str, status: u16, time: Duration) {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = requests.entry((route.to_owned(), status)).or_default();
        entry.0 += 1;
        entry.1 += time;
    }
}

/// The page in Prometheus' text format.
pub(crate) fn page(engine: &Engine, metrics: &Metrics) -> String {
    let mut page = engine.grammars().service().statistics().to_prometheus(&[]);
    let now = engine.statistics();
    let mut family = |name: &str, kind: &str, help: &str, value: &str| {
        // Writing to a string does not fail.
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

/// Where constraints fight the model.
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
    for ((route, status), (count, _)) in &*requests {
        let _ =
            writeln!(page, "maskwright_http_requests_total{{route=\"{route}\",status=\"{status}\"}} {count}");
    }
    let _ = writeln!(
        page,
        "# HELP maskwright_http_seconds_total Time until the head of the answer was sent.\n# TYPE maskwright_http_seconds_total counter"
    );
    for ((route, status), (_, time)) in &*requests {
        let _ = writeln!(
            page,
            "maskwright_http_seconds_total{{route=\"{route}\",status=\"{status}\"}} {:.6}",
            time.as_secs_f64()
        );
    }
}
