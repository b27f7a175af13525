//! The command line of the virtual machine monitor.

use std::ffi::{OsStr, OsString};
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use bootimage::ports;

use super::accel::Accel;
use super::net::Network;
use super::sound::Sound;
use crate::pack::Manner;

/// The program that is started.
pub const PROGRAM: &str = "qemu-system-x86_64";

/// A virtual machine to be.
pub struct Machine {
    pub accel: Accel,
    pub icount: bool,
    pub memory_mib: u64,
    pub kernel: PathBuf,
    pub archive: Archive,
    pub wait_for_debugger: bool,
    /// Folders that are served, by number.
    pub shares: Vec<Folder>,
    pub network: Network,
    pub sound: Sound,
    /// The kernel's command line, before the words that QEMU adds.
    pub kernel_arguments: String,
}

/// A folder of the host, and how the machine sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Folder {
    pub host: PathBuf,
    pub manner: Manner,
}

/// How the machine gets the boot archive; both have an inheritable descriptor of this process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Archive {
    /// The monitor loads this file as the initrd, into memory below 3 GiB.
    Module(RawFd),
    /// This file is the machine's memory, and so many bytes of archive lie in it where the memory above 4 GiB begins.
    InMemory { memory: RawFd, bytes: u64 },
}

/// Where the memory of a machine with more than 3 GiB goes on, and at which byte of it (QEMU, hw/i386/microvm.c).
const HIGH_MEMORY: u64 = 4 << 30;
pub const HIGH_MEMORY_OFFSET: u64 = 3 << 30;

/// A port of the console device. The numbers are known to the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Port {
    /// Records, both ways: see `bootimage::control`.
    Control = ports::CONTROL as isize,
    /// The terminal, both ways.
    Tty = ports::TTY as isize,
    /// Standard input, host to guest.
    In = ports::IN as isize,
    /// Standard output, guest to host.
    Out = ports::OUT as isize,
    /// Standard error, guest to host.
    Err = ports::ERR as isize,
}

impl Port {
    pub const ALL: [Port; 5] = [Port::Control, Port::Tty, Port::In, Port::Out, Port::Err];

    fn name(self) -> &'static str {
        match self {
            Port::Control => "ctl",
            Port::Tty => "tty",
            Port::In => "in",
            Port::Out => "out",
            Port::Err => "err",
        }
    }
}

impl Machine {
    /// The arguments, given the connected sockets of the ports in use and of the debug console.
    pub fn arguments(&self, port_socket: impl Fn(Port) -> Option<RawFd>, debug_socket: RawFd) -> Vec<OsString> {
        let mut line: Vec<OsString> = Vec::new();
        let mut add = |words: &[&str]| line.extend(words.iter().map(OsString::from));
        // Without ACPI tables the monitor writes the devices on the kernel's command line instead. The interval timer
        // stays as a reference for kernels that must calibrate; all else that a PC has is left out.
        add(&["-M", self.sound.machine()]);
        // Without this QEMU offers the interface of before virtio 1.0.
        add(&["-global", "virtio-mmio.force-legacy=false"]);
        match self.accel {
            Accel::Kvm => add(&["-accel", "kvm", "-cpu", "host"]),
            Accel::Tcg => add(&["-accel", "tcg,thread=single", "-cpu", "max,-erms"]),
        }
        if self.icount {
            // The seed makes RDRAND the same in every run.
            add(&["-icount", "shift=0,sleep=off", "-rtc", "base=2000-01-01,clock=vm", "-seed", "1"]);
        }
        add(&["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]);
        add(&["-m", &format!("{}M", self.memory_mib)]);
        match self.archive {
            Archive::Module(fd) => {
                add(&["-initrd", &format!("/dev/fd/{fd}"), "-append", &self.kernel_arguments]);
            }
            Archive::InMemory { memory, bytes } => {
                let memory_mib = self.memory_mib;
                let object =
                    format!("memory-backend-file,id=memory,size={memory_mib}M,mem-path=/dev/fd/{memory},share=on");
                add(&["-object", &object, "-machine", "memory-backend=memory"]);
                add(&["-append", &format!("archive={HIGH_MEMORY},{bytes} {}", self.kernel_arguments)]);
            }
        }
        add(&["-device", &format!("isa-debug-exit,iobase={:#x},iosize=4", ports::DEBUG_EXIT_IO)]);
        add(&["-chardev", &format!("socket,id=debug,fd={debug_socket}")]);
        add(&["-device", &format!("isa-debugcon,iobase={:#x},chardev=debug", ports::DEBUG_CONSOLE_IO)]);
        add(&["-device", "virtio-serial-device,max_ports=8"]);
        for port in Port::ALL {
            let (name, number) = (port.name(), port as u32);
            match port_socket(port) {
                Some(fd) => add(&["-chardev", &format!("socket,id={name},fd={fd}")]),
                None => add(&["-chardev", &format!("null,id={name}")]),
            }
            add(&["-device", &format!("virtserialport,nr={number},name={name},chardev={name}")]);
        }
        for (number, folder) in self.shares.iter().enumerate() {
            // Without a mapping of owners, modes and kinds a file is on both sides what it is on the host, and an ordinary user can
            // serve it: an owner that cannot be set when a file is made is left. One server may reach several file systems.
            let access =
                if matches!(folder.manner, Manner::AsItIs | Manner::Out | Manner::Changes) { "off" } else { "on" };
            let end = folder.manner.label();
            let mut server: OsString =
                format!("local,id=share{number},security_model=none,multidevs=remap,readonly={access},path=").into();
            server.push(OsStr::from_bytes(&doubled_commas(folder.host.as_os_str().as_bytes())));
            line.extend(["-fsdev".into(), server]);
            line.extend(
                ["-device", &format!("virtio-9p-device,fsdev=share{number},mount_tag=share{number}{end}")]
                    .map(OsString::from),
            );
        }
        line.extend(self.network.arguments());
        line.extend(self.sound.arguments());
        if self.wait_for_debugger {
            line.extend(["-s", "-S"].map(OsString::from));
        }
        line.extend(["-kernel".into(), self.kernel.clone().into()]);
        line
    }
}

/// A comma ends a setting, two are one.
pub fn doubled_commas(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().flat_map(|&byte| std::iter::repeat_n(byte, if byte == b',' { 2 } else { 1 })).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::net::Wire;

    fn line(machine: &Machine) -> String {
        let sockets = |port| if port == Port::Tty { None } else { Some(20 + port as RawFd) };
        let words: Vec<String> =
            machine.arguments(sockets, 9).iter().map(|word| word.to_string_lossy().into_owned()).collect();
        words.join(" ")
    }

    fn machine() -> Machine {
        Machine {
            accel: Accel::Tcg,
            icount: false,
            memory_mib: 64,
            kernel: "/k".into(),
            archive: Archive::Module(7),
            wait_for_debugger: false,
            shares: Vec::new(),
            network: Network { wire: Wire::None, forwards: Vec::new(), capture: None },
            sound: Sound::None,
            kernel_arguments: String::new(),
        }
    }

    #[test]
    fn every_port_has_its_number_and_its_socket_or_none() {
        let line = line(&machine());
        assert!(line.contains("socket,id=ctl,fd=21 -device virtserialport,nr=1,name=ctl,chardev=ctl"), "{line}");
        assert!(line.contains("null,id=tty -device virtserialport,nr=2,name=tty,chardev=tty"), "{line}");
        assert!(line.contains("socket,id=err,fd=25 -device virtserialport,nr=5,name=err,chardev=err"), "{line}");
        assert!(line.contains("-m 64M -initrd /dev/fd/7"), "{line}");
        assert!(!line.contains("icount") && !line.contains("-S"), "{line}");
    }

    #[test]
    fn a_large_archive_lies_in_the_memory_itself() {
        let archive = Archive::InMemory { memory: 7, bytes: 5 };
        let line = line(&Machine { archive, memory_mib: 8192, ..machine() });
        assert!(line.contains("size=8192M,mem-path=/dev/fd/7,share=on -machine memory-backend=memory"), "{line}");
        assert!(line.contains("-append archive=4294967296,5 ") && !line.contains("-initrd"), "{line}");
    }

    #[test]
    fn folders_are_served_by_number() {
        let folder = |host: &str, manner| Folder { host: host.into(), manner };
        let line = line(&Machine {
            shares: vec![folder("/a,b", Manner::AsItIs), folder("/c", Manner::ReadOnly)],
            ..machine()
        });
        assert!(
            line.contains("readonly=off,path=/a,,b -device virtio-9p-device,fsdev=share0,mount_tag=share0 "),
            "{line}"
        );
        assert!(
            line.contains("readonly=on,path=/c -device virtio-9p-device,fsdev=share1,mount_tag=share1ro"),
            "{line}"
        );
    }

    #[test]
    fn options_change_the_machine() {
        let counted = line(&Machine { icount: true, wait_for_debugger: true, ..machine() });
        assert!(counted.contains("-icount shift=0,sleep=off") && counted.contains("-s -S"), "{counted}");
        let kvm = line(&Machine { accel: Accel::Kvm, ..machine() });
        assert!(kvm.contains("-accel kvm -cpu host") && !kvm.contains("tcg"), "{kvm}");
    }
}
