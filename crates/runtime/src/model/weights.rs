//! Weights as the forward pass wants them, and why a file cannot give them.
//!
//! Whatever a file holds – halves, four-bit blocks, whole floats – becomes one of two things here: a [`Matrix`] in blocks of 32
//! eight-bit numbers with a common factor (the format that ggml calls `Q8_0`), or a plain vector of floats for norms and biases. Eight
//! bits lose next to nothing against the weights that are in circulation, and one format means one fast kernel.

use std::{fmt, path::PathBuf};

use candle_core::quantized::{
    GgmlDType,
    k_quants::{BlockQ8_0, GgmlType},
};

use super::config::{BLOCK, Config};

/// A matrix of eight-bit blocks, row by row.
#[derive(Clone)]
pub struct Matrix {
    /// Rows, which are the numbers that come out.
    pub(crate) rows: usize,
    /// Columns, which are the numbers that go in; a multiple of the block.
    pub(crate) columns: usize,
    pub(crate) blocks: Vec<BlockQ8_0>,
}

impl Matrix {
    /// From floats, row by row. `None` if the sizes do not fit, or if a number is not finite.
    pub fn new(rows: usize, columns: usize, numbers: &[f32]) -> Option<Self> {
        let fits = columns.is_multiple_of(BLOCK) && rows.checked_mul(columns) == Some(numbers.len());
        if !fits || numbers.iter().any(|number| !number.is_finite()) {
            return None;
        }
        let mut blocks = vec![BlockQ8_0::zeros(); numbers.len() / BLOCK];
        BlockQ8_0::from_float(numbers, &mut blocks);
        Some(Self { rows, columns, blocks })
    }

    /// The floats of a row, as they are after quantisation.
    pub fn row(&self, row: usize, numbers: &mut [f32]) {
        let blocks = self.columns / BLOCK;
        BlockQ8_0::to_float(&self.blocks[row * blocks..(row + 1) * blocks], numbers);
    }

    /// One matrix with the rows of several, which must have the same columns: one pass over the input serves all.
    pub(crate) fn stack(parts: Vec<Self>) -> Option<Self> {
        let columns = parts.first()?.columns;
        if parts.iter().any(|part| part.columns != columns) {
            return None;
        }
        let rows = parts.iter().map(|part| part.rows).sum();
        Some(Self { rows, columns, blocks: parts.into_iter().flat_map(|part| part.blocks).collect() })
    }

    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        self.blocks.len() * size_of::<BlockQ8_0>()
    }
}

impl fmt::Debug for Matrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Matrix({} × {})", self.rows, self.columns)
    }
}

/// All weights of a model.
#[derive(Debug)]
pub(crate) struct Weights {
    pub(crate) embedding: Matrix,
    pub(crate) layers: Vec<Layer>,
    pub(crate) norm: Vec<f32>,
    /// `None` if the embedding serves.
    pub(crate) output: Option<Matrix>,
}

/// The weights of a layer. What reads the same input is stacked into one matrix.
#[derive(Debug)]
pub(crate) struct Layer {
    pub(crate) attention_norm: Vec<f32>,
    /// Queries, keys, values.
    pub(crate) query_key_value: Matrix,
    pub(crate) query_key_value_bias: Option<Vec<f32>>,
    /// Norms of single heads of queries and keys.
    pub(crate) head_norms: Option<(Vec<f32>, Vec<f32>)>,
    pub(crate) attention_out: Matrix,
    pub(crate) inner_norm: Vec<f32>,
    /// The gate, and what goes through it.
    pub(crate) gate_up: Matrix,
    pub(crate) down: Matrix,
}

/// The sizes of a tensor, slowest first, and its numbers.
pub(crate) type Floats = (Vec<usize>, Vec<f32>);

/// Where tensors come from. Each is asked for at most once.
pub(crate) trait Tensors {
    /// A tensor; `None` if there is no such tensor.
    fn take(&mut self, tensor: Tensor) -> Result<Option<Floats>, LoadError>;

    /// What was not asked for.
    fn left(&self) -> Vec<String>;
}

/// A tensor by its role; files have their own names for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tensor {
    Embedding,
    Norm,
    Output,
    Layer(usize, Role),
}

/// A tensor of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    AttentionNorm,
    Query,
    QueryBias,
    QueryNorm,
    Key,
    KeyBias,
    KeyNorm,
    Value,
    ValueBias,
    AttentionOut,
    InnerNorm,
    Gate,
    Up,
    Down,
}

impl Weights {
    /// Gathers all weights of a model of this shape, and refuses a file that has others besides.
    pub(crate) fn gather(config: &Config, tensors: &mut dyn Tensors) -> Result<Self, LoadError> {
        let mut source = Source { tensors };
        let weights = Self {
            embedding: source.matrix(Tensor::Embedding, config.tokens, config.hidden)?,
            layers: (0..config.layers).map(|index| source.layer(config, index)).collect::<Result<_, _>>()?,
            norm: source.vector(Tensor::Norm, config.hidden)?,
            output: source.optional_matrix(Tensor::Output, config.tokens, config.hidden)?,
        };
        let left = source.tensors.left();
        if let Some(first) = left.first() {
            let reason = format!(
                "it has {} tensors that a model of the family {:?} does not use, such as {first:?}",
                left.len(),
                config.architecture
            );
            return Err(LoadError::unsupported(reason));
        }
        Ok(weights)
    }
}

struct Source<'t> {
    tensors: &'t mut dyn Tensors,
}

impl Source<'_> {
    fn layer(&mut self, config: &Config, index: usize) -> Result<Layer, LoadError> {
        let (hidden, inner) = (config.hidden, config.inner);
        let (query, kv) = (config.query_size(), config.kv_size());
        let of = |role: Role| Tensor::Layer(index, role);
        let query_key_value = vec![
            self.matrix(of(Role::Query), query, hidden)?,
            self.matrix(of(Role::Key), kv, hidden)?,
            self.matrix(of(Role::Value), kv, hidden)?,
        ];
        let biases = [
            self.optional_vector(of(Role::QueryBias), query)?,
            self.optional_vector(of(Role::KeyBias), kv)?,
            self.optional_vector(of(Role::ValueBias), kv)?,
        ];
        let norms = (
            self.optional_vector(of(Role::QueryNorm), config.head_size)?,
            self.optional_vector(of(Role::KeyNorm), config.head_size)?,
        );
        let gate_up =
            vec![self.matrix(of(Role::Gate), inner, hidden)?, self.matrix(of(Role::Up), inner, hidden)?];
        Ok(Layer {
            attention_norm: self.vector(of(Role::AttentionNorm), hidden)?,
            query_key_value: stack(query_key_value)?,
            query_key_value_bias: match biases {
                [Some(query), Some(key), Some(value)] => Some([query, key, value].concat()),
                [None, None, None] => None,
                _ => {
                    return Err(LoadError::malformed(format!(
                        "layer {index} has some biases, but not all three"
                    )));
                }
            },
            head_norms: match norms {
                (Some(query), Some(key)) => Some((query, key)),
                (None, None) => None,
                _ => {
                    return Err(LoadError::malformed(format!(
                        "layer {index} has one norm of heads, but not both"
                    )));
                }
            },
            attention_out: self.matrix(of(Role::AttentionOut), hidden, query)?,
            inner_norm: self.vector(of(Role::InnerNorm), hidden)?,
            gate_up: stack(gate_up)?,
            down: self.matrix(of(Role::Down), hidden, inner)?,
        })
    }

    fn matrix(&mut self, tensor: Tensor, rows: usize, columns: usize) -> Result<Matrix, LoadError> {
        self.optional_matrix(tensor, rows, columns)?.ok_or_else(|| missing(tensor))
    }

    fn vector(&mut self, tensor: Tensor, len: usize) -> Result<Vec<f32>, LoadError> {
        self.optional_vector(tensor, len)?.ok_or_else(|| missing(tensor))
    }

    fn optional_matrix(
        &mut self,
        tensor: Tensor,
        rows: usize,
        columns: usize,
    ) -> Result<Option<Matrix>, LoadError> {
        let Some((sizes, numbers)) = self.tensors.take(tensor)? else { return Ok(None) };
        if sizes != [rows, columns] {
            return Err(wrong_sizes(tensor, &sizes, &[rows, columns]));
        }
        Matrix::new(rows, columns, &numbers).map(Some).ok_or_else(|| not_finite(tensor))
    }

    fn optional_vector(&mut self, tensor: Tensor, len: usize) -> Result<Option<Vec<f32>>, LoadError> {
        let Some((sizes, numbers)) = self.tensors.take(tensor)? else { return Ok(None) };
        if sizes != [len] {
            return Err(wrong_sizes(tensor, &sizes, &[len]));
        }
        if numbers.iter().any(|number| !number.is_finite()) {
            return Err(not_finite(tensor));
        }
        Ok(Some(numbers))
    }
}

fn stack(parts: Vec<Matrix>) -> Result<Matrix, LoadError> {
    Matrix::stack(parts)
        .ok_or_else(|| LoadError::malformed("matrices that read the same input differ in width"))
}

fn missing(tensor: Tensor) -> LoadError {
    LoadError::malformed(format!("it has no tensor for {tensor:?}"))
}

fn wrong_sizes(tensor: Tensor, sizes: &[usize], expected: &[usize]) -> LoadError {
    LoadError::malformed(format!(
        "the tensor for {tensor:?} has the sizes {sizes:?}, but its settings say {expected:?}"
    ))
}

fn not_finite(tensor: Tensor) -> LoadError {
    LoadError::malformed(format!("the tensor for {tensor:?} has numbers that are not finite"))
}

/// The floats of a tensor in one of ggml's formats. `None` if the bytes are not as many as the elements need.
pub(crate) fn floats(format: GgmlDType, bytes: &[u8], elements: usize) -> Option<Vec<f32>> {
    let expected = elements.checked_div(format.block_size())?.checked_mul(format.type_size())?;
    if !elements.is_multiple_of(format.block_size()) || bytes.len() != expected {
        return None;
    }
    if elements == 0 {
        return Some(Vec::new());
    }
    // Blocks hold numbers of two and four bytes, so what the library reads must be aligned; a place in a file need not be.
    let mut words = vec![0_u64; bytes.len().div_ceil(8)];
    let aligned = &mut bytemuck::cast_slice_mut(&mut words)[..bytes.len()];
    aligned.copy_from_slice(bytes);
    match format.from_data((&*aligned).into()).dequantize(elements).ok()? {
        candle_core::CpuStorage::F32(numbers) => Some(numbers),
        _ => None,
    }
}

/// Why a model cannot be loaded.
#[derive(Debug)]
#[non_exhaustive]
pub enum LoadError {
    /// A file cannot be read.
    Io {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is broken.
    Malformed(String),
    /// The file is sound, but the model cannot be computed here.
    Unsupported(String),
    /// Its tokenizer cannot be used.
    Tokenizer(maskwright_tokenizers::Error),
    /// The machine gave no threads.
    Threads(String),
}

impl LoadError {
    pub(crate) fn malformed(reason: impl Into<String>) -> Self {
        Self::Malformed(reason.into())
    }

    pub(crate) fn unsupported(reason: impl Into<String>) -> Self {
        Self::Unsupported(reason.into())
    }

    pub(crate) fn io(path: &std::path::Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        |source| Self::Io { path, source }
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { path, source } => write!(f, "cannot read {}: {source}", path.display()),
            Self::Malformed(reason) => write!(f, "the model is broken: {reason}"),
            Self::Unsupported(reason) => write!(f, "the model cannot be run here: {reason}"),
            Self::Tokenizer(error) => write!(f, "the model's tokenizer cannot be used: {error}"),
            Self::Threads(reason) => write!(f, "cannot start threads for the model: {reason}; ask for fewer"),
        }
    }
}

impl std::error::Error for LoadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            Self::Tokenizer(error) => Some(error),
            _ => None,
        }
    }
}

impl From<maskwright_tokenizers::Error> for LoadError {
    fn from(error: maskwright_tokenizers::Error) -> Self {
        Self::Tokenizer(error)
    }
}
