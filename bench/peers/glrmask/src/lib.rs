//! GLRMask behind the harness's bridge, set up as its README does: `Grammar::from_json_schema(..)?.compile(&vocab)`
//! with the default strategy (parser automaton, or trie walk where that would grow too large).

use glrmask::{Constraint, ConstraintState, Grammar, Vocab};
use mwbench_abi::{Kind, Peer, Session, Source, Vocabulary, export_peer};

export_peer!(GlrMask);

struct GlrMask {
    vocab: Vocab,
}

impl Peer for GlrMask {
    type Compiled = Constraint;
    type Session<'a> = State<'a>;

    const NAME: &'static str = "glrmask";
    const RELEASE: &'static str = "0.5.0";
    const END_IN_MASK: bool = false;

    fn open(vocabulary: &Vocabulary<'_>) -> Result<Self, String> {
        let spelled = vocabulary.tokens.iter().enumerate().filter(|(_, bytes)| !bytes.is_empty());
        let entries = spelled.map(|(id, bytes)| (id as u32, bytes.clone())).collect();
        Ok(GlrMask { vocab: Vocab::new(entries) })
    }

    fn compile(&self, source: Source<'_>) -> Result<Constraint, String> {
        let grammar = match source.kind {
            Kind::JsonSchema => Grammar::from_json_schema(source.text),
            Kind::Regex => Grammar::from_lark(format!("start: /{}/", escape_slashes(source.text))),
            Kind::Lark => Grammar::from_lark(source.text),
            Kind::Gbnf => return Err("does not read GBNF".into()),
        };
        let grammar = grammar.map_err(|error| error.to_string())?;
        grammar.compile(&self.vocab).map_err(|error| error.to_string())
    }

    fn start<'a>(&'a self, compiled: &'a Constraint) -> Result<State<'a>, String> {
        Ok(State(compiled.start()))
    }
}

struct State<'a>(ConstraintState<'a>);

impl Session for State<'_> {
    fn fill(&mut self, mask: &mut [u32]) -> bool {
        self.0.fill_mask(mask);
        true
    }

    fn accept(&mut self, token: u32) -> bool {
        self.0.commit_token(token)
    }

    fn accepting(&mut self) -> bool {
        self.0.is_accepting()
    }
}

/// A Lark regex ends at an unescaped slash.
fn escape_slashes(regex: &str) -> String {
    regex.replace("\\/", "/").replace('/', "\\/")
}
