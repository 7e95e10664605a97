//! The judge, judged: by hand, by something even more naive, and by subjects that break its laws on purpose.

mod cases;
mod json_string;
mod kit;
mod naive;
