//! What can be known before the model is asked: text that is forced, and drafts that are checked at once.

mod draft;
mod forced;

pub use self::draft::{DRAFT_ROOT, DraftError, DraftTree};
pub use self::forced::{Encode, ForcedText, ForcedTokens, TokenHealing};
