//! Exact draws on a scheduler: tries as answers to one prompt, round by round.
//!
//! ```text
//!  Tries::next ─▶ a request whose answers are tries ─▶ scheduler ─▶ events ─▶ Tries::take ─▶ wait | next round | done
//! ```
//! The tries of a round are rows of the batch and share the keys and values of the prompt, which the next round reuses.
//! The first round has as many tries as answers are needed, and each further round has twice as many as the previous
//! one. Which tries count is decided by their order and not by which finish first: short texts finish first, and would
//! be preferred. What is learned takes effect in the next round, so that a seed gives the same answer regardless of
//! other requests.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use maskwright::exact::{Known, MAX_TRIES, Mode, Prefixes};

use super::{Event, Failure, Reason, Request, Round, SubmitError, What};
use crate::guide::Guide;

/// Exact draws for one request; see the [module](self).
pub struct Tries {
    /// The request of every round, without its guide.
    request: Request,
    guide: Box<dyn Guide>,
    prefixes: Arc<Mutex<Prefixes>>,
    mode: Mode,
    /// The maximum number of tries, and the number so far.
    most: usize,
    used: usize,
    /// Whether no try can succeed, because no valid text has a mass that a number can represent.
    is_hopeless: bool,
    /// The maximum number of tries in a round, and the number in the next round.
    most_rows: usize,
    rows: usize,
    running: Vec<Row>,
    found: Vec<(Vec<What>, bool)>,
    /// The number of tokens that were written in all tries.
    tokens: usize,
    known: Known,
}

/// A try.
#[derive(Default)]
struct Row {
    events: Vec<What>,
    /// Whether it has succeeded, once that is known.
    is_good: Option<bool>,
}

/// The next action.
#[derive(Debug)]
pub enum Turn {
    /// Wait for more events.
    Wait,
    /// Submit this request for another round. Further events of the last request must be ignored.
    Next(Request),
    /// All events of all answers. Further events of the last request must be ignored.
    Done(Vec<Event>),
    /// The draw has failed.
    Failed(Failure),
}

/// A report about the draw.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// Whether each answer is an exact draw. Otherwise all tries failed, and the answer was written under the mask; it
    /// is still valid.
    pub exact: Vec<bool>,
    /// The number of tries.
    pub tries: usize,
    /// The number of tokens that were written in all tries together. Tries that were still running when the last answer
    /// was found count as far as they got, so a seed does not determine this number.
    pub tokens: usize,
    /// What is known about the model's mass, including what unfinished tries had seen.
    pub known: Known,
}

impl fmt::Debug for Tries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tries")
            .field("request", &self.request)
            .field("used", &self.used)
            .finish_non_exhaustive()
    }
}

impl Tries {
    /// Draws the answers to a request, with at most `tries` tries for all answers together, of which at most
    /// `at_a_time` run at the same time (or as many as answers are needed). The guide must end within the request's
    /// tokens (see [`set_budget`](crate::MatcherGuide::set_budget)).
    ///
    /// # Errors
    ///
    /// Fails if something in the request would make the draw inexact, or the number of tries is out of range.
    pub fn new(mut request: Request, tries: usize, at_a_time: usize) -> Result<Self, SubmitError> {
        let invalid = |field: &'static str, problem: &str| {
            Err(SubmitError::Invalid { field, problem: problem.to_owned() })
        };
        if tries == 0 || tries > MAX_TRIES {
            let problem = format!("tries is {tries}, but must be between 1 and {MAX_TRIES}");
            return Err(SubmitError::Invalid { field: "tries", problem });
        }
        if tries < request.answers {
            let problem = format!("tries is {tries}, but {} answers are wanted", request.answers);
            return Err(SubmitError::Invalid { field: "tries", problem });
        }
        let sampling = &request.sampling;
        if sampling.temperature == 0.0 {
            return invalid(
                "temperature",
                "temperature is 0, and nothing is drawn then; an exact draw needs more than 0",
            );
        }
        let cut = "an exact draw is from all tokens: what is cut off might be all that is valid";
        if sampling.top_k != 0 {
            return invalid("top_k", &format!("top_k is {}, but must be 0: {cut}", sampling.top_k));
        }
        if sampling.top_p < 1.0 {
            return invalid("top_p", &format!("top_p is {}, but must be 1: {cut}", sampling.top_p));
        }
        if sampling.min_p > 0.0 {
            return invalid("min_p", &format!("min_p is {}, but must be 0: {cut}", sampling.min_p));
        }
        if !request.stop.is_empty() || !request.stop_tokens.is_empty() {
            return invalid(
                "stop",
                "an exact draw is of whole texts, which the model ends; leave stop strings and stop tokens out",
            );
        }
        let Some(guide) = request.guide.take() else {
            return invalid("sampling", "an exact draw needs a constraint; without one every draw is exact");
        };
        let prefixes = Prefixes::new();
        let known = prefixes.known();
        let wanted = request.answers;
        Ok(Self {
            request,
            guide,
            prefixes: Arc::new(Mutex::new(prefixes)),
            mode: Mode::Try,
            most: tries,
            used: 0,
            is_hopeless: false,
            most_rows: at_a_time.max(wanted).max(1),
            rows: wanted.max(1),
            running: Vec::new(),
            found: Vec::new(),
            tokens: 0,
            known,
        })
    }

    /// Returns the request of the first round.
    pub fn first(&mut self) -> Request {
        self.round()
    }

    fn round(&mut self) -> Request {
        let missing = self.request.answers - self.found.len();
        let left = self.most - self.used;
        let rows = match self.mode {
            Mode::Try => self.rows.min(left).max(1),
            Mode::Masked => missing,
        };
        let round = Round { prefixes: self.prefixes.clone(), mode: self.mode, first: self.used as u64 };
        if self.mode == Mode::Try {
            self.used += rows;
            self.rows = (self.rows * 2).min(self.most_rows);
        }
        self.running = (0..rows).map(|_| Row::default()).collect();
        Request {
            prompt: self.request.prompt.clone(),
            sampling: self.request.sampling.clone(),
            guide: Some(self.guide.fork()),
            max_tokens: self.request.max_tokens,
            stop_tokens: Vec::new(),
            stop: Vec::new(),
            answers: rows,
            round: Some(round),
        }
    }

    /// Processes an event of the current round.
    pub fn take(&mut self, event: Event) -> Turn {
        let Some(row) = self.running.get_mut(event.answer) else { return Turn::Wait };
        match &event.what {
            What::More { tokens, .. } => self.tokens += tokens.len(),
            // A text that was cut off does not count.
            What::Finished { reason, .. } => {
                row.is_good = Some(*reason == Reason::Stop || self.mode == Mode::Masked);
            }
            // Every further try would end here, too.
            What::Failed(Failure::NoToken) if self.mode == Mode::Try => {
                row.is_good = Some(false);
                self.is_hopeless = true;
            }
            What::Failed(Failure::Rejected) => row.is_good = Some(false),
            What::Failed(failure) => return Turn::Failed(failure.clone()),
        }
        row.events.push(event.what);
        self.go_on()
    }

    fn go_on(&mut self) -> Turn {
        let wanted = self.request.answers;
        let decided = self.running.iter().take_while(|row| row.is_good.is_some()).count();
        let good = self.running[..decided].iter().filter(|row| row.is_good == Some(true)).count();
        let is_enough = self.found.len() + good >= wanted;
        if decided < self.running.len() && !is_enough {
            return Turn::Wait;
        }
        for row in self.running.drain(..).take(decided) {
            if row.is_good == Some(true) && self.found.len() < wanted {
                self.found.push((row.events, self.mode == Mode::Try));
            }
        }
        let mut prefixes = self.prefixes.lock().unwrap_or_else(PoisonError::into_inner);
        prefixes.learn();
        self.known = prefixes.known();
        drop(prefixes);
        if self.found.len() >= wanted {
            let events = (self.found.iter_mut().enumerate())
                .flat_map(|(answer, (events, _))| events.drain(..).map(move |what| Event { answer, what }));
            return Turn::Done(events.collect());
        }
        if self.used >= self.most || self.is_hopeless {
            self.mode = Mode::Masked;
        }
        Turn::Next(self.round())
    }

    /// Returns a report about the draw so far.
    pub fn report(&self) -> Report {
        Report {
            exact: self.found.iter().map(|(_, is_exact)| *is_exact).collect(),
            tries: self.used,
            tokens: self.tokens,
            known: self.known,
        }
    }
}
