//! A channel of the machine: `write` is one routine down to the device's ring (the machine gives instructions to paste).

use abi::nr;
use machine::{Channel, SendCode};
use quaject::{Makers, Number, quaject};
use synth::Imm32;

use crate::call::fragments::{AllDone, CountWords, GiveBack, Keep, MoveMany, OneToMost, UserAddress};
use crate::call::{FileCall, SLOW_MANY};
use crate::link::{Connected, Ground, Port, connect};
use crate::monitor::Callers;

quaject! {
    /// A channel of the machine. Callout: the device, whose instructions are pasted between check and copy, and behind it.
    #[derive(Default)]
    pub quaject Console ("console", made by "open", at most 0 inactive)
    data {}
    factors(console) {}
    callouts ConsoleCallouts {
        /// Chooses a buffer of the device, and gives it to the device when it is filled.
        device: SendCode,
    }
    callbacks {
        /// The device has no buffer: the caller sleeps.
        full: slow_many,
    }
    callentries ConsoleCode {
        write: FileCall(nr::WRITE) named "console.write" needs(device) uses(user_limit, slow) {
            paste OneToMost { most: Imm32(device.bytes_max as u32 - 1), slow };
            paste UserAddress { user_limit, slow };
            paste Keep {};
            paste (&device.choose);
            paste CountWords {};
            paste_user_many MoveMany {};
            paste (&device.send);
            paste GiveBack {};
            paste AllDone {};
            leave;
        }
    }
}

/// Combination: a program's thread that writes, and a channel. The channel is passive and serves one call at a time (a routine is
/// not interrupted), so its instructions are pasted, if the machine has some. `None`: every write is done in Rust.
pub fn paste_channel(channel: Channel, makers: Makers) -> Option<SendCode> {
    let device = makers.machine.send_code(channel, synth::Target::Label(SLOW_MANY))?;
    let ground = Ground { callers: Callers::UnderLock, same_thread: true, capacity: 0, scheduler: None, owner: 0 };
    match connect::<()>(Port::Active(Number::Multiple), Port::Fragment(Number::Multiple, device), &ground) {
        Ok(Connected::Pasted(device)) => Some(device),
        _ => None,
    }
}

/// The callentries of a channel.
pub fn console(channel: Channel, makers: Makers) -> ConsoleCode {
    let callouts = ConsoleCallouts { device: paste_channel(channel, makers) };
    quaject::create::create(&Console {}, makers, &callouts)
}
