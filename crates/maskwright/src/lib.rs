//! Structured output for language models: which tokens may come next, exactly and fast.
