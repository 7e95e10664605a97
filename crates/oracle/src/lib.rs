//! A slow, plain, independent recogniser that the fast engine is compared with.
