//! Threads that process constraints while the model computes.
//!
//! ```text
//!  scheduler ── order: guide, token ──▶ line ──▶ a thread: accept, find what is forced ──▶ line ──▶ a thread: fill the mask
//!      ▲                                                              │                                          │
//!      └───────────────────── news: taken ◀───────────────────────────┘                                          │
//!      └───────────────────── news: filled, with the guide ◀─────────────────────────────────────────────────────┘
//! ```
//! Guides are sent to a thread and back, so nothing is shared. The model waits until tokens are accepted, but not for
//! masks, so masks come later in the queue. As long as the work is short, one thread is enough. A thread that spends
//! longer than [`UNAVAILABLE_AFTER`] on one order is not available for others: while an order waits in the queue,
//! another thread is started. Orders that are known to be slow come last, and only a few of them run at the same time,
//! so that they do not take all processors from the model.
//!
//! Each order has a [cancel token](CancelToken), which ends the work early. A guide that panics is dropped.

use std::{
    collections::VecDeque,
    num::NonZero,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc},
    thread::{JoinHandle, available_parallelism},
    time::{Duration, Instant},
};

use maskwright::{CancelToken, with_cancel};
use maskwright_vocab::TokenId;

use super::{Failure, search::Search};
use crate::guide::{Guide, GuideError};

/// A thread that spends longer than this on one order counts as unavailable.
const UNAVAILABLE_AFTER: Duration = Duration::from_millis(2);

/// Work for a guide: accept a token, accept forced tokens after it, fill the mask.
pub(super) struct Order {
    /// The id of the answer.
    pub(super) answer: u64,
    pub(super) guide: Box<dyn Guide>,
    /// The search for stop strings, if there are any.
    pub(super) search: Option<Box<Search>>,
    pub(super) words: Vec<u32>,
    /// The chosen token.
    pub(super) token: Option<TokenId>,
    /// The last tokens before it, if forced tokens are needed.
    pub(super) before: Option<Vec<TokenId>>,
    /// Tokens that end the answer if it is complete; they are not passed to the guide.
    pub(super) ends: Arc<[TokenId]>,
    /// Whether the answer continues until the end is chosen, even if nothing else can follow.
    pub(super) is_to_end: bool,
    /// How many tokens the answer may still grow by.
    pub(super) left: usize,
    pub(super) stop: Arc<CancelToken>,
    pub(super) pace: Pace,
}

/// Whether the guide of an answer was late the last time. If so, other answers do not wait for it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Pace {
    pub(super) takes_long: bool,
    pub(super) fills_long: bool,
}

impl Order {
    /// Whether tokens are accepted, which will be reported separately.
    pub(super) fn takes(&self) -> bool {
        self.token.is_some() || self.before.is_some()
    }

    /// Whether this kind of work took long the last time.
    fn is_slow(&self) -> bool {
        if self.takes() { self.pace.takes_long } else { self.pace.fills_long }
    }

    /// Returns its priority in the queue.
    fn rank(&self) -> u8 {
        if self.is_slow() { 2 } else { u8::from(!self.takes()) }
    }
}

/// The result of an order, or of its first half.
pub(super) struct News {
    pub(super) answer: u64,
    /// How long it took.
    pub(super) time: Duration,
    pub(super) what: Work,
}

/// The result of some work.
pub(super) enum Work {
    /// Tokens were accepted.
    Taken(Taken),
    /// The mask was filled, or failed. The order is then complete.
    Filled(Result<Filled, Failure>),
}

/// A mask, with the guide that filled it.
pub(super) struct Filled {
    pub(super) guide: Box<dyn Guide>,
    pub(super) search: Option<Box<Search>>,
    pub(super) words: Vec<u32>,
    /// The temperature that the guide requests.
    pub(super) temperature: Option<f32>,
}

/// The tokens that were accepted.
pub(super) struct Taken {
    /// Whether the chosen token was accepted.
    pub(super) chosen: bool,
    /// The forced tokens after it.
    pub(super) forced: Vec<TokenId>,
    /// The text that each of them adds, if there is a search for stop strings.
    pub(super) texts: Vec<String>,
    /// The text that was held back, if this is the end.
    pub(super) rest: String,
    /// Whether more can follow, or the failure. Unless it is [`End::Open`], the order is complete.
    pub(super) end: Result<End, Failure>,
}

/// Whether more tokens can follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// The mask decides what follows.
    Open,
    /// The constraint allows nothing more, or a stop string was found.
    Finished,
    /// A token came that ends the answer and is not part of it.
    Ended,
    /// The answer has reached its maximum number of tokens.
    Full,
}

/// The threads.
pub(super) struct Masks {
    shared: Arc<Shared>,
    outbox: mpsc::Sender<News>,
    news: mpsc::Receiver<News>,
    threads: Vec<JoinHandle<()>>,
    most: usize,
}

struct Shared {
    line: Mutex<Line>,
    bell: Condvar,
    /// The maximum number of slow orders that run at the same time.
    slow: usize,
}

#[derive(Default)]
struct Line {
    orders: VecDeque<Order>,
    /// For each running order, its answer, when it began, and whether it is known to be slow.
    running: Vec<(u64, Instant, bool)>,
    threads: usize,
    is_closed: bool,
}

impl Line {
    /// Returns the number of threads that are available for others.
    fn quick(&self) -> usize {
        self.threads
            - self.running.iter().filter(|(_, since, _)| since.elapsed() >= UNAVAILABLE_AFTER).count()
    }

    fn put(&mut self, order: Order) {
        let at = self.orders.iter().position(|other| other.rank() > order.rank());
        self.orders.insert(at.unwrap_or(self.orders.len()), order);
    }

    /// Takes the next order: quick ones first; slow ones only if not too many of them are running.
    fn take(&mut self, slow: usize) -> Option<Order> {
        if self.orders.front()?.is_slow() && self.slow() >= slow {
            return None;
        }
        let order = self.orders.pop_front()?;
        self.running.push((order.answer, Instant::now(), order.is_slow()));
        Some(order)
    }

    /// Whether an order could be taken, but no thread is available.
    fn is_stuck(&self, slow: usize) -> bool {
        let is_free = self.slow() < slow;
        self.quick() == 0 && self.orders.front().is_some_and(|order| !order.is_slow() || is_free)
    }

    /// Returns the number of slow orders that are running.
    fn slow(&self) -> usize {
        self.running.iter().filter(|(_, _, is_slow)| *is_slow).count()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Line> {
        // The lock is only held for short work on plain data, so poisoning can be ignored.
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the next order; `None` if the thread must end, because there is no work for this many threads.
    fn next(&self) -> Option<Order> {
        let mut line = self.lock();
        loop {
            if line.is_closed {
                return None;
            }
            if let Some(order) = line.take(self.slow) {
                return Some(order);
            }
            if line.quick() > 1 {
                line.threads -= 1;
                return None;
            }
            line = self.bell.wait(line).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Removes a running order, and queues the rest of it.
    fn done(&self, answer: u64, rest: Option<Order>) {
        let mut line = self.lock();
        if let Some(at) = line.running.iter().position(|(running, ..)| *running == answer) {
            line.running.swap_remove(at);
        }
        if let Some(order) = rest {
            line.put(order);
        }
    }
}

impl Masks {
    /// Creates the pool for at most this many answers at a time, and one that is about to leave. Threads are started
    /// when they are needed.
    pub(super) fn new(answers: usize) -> Self {
        let (outbox, news) = mpsc::channel();
        let processors = available_parallelism().map_or(1, NonZero::get);
        let shared = Shared { line: Mutex::default(), bell: Condvar::new(), slow: (processors / 4).max(1) };
        Self { shared: Arc::new(shared), outbox, news, threads: Vec::new(), most: answers + 1 }
    }

    /// Queues an order.
    ///
    /// # Errors
    ///
    /// Fails if there is no thread for it.
    pub(super) fn begin(&mut self, order: Order) -> Result<(), Failure> {
        let mut line = self.shared.lock();
        line.put(order);
        drop(line);
        self.shared.bell.notify_one();
        self.watch();
        if self.shared.lock().threads > 0 {
            return Ok(());
        }
        self.shared.lock().orders.clear();
        Err(Failure::Internal("there is no thread to work on constraints".into()))
    }

    /// Starts another thread if none is available and an order waits.
    pub(super) fn watch(&mut self) {
        let mut line = self.shared.lock();
        if !line.is_stuck(self.shared.slow) || line.threads >= self.most {
            return;
        }
        self.threads.retain(|thread| !thread.is_finished());
        let (shared, outbox) = (self.shared.clone(), self.outbox.clone());
        let run = move || {
            while let Some(order) = shared.next() {
                let answer = order.answer;
                let rest = work(order, &outbox);
                shared.done(answer, rest);
            }
        };
        // If no thread can be started, the orders keep waiting for the others.
        if let Ok(thread) = std::thread::Builder::new().name("masks".into()).spawn(run) {
            line.threads += 1;
            drop(line);
            self.threads.push(thread);
        }
    }

    /// Returns a result, if there is one.
    pub(super) fn try_news(&self) -> Option<News> {
        self.news.try_recv().ok()
    }

    /// Returns the next result within this time.
    pub(super) fn wait(&mut self, time: Duration) -> Option<News> {
        let end = Instant::now() + time;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if let Ok(news) = self.news.recv_timeout(left.min(UNAVAILABLE_AFTER)) {
                return Some(news);
            }
            if left.is_zero() {
                return None;
            }
            self.watch();
        }
    }
}

impl Drop for Masks {
    /// The caller must have cancelled all pending orders.
    fn drop(&mut self) {
        let mut line = self.shared.lock();
        line.is_closed = true;
        line.orders.clear();
        drop(line);
        self.shared.bell.notify_all();
        for thread in self.threads.drain(..) {
            // Panics of guides are caught, and nothing else in the thread can panic.
            let _ = thread.join();
        }
    }
}

/// Does the next part of an order. Returns the rest of the order.
fn work(mut order: Order, news: &mpsc::Sender<News>) -> Option<Order> {
    let (answer, stop, begin) = (order.answer, order.stop.clone(), Instant::now());
    if stop.is_cancelled() {
        return None;
    }
    // If the receiver is gone, the scheduler has ended.
    let tell = |what: Work| drop(news.send(News { answer, time: begin.elapsed(), what }));
    if order.takes() {
        let mut taken = Taken {
            chosen: false,
            forced: Vec::new(),
            texts: Vec::new(),
            rest: String::new(),
            end: Ok(End::Open),
        };
        taken.end = with_cancel(&stop, || caught(|| take(&mut order, &mut taken)));
        let goes_on = taken.end == Ok(End::Open);
        if let (false, Some(search)) = (goes_on, &mut order.search) {
            taken.rest = search.finish();
        }
        tell(Work::Taken(taken));
        (order.token, order.before) = (None, None);
        return goes_on.then_some(order);
    }
    let Order { mut guide, search, mut words, .. } = order;
    let filled = with_cancel(&stop, || {
        caught(|| {
            guide.fill(&mut words)?;
            let temperature = guide.temperature();
            obeyed(&stop)?;
            Ok(Filled { guide, search, words, temperature })
        })
    });
    tell(Work::Filled(filled));
    None
}

/// Accepts the chosen token and the forced tokens after it.
fn take(order: &mut Order, taken: &mut Taken) -> Result<End, GuideError> {
    let Order { guide, search, before, stop, .. } = order;
    let (mut left, is_to_end) = (order.left, order.is_to_end);
    let mut accept = |guide: &mut Box<dyn Guide>, token: TokenId, texts: &mut Vec<String>| {
        guide.accept(token)?;
        let mut is_finished = !is_to_end && guide.is_finished()?;
        if let Some(search) = search {
            let (text, is_stopped) = search.push(token)?;
            texts.push(text);
            is_finished |= is_stopped;
        }
        obeyed(stop)?;
        Ok::<_, GuideError>(is_finished)
    };
    if let Some(token) = order.token {
        let is_finished = accept(guide, token, &mut taken.texts)?;
        taken.chosen = true;
        left = left.saturating_sub(1);
        if is_finished {
            return Ok(End::Finished);
        }
        if let Some(before) = before {
            before.push(token);
        }
    }
    let forced = match before {
        Some(before) if left > 0 => guide.forced(before)?,
        _ => Vec::new(),
    };
    // The result of a cancelled search is not reliable.
    obeyed(stop)?;
    for token in forced.into_iter().take(left) {
        left -= 1;
        if order.ends.contains(&token) && guide.completes(&[])? {
            return Ok(End::Ended);
        }
        let is_finished = accept(guide, token, &mut taken.texts)?;
        taken.forced.push(token);
        if is_finished {
            return Ok(End::Finished);
        }
    }
    Ok(if left == 0 { End::Full } else { End::Open })
}

/// Discards the result of work that was cancelled.
fn obeyed(stop: &CancelToken) -> Result<(), GuideError> {
    if stop.is_cancelled() { Err(GuideError::Cancelled) } else { Ok(()) }
}

fn caught<T>(work: impl FnOnce() -> Result<T, GuideError>) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(work))
        .map_err(|panic| Failure::panicked(panic.as_ref()))?
        .map_err(Failure::from)
}
