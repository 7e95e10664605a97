"""As much of SGLang 0.5.23 as its grammar backends are made of, for tests on machines without it. See ``vllm`` beside this."""
