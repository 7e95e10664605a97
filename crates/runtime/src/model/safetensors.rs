//! Models from a folder with `config.json` and safetensors files, the format of Hugging Face.
//!
//! All files of the folder that end in `.safetensors` belong to the model. Each is read completely, and a tensor is
//! converted to eight-bit blocks when it is requested.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use safetensors::{Dtype, SafeTensors};
use serde_json::Value;

use super::{
    LoadError,
    config::{Config, Pairs, Rope, Scaling},
    formats::Format,
    weights::{Floats, Role, Tensor, Tensors, Weights},
};

/// The maximum size of a config.json in bytes.
const MAX_CONFIG: u64 = 1 << 20;

/// Reads a model.
pub(crate) fn load(folder: &Path) -> Result<(Config, Weights), LoadError> {
    let path = folder.join("config.json");
    let text = read_small(&path)?;
    let json: Value = serde_json::from_slice(&text)
        .map_err(|error| LoadError::malformed(format!("{} is no JSON: {error}", path.display())))?;
    let config = config(&json)?;
    config.check()?;
    let contents = contents(folder)?;
    let mut tensors = FolderTensors { files: Vec::new(), places: BTreeMap::new() };
    for (path, content) in &contents {
        let file = SafeTensors::deserialize(content)
            .map_err(|error| LoadError::malformed(format!("{}: {error}", path.display())))?;
        tensors.add(file);
    }
    let tied = json.get("tie_word_embeddings").and_then(Value::as_bool).unwrap_or(false);
    if tied {
        // Some files contain the embedding a second time.
        tensors.places.remove("lm_head.weight");
    } else if !tensors.places.contains_key("lm_head.weight") {
        return Err(LoadError::malformed(
            "its config.json says that it has an output matrix, but there is no lm_head.weight",
        ));
    }
    let weights = Weights::gather(&config, &mut tensors)?;
    Ok((config, weights))
}

fn read_small(path: &Path) -> Result<Vec<u8>, LoadError> {
    let size = fs::metadata(path).map_err(LoadError::io(path))?.len();
    if size > MAX_CONFIG {
        return Err(LoadError::malformed(format!(
            "{} has {size} bytes, which no config.json needs",
            path.display()
        )));
    }
    fs::read(path).map_err(LoadError::io(path))
}

/// Reads the safetensors files of a folder, ordered by name.
fn contents(folder: &Path) -> Result<Vec<(PathBuf, Vec<u8>)>, LoadError> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(LoadError::io(folder))? {
        let path = entry.map_err(LoadError::io(folder))?.path();
        if path.extension().is_some_and(|extension| extension == "safetensors") {
            paths.push(path);
        }
    }
    paths.sort();
    if paths.is_empty() {
        return Err(LoadError::malformed(format!("there is no .safetensors file in {}", folder.display())));
    }
    paths
        .into_iter()
        .map(|path| {
            let content = fs::read(&path).map_err(LoadError::io(&path))?;
            Ok((path, content))
        })
        .collect()
}

/// Reads the shape of the model from its config.json.
fn config(json: &Value) -> Result<Config, LoadError> {
    let settings = Settings(json);
    let architecture = json.get("model_type").and_then(Value::as_str).unwrap_or_default().to_owned();
    if !matches!(&*architecture, "llama" | "mistral" | "qwen2" | "qwen3") {
        let reason = format!("its model_type is {architecture:?}; known are llama, mistral, qwen2 and qwen3");
        return Err(LoadError::unsupported(reason));
    }
    let act = json.get("hidden_act").and_then(Value::as_str).unwrap_or("silu");
    if act != "silu" {
        return Err(LoadError::unsupported(format!("its hidden_act is {act:?}; only \"silu\" is known")));
    }
    let hidden = settings.need("hidden_size")?;
    let heads = settings.need("num_attention_heads")?;
    let head_size = settings.size("head_dim")?.unwrap_or(hidden.checked_div(heads).unwrap_or(0));
    let base = settings.number("rope_theta").unwrap_or(1e4);
    let context = settings.need("max_position_embeddings")?;
    let slides = json.get("use_sliding_window").and_then(Value::as_bool).unwrap_or(true);
    let window = settings.size("sliding_window")?.filter(|&window| slides && window > 0);
    Ok(Config {
        hidden,
        layers: settings.need("num_hidden_layers")?,
        inner: settings.need("intermediate_size")?,
        heads,
        kv_heads: settings.size("num_key_value_heads")?.unwrap_or(heads),
        head_size,
        tokens: settings.need("vocab_size")?,
        // Within the window there is no difference.
        context: window.map_or(context, |window| context.min(window)),
        epsilon: settings.number("rms_norm_eps").unwrap_or(1e-6),
        rope: Rope::new(base, head_size, Pairs::Halves, settings.scaling()?),
        architecture,
    })
}

struct Settings<'j>(&'j Value);

impl Settings<'_> {
    fn number(&self, key: &str) -> Option<f32> {
        self.0.get(key)?.as_f64().map(|number| number as f32)
    }

    fn size(&self, key: &str) -> Result<Option<usize>, LoadError> {
        match self.0.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => value
                .as_u64()
                .and_then(|size| usize::try_from(size).ok())
                .map(Some)
                .ok_or_else(|| LoadError::malformed(format!("{key:?} in its config.json is {value}"))),
        }
    }

    fn need(&self, key: &str) -> Result<usize, LoadError> {
        self.size(key)?.ok_or_else(|| LoadError::malformed(format!("its config.json has no {key:?}")))
    }

    fn scaling(&self) -> Result<Scaling, LoadError> {
        let Some(scaling) = self.0.get("rope_scaling").filter(|scaling| !scaling.is_null()) else {
            return Ok(Scaling::None);
        };
        let unknown = || {
            LoadError::unsupported(format!("the way its context was extended is not known here: {scaling}"))
        };
        let inside = Settings(scaling);
        let positive = |key: &str| inside.number(key).filter(|number| *number > 0.0).ok_or_else(unknown);
        match scaling.get("rope_type").or_else(|| scaling.get("type")).and_then(Value::as_str) {
            Some("default") => Ok(Scaling::None),
            Some("linear") => Ok(Scaling::Linear(positive("factor")?)),
            Some("llama3") => {
                let (low, high) = (positive("low_freq_factor")?, positive("high_freq_factor")?);
                if low >= high {
                    return Err(unknown());
                }
                let context = positive("original_max_position_embeddings")?;
                Ok(Scaling::Llama3 { factor: positive("factor")?, low, high, context })
            }
            _ => Err(unknown()),
        }
    }
}

struct FolderTensors<'c> {
    files: Vec<SafeTensors<'c>>,
    /// The file that contains each tensor.
    places: BTreeMap<String, usize>,
}

impl<'c> FolderTensors<'c> {
    fn add(&mut self, file: SafeTensors<'c>) {
        for name in file.names() {
            // Angles are computed, not read.
            if !name.ends_with("rotary_emb.inv_freq") {
                self.places.insert(name.to_owned(), self.files.len());
            }
        }
        self.files.push(file);
    }
}

impl Tensors for FolderTensors<'_> {
    fn take(&mut self, tensor: Tensor) -> Result<Option<Floats>, LoadError> {
        let name = name(tensor);
        let Some(file) = self.places.remove(&name) else { return Ok(None) };
        let broken = |what: String| LoadError::malformed(format!("tensor {name:?} {what}"));
        let view =
            self.files[file].tensor(&name).map_err(|error| broken(format!("cannot be read: {error}")))?;
        let format = match view.dtype() {
            Dtype::F32 => Format::F32,
            Dtype::F16 => Format::F16,
            Dtype::BF16 => Format::Bf16,
            other => {
                let reason = format!("tensor {name:?} is of the type {other:?}; known are F32, F16 and BF16");
                return Err(LoadError::unsupported(reason));
            }
        };
        Ok(Some((view.shape().to_vec(), format.floats(view.data()))))
    }

    fn left(&self) -> Vec<String> {
        self.places.keys().cloned().collect()
    }
}

/// Returns the name of a tensor in Hugging Face's library.
fn name(tensor: Tensor) -> String {
    let (layer, role) = match tensor {
        Tensor::Embedding => return "model.embed_tokens.weight".into(),
        Tensor::Norm => return "model.norm.weight".into(),
        Tensor::Output => return "lm_head.weight".into(),
        Tensor::Layer(layer, role) => (layer, role),
    };
    let part = match role {
        Role::AttentionNorm => "input_layernorm.weight",
        Role::Query => "self_attn.q_proj.weight",
        Role::QueryBias => "self_attn.q_proj.bias",
        Role::QueryNorm => "self_attn.q_norm.weight",
        Role::Key => "self_attn.k_proj.weight",
        Role::KeyBias => "self_attn.k_proj.bias",
        Role::KeyNorm => "self_attn.k_norm.weight",
        Role::Value => "self_attn.v_proj.weight",
        Role::ValueBias => "self_attn.v_proj.bias",
        Role::AttentionOut => "self_attn.o_proj.weight",
        Role::InnerNorm => "post_attention_layernorm.weight",
        Role::Gate => "mlp.gate_proj.weight",
        Role::Up => "mlp.up_proj.weight",
        Role::Down => "mlp.down_proj.weight",
    };
    format!("model.layers.{layer}.{part}")
}
