//! The library's side of the bridge: C functions over a [`Peer`].
//!
//! All `unsafe` of the libraries is here. The contract with the host (`mwbench::engines::peer`) is that handles
//! come back only to the table that made them, that sessions end before their constraint is dropped, and that an
//! engine is never dropped.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::{
    Complain, Handle, Kind, Peer, RawVocabulary, Session, Slice, Source, Table, VERSION, Vocabulary, memory,
};

/// Exports `$peer` as the engine of this library and counts the library's memory.
#[macro_export]
macro_rules! export_peer {
    ($peer:ty) => {
        #[global_allocator]
        static ALLOCATOR: $crate::memory::Counting = $crate::memory::Counting(::std::alloc::System);

        static TABLE: $crate::Table = $crate::Exported::<$peer>::TABLE;

        #[unsafe(no_mangle)]
        pub extern "C" fn mwbench_peer() -> *const $crate::Table {
            $crate::quiet_panics();
            &TABLE
        }
    };
}

/// Panics of a peer are counted and reported by the harness; their default message would only tear the progress bar.
pub fn quiet_panics() {
    std::panic::set_hook(Box::new(|_| ()));
}

/// The functions of one peer; see [`export_peer!`].
#[derive(Debug)]
pub struct Exported<P>(std::marker::PhantomData<P>);

impl<P: Peer> Exported<P> {
    pub const TABLE: Table = Table {
        version: VERSION,
        end_in_mask: P::END_IN_MASK,
        name: Slice { data: P::NAME.as_ptr(), len: P::NAME.len() },
        release: Slice { data: P::RELEASE.as_ptr(), len: P::RELEASE.len() },
        open: Self::open,
        compile: Self::compile,
        start: Self::start,
        fill: Self::fill,
        accept: Self::accept,
        mask: Self::mask,
        accepting: Self::accepting,
        end_session: Self::end_session,
        drop_compiled: Self::drop_compiled,
        live_bytes: Self::live_bytes,
    };

    unsafe extern "C" fn open(raw: *const RawVocabulary, complain: Complain, context: Handle) -> Handle {
        answer(complain, context, || {
            // SAFETY: the host passes a live vocabulary for the length of this call.
            let (path, tokens, end) = unsafe { read_vocabulary(&*raw) };
            P::open(&Vocabulary { path: &path, tokens: &tokens, end: &end })
        })
    }

    unsafe extern "C" fn compile(
        engine: Handle,
        kind: u32,
        text: Slice,
        complain: Complain,
        context: Handle,
    ) -> Handle {
        answer(complain, context, || {
            // SAFETY: `engine` is what `open` returned, and the text is alive for this call.
            let (engine, text) = unsafe { (&*engine.cast::<P>(), text.as_bytes()) };
            let text = std::str::from_utf8(text).map_err(|error| error.to_string())?;
            engine.compile(Source { kind: Kind::try_from(kind)?, text })
        })
    }

    unsafe extern "C" fn start(
        engine: Handle,
        compiled: Handle,
        complain: Complain,
        context: Handle,
    ) -> Handle {
        answer(complain, context, || {
            // SAFETY: both handles are ours and outlive the session, see the module's contract.
            let (engine, compiled) = unsafe { (&*engine.cast::<P>(), &*compiled.cast::<P::Compiled>()) };
            engine.start(compiled)
        })
    }

    unsafe extern "C" fn fill(session: Handle, words: *mut u32, len: usize) -> bool {
        // SAFETY: the session is ours, and the host owns the words during the call.
        let (session, mask) = unsafe { (Self::session(session), std::slice::from_raw_parts_mut(words, len)) };
        guard(|| session.fill(mask))
    }

    unsafe extern "C" fn mask(session: Handle, row: *mut u32, len: usize, found: *mut usize) -> *const u32 {
        // SAFETY: the session is ours, and the host owns the row and the number during the call.
        let (session, row, found) =
            unsafe { (Self::session(session), std::slice::from_raw_parts_mut(row, len), &mut *found) };
        let mut words = std::ptr::null();
        guard(|| {
            let Some(mask) = session.mask(row) else { return false };
            (words, *found) = (mask.as_ptr(), mask.len());
            true
        });
        words
    }

    unsafe extern "C" fn accept(session: Handle, token: u32) -> bool {
        // SAFETY: the session is ours.
        let session = unsafe { Self::session(session) };
        guard(|| session.accept(token))
    }

    unsafe extern "C" fn accepting(session: Handle) -> bool {
        // SAFETY: the session is ours.
        let session = unsafe { Self::session(session) };
        guard(|| session.accepting())
    }

    unsafe extern "C" fn end_session(session: Handle) {
        // SAFETY: the session is ours and is not used again.
        guard(|| drop(unsafe { Box::from_raw(session.cast::<P::Session<'_>>()) }));
    }

    unsafe extern "C" fn drop_compiled(compiled: Handle) {
        // SAFETY: the handle is ours, is not used again, and its sessions have ended.
        guard(|| drop(unsafe { Box::from_raw(compiled.cast::<P::Compiled>()) }));
    }

    unsafe extern "C" fn live_bytes() -> i64 {
        memory::live_bytes()
    }

    unsafe fn session<'a>(session: Handle) -> &'a mut P::Session<'static> {
        // SAFETY: `start` made it, and the host calls from one place at a time.
        unsafe { &mut *session.cast::<P::Session<'static>>() }
    }
}

/// Runs `make`, boxes what it returns, or complains and returns null.
fn answer<T>(complain: Complain, context: Handle, make: impl FnOnce() -> Result<T, String>) -> Handle {
    let message = match catch_unwind(AssertUnwindSafe(make)) {
        Ok(Ok(value)) => return Box::into_raw(Box::new(value)).cast(),
        Ok(Err(message)) => message,
        Err(panic) => format!("panicked: {}", panic_text(panic.as_ref())),
    };
    // SAFETY: the host's function takes a message that is alive during the call.
    unsafe { complain(context, Slice::new(message.as_bytes())) };
    std::ptr::null_mut()
}

/// Runs a timed call; a panic counts as failure.
fn guard<T: Default>(call: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_default()
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    match panic.downcast_ref::<String>() {
        Some(text) => text,
        None => panic.downcast_ref::<&str>().copied().unwrap_or("without a message"),
    }
}

/// # Safety
/// Every pointer in `raw` must be alive for the call.
unsafe fn read_vocabulary(raw: &RawVocabulary) -> (String, Vec<Vec<u8>>, Vec<u32>) {
    // SAFETY: the caller upholds the contract above.
    unsafe {
        let tokens = std::slice::from_raw_parts(raw.tokens, raw.token_count);
        let end = std::slice::from_raw_parts(raw.end, raw.end_count);
        (
            String::from_utf8_lossy(raw.path.as_bytes()).into_owned(),
            tokens.iter().map(|token| token.as_bytes().to_vec()).collect(),
            end.to_vec(),
        )
    }
}
