//! The headers are written by hand. Here they are compared with the Rust code: which functions there are, what they take and return, and the fields of structs.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use regex::Regex;

/// Types of the parameters, then the result.
type Signature = Vec<String>;

#[test]
fn functions_of_headers_and_library_agree() {
    let mut declared = BTreeMap::new();
    for header in ["maskwright.h", "llguidance.h"] {
        declared.extend(declared_functions(&header_text(header)));
    }
    let mut exported = BTreeMap::new();
    for (path, text) in sources() {
        exported.extend(exported_functions(&text, path.contains("llg")));
    }
    assert!(declared.len() > 60, "only {} functions were found in the headers", declared.len());
    for (name, signature) in &declared {
        assert_eq!(exported.get(name), Some(signature), "{name}: the library, and what the header says");
    }
    for name in exported.keys() {
        assert!(declared.contains_key(name), "{name} is exported, and in no header");
    }
}

#[test]
fn structs_of_headers_and_library_agree() {
    let mut declared = BTreeMap::new();
    for header in ["maskwright.h", "llguidance.h"] {
        declared.extend(declared_structs(&header_text(header)));
    }
    let mut defined = BTreeMap::new();
    for (path, text) in sources() {
        defined.extend(defined_structs(&text, path.contains("llg")));
    }
    // In Rust the second version holds the first.
    let first = defined["LlgTokenizerInit"].clone();
    let second = defined.get_mut("LlgTokenizerInitV2").unwrap();
    second.splice(1..2, first);
    assert!(declared.len() == 10 && declared.keys().eq(defined.keys()), "{declared:?}\n{defined:?}");
    for (name, fields) in declared {
        assert_eq!(fields, defined[&name], "{name}: the header, and what the library has");
    }
}

/// Besides exported names, and `unsafe impl` where a struct promises its layout.
#[test]
fn unsafe_code_stays_in_its_room() {
    let code = Regex::new(r"(?m)^[^/\n]*\bunsafe\s*(\{|fn\b|extern\b)").unwrap();
    for (path, text) in sources() {
        assert_eq!(code.is_match(&text), path == "pointer.rs", "{path}");
    }
}

/// One word for one thing: what a matcher does is called the same in C, in Python and in Rust.
#[test]
fn the_faces_use_the_same_words() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |path: &str| fs::read_to_string(root.join(path)).unwrap();
    let (header, stubs) = (header_text("maskwright.h"), read("python/maskwright/_maskwright.pyi"));
    let (backend, service) =
        (read("crates/maskwright/src/backend/mod.rs"), read("crates/maskwright/src/service/compiled.rs"));
    for word in ["fill_mask", "accept", "rollback", "reset", "fork"] {
        assert!(
            backend.contains(&format!("fn {word}(")) && service.contains(&format!("pub fn {word}(")),
            "{word}"
        );
    }
    for word in [
        "fill_mask",
        "accept",
        "accept_bytes",
        "validate",
        "rollback",
        "reset",
        "fork",
        "set_budget",
        "shortest_completion",
        "fill_draft_chain",
        "fill_draft_tree",
    ] {
        assert!(header.contains(&format!(" mw_matcher_{word}(")), "{word} in C");
        assert!(stubs.contains(&format!("    def {word}(self")), "{word} in Python");
    }
    for word in ["save", "load"] {
        assert!(header.contains(&format!(" mw_compiler_{word}(")), "{word} in C");
        assert!(stubs.contains(&format!("    def {word}(self")), "{word} in Python");
    }
    assert!(header.contains(" mw_matcher_forced(") && stubs.contains("    def forced("));
    for word in ["new", "fork", "scores", "accept", "rollback", "logprob"] {
        assert!(header.contains(&format!(" mw_scorer_{word}(")), "{word} in C");
    }
    assert!(header.contains(" mw_schema_to_regex(") && stubs.contains("\ndef schema_to_regex("));
    assert!(header.contains(" mw_fill_masks(") && stubs.contains("\ndef fill_masks("));
    assert!(header.contains("struct mw_compiled_constraint ") && stubs.contains("class CompiledConstraint:"));
    assert!(service.contains("pub struct CompiledConstraint "));
}

/// Lists of the caller are copied to: a `&mut [T]` would promise that nobody else writes them, which nobody can.
#[test]
fn lists_of_the_caller_are_never_borrowed_to_be_written() {
    for (path, text) in sources() {
        assert!(!text.contains("from_raw_parts_mut"), "{path}");
    }
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("../python/src/buffer.rs");
    assert!(!fs::read_to_string(python).unwrap().contains("from_raw_parts"));
}

fn header_text(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("include").join(name);
    let text = fs::read_to_string(path).unwrap();
    Regex::new(r"(?s)/\*.*?\*/").unwrap().replace_all(&text, "").into_owned()
}

/// The Rust files, with their paths.
fn sources() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let folders = [root.clone(), root.join("llg")];
    let files =
        folders.iter().flat_map(|folder| fs::read_dir(folder).unwrap()).map(|entry| entry.unwrap().path());
    let files: Vec<_> = files
        .filter(|path| path.is_file())
        .map(|path| {
            (path.strip_prefix(&root).unwrap().display().to_string(), fs::read_to_string(&path).unwrap())
        })
        .collect();
    assert!(files.len() >= 12);
    files
}

fn declared_functions(header: &str) -> BTreeMap<String, Signature> {
    let function = Regex::new(r"(?m)^([a-z][\w \*]*?)((?:mw|llg)_\w+)\(([^;]*)\);").unwrap();
    let functions = function.captures_iter(header).map(|found| {
        let parameters = found[3].split(',').map(str::trim).filter(|parameter| *parameter != "void");
        let types = parameters.map(|parameter| c_type(without_name(parameter)));
        (found[2].to_owned(), types.chain([c_type(&found[1])]).collect())
    });
    functions.collect()
}

fn exported_functions(source: &str, is_llg: bool) -> BTreeMap<String, Signature> {
    let function = Regex::new(
        r#"(?s)#\[unsafe\(no_mangle\)\]\s*pub extern "C" fn (\w+)(?:<'c>)?\((.*?)\)(?: -> ([^\{]+?))? \{"#,
    )
    .unwrap();
    let functions = function.captures_iter(source).map(|found| {
        let parameters = Regex::new(r"(\w+): ((?:[^<>,]|<(?:[^<>]|<(?:[^<>]|<[^<>]*>)*>)*>)+)").unwrap();
        let types = parameters.captures_iter(&found[2]).map(|found| rust_type(&found[2], is_llg));
        let result = found.get(3).map_or("void".to_owned(), |result| rust_type(result.as_str(), is_llg));
        (found[1].to_owned(), types.chain([result]).collect())
    });
    functions.collect()
}

fn declared_structs(header: &str) -> BTreeMap<String, Vec<(String, String)>> {
    let structs = Regex::new(r"(?s)typedef struct (\w+) \{(.*?)\}").unwrap();
    let structs = structs.captures_iter(header).map(|found| {
        let fields = found[2].split(';').map(str::trim).filter(|field| !field.is_empty());
        let fields = fields.map(|field| {
            let kind = without_name(field);
            (field[kind.len()..].trim().to_owned(), c_type(kind))
        });
        (found[1].to_owned(), fields.collect())
    });
    structs.collect()
}

fn defined_structs(source: &str, is_llg: bool) -> BTreeMap<String, Vec<(String, String)>> {
    let structs = Regex::new(r"(?s)#\[repr\(C\)\]\s*pub struct (\w+)(?:<'c>)? \{(.*?)\n\}").unwrap();
    let structs = structs.captures_iter(source).map(|found| {
        let field = Regex::new(r"(?m)^    (\w+): (.+),$").unwrap();
        let fields = field.captures_iter(&found[2]);
        let fields = fields.map(|found| (found[1].to_owned(), rust_type(&found[2], is_llg))).collect();
        (handle_name(&found[1], is_llg), fields)
    });
    structs.collect()
}

/// A declaration without the name at its end.
fn without_name(declaration: &str) -> &str {
    declaration.trim_end_matches(|c: char| c.is_alphanumeric() || c == '_')
}

/// A type of C in one spelling. A byte is a byte, and a function is a function.
fn c_type(text: &str) -> String {
    let text = text.replace("struct ", "").replace("LlgToken ", "uint32_t ").replace("bool", "uint8_t");
    let text = text.replace("uint8_t", "char").replace("mw_status", "int32_t");
    let text = text.replace("mw_encode_fn", "function").replace("LlgTokenizeFn", "function");
    let compact = text.replace(' ', "");
    // A matcher may work while it is asked, which its type does not say.
    compact.strip_prefix("const").filter(|rest| *rest == "LlgMatcher*").unwrap_or(&compact).to_owned()
}

/// A type of Rust as C writes it.
fn rust_type(text: &str, is_llg: bool) -> String {
    let lifetimes = Regex::new(r"<'\w+>|'\w+, |&'\w+ ").unwrap();
    let text = lifetimes.replace_all(text.trim(), "");
    let inside = |wrapper: &str| text.strip_prefix(wrapper)?.strip_prefix('<')?.strip_suffix('>');
    if let Some(inner) = inside("Ref") {
        let inner = rust_type(inner, is_llg);
        return c_type(&if inner.ends_with('*') {
            format!("{inner}const*")
        } else {
            format!("const {inner} *")
        });
    }
    if let Some(inner) = ["Mut", "Out", "Owned", "Given"].iter().find_map(|wrapper| inside(wrapper)) {
        return format!("{}*", rust_type(inner, is_llg));
    }
    let simple = match &*text {
        "u8" | "c_char" | "bool" => "char",
        "u32" => "uint32_t",
        "u64" => "uint64_t",
        "usize" => "size_t",
        "i32" | "Status" => "int32_t",
        "f32" => "float",
        "f64" => "double",
        "*const c_char" => "constchar*",
        "*const u32" => "constuint32_t*",
        "UserData" => "constvoid*",
        "Option<EncodeFn>" => "function",
        name => return handle_name(name, is_llg),
    };
    simple.to_owned()
}

/// `VocabularyOptions` is `mw_vocabulary_options`, and `TokenizerInit` is `LlgTokenizerInit`.
fn handle_name(name: &str, is_llg: bool) -> String {
    if is_llg {
        return format!("Llg{name}");
    }
    let parts = Regex::new("[A-Z][a-z]*").unwrap();
    parts.find_iter(name).fold("mw".to_owned(), |all, part| all + "_" + &part.as_str().to_lowercase())
}
