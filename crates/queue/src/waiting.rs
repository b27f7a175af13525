//! Synchronous queues (S-34): any queue, where who finds it full or empty sleeps.
//!
//! It is the asynchronous queue with two callbacks connected: Qnotfull wakes producers, Qnotempty wakes consumers. How
//! one sleeps is the caller's matter ([`Sleep`]): a kernel unlinks the thread, a program parks it.

use crate::ends::{Full, Get, Put};
use crate::signalling::{self, Callbacks, signalling};

/// A place to sleep at.
pub trait Sleep {
    /// A number that changes with every `wake`.
    fn ticket(&self) -> u64;
    /// Sleeps until `wake` has been called since `ticket` was given out; may return early.
    fn sleep(&self, ticket: u64);
    /// Wakes all sleepers.
    fn wake(&self);
}

/// Where the two sides sleep.
struct Sides<S> {
    producers: S,
    consumers: S,
}

impl<S: Sleep> Callbacks for Sides<S> {
    fn not_full(&self) {
        self.producers.wake();
    }

    fn not_empty(&self) {
        self.consumers.wake();
    }
}

/// A producer that sleeps while the queue is full.
pub struct Producer<T, P, S>(signalling::Producer<T, P, Sides<S>>);

/// A consumer that sleeps while the queue is empty.
pub struct Consumer<T, C, S>(signalling::Consumer<T, C, Sides<S>>);

/// Makes the two ends of any queue wait: producers at the first place, consumers at the second.
pub fn waiting<T, P: Put<T>, C: Get<T>, S: Sleep>(
    ends: (P, C),
    places: (S, S),
) -> (Producer<T, P, S>, Consumer<T, C, S>) {
    let (producer, consumer) = signalling(ends, Sides { producers: places.0, consumers: places.1 });
    (Producer(producer), Consumer(consumer))
}

impl<T, P: Put<T>, S: Sleep> Producer<T, P, S> {
    /// Inserts `item`, sleeping while there is no room.
    pub fn put(&mut self, mut item: T) {
        loop {
            // Before the attempt: a wake between the two must not be slept through.
            let ticket = self.0.callbacks().producers.ticket();
            match self.0.put(item) {
                Ok(()) => return,
                Err(Full(returned)) => item = returned,
            }
            self.0.callbacks().producers.sleep(ticket);
        }
    }
}

impl<T, C: Get<T>, S: Sleep> Consumer<T, C, S> {
    /// Takes the oldest item, sleeping while there is none.
    pub fn get(&mut self) -> T {
        loop {
            let ticket = self.0.callbacks().consumers.ticket();
            if let Some(item) = self.0.get() {
                return item;
            }
            self.0.callbacks().consumers.sleep(ticket);
        }
    }
}

impl<T, P: Clone, S> Clone for Producer<T, P, S> {
    fn clone(&self) -> Self {
        Producer(self.0.clone())
    }
}

impl<T, C: Clone, S> Clone for Consumer<T, C, S> {
    fn clone(&self) -> Self {
        Consumer(self.0.clone())
    }
}
