//! Mistakes made on purpose, one at a time, to see that a test finds each. Without the feature `mutants` nothing of this is
//! in the code.

#[cfg(feature = "mutants")]
std::thread_local! {
    static CHOSEN: core::cell::Cell<&'static str> = const { core::cell::Cell::new("") };
}

/// Makes the step called `name` wrong in this thread, until another is chosen; "" makes none wrong.
#[cfg(feature = "mutants")]
pub fn choose(name: &'static str) {
    CHOSEN.set(name);
}

/// Whether the step called `name` is to be done wrongly.
#[cfg(feature = "mutants")]
pub fn is(name: &str) -> bool {
    CHOSEN.get() == name
}

/// Whether the step called `name` is to be done wrongly.
#[cfg(not(feature = "mutants"))]
pub const fn is(_name: &str) -> bool {
    false
}
