//! A small language-model runtime: many sequences at once, each under its own constraint.
//!
//! ```no_run
//! use maskwright::{Compiler, Constraint};
//! use maskwright_runtime::{MatcherGuide, Loaded, Request, What, model::LoadOptions, scheduler::Options};
//!
//! let loaded = Loaded::open("model.gguf", &LoadOptions::default())?;
//! let compiler = Compiler::new(loaded.tokenizer.vocabulary().clone());
//! let year = compiler.compile(&Constraint::regex("1[0-9]{3}"))?;
//!
//! let mut request = Request::new(loaded.prompt("Ada Lovelace was born in the year ")?);
//! request.guide = Some(Box::new(MatcherGuide::new(year.matcher())));
//! let scheduler = loaded.schedule(Options::default());
//! for event in scheduler.stream(request)? {
//!     if let What::More { text, .. } = event.what {
//!         print!("{text}");
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | module | purpose |
//! |---|---|
//! | [`model`] | tokens in, logits out, for many sequences in one step |
//! | [`sampler`] | from logits to a token: the mask first, then everything else |
//! | [`scheduler`] | requests that join and leave between steps |
//! | [`guide`] | the interface of constraints to the scheduler; [`WeightedGuide`] is a guide with probabilities |
//! | [`text`] | prompts and chat templates |
//!
//! It prints nothing and reads no environment variables. It starts threads: those of the model, one for the scheduler,
//! and one or more for constraints (more while one of them is busy with a slow constraint).

#![expect(
    clippy::cast_precision_loss,
    reason = "models compute in floats; sizes and positions are far below 2^24"
)]

pub mod guide;
mod loaded;
pub mod model;
mod recommended;
pub mod sampler;
pub mod scheduler;
pub mod text;
mod weighted;

pub use guide::{Guide, GuideError, MatcherGuide, Unkept};
pub use loaded::Loaded;
pub use sampler::Sampling;
pub use scheduler::{Event, Failure, Reason, Request, Scheduler, SubmitError, Tries, Usage, What};
pub use weighted::WeightedGuide;
