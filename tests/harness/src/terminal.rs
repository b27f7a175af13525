//! Pseudo-terminals.
