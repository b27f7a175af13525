//! Asynchronous queues (S-35): any queue, with callbacks at full and empty.
//!
//! *Qfull* and *Qempty* are called when an operation fails. *Qnotfull* and *Qnotempty* are called after an operation of
//! the other end changed what a failed one had found. A callback runs in the thread (or interrupt) of the operation.
//!
//! Who fails leaves a note and looks again; who succeeds looks for a note. A full fence stands on both sides, so one of
//! the two sees the other. When the second look succeeds the note stays: then a callback comes once too often, never
//! once too seldom.

use core::marker::PhantomData;

use crate::ends::{Full, Get, Put};
use crate::sync::{Arc, AtomicBool, Ordering::Relaxed, full_fence};

/// The callbacks of a queue. Each does nothing unless it is given.
pub trait Callbacks {
    /// Qfull: a put failed.
    fn full(&self) {}
    /// Qnotfull: a put failed before, and now there is room.
    fn not_full(&self) {}
    /// Qempty: a get failed.
    fn empty(&self) {}
    /// Qnotempty: a get failed before, and now there is an item.
    fn not_empty(&self) {}
}

struct Shared<S> {
    callbacks: S,
    /// A put failed since the last `not_full`.
    wants_room: AtomicBool,
    /// A get failed since the last `not_empty`.
    wants_items: AtomicBool,
}

/// A producer that calls back.
pub struct Producer<T, P, S> {
    end: P,
    shared: Arc<Shared<S>>,
    items: PhantomData<fn(T)>,
}

/// A consumer that calls back.
pub struct Consumer<T, C, S> {
    end: C,
    shared: Arc<Shared<S>>,
    items: PhantomData<fn() -> T>,
}

/// Puts callbacks around the two ends of any queue.
pub fn signalling<T, P: Put<T>, C: Get<T>, S: Callbacks>(
    ends: (P, C),
    callbacks: S,
) -> (Producer<T, P, S>, Consumer<T, C, S>) {
    let note = || AtomicBool::new(false);
    let shared = Arc::new(Shared { callbacks, wants_room: note(), wants_items: note() });
    let producer = Producer { end: ends.0, shared: shared.clone(), items: PhantomData };
    (producer, Consumer { end: ends.1, shared, items: PhantomData })
}

impl<T, P: Put<T>, S: Callbacks> Producer<T, P, S> {
    /// Inserts `item`; when there is no room calls Qfull and gives it back.
    pub fn put(&mut self, item: T) -> Result<(), Full<T>> {
        let shared = &*self.shared;
        let mut result = self.end.put(item);
        if let Err(Full(item)) = result {
            shared.wants_room.store(true, Relaxed);
            full_fence("signalling.put.failed");
            result = self.end.put(item);
        }
        match &result {
            Ok(()) => {
                full_fence("signalling.put.done");
                if shared.wants_items.load(Relaxed) && shared.wants_items.swap(false, Relaxed) {
                    shared.callbacks.not_empty();
                }
            }
            Err(_) => shared.callbacks.full(),
        }
        result
    }

    /// The callbacks given when the queue was made.
    pub fn callbacks(&self) -> &S {
        &self.shared.callbacks
    }
}

impl<T, C: Get<T>, S: Callbacks> Consumer<T, C, S> {
    /// Takes the oldest item; when there is none calls Qempty.
    pub fn get(&mut self) -> Option<T> {
        let shared = &*self.shared;
        let mut item = self.end.get();
        if item.is_none() {
            shared.wants_items.store(true, Relaxed);
            full_fence("signalling.get.failed");
            item = self.end.get();
        }
        match item {
            Some(_) => {
                full_fence("signalling.get.done");
                if shared.wants_room.load(Relaxed) && shared.wants_room.swap(false, Relaxed) {
                    shared.callbacks.not_full();
                }
            }
            None => shared.callbacks.empty(),
        }
        item
    }

    /// The callbacks given when the queue was made.
    pub fn callbacks(&self) -> &S {
        &self.shared.callbacks
    }
}

impl<T, P: Clone, S> Clone for Producer<T, P, S> {
    fn clone(&self) -> Self {
        Producer { end: self.end.clone(), shared: self.shared.clone(), items: PhantomData }
    }
}

impl<T, C: Clone, S> Clone for Consumer<T, C, S> {
    fn clone(&self) -> Self {
        Consumer { end: self.end.clone(), shared: self.shared.clone(), items: PhantomData }
    }
}
