//! Sockets that are held by nothing but messages which nobody can receive.
//!
//! A socket in flight is a *suspect* when only messages hold it. Those of its messages that lie in suspects are taken away from
//! its count: if some are left, somebody can receive it, and all that it holds in turn. Who is not found so is garbage.
//! Two passes over the messages of the suspects; the notes are words of the sockets themselves, and the lists are linked
//! through them, so the search needs no memory.

use alloc::sync::Arc;

use super::flight::{Flight, FlightPlace, LOST, socket};
use super::unix::UnixSocket;

/// What a search knows of a socket.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub enum Standing {
    /// Somebody can reach it, as far as the search cares.
    #[default]
    Reached,
    /// Only messages hold it.
    Suspect,
}

/// Sockets linked through their places, each on one list at most.
#[derive(Default)]
pub struct Chain(Option<Arc<UnixSocket>>);

impl Chain {
    pub fn push(&mut self, socket: Arc<UnixSocket>) {
        let next = self.0.take();
        *socket.flight.next.borrow_mut() = next;
        self.0 = Some(socket);
    }

    pub fn pop(&mut self) -> Option<Arc<UnixSocket>> {
        let first = self.0.take()?;
        self.0 = first.flight.next.borrow_mut().take();
        Some(first)
    }
}

/// Takes from all garbage what it holds. `losing` is about to lose one of its references.
pub fn let_fall(flight: &Flight, losing: Option<&UnixSocket>) {
    each(flight, |socket| note(socket, losing));
    each_suspect(flight, |suspect| {
        suspect.each_flying(&mut |place| place.outside.set(place.outside.get().saturating_sub(1)));
    });
    let mut reached = Chain(None);
    each_suspect(flight, |suspect| {
        if suspect.flight.outside.get() > 0 {
            suspect.flight.standing.set(Standing::Reached);
            reached.push(suspect.clone());
        }
    });
    while let Some(socket) = reached.pop() {
        socket.each_inner(&mut |inner| {
            if inner.flight.standing.replace(Standing::Reached) == Standing::Suspect
                && let Some(inner) = inner.counted()
            {
                reached.push(inner);
            }
        });
    }
    let mut garbage = Chain(None);
    each_suspect(flight, |suspect| {
        suspect.flight.standing.set(Standing::Reached);
        garbage.push(suspect.clone());
    });
    while let Some(socket) = garbage.pop() {
        socket.lose_rights();
    }
}

fn each(flight: &Flight, mut act: impl FnMut(&Arc<UnixSocket>)) {
    let mut at = flight.first();
    while let Some(socket) = at {
        act(&socket);
        at = socket.flight.after.borrow().upgrade();
    }
}

fn each_suspect(flight: &Flight, mut act: impl FnMut(&Arc<UnixSocket>)) {
    each(flight, |socket| {
        if socket.flight.standing.get() == Standing::Suspect {
            act(socket);
        }
    });
}

fn note(socket: &UnixSocket, losing: Option<&UnixSocket>) {
    let Some(file) = socket.flight.file() else { return };
    // Besides messages, the search itself holds the file, and who is about to lose it.
    let own = 1 + if losing.is_some_and(|losing| core::ptr::eq(losing, socket)) { LOST } else { 0 };
    let is_suspect = Arc::strong_count(&file) == file.in_flight() + own;
    socket.flight.outside.set(file.in_flight());
    socket.flight.standing.set(if is_suspect { Standing::Suspect } else { Standing::Reached });
}

impl UnixSocket {
    /// The sockets in its messages, as often as they are there.
    fn each_inner(&self, visit: &mut dyn FnMut(&UnixSocket)) {
        self.each_right(&mut |file| {
            if let Some(inner) = socket(file) {
                visit(inner);
            }
        });
    }

    /// As `each_inner`, their places.
    fn each_flying(&self, visit: &mut dyn FnMut(&FlightPlace)) {
        self.each_inner(&mut |inner| visit(&inner.flight));
    }
}
