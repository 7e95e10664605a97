//! Formats the numbers as a table: a row for each figure, a column for each engine, and the ratio of each peer to ours.

use std::fmt::Write;

use crate::figures::Figures;
use crate::stats::Summary;

pub struct Column {
    pub name: String,
    pub figures: Figures,
}

const LABEL: usize = 24;
const WIDTH: usize = 13;
const RATIO: usize = 9;

/// Writes the table of one population; `base` is the index of our engine's column.
pub fn print_population(out: &mut String, title: &str, columns: &[Column], base: usize) {
    let _ = write!(out, "\n{title}\n{:LABEL$}", "");
    for (place, column) in columns.iter().enumerate() {
        let _ = write!(out, "{:>WIDTH$}", column.name);
        if place != base {
            let _ = write!(out, "{:>RATIO$}", "× ours");
        }
    }
    out.push('\n');
    let table = Table { columns, base };
    table.counts(out);
    table.times(out, "mask µs", |figures| Some(figures.mask));
    table.times(out, "accept µs", |figures| Some(figures.accept));
    table.row(out, "mask + accept µs avg", |figures| Some(figures.step_avg), number);
    table.times(out, "first mask µs", |figures| Some(figures.first_mask));
    table.row(out, "compile alone µs p50", |figures| Some(figures.compile.p50), number);
    if columns.iter().any(|column| column.figures.warm.is_some()) {
        table.times(out, "warm mask µs", |figures| figures.warm.map(|warm| warm.0));
        table.times(out, "warm accept µs", |figures| figures.warm.map(|warm| warm.1));
    }
    table.row(out, "bytes held p50", |figures| Some(figures.bytes.p50), size);
    table.row(out, "bytes held p99", |figures| Some(figures.bytes.p99), size);
}

/// A count with its label.
type Count = (&'static str, fn(&Figures) -> usize);

struct Table<'a> {
    columns: &'a [Column],
    base: usize,
}

impl Table<'_> {
    fn counts(&self, out: &mut String) {
        let rows: [Count; 5] = [
            ("schemas", |figures| figures.schemas),
            ("right", |figures| figures.right),
            ("refused", |figures| figures.refused),
            ("valid rejected", |figures| figures.valid_rejected),
            ("invalid accepted", |figures| figures.invalid_accepted),
        ];
        for (label, count) in rows {
            let _ = write!(out, "{label:LABEL$}");
            for (place, column) in self.columns.iter().enumerate() {
                let _ = write!(out, "{:>WIDTH$}", count(&column.figures));
                if place != self.base {
                    let _ = write!(out, "{:RATIO$}", "");
                }
            }
            out.push('\n');
        }
    }

    fn times(&self, out: &mut String, label: &str, of: fn(&Figures) -> Option<Summary>) {
        for (index, name) in ["avg", "p50", "p90", "p99", "p99.9", "max"].into_iter().enumerate() {
            let row = format!("{label} {name}");
            self.row(out, &row, |figures| of(figures).map(|summary| summary.columns()[index]), number);
        }
    }

    fn row(
        &self,
        out: &mut String,
        label: &str,
        of: impl Fn(&Figures) -> Option<f64>,
        show: fn(f64) -> String,
    ) {
        let ours = of(&self.columns[self.base].figures).unwrap_or(0.0);
        let _ = write!(out, "{label:LABEL$}");
        for (place, column) in self.columns.iter().enumerate() {
            let value = of(&column.figures);
            let _ = write!(out, "{:>WIDTH$}", value.map_or_else(|| "–".into(), show));
            if place != self.base {
                let ratio = value.filter(|_| ours > 0.0).map(|value| number(value / ours));
                let _ = write!(out, "{:>RATIO$}", ratio.unwrap_or_default());
            }
        }
        out.push('\n');
    }
}

/// Formats a number with three significant digits and thousands separators.
pub fn number(value: f64) -> String {
    if value == 0.0 {
        return "0".into();
    }
    if value < 100.0 {
        let digits = (2 - value.log10().floor() as i32).clamp(0, 3) as usize;
        return format!("{value:.digits$}");
    }
    let plain = format!("{value:.0}");
    let mut grouped = String::new();
    for (place, digit) in plain.chars().enumerate() {
        if place > 0 && (plain.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Formats bytes with a suitable unit.
pub fn size(bytes: f64) -> String {
    match bytes {
        bytes if bytes < 1e3 => format!("{bytes:.0} B"),
        bytes if bytes < 1e6 => format!("{} KB", number(bytes / 1e3)),
        bytes if bytes < 1e9 => format!("{} MB", number(bytes / 1e6)),
        bytes => format!("{} GB", number(bytes / 1e9)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let shown: Vec<String> = [0.0, 0.0432, 0.5, 5.678, 56.78, 567.8, 1_234_567.0].map(number).into();
        assert_eq!(shown, ["0", "0.043", "0.500", "5.68", "56.8", "568", "1,234,567"]);
        assert_eq!(size(123_456.0), "123 KB");
    }
}
