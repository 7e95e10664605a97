//! Weights as the forward pass wants them.
//!
//! Whatever a file holds – halves, four-bit blocks, whole floats – becomes one of two things here: a [`Matrix`] in blocks of 32
//! eight-bit numbers with a common factor ([`blocks`](super::blocks)), or a plain vector of floats for norms and biases. Eight
//! bits lose next to nothing against the weights that are in circulation, and one format means one fast kernel.

use std::fmt;

use super::{
    LoadError,
    blocks::Blocks,
    config::{BLOCK, Config},
};

/// A matrix of eight-bit blocks, row by row.
#[derive(Clone)]
pub(crate) struct Matrix {
    pub(crate) blocks: Blocks,
    columns: usize,
}

impl Matrix {
    /// From floats, row by row. `None` if a number is not finite, or if the columns make no whole blocks.
    fn new(columns: usize, numbers: &[f32]) -> Option<Self> {
        if !columns.is_multiple_of(BLOCK) || numbers.iter().any(|number| !number.is_finite()) {
            return None;
        }
        Some(Self { blocks: Blocks::new(numbers, columns), columns })
    }

    /// The numbers that come out of it.
    pub(crate) fn rows(&self) -> usize {
        self.blocks.rows()
    }

    /// One matrix with the rows of several, which must have the same columns: one pass over the input serves all.
    fn stack(parts: Vec<Self>) -> Option<Self> {
        let mut parts = parts.into_iter();
        let mut all = parts.next()?;
        for mut part in parts {
            if part.columns != all.columns {
                return None;
            }
            all.blocks.append(&mut part.blocks);
        }
        Some(all)
    }

    /// Bytes on the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.blocks.heap_bytes()
    }
}

impl fmt::Debug for Matrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Matrix({} × {})", self.rows(), self.columns)
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
        Matrix::new(columns, &numbers).map(Some).ok_or_else(|| not_finite(tensor))
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
