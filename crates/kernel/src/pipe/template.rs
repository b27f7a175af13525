//! The pipe's machine code.
