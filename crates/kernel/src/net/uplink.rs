//! The machine's link and its stack: frames that come are given to it between interrupts, a burst at a time, and its times are alarms.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};

use ::net::{ConnectionId, Header, Lost, Receiver, Settings, Stack, Tuple};
use machine::{KernelCell, KernelValue, Link, Nanos, NoMemory, TryGrow, try_arc, try_box, try_collect, try_filled};

use super::backlog::Backlog;
use super::stream::Show;
use super::{LINK, Network};
use crate::schedule::{AlarmCall, AlarmId, AlarmTarget, Bell};

/// How the link gets its addresses.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// With the lengths of their networks.
    pub addresses: Vec<(IpAddr, u8)>,
    pub gateways: Vec<IpAddr>,
    /// Asks for one.
    pub dhcp: bool,
}

/// What is told of the link.
#[derive(Clone, Debug)]
pub struct Interface {
    pub hardware: [u8; 6],
    pub mtu: u16,
    pub addresses: Vec<(IpAddr, u8)>,
    pub gateways: Vec<IpAddr>,
    /// Frames and bytes that came, and those that went.
    pub received: [u64; 2],
    pub sent: [u64; 2],
}

/// Frames that are looked at before others run.
const BURST: usize = 64;
/// As many times that are due.
const TIMES: usize = 64;
/// The longest frame that comes: many of the usual length, put together by the other side's device.
const FRAME_BYTES: usize = 66_000;

pub struct Uplink {
    network: &'static Network,
    link: &'static Counted,
    stack: KernelCell<Stack>,
    frame: KernelCell<Vec<u8>>,
    bell: KernelValue<Option<Bell>>,
    alarm: KernelValue<Option<(Nanos, AlarmId)>>,
    received: KernelValue<[u64; 2]>,
    backlog: Backlog,
}

/// The link, with what was sent counted.
struct Counted {
    link: &'static dyn Link,
    sent: KernelValue<[u64; 2]>,
}

impl Link for Counted {
    fn address(&self) -> [u8; 6] {
        self.link.address()
    }

    fn mtu(&self) -> u16 {
        self.link.mtu()
    }

    fn sums(&self) -> bool {
        self.link.sums()
    }

    fn receive(&self, into: &mut [u8]) -> Option<machine::Arrived> {
        self.link.receive(into)
    }

    fn has_room(&self) -> bool {
        self.link.has_room()
    }

    fn send(&self, frame: &[u8], sum: Option<machine::SumPlace>) -> bool {
        let [frames, bytes] = self.sent.get();
        self.sent.set([frames + 1, bytes + frame.len() as u64]);
        self.link.send(frame, sum)
    }

    fn tell(&self) {
        self.link.tell();
    }

    fn expect_news(&self, for_room: bool) -> bool {
        self.link.expect_news(for_room)
    }

    fn when_news(&self, procedure: machine::Procedure) {
        self.link.when_news(procedure);
    }
}

/// An alarm of the stack.
struct Rings(&'static Uplink);

impl AlarmCall for Rings {
    fn ring(&self, _: Nanos) {
        self.0.alarm.set(None);
        self.0.poll();
    }
}

impl Uplink {
    /// Starts the machine's first link, if it has one and there is memory.
    pub fn start(network: &'static Network) -> Option<&'static Uplink> {
        let link = network.scheduler.machine().next_link()?;
        Uplink::with(network, link).ok()
    }

    fn with(network: &'static Network, link: &'static dyn Link) -> Result<&'static Uplink, NoMemory> {
        let machine = network.scheduler.machine();
        // There is one, as long as the machine runs.
        let link: &'static Counted = Box::leak(try_box(Counted { link, sent: KernelValue::new([0; 2]) })?);
        let mut stack = Stack::new(link, machine.random(), machine.now())?;
        let Plan { addresses, gateways, dhcp } = &network.plan;
        stack.set_up(&Settings { addresses, gateways, dhcp: *dhcp }, machine.now())?;
        let uplink: &'static Uplink = Box::leak(try_box(Uplink {
            network,
            link,
            stack: KernelCell::new(stack),
            frame: KernelCell::new(try_filled(0, FRAME_BYTES)?),
            bell: KernelValue::new(None),
            alarm: KernelValue::new(None),
            received: KernelValue::new([0; 2]),
            backlog: Backlog::new(),
        })?);
        network.scheduler.make_bell_room()?;
        uplink.bell.set(Some(network.scheduler.add_bell(try_arc(Rings(uplink))?)));
        link.when_news(try_arc(move || uplink.poll())?);
        uplink.poll();
        Ok(uplink)
    }

    /// Does something with the stack, tells the device, and sets the alarm anew: also for frames that wait, whoever comes before they
    /// are looked at.
    pub fn with_stack<R>(&self, act: impl FnOnce(&mut Stack, Nanos) -> R) -> R {
        let now = self.network.now();
        let mut stack = self.stack.borrow_mut();
        let result = act(&mut stack, now);
        stack.tell_link();
        let must_look = stack.is_stalled() && self.link.expect_news(true);
        let mut next = if must_look { Some(now) } else { stack.next() };
        if self.network.scheduler.machine().must_poll() {
            // Nobody interrupts, so it is looked.
            let soon = now.saturating_add(crate::server::PERIOD);
            next = Some(next.map_or(soon, |next| next.min(soon)));
        }
        drop(stack);
        self.set_alarm(self.backlog.before(next));
        result
    }

    /// Asks the stack, which does nothing for it.
    pub fn ask<R>(&self, act: impl FnOnce(&Stack) -> R) -> R {
        act(&self.stack.borrow())
    }

    fn set_alarm(&self, at: Option<Nanos>) {
        let set = self.alarm.get();
        if set.map(|(at, _)| at) == at {
            return;
        }
        if let Some((_, id)) = set {
            self.network.scheduler.cancel_alarm(id);
        }
        let bell = self.bell.get();
        let id = at.zip(bell).map(|(at, bell)| (at, self.network.scheduler.set_alarm(at, AlarmTarget::Call(bell))));
        self.alarm.set(id);
    }

    /// Looks at what has come and at what is due: so much, and the rest when others have run. Called between interrupts.
    pub fn poll(&'static self) {
        self.with_stack(|stack, now| {
            let has_more = self.take_frames(stack, now);
            stack.go_on(now);
            stack.run_timers(now, TIMES);
            let has_more = has_more || self.link.expect_news(stack.is_stalled());
            self.backlog.is_left(has_more, self.network.now());
        });
    }

    /// Whether there may be more.
    fn take_frames(&'static self, stack: &mut Stack, now: Nanos) -> bool {
        let mut frame = self.frame.borrow_mut();
        for _ in 0..BURST {
            let Some(arrived) = self.link.receive(&mut frame) else { return false };
            let [frames, bytes] = self.received.get();
            self.received.set([frames + 1, bytes + arrived.bytes as u64]);
            if arrived.bytes > 0 {
                stack.frame(now, &frame[..arrived.bytes], arrived.is_checked, self);
            }
        }
        true
    }

    pub fn has_address(&self, address: IpAddr) -> bool {
        self.ask(|stack| stack.has_address(address))
    }

    pub fn is_near(&self, address: IpAddr) -> bool {
        self.ask(|stack| stack.is_near(address))
    }

    pub fn is_broadcast(&self, address: IpAddr) -> bool {
        self.ask(|stack| stack.is_broadcast(address))
    }

    pub fn source_for(&self, to: IpAddr) -> Option<IpAddr> {
        self.ask(|stack| stack.source_for(to).filter(|_| stack.reaches(to)))
    }

    pub fn resolvers(&self) -> Vec<IpAddr> {
        self.ask(|stack| try_collect(stack.resolvers().iter().copied()).unwrap_or_default())
    }

    pub fn interface(&self) -> Interface {
        self.ask(|stack| Interface {
            hardware: self.link.address(),
            mtu: self.link.mtu(),
            addresses: try_collect(stack.addresses()).unwrap_or_default(),
            gateways: try_collect(stack.gateways()).unwrap_or_default(),
            received: self.received.get(),
            sent: self.link.sent.get(),
        })
    }

    /// Connections of the stack, whoever has them.
    pub fn each_connection(&self, visit: &mut dyn FnMut(Show)) {
        let mut all = Vec::new();
        self.ask(|stack| {
            stack.each_connection(|Tuple { local, remote }, state, unsent, unread| {
                // Who has no memory sees less.
                let _ = all.try_push(Show { local, remote, state, unsent, unread, user: 0, number: 0 });
            });
        });
        all.into_iter().for_each(visit);
    }

    pub fn tuple(&self, id: ConnectionId) -> Option<[SocketAddr; 2]> {
        self.ask(|stack| stack.tuple(id).map(|tuple| [tuple.local, tuple.remote]))
    }
}

impl Receiver for Uplink {
    fn datagram(&self, tuple: Tuple, header: Header, payload: &[u8]) -> bool {
        self.network.deliver(LINK, tuple.remote, tuple.local, header, payload)
    }

    fn message(&self, from: IpAddr, to: IpAddr, hops: u8, packet: &[u8], body: &[u8]) {
        self.network.deliver_message(from, to, hops, packet, body);
    }

    fn lost(&self, lost: &Lost, from: IpAddr) {
        self.network.datagram_lost(lost, from, &[]);
    }
}
