//! The hosted kernel image: choose the machine, start the kernel.
#![cfg_attr(feature = "image", no_std, no_main)]

#[cfg(feature = "image")]
mod image {
    extern crate alloc;

    use alloc::boxed::Box;
    use alloc::vec;
    use core::panic::PanicInfo;

    use kernel::space::{FramePool, PoolSource};
    use machine::Processor;
    use unix::boot::{Epoch, Ingredients, RESERVE_FRAMES};

    #[global_allocator]
    static HEAP: machine_hosted::Heap = machine_hosted::Heap::new();

    #[unsafe(no_mangle)]
    extern "C" fn boot_rust(stack: *const u64) -> ! {
        // SAFETY: the first instructions call this once, with the host's stack pointer.
        let booted = unsafe { machine_hosted::boot(stack) };
        let machine = booted.machine;
        let free = vec![booted.free_frames];
        let pool: &'static FramePool = Box::leak(Box::new(FramePool::new(machine, free, RESERVE_FRAMES)));
        // SAFETY: the pool gives what it was given.
        unsafe { machine.use_frames_of(Box::leak(Box::new(PoolSource(pool)))) };
        let started = unix::boot::start(
            booted.entered.held(),
            Ingredients {
                machine,
                store: machine.code_store(),
                classes: machine_hosted::each_class,
                pool,
                archive: machine.archive(booted.archive_bytes),
                join: unix::boot::join_folders,
                monitor: &unix::boot::MONITOR,
                archive_frames: booted.archive_frames,
                epoch: Epoch::Exact(machine_hosted::epoch_nanos()),
                counter: machine_hosted::clock_parameters(),
            },
        );
        assert!(!booted.parameters.panic, "asked for on the command line");
        match started {
            // SAFETY: boot is over.
            Ok(thread) => unsafe { machine.enter_first(thread.tte(), booted.entered) },
            Err(failure) => {
                unix::boot::report_failure(machine, &failure);
                machine.power_off()
            }
        }
    }

    #[panic_handler]
    fn panic(info: &PanicInfo<'_>) -> ! {
        machine_hosted::panic(info)
    }

    #[unsafe(no_mangle)]
    extern "C" fn rust_eh_personality() {}

    /// The precompiled `alloc` was built to unwind; this image never does (`panic=abort`).
    #[unsafe(no_mangle)]
    extern "C" fn _Unwind_Resume() -> ! {
        panic!("unwinding")
    }
}

#[cfg(not(feature = "image"))]
fn main() {
    eprintln!("error: this is the kernel image's placeholder\nhelp: build the image with bin/hosted/build.sh");
    std::process::exit(1);
}
