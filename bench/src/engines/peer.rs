//! The host side of the bridge to an engine in a shared library. See `mwbench_abi`.

use std::ffi::c_void;
use std::path::Path;

use libloading::{Library as SharedObject, Symbol};
use mwbench_abi::{ENTRY_SYMBOL, Handle, RawVocabulary, Session, Slice, Source, Table, VERSION, Vocabulary};

use super::{Compiled, Engine};

/// A loaded peer. The library and its engine are never unloaded: they live as long as the process.
pub struct Library {
    table: &'static Table,
    engine: Handle,
    name: String,
    release: String,
}

impl Library {
    pub fn open(name: &str, folder: &Path, vocabulary: &Vocabulary<'_>) -> Result<Library, String> {
        let table = load_table(name, folder)?;
        // SAFETY: the table's slices are constants of the library.
        let (name, release) = unsafe { (text(table.name), text(table.release)) };
        let tokens: Vec<Slice> = vocabulary.tokens.iter().map(|bytes| Slice::new(bytes)).collect();
        let raw = RawVocabulary {
            path: Slice::new(vocabulary.path.as_bytes()),
            tokens: tokens.as_ptr(),
            token_count: tokens.len(),
            end: vocabulary.end.as_ptr(),
            end_count: vocabulary.end.len(),
        };
        // SAFETY: `raw` and what it points to live until the call returns.
        let engine = made(|context| unsafe { (table.open)(&raw, note, context) })?;
        Ok(Library { table, engine, name, release })
    }
}

impl Engine for Library {
    fn name(&self) -> &str {
        &self.name
    }

    fn release(&self) -> &str {
        &self.release
    }

    fn end_in_mask(&self) -> bool {
        self.table.end_in_mask
    }

    fn compile(&self, source: Source<'_>) -> Result<Box<dyn Compiled + '_>, String> {
        let text = Slice::new(source.text.as_bytes());
        // SAFETY: the engine is the table's own, and the text lives until the call returns.
        let handle = made(|context| unsafe {
            (self.table.compile)(self.engine, source.kind as u32, text, note, context)
        })?;
        Ok(Box::new(Constraint { library: self, handle }))
    }

    fn live_bytes(&self) -> i64 {
        // SAFETY: takes no arguments and reads counters.
        unsafe { (self.table.live_bytes)() }
    }
}

struct Constraint<'a> {
    library: &'a Library,
    handle: Handle,
}

impl Compiled for Constraint<'_> {
    fn start(&self) -> Result<Box<dyn Session + '_>, String> {
        let table = self.library.table;
        // SAFETY: both handles are the table's own; the borrow below keeps them alive longer than the session.
        let handle =
            made(|context| unsafe { (table.start)(self.library.engine, self.handle, note, context) })?;
        Ok(Box::new(Running { constraint: self, handle }))
    }
}

impl Drop for Constraint<'_> {
    fn drop(&mut self) {
        // SAFETY: sessions borrow the constraint, so none exists any more, and the handle is not used again.
        unsafe { (self.library.table.drop_compiled)(self.handle) }
    }
}

struct Running<'a> {
    constraint: &'a Constraint<'a>,
    handle: Handle,
}

impl Session for Running<'_> {
    fn fill(&mut self, mask: &mut [u32]) -> bool {
        // SAFETY: the session is the table's own, and the mask is ours for the call.
        unsafe { (self.constraint.library.table.fill)(self.handle, mask.as_mut_ptr(), mask.len()) }
    }

    fn mask<'s>(&'s mut self, row: &'s mut [u32]) -> Option<&'s [u32]> {
        let mut len = 0;
        // SAFETY: the session is the table's own, and the row and the number are ours for the call.
        let words = unsafe {
            (self.constraint.library.table.mask)(self.handle, row.as_mut_ptr(), row.len(), &raw mut len)
        };
        // SAFETY: the words are the session's or the row's, and stay until either is used again.
        (!words.is_null()).then(|| unsafe { std::slice::from_raw_parts(words, len) })
    }

    fn accept(&mut self, token: u32) -> bool {
        // SAFETY: the session is the table's own.
        unsafe { (self.constraint.library.table.accept)(self.handle, token) }
    }

    fn accepting(&mut self) -> bool {
        // SAFETY: the session is the table's own.
        unsafe { (self.constraint.library.table.accepting)(self.handle) }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        // SAFETY: the session is the table's own and is not used again.
        unsafe { (self.constraint.library.table.end_session)(self.handle) }
    }
}

fn load_table(name: &str, folder: &Path) -> Result<&'static Table, String> {
    let file = folder.join(libloading::library_filename(format!("mwbench_peer_{name}")));
    let place = file.display();
    // SAFETY: the libraries belong to this project and have no relevant initializers.
    let library = unsafe { SharedObject::new(&file) }.map_err(|error| {
        format!(
            "cannot load the engine {name:?} from {place} ({error}); build it or name its folder with --peers"
        )
    })?;
    // The engine's threads may outlive any scope, so the library is never unloaded.
    let library: &'static SharedObject = Box::leak(Box::new(library));
    // SAFETY: the symbol has this type in every library created with `export_peer!`.
    let entry: Symbol<'static, unsafe extern "C" fn() -> *const Table> =
        unsafe { library.get(ENTRY_SYMBOL) }.map_err(|error| format!("{place} is no engine: {error}"))?;
    // SAFETY: the entry returns a pointer to a static.
    let table = unsafe { &*entry() };
    if table.version != VERSION {
        return Err(format!(
            "{place} speaks version {} of the bridge, this program {VERSION}; rebuild",
            table.version
        ));
    }
    Ok(table)
}

/// Runs a call that returns a handle, and returns its error message if it fails.
fn made(call: impl FnOnce(*mut c_void) -> Handle) -> Result<Handle, String> {
    let mut message = String::new();
    let handle = call((&raw mut message).cast());
    if handle.is_null() { Err(message) } else { Ok(handle) }
}

unsafe extern "C" fn note(context: *mut c_void, message: Slice) {
    // SAFETY: `made` passes a live String, and the library a live message.
    unsafe { *context.cast::<String>() = text(message) };
}

/// # Safety
/// The slice must be alive.
unsafe fn text(slice: Slice) -> String {
    // SAFETY: the caller upholds the contract above.
    String::from_utf8_lossy(unsafe { slice.as_bytes() }).into_owned()
}
