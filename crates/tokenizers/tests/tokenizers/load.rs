//! Files and folders: told apart by content, completed by the files next to them.

use std::{fs, path::PathBuf};

use maskwright_tokenizers::{Error, Format, Options, load, load_with};
use maskwright_vocab::TokenId;
use serde_json::json;

use crate::common::{added, byte_level_json};

/// An empty folder of this test's own.
fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("maskwright-{}-{name}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder for temporary files");
    folder
}

#[test]
fn the_kind_of_a_file_is_in_its_content() {
    let folder = folder("kinds");
    let path = folder.join("whatever.bin");
    fs::write(&path, format!("\n  {}", byte_level_json())).unwrap();
    assert_eq!(load(&path).unwrap().format(), Format::TokenizerJson);
    fs::write(&path, "IQ== 0\n").unwrap();
    assert_eq!(load(&path).unwrap().format(), Format::Tiktoken);
    fs::write(&path, b"\x0a\x03\x0a\x01x").unwrap();
    assert_eq!(load(&path).unwrap().format(), Format::SentencePiece);
    fs::write(&path, b"GGUF\x03").unwrap();
    let error = load(&path).unwrap_err().to_string();
    assert_eq!(
        error,
        "the GGUF file is broken: it ends in the middle of its metadata; was it downloaded completely?"
    );
    for unknown in [&b""[..], b"hello", b"\x0a\xff", b"\x00\x01\x02"] {
        fs::write(&path, unknown).unwrap();
        assert!(matches!(load(&path), Err(Error::Unknown { .. })), "{unknown:?}");
    }
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn neighbors_say_what_ends_a_text() {
    let folder = folder("neighbors");
    let mut json = byte_level_json();
    json["added_tokens"].as_array_mut().unwrap().push(added(310, "<stop>", true));
    fs::write(folder.join("tokenizer.json"), json.to_string()).unwrap();
    assert_eq!(load(&folder).unwrap().vocabulary().eos(), [TokenId(300)]);

    let config = json!({"eos_token": "<stop>", "bos_token": "</s>", "chat_template": "T"});
    fs::write(folder.join("tokenizer_config.json"), config.to_string()).unwrap();
    fs::write(folder.join("config.json"), json!({"vocab_size": 512}).to_string()).unwrap();
    let tokenizer = load(&folder).unwrap();
    assert_eq!((tokenizer.vocabulary().eos(), tokenizer.bos()), (&[TokenId(310)][..], Some(TokenId(300))));
    assert_eq!((tokenizer.vocabulary().size(), tokenizer.chat_template()), (512, Some("T")));

    fs::write(folder.join("generation_config.json"), json!({"eos_token_id": [300, 310]}).to_string())
        .unwrap();
    assert_eq!(load(&folder).unwrap().vocabulary().eos(), [TokenId(300), TokenId(310)]);
    let options = Options { eos: Some(vec![TokenId(300)]), ..Options::default() };
    assert_eq!(load_with(&folder, &options).unwrap().vocabulary().eos(), [TokenId(300)]);

    fs::write(folder.join("generation_config.json"), "{").unwrap();
    let error = load(&folder).unwrap_err().to_string();
    assert!(error.contains("generation_config.json: no JSON"), "{error}");
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn missing_files_and_empty_folders() {
    let folder = folder("empty");
    assert!(matches!(load(&folder), Err(Error::Unknown { .. })));
    assert!(matches!(load(folder.join("none.json")), Err(Error::Io { .. })));
    fs::remove_dir_all(folder).unwrap();
}
