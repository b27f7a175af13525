//! The interface of gdb for code made at run time (gdb manual, "JIT Compilation Interface").
//!
//! gdb looks for the two symbols below by their names: it sets a breakpoint in the function, and each time it is
//! called reads what the descriptor says. A gdb that attaches later reads the whole list.
#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "one proof for the words of one record, or for calls that belong together"
)]

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::arch::global_asm;
use core::ptr::null_mut;

use super::object;
use super::unwind::Frames;
use crate::host;

/// An object file in memory, one routine each; the list is gdb's to walk.
#[repr(C)]
struct Entry {
    next: *mut Entry,
    previous: *mut Entry,
    object: *const u8,
    object_bytes: u64,
}

#[repr(C)]
struct Descriptor {
    version: u32,
    action: u32,
    relevant: *mut Entry,
    first: *mut Entry,
}

const REGISTER: u32 = 1;
const UNREGISTER: u32 = 2;

#[allow(non_upper_case_globals, reason = "gdb knows it by this name")]
#[unsafe(no_mangle)]
static mut __jit_debug_descriptor: Descriptor =
    Descriptor { version: 1, action: 0, relevant: null_mut(), first: null_mut() };

// Nothing but a place to stop at.
global_asm!(
    ".pushsection .text",
    ".globl __jit_debug_register_code",
    ".type __jit_debug_register_code, @function",
    "__jit_debug_register_code:",
    "ret",
    ".size __jit_debug_register_code, . - __jit_debug_register_code",
    ".popsection",
);

unsafe extern "C" {
    fn __jit_debug_register_code();
}

/// What gdb was told of, by address.
pub struct Registrations {
    objects: BTreeMap<u64, Registration>,
}

struct Registration {
    entry: *mut Entry,
    object: Vec<u8>,
}

// SAFETY: there is one host thread, and only this module follows the pointers.
unsafe impl Send for Registration {}

impl Registrations {
    pub const fn new() -> Registrations {
        Registrations { objects: BTreeMap::new() }
    }

    pub fn add(&mut self, name: &str, address: u64, bytes: u64, frames: Frames) {
        self.remove(address);
        let object = object::build(name, address, bytes, frames);
        let entry = Entry {
            next: null_mut(),
            previous: null_mut(),
            object: object.as_ptr(),
            object_bytes: object.len() as u64,
        };
        let entry = Box::into_raw(Box::new(entry));
        // SAFETY: 1. There is one host thread. 2. Entries in the list live until `remove`.
        unsafe {
            let descriptor = &raw mut __jit_debug_descriptor;
            (*entry).next = (*descriptor).first;
            if let Some(first) = (*descriptor).first.as_mut() {
                first.previous = entry;
            }
            (*descriptor).first = entry;
            tell(REGISTER, entry);
        }
        self.objects.insert(address, Registration { entry, object });
    }

    pub fn remove(&mut self, address: u64) {
        let Some(Registration { entry, object }) = self.objects.remove(&address) else { return };
        // SAFETY: 1. There is one host thread. 2. The entry was made by `add` and is in the list once; after `tell`
        // nobody has its address.
        unsafe {
            let Entry { next, previous, .. } = *entry;
            match previous.as_mut() {
                Some(previous) => previous.next = next,
                None => __jit_debug_descriptor.first = next,
            }
            if let Some(next) = next.as_mut() {
                next.previous = previous;
            }
            tell(UNREGISTER, entry);
            drop(Box::from_raw(entry));
        }
        drop(object);
    }
}

/// No signal meets the place where gdb stops: gdb takes longer to read than alarms take to come, and a handler would
/// lead back to the same place.
///
/// # Safety
/// The list is whole.
unsafe fn tell(action: u32, entry: *mut Entry) {
    let before = host::set_blocked_signals(u64::MAX);
    // SAFETY: there is one host thread; the function does nothing.
    unsafe {
        let descriptor = &raw mut __jit_debug_descriptor;
        (*descriptor).action = action;
        (*descriptor).relevant = entry;
        __jit_debug_register_code();
    }
    host::set_blocked_signals(before);
}
