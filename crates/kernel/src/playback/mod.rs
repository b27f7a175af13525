//! Playback: what programs write to the machine's sound device (S-82), one at a time.
//!
//! ```text
//!   write ── Converter ──► ring of the device, a few periods long ──► heard
//!             │ to 16 bits, two samples a frame,      ▲
//!             │ a multiple of the rate                └ a period ends: its line chains to `look`, which wakes who waits for room
//! ```
//! The device goes round its ring by itself and plays whatever is there. So what it has played is made silent as soon as that is
//! seen: who writes too late hears silence, never the past ([`Feed`]). When it has played nothing but silence for a while it is
//! stopped, and begins anew with the next write.
//!
//! A device may lose its interrupts, stall, or say nonsense: an alarm looks a little later than a period's end would, and one that has not
//! moved for long is lost, as is one that is nowhere. Who writes is told (`EIO`); the next who opens it tries again.

mod converter;
mod feed;
mod playing;
mod settings;

#[cfg(test)]
mod tests;

use alloc::boxed::Box;
use alloc::sync::Arc;

use abi::Errno;
use machine::{KernelCell, KernelValue, Nanos, Pace, Player, PlayerLost, try_arc, try_box};

use crate::schedule::{AlarmCall, AlarmId, AlarmTarget, Bell, Scheduler, WaitQueue};

pub use converter::{Format, linear};
pub use playing::{Playing, Pointer};
pub use settings::{Fragments, Geometry, Settings};

use converter::Converter;
use feed::Feed;

/// Bytes of silence at an end: what a device has fetched is not yet heard. (QEMU's codec keeps up to 8 KiB, its mixer as much.)
const TAIL_BYTES: u64 = 16 << 10;
/// A device that has not moved for so long, and four periods, never will.
const PATIENCE: Nanos = Nanos(3 * Nanos::PER_SECOND);
/// The shortest time between two looks by alarm.
const LOOK_LEAST: Nanos = Nanos::from_micros(500);

/// The device server. It lives as long as the machine; its device is started when a program opens it first.
pub struct Playback {
    scheduler: &'static Scheduler,
    output: KernelCell<Option<&'static Output>>,
}

/// A device that was started.
struct Output {
    scheduler: &'static Scheduler,
    player: &'static dyn Player,
    state: KernelCell<State>,
    is_open: KernelValue<bool>,
    /// Who waits for room, or for the end.
    waiting: WaitQueue,
    bell: KernelValue<Option<Bell>>,
    alarm: KernelValue<Option<AlarmId>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// Nothing was written since it stopped.
    Still,
    /// What was written is less than a period, or is held back.
    Waits,
    Plays,
    /// The device has failed.
    Lost,
}

struct State {
    settings: Settings,
    geometry: Geometry,
    converter: Converter,
    feed: Feed,
    phase: Phase,
    /// A program has said that nothing shall be played yet.
    is_held_back: bool,
    /// All was written: silence is no fault.
    is_ending: bool,
    /// Bytes of programs that were played until the device stood still last, since it was opened.
    played_before: u64,
    /// Bytes taken since then, and so many of them that have been played at least.
    written: u64,
    played: u64,
    /// Fragments that a program was told of.
    fragments_told: u64,
    /// How often silence was played because nothing else was there, whoever had the device.
    underruns: u64,
    /// When the device was seen to move last.
    moved: Nanos,
}

struct Rings(&'static Output);

impl AlarmCall for Rings {
    fn ring(&self, _: Nanos) {
        self.0.alarm.set(None);
        self.0.look();
    }
}

impl Playback {
    pub fn new(scheduler: &'static Scheduler) -> Playback {
        Playback { scheduler, output: KernelCell::new(None) }
    }

    /// Opens the device.
    ///
    /// Errors: `ENODEV` where there is none that can be driven, `EBUSY` while somebody has it, `ENOMEM`.
    pub fn open(&self, settings: Settings) -> Result<Arc<Playing>, Errno> {
        let known = *self.output.borrow();
        let output = match known {
            Some(output) => output,
            None => self.start()?,
        };
        if output.is_open.get() {
            return Err(Errno::EBUSY);
        }
        let playing = try_arc(Playing::new(output)).map_err(|_| Errno::ENOMEM)?;
        output.is_open.set(true);
        let mut state = output.state.borrow_mut();
        *state = State { underruns: state.underruns, ..State::new(settings, output.player) };
        drop(state);
        Ok(playing)
    }

    /// The same for who goes without a device where there is none. Errors: `EBUSY`, `ENOMEM`.
    pub fn open_if_there(&self, settings: Settings) -> Result<Option<Arc<Playing>>, Errno> {
        match self.open(settings) {
            Err(Errno::ENODEV) => Ok(None),
            opened => opened.map(Some),
        }
    }

    /// How often silence was played because a program came too late.
    pub fn underruns(&self) -> u64 {
        self.output.borrow().map_or(0, |output| output.state.borrow().underruns)
    }

    fn start(&self) -> Result<&'static Output, Errno> {
        let player = self.scheduler.machine().next_player().ok_or(Errno::ENODEV)?;
        let output = Output {
            scheduler: self.scheduler,
            player,
            state: KernelCell::new(State::new(Settings::default(), player)),
            is_open: KernelValue::new(false),
            waiting: WaitQueue::new(),
            bell: KernelValue::new(None),
            alarm: KernelValue::new(None),
        };
        // There is one, as long as the machine runs.
        let output: &'static Output = Box::leak(try_box(output).map_err(|_| Errno::ENOMEM)?);
        self.scheduler.make_bell_room().map_err(|_| Errno::ENOMEM)?;
        output.bell.set(Some(self.scheduler.add_bell(try_arc(Rings(output)).map_err(|_| Errno::ENOMEM)?)));
        player.when_period(try_arc(|| output.look()).map_err(|_| Errno::ENOMEM)?);
        *self.output.borrow_mut() = Some(output);
        Ok(output)
    }
}

impl State {
    fn new(settings: Settings, player: &dyn Player) -> State {
        let geometry = settings.geometry(player.rates(), player.limits());
        State {
            settings,
            geometry,
            converter: Converter::new(settings, geometry.repeats),
            feed: Feed::new(geometry.ring_bytes(), geometry.queue_bytes()),
            phase: Phase::Still,
            is_held_back: false,
            is_ending: false,
            played_before: 0,
            written: 0,
            played: 0,
            fragments_told: 0,
            underruns: 0,
            moved: Nanos(0),
        }
    }

    /// Chooses other settings, while nothing is written.
    fn change(&mut self, settings: Settings, player: &dyn Player) {
        self.settings = settings;
        self.geometry = settings.geometry(player.rates(), player.limits());
        self.converter = Converter::new(settings, self.geometry.repeats);
        self.feed = Feed::new(self.geometry.ring_bytes(), self.geometry.queue_bytes());
    }

    /// Where the device is now: what it has played since is made silent. Without a device that answers, all is lost.
    fn look(&mut self, player: &dyn Player, now: Nanos) {
        if self.phase != Phase::Plays {
            return;
        }
        let Ok(position) = player.position() else { return self.lose(player) };
        if position >= self.feed.ring_bytes() {
            return self.lose(player);
        }
        let was_dry = self.feed.is_dry();
        let moved = self.feed.advance(position, |at, bytes| silence(player, at, bytes));
        if moved {
            self.moved = now;
        } else if now.saturating_sub(self.moved) > self.patience() {
            return self.lose(player);
        }
        if self.feed.is_dry() && !was_dry && !self.is_ending {
            self.underruns += 1;
        }
        if self.feed.silent_bytes() >= TAIL_BYTES {
            self.stop(player);
        }
    }

    fn patience(&self) -> Nanos {
        PATIENCE.saturating_add(Nanos(4 * self.geometry.period_time().0))
    }

    fn lose(&mut self, player: &dyn Player) {
        self.stop(player);
        self.phase = Phase::Lost;
    }

    /// The device stops; what it has not played is gone.
    fn stop(&mut self, player: &dyn Player) {
        self.played_before = self.played_bytes();
        (self.written, self.played) = (0, 0);
        if self.phase == Phase::Plays {
            player.halt();
        }
        self.converter = Converter::new(self.settings, self.geometry.repeats);
        self.feed = Feed::new(self.geometry.ring_bytes(), self.geometry.queue_bytes());
        self.phase = Phase::Still;
    }

    /// Takes as many bytes as there is room for. Error: `EIO` when the device has failed.
    fn put(&mut self, player: &dyn Player, from: &[u8], now: Nanos) -> Result<usize, Errno> {
        if self.phase == Phase::Lost {
            return Err(Errno::EIO);
        }
        if self.phase == Phase::Still {
            silence(player, 0, self.feed.ring_bytes());
            self.phase = Phase::Waits;
        }
        if self.phase == Phase::Plays {
            let ahead = player.fetched_ahead();
            // The silence that may come now is no byte of the program's.
            self.played = self.played_of_written();
            self.feed.keep_ahead(ahead, self.geometry.period_bytes);
        }
        self.is_ending = false;
        let frames = self.feed.room() / self.geometry.frame_bytes();
        let feed = &mut self.feed;
        let taken = self.converter.convert(from, frames, |bytes| feed.fill(bytes, |at, part| player.write(at, part)));
        self.written += taken as u64;
        if self.feed.queued_bytes() >= self.geometry.period_bytes as u64 && !self.is_held_back {
            self.begin(player, now);
        }
        if self.phase == Phase::Lost { Err(Errno::EIO) } else { Ok(taken) }
    }

    /// Has the device play what was written.
    fn begin(&mut self, player: &dyn Player, now: Nanos) {
        if self.phase != Phase::Waits {
            return;
        }
        self.moved = now;
        self.phase = Phase::Plays;
        if player.play(self.geometry.pace()) == Err(PlayerLost) {
            self.lose(player);
        }
    }

    /// Bytes of programs that were written and not yet played.
    fn queued_bytes(&self) -> u64 {
        let frames = self.feed.queued_bytes().div_ceil(self.geometry.frame_bytes() as u64);
        frames * self.settings.frame_bytes() as u64 + self.converter.waiting_bytes() as u64
    }

    /// Bytes that could be written now.
    fn room_bytes(&self) -> usize {
        let frames = self.feed.room() / self.geometry.frame_bytes();
        (frames * self.settings.frame_bytes()).saturating_sub(self.converter.waiting_bytes())
    }

    /// Bytes that were played since the device was opened.
    fn played_bytes(&self) -> u64 {
        self.played_before + self.played_of_written()
    }

    fn played_of_written(&self) -> u64 {
        self.written.saturating_sub(self.queued_bytes()).max(self.played)
    }

    /// When to look by an alarm: behind the next period's end; sooner where nobody interrupts, and at an end.
    fn next_look(&self, polls: bool) -> Option<Nanos> {
        if self.phase != Phase::Plays {
            return None;
        }
        let period = self.geometry.period_time();
        let usual = if polls { Nanos(period.0 / 2) } else { Nanos(period.0 + period.0 / 4) };
        let left = (self.feed.queued_bytes() + TAIL_BYTES).saturating_sub(self.feed.silent_bytes());
        let end = if self.is_ending { self.geometry.time_of(left) } else { usual };
        Some(usual.min(end).max(LOOK_LEAST))
    }
}

impl Output {
    /// Does something, sees where the device is before, and sets the alarm behind.
    fn with_state<R>(&self, act: impl FnOnce(&mut State, &dyn Player, Nanos) -> R) -> R {
        let machine = self.scheduler.machine();
        let now = machine.now();
        let mut state = self.state.borrow_mut();
        let played = state.phase == Phase::Plays;
        state.look(self.player, now);
        let result = act(&mut state, self.player, now);
        let next = state.next_look(machine.must_poll());
        drop(state);
        self.set_alarm(next.map(|wait| now.saturating_add(wait)));
        if played && next.is_none() {
            // Nobody looks any more, so who waits is told here.
            self.scheduler.wake(&self.waiting);
        }
        result
    }

    fn set_alarm(&self, at: Option<Nanos>) {
        if let Some(id) = self.alarm.get() {
            self.scheduler.cancel_alarm(id);
        }
        let bell = self.bell.get();
        let id = at.zip(bell).map(|(at, bell)| self.scheduler.set_alarm(at, AlarmTarget::Call(bell)));
        self.alarm.set(id);
    }

    /// A period has ended, perhaps. Called between interrupts.
    fn look(&self) {
        self.with_state(|_, _, _| ());
        self.scheduler.wake(&self.waiting);
    }
}

/// Makes a part of the ring silent.
fn silence(player: &dyn Player, mut at: usize, bytes: usize) {
    const SILENCE: [u8; 1024] = [0; 1024];
    let end = at + bytes;
    while at < end {
        let part = SILENCE.len().min(end - at);
        player.write(at, &SILENCE[..part]);
        at += part;
    }
}

impl Geometry {
    fn pace(&self) -> Pace {
        Pace { hertz: self.hertz, period_bytes: self.period_bytes, periods: self.periods }
    }
}
