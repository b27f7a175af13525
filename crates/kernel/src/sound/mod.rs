//! The Sound-IO device server (S-82): a CD's samples, an analog-digital and a digital-analog converter, 44,100 times a
//! second.
//!
//! ```text
//!   sample clock ── slot ──► handler ─┬─ CD in    ── ring ──► /dev/cd    (4 bytes a frame: left, right)
//!                              ▲      ├─ A/D in   ── ring ──► /dev/ad    (2 bytes, or 1 in µ-law: /dev/ad.ulaw)
//!   activity ── synthesize ────┘      └─ D/A out  ◄─ ring ─── /dev/da    (4 bytes a frame)
//! ```
//! The handler is made for the channels that are active now, has no loop and no test for those that are not, and saves
//! only the two registers it uses (S-79). Opening or closing a channel makes another handler and stores its entry into
//! the slot, while interrupts come (S-24).
//!
//! A ring has 65,536 places and its words count on: a place is the lower 16 bits of a count. The handler does not look
//! whether a reader is late; the reader finds that out (`Overrun`), so the handler needs no test for it.
//!
//! A reader that finds too little names the place it waits for (`wake_at`), and a handler that compares is bound in place of
//! the one that does not. It chains a signal to that thread (S-80): it stores one word of its own and asks the
//! processor for an interrupt of the lowest level, which
//! comes when this one, and whatever the kernel is in the midst of, are done (`Sound::signal_chained`).
//!
//! The A/D converter's handler has eight inserts if that is cheaper (S-43): each fills another part of one element, the last
//! puts the element into the ring, and each makes the next one the handler. Readers see whole elements, whoever fills them.
//!
//! Two generic twins do the same for whatever channels there are: one in assembly, one in Rust ([`Sound::interrupt`]).
//!
//! There is no sound hardware. The simulated device is a word, `device`, that each interrupt increments: the CD plays the
//! number of the interrupt, the A/D converter hears its lower half, and D/A samples go to the word `analog_out`.

mod channel;
mod handler;
mod template;

#[cfg(test)]
mod tests;

use alloc::boxed::Box;
use core::sync::atomic::Ordering;

use abi::Errno;
use machine::{Fragment, KernelCell, Machine, Nanos, SampleClock};

use crate::call::Makers;
use crate::schedule::{Scheduler, WaitQueue};

pub use channel::{Activity, Channel, ChannelWords, ELEMENT_PLACES, Format, RING_PLACES, mu_law};
pub use handler::{Handler, Inserts, Maker, Plan, SampleHandler, SoundWords, Waiters, synthesize};

/// Interrupts a second, as CDs have it.
pub const HERTZ: u32 = 44_100;

/// How often the interrupt can be raised by hand at a time.
pub const RAISED_MOST: u32 = 60_000;

/// How a handler is entered to be measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Entry {
    Interrupt,
    Call,
}

/// The device server. It lives as long as the machine.
pub struct Sound {
    pub words: Box<SoundWords>,
    machine: &'static dyn Machine,
    makers: Option<Makers>,
    clock: SampleClock,
    waiting: [WaitQueue; 3],
    state: KernelCell<State>,
}

struct State {
    activity: Activity,
    maker: Maker,
    /// How the A/D converter's samples enter the ring; `None`: as it is cheapest.
    inserts: Option<Inserts>,
    handlers: Handlers,
    /// Thousandths of an interrupt a second; 0 while the clock stands.
    rate: u64,
    made: u64,
}

/// What is bound in the slot; `None`: the compiled handler.
#[derive(Default)]
struct Handlers {
    for_nobody: Option<Handler>,
    /// While somebody waits for samples.
    for_waiters: Option<Handler>,
}

impl Handlers {
    /// Which part of an element `entry` is for.
    fn part(&self, entry: u64) -> u32 {
        let handlers = [&self.for_nobody, &self.for_waiters];
        handlers.into_iter().flatten().find_map(|handler| handler.part(entry)).unwrap_or(0)
    }
}

impl Sound {
    /// The device server of a machine with a sample clock.
    pub fn new(machine: &'static dyn Machine, makers: Option<Makers>) -> Option<Sound> {
        let clock = machine.sample_clock()?;
        let maker = if makers.is_some() { Maker::Synthesized } else { Maker::Compiled };
        let (activity, handlers) = (Activity::default(), Handlers::default());
        let state = State { activity, maker, inserts: None, handlers, rate: 0, made: 0 };
        machine.bind_sample_handler(clock.compiled);
        let waiting = [(); 3].map(|()| WaitQueue::new());
        Some(Sound { words: Box::default(), machine, makers, clock, waiting, state: KernelCell::new(state) })
    }

    pub fn activity(&self) -> Activity {
        self.state.borrow().activity
    }

    pub fn maker(&self) -> Maker {
        self.state.borrow().maker
    }

    /// Name and bytes of the bound handler.
    pub fn handler(&self) -> (&'static str, usize) {
        match &self.state.borrow().handlers.for_nobody {
            Some(handler) => self
                .makers
                .and_then(|makers| makers.store.birth(handler.code.entry().address()))
                .map_or(("?", 0), |birth| (birth.name, birth.bytes as usize)),
            None => ("sound.compiled", 0),
        }
    }

    /// Handlers made so far.
    pub fn made(&self) -> u64 {
        self.state.borrow().made
    }

    /// Thousandths of an interrupt in a second; 0 while the clock stands.
    pub fn rate(&self) -> u64 {
        self.state.borrow().rate
    }

    /// Switches a channel on or off: makes the handler for what is active now and binds it, while interrupts come.
    ///
    /// Errors: `EBUSY` when it is on already, `ENOMEM`, for a ring or for code.
    pub fn switch(&self, channel: Channel, format: Option<Format>) -> Result<(), Errno> {
        let before = self.activity();
        if format.is_some() && before.format(channel).is_some() {
            return Err(Errno::EBUSY);
        }
        if format.is_some() {
            if before.is_silent() {
                // Making a ring takes longer than a sample; while the clock stands, nothing is late.
                self.words.channels.iter().try_for_each(ChannelWords::allocate)?;
            }
            self.words.channels[channel as usize].restart(self.words.device.load(Ordering::Relaxed));
        }
        let activity = before.with(channel, format);
        self.publish(activity, self.maker())?;
        self.state.borrow_mut().activity = activity;
        Ok(())
    }

    /// Switches a channel off. Without room for another handler the compiled one serves the rest.
    pub fn silence(&self, channel: Channel) {
        if self.switch(channel, None).is_err() {
            let activity = self.activity().with(channel, None);
            self.bind(activity, Handlers::default());
            self.state.borrow_mut().activity = activity;
        }
    }

    /// Raises the interrupt `count` times with a handler for `activity`, or calls the handler, and takes the time.
    ///
    /// Errors: `EBUSY` while a channel is active, `EINVAL` for more than [`RAISED_MOST`], `ENOTSUP` on a machine that cannot
    /// do so, `ENOMEM`.
    pub fn measure(&self, entry: Entry, activity: Activity, count: u32) -> Result<Nanos, Errno> {
        if !self.activity().is_silent() {
            return Err(Errno::EBUSY);
        }
        if count > RAISED_MOST {
            return Err(Errno::EINVAL);
        }
        for channel in Channel::ALL.into_iter().filter(|channel| activity.format(*channel).is_some()) {
            let words = &self.words.channels[channel as usize];
            words.allocate()?;
            words.restart(self.words.device.load(Ordering::Relaxed));
            // An output that is never dry.
            words.fill_up(activity.format(channel));
        }
        let practice = self.machine.practice().ok_or(Errno::ENOTSUP)?;
        let as_procedure = practice.sample_procedure();
        let (end, compiled, inserts) = match (entry, &as_procedure) {
            (Entry::Interrupt, _) => (&self.clock.end, None, self.inserts(activity)),
            // The caller knows one address.
            (Entry::Call, Some((end, compiled))) => (end, Some(*compiled), Inserts::One),
            (Entry::Call, None) => return Err(Errno::ENOTSUP),
        };
        let plan = Plan { activity, waiters: Waiters::None, maker: self.maker(), inserts };
        let handler = self.make(plan, end)?;
        let procedure = handler.as_ref().map_or(compiled, |handler| Some(handler.entry(0).under()));
        self.bind(activity, Handlers { for_nobody: handler, for_waiters: None });
        let before = self.machine.now();
        match procedure.filter(|_| entry == Entry::Call) {
            None => practice.raise_samples(count),
            Some(procedure) => practice.call_samples(procedure, count),
        }
        let after = self.machine.now();
        self.bind(Activity::default(), Handlers::default());
        Ok(after.saturating_sub(before))
    }

    /// Chooses who makes handlers. Error: `ENOMEM` when there is no room for code.
    pub fn choose(&self, maker: Maker) -> Result<(), Errno> {
        self.publish(self.activity(), maker)?;
        self.state.borrow_mut().maker = maker;
        Ok(())
    }

    /// Chooses how the A/D converter's samples enter the ring; `None`: as it is cheapest. Error: `ENOMEM`.
    pub fn choose_inserts(&self, inserts: Option<Inserts>) -> Result<(), Errno> {
        self.state.borrow_mut().inserts = inserts;
        self.publish(self.activity(), self.maker())
    }

    fn inserts(&self, activity: Activity) -> Inserts {
        match self.state.borrow().inserts {
            Some(inserts) if activity.format(Channel::AdIn).is_some() => inserts,
            _ => Inserts::cheapest(activity),
        }
    }

    fn publish(&self, activity: Activity, maker: Maker) -> Result<(), Errno> {
        let inserts = self.inserts(activity);
        let make = |waiters| self.make(Plan { activity, waiters, maker, inserts }, &self.clock.end);
        let handlers = Handlers { for_nobody: make(Waiters::None)?, for_waiters: make(Waiters::Some)? };
        self.bind(activity, handlers);
        self.run_clock(activity);
        Ok(())
    }

    /// A handler; `None`: the compiled one, which is there already.
    fn make(&self, plan: Plan, end: &Fragment) -> Result<Option<Handler>, Errno> {
        let Some(makers) = self.makers.filter(|_| plan.maker != Maker::Compiled) else { return Ok(None) };
        synthesize(&self.words, &self.clock, end, plan, makers).map(Some).ok_or(Errno::ENOMEM)
    }

    /// From the next interrupt on `handlers` serve `activity`.
    fn bind(&self, activity: Activity, handlers: Handlers) {
        for channel in Channel::ALL {
            // The generic handlers look here. The synthesized one has no use for it.
            self.words.channels[channel as usize].set_format(activity.format(channel));
        }
        let mut state = self.state.borrow_mut();
        state.made += 1;
        let before = core::mem::replace(&mut state.handlers, handlers);
        drop(state);
        self.change_handler(&before);
        machine::relies_on_one_processor!("the handlers before these could be running on another");
        // They cannot be running: an interrupt is over before the kernel goes on.
        drop(before);
    }

    /// Stores the entry of the handler for who waits, or for nobody, into the slot.
    fn choose_handler(&self) {
        self.change_handler(&self.state.borrow().handlers);
    }

    /// The same when the handler is one of `before` until now. The element in the making is handed on.
    fn change_handler(&self, before: &Handlers) {
        let Handlers { for_nobody, for_waiters } = &self.state.borrow().handlers;
        let converter = &self.words.channels[Channel::AdIn as usize];
        self.machine.between_interrupts(&mut || {
            let is_awaited = self.words.channels.iter().any(ChannelWords::is_awaited);
            let handler = for_waiters.as_ref().filter(|_| is_awaited).or(for_nobody.as_ref());
            converter.unpack(before.part(self.clock.slot.entry().address()));
            let part = if handler.is_some_and(|handler| handler.inserts() > 1) { converter.pack() } else { 0 };
            self.machine
                .bind_sample_handler(handler.map_or(self.clock.compiled, |handler| handler.entry(part).under()));
        });
    }

    /// Has the handler chain a signal when it has used `places` more of `channel`; false if it has already.
    pub fn signal_after(&self, channel: Channel, format: Format, places: u32) -> bool {
        let words = &self.words.channels[channel as usize];
        let start = words.await_place(format, places);
        self.choose_handler();
        // Interrupts may have come before both.
        words.used(format).wrapping_sub(start) < places
    }

    /// The clock runs while a channel is active.
    fn run_clock(&self, activity: Activity) {
        let hertz = if activity.is_silent() { 0 } else { HERTZ };
        if (hertz == 0) != (self.rate() == 0) {
            let rate = self.machine.run_sample_clock(hertz);
            self.state.borrow_mut().rate = if hertz == 0 { 0 } else { rate };
        }
    }

    /// Where who wants more of a channel's samples, or room for them, sleeps.
    pub fn waiting(&self, channel: Channel) -> &WaitQueue {
        &self.waiting[channel as usize]
    }

    /// A handler has chained a signal.
    pub fn is_chained(&self) -> bool {
        self.words.channels.iter().fold(0, |chained, channel| chained | channel.chained()) != 0
    }

    /// The end of a chain from a handler: wakes who waits for the places that it has used. False: nobody.
    pub fn signal_chained(&self, scheduler: &Scheduler) -> bool {
        let signalled = self.words.channels.iter().zip(&self.waiting).filter(|(channel, _)| channel.take_signal());
        let has_woken = signalled.map(|(_, queue)| scheduler.wake(queue)).count() > 0;
        if has_woken {
            self.choose_handler();
        }
        has_woken
    }

    /// The interrupt in Rust: the generic path that says what a handler does.
    pub fn interrupt(&self) {
        let sample = self.words.device.load(Ordering::Relaxed).wrapping_add(1);
        self.words.device.store(sample, Ordering::Relaxed);
        let serve = |channel: &ChannelWords| channel.serve(sample, &self.words.analog_out);
        if self.words.channels.iter().fold(false, |chains, channel| serve(channel) | chains) {
            self.machine.ask_for_chained();
        }
    }
}
