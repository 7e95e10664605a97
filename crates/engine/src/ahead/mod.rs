//! What can be known before the model is asked: text that is forced, drafts that are checked at once, and masks that come next.

mod draft;
mod forced;
mod prepare;

pub use self::draft::{DRAFT_ROOT, DraftError, DraftTree};
pub use self::forced::{Encode, ForcedText, ForcedTokens, TokenHealing};
pub use self::prepare::Prepared;
