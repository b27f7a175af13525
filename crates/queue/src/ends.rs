//! What all queues have in common: the two callentries of the papers, Qput and Qget.

/// The queue had no room: the item comes back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Full<T>(pub T);

/// An end that items are put into.
pub trait Put<T> {
    /// Qput: inserts `item`, or gives it back when there is no room. Never waits.
    fn put(&mut self, item: T) -> Result<(), Full<T>>;
}

/// An end that items are taken from.
pub trait Get<T> {
    /// Qget: takes the oldest item there is. Never waits: `None` also when a producer has claimed the oldest place and
    /// not filled it yet.
    fn get(&mut self) -> Option<T>;
}

/// Implements `Put` by the inherent `put`, `Get` by the inherent `get`.
macro_rules! ends {
    ($put:ident, $get:ident) => {
        impl<T> $crate::Put<T> for $put<T> {
            fn put(&mut self, item: T) -> Result<(), $crate::Full<T>> {
                $put::put(self, item)
            }
        }

        impl<T> $crate::Get<T> for $get<T> {
            fn get(&mut self) -> Option<T> {
                $get::get(self)
            }
        }
    };
}
pub(crate) use ends;
