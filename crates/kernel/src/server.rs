//! The device server with a thread of its own (SOSP'89 5.1, S-94): it polls, on a machine whose devices do not interrupt.
//!
//! ```text
//!   alarm ──► thread: looks at all devices, sleeps again
//! ```
//! Who brings the kernel to a new machine, or suspects its interrupts, starts it with the word `poll`: no device is routed to
//! the processor then, and nothing but this thread sees that a byte has come or that there is room again.

use machine::{Held, KernelCell, Nanos, NoFrames, Start, Upcalls};

use crate::schedule::Scheduler;
use crate::thread::Thread;

/// From one look at the devices to the next. A key waits half as long on average; a device with 8 buffers of a page carries 32 MB
/// a second.
pub const PERIOD: Nanos = Nanos(1_000_000);

/// What the thread looks with: it gets no argument.
static DEVICES: KernelCell<Option<&'static dyn Upcalls>> = KernelCell::new(None);

/// Starts the server. Once per boot.
///
/// # Errors
/// No room for its thread.
pub fn start(scheduler: &'static Scheduler, devices: &'static dyn Upcalls) -> Result<(), NoFrames> {
    let thread = Thread::new(scheduler.machine().create_tte(Start::Kernel(serve))?);
    DEVICES.set(Some(devices));
    scheduler.enlist(&thread).map_err(|_| NoFrames)?;
    scheduler.unblock(&thread);
    Ok(())
}

fn serve(held: Held<'_>) -> ! {
    let scheduler = Scheduler::the().expect("threads have a scheduler");
    loop {
        if let Some(devices) = DEVICES.get() {
            devices.device();
        }
        scheduler.sleep(held, &[], Some(scheduler.machine().now().saturating_add(PERIOD)));
    }
}
