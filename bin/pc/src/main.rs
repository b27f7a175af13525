//! The pc kernel image: choose the machine, start the kernel.
#![cfg_attr(feature = "image", no_std, no_main)]

#[cfg(feature = "image")]
mod image {
    use core::panic::PanicInfo;

    #[global_allocator]
    static HEAP: machine_pc::Heap = machine_pc::Heap::new();

    #[unsafe(no_mangle)]
    extern "C" fn boot_rust(start_info: u64, entry_tsc: u64) -> ! {
        // SAFETY: the boot code calls this once, with the loader's pointer.
        let booted = unsafe { machine_pc::boot(start_info, entry_tsc) };
        machine_pc::say_early(format_args!(
            "synthesis: ram {:x?} unused {:x?} archive {:x?}",
            booted.info.ram,
            booted.machine.unused_ram(),
            booted.info.archive
        ));
        panic!("the end");
    }

    #[panic_handler]
    fn panic(info: &PanicInfo<'_>) -> ! {
        machine_pc::panic(info)
    }

    #[unsafe(no_mangle)]
    extern "C" fn rust_eh_personality() {}
}

#[cfg(not(feature = "image"))]
fn main() {
    eprintln!("error: this is the kernel image's placeholder\nhelp: build the image with bin/pc/build.sh");
    std::process::exit(1);
}
