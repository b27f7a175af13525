//! What is written to a corked stream waits for more, or 200 ms (tcp(7), `TCP_CORK`).

use alloc::collections::VecDeque;
use alloc::sync::Weak;

use abi::Errno;
use machine::{KernelCell, KernelValue, Nanos, TryGrow, TryQueue, try_arc};

use super::super::Network;
use super::bytes::Source;
use super::{State, Tcp};
use crate::schedule::{AlarmCall, AlarmTarget, Bell};

/// How long something waits at most.
const PATIENCE: Nanos = Nanos(200_000_000);
/// So much is a segment, for somebody on this machine and for others.
const NEAR_BYTES: usize = 32_768;
const FAR_BYTES: usize = 1448;

/// Streams in which something waits, in the order of their times.
pub struct Corks {
    waiting: KernelCell<VecDeque<(Nanos, Weak<Tcp>)>>,
    bell: KernelValue<Option<Bell>>,
}

impl Corks {
    pub const fn new() -> Corks {
        Corks { waiting: KernelCell::new(VecDeque::new()), bell: KernelValue::new(None) }
    }

    /// Rings when the first of them has waited long enough.
    fn set_alarm(&self, network: &'static Network) -> Result<(), Errno> {
        let Some(at) = self.waiting.borrow().front().map(|(at, _)| *at) else { return Ok(()) };
        if self.bell.get().is_none() {
            network.scheduler.make_bell_room()?;
            self.bell.set(Some(network.scheduler.add_bell(try_arc(Rings(network))?)));
        }
        if let Some(bell) = self.bell.get() {
            network.scheduler.set_alarm(at, AlarmTarget::Call(bell));
        }
        Ok(())
    }

    fn add(&self, network: &'static Network, at: Nanos, tcp: Weak<Tcp>) -> Result<(), Errno> {
        let is_first = self.waiting.borrow().is_empty();
        self.waiting.borrow_mut().try_push_back((at, tcp))?;
        if is_first { self.set_alarm(network) } else { Ok(()) }
    }
}

struct Rings(&'static Network);

impl AlarmCall for Rings {
    fn ring(&self, now: Nanos) {
        let corks = &self.0.corks;
        loop {
            let due = {
                let mut waiting = corks.waiting.borrow_mut();
                if waiting.front().is_some_and(|(at, _)| *at <= now) { waiting.pop_front() } else { None }
            };
            let Some((at, tcp)) = due else { break };
            // What waited then may have gone, and something else may wait its own time.
            if let Some(tcp) = tcp.upgrade().filter(|tcp| tcp.corked_until.get() == at) {
                tcp.uncork();
            }
        }
        // The bell is there.
        let _ = corks.set_alarm(self.0);
    }
}

impl Tcp {
    /// Bytes that the way out has room for.
    fn way_room(&self) -> usize {
        match &*self.state.borrow() {
            State::Joined(joined) => joined.outbound.room(),
            State::Far(id) => self.far(|stack, _| stack.room(*id)).flatten().unwrap_or(0),
            _ => 0,
        }
    }

    /// Has what is written wait, if it is corked and there is less than a segment. `None`: it goes.
    pub(super) fn cork(&self, source: &Source<'_>) -> Result<Option<usize>, Errno> {
        if !self.options.get().is_corked {
            return Ok(None);
        }
        let segment = if self.far_id().is_some() { FAR_BYTES } else { NEAR_BYTES };
        let waits = self.corked.borrow().len();
        // What waits has room when its time has come: nobody else takes it.
        if waits + source.len() >= segment || waits + source.len() > self.way_room() {
            self.uncork();
            return Ok(None);
        }
        let mut corked = self.corked.borrow_mut();
        corked.try_resize(waits + source.len(), 0)?;
        let copied = source.copy(0, &mut corked[waits..]);
        corked.truncate(waits + *copied.as_ref().unwrap_or(&0));
        drop(corked);
        if waits == 0 && *copied.as_ref().unwrap_or(&0) > 0 {
            let at = self.network.now().saturating_add(PATIENCE);
            self.corked_until.set(at);
            self.network.corks.add(self.network, at, self.me.clone())?;
        }
        copied.map(Some)
    }

    /// What waits goes.
    pub(super) fn uncork(&self) {
        let waiting = core::mem::take(&mut *self.corked.borrow_mut());
        if !waiting.is_empty() {
            // There is room; only who has no memory loses it.
            let _ = self.send_part(&Source::Kernel(&waiting));
        }
    }

    pub(super) fn corked_bytes(&self) -> usize {
        self.corked.borrow().len()
    }
}
