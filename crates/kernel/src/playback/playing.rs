//! The device as who has it open sees it.

use core::any::Any;

use abi::Errno;
use machine::try_filled;

use super::{Fragments, Geometry, Output, Phase, Settings};
use crate::charge::Held;
use crate::schedule::WaitQueue;
use crate::stream::{Io, Progress, Ready, Stream, UserRange};

/// Bytes that are taken at once.
const PIECE_BYTES: usize = 4096;

/// The open device; it is free again when this is dropped.
pub struct Playing {
    output: &'static Output,
}

/// How far a program's bytes have come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pointer {
    /// Bytes played since the device was opened.
    pub bytes: u64,
    /// Fragments since this was asked last.
    pub fragments: u64,
    /// Where in the ring of fragments the next byte lies.
    pub place: u64,
}

impl Playing {
    pub(super) fn new(output: &'static Output) -> Playing {
        Playing { output }
    }

    pub fn settings(&self) -> Settings {
        self.output.state.borrow().settings
    }

    pub fn geometry(&self) -> Geometry {
        self.output.state.borrow().geometry
    }

    /// Changes what the next bytes mean, when what was written before has been played; the settings that are really so.
    ///
    /// Errors: those of [`Playing::sync`].
    pub fn change(&self, io: &Io<'_>, change: impl FnOnce(&mut Settings)) -> Result<Settings, Errno> {
        let before = self.settings();
        let mut settings = before;
        change(&mut settings);
        settings.hertz = Settings::nearest_rate(settings.hertz, self.output.player.rates());
        if settings != before {
            self.sync(io)?;
            self.output.with_state(|state, player, _| state.change(settings, player));
        }
        Ok(settings)
    }

    /// Chooses fragments; `EINVAL` when something was written before.
    pub fn choose_fragments(&self, fragments: Fragments) -> Result<(), Errno> {
        self.output.with_state(|state, player, _| {
            if state.phase != Phase::Still {
                return Err(Errno::EINVAL);
            }
            let settings = Settings { fragments: Some(fragments), ..state.settings };
            state.change(settings, player);
            Ok(())
        })
    }

    /// Bytes that could be written now.
    pub fn room_bytes(&self) -> usize {
        self.output.with_state(|state, _, _| state.room_bytes())
    }

    /// Sleeps until there is more room, perhaps. Errors: `EAGAIN`, `EINTR`; `EIO` when the device has failed.
    pub fn wait(&self, io: &Io<'_>) -> Result<(), Errno> {
        match self.output.with_state(|state, _, _| state.phase) {
            Phase::Lost => Err(Errno::EIO),
            _ => io.wait(&self.output.waiting),
        }
    }

    /// Bytes that are not yet played.
    pub fn queued_bytes(&self) -> u64 {
        self.output.with_state(|state, _, _| state.queued_bytes())
    }

    pub fn pointer(&self) -> Pointer {
        self.output.with_state(|state, _, _| {
            let (bytes, fragment) = (state.played_bytes(), state.geometry.fragment_bytes as u64);
            let played = bytes / fragment;
            let fragments = played.saturating_sub(core::mem::replace(&mut state.fragments_told, played));
            Pointer { bytes, fragments, place: bytes % (fragment * state.geometry.fragments as u64) }
        })
    }

    /// Sleeps until all that was written has been heard; the device stands still then.
    ///
    /// Errors: `EINTR`; `EIO` when the device fails.
    pub fn sync(&self, io: &Io<'_>) -> Result<(), Errno> {
        loop {
            let phase = self.output.with_state(|state, player, now| {
                state.begin(player, now);
                state.is_ending = true;
                state.phase
            });
            match phase {
                Phase::Lost => return Err(Errno::EIO),
                Phase::Plays => io.wait(&self.output.waiting)?,
                Phase::Still | Phase::Waits => return Ok(()),
            }
        }
    }

    /// Begins to play, though less than a fragment was written.
    pub fn post(&self) {
        self.output.with_state(|state, player, now| state.begin(player, now));
    }

    /// Stops at once; what was not played is gone. A device that has failed may work again.
    pub fn reset(&self) {
        self.output.with_state(|state, player, _| state.stop(player));
        self.output.scheduler.wake(&self.output.waiting);
    }

    /// Nothing is played until [`Playing::release`]; what is under way is gone.
    pub fn hold_back(&self) {
        self.reset();
        self.output.state.borrow_mut().is_held_back = true;
    }

    pub fn release(&self) {
        self.output.with_state(|state, player, now| {
            state.is_held_back = false;
            state.begin(player, now);
        });
    }

    pub fn is_held_back(&self) -> bool {
        self.output.state.borrow().is_held_back
    }
}

impl Drop for Playing {
    fn drop(&mut self) {
        self.output.with_state(|state, player, _| state.stop(player));
        self.output.is_open.set(false);
    }
}

impl Stream for Playing {
    /// The device hears nothing.
    fn read(&self, _: &Io<'_>, _: UserRange) -> Result<usize, Errno> {
        Err(Errno::ENXIO)
    }

    fn read_kernel(&self, _: &Io<'_>, _: &mut [u8]) -> Result<usize, Errno> {
        Err(Errno::ENXIO)
    }

    fn write(&self, io: &Io<'_>, from: UserRange) -> Result<usize, Errno> {
        let mut piece = try_filled(0, from.bytes.min(PIECE_BYTES))?;
        let mut done = 0;
        while done < from.bytes {
            let rest = from.after(done);
            let part = &mut piece[..rest.bytes.min(PIECE_BYTES)];
            let written = io.copy_in(rest.address, part).and_then(|()| self.write_kernel(io, part));
            match written {
                Ok(bytes) if bytes < part.len() => return Ok(done + bytes),
                Ok(bytes) => done += bytes,
                Err(error) => return if done > 0 { Ok(done) } else { Err(error) },
            }
            io.breathe();
        }
        Ok(done)
    }

    /// Sleeps until all is written. Errors: `EAGAIN`, `EINTR`, `EIO` when the device fails; none of them if something was written.
    fn write_kernel(&self, io: &Io<'_>, from: &[u8]) -> Result<usize, Errno> {
        let mut done = 0;
        while done < from.len() {
            let taken = self.output.with_state(|state, player, now| state.put(player, &from[done..], now));
            let waited = match taken {
                Ok(0) => io.wait(&self.output.waiting),
                Ok(taken) => {
                    done += taken;
                    Ok(())
                }
                Err(error) => Err(error),
            };
            if let Err(error) = waited {
                return if done > 0 { Ok(done) } else { Err(error) };
            }
        }
        Ok(done)
    }

    /// A fragment can be written.
    fn ready(&self) -> Ready {
        self.output.with_state(|state, _, _| match state.phase {
            Phase::Lost => Ready::WRITABLE.with(Ready::ERROR),
            _ => Ready::NONE.with_if(state.room_bytes() >= state.geometry.fragment_bytes, Ready::WRITABLE),
        })
    }

    fn each_queue<'a>(&'a self, visit: &mut dyn FnMut(&'a WaitQueue)) {
        visit(&self.output.waiting);
    }

    fn progress(&self) -> Option<Progress> {
        let departed =
            self.output.with_state(|state, _, _| state.played_bytes() / state.geometry.fragment_bytes as u64);
        Some(Progress { arrived: 0, departed })
    }

    fn lingers(&self) -> bool {
        self.output.with_state(|state, _, _| matches!(state.phase, Phase::Waits | Phase::Plays))
    }

    fn lingers_at_end(&self) -> bool {
        self.lingers()
    }

    /// What was written is heard, unless a signal comes.
    fn linger(&self, io: &Io<'_>) {
        let _ = self.sync(io);
    }

    /// The ring is the device's, whoever has it.
    fn held(&self) -> Held {
        Held::NOTHING
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
