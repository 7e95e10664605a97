//! Builds indexes from constraints.

use maskwright_engine::{CompileError, Flaw, Index, IndexChecks, IndexLimits};
use maskwright_grammar::Grammar;

use crate::{Compiler, Constraint, Error};

impl Compiler {
    /// Compiles a constraint with finitely many states ahead of time; see [`Index`].
    ///
    /// ```
    /// use std::sync::Arc;
    /// use maskwright::{Compiler, Constraint, Index, IndexLimits, TokenId, VocabularyBuilder};
    ///
    /// let mut vocabulary = VocabularyBuilder::new();
    /// vocabulary.token(TokenId(0), b"1")?.token(TokenId(1), b"22")?.token(TokenId(2), b"x")?;
    /// let compiler = Compiler::new(Arc::new(vocabulary.finish()?));
    /// let index = compiler.index(&Constraint::regex("[0-9]{2}"), &IndexLimits::default())?;
    ///
    /// let start = index.initial_state();
    /// assert_eq!(index.allowed_tokens(start), [TokenId(0), TokenId(1)]);
    /// assert!(index.is_terminal(index.next_state(start, TokenId(1))?));
    ///
    /// // Saved, and back.
    /// let mut file = Vec::new();
    /// index.save(&mut file)?;
    /// let again = Index::from_bytes(file)?;
    /// again.check_vocabulary(compiler.vocabulary())?;
    /// assert_eq!(again.allowed_tokens(start), index.allowed_tokens(start));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn index(&self, constraint: &Constraint, limits: &IndexLimits) -> Result<Index, Error> {
        self.index_of_grammar(&self.grammar(constraint)?.0, limits)
    }

    /// Builds an index from a grammar instead of a constraint.
    pub fn index_of_grammar(&self, grammar: &Grammar, limits: &IndexLimits) -> Result<Index, Error> {
        let shared = self.shared();
        let resolved = self.resolve(grammar)?;
        if resolved.needs_numbers || resolved.asks_for_end {
            let message =
                "the constraint refers to ordinary tokens by number, or to the end token, so it has no index";
            return Err(Error::Compile(CompileError::Tokens(message.into())));
        }
        Index::build(&resolved.grammar, &shared.library, &shared.tables, limits).map_err(Error::Index)
    }

    /// Compares every state and token of an index with a constraint, byte by byte.
    pub fn verify_index(
        &self,
        index: &Index,
        constraint: &Constraint,
        limits: &IndexLimits,
    ) -> Result<Result<IndexChecks, Flaw>, Error> {
        let (grammar, _) = self.grammar(constraint)?;
        let resolved = self.resolve(&grammar)?;
        Ok(index.check_constraint(&resolved.grammar, self.vocabulary(), &self.shared().tables, limits))
    }
}
