//! llama.cpp itself: loading, computing, and marking cells. Nothing else talks to it.

use std::{fs, path::Path, sync::Arc, sync::OnceLock};

use llama_cpp_2::{
    context::{LlamaContext, params::LlamaContextParams},
    llama_backend::LlamaBackend,
    llama_batch::LlamaBatch,
    model::{LlamaModel, params::LlamaModelParams},
    token::LlamaToken,
};
use maskwright_vocab::TokenId;

use super::{Logits, Options};
use crate::model::{LoadError, llama::default_threads};

/// The most tokens that llama.cpp is given at once; a larger step is cut.
const BATCH: usize = 512;
/// The most sequences that llama.cpp can tell apart.
const MAX_SEQUENCES: usize = 256;
const SEQUENCES: usize = 64;
/// What the cache may take at least, if nobody says how large it is to be.
const CACHE_BYTES: u64 = 512 << 20;
/// llama.cpp makes caches of a multiple of this.
const CELLS: usize = 256;

/// A model in llama.cpp, and a cache for its sequences.
pub(super) struct Library {
    /// It points into the model, and so is declared, and dropped, before it.
    context: LlamaContext<'static>,
    _model: Arc<LlamaModel>,
    batch: LlamaBatch<'static>,
    /// The most tokens that it is given.
    pub(super) at_once: usize,
    sizes: Sizes,
}

/// What fits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    /// Logits of a row.
    pub(super) width: usize,
    /// The most tokens of a sequence.
    pub(super) context: usize,
    /// The most sequences.
    pub(super) sequences: usize,
    /// The most tokens of all of them.
    pub(super) cells: usize,
    /// Bytes of keys and values of a token.
    pub(super) cell_bytes: usize,
}

/// The number of a sequence in llama.cpp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slot(u8);

impl Slot {
    pub(super) fn all(count: usize) -> impl DoubleEndedIterator<Item = Self> {
        (0..=u8::MAX).take(count).map(Self)
    }
}

/// A token to be computed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    pub(super) token: TokenId,
    pub(super) position: usize,
    pub(super) slot: Slot,
    /// Whether its logits are asked for.
    pub(super) is_wanted: bool,
}

impl Library {
    pub(super) fn load(path: &Path, options: &Options) -> Result<Self, LoadError> {
        if fs::metadata(path).map_err(LoadError::io(path))?.is_dir() {
            return Err(LoadError::unsupported(
                "llama.cpp reads GGUF files only; convert the model, or use our own runtime",
            ));
        }
        let backend = backend()?;
        let model = LlamaModel::load_from_file(backend, path, &LlamaModelParams::default());
        let model = Arc::new(model.map_err(|error| {
            LoadError::unsupported(format!("llama.cpp cannot load {}: {error}", path.display()))
        })?);
        let mut sizes = Sizes::choose(&model, options)?;
        let threads = options.load.threads.map_or_else(default_threads, std::num::NonZero::get);
        let threads =
            i32::try_from(threads).map_err(|_| LoadError::Threads(format!("{threads} are too many")))?;
        let params = LlamaContextParams::default()
            .with_n_ctx(std::num::NonZero::new(sizes.cells as u32))
            .with_n_seq_max(sizes.sequences as u32)
            .with_n_batch(BATCH as u32)
            .with_n_ubatch(BATCH as u32)
            .with_kv_unified(true)
            // Without it, models with a window could not be truncated.
            .with_swa_full(true)
            .with_n_threads(threads)
            .with_n_threads_batch(threads)
            .with_no_perf(true);
        // A struct cannot hold what borrows from its own fields, so the compiler is told that the model lasts for ever.
        //
        // SAFETY: the reference goes no further than into the context, which stands beside this very `Arc` in a library, is dropped
        // before it, and is given to nobody. The model lies on the heap and stays where it is when the library is moved.
        #[expect(unsafe_code, reason = "it lasts as long as the context, which is all that is needed")]
        let lasting: &'static LlamaModel = unsafe { &*Arc::as_ptr(&model) };
        let context = lasting.new_context(backend, params).map_err(|error| {
            LoadError::unsupported(format!(
                "llama.cpp cannot make a cache for {} tokens of {} bytes: {error}; ask for less",
                sizes.cells, sizes.cell_bytes
            ))
        })?;
        sizes.cells = context.n_ctx() as usize;
        let at_once = (context.n_batch() as usize).clamp(1, BATCH);
        Ok(Self { context, _model: model, batch: LlamaBatch::new(at_once, 1), at_once, sizes })
    }

    pub(super) fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    /// Computes tokens, and writes the logits of those that want them, in order.
    ///
    /// If it fails, some of them may have been computed: they must be [forgotten](Self::forget).
    pub(super) fn compute(&mut self, rows: &[Row], logits: &mut Logits) -> Result<(), String> {
        let width = self.sizes.width;
        let wanted = rows.iter().filter(|row| row.is_wanted).count();
        let mut out = logits.reset(wanted, width).chunks_exact_mut(width);
        for part in rows.chunks(self.at_once) {
            self.batch.clear();
            for row in part {
                // Both are far below 2^31: tokens and lengths were checked.
                let token = LlamaToken(row.token.0.cast_signed());
                let position = (row.position as u32).cast_signed();
                let added = self.batch.add(token, position, &[i32::from(row.slot.0)], row.is_wanted);
                added.map_err(|error| error.to_string())?;
            }
            self.context.decode(&mut self.batch).map_err(|error| error.to_string())?;
            for (at, _) in (0..).zip(part).filter(|(_, row)| row.is_wanted) {
                if let Some(out) = out.next() {
                    out.copy_from_slice(self.context.get_logits_ith(at));
                }
            }
        }
        Ok(())
    }

    /// Forgets the tokens of a slot from a length on.
    pub(super) fn forget(&mut self, slot: Slot, length: usize) {
        // It can fail for models with a state only, and they were refused.
        let _ = self.context.clear_kv_cache_seq(Some(u32::from(slot.0)), Some(length as u32), None);
    }

    /// Lets a slot without tokens have the first tokens of another.
    pub(super) fn share(&mut self, from: Slot, to: Slot, length: usize) {
        // It can fail for lengths over 2^31 only.
        let (from, to) = (i32::from(from.0), i32::from(to.0));
        let _ = self.context.copy_kv_cache_seq(from, to, Some(0), Some(length as u32));
    }
}

impl Sizes {
    fn choose(model: &LlamaModel, options: &Options) -> Result<Self, LoadError> {
        let text = |key: &str| model.meta_val_str(key).ok();
        let family = text("general.architecture").unwrap_or_default();
        if model.is_recurrent() || model.is_hybrid() {
            return Err(LoadError::unsupported(format!(
                "{family} models have a state that cannot be cut back to an earlier token, which forks need"
            )));
        }
        let number = |key: &str| text(&format!("{family}.{key}"))?.parse::<usize>().ok();
        let trained = number("context_length").filter(|&length| length > 0);
        let trained =
            trained.ok_or_else(|| LoadError::malformed("it does not say how long its context is"))?;
        let width = usize::try_from(model.n_vocab()).unwrap_or(0);
        let sequences = options.sequences.map_or(SEQUENCES, std::num::NonZero::get);
        if sequences > MAX_SEQUENCES {
            return Err(LoadError::unsupported(format!(
                "llama.cpp has room for {MAX_SEQUENCES} sequences, but {sequences} were asked for; a smaller batch needs fewer"
            )));
        }
        let cell_bytes = cell_bytes(model, number);
        let asked = options.load.context.map(std::num::NonZero::get);
        let context = asked.map_or(trained, |asked| asked.min(trained));
        let cells = options.tokens.map_or_else(
            || {
                let fitting = model.size().max(CACHE_BYTES) / cell_bytes as u64;
                let fitting = usize::try_from(fitting).unwrap_or(usize::MAX);
                // Who asks for a length gets it.
                fitting.min(context.saturating_mul(sequences)).max(asked.map_or(0, |_| context))
            },
            std::num::NonZero::get,
        );
        let cells =
            cells.max(1).checked_next_multiple_of(CELLS).filter(|&cells| i32::try_from(cells).is_ok());
        let cells =
            cells.ok_or_else(|| LoadError::unsupported("so many tokens cannot be counted; ask for fewer"))?;
        Ok(Self { width, context: context.min(cells), sequences, cells, cell_bytes })
    }
}

/// Keys and values of a token are half-precision numbers, of each layer, for each of its key-value heads.
fn cell_bytes(model: &LlamaModel, number: impl Fn(&str) -> Option<usize>) -> usize {
    let embedding = usize::try_from(model.n_embd()).unwrap_or(0);
    let head = embedding / (model.n_head() as usize).max(1);
    let key = number("attention.key_length").unwrap_or(head);
    let value = number("attention.value_length").unwrap_or(head);
    let heads = model.n_layer() as usize * model.n_head_kv() as usize;
    heads.saturating_mul(key.saturating_add(value)).saturating_mul(2).max(1)
}

/// llama.cpp is started once in a program, and never ended. It would write to standard error, which libraries do not.
fn backend() -> Result<&'static LlamaBackend, LoadError> {
    static BACKEND: OnceLock<Option<LlamaBackend>> = OnceLock::new();
    let start = || {
        let mut backend = LlamaBackend::init().ok()?;
        backend.void_logs();
        Some(backend)
    };
    BACKEND.get_or_init(start).as_ref().ok_or_else(|| {
        LoadError::unsupported("another part of this program has started llama.cpp, which can be done once")
    })
}
