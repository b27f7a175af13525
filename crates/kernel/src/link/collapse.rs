//! Horizontal Collapsing Layers (S-11): two state machines and the queue between them become one machine.

use quaject::interface::combine;
use quaject::{Connection, End};
use statemachine::{Graph, product};

use super::{GetEnd, PutEnd, QueueNeed, open};

/// Two machines in a row, joined.
pub enum Joined {
    /// Their product: what the first emits is the second's step at once.
    One(Graph),
    /// Both as they were, and a queue for what the first emits.
    Two(Graph, Graph, PutEnd<u8>, GetEnd<u8>),
}

/// Joins `first` and `second` by what `combine` decides for their ends. Without a product (the second's step would depend on
/// a byte that is not known now) the queue stays.
pub fn join((first, producer): (Graph, End), (second, consumer): (Graph, End), capacity: usize) -> Joined {
    if combine(producer, consumer) == Connection::Product
        && let Ok(product) = product(&first, &second)
    {
        return Joined::One(product);
    }
    let need = QueueNeed { producers: producer.number.into(), consumers: consumer.number.into(), same_thread: false };
    let (put, get) = open(&need, capacity);
    Joined::Two(first, second, put, get)
}
