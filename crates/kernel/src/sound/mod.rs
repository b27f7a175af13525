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
//! whether a reader is late; the reader finds that out (`Overrun`), so the handler needs no test. It wakes nobody
//! either: a reader knows the clock's rate and sleeps until its samples must be there.
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
use core::sync::atomic::{AtomicU32, Ordering};

use abi::Errno;
use codestore::Code;
use machine::{Fragment, KernelCell, Machine, Nanos, SampleClock};

use crate::call::Makers;

pub use channel::{Activity, Channel, ChannelWords, Format, RING_PLACES, mu_law};
pub use handler::{Maker, SampleHandler, synthesize};
pub use template::{FACTS, templates};

/// Interrupts a second, as CDs have it.
pub const HERTZ: u32 = 44_100;

/// How often the interrupt can be raised by hand at a time.
pub const RAISED_MOST: u32 = 60_000;

/// What all handlers work on, at addresses that the code has folded in.
#[repr(C)]
#[derive(Default)]
pub struct SoundWords {
    /// The simulated device: interrupts so far.
    pub device: AtomicU32,
    /// The last sample for the loudspeaker.
    pub analog_out: AtomicU32,
    /// By [`Channel`].
    pub channels: [ChannelWords; 3],
}

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
    state: KernelCell<State>,
}

struct State {
    activity: Activity,
    maker: Maker,
    /// Bound in the slot now, unless that is the compiled handler.
    code: Option<Code<SampleHandler>>,
    /// Thousandths of an interrupt a second; 0 while the clock stands.
    rate: u64,
    made: u64,
}

impl Sound {
    /// The device server of a machine with a sample clock.
    pub fn new(machine: &'static dyn Machine, makers: Option<Makers>) -> Option<Sound> {
        let clock = machine.sample_clock()?;
        let maker = if makers.is_some() { Maker::Synthesized } else { Maker::Compiled };
        let state = State { activity: Activity::default(), maker, code: None, rate: 0, made: 0 };
        machine.bind_sample_handler(clock.compiled);
        Some(Sound { words: Box::default(), machine, makers, clock, state: KernelCell::new(state) })
    }

    pub fn activity(&self) -> Activity {
        self.state.borrow().activity
    }

    pub fn maker(&self) -> Maker {
        self.state.borrow().maker
    }

    /// Name and bytes of the bound handler.
    pub fn handler(&self) -> (&'static str, usize) {
        match &self.state.borrow().code {
            Some(code) => self
                .makers
                .and_then(|makers| makers.store.birth(code.entry()))
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
            self.bind(activity, None);
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
        let (end, compiled) = match (entry, &self.clock.as_procedure) {
            (Entry::Interrupt, _) => (&self.clock.end, self.clock.compiled),
            (Entry::Call, Some((end, compiled))) => (end, *compiled),
            (Entry::Call, None) => return Err(Errno::ENOTSUP),
        };
        let code = self.make(activity, self.maker(), end)?;
        let address = code.as_ref().map_or(compiled, Code::entry);
        self.bind(activity, code);
        let before = self.machine.now();
        match entry {
            Entry::Interrupt => self.machine.raise_samples(count),
            Entry::Call => self.machine.call_samples(address, count),
        }
        let after = self.machine.now();
        self.bind(Activity::default(), None);
        Ok(after.saturating_sub(before))
    }

    /// Chooses who makes handlers. Error: `ENOMEM` when there is no room for code.
    pub fn choose(&self, maker: Maker) -> Result<(), Errno> {
        self.publish(self.activity(), maker)?;
        self.state.borrow_mut().maker = maker;
        Ok(())
    }

    fn publish(&self, activity: Activity, maker: Maker) -> Result<(), Errno> {
        let code = self.make(activity, maker, &self.clock.end)?;
        self.bind(activity, code);
        self.run_clock(activity);
        Ok(())
    }

    /// A handler; `None`: the compiled one, which is there already.
    fn make(&self, activity: Activity, maker: Maker, end: &Fragment) -> Result<Option<Code<SampleHandler>>, Errno> {
        let Some(makers) = self.makers.filter(|_| maker != Maker::Compiled) else { return Ok(None) };
        let made = synthesize(&self.words, end, activity, maker, makers);
        made.map(Some).map_err(|_| Errno::ENOMEM)
    }

    /// From the next interrupt on `code` serves `activity`.
    fn bind(&self, activity: Activity, code: Option<Code<SampleHandler>>) {
        for channel in Channel::ALL {
            // The generic handlers look here. The synthesized one has no use for it.
            self.words.channels[channel as usize].set_format(activity.format(channel));
        }
        self.machine.bind_sample_handler(code.as_ref().map_or(self.clock.compiled, Code::entry));
        let mut state = self.state.borrow_mut();
        state.made += 1;
        // The handler before this one cannot be running: interrupts are off here, on the only processor.
        state.code = code;
    }

    /// The clock runs while a channel is active.
    fn run_clock(&self, activity: Activity) {
        let hertz = if activity.is_silent() { 0 } else { HERTZ };
        if (hertz == 0) != (self.rate() == 0) {
            let rate = self.machine.run_sample_clock(hertz);
            self.state.borrow_mut().rate = if hertz == 0 { 0 } else { rate };
        }
    }

    /// The interrupt in Rust: the generic path that says what a handler does.
    pub fn interrupt(&self) {
        let sample = self.words.device.load(Ordering::Relaxed).wrapping_add(1);
        self.words.device.store(sample, Ordering::Relaxed);
        for channel in &self.words.channels {
            channel.serve(sample, &self.words.analog_out);
        }
    }
}
