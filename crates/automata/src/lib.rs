//! Byte sets, UTF-8 ranges, NFAs, minimal DFAs and lazy derivative DFAs.
