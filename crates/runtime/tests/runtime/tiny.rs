//! Tiny models with random weights, and the files that hold them.
//!
//! Every weight is a whole number from −127 to 127 times a power of two, and every block of 32 has a ±127. Such numbers
//! survive bf16, f16 and eight-bit blocks exactly, so a reference can compute with the very same weights.

use std::{collections::BTreeMap, fs, path::PathBuf};

use maskwright_runtime::sampler::rng::Rng;
use serde_json::json;

/// The shape of a tiny model.
#[derive(Debug, Clone)]
pub(crate) struct Shape {
    pub(crate) family: &'static str,
    pub(crate) hidden: usize,
    pub(crate) layers: usize,
    pub(crate) inner: usize,
    pub(crate) heads: usize,
    pub(crate) kv_heads: usize,
    pub(crate) head_size: usize,
    pub(crate) tokens: usize,
    pub(crate) context: usize,
    pub(crate) base: f32,
    pub(crate) tied: bool,
}

impl Shape {
    pub(crate) fn of(family: &'static str) -> Self {
        Self {
            family,
            hidden: 64,
            layers: 2,
            inner: 96,
            heads: 4,
            kv_heads: 2,
            head_size: 16,
            tokens: 50,
            context: 100,
            base: 10_000.0,
            tied: family != "llama",
        }
    }
}

/// A model: its shape, and its tensors by the names of Hugging Face, with their sizes.
#[derive(Debug, Clone)]
pub(crate) struct Tiny {
    pub(crate) shape: Shape,
    pub(crate) tensors: BTreeMap<String, (Vec<usize>, Vec<f32>)>,
}

impl Tiny {
    pub(crate) fn random(shape: &Shape, seed: u64) -> Self {
        let mut tiny = Self { shape: shape.clone(), tensors: BTreeMap::new() };
        let mut rng = Numbers { rng: Rng::new(Some(seed), 0), position: 0 };
        let &Shape { hidden, inner, head_size, .. } = shape;
        let (query, kv) = (shape.heads * head_size, shape.kv_heads * head_size);
        tiny.add("model.embed_tokens.weight", &[shape.tokens, hidden], rng.exact(shape.tokens * hidden, 7));
        tiny.add("model.norm.weight", &[hidden], rng.near_one(hidden));
        if !shape.tied {
            tiny.add("lm_head.weight", &[shape.tokens, hidden], rng.exact(shape.tokens * hidden, 9));
        }
        for layer in 0..shape.layers {
            let name = |part: &str| format!("model.layers.{layer}.{part}");
            let matrices = [
                ("self_attn.q_proj.weight", query, hidden),
                ("self_attn.k_proj.weight", kv, hidden),
                ("self_attn.v_proj.weight", kv, hidden),
                ("self_attn.o_proj.weight", hidden, query),
                ("mlp.gate_proj.weight", inner, hidden),
                ("mlp.up_proj.weight", inner, hidden),
                ("mlp.down_proj.weight", hidden, inner),
            ];
            for (part, rows, columns) in matrices {
                tiny.add(&name(part), &[rows, columns], rng.exact(rows * columns, 9));
            }
            tiny.add(&name("input_layernorm.weight"), &[hidden], rng.near_one(hidden));
            tiny.add(&name("post_attention_layernorm.weight"), &[hidden], rng.near_one(hidden));
            if shape.family == "qwen2" {
                for (part, size) in [("q", query), ("k", kv), ("v", kv)] {
                    tiny.add(&name(&format!("self_attn.{part}_proj.bias")), &[size], rng.near_one(size));
                }
            }
            if shape.family == "qwen3" {
                tiny.add(&name("self_attn.q_norm.weight"), &[head_size], rng.near_one(head_size));
                tiny.add(&name("self_attn.k_norm.weight"), &[head_size], rng.near_one(head_size));
            }
        }
        tiny
    }

    fn add(&mut self, name: &str, sizes: &[usize], numbers: Vec<f32>) {
        self.tensors.insert(name.to_owned(), (sizes.to_vec(), numbers));
    }

    pub(crate) fn tensor(&self, name: &str) -> &[f32] {
        &self.tensors[name].1
    }

    pub(crate) fn get(&self, name: &str) -> Option<&[f32]> {
        self.tensors.get(name).map(|(_, numbers)| &numbers[..])
    }

    pub(crate) fn config_json(&self) -> serde_json::Value {
        let shape = &self.shape;
        json!({
            "model_type": shape.family, "hidden_size": shape.hidden, "num_hidden_layers": shape.layers,
            "intermediate_size": shape.inner, "num_attention_heads": shape.heads,
            "num_key_value_heads": shape.kv_heads, "head_dim": shape.head_size, "vocab_size": shape.tokens,
            "max_position_embeddings": shape.context, "rms_norm_eps": 1e-5, "rope_theta": shape.base,
            "tie_word_embeddings": shape.tied, "hidden_act": "silu", "rope_scaling": null,
        })
    }

    /// Writes `config.json` and a safetensors file with numbers of two bytes.
    pub(crate) fn write_folder(&self, folder: &Folder) {
        fs::write(folder.path("config.json"), self.config_json().to_string()).unwrap();
        fs::write(folder.path("model.safetensors"), self.safetensors()).unwrap();
    }

    pub(crate) fn safetensors(&self) -> Vec<u8> {
        let (mut header, mut data) = (serde_json::Map::new(), Vec::new());
        for (name, (sizes, numbers)) in &self.tensors {
            let start = data.len();
            for number in numbers {
                // The first two bytes of a float are a bf16.
                data.extend(&number.to_le_bytes()[2..]);
            }
            let entry = json!({"dtype": "BF16", "shape": sizes, "data_offsets": [start, data.len()]});
            header.insert(name.clone(), entry);
        }
        let header = serde_json::Value::Object(header).to_string();
        [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &data].concat()
    }

    /// A GGUF file: floats, with the rows of queries and keys reordered as llama.cpp wants them.
    pub(crate) fn gguf(&self) -> Gguf {
        let shape = &self.shape;
        let mut file = Gguf::default();
        file.text("general.architecture", shape.family);
        let sizes = [
            ("embedding_length", shape.hidden),
            ("block_count", shape.layers),
            ("feed_forward_length", shape.inner),
            ("attention.head_count", shape.heads),
            ("attention.head_count_kv", shape.kv_heads),
            ("attention.key_length", shape.head_size),
            ("attention.value_length", shape.head_size),
            ("context_length", shape.context),
        ];
        for (key, size) in sizes {
            file.number(&format!("{}.{key}", shape.family), size as u32);
        }
        file.float(&format!("{}.attention.layer_norm_rms_epsilon", shape.family), 1e-5);
        file.float(&format!("{}.rope.freq_base", shape.family), shape.base);
        for (name, (sizes, numbers)) in &self.tensors {
            let numbers =
                if shape.family == "llama" && (name.contains("q_proj.w") || name.contains("k_proj.w")) {
                    neighbors(numbers, shape.head_size, shape.hidden)
                } else {
                    numbers.clone()
                };
            file.tensors.push((gguf_name(name), sizes.clone(), numbers));
        }
        file
    }
}

/// Reorders the rows of each head, so that j and j + half become neighbors.
fn neighbors(numbers: &[f32], head_size: usize, columns: usize) -> Vec<f32> {
    let mut out = Vec::new();
    for head in numbers.chunks_exact(head_size * columns) {
        for at in 0..head_size {
            let from = at / 2 + at % 2 * (head_size / 2);
            out.extend(&head[from * columns..(from + 1) * columns]);
        }
    }
    out
}

fn gguf_name(name: &str) -> String {
    let pairs = [
        ("model.embed_tokens", "token_embd"),
        ("model.norm", "output_norm"),
        ("lm_head", "output"),
        ("model.layers.", "blk."),
        ("self_attn.q_proj", "attn_q"),
        ("self_attn.k_proj", "attn_k"),
        ("self_attn.v_proj", "attn_v"),
        ("self_attn.o_proj", "attn_output"),
        ("self_attn.q_norm", "attn_q_norm"),
        ("self_attn.k_norm", "attn_k_norm"),
        ("input_layernorm", "attn_norm"),
        ("post_attention_layernorm", "ffn_norm"),
        ("mlp.gate_proj", "ffn_gate"),
        ("mlp.up_proj", "ffn_up"),
        ("mlp.down_proj", "ffn_down"),
    ];
    pairs.iter().fold(name.to_owned(), |name, (from, to)| name.replace(from, to))
}

/// A writer of GGUF files.
#[derive(Debug, Clone, Default)]
pub(crate) struct Gguf {
    pub(crate) entries: Vec<(String, Vec<u8>)>,
    pub(crate) tensors: Vec<(String, Vec<usize>, Vec<f32>)>,
}

impl Gguf {
    pub(crate) fn text(&mut self, key: &str, text: &str) {
        let value = [&8_u32.to_le_bytes()[..], &(text.len() as u64).to_le_bytes(), text.as_bytes()].concat();
        self.set(key, value);
    }

    pub(crate) fn number(&mut self, key: &str, number: u32) {
        self.set(key, [4_u32.to_le_bytes(), number.to_le_bytes()].concat());
    }

    pub(crate) fn float(&mut self, key: &str, number: f32) {
        self.set(key, [&6_u32.to_le_bytes()[..], &number.to_le_bytes()].concat());
    }

    fn set(&mut self, key: &str, value: Vec<u8>) {
        self.entries.retain(|(other, _)| other != key);
        self.entries.push((key.to_owned(), value));
    }

    pub(crate) fn finish(&self) -> Vec<u8> {
        let mut file = [&b"GGUF"[..], &3_u32.to_le_bytes()].concat();
        file.extend((self.tensors.len() as u64).to_le_bytes());
        file.extend((self.entries.len() as u64).to_le_bytes());
        let text = |file: &mut Vec<u8>, text: &str| {
            file.extend((text.len() as u64).to_le_bytes());
            file.extend(text.as_bytes());
        };
        for (key, value) in &self.entries {
            text(&mut file, key);
            file.extend(value);
        }
        let mut data = Vec::new();
        for (name, sizes, numbers) in &self.tensors {
            text(&mut file, name);
            file.extend((sizes.len() as u32).to_le_bytes());
            for &size in sizes.iter().rev() {
                file.extend((size as u64).to_le_bytes());
            }
            file.extend(0_u32.to_le_bytes());
            file.extend((data.len() as u64).to_le_bytes());
            for number in numbers {
                data.extend(number.to_le_bytes());
            }
            data.resize(data.len().next_multiple_of(32), 0);
        }
        file.resize(file.len().next_multiple_of(32), 0);
        file.extend(data);
        file
    }
}

struct Numbers {
    rng: Rng,
    position: u64,
}

impl Numbers {
    fn next(&mut self) -> f64 {
        self.position += 1;
        self.rng.at(self.position)
    }

    /// Whole numbers times 2^−exponent; each block of 32 has an extreme.
    fn exact(&mut self, count: usize, exponent: i32) -> Vec<f32> {
        let mut numbers: Vec<f32> =
            (0..count).map(|_| (self.next() * 255.0).floor() as f32 - 127.0).collect();
        for block in numbers.chunks_mut(32) {
            block[0] = if block[0] < 0.0 { -127.0 } else { 127.0 };
        }
        numbers.iter().map(|number| number * 2_f32.powi(-exponent)).collect()
    }

    /// From a half to one and a half, in steps of 1/64.
    fn near_one(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| 0.5 + (self.next() * 64.0).floor() as f32 / 64.0).collect()
    }
}

/// A folder that goes away.
#[derive(Debug)]
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("maskwright-runtime-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn whole(&self) -> &std::path::Path {
        &self.0
    }

    /// Writes a file and says where it is.
    pub(crate) fn file(&self, name: &str, content: &[u8]) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, content).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
