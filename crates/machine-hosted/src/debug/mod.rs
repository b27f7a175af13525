//! Names for synthesized code, for tools of the host: a perf map, and the interface of gdb for code made at run time.
//!
//! Both learn of routines from the code store ([`Witness`]) and of call-site stubs from `stubs`. Both are off unless the
//! command line asks; a publication then costs one comparison.

mod gdb;
mod object;
mod perf_map;
mod unwind;

use core::sync::atomic::{AtomicBool, Ordering};

use codestore::{Birth, Witness};
use machine::KernelCell;

use crate::STORE;
use crate::host::{self, HostError};
use gdb::Registrations;
use perf_map::PerfMap;
pub use unwind::Frames;

/// Who wants names.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wishes {
    /// `/tmp/perf-PID.map`.
    pub perf_map: bool,
    /// Objects in memory for gdb, which also gets time to attach.
    pub gdb: bool,
}

struct Debuggers {
    perf_map: KernelCell<Option<PerfMap>>,
    gdb: KernelCell<Option<Registrations>>,
}

static DEBUGGERS: Debuggers = Debuggers { perf_map: KernelCell::new(None), gdb: KernelCell::new(None) };

/// Begins to tell what is wished.
///
/// # Errors
/// The perf map cannot be made.
pub fn start(wishes: Wishes) -> Result<(), HostError> {
    if wishes.perf_map {
        *DEBUGGERS.perf_map.borrow_mut() = Some(PerfMap::create()?);
    }
    if wishes.gdb {
        *DEBUGGERS.gdb.borrow_mut() = Some(Registrations::new());
    }
    if wishes.perf_map || wishes.gdb {
        STORE.set_witness(&DEBUGGERS);
    }
    Ok(())
}

static EXPECTS_DEBUGGER: AtomicBool = AtomicBool::new(false);

/// Somebody traces this process, as far as the command line tells.
pub fn expects_debugger() -> bool {
    EXPECTS_DEBUGGER.load(Ordering::Relaxed)
}

/// Waits until somebody traces this process.
pub fn wait_for_debugger() {
    const LOOK_AGAIN_NS: u64 = 20_000_000;
    EXPECTS_DEBUGGER.store(true, Ordering::Relaxed);
    host::let_debugger_attach();
    while !is_traced() {
        host::wait_for(&mut [], Some(LOOK_AGAIN_NS));
    }
}

/// What the host says; true where it says nothing, so that the wait ends.
fn is_traced() -> bool {
    const UNTRACED: &[u8] = b"\nTracerPid:\t0\n";
    let Ok(fd) = host::open_to_read(c"/proc/self/status") else { return true };
    let mut text = [0; 4096];
    let used = host::read(fd, &mut text).unwrap_or(0);
    host::close(fd);
    !text[..used].windows(UNTRACED.len()).any(|line| line == UNTRACED)
}

/// There is one more host process, with the same code.
pub fn host_made(process: i32) {
    if let Some(map) = DEBUGGERS.perf_map.borrow().as_ref() {
        map.share_with(process);
    }
}

/// A stub was made for a call site.
pub fn stub_made(address: u64, bytes: u64, back: u64) {
    DEBUGGERS.tell("callsite.stub", address, bytes, Frames::Stub { back });
}

impl Debuggers {
    fn tell(&self, name: &str, address: u64, bytes: u64, frames: Frames) {
        if let Some(map) = self.perf_map.borrow().as_ref() {
            map.add(name, address, bytes);
        }
        if let Some(registrations) = self.gdb.borrow_mut().as_mut() {
            registrations.add(name, address, bytes, frames);
        }
    }
}

impl Witness for Debuggers {
    fn born(&self, birth: &Birth) {
        self.tell(birth.name, birth.address, birth.bytes as u64, Frames::of_routine(birth.name));
    }

    fn retired(&self, birth: &Birth) {
        if let Some(registrations) = self.gdb.borrow_mut().as_mut() {
            registrations.remove(birth.address);
        }
    }
}
