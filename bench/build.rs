//! Builds the peers' libraries, each in its own workspace, into `peers/` of this build's target folder.
//!
//! `MWBENCH_PEERS` names the ones to build (`llguidance,glrmask` by default; empty for none), for a quick build of
//! the harness alone. The harness looks for them where this script puts them; `--peers DIR` overrides.

use std::path::PathBuf;
use std::process::Command;

const PEERS: &str = "llguidance,glrmask";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=abi/src");
    println!("cargo:rerun-if-changed=peers");
    println!("cargo:rerun-if-env-changed=MWBENCH_PEERS");
    let target = target_folder().join("peers");
    println!("cargo:rustc-env=MWBENCH_PEER_FOLDER={}", target.join("release").display());
    let wanted = std::env::var("MWBENCH_PEERS").unwrap_or_else(|_| PEERS.to_owned());
    for peer in wanted.split(',').filter(|peer| !peer.is_empty()) {
        build(peer, &target);
    }
}

/// `OUT_DIR` is `<target>/<profile>/build/<package>/out`.
fn target_folder() -> PathBuf {
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("Cargo sets OUT_DIR"));
    out.ancestors().nth(4).expect("OUT_DIR lies four levels below the target folder").to_owned()
}

fn build(peer: &str, target: &std::path::Path) {
    let cargo = std::env::var_os("CARGO").expect("Cargo sets CARGO");
    let manifest = PathBuf::from("peers").join(peer).join("Cargo.toml");
    // Peers are always measured optimised, whatever the profile of the harness.
    let status = Command::new(cargo)
        .args(["build", "--release", "--locked", "--manifest-path"])
        .arg(manifest)
        .arg("--target-dir")
        .arg(target)
        .env_remove("CARGO_TARGET_DIR")
        .status();
    match status {
        Ok(status) if status.success() => {}
        Ok(status) => {
            panic!("building the peer {peer} failed ({status}); MWBENCH_PEERS= builds without peers")
        }
        Err(error) => panic!("cannot start Cargo for the peer {peer}: {error}"),
    }
}
