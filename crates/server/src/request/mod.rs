//! What clients ask for: JSON in, checked values out.
//!
//! | module | what it reads |
//! |---|---|
//! | [`fields`] | one JSON object, field by field, nothing ignored |
//! | [`requested`] | the constraint, in the words of several servers |
//! | [`weights`] | a grammar with probabilities, and how much it counts |
//! | [`extras`] | what they have no words for |
//! | [`sampling`] | temperature and the like |
//! | [`decoding`] | how an answer is written, besides token by token under a mask |
//! | [`words`] | what other servers know besides |
//! | [`messages`] | conversations |
//! | [`thoughts`] | whether the model thinks first, and what else its template is told |
//! | [`tools`] | what the model may call |
//! | [`plain_tools`] | how to tell it to models that have no words for it |

pub(crate) mod decoding;
pub(crate) mod extras;
pub(crate) mod fields;
pub(crate) mod messages;
pub(crate) mod plain_tools;
pub(crate) mod requested;
pub(crate) mod sampling;
pub(crate) mod thoughts;
pub(crate) mod tools;
pub(crate) mod weights;
pub(crate) mod words;

pub(crate) use fields::Fields;
pub(crate) use requested::Requested;
