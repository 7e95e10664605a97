//! Weights in the form that the forward pass needs.
//!
//! Every format in a file – halves, four-bit blocks, floats – is converted to one of two forms: a [`Matrix`] in blocks
//! of 32 eight-bit numbers with a common factor ([`blocks`](super::blocks)), or a plain vector of floats for norms and
//! biases. For the weights that are in circulation, eight bits lose almost nothing, and a single format needs only one
//! fast kernel.

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
    /// Converts floats, row by row. Returns `None` if a number is not finite, or if the columns do not form whole
    /// blocks.
    fn new(columns: usize, numbers: &[f32]) -> Option<Self> {
        if !columns.is_multiple_of(BLOCK) || numbers.iter().any(|number| !number.is_finite()) {
            return None;
        }
        Some(Self { blocks: Blocks::new(numbers, columns), columns })
    }

    /// Returns the number of rows, which is the number of outputs.
    pub(crate) fn rows(&self) -> usize {
        self.blocks.rows()
    }

    /// Stacks the rows of several matrices, which must have the same number of columns, so that one pass over the input
    /// is enough.
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

    /// Returns its size on the heap in bytes.
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
    /// `None` if the embedding is used instead.
    pub(crate) output: Option<Matrix>,
}

/// The weights of a layer. Matrices with the same input are stacked.
#[derive(Debug)]
pub(crate) struct Layer {
    pub(crate) attention_norm: Vec<f32>,
    /// Queries, keys, values.
    pub(crate) query_key_value: Matrix,
    pub(crate) query_key_value_bias: Option<Vec<f32>>,
    /// The norms of single heads of queries and keys.
    pub(crate) head_norms: Option<(Vec<f32>, Vec<f32>)>,
    pub(crate) attention_out: Matrix,
    pub(crate) inner_norm: Vec<f32>,
    /// The gate, and the values that it is multiplied with.
    pub(crate) gate_up: Matrix,
    pub(crate) down: Matrix,
}

/// The sizes of a tensor, slowest dimension first, and its values.
pub(crate) type Floats = (Vec<usize>, Vec<f32>);

/// A source of tensors. Each is requested at most once.
pub(crate) trait Tensors {
    /// Returns a tensor; `None` if it does not exist.
    fn take(&mut self, tensor: Tensor) -> Result<Option<Floats>, LoadError>;

    /// Returns the names of the tensors that were not requested.
    fn left(&self) -> Vec<String>;
}

/// A tensor by its role; each file format has its own names.
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
    /// Collects all weights of a model of this shape, and refuses a file with other weights.
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
