//! Adds a grammar's scores to a model's logits.
//!
//! A mask says which tokens may come. A grammar with probabilities also says how likely they are: Δ, the change of the
//! logarithm of the prefix probability. [`guide`] adds λ·Δ to the logits, and −∞ to forbidden tokens. With λ = 0 it is
//! a plain mask; with λ = 1 and a uniform model, the text is drawn from the grammar itself.
//!
//! [`log_mask_mass`] is log Z of a mask: the share of the model's probability that it leaves. Masking hides this
//! number, and samplers need it to correct the weights.

use maskwright_vocab::TokenMask;

use crate::adapter::Adapter;
use crate::semiring::Semiring;

/// Adds `strength` times the grammar's change of log probability to each logit, and writes −∞ where no token may come.
/// Logits beyond the vocabulary are forbidden as well. Returns how many tokens are allowed.
///
/// ```
/// use std::sync::Arc;
/// use maskwright_vocab::{TokenId, VocabularyBuilder};
/// use maskwright_weighted::{Adapter, Options, Pcfg, Real, guide};
/// let mut vocabulary = VocabularyBuilder::new();
/// for (id, token) in (0..).zip(["yes", "no", "perhaps"]) {
///     vocabulary.token(TokenId(id), token.as_bytes())?;
/// }
/// let grammar = Pcfg::parse("S -> yes [0.8] | no [0.2]", &Options::default()).unwrap();
/// let adapter = Adapter::<Real>::new(&grammar, Arc::new(vocabulary.finish()?)).unwrap();
/// let mut logits = [0.0, 0.0, 5.0];
/// assert_eq!(guide(&adapter, 1.0, &mut logits), 2);
/// assert!((f64::from(logits[0]).exp() - 0.8).abs() < 1e-6 && logits[2] == f32::NEG_INFINITY);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn guide<S: Semiring>(adapter: &Adapter<S>, strength: f64, logits: &mut [f32]) -> usize {
    let mut guided = vec![f32::NEG_INFINITY; logits.len()];
    let mut allowed = 0;
    for (token, change) in adapter.scores() {
        let at = token.0 as usize;
        if let (Some(out), Some(logit)) = (guided.get_mut(at), logits.get(at)) {
            // Zero times an infinite change is still no change.
            let added = if strength == 0.0 { 0.0 } else { strength * change };
            *out = (f64::from(*logit) + added) as f32;
            allowed += 1;
        }
    }
    logits.copy_from_slice(&guided);
    allowed
}

/// Returns the logarithm of the probability that the model gives to all tokens of a mask together.
///
/// ```
/// use maskwright_vocab::{TokenId, TokenMask};
/// use maskwright_weighted::log_mask_mass;
/// let mut mask = TokenMask::new(4);
/// mask.insert(TokenId(1));
/// assert!((log_mask_mass(&[0.0; 4], &mask).exp() - 0.25).abs() < 1e-12);
/// ```
pub fn log_mask_mass(logits: &[f32], mask: &TokenMask) -> f64 {
    let allowed: Vec<f32> = mask.iter().filter_map(|token| logits.get(token.0 as usize)).copied().collect();
    log_sum(&allowed) - log_sum(logits)
}

/// Returns the logarithm of a sum of exponentials.
fn log_sum(logits: &[f32]) -> f64 {
    let greatest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    if greatest == f32::NEG_INFINITY {
        return f64::NEG_INFINITY;
    }
    let greatest = f64::from(greatest);
    greatest + logits.iter().map(|logit| (f64::from(*logit) - greatest).exp()).sum::<f64>().ln()
}
