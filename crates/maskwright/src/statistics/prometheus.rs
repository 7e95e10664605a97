//! Writes the statistics in the text format of Prometheus, version 0.0.4.
//!
//! ```text
//! # HELP maskwright_masks_total Masks that were filled.
//! # TYPE maskwright_masks_total counter
//! maskwright_masks_total 1234
//! ```
//! Every family begins with its two lines of explanation, followed by all its samples. The buckets of a histogram are
//! cumulative, and the last one, `le="+Inf"`, equals its count.

use core::fmt::{Display, Write};
use core::time::Duration;

use super::{Histogram, Statistics};

impl Statistics {
    /// Returns the statistics in Prometheus' text format, to be served as `text/plain; version=0.0.4`.
    ///
    /// `labels` are added to every sample, for instance `[("model", "llama")]`. Their names must be valid label names;
    /// their values are escaped and may be anything.
    pub fn to_prometheus(&self, labels: &[(&str, &str)]) -> String {
        let mut page = Page { text: String::new(), common: pairs(labels) };
        self.write_compiles(&mut page);
        self.write_cache(&mut page);
        self.write_matching(&mut page);
        page.text
    }

    fn write_compiles(&self, page: &mut Page) {
        page.family(
            "compile_requests_total",
            "counter",
            "Requests by kind and by the result of the cache lookup.",
        );
        for kind in &self.kinds {
            for (lookup, count) in kind.requests {
                let labels = [("kind", kind.kind.name()), ("cache", lookup.name())];
                page.sample("compile_requests_total", &labels, count);
            }
        }
        page.family("compiles_total", "counter", "Compiles by kind and result.");
        for kind in &self.kinds {
            for (outcome, count) in kind.compiles {
                let labels = [("kind", kind.kind.name()), ("result", outcome.name())];
                page.sample("compiles_total", &labels, count);
            }
        }
        page.family("compile_seconds", "histogram", "Time of a compile.");
        for kind in &self.kinds {
            page.histogram("maskwright_compile_seconds", &[("kind", kind.kind.name())], &kind.seconds);
        }
        page.family("compile_wait_seconds", "histogram", "Time that a compile waited for a worker.");
        page.histogram("maskwright_compile_wait_seconds", &[], &self.waits);
        page.family("compiled_states_total", "counter", "States of all constraints that were compiled.");
        for kind in &self.kinds {
            page.sample("compiled_states_total", &[("kind", kind.kind.name())], kind.states);
        }
        page.family(
            "compiled_bytes_total",
            "counter",
            "Bytes of all constraints, right after they were compiled.",
        );
        for kind in &self.kinds {
            page.sample("compiled_bytes_total", &[("kind", kind.kind.name())], kind.bytes);
        }
    }

    fn write_cache(&self, page: &mut Page) {
        let cache = &self.cache;
        page.single("cache_entries", "gauge", "Constraints in the cache.", cache.entries);
        page.single("cache_bytes", "gauge", "Bytes held by the constraints in the cache.", cache.bytes);
        page.single("shared_bytes", "gauge", "Bytes held by what constraints share.", cache.shared_bytes);
        page.single(
            "cache_budget_bytes",
            "gauge",
            "Bytes that the cache and what constraints share may hold together.",
            cache.budget,
        );
        page.single(
            "cache_evictions_total",
            "counter",
            "Constraints evicted to stay within the budget.",
            cache.evictions,
        );
        page.single(
            "shared_renewals_total",
            "counter",
            "How often the shared parts were discarded and started again.",
            cache.renewals,
        );
        page.family("upkeep_seconds_total", "counter", "Time spent on measuring and evicting.");
        page.sample("upkeep_seconds_total", &[], seconds(cache.upkeep));
        page.single("compiles_queued", "gauge", "Constraints that wait for a worker.", cache.queued);
        page.single("compiles_running", "gauge", "Compiles that are running.", cache.running);
    }

    fn write_matching(&self, page: &mut Page) {
        let matching = &self.matching;
        page.single("matchers_total", "counter", "Matchers that were started.", matching.matchers);
        page.single("masks_total", "counter", "Masks that were filled.", matching.masks);
        page.single(
            "masks_computed_total",
            "counter",
            "Masks that were computed because they were not cached.",
            matching.computed,
        );
        page.single("masks_prepared_total", "counter", "Masks that were computed ahead.", matching.prepared);
        page.single("tokens_total", "counter", "Tokens that were accepted.", matching.tokens);
        page.single("forced_tokens_total", "counter", "Tokens accepted without a mask.", matching.forced);
        page.family("mask_seconds", "histogram", "Time of a mask; one mask in 64 is timed.");
        page.histogram("maskwright_mask_seconds", &[], &matching.mask_seconds);
    }
}

impl Histogram {
    /// Returns the samples of a histogram in Prometheus' text format: cumulative buckets, the sum in seconds, and the
    /// count. Write the lines that explain the family before them, once for all labels.
    ///
    /// ```
    /// use std::time::Duration;
    /// use maskwright::statistics::Histogram;
    ///
    /// let mut waits = Histogram::with_bounds([Duration::from_millis(1)]);
    /// waits.add(Duration::from_millis(2));
    /// let page = "\
    /// wait_seconds_bucket{queue=\"a\",le=\"0.001\"} 0
    /// wait_seconds_bucket{queue=\"a\",le=\"+Inf\"} 1
    /// wait_seconds_sum{queue=\"a\"} 0.002
    /// wait_seconds_count{queue=\"a\"} 1
    /// ";
    /// assert_eq!(waits.to_prometheus("wait_seconds", &[("queue", "a")]), page);
    /// ```
    pub fn to_prometheus(&self, name: &str, labels: &[(&str, &str)]) -> String {
        let mut page = Page { text: String::new(), common: String::new() };
        page.histogram(name, labels, self);
        page.text
    }
}

struct Page {
    text: String,
    /// The labels of every sample, already formatted.
    common: String,
}

/// Writing to a string cannot fail, hence `let _` throughout.
impl Page {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.text, "# HELP maskwright_{name} {help}\n# TYPE maskwright_{name} {kind}");
    }

    fn single(&mut self, name: &str, kind: &str, help: &str, value: u64) {
        self.family(name, kind, help);
        self.sample(name, &[], value);
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        self.named(&format!("maskwright_{name}"), labels, value);
    }

    fn named(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        let own = pairs(labels);
        let comma = if own.is_empty() || self.common.is_empty() { "" } else { "," };
        let _ = match (self.common.len(), own.len()) {
            (0, 0) => writeln!(self.text, "{name} {value}"),
            _ => writeln!(self.text, "{name}{{{}{comma}{own}}} {value}", self.common),
        };
    }

    fn histogram(&mut self, name: &str, labels: &[(&str, &str)], histogram: &Histogram) {
        let mut so_far = 0;
        for (bound, count) in &histogram.buckets {
            so_far += count;
            let bound = seconds(*bound);
            self.named(&format!("{name}_bucket"), &[labels, &[("le", &*bound)]].concat(), so_far);
        }
        let all = histogram.count();
        self.named(&format!("{name}_bucket"), &[labels, &[("le", "+Inf")]].concat(), all);
        self.named(&format!("{name}_sum"), labels, seconds(histogram.sum));
        self.named(&format!("{name}_count"), labels, all);
    }
}

/// Formats labels. A backslash, a quote and a line break in a value are escaped.
fn pairs(labels: &[(&str, &str)]) -> String {
    let escape = |value: &str| value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let pair = |(name, value): &(&str, &str)| format!("{name}=\"{}\"", escape(value));
    labels.iter().map(pair).collect::<Vec<_>>().join(",")
}

/// Formats seconds as exact decimal digits without trailing zeros.
fn seconds(time: Duration) -> String {
    let digits = format!("{}.{:09}", time.as_secs(), time.subsec_nanos());
    digits.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::{Counters, Lookup, Outcome};
    use crate::{Kind, statistics::CacheStatistics};

    fn page(labels: &[(&str, &str)]) -> String {
        let counters = Counters::new();
        counters.request(Kind::Regex, Lookup::Joined);
        for nanos in [3_000, 4_000, 4_001, u64::MAX / 2] {
            counters.compile(Kind::Regex, Outcome::Compiled, Duration::from_nanos(nanos));
        }
        counters.waited(Duration::from_micros(5));
        let cache = CacheStatistics { bytes: 77, ..CacheStatistics::default() };
        Statistics { kinds: counters.kinds(), waits: counters.waits(), cache, matching: counters.matching() }
            .to_prometheus(labels)
    }

    #[test]
    fn samples_are_written_as_prometheus_reads_them() {
        let page = page(&[]);
        for line in [
            r#"maskwright_compile_requests_total{kind="regex",cache="joined"} 1"#,
            r#"maskwright_compile_seconds_bucket{kind="regex",le="0.000004"} 2"#,
            r#"maskwright_compile_seconds_bucket{kind="regex",le="0.000008"} 3"#,
            r#"maskwright_compile_seconds_bucket{kind="regex",le="+Inf"} 4"#,
            r#"maskwright_compile_seconds_count{kind="regex"} 4"#,
            r#"maskwright_compile_wait_seconds_bucket{le="0.000008"} 1"#,
            "maskwright_compile_wait_seconds_sum 0.000005",
            "maskwright_cache_bytes 77",
            "maskwright_mask_seconds_sum 0",
            "# TYPE maskwright_mask_seconds histogram",
        ] {
            assert!(page.lines().any(|found| found == line), "{line} is not in\n{page}");
        }
    }

    /// Each family is explained once, before its samples, and every line is a comment or a sample.
    #[test]
    fn every_sample_belongs_to_a_family() {
        let page = page(&[("model", "a \"b\"\\\n")]);
        assert!(page.ends_with('\n'));
        let mut families = Vec::new();
        for line in page.lines() {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, _) = rest.split_once(' ').expect("a name and a type");
                assert!(!families.contains(&name.to_owned()), "{name} is explained twice");
                families.push(name.to_owned());
            } else if !line.starts_with("# HELP ") {
                let (name, value) = line.rsplit_once(' ').expect("a sample and its value");
                assert!(value.parse::<f64>().is_ok(), "{line}");
                let name = name.split('{').next().unwrap_or_default();
                let family = families.last().expect("a family");
                let rest = name.strip_prefix(family.as_str()).expect("the family's name");
                assert!(["", "_bucket", "_sum", "_count"].contains(&rest), "{line}");
                assert!(line.contains(r#"{model="a \"b\"\\\n""#), "{line}");
            }
        }
    }
}
