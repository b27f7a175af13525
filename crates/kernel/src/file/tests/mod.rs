//! Behaviour of the file system.
