//! The engines under test, behind one trait, so that the measuring loop is the same for all.

use mwbench_abi::{Source, Vocabulary};

pub mod maskwright;
mod peer;
mod reorder;

/// An engine with its vocabulary, ready to compile.
pub trait Engine {
    fn name(&self) -> &str;
    fn release(&self) -> &str;
    /// Whether masks contain end tokens.
    fn end_in_mask(&self) -> bool;
    /// Drops what was learned from earlier constraints, so that the next one is cold. The vocabulary is kept.
    fn forget(&self) {}
    fn compile(&self, source: Source<'_>) -> Result<Box<dyn Compiled + '_>, String>;
    /// Whether each of the JSON texts is accepted with the keys of its objects in some order; `None` if the engine
    /// cannot tell.
    fn admits_reordered(&self, _source: Source<'_>, _texts: &[&str]) -> Option<bool> {
        None
    }
    /// Returns the number of live bytes in this engine's heap.
    fn live_bytes(&self) -> i64;
}

/// A compiled constraint.
pub trait Compiled {
    fn start(&self) -> Result<Box<dyn Session + '_>, String>;
}

/// The state of one text; see [`mwbench_abi::Session`].
pub use self::maskwright::Maskwright;
pub use mwbench_abi::Session;

/// The name of our own engine, which ratios refer to.
pub const OURS: &str = "maskwright";

/// The folder of the peers' libraries.
pub const PEER_FOLDER: &str = env!("MWBENCH_PEER_FOLDER");

/// Opens the engines in `names`, and warms up their vocabularies with one small schema each.
pub fn open(
    names: &[String],
    peers: &std::path::Path,
    vocabulary: &Vocabulary<'_>,
    key_order: KeyOrder,
) -> Result<Vec<Opened>, String> {
    names.iter().map(|name| open_one(name, peers, vocabulary, key_order)).collect()
}

/// An engine, and how long opening its vocabulary took.
pub struct Opened {
    pub engine: Box<dyn Engine>,
    pub open_seconds: f64,
}

/// Returns the index of our engine among the opened ones, or 0 if it does not take part.
pub fn base(opened: &[Opened]) -> usize {
    opened.iter().position(|opened| opened.engine.name() == OURS).unwrap_or(0)
}

/// The order in which maskwright allows keys. The peers have their own rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum KeyOrder {
    #[default]
    Schema,
    Any,
}

fn open_one(
    name: &str,
    peers: &std::path::Path,
    vocabulary: &Vocabulary<'_>,
    key_order: KeyOrder,
) -> Result<Opened, String> {
    let start = std::time::Instant::now();
    let engine: Box<dyn Engine> = match name {
        OURS => Box::new(Maskwright::open(vocabulary, key_order)?),
        _ => Box::new(peer::Library::open(name, peers, vocabulary)?),
    };
    let open_seconds = start.elapsed().as_secs_f64();
    warm_up(engine.as_ref(), vocabulary)
        .map_err(|error| format!("{name} fails at a trivial schema: {error}"))?;
    Ok(Opened { engine, open_seconds })
}

/// Warms an engine up: engines prepare tables of the vocabulary on first use, which does not belong to the time of a
/// schema.
pub fn warm_up(engine: &dyn Engine, vocabulary: &Vocabulary<'_>) -> Result<(), String> {
    let source = Source { kind: mwbench_abi::Kind::JsonSchema, text: r#"{"type": "object"}"# };
    let compiled = engine.compile(source)?;
    let mut mask = vec![0; vocabulary.mask_words()];
    let filled = compiled.start()?.fill(&mut mask);
    if filled && mask.iter().any(|&word| word != 0) { Ok(()) } else { Err("the first mask is empty".into()) }
}
