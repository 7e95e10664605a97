//! A progress bar on stderr, or a line every few seconds if stderr is not a terminal.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

pub struct Progress {
    total: usize,
    done: usize,
    begin: Instant,
    shown: Option<Instant>,
    terminal: bool,
}

const WIDTH: usize = 30;

impl Progress {
    pub fn new(total: usize) -> Progress {
        Progress {
            total,
            done: 0,
            begin: Instant::now(),
            shown: None,
            terminal: std::io::stderr().is_terminal(),
        }
    }

    /// Counts one piece of work and shows `label` next to the bar.
    pub fn step(&mut self, label: &str) {
        self.done += 1;
        let pause = if self.terminal { Duration::from_millis(100) } else { Duration::from_secs(5) };
        let last = self.done == self.total;
        if last || self.shown.is_none_or(|shown| shown.elapsed() >= pause) {
            self.shown = Some(Instant::now());
            self.show(label);
        }
    }

    fn show(&self, label: &str) {
        let share = self.done as f64 / self.total.max(1) as f64;
        let spent = self.begin.elapsed().as_secs_f64();
        let left = if share > 0.0 { spent / share - spent } else { 0.0 };
        let count = format!("{}/{}", self.done, self.total);
        let clock = format!("{} left", seconds(left));
        let mut stderr = std::io::stderr().lock();
        // A failure to show progress is no reason to stop measuring.
        let _ = if self.terminal {
            let full = (share * WIDTH as f64) as usize;
            let bar = format!("{}{}", "█".repeat(full), "░".repeat(WIDTH - full));
            let label: String = label.chars().take(30).collect();
            write!(stderr, "\r\x1b[2K{bar} {count}  {clock}  {label}")
        } else {
            writeln!(stderr, "{count} ({:.0} %), {clock}", share * 100.0)
        };
        let _ = stderr.flush();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.terminal && self.shown.is_some() {
            let _ = writeln!(std::io::stderr());
        }
    }
}

fn seconds(seconds: f64) -> String {
    let seconds = seconds.round() as u64;
    if seconds < 60 { format!("{seconds} s") } else { format!("{}:{:02} min", seconds / 60, seconds % 60) }
}
