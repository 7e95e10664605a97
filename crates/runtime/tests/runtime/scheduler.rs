//! The scheduler, with a fake model.

use std::sync::{Arc, Mutex, mpsc};

use maskwright::{Compiler, Constraint};
use maskwright_runtime::{
    Event, Failure, Guide, GuideError, MatcherGuide, Reason, Request, Sampling, Scheduler, SubmitError,
    Unkept, Usage, What,
    scheduler::{Options, Sink, Stream},
};
use maskwright_vocab::TokenId;

use crate::fake::{END, Fake, Log, WORDS, bytes, vocabulary};

/// An answer, put together from its events.
#[derive(Debug, Clone, Default, PartialEq)]
struct Told {
    text: String,
    tokens: Vec<u32>,
    forced: usize,
    end: Option<Result<Reason, Failure>>,
    usage: Usage,
}

fn listen(stream: impl IntoIterator<Item = Event>, answers: usize) -> Vec<Told> {
    let mut all = vec![Told::default(); answers];
    for event in stream {
        let told = &mut all[event.answer];
        assert_eq!(told.end, None, "something came behind the end");
        match event.what {
            What::More { tokens, text } => {
                told.tokens.extend(tokens.iter().map(|one| one.token.0));
                told.forced += tokens.iter().filter(|one| one.is_forced).count();
                told.text += &text;
            }
            What::Finished { text, reason, usage } => {
                told.text += &text;
                told.usage = usage;
                told.end = Some(Ok(reason));
            }
            What::Failed(failure) => told.end = Some(Err(failure)),
        }
    }
    all
}

fn one(stream: Stream) -> Told {
    listen(stream, 1).remove(0)
}

fn start(fake: Fake, options: Options) -> (Scheduler, Arc<Mutex<Log>>) {
    let log = fake.log.clone();
    (Scheduler::start(Box::new(fake), vocabulary(), options), log)
}

/// A prompt that is continued by chance, with a seed and a length of its own.
fn random(seed: u64) -> Request {
    let mut prompt = vec![TokenId(1)];
    prompt.extend(bytes(&format!("prompt number {}", seed % 5)));
    let mut request = Request::new(prompt);
    request.sampling = Sampling {
        seed: Some(seed),
        top_k: 30,
        repetition_penalty: 1.2,
        logit_bias: vec![(END, -100.0)],
        ..Sampling::default()
    };
    request.max_tokens = Some(3 + seed as usize * 7 % 40);
    request
}

/// A fake that says this, and the prompt that makes it.
fn dictated(text: &[TokenId]) -> (Fake, Request) {
    let prompt = vec![TokenId(2), TokenId(3)];
    let fake = Fake { dictation: text.to_vec(), prompt: prompt.len(), ..Fake::default() };
    let mut request = Request::new(prompt);
    request.sampling = Sampling::greedy();
    (fake, request)
}

#[test]
fn a_batch_of_many_equals_one_after_the_other() {
    let alone = Options { max_batch: 1, kept_texts: 0, ..Options::default() };
    let (scheduler, log) = start(Fake::default(), alone);
    let expected: Vec<Told> = (0..30).map(|seed| one(scheduler.stream(random(seed)).unwrap())).collect();
    assert_eq!(log.lock().unwrap().widest, 1);
    assert!(expected.iter().any(|told| told.text != expected[0].text));
    for options in [
        Options { max_batch: 4, kept_texts: 0, ..Options::default() },
        Options { max_batch: 7, prefill: 5, prefill_beside: 2, ..Options::default() },
        Options { max_batch: 30, kept_texts: 3, kept_tokens: 90, ..Options::default() },
    ] {
        let (scheduler, log) = start(Fake::default(), options.clone());
        let streams: Vec<Stream> = (0..30).map(|seed| scheduler.stream(random(seed)).unwrap()).collect();
        for (stream, expected) in streams.into_iter().zip(&expected) {
            let told = one(stream);
            assert_eq!(
                (&told.text, &told.tokens, &told.end),
                (&expected.text, &expected.tokens, &expected.end)
            );
        }
        let widest = log.lock().unwrap().widest;
        assert!((2..=options.max_batch).contains(&widest), "{widest}, {options:?}");
        scheduler.finish();
    }
}

#[test]
fn beginnings_are_read_once() {
    let (scheduler, log) = start(Fake::default(), Options::default());
    let mut request = random(1);
    request.max_tokens = Some(10);
    let prompt = request.prompt.len();
    let first = one(scheduler.stream(request).unwrap());
    assert_eq!(first.usage.reused_tokens, 0);
    let fed = log.lock().unwrap().fed;
    // The same again: all but the last token of the prompt is known.
    let mut request = random(1);
    request.max_tokens = Some(10);
    let second = one(scheduler.stream(request).unwrap());
    assert_eq!((second.usage.reused_tokens, second.usage.prompt_tokens), (prompt - 1, prompt));
    assert_eq!((&first.text, &first.end), (&second.text, &second.end));
    assert_eq!(log.lock().unwrap().fed - fed, 10);
    // A longer conversation: the first answer is a part of the next prompt.
    let mut request = random(1);
    request.prompt.extend(first.tokens.iter().map(|&id| TokenId(id)));
    request.prompt.extend(bytes("and then?"));
    let third = one(scheduler.stream(request).unwrap());
    // The last token of an answer is not read by the model.
    assert_eq!(third.usage.reused_tokens, prompt + first.tokens.len() - 1);
    assert_eq!(scheduler.statistics().reused_tokens as usize, 2 * prompt - 2 + first.tokens.len());
}

#[test]
fn several_answers_read_their_prompt_once() {
    let (scheduler, log) = start(Fake::default(), Options::default());
    let mut request = random(11);
    let single = one(scheduler.stream(random(11)).unwrap());
    let before = log.lock().unwrap().fed;
    request.answers = 5;
    request.prompt.insert(1, TokenId(9));
    let told = listen(scheduler.stream(request).unwrap(), 5);
    assert!(
        told.iter()
            .all(|told| told.end == Some(Ok(Reason::Length)) && told.tokens.len() == single.tokens.len())
    );
    assert!((1..5).all(|at| told[at].text != told[0].text), "{told:?}");
    let prompt = told[0].usage.prompt_tokens - told[0].usage.reused_tokens;
    assert_eq!(log.lock().unwrap().fed - before, prompt + 5 * (single.tokens.len() - 1));
    // The first of several is the one that a single request gets.
    let mut request = random(11);
    request.answers = 3;
    assert_eq!(listen(scheduler.stream(request).unwrap(), 3)[0].text, single.text);
}

#[test]
fn the_end_token_ends_and_characters_stay_whole() {
    let mut text = bytes("Grüße 😀");
    text.push(TokenId(0xC3));
    let (fake, request) = dictated(&text);
    let (scheduler, _) = start(fake, Options::default());
    let events: Vec<Event> = scheduler.stream(request).unwrap().collect();
    for event in &events {
        if let What::More { text, .. } = &event.what {
            assert!(!text.contains('\u{FFFD}'));
        }
    }
    let told = listen(events, 1).remove(0);
    assert_eq!((&*told.text, told.end), ("Grüße 😀\u{FFFD}", Some(Ok(Reason::Stop))));
    assert_eq!(told.usage.answer_tokens, text.len());
}

#[test]
fn stop_strings_and_stop_tokens() {
    let (_, and) = WORDS[1];
    let mut text = bytes("one two");
    text.push(TokenId(257));
    text.extend(bytes(" three"));
    let (fake, request) = dictated(&text);
    let (scheduler, _) = start(fake, Options::default());
    let ask = |stop: &[&str], tokens: &[u32]| {
        let mut request = Request::new(request.prompt.clone());
        request.sampling = Sampling::greedy();
        request.stop = stop.iter().map(|&stop| stop.to_owned()).collect();
        request.stop_tokens = tokens.iter().copied().map(TokenId).collect();
        let told = one(scheduler.stream(request).unwrap());
        assert_eq!(told.end, Some(Ok(Reason::Stop)));
        told.text
    };
    assert_eq!(ask(&[], &[]), format!("one two{and} three"));
    assert_eq!(ask(&["o and t"], &[]), "one tw");
    assert_eq!(ask(&["xyz", "nd th", " three"], &[]), "one two a");
    assert_eq!(ask(&["three!"], &[]), format!("one two{and} three"));
    assert_eq!(ask(&["one"], &[]), "");
    assert_eq!(ask(&[], &[257]), "one two");
}

/// Under a constraint a stop string or a stop token ends an answer where it is complete, and is a part of it elsewhere.
#[test]
fn a_stop_ends_a_constrained_answer_only_where_it_is_complete() {
    let compiler = Compiler::new(vocabulary());
    let ask = |text: &str, pattern: &str, stop: &[&str], tokens: &[u32], answers: usize| {
        let (fake, mut request) = dictated(&bytes(text));
        let (scheduler, _) = start(fake, Options::default());
        let compiled = compiler.compile(&Constraint::regex(pattern)).unwrap();
        request.guide = Some(Box::new(MatcherGuide::new(compiled.matcher())));
        request.stop = stop.iter().map(|&stop| stop.to_owned()).collect();
        request.stop_tokens = tokens.iter().copied().map(TokenId).collect();
        request.answers = answers;
        request.max_tokens = Some(50);
        let told = listen(scheduler.stream(request).unwrap(), answers);
        assert!(
            told.iter().all(|one| one.text == told[0].text && one.end == Some(Ok(Reason::Stop))),
            "{told:?}"
        );
        told[0].text.clone()
    };
    let list = r"\{[a-z]+(, [a-z]+)*\}( [a-z]+)*";
    // In the braces it is text, and behind them it is the end.
    for answers in [1, 3] {
        assert_eq!(ask("{a, stop, b} more stop x", list, &[" stop"], &[], answers), "{a, stop, b} more");
        assert_eq!(ask("{a, b} c d", list, &["b} c"], &[], answers), "{a, b} c d");
        // Of two that end at one place the longer one begins where the text is not complete.
        assert_eq!(ask("{a, b} c d", list, &["} c", " c"], &[], answers), "{a, b}");
    }
    // What is held back because it may be a stop string is told at the end.
    assert_eq!(ask("{a, sto}", list, &["sto}p"], &[], 1), "{a, sto}");
    // A stop string of many tokens, and a text in which it begins many times.
    assert_eq!(ask("{aaaaaaaaaab} aaaab c", list, &[" aaaab", "aaaab"], &[], 1), "{aaaaaaaaaab}");
    let b = u32::from(b'b');
    assert_eq!(ask("{a, b} a b", list, &[], &[b], 1), "{a, b} a b");
    assert_eq!(ask("{a, b} a bc", r"\{[a-z, ]+\}[a-z ]*", &[], &[b], 1), "{a, b} a ");
}

#[test]
fn an_answer_says_whether_it_was_squeezed() {
    let compiler = Compiler::new(vocabulary());
    let compiled = compiler.compile(&Constraint::regex("[a-z]+;")).unwrap();
    let ask = |text: &str, tokens: usize| {
        let (fake, mut request) = dictated(&bytes(text));
        let (scheduler, _) = start(fake, Options::default());
        let mut guide = MatcherGuide::new(compiled.matcher());
        guide.set_budget(tokens).unwrap();
        request.guide = Some(Box::new(guide));
        request.max_tokens = Some(tokens);
        let told = one(scheduler.stream(request).unwrap());
        assert_eq!(told.end, Some(Ok(Reason::Stop)));
        (told.text, told.usage.is_squeezed)
    };
    assert_eq!(ask("abc;", 20), ("abc;".into(), false));
    assert_eq!(ask("abcdefgh;", 6), ("abcd;".into(), true));
    let mut guide = MatcherGuide::new(compiled.matcher());
    assert_eq!(guide.set_budget(2), Err(Unkept::TooSmall { tokens: 2, need: 3 }));
}

/// Notes who ends.
struct Order(u8, Arc<Mutex<Vec<u8>>>, mpsc::Sender<()>);

impl Sink for Order {
    fn send(&mut self, event: Event) {
        if matches!(event.what, What::Finished { .. }) {
            self.1.lock().unwrap().push(self.0);
            let _ = self.2.send(());
        }
    }

    fn is_closed(&self) -> bool {
        false
    }
}

#[test]
fn a_long_prompt_keeps_no_short_one_waiting() {
    let (permit, gate) = mpsc::channel();
    let fake = Fake { gate: Some(gate), context: Some(2000), ..Fake::default() };
    let (scheduler, log) = start(fake, Options { kept_texts: 0, ..Options::default() });
    let ended = Arc::new(Mutex::new(Vec::new()));
    let (done, ends) = mpsc::channel();
    let prompt = |length: usize, first: u8| {
        let mut prompt = vec![TokenId(1)];
        prompt.extend((0..length).map(|at| TokenId(u32::from(first) + at as u32 % 7)));
        prompt
    };
    for (number, length, tokens) in [(0, 1500, 1), (1, 20, 5), (2, 100, 2)] {
        let mut request = Request::new(prompt(length, 50 + 20 * number));
        request.sampling = Sampling { seed: Some(1), logit_bias: vec![(END, -100.0)], ..Sampling::default() };
        request.max_tokens = Some(tokens);
        scheduler.submit(request, Box::new(Order(number, ended.clone(), done.clone()))).unwrap();
    }
    drop(permit);
    for _ in 0..3 {
        ends.recv_timeout(std::time::Duration::from_secs(60)).expect("all come to an end");
    }
    // The one that came first has the most to read.
    assert_eq!(ended.lock().unwrap().last(), Some(&0));
    // Beside others a prompt is read in pieces.
    assert!(log.lock().unwrap().longest <= Options::default().prefill);
}

#[test]
fn who_leaves_makes_room_at_once() {
    let (permit, gate) = mpsc::channel();
    let fake = Fake { gate: Some(gate), ..Fake::default() };
    let (scheduler, log) = start(fake, Options { max_batch: 1, kept_texts: 0, ..Options::default() });
    let endless = || Request { max_tokens: None, sampling: Sampling::greedy(), ..random(3) };
    let mut first = scheduler.stream(endless()).unwrap();
    permit.send(()).unwrap();
    assert!(first.next().is_some());
    let second = scheduler.stream(endless()).unwrap();
    let mut third = scheduler.stream(random(4)).unwrap();
    // One leaves while it is written, one while it waits.
    drop(first);
    drop(second);
    // The step that was under way still ends; then the third is alone.
    permit.send(()).unwrap();
    permit.send(()).unwrap();
    assert!(third.next().is_some());
    assert_eq!((scheduler.statistics().waiting, log.lock().unwrap().open), (0, 1));
    drop(permit);
    assert_eq!(one(third).end, Some(Ok(Reason::Length)));
}

#[test]
fn a_full_queue_says_so() {
    let (permit, gate) = mpsc::channel();
    let fake = Fake { gate: Some(gate), ..Fake::default() };
    let (scheduler, _) = start(fake, Options { max_batch: 1, max_queue: 2, ..Options::default() });
    let mut streams = vec![scheduler.stream(random(0)).unwrap()];
    permit.send(()).unwrap();
    assert!(streams[0].next().is_some());
    streams.extend((1..3).map(|seed| scheduler.stream(random(seed)).unwrap()));
    assert_eq!(scheduler.stream(random(3)).err(), Some(SubmitError::Busy { limit: 2 }));
    drop(permit);
    let ends: Vec<_> = streams.into_iter().map(|stream| one(stream).end).collect();
    assert!(ends.iter().all(|end| *end == Some(Ok(Reason::Length))));
    assert_eq!(one(scheduler.stream(random(3)).unwrap()).end, Some(Ok(Reason::Length)));
}

#[test]
fn senseless_requests_are_refused_by_field() {
    let (scheduler, log) = start(Fake::default(), Options::default());
    let check = |field: &str, change: &dyn Fn(&mut Request)| {
        let mut request = random(1);
        change(&mut request);
        match scheduler.stream(request) {
            Err(SubmitError::Invalid { field: named, problem }) => {
                assert_eq!(named, field);
                assert!(problem.contains(' '), "{problem}");
            }
            other => panic!("{field}: {other:?}"),
        }
    };
    check("prompt", &|request| request.prompt.clear());
    check("prompt", &|request| request.prompt = vec![TokenId(1); 200]);
    check("prompt", &|request| request.prompt.push(TokenId(260)));
    check("max_tokens", &|request| request.max_tokens = Some(0));
    check("n", &|request| request.answers = 0);
    check("n", &|request| request.answers = 17);
    check("stop", &|request| request.stop = vec![String::new()]);
    check("stop_token_ids", &|request| request.stop_tokens = vec![TokenId(u32::MAX)]);
    check("temperature", &|request| request.sampling.temperature = -1.0);
    check("logit_bias", &|request| request.sampling.logit_bias = vec![(TokenId(260), 1.0)]);
    assert_eq!(log.lock().unwrap().steps, 0);
}

#[test]
fn an_answer_ends_where_the_context_does() {
    let (scheduler, _) = start(Fake::default(), Options::default());
    let mut request = random(1);
    request.max_tokens = None;
    request.sampling = Sampling { logit_bias: vec![(END, -100.0)], ..Sampling::greedy() };
    let told = one(scheduler.stream(request).unwrap());
    assert_eq!(
        (told.usage.prompt_tokens + told.usage.answer_tokens, told.end),
        (200, Some(Ok(Reason::Length)))
    );
}

type Check<'c> = &'c dyn Fn(&Failure) -> bool;

/// A guide that dictates, gives alternatives on the way, forces what it is told to, and breaks where it is told to.
#[derive(Debug, Clone)]
struct Script {
    text: Vec<TokenId>,
    at: usize,
    forces: bool,
    breaks: Break,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Break {
    Never,
    FillFails(usize),
    FillPanics(usize),
    AcceptPanics(usize),
    AcceptFails(usize),
    NoToken(usize),
}

impl Script {
    fn new(text: &str) -> Self {
        Self { text: bytes(text), at: 0, forces: false, breaks: Break::Never }
    }
}

impl Guide for Script {
    fn fill(&mut self, words: &mut [u32]) -> Result<(), GuideError> {
        words.fill(0);
        assert_ne!(self.breaks, Break::FillPanics(self.at), "a guide that panics");
        if self.breaks == Break::FillFails(self.at) {
            return Err(GuideError::Failed("a guide that fails".into()));
        }
        if self.breaks == Break::NoToken(self.at) {
            return Ok(());
        }
        let token = self.text[self.at];
        words[token.index() / 32] |= 1 << (token.0 % 32);
        Ok(())
    }

    fn accept(&mut self, token: TokenId) -> Result<(), GuideError> {
        assert_ne!(self.breaks, Break::AcceptPanics(self.at), "a guide that panics");
        if self.breaks == Break::AcceptFails(self.at) || self.text.get(self.at) != Some(&token) {
            return Err(GuideError::Failed("a guide that fails".into()));
        }
        self.at += 1;
        Ok(())
    }

    fn is_finished(&mut self) -> Result<bool, GuideError> {
        Ok(self.at == self.text.len())
    }

    /// Up to the next vowel.
    fn forced(&mut self, before: &[TokenId]) -> Result<Vec<TokenId>, GuideError> {
        assert!(before.ends_with(&self.text[..self.at]));
        let rest = &self.text[self.at..];
        let count = rest.iter().take_while(|token| !b"aeiou".contains(&(token.0 as u8))).count();
        Ok(if self.forces { rest[..count].to_vec() } else { Vec::new() })
    }

    fn fork(&self) -> Box<dyn Guide> {
        Box::new(self.clone())
    }
}

#[test]
fn guides_are_followed_to_their_end() {
    let (scheduler, _) = start(Fake::default(), Options::default());
    let mut request = random(1);
    request.max_tokens = None;
    request.guide = Some(Box::new(Script::new("a constraint")));
    request.answers = 3;
    for told in listen(scheduler.stream(request).unwrap(), 3) {
        assert_eq!((&*told.text, told.end), ("a constraint", Some(Ok(Reason::Stop))));
        assert_eq!((told.usage.masks, told.forced), (12, 0));
    }
    let mut request = random(1);
    request.max_tokens = Some(4);
    request.guide = Some(Box::new(Script::new("a constraint")));
    let told = one(scheduler.stream(request).unwrap());
    assert_eq!((&*told.text, told.end), ("a co", Some(Ok(Reason::Length))));
    assert_eq!(one(scheduler.stream(random(1)).unwrap()).usage.masks, 0);
}

#[test]
fn forced_tokens_are_fed_at_once_and_change_nothing() {
    let text = "instructions for strengths";
    let mut steps = Vec::new();
    for jump_forward in [false, true] {
        let (scheduler, log) = start(Fake::default(), Options { jump_forward, ..Options::default() });
        let mut request = random(2);
        request.max_tokens = None;
        request.guide = Some(Box::new(Script { forces: true, ..Script::new(text) }));
        let told = one(scheduler.stream(request).unwrap());
        assert_eq!((&*told.text, told.end), (text, Some(Ok(Reason::Stop))));
        let vowels = text.bytes().filter(|byte| b"aeiou".contains(byte)).count();
        let expected = if jump_forward { text.len() - vowels } else { 0 };
        assert_eq!((told.forced, told.usage.forced_tokens), (expected, expected));
        assert_eq!(told.usage.masks, text.len() - expected);
        steps.push(log.lock().unwrap().steps);
    }
    assert!(steps[1] * 3 < steps[0], "{steps:?}");
    // A limit may fall into what is forced.
    let (scheduler, _) = start(Fake::default(), Options::default());
    let mut request = random(2);
    request.max_tokens = Some(4);
    request.guide = Some(Box::new(Script { forces: true, ..Script::new(text) }));
    let told = one(scheduler.stream(request).unwrap());
    assert_eq!((&*told.text, told.end), ("inst", Some(Ok(Reason::Length))));
}

#[test]
fn what_breaks_in_one_request_breaks_no_other() {
    let (permit, gate) = mpsc::channel();
    let fake = Fake { gate: Some(gate), ..Fake::default() };
    let (scheduler, _) = start(fake, Options::default());
    let good: Vec<Stream> = (0..3).map(|seed| scheduler.stream(random(seed)).unwrap()).collect();
    let internal =
        |end: &Failure| matches!(end, Failure::Internal(text) if text.contains("a guide that panics"));
    let gave_up = |end: &Failure| matches!(end, Failure::Guide(text) if text.contains("a guide that fails"));
    let no_token = |end: &Failure| *end == Failure::NoToken;
    let cases: [(Break, Check<'_>); 6] = [
        (Break::FillPanics(0), &internal),
        (Break::FillPanics(3), &internal),
        (Break::AcceptPanics(2), &internal),
        (Break::FillFails(1), &gave_up),
        (Break::AcceptFails(1), &gave_up),
        (Break::NoToken(2), &no_token),
    ];
    let bad: Vec<Stream> = cases
        .iter()
        .map(|(breaks, _)| {
            let guide = Script { breaks: *breaks, ..Script::new("broken") };
            scheduler.stream(Request { guide: Some(Box::new(guide)), max_tokens: None, ..random(9) }).unwrap()
        })
        .collect();
    drop(permit);
    for (stream, (breaks, expected)) in bad.into_iter().zip(cases) {
        let told = one(stream);
        let at = match breaks {
            Break::FillFails(at) | Break::FillPanics(at) | Break::NoToken(at) => at,
            Break::AcceptPanics(at) | Break::AcceptFails(at) => at,
            Break::Never => "broken".len(),
        };
        assert_eq!(told.text, "broken"[..at], "{breaks:?}");
        assert!(
            told.end.as_ref().is_some_and(|end| end.as_ref().is_err_and(expected)),
            "{breaks:?}: {told:?}"
        );
    }
    let (alone, _) = start(Fake::default(), Options::default());
    for (seed, stream) in (0..).zip(good) {
        let expected = one(alone.stream(random(seed)).unwrap());
        let told = one(stream);
        assert_eq!((told.text, told.end), (expected.text, expected.end));
    }
    let mut several = random(9);
    several.answers = 2;
    several.guide = Some(Box::new(Script { breaks: Break::FillFails(0), ..Script::new("broken") }));
    assert!(
        listen(scheduler.stream(several).unwrap(), 2).iter().all(|told| matches!(told.end, Some(Err(_))))
    );
}

#[test]
fn a_model_that_panics_goes_on_with_the_next() {
    let fake = Fake { poison: Some(TokenId(77)), ..Fake::default() };
    let (scheduler, _) = start(fake, Options::default());
    let mut request = random(1);
    request.prompt.push(TokenId(77));
    assert!(matches!(one(scheduler.stream(request).unwrap()).end, Some(Err(Failure::Internal(_)))));
    assert_eq!(
        one(scheduler.stream(Request { max_tokens: Some(3), ..random(1) }).unwrap()).end,
        Some(Ok(Reason::Length))
    );
}

#[test]
fn the_end_of_a_scheduler() {
    let (permit, gate) = mpsc::channel();
    let fake = Fake { gate: Some(gate), ..Fake::default() };
    let (scheduler, _) = start(fake, Options { max_batch: 1, ..Options::default() });
    let streams: Vec<Stream> = (0..3).map(|seed| scheduler.stream(random(seed)).unwrap()).collect();
    // It finishes what it has taken.
    drop(permit);
    scheduler.finish();
    assert!(streams.into_iter().all(|stream| one(stream).end == Some(Ok(Reason::Length))));
    // Or it is dropped. The texts have no end of their own before that.
    let (permit, gate) = mpsc::channel();
    let fake = Fake { gate: Some(gate), context: Some(1_000_000), ..Fake::default() };
    let (scheduler, _) = start(fake, Options { max_batch: 1, ..Options::default() });
    let streams: Vec<Stream> =
        (0..3).map(|_| scheduler.stream(Request { max_tokens: None, ..random(1) }).unwrap()).collect();
    for _ in 0..3 {
        permit.send(()).unwrap();
    }
    let dropping = std::thread::spawn(move || drop(scheduler));
    let mut streams = streams.into_iter();
    // The first one is let go on until it is told.
    let mut first = streams.next().unwrap();
    let last = loop {
        let _ = permit.send(());
        match first.next() {
            Some(Event { what: What::More { .. }, .. }) => {}
            other => break other,
        }
    };
    assert_eq!(last.map(|event| event.what), Some(What::Failed(Failure::Stopped)));
    dropping.join().unwrap();
    assert!(streams.all(|stream| one(stream).end == Some(Err(Failure::Stopped))));
}

/// A model with so much room, and a gate that is closed until all requests are there.
fn narrow(room: (usize, usize)) -> (Fake, mpsc::Sender<()>) {
    let (permits, gate) = mpsc::channel();
    (Fake { room: Some(room), gate: Some(gate), ..Fake::default() }, permits)
}

#[test]
fn texts_that_are_only_kept_make_room() {
    let (free, _) = start(Fake::default(), Options::default());
    let expected: Vec<Told> = (0..8).map(|seed| one(free.stream(random(seed)).unwrap())).collect();
    // Each text has at most 16 tokens of prompt and 42 of answer, so that two do not fit; or there is a place for one text alone.
    for room in [(60, 16), (1000, 1), (1000, 2)] {
        let (narrow, log) = start(Fake { room: Some(room), ..Fake::default() }, Options::default());
        for (seed, expected) in expected.iter().enumerate() {
            let told = one(narrow.stream(random(seed as u64)).unwrap());
            assert_eq!((&told.tokens, &told.end), (&expected.tokens, &expected.end), "{room:?}");
        }
        narrow.finish();
        assert!(log.lock().unwrap().open <= room.1);
    }
}

#[test]
fn a_model_without_room_ends_the_last_request_alone() {
    for room in [(110, 16), (1000, 2)] {
        let (fake, permits) = narrow(room);
        let (scheduler, _) = start(fake, Options::default());
        // Texts of 56 tokens and of different beginnings, so that two of them go to the end.
        let request = |first: &str| {
            let mut request = random(0);
            request.prompt = bytes(first);
            request.prompt.insert(0, TokenId(1));
            request.max_tokens = Some(50);
            request
        };
        let streams = ["first", "other", "third"].map(|text| scheduler.stream(request(text)).unwrap());
        drop(permits);
        let [first, other, third] = streams.map(one);
        assert_eq!((first.end, other.end), (Some(Ok(Reason::Length)), Some(Ok(Reason::Length))), "{room:?}");
        let Some(Err(Failure::Model(reason))) = third.end else { panic!("{room:?}: {:?}", third.end) };
        assert!(reason.contains("try again later"), "{reason}");
        // There is room again.
        assert_eq!(one(scheduler.stream(request("third")).unwrap()).end, Some(Ok(Reason::Length)));
    }
}

#[test]
fn answers_that_do_not_all_fit_leave_nothing_behind() {
    let (scheduler, log) = start(Fake { room: Some((1000, 3)), ..Fake::default() }, Options::default());
    let mut four = random(1);
    four.answers = 4;
    let told = listen(scheduler.stream(four).unwrap(), 4);
    assert!(matches!(told[0].end, Some(Err(Failure::Model(_)))), "{:?}", told[0].end);
    let mut three = random(2);
    three.answers = 3;
    let told = listen(scheduler.stream(three).unwrap(), 3);
    assert!(told.iter().all(|told| told.end == Some(Ok(Reason::Length))), "{told:?}");
    scheduler.finish();
    assert!(log.lock().unwrap().open <= 3);
}
