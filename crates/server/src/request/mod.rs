//! Reads requests: JSON in, checked values out.
//!
//! | module | what it reads |
//! |---|---|
//! | [`fields`] | one JSON object, field by field, without ignoring any |
//! | [`requested`] | the constraint, in the notations of several servers |
//! | [`weights`] | a grammar with probabilities, and its weight |
//! | [`extras`] | options that other servers do not have |
//! | [`sampling`] | temperature and similar parameters |
//! | [`decoding`] | how an answer is written, other than token by token under a mask |
//! | [`words`] | further fields of other servers |
//! | [`messages`] | conversations |
//! | [`thoughts`] | whether the model thinks first, and further variables of its template |
//! | [`tools`] | the tools that the model may call |
//! | [`plain_tools`] | how to describe them to models whose templates do not support tools |

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
