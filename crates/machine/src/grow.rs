//! What the kernel keeps, made so that it can fail: for all that programs drive (R10).
//!
//! The standard library's boxes and counted references end the kernel when there is no memory. Those made here first ask
//! for a block of their size: the heap gives a block that just came back to the next who asks for one like it, and
//! nobody can come between on a way that holds the kernel's lock. So `Arc::new` behind it cannot fail.

use alloc::boxed::Box;
use alloc::collections::{TryReserveError, VecDeque};
use alloc::string::String;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::fmt;

use crate::failing;

/// There is no memory. Above `unix` it becomes `ENOMEM`.
pub type NoMemory = TryReserveError;

/// Does what takes little and may not fail as if it did not ask: it is served from the kernel's reserve.
#[inline(always)]
pub fn surely<R>(request: impl FnOnce() -> R) -> R {
    failing::surely(request)
}

/// The one way to ask: images that are built for it refuse from a seed ([`crate::failing`]).
#[inline(always)]
fn ask(request: impl FnOnce() -> Result<(), NoMemory>) -> Result<(), NoMemory> {
    if failing::refuses() {
        // More than there can be.
        return Vec::<u8>::new().try_reserve(usize::MAX);
    }
    if failing::is_sure() { request() } else { failing::asking(request) }
}

/// The heap counts in such units.
#[repr(align(16))]
struct Unit(#[allow(dead_code, reason = "only its size counts")] [u8; 16]);

/// A counted value as the standard library lays it out: two counts before it.
#[repr(C)]
struct Counted<T: ?Sized>(usize, usize, T);

/// Makes sure that the next allocation of so many bytes succeeds.
#[inline(never)]
fn make_sure(bytes: usize) -> Result<(), NoMemory> {
    let mut room = Vec::<Unit>::new();
    room.room_for_exact(bytes.div_ceil(size_of::<Unit>()))?;
    // The compiler may leave out a block that nobody uses.
    core::hint::black_box(&mut room);
    Ok(())
}

/// As `Box::new`.
pub fn try_box<T>(value: T) -> Result<Box<T>, NoMemory> {
    const { assert!(align_of::<T>() <= align_of::<Unit>()) };
    make_sure(size_of::<T>())?;
    Ok(failing::asking(|| Box::new(value)))
}

/// As `Arc::new`.
pub fn try_arc<T>(value: T) -> Result<Arc<T>, NoMemory> {
    const { assert!(align_of::<T>() <= align_of::<Unit>()) };
    make_sure(size_of::<Counted<T>>())?;
    Ok(failing::asking(|| Arc::new(value)))
}

/// As `Arc::new_cyclic`; `make` may not ask for memory.
pub fn try_arc_cyclic<T>(make: impl FnOnce(&Weak<T>) -> T) -> Result<Arc<T>, NoMemory> {
    const { assert!(align_of::<T>() <= align_of::<Unit>()) };
    make_sure(size_of::<Counted<T>>())?;
    Ok(failing::asking(|| Arc::new_cyclic(make)))
}

/// As `Arc::<[T]>::from`.
pub fn try_arc_slice<T: Copy>(values: &[T]) -> Result<Arc<[T]>, NoMemory> {
    const { assert!(align_of::<T>() <= align_of::<usize>()) };
    make_sure((size_of::<Counted<[T; 0]>>() + size_of_val(values)).next_multiple_of(align_of::<usize>()))?;
    Ok(failing::asking(|| Arc::from(values)))
}

/// As `Arc::<[T]>::from`, for a list.
pub fn try_arc_list<T>(values: Vec<T>) -> Result<Arc<[T]>, NoMemory> {
    const { assert!(align_of::<T>() <= align_of::<usize>()) };
    make_sure((size_of::<Counted<[T; 0]>>() + size_of_val(&*values)).next_multiple_of(align_of::<usize>()))?;
    Ok(failing::asking(|| Arc::from(values)))
}

/// As `to_vec`; for clones that ask for no memory themselves.
pub fn try_to_vec<T: Clone>(values: &[T]) -> Result<Vec<T>, NoMemory> {
    let mut copy = Vec::new();
    copy.room_for_exact(values.len())?;
    copy.extend_from_slice(values);
    Ok(copy)
}

/// As `vec![value; count]`; for clones that ask for no memory themselves.
pub fn try_filled<T: Clone>(value: T, count: usize) -> Result<Vec<T>, NoMemory> {
    let mut filled = Vec::new();
    filled.room_for_exact(count)?;
    filled.resize(count, value);
    Ok(filled)
}

/// As `Box<[T]>::from`; for clones that ask for no memory themselves.
pub fn try_box_slice<T: Clone>(values: &[T]) -> Result<Box<[T]>, NoMemory> {
    // As long as it is wide: nothing is moved.
    Ok(try_to_vec(values)?.into_boxed_slice())
}

/// As `collect`.
pub fn try_collect<T>(values: impl IntoIterator<Item = T>) -> Result<Vec<T>, NoMemory> {
    let (values, mut all) = (values.into_iter(), Vec::new());
    // No more than that: who makes a boxed slice of it shall not need another block.
    all.room_for_exact(values.size_hint().0)?;
    all.try_extend(values)?;
    Ok(all)
}

/// As the methods of a vector whose names they have.
pub trait TryGrow<T> {
    /// As `try_reserve`.
    fn room_for(&mut self, more: usize) -> Result<(), NoMemory>;
    /// As `try_reserve_exact`.
    fn room_for_exact(&mut self, more: usize) -> Result<(), NoMemory>;
    /// As `push`, into room that was asked for.
    fn put(&mut self, value: T);
    /// As `insert`, into room that was asked for.
    fn put_at(&mut self, place: usize, value: T);
    fn try_push(&mut self, value: T) -> Result<(), NoMemory>;
    fn try_insert(&mut self, place: usize, value: T) -> Result<(), NoMemory>;
    fn try_extend(&mut self, values: impl IntoIterator<Item = T>) -> Result<(), NoMemory>;
    /// For clones that ask for no memory themselves.
    fn try_extend_from_slice(&mut self, values: &[T]) -> Result<(), NoMemory>
    where
        T: Clone;
    /// For clones that ask for no memory themselves.
    fn try_resize(&mut self, count: usize, value: T) -> Result<(), NoMemory>
    where
        T: Clone;
    fn try_resize_with(&mut self, count: usize, make: impl FnMut() -> T) -> Result<(), NoMemory>;
}

impl<T> TryGrow<T> for Vec<T> {
    #[inline]
    fn room_for(&mut self, more: usize) -> Result<(), NoMemory> {
        ask(|| self.try_reserve(more))
    }

    #[inline]
    fn room_for_exact(&mut self, more: usize) -> Result<(), NoMemory> {
        ask(|| self.try_reserve_exact(more))
    }

    #[inline(always)]
    fn put(&mut self, value: T) {
        debug_assert!(self.len() < self.capacity(), "room was not asked for");
        self.push(value);
    }

    #[inline(always)]
    fn put_at(&mut self, place: usize, value: T) {
        debug_assert!(self.len() < self.capacity(), "room was not asked for");
        self.insert(place, value);
    }

    fn try_push(&mut self, value: T) -> Result<(), NoMemory> {
        self.room_for(1)?;
        self.push(value);
        Ok(())
    }

    fn try_insert(&mut self, place: usize, value: T) -> Result<(), NoMemory> {
        self.room_for(1)?;
        self.insert(place, value);
        Ok(())
    }

    fn try_extend(&mut self, values: impl IntoIterator<Item = T>) -> Result<(), NoMemory> {
        let values = values.into_iter();
        self.room_for(values.size_hint().0)?;
        for value in values {
            self.try_push(value)?;
        }
        Ok(())
    }

    fn try_extend_from_slice(&mut self, values: &[T]) -> Result<(), NoMemory>
    where
        T: Clone,
    {
        self.room_for(values.len())?;
        self.extend_from_slice(values);
        Ok(())
    }

    fn try_resize(&mut self, count: usize, value: T) -> Result<(), NoMemory>
    where
        T: Clone,
    {
        self.room_for(count.saturating_sub(self.len()))?;
        self.resize(count, value);
        Ok(())
    }

    fn try_resize_with(&mut self, count: usize, make: impl FnMut() -> T) -> Result<(), NoMemory> {
        self.room_for(count.saturating_sub(self.len()))?;
        self.resize_with(count, make);
        Ok(())
    }
}

/// As the methods of a queue whose names they have.
pub trait TryQueue<T> {
    /// As `push_back`, into room that was asked for.
    fn put_back(&mut self, value: T);
    /// As `try_reserve`.
    fn room_for(&mut self, more: usize) -> Result<(), NoMemory>;
    fn try_push_back(&mut self, value: T) -> Result<(), NoMemory>;
    fn try_push_front(&mut self, value: T) -> Result<(), NoMemory>;
    fn try_insert(&mut self, place: usize, value: T) -> Result<(), NoMemory>;
}

impl<T> TryQueue<T> for VecDeque<T> {
    #[inline(always)]
    fn put_back(&mut self, value: T) {
        debug_assert!(self.len() < self.capacity(), "room was not asked for");
        self.push_back(value);
    }

    #[inline]
    fn room_for(&mut self, more: usize) -> Result<(), NoMemory> {
        ask(|| self.try_reserve(more))
    }

    fn try_push_back(&mut self, value: T) -> Result<(), NoMemory> {
        self.room_for(1)?;
        self.push_back(value);
        Ok(())
    }

    fn try_push_front(&mut self, value: T) -> Result<(), NoMemory> {
        self.room_for(1)?;
        self.push_front(value);
        Ok(())
    }

    fn try_insert(&mut self, place: usize, value: T) -> Result<(), NoMemory> {
        self.room_for(1)?;
        self.insert(place, value);
        Ok(())
    }
}

/// Text that grows as long as there is memory; what is written behind that is an error.
#[derive(Default)]
pub struct Text(pub String);

impl fmt::Write for Text {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        ask(|| self.0.try_reserve(part.len())).map_err(|_| fmt::Error)?;
        self.0.push_str(part);
        Ok(())
    }
}

/// As `format!`, without its name: `try_text(format_args!(…))`.
pub fn try_text(arguments: fmt::Arguments<'_>) -> Result<String, NoMemory> {
    let mut text = Text::default();
    match fmt::Write::write_fmt(&mut text, arguments) {
        Ok(()) => Ok(text.0),
        // What is shown makes no errors of its own, so it was memory: asking for more than there can be says so.
        Err(fmt::Error) => String::new().try_reserve(usize::MAX).map(|()| text.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Knows itself.
    struct Cyclic(Weak<Cyclic>);

    #[test]
    fn what_is_made_is_what_the_standard_library_makes() {
        assert_eq!(try_box(7u64).as_deref(), Ok(&7));
        assert_eq!(try_arc([1u8, 2]).as_deref(), Ok(&[1, 2]));
        assert_eq!(&*try_arc_slice(b"abc").expect("memory"), b"abc");
        assert_eq!(try_text(format_args!("{}-{:02x}", 1, 2)).as_deref(), Ok("1-02"));
        let cyclic = try_arc_cyclic(|me| Cyclic(me.clone())).expect("memory");
        assert!(Weak::ptr_eq(&Arc::downgrade(&cyclic), &cyclic.0));
        let mut list = try_collect(1..4).expect("memory");
        assert_eq!(list.try_insert(0, 0).and_then(|()| list.try_extend_from_slice(&[9])), Ok(()));
        assert_eq!(list.try_resize(7, 5), Ok(()));
        assert_eq!(list, [0, 1, 2, 3, 9, 5, 5]);
    }

    #[test]
    fn what_cannot_be_had_is_an_error() {
        assert!(try_filled(0u8, usize::MAX / 2).is_err());
        assert!(Vec::<u64>::new().try_resize(usize::MAX / 8, 0).is_err());
    }

    #[test]
    fn a_counted_value_is_as_large_as_the_standard_library_makes_it() {
        // Where the value lies in its block says how much stands before it.
        let (value, start) = (Arc::new([0u8; 3]), size_of::<Counted<[u8; 0]>>());
        assert_eq!((Arc::as_ptr(&value) as usize - start) % align_of::<usize>(), 0);
        assert_eq!((start, size_of::<Counted<[u8; 3]>>()), (16, 24));
    }
}
