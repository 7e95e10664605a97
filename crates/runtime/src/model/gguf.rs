//! Models from GGUF files, the format of llama.cpp.
//!
//! The header names the tensors ([`maskwright_tokenizers::gguf::Header`]). Each tensor is read, converted to floats and
//! quantized again before the next one, so loading holds at most one tensor more than the model needs.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{Read, Seek, SeekFrom},
    path::Path,
};

use maskwright_tokenizers::gguf::{Header, Metadata, TensorEntry};

use super::{
    LoadError,
    config::{Config, Pairs, Rope, Scaling},
    formats::Format,
    weights::{Floats, Role, Tensor, Tensors, Weights},
};

/// Reads a model.
pub(crate) fn load(path: &Path) -> Result<(Config, Weights), LoadError> {
    let io = || LoadError::io(path);
    let mut file = File::open(path).map_err(io())?;
    let size = file.metadata().map_err(io())?.len();
    let header = Header::read(&mut file, |key| !key.starts_with("tokenizer."))?;
    let mut tensors = FileTensors {
        file,
        size,
        data: header.data,
        entries: header.tensors.into_iter().map(|entry| (entry.name.clone(), entry)).collect(),
    };
    let config = config(&header.metadata, &mut tensors)?;
    config.check()?;
    let weights = Weights::gather(&config, &mut tensors)?;
    Ok((config, weights))
}

/// Reads the shape of the model from the metadata.
fn config(metadata: &Metadata, tensors: &mut FileTensors) -> Result<Config, LoadError> {
    let architecture = metadata
        .text("general.architecture")
        .ok_or_else(|| LoadError::malformed("its metadata has no general.architecture"))?
        .to_owned();
    let pairs = match &*architecture {
        // The rows of queries and keys were reordered when the file was written, so that pairs are adjacent.
        "llama" => Pairs::Neighbors,
        "qwen2" | "qwen3" => Pairs::Halves,
        other => {
            let reason = format!("its architecture is {other:?}; known are llama, qwen2 and qwen3");
            return Err(LoadError::unsupported(reason));
        }
    };
    let settings = Settings { metadata, architecture: &architecture };
    if settings.size("expert_count")?.is_some_and(|experts| experts > 0) {
        return Err(LoadError::unsupported("it is a mixture of experts"));
    }
    let hidden = settings.need("embedding_length")?;
    let heads = settings.need("attention.head_count")?;
    let default_head = hidden.checked_div(heads).unwrap_or(0);
    let head_size = settings.size("attention.key_length")?.unwrap_or(default_head);
    if settings.size("attention.value_length")?.is_some_and(|size| size != head_size) {
        return Err(LoadError::unsupported("its keys and values differ in size"));
    }
    if settings.size("rope.dimension_count")?.is_some_and(|size| size != head_size) {
        return Err(LoadError::unsupported("only a part of each head is turned by its position"));
    }
    let context = settings.need("context_length")?;
    let window = settings.size("attention.sliding_window")?.filter(|&window| window > 0);
    let mut rope =
        Rope::new(settings.number("rope.freq_base").unwrap_or(1e4), head_size, pairs, settings.scaling()?);
    if let Some(factors) = tensors.read("rope_freqs.weight")? {
        rope.divide(&factors.1)?;
    }
    Ok(Config {
        hidden,
        layers: settings.need("block_count")?,
        inner: settings.need("feed_forward_length")?,
        heads,
        kv_heads: settings.size("attention.head_count_kv")?.unwrap_or(heads),
        head_size,
        tokens: tensors.rows("token_embd.weight")?,
        // Within the window there is no difference.
        context: window.map_or(context, |window| context.min(window)),
        epsilon: settings
            .number("attention.layer_norm_rms_epsilon")
            .ok_or_else(|| LoadError::malformed("its metadata has no epsilon for its norms"))?,
        rope,
        architecture,
    })
}

/// Entries of the metadata, by the part of the key after the architecture.
struct Settings<'m> {
    metadata: &'m Metadata,
    architecture: &'m str,
}

impl Settings<'_> {
    fn key(&self, key: &str) -> String {
        format!("{}.{key}", self.architecture)
    }

    fn number(&self, key: &str) -> Option<f32> {
        self.metadata.number(&self.key(key)).map(|number| number as f32)
    }

    /// Returns a size. An array of sizes, one for each layer, is refused.
    fn size(&self, key: &str) -> Result<Option<usize>, LoadError> {
        let key = self.key(key);
        if self.metadata.array_len(&key).is_some() {
            return Err(LoadError::unsupported(format!("{key} differs from layer to layer")));
        }
        match self.metadata.number(&key) {
            None => Ok(None),
            #[expect(clippy::cast_sign_loss, reason = "the range was checked")]
            Some(number) if (0.0..=4e9).contains(&number) => Ok(Some(number as usize)),
            Some(number) => Err(LoadError::malformed(format!("{key} is {number}"))),
        }
    }

    fn need(&self, key: &str) -> Result<usize, LoadError> {
        self.size(key)?.ok_or_else(|| LoadError::malformed(format!("its metadata has no {}", self.key(key))))
    }

    fn scaling(&self) -> Result<Scaling, LoadError> {
        let factor = self.number("rope.scaling.factor").or_else(|| self.number("rope.scale_linear"));
        match (self.metadata.text(&self.key("rope.scaling.type")), factor) {
            (Some("none"), _) | (None, None) => Ok(Scaling::None),
            (Some("linear") | None, Some(factor)) if factor > 0.0 => Ok(Scaling::Linear(factor)),
            (kind, factor) => {
                let reason = format!(
                    "the way its context was extended is not known here: {kind:?}, factor {factor:?}"
                );
                Err(LoadError::unsupported(reason))
            }
        }
    }
}

/// The tensors of an open file.
struct FileTensors {
    file: File,
    size: u64,
    data: u64,
    entries: BTreeMap<String, TensorEntry>,
}

impl FileTensors {
    /// Returns how many rows a tensor has, without reading it.
    fn rows(&self, name: &str) -> Result<usize, LoadError> {
        let rows = self.entries.get(name).and_then(|entry| entry.sizes.get(1));
        let rows = rows.and_then(|&rows| usize::try_from(rows).ok());
        rows.ok_or_else(|| LoadError::malformed(format!("it has no tensor {name:?} with rows")))
    }

    fn read(&mut self, name: &str) -> Result<Option<Floats>, LoadError> {
        let Some(entry) = self.entries.remove(name) else { return Ok(None) };
        let broken = |what: &str| LoadError::malformed(format!("tensor {name:?} {what}"));
        let format = Format::from_number(entry.kind).ok_or_else(|| {
            LoadError::unsupported(format!(
                "tensor {name:?} is of ggml's type {}, which is not known here",
                entry.kind
            ))
        })?;
        let sizes: Option<Vec<usize>> =
            entry.sizes.iter().rev().map(|&size| usize::try_from(size).ok()).collect();
        let sizes = sizes.ok_or_else(|| broken("is too large"))?;
        let elements = sizes.iter().try_fold(1_usize, |product, &size| product.checked_mul(size));
        let len = elements
            .and_then(|elements| format.bytes_of(elements))
            .ok_or_else(|| broken("has sizes that make no whole number of blocks"))?;
        let start = self.data.checked_add(entry.offset);
        let inside =
            start.and_then(|start| start.checked_add(len as u64)).is_some_and(|end| end <= self.size);
        let (Some(start), true) = (start, inside) else {
            return Err(broken("lies beyond the end of the file; was it downloaded completely?"));
        };
        let mut bytes = vec![0; len];
        self.file
            .seek(SeekFrom::Start(start))
            .and_then(|_| self.file.read_exact(&mut bytes))
            .map_err(|error| broken(&format!("cannot be read: {error}")))?;
        Ok(Some((sizes, format.floats(&bytes))))
    }
}

impl Tensors for FileTensors {
    fn take(&mut self, tensor: Tensor) -> Result<Option<Floats>, LoadError> {
        self.read(&name(tensor))
    }

    fn left(&self) -> Vec<String> {
        self.entries.keys().cloned().collect()
    }
}

/// Returns ggml's name of a tensor.
fn name(tensor: Tensor) -> String {
    let (layer, role) = match tensor {
        Tensor::Embedding => return "token_embd.weight".into(),
        Tensor::Norm => return "output_norm.weight".into(),
        Tensor::Output => return "output.weight".into(),
        Tensor::Layer(layer, role) => (layer, role),
    };
    let part = match role {
        Role::AttentionNorm => "attn_norm.weight",
        Role::Query => "attn_q.weight",
        Role::QueryBias => "attn_q.bias",
        Role::QueryNorm => "attn_q_norm.weight",
        Role::Key => "attn_k.weight",
        Role::KeyBias => "attn_k.bias",
        Role::KeyNorm => "attn_k_norm.weight",
        Role::Value => "attn_v.weight",
        Role::ValueBias => "attn_v.bias",
        Role::AttentionOut => "attn_output.weight",
        Role::InnerNorm => "ffn_norm.weight",
        Role::Gate => "ffn_gate.weight",
        Role::Up => "ffn_up.weight",
        Role::Down => "ffn_down.weight",
    };
    format!("blk.{layer}.{part}")
}
