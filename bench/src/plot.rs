//! Draws tail curves as an SVG picture: for each engine, how slow the slowest 1 in 2, 10, 100, 1,000 and 10,000 are.
//!
//! Both axes are logarithmic: from left to right each mark is a ten times rarer event, from bottom to top each line is
//! ten times slower. A curve ends where the sample is too small for rarer events.

use std::fmt::Write;

use crate::stats::Sorted;

/// The times of one engine: mask, accept, first mask.
pub struct Curve {
    pub name: String,
    pub panels: [Sorted; 3],
}

const TITLES: [&str; 3] = ["mask of one token", "accept one token", "schema text to first mask"];
const MARKS: [(&str, f64); 5] = [("50", 0.5), ("90", 0.9), ("99", 0.99), ("99.9", 0.999), ("99.99", 0.9999)];
/// Distinguishable also for color-blind people; the first is ours.
const COLORS: [&str; 6] = ["#0b6e4f", "#d1495b", "#2f6fb5", "#b8860b", "#7a4fa3", "#555555"];
const WIDTH: f64 = 1200.0;
const HEIGHT: f64 = 470.0;
const TOP: f64 = 104.0;
const BOTTOM: f64 = 400.0;
const LEFT: f64 = 76.0;
const PANEL: f64 = 312.0;
const GAP: f64 = 70.0;

/// Draws the curves with a caption below the title.
pub fn tails(curves: &[Curve], caption: &str) -> String {
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{HEIGHT}\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         font-family=\"Helvetica, Arial, sans-serif\">\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
    );
    text(
        &mut svg,
        LEFT,
        32.0,
        20.0,
        "start",
        "#111",
        "font-weight=\"bold\"",
        "Latency tails (lower is better)",
    );
    text(&mut svg, LEFT, 53.0, 12.5, "start", "#555", "", caption);
    legend(&mut svg, curves);
    for (place, title) in TITLES.into_iter().enumerate() {
        let left = LEFT + place as f64 * (PANEL + GAP);
        let sorted: Vec<&Sorted> = curves.iter().map(|curve| &curve.panels[place]).collect();
        let frame = Frame::around(left, &sorted);
        frame.axes(&mut svg, title);
        for (index, sorted) in sorted.iter().enumerate() {
            frame.curve(&mut svg, sorted, COLORS[index % COLORS.len()]);
        }
    }
    text(
        &mut svg,
        WIDTH / 2.0,
        HEIGHT - 16.0,
        13.0,
        "middle",
        "#333",
        "",
        "percentile (log scale: from 90 on, each mark is ten times rarer)",
    );
    svg.push_str("</svg>\n");
    svg
}

/// A panel and its scales; `low` and `high` are powers of ten, in microseconds.
struct Frame {
    left: f64,
    low: f64,
    high: f64,
}

impl Frame {
    fn around(left: f64, sorted: &[&Sorted]) -> Frame {
        let drawn = sorted.iter().filter(|sorted| sorted.len() > 0);
        let (mut low, mut high) = (f64::MAX, f64::MIN);
        for sorted in drawn {
            low = low.min(log(sorted.quantile(0.5)));
            high = high.max(log(sorted.quantile(last_quantile(sorted))));
        }
        if low > high {
            (low, high) = (0.0, 1.0);
        }
        let (low, high) = (low.floor(), high.ceil());
        Frame { left, low, high: if high > low { high } else { low + 1.0 } }
    }

    fn x(&self, quantile: f64) -> f64 {
        let (first, last) = (rarity(MARKS[0].1), rarity(MARKS[MARKS.len() - 1].1));
        self.left + (rarity(quantile) - first) / (last - first) * PANEL
    }

    fn y(&self, micros: f64) -> f64 {
        BOTTOM - (log(micros) - self.low) / (self.high - self.low) * (BOTTOM - TOP)
    }

    fn axes(&self, svg: &mut String, title: &str) {
        text(svg, self.left, TOP - 12.0, 14.0, "start", "#111", "font-weight=\"bold\"", title);
        for power in self.low as i32..=self.high as i32 {
            let y = self.y(10f64.powi(power));
            line(svg, (self.left, y), (self.left + PANEL, y), "#dddddd");
            text(svg, self.left - 8.0, y + 4.0, 12.0, "end", "#333", "", &duration(power));
        }
        for (label, quantile) in MARKS {
            let x = self.x(quantile);
            line(svg, (x, TOP), (x, BOTTOM), "#eeeeee");
            text(svg, x, BOTTOM + 19.0, 12.0, "middle", "#333", "", label);
        }
        line(svg, (self.left, BOTTOM), (self.left + PANEL, BOTTOM), "#888888");
    }

    fn curve(&self, svg: &mut String, sorted: &Sorted, color: &str) {
        if sorted.len() == 0 {
            return;
        }
        let (first, last) = (rarity(0.5), rarity(last_quantile(sorted)));
        let steps = 160;
        let mut points = String::new();
        for step in 0..=steps {
            let rarity = first + (last - first) * f64::from(step) / f64::from(steps);
            let quantile = 1.0 - 10f64.powf(-rarity);
            let _ = write!(points, "{:.1},{:.1} ", self.x(quantile), self.y(sorted.quantile(quantile)));
        }
        let _ = writeln!(
            svg,
            "<polyline fill=\"none\" stroke=\"{color}\" stroke-width=\"2.4\" stroke-linejoin=\"round\" points=\"{}\"/>",
            points.trim_end()
        );
        for (_, quantile) in MARKS.into_iter().filter(|(_, quantile)| rarity(*quantile) <= last + 1e-9) {
            let (x, y) = (self.x(quantile), self.y(sorted.quantile(quantile)));
            let _ = writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.4\" fill=\"{color}\"/>");
        }
    }
}

fn legend(svg: &mut String, curves: &[Curve]) {
    let mut x = WIDTH - 24.0;
    for (index, curve) in curves.iter().enumerate().rev() {
        let color = COLORS[index % COLORS.len()];
        text(svg, x, 32.0, 13.5, "end", "#111", "", &curve.name);
        x -= curve.name.len() as f64 * 7.4 + 12.0;
        let _ = writeln!(
            svg,
            "<rect x=\"{:.1}\" y=\"25\" width=\"18\" height=\"5\" rx=\"2\" fill=\"{color}\"/>",
            x - 12.0
        );
        x -= 36.0;
    }
}

/// Returns the quantile of the rarest event that a sample can show, at most the last mark.
fn last_quantile(sorted: &Sorted) -> f64 {
    (1.0 - 1.0 / sorted.len() as f64).clamp(0.5, MARKS[MARKS.len() - 1].1)
}

fn rarity(quantile: f64) -> f64 {
    -(1.0 - quantile).log10()
}

/// Times below a nanosecond cannot be measured.
fn log(micros: f64) -> f64 {
    micros.max(0.001).log10()
}

fn duration(power: i32) -> String {
    match power {
        ..=-1 => format!("{} ns", 10u64.pow((power + 3).max(0) as u32)),
        0..=2 => format!("{} µs", 10u64.pow(power as u32)),
        3..=5 => format!("{} ms", 10u64.pow(power as u32 - 3)),
        _ => format!("{} s", 10u64.pow(power as u32 - 6)),
    }
}

fn line(svg: &mut String, from: (f64, f64), to: (f64, f64), color: &str) {
    let _ = writeln!(
        svg,
        "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"{color}\"/>",
        from.0, from.1, to.0, to.1
    );
}

#[expect(
    clippy::too_many_arguments,
    reason = "the attributes of one SVG element, in the order of the element"
)]
fn text(svg: &mut String, x: f64, y: f64, size: f64, anchor: &str, fill: &str, more: &str, content: &str) {
    let content = content.replace('&', "&amp;").replace('<', "&lt;");
    let _ = writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" text-anchor=\"{anchor}\" fill=\"{fill}\" {more}>{content}</text>"
    );
}
