//! The service as a whole, with real threads: sharing, cancelling, clearing, limits, panics, and staying within the budget.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Barrier, Condvar, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{ThreadId, current, scope, sleep};
use std::time::{Duration, Instant};

use maskwright::backend::{Backend, Compiled, Matching, Status};
use maskwright::service::{Client, Error, Service, Settings};
use maskwright::statistics::{Lookup, Outcome};
use maskwright::{
    Compiler, Constraint, Kind, MatchError, Options, TokenId, Vocabulary, VocabularyBuilder, json_schema,
    must_stop,
};
use maskwright_oracle::generate::Rng;

/// All single bytes, and an end.
fn vocabulary() -> Arc<Vocabulary> {
    let mut builder = VocabularyBuilder::new();
    for byte in 0..=255u8 {
        builder.token(TokenId(u32::from(byte)), &[byte]).expect("a new token");
    }
    builder.special(TokenId(256), "<end>").expect("a new token").eos(TokenId(256));
    Arc::new(builder.finish().expect("a vocabulary"))
}

fn service(settings: Settings) -> (Service, Client) {
    let service = Service::new(settings).expect("threads can be started");
    let client = service.client(Arc::new(Compiler::new(vocabulary())));
    (service, client)
}

/// A backend whose compiles can be held up, counted and made to fail.
#[derive(Debug)]
struct Fake {
    vocabulary: Arc<Vocabulary>,
    gate: (Mutex<bool>, Condvar),
    compiles: AtomicUsize,
    /// Which thread did each of them.
    threads: Mutex<Vec<ThreadId>>,
    live: Arc<AtomicUsize>,
    shared: AtomicUsize,
}

/// Whether a thread was told that its compile is slow.
static IS_TOLD: AtomicBool = AtomicBool::new(false);

impl Fake {
    fn new(is_open: bool) -> Arc<Self> {
        Arc::new(Self {
            vocabulary: vocabulary(),
            gate: (Mutex::new(is_open), Condvar::new()),
            compiles: AtomicUsize::new(0),
            threads: Mutex::default(),
            live: Arc::default(),
            shared: AtomicUsize::new(0),
        })
    }

    fn open(&self) {
        *self.gate.0.lock().expect("no panic") = true;
        self.gate.1.notify_all();
    }
}

impl Backend for Fake {
    fn name(&self) -> &'static str {
        "fake"
    }

    fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.vocabulary
    }

    fn compile(&self, constraint: &Constraint, _: &Options) -> Result<Arc<dyn Compiled>, maskwright::Error> {
        self.compiles.fetch_add(1, Ordering::SeqCst);
        self.threads.lock().expect("no panic").push(current().id());
        while matches!(constraint, Constraint::Regex(text) if text == "slow")
            && !IS_TOLD.load(Ordering::SeqCst)
        {
            assert!(!must_stop(), "there is time");
        }
        if !matches!(constraint, Constraint::Regex(text) if text == "quick") {
            let gate = self.gate.0.lock().expect("no panic");
            drop(self.gate.1.wait_while(gate, |is_open| !*is_open).expect("no panic"));
        }
        match constraint {
            Constraint::Regex(text) if text == "panic" => panic!("as {text} was wanted"),
            Constraint::Regex(text) if text == "refuse" => {
                Err(maskwright::Error::Choice(maskwright::choice::ChoiceError::NoChoices))
            }
            _ => {
                self.live.fetch_add(1, Ordering::SeqCst);
                Ok(Arc::new(Weight { bytes: 10_000, live: self.live.clone() }))
            }
        }
    }

    fn shared_bytes(&self) -> usize {
        self.shared.load(Ordering::SeqCst)
    }

    fn renew(&self, share: usize) -> bool {
        self.shared.load(Ordering::SeqCst) > share && self.shared.swap(0, Ordering::SeqCst) > 0
    }
}

#[derive(Debug)]
struct Weight {
    bytes: usize,
    live: Arc<AtomicUsize>,
}

impl Drop for Weight {
    fn drop(&mut self) {
        self.live.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Compiled for Weight {
    fn start(self: Arc<Self>) -> Box<dyn Matching> {
        Box::new(Anything)
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn states(&self) -> usize {
        7
    }
}

/// Allows every token.
#[derive(Debug)]
struct Anything;

impl Matching for Anything {
    fn fill_mask(&mut self, words: &mut [u32]) -> Result<(), MatchError> {
        words.fill(u32::MAX);
        Ok(())
    }

    fn mask_words(&mut self) -> Result<&[u32], MatchError> {
        Ok(&[u32::MAX; 9])
    }

    fn accept(&mut self, _: TokenId) -> Result<(), MatchError> {
        Ok(())
    }

    fn rollback(&mut self, _: usize) -> Result<(), MatchError> {
        Ok(())
    }

    fn reset(&mut self) {}

    fn fork(&self) -> Box<dyn Matching> {
        Box::new(Anything)
    }

    fn status(&mut self) -> Status {
        Status::Accepting
    }
}

/// Waits until something is so, which other threads see to.
fn until(what: &str, is_so: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < Duration::from_secs(60), "{what}");
        sleep(Duration::from_millis(1));
    }
}

#[test]
fn sixty_four_threads_share_one_compile() {
    let backend = Fake::new(false);
    let service = Service::new(Settings::default()).expect("threads");
    let client = service.client(backend.clone());
    let barrier = Barrier::new(64);
    let handles: Vec<_> = scope(|scope| {
        let ask = || {
            barrier.wait();
            let ticket = client.request(&Constraint::json_schema("{}"));
            if service.statistics().requests(Lookup::Joined) == 63 {
                backend.open();
            }
            ticket.wait().expect("it compiles")
        };
        let threads: Vec<_> = (0..64).map(|_| scope.spawn(ask)).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    assert_eq!(backend.compiles.load(Ordering::SeqCst), 1);
    assert!(handles.iter().all(|handle| Arc::ptr_eq(handle, &handles[0])));
    let statistics = service.statistics();
    assert_eq!(statistics.requests(Lookup::Miss), 1);
    assert_eq!(statistics.compiles(Outcome::Compiled), 1);
}

#[test]
fn a_constraint_is_known_by_kind_text_options_and_vocabulary() {
    let (service, client) = service(Settings::default());
    let compact = json_schema::Options::default().with_whitespace(json_schema::Whitespace::Compact);
    let compact = client.with_options(Options { json_schema: compact, ..Options::default() });
    let schema = Constraint::json_schema(r#"{"type": "integer"}"#);
    let first = client.compile(&schema).expect("it compiles");
    let again = |client: &Client, constraint: &Constraint| client.compile(constraint).expect("it compiles");
    assert!(Arc::ptr_eq(&first, &again(&client, &schema)));
    // The same schema laid out otherwise, twice, so that it is found both ways.
    for _ in 0..2 {
        let other = Constraint::json_schema("{\n\"type\" :\t\"integer\" }");
        assert!(Arc::ptr_eq(&first, &again(&client, &other)));
    }
    // Equal options in another place, and a second client for the same backend and vocabulary.
    assert!(Arc::ptr_eq(&first, &again(&client.with_options(Options::default()), &schema)));
    assert!(Arc::ptr_eq(&first, &again(&service.client(Arc::new(Compiler::new(vocabulary()))), &schema)));
    // Everything else is something else.
    assert!(!Arc::ptr_eq(&first, &again(&compact, &schema)));
    assert!(!Arc::ptr_eq(&first, &again(&client, &Constraint::json_schema(r#"{"type":"number"}"#))));
    let text = "integer";
    let kinds =
        [Constraint::regex(text), Constraint::choice([text]), Constraint::ebnf("root ::= \"integer\"")];
    let handles = kinds.map(|constraint| again(&client, &constraint));
    assert_eq!(handles.map(|handle| handle.report().kind), [Kind::Regex, Kind::Choice, Kind::Ebnf]);
    assert_eq!(service.statistics().compiles(Outcome::Compiled), 6);
    let mut builder = VocabularyBuilder::new();
    builder.token(TokenId(0), b"1").expect("a token");
    let other = service.client(Arc::new(Compiler::new(Arc::new(builder.finish().expect("a vocabulary")))));
    assert!(!Arc::ptr_eq(&first, &again(&other, &schema)));
}

#[test]
fn a_request_can_be_waited_for_in_every_way() {
    let backend = Fake::new(false);
    let service = Service::new(Settings::default()).expect("threads");
    let client = service.client(backend.clone());
    let constraint = Constraint::regex("a");
    let blocking = client.request(&constraint);
    let polled = client.request(&constraint);
    assert_eq!([blocking.lookup(), polled.lookup()], [Lookup::Miss, Lookup::Joined]);
    let (sender, receiver) = channel();
    client.request(&constraint).on_ready(move |result| sender.send(result.is_ok()).expect("the test waits"));
    let awaited = client.request(&constraint);
    assert!(polled.try_get().is_none() && polled.wait_for(Duration::from_millis(5)).is_none());
    let waiter = std::thread::spawn(move || block_on(awaited));
    backend.open();
    let handle = blocking.wait().expect("it compiles");
    assert!(polled.try_get().is_some_and(|result| result.is_ok_and(|other| Arc::ptr_eq(&other, &handle))));
    assert_eq!(receiver.recv(), Ok(true));
    assert!(waiter.join().expect("no panic").is_ok_and(|other| Arc::ptr_eq(&other, &handle)));
    // And in every way once it is there.
    assert!(block_on(client.request(&constraint)).is_ok());
    let is_called = Arc::new(AtomicBool::new(false));
    let flag = is_called.clone();
    client.request(&constraint).on_ready(move |_| flag.store(true, Ordering::SeqCst));
    assert!(is_called.load(Ordering::SeqCst));
}

/// The smallest runtime there is.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(std::thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

#[test]
fn the_last_one_who_leaves_cancels() {
    let backend = Fake::new(false);
    let service =
        Service::new(Settings { workers: 1, stand_ins: 0, ..Settings::default() }).expect("threads");
    let client = service.client(backend.clone());
    let running = client.request(&Constraint::regex("running"));
    until("the worker is busy", || backend.compiles.load(Ordering::SeqCst) == 1);
    let queued = client.request(&Constraint::regex("queued"));
    let joined = client.request(&Constraint::regex("queued"));
    drop(queued);
    assert_eq!(service.statistics().cache.queued, 1, "somebody still waits");
    drop(joined);
    assert_eq!(service.statistics().cache.queued, 0);
    // One that runs already is told to stop, and what it makes is not kept.
    drop(running);
    backend.open();
    until("it was cancelled", || service.statistics().compiles(Outcome::Cancelled) == 1);
    assert_eq!(service.statistics().cache.entries, 0);
    until("its result is gone", || backend.live.load(Ordering::SeqCst) == 0);
    // Who comes later is served.
    assert!(client.compile(&Constraint::regex("running")).is_ok());
}

#[test]
fn a_compile_that_takes_too_long_ends_at_its_time() {
    let settings = Settings { timeout: Duration::from_millis(100), ..Settings::default() };
    let (service, client) = service(settings);
    // Each branch alone takes longer, and there are many of them.
    let branch = |n: usize| {
        format!(r#"{{"pattern": "^(a|b)*a(a|b){{{}}}$", "not": {{"pattern": "b(a|b){{{n}}}c"}}}}"#, n + 12)
    };
    let branches: Vec<String> = (1..200).map(branch).collect();
    let schema =
        Constraint::json_schema(format!(r#"{{"type": "string", "anyOf": [{}]}}"#, branches.join(",")));
    let begin = Instant::now();
    let error = client.compile(&schema).expect_err("it takes too long");
    assert!(matches!(error, Error::TooLong { .. }), "{error}");
    assert!(error.to_string().contains("100ms"), "{error}");
    assert!(begin.elapsed() < Duration::from_secs(20), "it took {:?}", begin.elapsed());
    assert_eq!(service.statistics().compiles(Outcome::TooLong), 1);
    // It is remembered for a while, and others are served.
    assert_eq!(client.request(&schema).lookup(), Lookup::KnownFailure);
    assert!(client.compile(&Constraint::regex("a")).is_ok());
}

#[test]
fn a_compile_that_grows_too_large_ends_at_its_size() {
    let (service, client) = service(Settings { memory: 1 << 20, budget: 1 << 20, ..Settings::default() });
    let properties: Vec<String> = (0..600).map(|n| format!(r#""{n:x}":{{}}"#)).collect();
    let large = [
        Constraint::choice(["x".repeat(20_000)]),
        Constraint::json_schema(format!(r#"{{"properties":{{{}}}}}"#, properties.join(","))),
        Constraint::json_schema(r#"{"pattern": "^(a|b)*a(a|b){13}$"}"#),
        Constraint::ebnf(format!("root ::= {}", "\"a\" ".repeat(4_000))),
        Constraint::regex("a".repeat(6_000)),
    ];
    for constraint in &large {
        let error = client.compile(constraint).expect_err("it is too large");
        let names_a_limit = error.to_string().contains("limit") || error.to_string().contains("more than");
        assert!(names_a_limit, "{}: {error}", constraint.kind());
    }
    assert!(client.compile(&Constraint::regex("a")).is_ok());
    let long = client.compile(&Constraint::regex("a".repeat(1 << 16))).expect_err("it is too long");
    assert!(long.to_string().contains("65536 bytes, more than the limit of 5461"), "{long}");
    service.tidy();
    let cache = service.statistics().cache;
    assert!(cache.bytes + cache.shared_bytes <= cache.budget, "what was too large is not kept: {cache:?}");
}

#[test]
fn a_panic_is_an_error_of_its_request_alone() {
    let backend = Fake::new(false);
    let service =
        Service::new(Settings { workers: 1, stand_ins: 0, ..Settings::default() }).expect("threads");
    let client = service.client(backend.clone());
    // A function that panics on the worker harms nobody.
    client.request(&Constraint::regex("new")).on_ready(|_| panic!("as the test wants it"));
    backend.open();
    let error = client.compile(&Constraint::regex("panic")).expect_err("it panics");
    assert!(error.to_string().contains("as panic was wanted"), "{error}");
    assert!(client.compile(&Constraint::regex("fine")).is_ok(), "the worker lives on");
    assert_eq!(service.statistics().compiles(Outcome::Panicked), 1);
}

#[test]
fn failures_are_remembered_for_a_while() {
    let backend = Fake::new(true);
    let settings = Settings { failures_for: Duration::from_secs(1), ..Settings::default() };
    let service = Service::new(settings).expect("threads");
    let client = service.client(backend.clone());
    let refuse = Constraint::regex("refuse");
    assert!(client.compile(&refuse).is_err_and(|error| error.refusal().is_some()));
    let again = client.request(&refuse);
    assert_eq!((again.lookup(), backend.compiles.load(Ordering::SeqCst)), (Lookup::KnownFailure, 1));
    sleep(Duration::from_millis(1_100));
    assert!(client.compile(&refuse).is_err());
    assert_eq!(backend.compiles.load(Ordering::SeqCst), 2);
}

/// Compiles, and waits until only the cache holds the outcome: what a worker still holds is in use, and is not taken out.
fn compile_and_let_go(client: &Client, constraint: &Constraint) {
    let compiled = client.compile(constraint).expect("it compiles");
    until("only the cache and this function hold it", || Arc::strong_count(&compiled) <= 2);
}

#[test]
fn what_is_used_least_recently_goes_and_what_is_in_use_stays() {
    let backend = Fake::new(true);
    let service = Service::new(Settings { budget: 100_000, ..Settings::default() }).expect("threads");
    let client = service.client(backend.clone());
    let numbered = |n: usize| Constraint::regex(format!("number {n}"));
    let held = client.compile(&numbered(0)).expect("it compiles");
    let matcher = client.compile(&numbered(1)).expect("it compiles").matcher();
    for n in 2..200 {
        compile_and_let_go(&client, &numbered(n));
        // This one is asked for again and again.
        assert_eq!(client.request(&numbered(2)).lookup(), Lookup::Hit, "after {n}");
    }
    service.tidy();
    let cache = service.statistics().cache;
    assert!(cache.bytes + cache.shared_bytes <= cache.budget, "{cache:?}");
    assert!(cache.evictions > 150, "{cache:?}");
    for kept in [0, 1, 2] {
        assert_eq!(client.request(&numbered(kept)).lookup(), Lookup::Hit, "{kept}");
    }
    assert_eq!(client.request(&numbered(100)).lookup(), Lookup::Miss);
    drop((held, matcher));
}

#[test]
fn what_is_shared_counts_and_is_begun_anew() {
    let backend = Fake::new(true);
    let service = Service::new(Settings { budget: 100_000, ..Settings::default() }).expect("threads");
    let client = service.client(backend.clone());
    // Held for a while: a worker that measures at the same moment might take it out.
    let old = client.compile(&Constraint::regex("old")).expect("it compiles");
    backend.shared.store(95_000, Ordering::SeqCst);
    service.tidy();
    let cache = service.statistics().cache;
    assert_eq!((cache.renewals, cache.shared_bytes), (1, 0));
    until("only the cache and this test hold it", || Arc::strong_count(&old) == 2);
    drop(old);
    // There is room for both now. When there is not, the old generation goes first, though it was used last.
    for n in 0..6 {
        compile_and_let_go(&client, &Constraint::regex(format!("new {n}")));
    }
    assert_eq!(client.request(&Constraint::regex("old")).lookup(), Lookup::Hit);
    compile_and_let_go(&client, &Constraint::regex("one more"));
    service.tidy();
    // Two had to go: the old one, and the least recently used of the others.
    assert_eq!(client.request(&Constraint::regex("new 1")).lookup(), Lookup::Hit);
    assert_eq!(client.request(&Constraint::regex("old")).lookup(), Lookup::Miss);
}

/// Our own library, which grows while texts are matched.
#[test]
fn the_library_is_replaced_and_nothing_is_lost() {
    let compiler = Arc::new(Compiler::new(vocabulary()));
    let empty = compiler.shared_bytes();
    let service = Service::new(Settings { budget: 4 * empty, ..Settings::default() }).expect("threads");
    let client = service.client(compiler.clone());
    let first = Arc::downgrade(&compiler.library());
    for n in 0..400u32 {
        let text = format!("[a-{}]{{2,9}}x{n}[0-9é]+", char::from(b'b' + (n % 20) as u8));
        let handle = client.compile(&Constraint::regex(text)).expect("it compiles");
        let mut matcher = handle.matcher();
        let mut mask = [0; 9];
        for byte in format!("abaaax{n}7").bytes() {
            matcher.fill_mask(&mut mask).expect("room");
            matcher.accept(TokenId(u32::from(byte))).expect("it fits");
        }
        assert_eq!(matcher.status(), Status::Accepting);
        drop((matcher, handle));
        // The worker may still hold what it has just handed out.
        until("it fits", || {
            service.tidy();
            let cache = service.statistics().cache;
            cache.bytes + cache.shared_bytes <= cache.budget
        });
    }
    assert!(service.statistics().cache.renewals > 0);
    assert_eq!(first.strong_count(), 0, "nobody holds the first library");
}

#[test]
fn a_full_queue_refuses_and_a_closed_service_says_so() {
    let backend = Fake::new(false);
    let service = Service::new(Settings { workers: 1, stand_ins: 0, queue: 1, ..Settings::default() })
        .expect("threads");
    let client = service.client(backend.clone());
    let running = client.request(&Constraint::regex("a"));
    until("the worker is busy", || backend.compiles.load(Ordering::SeqCst) == 1);
    let queued = client.request(&Constraint::regex("b"));
    let error = client.compile(&Constraint::regex("c")).expect_err("the queue is full");
    assert!(matches!(error, Error::Busy { limit: 1 }), "{error}");
    let closer = std::thread::spawn(move || drop((service, client)));
    assert!(matches!(queued.wait(), Err(Error::Closed)));
    backend.open();
    assert!(matches!(running.wait(), Err(Error::Closed)));
    closer.join().expect("no panic");
    assert_eq!(backend.live.load(Ordering::SeqCst), 0);
}

#[test]
fn a_slow_compile_keeps_no_other_waiting() {
    let backend = Fake::new(false);
    let settings = Settings { workers: 1, stand_ins: 3, ..Settings::default() };
    let service = Service::new(settings).expect("threads");
    let client = service.client(backend.clone());
    // The worker and two stand-ins are held up, the third does what is quick.
    let slow = ["a", "b", "c"].map(|text| client.request(&Constraint::regex(text)));
    until("three are at work", || backend.compiles.load(Ordering::SeqCst) == 3);
    let quick = client.request(&Constraint::regex("quick"));
    let quick = quick.wait_for(Duration::from_secs(60)).expect("a stand-in").expect("compiles");
    assert!(quick.report().waited < Duration::from_secs(60));
    // There are no more than three of them.
    let more = ["d", "e"].map(|text| client.request(&Constraint::regex(text)));
    until("four are at work", || backend.compiles.load(Ordering::SeqCst) == 5);
    sleep(Duration::from_millis(30));
    assert_eq!(service.statistics().cache.queued, 1, "the last one waits for one of the others");
    backend.open();
    for ticket in slow.into_iter().chain(more) {
        ticket.wait().expect("compiles");
    }
    assert_eq!(service.statistics().waits.count(), 6);
}

#[test]
fn a_thread_that_was_slow_is_replaced() {
    let backend = Fake::new(true);
    let when_slow: fn() = || IS_TOLD.store(true, Ordering::SeqCst);
    let timeout = Duration::from_secs(600);
    let settings =
        Settings { workers: 1, stand_ins: 0, when_slow: Some(when_slow), timeout, ..Settings::default() };
    let service = Service::new(settings).expect("threads");
    let client = service.client(backend.clone());
    for text in ["quick", "slow", "x", "y"] {
        client.request(&Constraint::regex(text)).wait().expect("compiles");
    }
    let threads = backend.threads.lock().expect("no panic");
    assert_eq!(threads[0], threads[1], "nothing happens as long as compiles are quick");
    assert_ne!(threads[1], threads[2], "the thread may have a lower priority now");
    assert_eq!(threads[2], threads[3]);
}

#[test]
fn a_function_may_hold_the_last_client() {
    let (_, client) = service(Settings { workers: 1, ..Settings::default() });
    let (sender, receiver) = channel();
    let own = client.clone();
    client.request(&Constraint::regex("a")).on_ready(move |_| {
        drop(own);
        sender.send(()).expect("the test waits");
    });
    drop(client);
    receiver.recv().expect("it is called");
}

/// Texts of all kinds, damaged at random: each is compiled or refused with a message, and nothing panics.
#[test]
fn garbage_is_refused_and_nothing_breaks() {
    let (service, client) = service(Settings { timeout: Duration::from_secs(2), ..Settings::default() });
    let sound = [
        Constraint::regex(r"(?i)[a-z]+@\p{L}{2,5}(?=x)\bé*|\x41[^\d]"),
        Constraint::ebnf("root ::= \"a\" item* | [b-d]{2,3}\nitem ::= \"(\" root \")\" # why"),
        Constraint::gbnf("root ::= (\"a\" item){2}? | [^b-d]+\nitem ::= . <end> # why"),
        Constraint::lark(
            "start: A b{A, \"x\"i} [c]\nA: /[a-z]+/ & ~\"if\"\nb{x, y}: x (y x)~1..3\nc[lazy]: /.*;/\n%ignore \" \"",
        ),
        Constraint::json_schema(
            r##"{"type": "object", "properties": {"a": {"$ref": "#"}, "b": {"pattern": "^x+$", "maxLength": 3}}, "anyOf": [{"required": ["a"]}, {"not": {"minProperties": 1e1}}]}"##,
        ),
        Constraint::choice(["yes", "no"]),
    ];
    let pieces = [
        "{",
        "}",
        "(",
        "\"",
        "\\",
        "*",
        "{999999999}",
        "::=",
        "[^",
        "$ref",
        "-1e999",
        "\u{0}",
        "é",
        ",",
        "|",
    ];
    let mut rng = Rng::new(3);
    for _ in 0..600 {
        let constraint = match &sound[rng.below(sound.len())] {
            Constraint::Regex(text) => Constraint::regex(damage(text, &pieces, &mut rng)),
            Constraint::Ebnf(text) => Constraint::ebnf(damage(text, &pieces, &mut rng)),
            Constraint::Gbnf(text) => Constraint::gbnf(damage(text, &pieces, &mut rng)),
            Constraint::Lark(text) => Constraint::lark(damage(text, &pieces, &mut rng)),
            Constraint::JsonSchema(text) => Constraint::json_schema(damage(text, &pieces, &mut rng)),
            _ => Constraint::choice(
                (0..rng.below(4)).map(|_| damage("yes", &pieces, &mut rng)).collect::<Vec<_>>(),
            ),
        };
        match client.compile(&constraint) {
            Ok(handle) => handle.matcher().fill_mask(&mut [0; 9]).expect("room"),
            Err(error) => assert!(!error.to_string().is_empty(), "{constraint:?}"),
        }
    }
    let statistics = service.statistics();
    assert_eq!(statistics.compiles(Outcome::Panicked), 0);
    assert!(statistics.compiles(Outcome::Compiled) > 20 && statistics.compiles(Outcome::Refused) > 100);
}

/// Cuts pieces out of a text, and puts others in.
fn damage(text: &str, pieces: &[&str], rng: &mut Rng) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    for _ in 0..=rng.below(3) {
        let at = rng.below(chars.len() + 1);
        if rng.one_in(2) {
            let end = (at + rng.below(4)).min(chars.len());
            chars.drain(at..end);
        } else if let Some(piece) = rng.choose(pieces) {
            chars.splice(at..at, piece.chars());
        }
    }
    chars.into_iter().collect()
}

/// Many threads ask, wait, leave early, match, clear and tidy, all at once and at random. Whoever waits gets the right
/// constraint, and in the end nothing is left over.
#[test]
fn chaos_loses_nothing() {
    let (service, client) = service(Settings {
        workers: 3,
        budget: 3 << 20,
        failures_for: Duration::from_millis(1),
        ..Settings::default()
    });
    let served = AtomicUsize::new(0);
    scope(|scope| {
        for seed in 0..8 {
            let (service, client, served) = (&service, &client, &served);
            scope.spawn(move || {
                let mut rng = Rng::new(seed);
                for _ in 0..400 {
                    let n = rng.below(30);
                    let ticket = client.request(&Constraint::regex(format!("[0-9]{{{}}}", n + 1)));
                    match rng.below(10) {
                        0..=2 => drop(ticket),
                        3 => drop(ticket.wait_for(Duration::from_micros(rng.below(300) as u64))),
                        4 => service.clear(),
                        5 => service.tidy(),
                        6 => assert!(client.compile(&Constraint::regex(format!("({n}"))).is_err()),
                        _ => {
                            let handle = ticket.wait().expect("it compiles");
                            check_digits(&mut handle.matcher(), n + 1);
                            served.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                }
            });
        }
    });
    assert!(served.load(Ordering::Relaxed) > 500);
    until("all work is done", || {
        let cache = service.statistics().cache;
        cache.queued == 0 && cache.running == 0
    });
    service.clear();
    let statistics = service.statistics();
    assert_eq!((statistics.cache.entries, statistics.cache.bytes), (0, 0));
    let misses = statistics.requests(Lookup::Miss);
    let ends: u64 = Outcome::ALL.iter().map(|outcome| statistics.compiles(*outcome)).sum();
    assert!(ends <= misses, "{ends} compiles for {misses} requests");
}

/// Exactly so many digits, and then the end.
fn check_digits(matcher: &mut maskwright::service::Matcher, digits: usize) {
    let mut mask = [0; 9];
    for _ in 0..digits {
        matcher.fill_mask(&mut mask).expect("room");
        assert_eq!(mask.iter().map(|word| word.count_ones()).sum::<u32>(), 10);
        matcher.accept(TokenId(u32::from(b'7'))).expect("a digit");
    }
    assert_eq!(matcher.status(), Status::Stopped);
    matcher.accept(TokenId(256)).expect("the end");
}

#[test]
fn matchers_count_what_they_do() {
    let (service, client) = service(Settings::default());
    let handle = client.compile(&Constraint::regex("[0-9]{40}")).expect("it compiles");
    let mut matcher = handle.matcher();
    let mut mask = [0; 9];
    for n in 0..40 {
        if n % 4 != 0 {
            matcher.fill_mask(&mut mask).expect("room");
        }
        matcher.accept(TokenId(u32::from(b'1'))).expect("a digit");
    }
    assert!(matcher.accept(TokenId(0)).is_err(), "a refused token does not count");
    let mut candidates: Vec<TokenId> = [b'1', b'a'].map(|byte| TokenId(u32::from(byte))).to_vec();
    candidates.push(TokenId(256));
    matcher.retain_allowed(&mut candidates).unwrap();
    assert_eq!(candidates, [TokenId(256)]);
    drop(matcher);
    let matching = service.statistics().matching;
    assert_eq!((matching.matchers, matching.masks, matching.tokens, matching.forced), (1, 30, 40, 10));
    assert_eq!(matching.mask_seconds.count(), 1);
    let report = handle.report();
    assert!(report.states > 0 && report.bytes > 0 && report.time > Duration::ZERO);
    let page = service.statistics().to_prometheus(&[]);
    assert!(page.contains("maskwright_masks_total 30\n"), "{page}");
}
