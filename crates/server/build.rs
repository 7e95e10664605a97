//! Puts the files of the folder `page` into the program: a table of paths and contents.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=page");
    let folder = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join("page");
    let mut files = Vec::new();
    list(&folder, &mut files)?;
    files.sort();
    let mut table = String::from("/// The files of the page.\nstatic FILES: &[File] = &[\n");
    for file in &files {
        let path = file.strip_prefix(&folder).unwrap_or(file).to_string_lossy().replace('\\', "/");
        let file = file.display().to_string();
        table.extend([
            "    File { path: ",
            &format!("{path:?}"),
            ", content: include_bytes!(",
            &format!("{file:?}"),
            ") },\n",
        ]);
    }
    table += "];\n";
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    fs::write(out.join("page.rs"), table)
}

fn list(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            list(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}
