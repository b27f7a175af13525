//! The pc kernel image: choose the machine, start the kernel.
#![cfg_attr(feature = "image", no_std, no_main)]

#[cfg(feature = "image")]
mod image {
    extern crate alloc;

    use alloc::boxed::Box;
    use alloc::vec::Vec;
    use core::panic::PanicInfo;

    use kernel::space::{FramePool, PoolSource};
    use machine::{FrameNumber, Machine, PAGE_BYTES};
    use unix::boot::{Epoch, Ingredients, RESERVE_FRAMES};

    #[global_allocator]
    static HEAP: machine_pc::Heap = machine_pc::Heap::new();

    #[unsafe(no_mangle)]
    extern "C" fn boot_rust(start_info: u64, entry_tsc: u64) -> ! {
        // SAFETY: the boot code calls this once, with the loader's pointer.
        let booted = unsafe { machine_pc::boot(start_info, entry_tsc) };
        let machine = booted.machine;
        let pool = frame_pool(&booted);
        let archive = machine.archive(&booted.info);
        let started = unix::boot::start(Ingredients {
            machine,
            store: machine.code_store(),
            classes: machine_pc::each_class,
            pool,
            archive,
            join: unix::boot::only_memory,
            monitor: if cfg!(feature = "monitor") { &unix::boot::MONITOR } else { &unix::boot::NO_MONITOR },
            archive_frame: frame_of(booted.info.archive.as_ref().map_or(0, |range| range.start)),
            epoch: epoch(machine),
            counter: machine_pc::clock_parameters(),
        });
        assert!(!has_word(&booted.info.command_line, b"panic"), "asked for on the command line");
        match started {
            // SAFETY: boot is over.
            Ok(thread) => unsafe { machine.enter_first(thread.tte()) },
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

    fn frame_of(physical: u64) -> FrameNumber {
        FrameNumber((physical / PAGE_BYTES as u64) as u32)
    }

    /// All RAM that boot has not used and that does not hold the archive.
    fn frame_pool(booted: &machine_pc::Booted) -> &'static FramePool {
        let used_to = booted.machine.boot_memory_end();
        let archive = booted.info.archive.clone().unwrap_or(0..0);
        let mut ranges = Vec::new();
        let mut add = |from: u64, to: u64| {
            if from < to {
                ranges.push(frame_of(from).0..frame_of(to).0);
            }
        };
        for range in &booted.info.ram {
            // The first megabyte holds the loader's records; the image's range is used up to `used_to`.
            let from = if range.contains(&(used_to - 1)) { used_to } else { range.start.max(1 << 20) };
            add(from, range.end.min(archive.start.max(from)));
            add(from.max(archive.end.next_multiple_of(PAGE_BYTES as u64)), range.end);
        }
        // The counts must reach every frame that may be adopted or given back later.
        let all = booted.info.ram.iter().map(|range| frame_of(range.end).0).max().unwrap_or(0);

        ranges.push(0..0);
        ranges.push(all..all);
        let pool = Box::leak(Box::new(FramePool::new(booted.machine, &ranges, RESERVE_FRAMES)));
        let rest = booted.machine.use_frames_of(Box::leak(Box::new(PoolSource(pool))));
        for frame in frame_of(rest.start).0..frame_of(rest.end).0 {
            drop(pool.adopt(FrameNumber(frame)));
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
