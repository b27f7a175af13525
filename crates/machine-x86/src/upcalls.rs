//! Where entries find the kernel.

use core::cell::UnsafeCell;

use machine::Upcalls;

/// The kernel, once it is there.
struct Kernel(UnsafeCell<Option<&'static dyn Upcalls>>);

// SAFETY: written once, at boot, by the only processor that runs then.
unsafe impl Sync for Kernel {}

static KERNEL: Kernel = Kernel(UnsafeCell::new(None));

/// From now on traps go to `upcalls`. Called once, at boot.
pub fn set_upcalls(upcalls: &'static dyn Upcalls) {
    // SAFETY: called at boot; no trap reads it meanwhile.
    unsafe { *KERNEL.0.get() = Some(upcalls) };
}

#[inline]
pub fn upcalls() -> &'static dyn Upcalls {
    // SAFETY: written only at boot.
    unsafe { *KERNEL.0.get() }.expect("a trap before the kernel was ready")
}
