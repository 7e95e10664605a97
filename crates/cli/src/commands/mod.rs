//! One file for each command.

pub(crate) mod audit;
pub(crate) mod check;
pub(crate) mod debug;
pub(crate) mod demo;
pub(crate) mod explain;
pub(crate) mod forced;
#[cfg(feature = "runtime")]
pub(crate) mod generate;
pub(crate) mod index;
pub(crate) mod locate;
pub(crate) mod mask;
#[cfg(feature = "runtime")]
mod model;
pub(crate) mod pcfg;
pub(crate) mod schema_to_regex;
#[cfg(feature = "server")]
pub(crate) mod serve;
pub(crate) mod vocab;
