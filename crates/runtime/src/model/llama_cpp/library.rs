//! The interface to llama.cpp: loading, computing, and marking cells. No other module calls it.

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

/// The maximum number of tokens that are passed to llama.cpp at once; a larger step is split.
const BATCH: usize = 512;
/// The maximum number of sequences in llama.cpp.
const MAX_SEQUENCES: usize = 256;
const SEQUENCES: usize = 64;
/// The minimum size of the cache in bytes, if no size is given.
const CACHE_BYTES: u64 = 512 << 20;
/// The size of llama.cpp's caches is a multiple of this number.
const CELLS: usize = 256;

/// A model in llama.cpp, and a cache for its sequences.
pub(super) struct Library {
    /// It points into the model, so it is declared, and dropped, before the model.
    context: LlamaContext<'static>,
    _model: Arc<LlamaModel>,
    batch: LlamaBatch<'static>,
    /// The maximum number of tokens that are passed at once.
    pub(super) at_once: usize,
    sizes: Sizes,
}

/// The limits of the model and its cache.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    /// The number of logits in a row.
    pub(super) width: usize,
    /// The maximum number of tokens of a sequence.
    pub(super) context: usize,
    /// The maximum number of sequences.
    pub(super) sequences: usize,
    /// The maximum number of tokens of all sequences together.
    pub(super) cells: usize,
    /// The size of keys and values of a token in bytes.
    pub(super) cell_bytes: usize,
}

/// The id of a sequence in llama.cpp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slot(u8);

impl Slot {
    pub(super) fn all(count: usize) -> impl DoubleEndedIterator<Item = Self> {
        (0..=u8::MAX).take(count).map(Self)
    }
}

/// A token to compute.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    pub(super) token: TokenId,
    pub(super) position: usize,
    pub(super) slot: Slot,
    /// Whether its logits are needed.
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
            // Otherwise models with a window could not be truncated.
            .with_swa_full(true)
            .with_n_threads(threads)
            .with_n_threads_batch(threads)
            .with_no_perf(true);
        // A struct cannot hold a borrow of its own fields, so the lifetime of the model is extended to `'static`.
        //
        // SAFETY: the reference is only used by the context, which is stored next to this same `Arc` in a library, is
        // dropped before it, and is not exposed. The model is on the heap and stays there when the library is moved.
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

    /// Computes tokens, and writes the logits of those that need them, in order.
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
        // This can only fail for models with a state, which were refused.
        let _ = self.context.clear_kv_cache_seq(Some(u32::from(slot.0)), Some(length as u32), None);
    }

    /// Shares the first tokens of a slot with another slot that has no tokens.
    pub(super) fn share(&mut self, from: Slot, to: Slot, length: usize) {
        // This can only fail for lengths over 2^31.
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
                // A requested length is always granted.
                fitting.min(context.saturating_mul(sequences)).max(asked.map_or(0, |_| context))
            },
            std::num::NonZero::get,
        );
        let cells =
            cells.max(1).checked_next_multiple_of(CELLS).filter(|&cells| i32::try_from(cells).is_ok());
        let cells = cells
            .ok_or_else(|| LoadError::unsupported("this many tokens cannot be counted; ask for fewer"))?;
        Ok(Self { width, context: context.min(cells), sequences, cells, cell_bytes })
    }
}

/// Keys and values of a token are half-precision numbers of each layer and each of its key-value heads.
fn cell_bytes(model: &LlamaModel, number: impl Fn(&str) -> Option<usize>) -> usize {
    let embedding = usize::try_from(model.n_embd()).unwrap_or(0);
    let head = embedding / (model.n_head() as usize).max(1);
    let key = number("attention.key_length").unwrap_or(head);
    let value = number("attention.value_length").unwrap_or(head);
    let heads = model.n_layer() as usize * model.n_head_kv() as usize;
    heads.saturating_mul(key.saturating_add(value)).saturating_mul(2).max(1)
}

/// Starts llama.cpp once in a program; it is never ended. Its output to standard error is disabled, because libraries
/// print nothing.
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
