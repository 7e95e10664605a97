#!/bin/bash -eu
cd "$SRC/maskwright"
cargo fuzz build -O --debug-assertions --features server
targets=$(sed -n 's/^name = "\([a-z_]*\)"/\1/p' fuzz/Cargo.toml)
python3 scripts/fuzz_corpus.py $targets
for target in $targets; do
    cp "fuzz/target/x86_64-unknown-linux-gnu/release/$target" "$OUT/"
    (cd "fuzz/seeds/$target" && zip -q -r "$OUT/${target}_seed_corpus.zip" .)
done
