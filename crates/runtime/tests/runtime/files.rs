//! Model files that are broken, cut off, or hold what cannot be computed: an error that says so, and no panic.

use maskwright_runtime::model::{Llama, LoadError, LoadOptions};

use crate::tiny::{Folder, Gguf, Shape, Tiny};

fn error_of(folder: &Folder, content: &[u8]) -> Result<(), LoadError> {
    let path = folder.file("model.gguf", content);
    Llama::load(path, &LoadOptions::default()).map(|_| ())
}

fn says(result: Result<(), LoadError>, text: &str) {
    let error = result.expect_err(text).to_string();
    assert!(error.contains(text), "{error:?} should say {text:?}");
}

fn tiny() -> Tiny {
    Tiny::random(&Shape { layers: 1, ..Shape::of("llama") }, 1)
}

#[test]
fn settings_that_make_no_sense() {
    let folder = Folder::new("settings");
    let good = tiny().gguf();
    let with = |change: &dyn Fn(&mut Gguf)| {
        let mut file = good.clone();
        change(&mut file);
        error_of(&folder, &file.finish())
    };
    with(&|_| ()).unwrap();
    says(with(&|file| file.text("general.architecture", "gptj")), "known are llama, qwen2 and qwen3");
    says(with(&|file| file.entries.retain(|(key, _)| key != "llama.block_count")), "no llama.block_count");
    says(with(&|file| file.number("llama.block_count", 0)), "0 layers");
    says(with(&|file| file.number("llama.block_count", u32::MAX)), "block_count is 4294967295");
    says(with(&|file| file.number("llama.block_count", 5000)), "5000 layers");
    says(with(&|file| file.number("llama.block_count", 2)), "no tensor for Layer(1, Query)");
    says(with(&|file| file.number("llama.attention.head_count", 0)), "number of heads is 0");
    says(with(&|file| file.number("llama.attention.head_count", 3)), "evenly");
    says(with(&|file| file.number("llama.embedding_length", 48)), "no multiple of 32");
    says(with(&|file| file.number("llama.embedding_length", 96)), "has the sizes");
    says(with(&|file| file.number("llama.expert_count", 8)), "mixture of experts");
    says(with(&|file| file.number("llama.context_length", 0)), "context is 0");
    says(with(&|file| file.number("llama.attention.value_length", 8)), "differ in size");
    says(with(&|file| file.number("general.alignment", 0)), "general.alignment is 0");
    says(with(&|file| file.float("llama.rope.freq_base", f32::NAN)), "not finite");
    says(with(&|file| file.float("llama.attention.layer_norm_rms_epsilon", -1.0)), "epsilon");
    says(with(&|file| file.text("llama.rope.scaling.type", "yarn")), "yarn");
    says(with(&|file| file.tensors[0].2[5] = f32::INFINITY), "not finite");
    says(
        with(&|file| file.tensors.push(("blk.0.attn_out.bias".into(), vec![64], vec![0.0; 64]))),
        "does not use",
    );
    says(with(&|file| file.tensors.retain(|(name, _, _)| name != "output_norm.weight")), "Norm");
    let factors = |numbers: Vec<f32>| {
        with(&|file| file.tensors.push(("rope_freqs.weight".into(), vec![numbers.len()], numbers.clone())))
    };
    factors(vec![1.0; 8]).unwrap();
    says(factors(vec![0.0; 8]), "rope factors");
    says(factors(vec![1.0; 7]), "rope factors");
}

#[test]
fn no_cut_and_no_flipped_byte_panics() {
    let folder = Folder::new("broken");
    let good = tiny().gguf().finish();
    let header = good.len() - 4 * 64 * 64;
    let lengths = (0..200).chain((200..good.len()).step_by(good.len() / 100));
    for length in lengths {
        assert!(error_of(&folder, &good[..length]).is_err(), "cut at {length}");
    }
    // Beyond the header a byte is a weight, and most weights are as good as others.
    let mut refused = 0;
    for at in (0..header.min(4000)).step_by(3) {
        let mut bad = good.clone();
        bad[at] ^= 0x81;
        refused += usize::from(error_of(&folder, &bad).is_err());
    }
    assert!(refused > 300, "{refused}");
}

#[test]
fn folders_that_make_no_model() {
    let tiny = tiny();
    let folder = Folder::new("folder");
    let load = || Llama::load(folder.whole(), &LoadOptions::default()).map(|_| ());
    says(load(), "config.json");
    folder.file("config.json", b"{");
    says(load(), "no JSON");
    folder.file("config.json", tiny.config_json().to_string().as_bytes());
    says(load(), "no .safetensors file");
    let content = tiny.safetensors();
    folder.file("model.safetensors", &content);
    load().unwrap();
    for length in [0, 4, 100, content.len() / 2, content.len() - 1] {
        folder.file("model.safetensors", &content[..length]);
        says(load(), "model.safetensors");
    }
    folder.file("model.safetensors", &content);
    let with = |key: &str, value: serde_json::Value| {
        let mut config = tiny.config_json();
        config[key] = value;
        folder.file("config.json", config.to_string().as_bytes());
        load()
    };
    says(with("model_type", "gemma".into()), "model_type");
    says(with("hidden_act", "gelu".into()), "hidden_act");
    says(with("vocab_size", (-3).into()), "vocab_size");
    says(with("vocab_size", 51.into()), "has the sizes");
    says(with("hidden_size", serde_json::Value::Null), "no \"hidden_size\"");
    says(with("num_attention_heads", 0.into()), "number of heads");
    says(with("rope_scaling", serde_json::json!({"rope_type": "yarn", "factor": 4.0})), "yarn");
    says(with("rope_scaling", serde_json::json!({"rope_type": "llama3", "factor": 4.0})), "llama3");
    with("tie_word_embeddings", true.into()).unwrap();
    says(Llama::load(folder.path("none.gguf"), &LoadOptions::default()).map(|_| ()), "cannot read");
    folder.file("text.gguf", b"This is no model, but a text.");
    says(Llama::load(folder.path("text.gguf"), &LoadOptions::default()).map(|_| ()), "GGUF");
}
