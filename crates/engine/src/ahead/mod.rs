//! Work that needs no answer from the model: forced text, drafts that are checked at once, and masks prepared in
//! advance.

mod draft;
mod forced;
mod prepare;

pub use self::draft::{DRAFT_ROOT, DraftError, DraftTree};
pub use self::forced::{Encode, ForcedText, ForcedTokens, TokenHealing};
pub use self::prepare::Prepared;
