//! Collects exact times and summarizes them at the end.

use serde_json::{Value, json};

/// Durations in nanoseconds. Percentiles are computed from the full list, not from buckets.
#[derive(Clone, Default)]
pub struct Times(pub Vec<u64>);

/// The summary of a list of times, in microseconds.
#[derive(Clone, Copy, Default)]
pub struct Summary {
    pub count: usize,
    pub avg: f64,
    pub p50: f64,
    pub p90: f64,
    pub p99: f64,
    pub p999: f64,
    pub max: f64,
}

impl Times {
    pub fn sorted(mut self) -> Sorted {
        self.0.sort_unstable();
        Sorted(self.0)
    }
}

/// Durations in ascending order.
#[derive(Clone)]
pub struct Sorted(Vec<u64>);

impl Sorted {
    /// Returns the value at `quantile` by nearest rank, in microseconds; zero for an empty list.
    pub fn quantile(&self, quantile: f64) -> f64 {
        if self.0.is_empty() {
            return 0.0;
        }
        let rank = (quantile * self.0.len() as f64).ceil() as usize;
        self.0[rank.clamp(1, self.0.len()) - 1] as f64 / 1e3
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn summary(&self) -> Summary {
        let count = self.0.len();
        let total: u128 = self.0.iter().map(|&nanos| u128::from(nanos)).sum();
        Summary {
            count,
            avg: if count == 0 { 0.0 } else { total as f64 / count as f64 / 1e3 },
            p50: self.quantile(0.5),
            p90: self.quantile(0.9),
            p99: self.quantile(0.99),
            p999: self.quantile(0.999),
            max: self.quantile(1.0),
        }
    }
}

impl Summary {
    pub fn to_json(self) -> Value {
        json!({
            "count": self.count,
            "avg": rounded(self.avg),
            "p50": rounded(self.p50),
            "p90": rounded(self.p90),
            "p99": rounded(self.p99),
            "p999": rounded(self.p999),
            "max": rounded(self.max),
        })
    }

    /// Returns the columns in the order in which they are printed.
    pub fn columns(self) -> [f64; 6] {
        [self.avg, self.p50, self.p90, self.p99, self.p999, self.max]
    }
}

/// Rounds to three digits after the point: a nanosecond, which is more precise than the clock.
pub fn rounded(number: f64) -> f64 {
    (number * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_nearest_rank() {
        let sorted = Times((1..=1000).rev().map(|micros| micros * 1000).collect()).sorted();
        let summary = sorted.summary();
        assert_eq!((summary.p50, summary.p90, summary.p99), (500.0, 900.0, 990.0));
        assert_eq!((summary.p999, summary.max, summary.avg), (999.0, 1000.0, 500.5));
    }

    #[test]
    fn nothing_is_zero() {
        assert_eq!(Times::default().sorted().summary().max, 0.0);
    }
}
