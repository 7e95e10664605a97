//! Random grammars, texts and vocabularies. The same seed gives the same result on every machine.
//!
//! ```
//! use maskwright_oracle::{Oracle, generate};
//!
//! let mut rng = generate::Rng::new(1);
//! let grammar = generate::grammar(&mut rng, &generate::Shape::default());
//! let oracle = Oracle::new(&grammar);
//! let text = generate::text(&mut rng, &oracle, 20).unwrap();
//! assert!(oracle.accepts(&text));
//! ```

mod grammar;
mod rng;
mod text;
mod vocabulary;

pub use grammar::{Shape, grammar};
pub use rng::Rng;
pub use text::{mutate, text};
pub use vocabulary::{strings, vocabulary};
