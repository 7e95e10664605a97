//! Constraints that take long, meet a limit, or are told to stop; and others that do not mind.

use std::{
    sync::{Arc, Mutex, PoisonError, mpsc},
    time::Duration,
};

use maskwright::{Compiler, Constraint, Limits, Options as Reading, must_stop};
use maskwright_runtime::{
    Event, Failure, Guide, GuideError, MatcherGuide, Reason, Request, Sampling, Scheduler, What,
    scheduler::{Options, Stream},
};
use maskwright_vocab::TokenId;

use crate::fake::{END, Fake, bytes, vocabulary};

/// How long a test waits before it calls something stuck.
const PATIENCE: Duration = Duration::from_secs(60);
/// More readings than there are steps.
const HOSTILE: &str = "root ::= r\nr ::= ([ab] (\"ba\" | r) (r | \"b\")){0,4}";

/// What a guide is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Call {
    Fill,
    Accept,
    Forced,
}

/// Where a guide stands still.
#[derive(Clone)]
enum Pause {
    /// Until it is let go on. Says when it has come there.
    Gate { call: Call, at: usize, there: mpsc::Sender<()>, go_on: Arc<Mutex<mpsc::Receiver<()>>> },
    /// Until it is told to stop. Says when it was.
    Endless { call: Call, there: mpsc::Sender<()>, ended: mpsc::Sender<()> },
    /// Now and then, for longer than others wait.
    Naps,
}

/// A guide that dictates a text.
#[derive(Clone)]
struct Dictator {
    text: Vec<TokenId>,
    at: usize,
    pause: Pause,
}

impl Dictator {
    fn new(text: &str, pause: Pause) -> Self {
        Self { text: bytes(text), at: 0, pause }
    }

    fn pause(&self, now: Call) -> Result<(), GuideError> {
        match &self.pause {
            Pause::Gate { call, at, there, go_on } if (*call, *at) == (now, self.at) => {
                there.send(()).unwrap();
                let go_on = go_on.lock().unwrap_or_else(PoisonError::into_inner);
                go_on.recv_timeout(PATIENCE).expect("it is let go on");
            }
            Pause::Endless { call, there, ended } if *call == now => {
                there.send(()).unwrap();
                while !must_stop() {
                    std::thread::yield_now();
                }
                ended.send(()).unwrap();
                return Err(GuideError::Cancelled);
            }
            Pause::Naps if (self.at * 7 + now as usize).is_multiple_of(5) => {
                std::thread::sleep(Duration::from_millis(25));
            }
            _ => {}
        }
        Ok(())
    }
}

impl Guide for Dictator {
    fn fill(&mut self, words: &mut [u32]) -> Result<(), GuideError> {
        self.pause(Call::Fill)?;
        words.fill(0);
        let token = self.text[self.at];
        words[token.index() / 32] |= 1 << (token.0 % 32);
        Ok(())
    }

    fn accept(&mut self, token: TokenId) -> Result<(), GuideError> {
        self.pause(Call::Accept)?;
        assert_eq!(self.text.get(self.at), Some(&token));
        self.at += 1;
        Ok(())
    }

    fn is_finished(&mut self) -> Result<bool, GuideError> {
        Ok(self.at == self.text.len())
    }

    /// Digits.
    fn forced(&mut self, before: &[TokenId]) -> Result<Vec<TokenId>, GuideError> {
        self.pause(Call::Forced)?;
        assert!(before.ends_with(&self.text[..self.at]));
        let rest = self.text[self.at..].iter();
        Ok(rest.take_while(|token| (token.0 as u8).is_ascii_digit()).copied().collect())
    }

    fn fork(&self) -> Box<dyn Guide> {
        Box::new(self.clone())
    }
}

fn start() -> Scheduler {
    Scheduler::start(Box::new(Fake::default()), vocabulary(), Options::default())
}

fn request(number: u8) -> Request {
    let mut request = Request::new(vec![TokenId(1), TokenId(u32::from(number))]);
    request.sampling =
        Sampling { seed: Some(u64::from(number)), logit_bias: vec![(END, -100.0)], ..Sampling::default() };
    request.max_tokens = Some(40);
    request
}

fn guided(number: u8, guide: impl Guide + 'static) -> Request {
    Request { guide: Some(Box::new(guide)), max_tokens: None, ..request(number) }
}

/// The text of an answer, and its end.
fn told(stream: impl IntoIterator<Item = Event>) -> (String, Option<Result<Reason, Failure>>) {
    let (mut all, mut end) = (String::new(), None);
    for event in stream {
        match event.what {
            What::More { text, .. } => all += &text,
            What::Finished { text, reason, .. } => {
                all += &text;
                end = Some(Ok(reason));
            }
            What::Failed(failure) => end = Some(Err(failure)),
        }
    }
    (all, end)
}

#[test]
fn who_is_late_keeps_nobody_waiting() {
    let text = "a 12 b 345";
    for (call, at) in [
        (Call::Fill, 0),
        (Call::Fill, 1),
        (Call::Fill, 5),
        (Call::Accept, 0),
        (Call::Accept, 3),
        (Call::Forced, 0),
        (Call::Forced, 2),
    ] {
        let scheduler = start();
        let (there, has_come) = mpsc::channel();
        let (go, go_on) = mpsc::channel();
        let pause = Pause::Gate { call, at, there, go_on: Arc::new(Mutex::new(go_on)) };
        let late = scheduler.stream(guided(9, Dictator::new(text, pause))).unwrap();
        has_come.recv_timeout(PATIENCE).expect("it comes to its gate");
        // Whole answers are written meanwhile, with guides and without.
        let others: Vec<Stream> = (0..3).map(|number| scheduler.stream(request(number)).unwrap()).collect();
        assert!(others.into_iter().all(|stream| told(stream).1 == Some(Ok(Reason::Length))));
        let quick = Dictator::new("quick 99", Pause::Naps);
        let quick = told(scheduler.stream(guided(8, quick)).unwrap());
        assert_eq!(quick, ("quick 99".into(), Some(Ok(Reason::Stop))));
        go.send(()).unwrap();
        assert_eq!(told(late), (text.into(), Some(Ok(Reason::Stop))), "{call:?} at {at}");
    }
}

#[test]
fn what_is_written_does_not_depend_on_how_long_it_took() {
    let scheduler = start();
    let texts: Vec<String> =
        (0..8).map(|number| format!("text {number} of 8, and {}", number * 37)).collect();
    let free: Vec<Stream> = (0..3).map(|number| scheduler.stream(request(number)).unwrap()).collect();
    let streams: Vec<Stream> = (10..)
        .zip(&texts)
        .map(|(number, text)| scheduler.stream(guided(number, Dictator::new(text, Pause::Naps))).unwrap())
        .collect();
    for (stream, text) in streams.into_iter().zip(&texts) {
        assert_eq!(told(stream), (text.clone(), Some(Ok(Reason::Stop))));
    }
    let alone = start();
    for (number, stream) in (0..).zip(free) {
        assert_eq!(told(stream), told(alone.stream(request(number)).unwrap()));
    }
    // Several answers to one prompt.
    let mut several = guided(30, Dictator::new("abc 1 d", Pause::Naps));
    several.answers = 3;
    let events: Vec<Event> = scheduler.stream(several).unwrap().collect();
    for number in 0..3 {
        let own = events.iter().filter(|event| event.answer == number).cloned();
        assert_eq!(told(own), ("abc 1 d".into(), Some(Ok(Reason::Stop))));
    }
}

/// A guide that never ends by itself, and what it says.
fn endless(call: Call) -> (Dictator, mpsc::Receiver<()>, mpsc::Receiver<()>) {
    let ((there, has_come), (ended, has_ended)) = (mpsc::channel(), mpsc::channel());
    (Dictator::new("12 ab", Pause::Endless { call, there, ended }), has_come, has_ended)
}

#[test]
fn who_leaves_ends_what_is_done_for_them() {
    for call in [Call::Fill, Call::Accept, Call::Forced] {
        let scheduler = start();
        let (guide, has_come, has_ended) = endless(call);
        let stream = scheduler.stream(guided(9, guide)).unwrap();
        has_come.recv_timeout(PATIENCE).expect("it begins");
        drop(stream);
        has_ended.recv_timeout(PATIENCE).expect("it is told to stop");
        assert_eq!(told(scheduler.stream(request(1)).unwrap()).1, Some(Ok(Reason::Length)));
    }
}

#[test]
fn the_end_of_a_scheduler_ends_what_is_done() {
    for call in [Call::Fill, Call::Accept, Call::Forced] {
        let scheduler = start();
        let (guide, has_come, has_ended) = endless(call);
        let stream = scheduler.stream(guided(9, guide)).unwrap();
        has_come.recv_timeout(PATIENCE).expect("it begins");
        drop(scheduler);
        has_ended.try_recv().expect("nothing goes on behind the end");
        assert_eq!(told(stream).1, Some(Err(Failure::Stopped)));
    }
}

#[test]
fn who_is_late_is_not_waited_for_in_a_hurry() {
    let scheduler = start();
    let (guide, has_come, has_ended) = endless(Call::Fill);
    let late = scheduler.stream(guided(9, guide)).unwrap();
    has_come.recv_timeout(PATIENCE).expect("it begins");
    let other = scheduler.stream(request(1)).unwrap();
    scheduler.hurry();
    assert_eq!(told(late).1, Some(Err(Failure::Stopped)));
    has_ended.recv_timeout(PATIENCE).expect("it is told to stop");
    assert_eq!(told(other).1, Some(Ok(Reason::Length)));
    scheduler.finish();
}

/// A guide for a constraint with so many steps for a mask.
fn limited(constraint: &Constraint, mask_steps: u64) -> MatcherGuide {
    let options = Reading { limits: limits(mask_steps), ..Reading::default() };
    let compiler = Compiler::with_options(vocabulary(), options);
    MatcherGuide::new(compiler.compile(constraint).unwrap().matcher())
}

fn limits(mask_steps: u64) -> Limits {
    let mut limits = Limits::default();
    limits.mask_steps = mask_steps;
    limits
}

#[test]
fn a_limit_ends_its_request_alone_and_says_its_name() {
    let scheduler = start();
    let hostile = Constraint::ebnf(HOSTILE);
    let bad = scheduler.stream(guided(9, limited(&hostile, 10))).unwrap();
    let mut several = guided(9, limited(&hostile, 10));
    several.answers = 3;
    let several = scheduler.stream(several).unwrap();
    let good = scheduler.stream(guided(7, limited(&Constraint::regex("[ab]{20}"), 1_000_000))).unwrap();
    let Some(Err(Failure::Limit(reason))) = told(bad).1 else { panic!("a limit") };
    for part in ["mask_steps", "10", "rule `r`", "less ambiguous"] {
        assert!(reason.contains(part), "{reason}");
    }
    let failed = several.filter(|event| matches!(event.what, What::Failed(Failure::Limit(_)))).count();
    assert_eq!(failed, 3);
    let (text, end) = told(good);
    assert_eq!((text.len(), end), (20, Some(Ok(Reason::Stop))));
}
