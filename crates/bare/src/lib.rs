//! Layer 2: what a machine without a C library needs, whichever machine it is: a heap and `memcpy`.
#![cfg_attr(not(test), no_std)]

mod heap;
mod memory_functions;

pub use heap::{Heap, HeapPages};
