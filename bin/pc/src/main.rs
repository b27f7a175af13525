//! The pc kernel image: choose the machine, start the kernel.
#![cfg_attr(feature = "image", no_std, no_main)]

#[cfg(feature = "image")]
mod image {
    extern crate alloc;

    use alloc::boxed::Box;
    use alloc::vec::Vec;
    use core::panic::PanicInfo;

    use kernel::space::{FramePool, PoolSource};
    use machine::{Frames, Machine, Processor};
    use unix::boot::{Epoch, Ingredients, RESERVE_FRAMES};

    #[global_allocator]
    static HEAP: machine_pc::Heap = machine_pc::Heap::new();

    #[unsafe(no_mangle)]
    extern "C" fn boot_rust(start_info: u64, entry_tsc: u64) -> ! {
        // SAFETY: the boot code calls this once, with the loader's pointer.
        let booted = unsafe { machine_pc::boot(start_info, entry_tsc) };
        let machine = booted.machine;
        let pool = frame_pool(machine, booted.free_frames);
        let archive = machine.archive(&booted.info);
        let started = unix::boot::start(
            booted.entered.held(),
            Ingredients {
                machine,
                store: machine.code_store(),
                classes: machine_pc::each_class,
                pool,
                archive,
                join: unix::boot::join_shares,
                monitor: if cfg!(feature = "monitor") { &unix::boot::MONITOR } else { &unix::boot::NO_MONITOR },
                archive_frames: booted.archive_frames,
                epoch: epoch(machine),
                counter: machine_pc::clock_parameters(),
            },
        );
        assert!(!has_word(&booted.info.command_line, b"panic"), "asked for on the command line");
        match started {
            // SAFETY: boot is over.
            Ok(thread) => unsafe { machine.enter_first(thread.tte(), booted.entered) },
            Err(failure) => {
                unix::boot::report_failure(machine, &failure);
                machine.power_off()
            }
        }
    }

    /// KVM's clock is the host's own; a clock chip tells seconds.
    fn epoch(machine: &dyn Machine) -> Epoch {
        if let Some(now) = machine_pc::kvm_date() {
            return Epoch::Exact(now.saturating_sub(machine.now().0));
        }
        match machine_pc::cmos_seconds() {
            0 => Epoch::Unknown,
            seconds => Epoch::Second((seconds * 1_000_000_000).saturating_sub(machine.now().0)),
        }
    }

    fn has_word(command_line: &[u8], word: &[u8]) -> bool {
        command_line.split(|byte| *byte == b' ').any(|candidate| candidate == word)
    }

    /// A pool of all memory that nobody uses; the machine takes its own frames from it from now on.
    fn frame_pool(machine: &'static machine_pc::PcMachine, free: Vec<Frames>) -> &'static FramePool {
        let pool: &'static FramePool = Box::leak(Box::new(FramePool::new(machine, free, RESERVE_FRAMES)));
        // SAFETY: the pool gives what it was given.
        let mut rest = unsafe { machine.use_frames_of(Box::leak(Box::new(PoolSource(pool)))) };
        while let Some(page) = pool.adopt(&mut rest) {
            drop(page);
        }
        pool
    }

    #[panic_handler]
    fn panic(info: &PanicInfo<'_>) -> ! {
        machine_pc::panic(info)
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
    eprintln!("error: this is the kernel image's placeholder\nhelp: build the image with bin/pc/build.sh");
    std::process::exit(1);
}
