//! What comes back of datagrams, in a queue of its own for who wants it there (ip(7), `IP_RECVERR`).

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};

use ::net::Lost;
use abi::Errno;
use machine::{KernelCell, TryQueue, try_to_vec};

use super::super::number_of;

/// So many wait at most.
const MOST: usize = 64;

/// A datagram that came back.
#[derive(Debug)]
pub struct Returned {
    pub error: Errno,
    /// Type and code of the message of ICMP.
    pub kind: u8,
    pub code: u8,
    /// Who says so, and whom it was for.
    pub from: IpAddr,
    pub to: SocketAddr,
    /// What is left of it.
    pub bytes: Vec<u8>,
}

pub struct Errors(KernelCell<VecDeque<Returned>>);

impl Errors {
    pub const fn new() -> Errors {
        Errors(KernelCell::new(VecDeque::new()))
    }

    pub fn has_some(&self) -> bool {
        !self.0.borrow().is_empty()
    }

    pub fn take(&self) -> Option<Returned> {
        self.0.borrow_mut().pop_front()
    }

    pub fn clear(&self) {
        self.0.borrow_mut().clear();
    }

    pub(super) fn put(&self, lost: &Lost, from: IpAddr, bytes: &[u8]) {
        let mut all = self.0.borrow_mut();
        // Who does not look, or has no memory, is not told of more.
        let Some(bytes) = (all.len() < MOST).then(|| try_to_vec(bytes).ok()).flatten() else { return };
        let Lost { tuple, failure, kind, code, .. } = *lost;
        let _ = all.try_push_back(Returned { error: number_of(failure), kind, code, from, to: tuple.remote, bytes });
    }
}
