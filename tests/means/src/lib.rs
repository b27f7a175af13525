//! What tests of several crates need: a random sequence, and a C compiler.

mod c;
mod random;

pub use c::Libraries;
pub use random::Random;
