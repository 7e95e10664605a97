//! A tokenizer's vocabulary as the mask engine sees it: token bytes, tries, masks and the kernels that apply them.
