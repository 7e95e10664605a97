//! The forward pass of the Llama family: Llama, `SmolLM`, Mistral, Qwen 2 and 3.
//!
//! A token becomes a row of numbers (its embedding). Each layer first adds the result of *attention* to the row: a
//! query is compared with the keys of all earlier positions, and their values are mixed according to how well they
//! match. Then it adds the result of the gated feed-forward part. At the end the normalized row is compared with the
//! embeddings of all tokens, which gives the logits. The members of the family differ only slightly: Qwen 2 adds biases
//! to queries, keys and values, and Qwen 3 normalizes their heads.
//!
//! The rows of all sequences of a step pass through every matrix together. Only attention distinguishes which row
//! belongs to which sequence.

#![expect(clippy::inline_always, reason = "what is not inlined is compiled for the oldest processor")]

use std::{
    collections::{BTreeMap, HashSet},
    num::NonZero,
    path::Path,
};

use maskwright_vocab::TokenId;

use super::{
    Config, Feed, LoadError, Logits, Model, ModelError, SequenceId,
    blocks::{Blocks, Tiles, Way, Work},
    check_feeds, gguf,
    kernel::{Angles, Spread, add, dot, gated, norm, product, softmax},
    kv::{Cache, Layout, Part},
    safetensors,
    weights::{Layer, Matrix, Weights},
};

/// A model of the Llama family.
pub struct Llama {
    config: Config,
    weights: Weights,
    layout: Layout,
    sequences: BTreeMap<SequenceId, Cache>,
    next: u64,
    threads: Threads,
    room: Room,
}

/// Options for loading a model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LoadOptions {
    /// The number of threads. By default it is one less than the number of processors, but at least one, so that other
    /// work can run in parallel with the model.
    pub threads: Option<NonZero<usize>>,
    /// The maximum number of tokens of a text, if lower than the model's own limit.
    pub context: Option<NonZero<usize>>,
}

impl Llama {
    /// Reads a model from a GGUF file or from a folder with `config.json` and safetensors files.
    pub fn load(path: impl AsRef<Path>, options: &LoadOptions) -> Result<Self, LoadError> {
        let path = path.as_ref();
        let (config, weights) = if path.is_dir() { safetensors::load(path)? } else { gguf::load(path)? };
        Self::new(config, weights, options)
    }

    fn new(mut config: Config, weights: Weights, options: &LoadOptions) -> Result<Self, LoadError> {
        if let Some(context) = options.context {
            config.context = config.context.min(context.get());
        }
        Ok(Self {
            layout: Layout::new(&config),
            weights,
            sequences: BTreeMap::new(),
            next: 0,
            threads: Threads::new(options.threads)?,
            room: Room::default(),
            config,
        })
    }

    /// Returns the shape of the model.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the number of threads.
    pub fn threads(&self) -> usize {
        self.threads.count()
    }

    /// Returns the size of the weights in bytes.
    pub fn weight_bytes(&self) -> usize {
        let layer = |layer: &Layer| {
            layer.query_key_value.heap_bytes()
                + layer.attention_out.heap_bytes()
                + layer.gate_up.heap_bytes()
                + layer.down.heap_bytes()
        };
        let outer = [Some(&self.weights.embedding), self.weights.output.as_ref()];
        let outer: usize = outer.into_iter().flatten().map(Matrix::heap_bytes).sum();
        outer + self.weights.layers.iter().map(layer).sum::<usize>()
    }

    fn cache(&self, sequence: SequenceId) -> Result<&Cache, ModelError> {
        self.sequences.get(&sequence).ok_or(ModelError::NoSequence(sequence))
    }

    fn insert(&mut self, cache: Cache) -> SequenceId {
        let id = SequenceId(self.next);
        self.next += 1;
        self.sequences.insert(id, cache);
        id
    }
}

impl Model for Llama {
    fn width(&self) -> usize {
        self.config.tokens
    }

    fn context(&self) -> usize {
        self.config.context
    }

    fn open(&mut self) -> SequenceId {
        self.insert(Cache::default())
    }

    fn fork(&mut self, of: SequenceId, length: usize) -> Result<SequenceId, ModelError> {
        let cache = self.cache(of)?;
        if length > cache.len() {
            return Err(ModelError::TooShort { asked: length, length: cache.len() });
        }
        let prefix = cache.prefix(length);
        Ok(self.insert(prefix))
    }

    fn truncate(&mut self, sequence: SequenceId, length: usize) -> Result<(), ModelError> {
        let cache = self.sequences.get_mut(&sequence).ok_or(ModelError::NoSequence(sequence))?;
        if length > cache.len() {
            return Err(ModelError::TooShort { asked: length, length: cache.len() });
        }
        cache.truncate(length);
        Ok(())
    }

    fn close(&mut self, sequence: SequenceId) {
        self.sequences.remove(&sequence);
    }

    fn length(&self, sequence: SequenceId) -> Result<usize, ModelError> {
        Ok(self.cache(sequence)?.len())
    }

    fn step(&mut self, feeds: &[Feed<'_>], logits: &mut Logits) -> Result<(), ModelError> {
        check_feeds(feeds, self.config.context, self.config.tokens, |id| Ok(self.cache(id)?.len()))?;
        if feeds.is_empty() {
            logits.reset(0, self.config.tokens);
            return Ok(());
        }
        // The caches of the step in a list, so that rows can refer to them by index.
        let mut caches: Vec<Cache> =
            feeds.iter().filter_map(|feed| self.sequences.remove(&feed.sequence)).collect();
        let pass = Pass {
            config: &self.config,
            weights: &self.weights,
            layout: self.layout,
            spread: self.threads.spread(),
        };
        let room = &mut self.room;
        self.threads.run(|| pass.run(feeds, &mut caches, room, logits));
        self.sequences.extend(feeds.iter().map(|feed| feed.sequence).zip(caches));
        Ok(())
    }

    fn cache_bytes(&self) -> usize {
        let mut seen = HashSet::new();
        let pages = self.sequences.values().flat_map(Cache::pages);
        pages.filter(|(page, _)| seen.insert(*page)).map(|(_, bytes)| bytes).sum()
    }
}

impl std::fmt::Debug for Llama {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Llama")
            .field("config", &self.config)
            .field("sequences", &self.sequences.len())
            .finish_non_exhaustive()
    }
}

/// Our own threads, so that nothing depends on the environment or on other users of a pool.
#[derive(Debug)]
enum Threads {
    /// The caller's thread.
    Own,
    Pool(rayon::ThreadPool),
}

impl Threads {
    fn new(count: Option<NonZero<usize>>) -> Result<Self, LoadError> {
        let count = count.map_or_else(default_threads, NonZero::get);
        if count == 1 {
            return Ok(Self::Own);
        }
        let name = |index: usize| format!("model-{index}");
        let pool = rayon::ThreadPoolBuilder::new().num_threads(count).thread_name(name).build();
        pool.map(Self::Pool).map_err(|error| LoadError::Threads(error.to_string()))
    }

    fn count(&self) -> usize {
        match self {
            Self::Own => 1,
            Self::Pool(pool) => pool.current_num_threads(),
        }
    }

    fn spread(&self) -> Spread {
        match self {
            Self::Own => Spread::One,
            Self::Pool(_) => Spread::All,
        }
    }

    fn run(&self, work: impl FnOnce() + Send) {
        match self {
            Self::Own => work(),
            Self::Pool(pool) => pool.install(work),
        }
    }
}

/// Returns one less than the number of processors, so that other work can run in parallel with the model.
pub(super) fn default_threads() -> usize {
    std::thread::available_parallelism().map_or(1, |all| (all.get() - 1).max(1))
}

/// Buffers that a step needs, kept for the next step.
#[derive(Debug, Default)]
struct Room {
    /// A row for each token, which is passed from layer to layer.
    stream: Vec<f32>,
    normed: Vec<f32>,
    quantised: Blocks,
    query_key_value: Vec<f32>,
    attended: Vec<f32>,
    gate_up: Vec<f32>,
    gated: Vec<f32>,
    added: Vec<f32>,
    turned: Vec<f32>,
    angles: Angles,
}

/// The sequence of the step that a row belongs to, and its position in it.
#[derive(Debug, Clone, Copy)]
struct Place {
    cache: usize,
    position: usize,
}

/// One step.
struct Pass<'m> {
    config: &'m Config,
    weights: &'m Weights,
    layout: Layout,
    spread: Spread,
}

impl Pass<'_> {
    fn run(&self, feeds: &[Feed<'_>], caches: &mut [Cache], room: &mut Room, logits: &mut Logits) {
        let places = self.places(feeds, caches);
        room.angles.fill(&self.config.rope, places.iter().map(|place| place.position));
        self.embed(feeds.iter().flat_map(|feed| feed.tokens), room);
        for (index, layer) in self.weights.layers.iter().enumerate() {
            self.look_back(index, layer, &places, caches, room);
            self.feed_forward(layer, room);
        }
        self.write_logits(feeds, room, logits);
    }

    /// Makes room in the caches, and returns the place of each row.
    fn places(&self, feeds: &[Feed<'_>], caches: &mut [Cache]) -> Vec<Place> {
        let mut places = Vec::new();
        for (cache, (feed, content)) in feeds.iter().zip(caches).enumerate() {
            let before = content.len();
            content.extend(feed.tokens.len(), self.layout);
            places.extend((before..content.len()).map(|position| Place { cache, position }));
        }
        places
    }

    fn embed<'t>(&self, tokens: impl Iterator<Item = &'t TokenId>, room: &mut Room) {
        let hidden = self.config.hidden;
        room.stream.clear();
        for token in tokens {
            let start = room.stream.len();
            room.stream.resize(start + hidden, 0.0);
            self.weights.embedding.blocks.floats(token.index(), &mut room.stream[start..]);
        }
    }

    fn look_back(
        &self,
        index: usize,
        layer: &Layer,
        places: &[Place],
        caches: &mut [Cache],
        room: &mut Room,
    ) {
        self.quantise_normed(&layer.attention_norm, room);
        product(
            &layer.query_key_value,
            &room.quantised,
            &mut room.query_key_value,
            &mut room.turned,
            self.spread,
        );
        let (query, kv) = (self.config.query_size(), self.config.kv_size());
        for (row, numbers) in room.query_key_value.chunks_exact_mut(query + 2 * kv).enumerate() {
            if let Some(bias) = &layer.query_key_value_bias {
                add(numbers, 1.0, bias);
            }
            let (queries, rest) = numbers.split_at_mut(query);
            let (keys, values) = rest.split_at_mut(kv);
            if let Some((of_queries, of_keys)) = &layer.head_norms {
                norm(queries, of_queries, self.config.epsilon);
                norm(keys, of_keys, self.config.epsilon);
            }
            room.angles.turn(row, queries, &self.config.rope);
            room.angles.turn(row, keys, &self.config.rope);
            let Place { cache, position } = places[row];
            caches[cache].write(self.layout, index, Part::Key, position, keys);
            caches[cache].write(self.layout, index, Part::Value, position, values);
        }
        self.attend(index, places, caches, &room.query_key_value, &mut room.attended);
        room.quantised.fill(&room.attended, query);
        product(&layer.attention_out, &room.quantised, &mut room.added, &mut room.turned, self.spread);
        add(&mut room.stream, 1.0, &room.added);
    }

    /// Computes attention for each row and each head.
    fn attend(
        &self,
        index: usize,
        places: &[Place],
        caches: &[Cache],
        queries: &[f32],
        attended: &mut Vec<f32>,
    ) {
        let Config { kv_heads, head_size, .. } = *self.config;
        let group = self.config.query_size() / kv_heads;
        let stride = self.config.query_size() + 2 * self.config.kv_size();
        attended.clear();
        attended.resize(places.len() * self.config.query_size(), 0.0);
        let way = Way::detect();
        self.spread.pieces(attended, group, |piece, out| {
            let (row, head) = (piece / kv_heads, piece % kv_heads);
            let Place { cache, position } = places[row];
            way.run(Attend {
                cache: &caches[cache],
                layout: self.layout,
                layer: index,
                head,
                seen: position + 1,
                queries: &queries[row * stride + head * group..][..group],
                head_size,
                out,
            });
        });
    }

    fn feed_forward(&self, layer: &Layer, room: &mut Room) {
        self.quantise_normed(&layer.inner_norm, room);
        product(&layer.gate_up, &room.quantised, &mut room.gate_up, &mut room.turned, self.spread);
        gated(&room.gate_up, self.config.inner, &mut room.gated);
        room.quantised.fill(&room.gated, self.config.inner);
        product(&layer.down, &room.quantised, &mut room.added, &mut room.turned, self.spread);
        add(&mut room.stream, 1.0, &room.added);
    }

    fn quantise_normed(&self, weights: &[f32], room: &mut Room) {
        room.normed.clone_from(&room.stream);
        norm(&mut room.normed, weights, self.config.epsilon);
        room.quantised.fill(&room.normed, self.config.hidden);
    }

    fn write_logits(&self, feeds: &[Feed<'_>], room: &mut Room, logits: &mut Logits) {
        let hidden = self.config.hidden;
        room.normed.clear();
        let mut end = 0;
        for feed in feeds {
            end += feed.tokens.len();
            let wanted = feed.wanted.rows(feed.tokens.len());
            room.normed.extend_from_slice(&room.stream[(end - wanted) * hidden..end * hidden]);
        }
        let rows = room.normed.len() / hidden;
        let out = logits.reset(rows, self.config.tokens);
        if rows == 0 {
            return;
        }
        norm(&mut room.normed, &self.weights.norm, self.config.epsilon);
        room.quantised.fill(&room.normed, hidden);
        let matrix = self.weights.output.as_ref().unwrap_or(&self.weights.embedding);
        product(matrix, &room.quantised, &mut room.added, &mut room.turned, self.spread);
        out.copy_from_slice(&room.added);
    }
}

/// The work for one key-value head of a row.
struct Attend<'p> {
    cache: &'p Cache,
    layout: Layout,
    layer: usize,
    head: usize,
    /// The number of positions to attend to.
    seen: usize,
    queries: &'p [f32],
    head_size: usize,
    out: &'p mut [f32],
}

impl Work for Attend<'_> {
    #[inline(always)]
    fn run(self, _: impl Tiles) {
        let scale = 1.0 / (self.head_size as f32).sqrt();
        let mut scores = vec![0.0; self.seen];
        let heads = self.queries.chunks_exact(self.head_size).zip(self.out.chunks_exact_mut(self.head_size));
        for (query, out) in heads {
            let keys = self.cache.read(self.layout, self.layer, Part::Key, self.head, self.seen);
            let keys = keys.flat_map(|page| page.chunks_exact(self.head_size));
            for (score, key) in scores.iter_mut().zip(keys) {
                *score = dot(query, key) * scale;
            }
            softmax(&mut scores);
            let values = self.cache.read(self.layout, self.layer, Part::Value, self.head, self.seen);
            let values = values.flat_map(|page| page.chunks_exact(self.head_size));
            for (share, value) in scores.iter().zip(values) {
                add(out, *share, value);
            }
        }
    }
}
