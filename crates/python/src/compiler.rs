//! Compiles constraints on the threads of a service.
//!
//! `Compiler` is a vocabulary with a compile service; `Future` a pending request; `CompiledConstraint` its result.
//!
//! # Waiting
//!
//! A thread that waits releases the GIL, and returns every few hundredths of a second to check for Ctrl-C. An event
//! loop does not wait: it registers a function that is called, on a worker's thread, when the result is there. A
//! request is canceled when nothing waits for it any more.
//!
//! # After a fork
//!
//! The threads of a service exist only in the process that started them. A compiler remembers that process. In a child
//! it starts a new service and forgets the old one without waiting for its threads, which do not exist there.

use core::time::Duration;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::task::{Wake, Waker};
use std::time::Instant;

use maskwright::locate::Written;
use maskwright::service::{self, Client, Service, Settings, Ticket};
use maskwright::{Budget, IndexLimits, TokenId, in_pool};
use pyo3::exceptions::{PyRuntimeError, PyTimeoutError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyString, PyType};
use pyo3::{PyTraverseError, PyVisit};

use crate::constraint::{Constraint, report, warnings};
use crate::errors::{Class, compile_error, raise, refused};
use crate::index::Index;
use crate::matcher::{Matcher, Text};
use crate::numbers::{self, seconds};
use crate::vocabulary::Vocabulary;
use crate::weighted::{Pcfg, Scorer};

/// How long a waiting thread sleeps between checks for signals.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(40);

/// Compiles constraints for one vocabulary, each only once for all callers, on its own threads.
#[pyclass(frozen, module = "maskwright", weakref)]
pub(crate) struct Compiler {
    vocabulary: Py<Vocabulary>,
    settings: Settings,
    /// The maximum number of steps for a mask or a token, if it is not the default.
    mask_steps: Option<u64>,
    /// `None` only during drop.
    running: RwLock<Option<Running>>,
}

/// A service with its compiler, and the process that it runs in.
struct Running {
    process: u32,
    compiler: Arc<maskwright::Compiler>,
    client: Client,
}

impl Running {
    fn start(vocabulary: &Vocabulary, settings: &Settings) -> PyResult<Self> {
        let service = Service::new(settings.clone()).map_err(|error| {
            PyRuntimeError::new_err(format!("the threads that compile could not be started: {error}"))
        })?;
        let compiler = Arc::new(maskwright::Compiler::new(vocabulary.vocabulary.clone()));
        let client = service.client(compiler.clone());
        Ok(Self { process: std::process::id(), compiler, client })
    }
}

/// The minimum budget in bytes. A smaller one would refuse constraints that are within the limits.
const LEAST_BUDGET: usize = 32 << 20;

#[pymethods]
impl Compiler {
    #[new]
    #[pyo3(signature = (vocabulary, *, workers = 2, cache_bytes = 512 << 20, timeout = 10.0, memory_bytes = 256 << 20, failures_for = 10.0, queue = 10_000, mask_steps = None, prepare = 0.0))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn new(
        py: Python<'_>,
        vocabulary: Py<Vocabulary>,
        workers: usize,
        cache_bytes: usize,
        timeout: f64,
        memory_bytes: usize,
        failures_for: f64,
        queue: usize,
        mask_steps: Option<u64>,
        prepare: f64,
    ) -> PyResult<Self> {
        if !(1..=1024).contains(&workers) {
            return Err(PyValueError::new_err(format!(
                "there must be between 1 and 1024 workers, not {workers}"
            )));
        }
        let settings = Settings {
            workers,
            // Texts that wait to be compiled count, too, so there must be room for one.
            budget: cache_bytes.max(LEAST_BUDGET),
            timeout: seconds(timeout)?,
            memory: memory_bytes,
            failures_for: seconds(failures_for)?,
            queue,
            prepare: seconds(prepare)?,
            ..Settings::default()
        };
        let running = py.detach(|| Running::start(vocabulary.get(), &settings))?;
        Ok(Self { vocabulary, settings, mask_steps, running: RwLock::new(Some(running)) })
    }

    /// Compiles a constraint and waits for it.
    fn compile(&self, py: Python<'_>, constraint: &Bound<'_, PyAny>) -> PyResult<CompiledConstraint> {
        let ticket = self.request(Constraint::of(constraint)?.get())?;
        let result = wait(py, &ticket, None, || false)?;
        let inner = result.ok_or_else(not_there)?.map_err(|error| compile_error(py, &error))?;
        Ok(CompiledConstraint { inner, vocabulary: self.vocabulary.clone_ref(py) })
    }

    /// Requests a constraint and returns at once. The future has `result()`, and can be awaited.
    fn submit(&self, py: Python<'_>, constraint: &Bound<'_, PyAny>) -> PyResult<Future> {
        let ticket = self.request(Constraint::of(constraint)?.get())?;
        let vocabulary = self.vocabulary.clone_ref(py);
        Ok(Future { ticket: RwLock::new(Some(Arc::new(ticket))), vocabulary, bell: Arc::default() })
    }

    /// Compiles a constraint with finitely many states ahead of time.
    #[pyo3(signature = (constraint, *, states = None, steps = None, bytes = None))]
    fn index(
        &self,
        py: Python<'_>,
        constraint: &Bound<'_, PyAny>,
        states: Option<usize>,
        steps: Option<usize>,
        bytes: Option<usize>,
    ) -> PyResult<Index> {
        let constraint = Constraint::of(constraint)?;
        let constraint = constraint.get();
        let compiler = self.with(|running| running.compiler.clone())?;
        let mut limits = IndexLimits::default();
        limits.states = states.unwrap_or(limits.states);
        limits.steps = steps.unwrap_or(limits.steps);
        limits.bytes = bytes.unwrap_or(limits.bytes);
        let built = py.detach(|| {
            let compiler = maskwright::Compiler::with_library(compiler.library(), constraint.options.clone());
            in_pool(|| compiler.index(&constraint.source, &limits))
        });
        let built = built.map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        let index = built.map_err(|error| refused(py, &error))?;
        Ok(Index::new(index, self.vocabulary.clone_ref(py)))
    }

    /// Locates the end of a text, or of a list of tokens, under a constraint: the open rules and the open terminal,
    /// what may follow, and the path in a JSON document.
    fn locate<'py>(
        &self,
        constraint: &Bound<'py, PyAny>,
        written: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = constraint.py();
        let constraint = Constraint::of(constraint)?;
        let constraint = constraint.get();
        let compiler = self.with(|running| running.compiler.clone())?;
        let is_text = written.is_instance_of::<PyString>() || written.is_instance_of::<PyBytes>();
        let (text, tokens) = if is_text {
            (Some(written.extract::<Text>()?), Vec::new())
        } else {
            (None, numbers::tokens(written)?)
        };
        let written = text.as_ref().map_or(Written::Tokens(&tokens), |text| Written::Text(text.bytes()));
        let located = py.detach(|| compiler.locate(&constraint.source, &constraint.options, written));
        let location = located.map_err(|error| raise(py, error.category(), error))?;
        py.import("json")?.call_method1("loads", (location.json().to_string(),))
    }

    /// The vocabulary.
    #[getter]
    fn vocabulary(&self, py: Python<'_>) -> Py<Vocabulary> {
        self.vocabulary.clone_ref(py)
    }

    /// Forgets all constraints and failures. Constraints that are in use are not affected.
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        let client = self.client()?;
        py.detach(|| client.service().clear());
        Ok(())
    }

    /// Returns the statistics as numbers.
    fn statistics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let client = self.client()?;
        let statistics = py.detach(|| client.service().statistics());
        let (requests, compiles) = (PyDict::new(py), PyDict::new(py));
        for kind in &statistics.kinds {
            for (lookup, count) in kind.requests {
                add(&requests, lookup.name(), count)?;
            }
            for (outcome, count) in kind.compiles {
                add(&compiles, outcome.name(), count)?;
            }
        }
        let cache = PyDict::new(py);
        cache.set_item("entries", statistics.cache.entries)?;
        cache.set_item("bytes", statistics.cache.bytes)?;
        cache.set_item("shared_bytes", statistics.cache.shared_bytes)?;
        cache.set_item("budget", statistics.cache.budget)?;
        cache.set_item("evictions", statistics.cache.evictions)?;
        cache.set_item("queued", statistics.cache.queued)?;
        cache.set_item("running", statistics.cache.running)?;
        let matching = PyDict::new(py);
        matching.set_item("matchers", statistics.matching.matchers)?;
        matching.set_item("masks", statistics.matching.masks)?;
        matching.set_item("computed", statistics.matching.computed)?;
        matching.set_item("prepared", statistics.matching.prepared)?;
        matching.set_item("tokens", statistics.matching.tokens)?;
        matching.set_item("forced", statistics.matching.forced)?;
        let all = PyDict::new(py);
        all.set_item("requests", requests)?;
        all.set_item("compiles", compiles)?;
        all.set_item("cache", cache)?;
        all.set_item("matching", matching)?;
        Ok(all)
    }

    /// Returns the statistics as text for Prometheus.
    #[pyo3(signature = (labels = None))]
    fn prometheus(&self, py: Python<'_>, labels: Option<Vec<(String, String)>>) -> PyResult<String> {
        let client = self.client()?;
        let labels = labels.unwrap_or_default();
        let labels: Vec<(&str, &str)> = labels.iter().map(|(name, value)| (&**name, &**value)).collect();
        Ok(py.detach(|| client.service().statistics().to_prometheus(&labels)))
    }

    /// Returns what was learned and the compiled constraints as bytes, for another process. The constraints of `other`,
    /// which another process has saved, are added.
    #[pyo3(signature = (other = None))]
    fn save<'py>(&self, py: Python<'py>, other: Option<&[u8]>) -> PyResult<Bound<'py, PyBytes>> {
        let client = self.client()?;
        let mut file = Vec::new();
        py.detach(|| client.save_with(other.unwrap_or_default(), &mut file))
            .map_err(|error| Class::File.err(py, error))?;
        Ok(PyBytes::new(py, &file))
    }

    /// Loads what another compiler for the same vocabulary has saved. Returns how many constraints are ready.
    fn load(&self, py: Python<'_>, file: &[u8]) -> PyResult<usize> {
        let client = self.client()?;
        let warm = py.detach(|| client.load(file)).map_err(|error| Class::File.err(py, error))?;
        Ok(warm.ready)
    }

    fn __repr__(&self) -> String {
        let vocabulary = &self.vocabulary.get().vocabulary;
        format!("<Compiler for {} tokens, {} workers>", vocabulary.len(), self.settings.workers)
    }
}

impl Compiler {
    fn request(&self, constraint: &Constraint) -> PyResult<Ticket> {
        let mut options = constraint.options.clone();
        options.limits.mask_steps = self.mask_steps.unwrap_or(options.limits.mask_steps);
        let client = self.client()?.with_options(options);
        Ok(client.request(&constraint.source))
    }

    fn client(&self) -> PyResult<Client> {
        self.with(|running| running.client.clone())
    }

    /// Calls a function with the service of this process, and starts that if necessary.
    fn with<T>(&self, take: impl Fn(&Running) -> T) -> PyResult<T> {
        let here = |running: &Running| running.process == std::process::id();
        let running = self.running.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(running) = running.as_ref().filter(|running| here(running)) {
            return Ok(take(running));
        }
        drop(running);
        let mut running = self.running.write().unwrap_or_else(PoisonError::into_inner);
        if !running.as_ref().is_some_and(here) {
            let new = Running::start(self.vocabulary.get(), &self.settings)?;
            // The threads of the old one are in another process; dropping it would wait for them.
            core::mem::forget(running.replace(new));
        }
        running.as_ref().map(take).ok_or_else(not_there)
    }
}

impl Drop for Compiler {
    fn drop(&mut self) {
        let running = self.running.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if running.as_ref().is_some_and(|running| running.process != std::process::id()) {
            core::mem::forget(running);
            return;
        }
        // Ending the service waits for its workers, and these may be waiting for the GIL, to call registered functions.
        // If Python is shutting down, the workers end, too.
        let _ = Python::try_attach(|py| py.detach(|| drop(running)));
    }
}

/// A pending request.
#[pyclass(frozen, module = "maskwright", weakref)]
pub(crate) struct Future {
    /// `None` after it was canceled.
    ticket: RwLock<Option<Arc<Ticket>>>,
    vocabulary: Py<Vocabulary>,
    bell: Arc<Bell>,
}

#[pymethods]
impl Future {
    /// Whether there is a result, an error or a cancellation.
    fn done(&self) -> bool {
        self.ticket().is_none_or(|ticket| ticket.try_get().is_some())
    }

    /// Whether it was canceled.
    fn cancelled(&self) -> bool {
        self.ticket().is_none()
    }

    /// Returns the compiled constraint, or raises the error. Waits for it, at most `timeout` seconds, and then raises
    /// `TimeoutError`.
    #[pyo3(signature = (timeout = None))]
    fn result(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<CompiledConstraint> {
        let ticket = self.ticket().ok_or_else(|| cancelled_error(py))?;
        let until = match timeout {
            Some(timeout) => Instant::now().checked_add(seconds(timeout.max(0.0))?),
            None => None,
        };
        let result = wait(py, &ticket, until, || self.cancelled())?;
        match result {
            Some(result) => {
                let inner = result.map_err(|error| compile_error(py, &error))?;
                Ok(CompiledConstraint { inner, vocabulary: self.vocabulary.clone_ref(py) })
            }
            None if self.cancelled() => Err(cancelled_error(py)),
            None => Err(PyTimeoutError::new_err("the constraint is not compiled yet")),
        }
    }

    /// Returns the error, or `None`. Waits as `result` does.
    #[pyo3(signature = (timeout = None))]
    fn exception(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Option<PyErr>> {
        let ticket = self.ticket();
        match self.result(py, timeout) {
            Ok(_) => Ok(None),
            // An error of the constraint is a result; an error of waiting is not.
            Err(error) if ticket.is_some_and(|ticket| ticket.try_get().is_some()) => Ok(Some(error)),
            Err(error) => Err(error),
        }
    }

    /// Cancels the request. If no other request waits for the constraint, the compilation is stopped. Returns whether
    /// there was something to cancel.
    fn cancel(slf: &Bound<'_, Self>) -> bool {
        let this = slf.get();
        let mut ticket = this.ticket.write().unwrap_or_else(PoisonError::into_inner);
        if ticket.as_ref().is_none_or(|ticket| ticket.try_get().is_some()) {
            return false;
        }
        let left = ticket.take();
        drop(ticket);
        slf.py().detach(|| drop(left));
        this.bell.ring(slf.py());
        true
    }

    /// Registers a function to be called with this future when it is done: at once if it is done already, otherwise on
    /// the thread that compiles.
    fn add_done_callback(slf: &Bound<'_, Self>, function: Py<PyAny>) {
        let this = slf.get();
        this.bell.hang(function, slf.clone().unbind());
        let ticket = this.ticket();
        let waker = Waker::from(this.bell.clone());
        if ticket.is_none_or(|ticket| ticket.try_get_or_wake(&waker).is_some()) {
            this.bell.ring(slf.py());
        }
    }

    fn __await__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        static WAIT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let wait = WAIT.import(slf.py(), "maskwright._waiting", "wait")?;
        wait.call1((slf,))?.call_method0("__await__")
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.vocabulary)
    }

    fn __repr__(&self) -> &'static str {
        match (self.cancelled(), self.done()) {
            (true, _) => "<Future, cancelled>",
            (_, true) => "<Future, done>",
            _ => "<Future, compiling>",
        }
    }
}

impl Future {
    fn ticket(&self) -> Option<Arc<Ticket>> {
        self.ticket.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The functions to be called when a future is done.
#[derive(Default)]
struct Bell(Mutex<Vec<(Py<PyAny>, Py<Future>)>>);

impl Bell {
    fn hang(&self, function: Py<PyAny>, future: Py<Future>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((function, future));
    }

    /// Calls every function once.
    fn ring(&self, py: Python<'_>) {
        let functions = core::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        for (function, future) in functions {
            if let Err(error) = function.call1(py, (future,)) {
                error.write_unraisable(py, Some(function.bind(py)));
            }
        }
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        // If Python is shutting down, nothing waits any more.
        let _ = Python::try_attach(|py| self.ring(py));
    }
}

/// A compiled constraint for any number of texts.
#[pyclass(frozen, module = "maskwright", weakref)]
pub(crate) struct CompiledConstraint {
    inner: Arc<service::CompiledConstraint>,
    vocabulary: Py<Vocabulary>,
}

#[pymethods]
impl CompiledConstraint {
    /// Returns a matcher at the beginning of a text.
    ///
    /// `stop_tokens` end the text in place of the vocabulary's; `end_in_mask=False` leaves them out of masks; `budget`
    /// is a number of tokens, including the one that ends the text, within which the text will be complete.
    #[pyo3(signature = (*, stop_tokens = None, end_in_mask = true, budget = None))]
    fn matcher(
        &self,
        py: Python<'_>,
        stop_tokens: Option<&Bound<'_, PyAny>>,
        end_in_mask: bool,
        budget: Option<u32>,
    ) -> PyResult<Matcher> {
        let stops = match stop_tokens {
            Some(stops) => Some(numbers::tokens(stops)?),
            None => None,
        };
        let mut matcher = self.inner.matcher();
        if let Some(engine) = matcher.inner().as_engine() {
            engine.set_eos_in_mask(end_in_mask);
            let stops: Option<Arc<[TokenId]>> = stops.map(Into::into);
            let stops = engine.set_stops(stops);
            stops.map_err(|error| Class::Token.err(py, format!("stop tokens: {error}")))?;
            if let Some(budget) = budget {
                let set = engine.set_budget(Some(Budget::new(budget)));
                set.map_err(|error| raise(py, (&error).into(), error))?;
            }
        }
        Ok(Matcher::new(matcher, self.vocabulary.clone_ref(py)))
    }

    /// The vocabulary.
    #[getter]
    fn vocabulary(&self, py: Python<'_>) -> Py<Vocabulary> {
        self.vocabulary.clone_ref(py)
    }

    /// The language of the constraint.
    #[getter]
    fn kind(&self) -> &'static str {
        self.inner.report().kind.name()
    }

    /// How long compiling took, in seconds, without the time that it waited for a worker.
    #[getter]
    fn seconds(&self) -> f64 {
        self.inner.report().time.as_secs_f64()
    }

    /// How each keyword of a schema was treated, and the warnings about a grammar or a schema: the same as
    /// `maskwright.report` of the constraint.
    #[getter]
    fn report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        static REPORT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let remarks = self.inner.remarks();
        let keywords = PyDict::new(py);
        for (pointer, word) in report(remarks) {
            keywords.set_item(pointer, word)?;
        }
        REPORT.import(py, "maskwright.constraints", "Report")?.call1((keywords, warnings(remarks)))
    }

    /// The grammar of a constraint with probabilities; `None` for others.
    #[getter]
    fn pcfg(&self) -> Option<Pcfg> {
        self.inner.remarks().weights.as_deref().map(Pcfg::of)
    }

    /// Returns a scorer at the beginning of a text. Only a constraint with probabilities has one.
    fn scorer(&self, py: Python<'_>) -> PyResult<Scorer> {
        let Some(weights) = &self.inner.remarks().weights else {
            let message =
                format!("a constraint of kind {:?} has no probabilities; make one with pcfg(…)", self.kind());
            return Err(PyValueError::new_err(message));
        };
        Ok(Scorer::new(weights.scorer(self.vocabulary.bind(py).get().vocabulary.clone())))
    }

    /// A measure of its size.
    #[getter]
    fn states(&self) -> usize {
        self.inner.report().states
    }

    /// The number of bytes that it holds now. It grows while texts are matched.
    #[getter]
    fn bytes(&self) -> usize {
        self.inner.inner().bytes()
    }

    fn __repr__(&self) -> String {
        format!("<CompiledConstraint {}, {} states>", self.kind(), self.states())
    }
}

/// Waits for a ticket without the GIL, until a time, until `is_over`, or until Ctrl-C.
fn wait(
    py: Python<'_>,
    ticket: &Ticket,
    until: Option<Instant>,
    is_over: impl Fn() -> bool,
) -> PyResult<Option<maskwright::service::Result>> {
    loop {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let glance = left.map_or(SIGNAL_INTERVAL, |left| left.min(SIGNAL_INTERVAL));
        if let Some(result) = ticket.try_get() {
            return Ok(Some(result));
        }
        if let Some(result) = py.detach(|| ticket.wait_for(glance)) {
            return Ok(Some(result));
        }
        py.check_signals()?;
        if left.is_some_and(|left| left <= glance) || is_over() {
            return Ok(None);
        }
    }
}

fn not_there() -> PyErr {
    PyRuntimeError::new_err("the compile service ended without an answer")
}

fn cancelled_error(py: Python<'_>) -> PyErr {
    static CANCELLED: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    match CANCELLED.import(py, "concurrent.futures", "CancelledError") {
        Ok(class) => PyErr::from_type(class.clone(), ("the request was cancelled",)),
        Err(error) => error,
    }
}

fn add(counts: &Bound<'_, PyDict>, name: &str, count: u64) -> PyResult<()> {
    let before: u64 = counts.get_item(name)?.map_or(Ok(0), |before| before.extract())?;
    counts.set_item(name, before + count)
}
