//! The channels between guest and host. All but the last two are ports of one virtio console device (virtio 1.2,
//! 5.3, with `VIRTIO_CONSOLE_F_MULTIPORT`); port `n` uses the queue pair `2 + 2n` (receive) and `3 + 2n` (transmit),
//! since pairs 0 and 1 belong to port 0 and to the device's own control messages.

/// Records, both ways: see [`control`](crate::control).
pub const CONTROL: u32 = 1;
/// The terminal, both ways, for every descriptor of kind [`FdKind::Tty`](crate::FdKind::Tty).
pub const TTY: u32 = 2;
/// Standard input, host to guest. The host closes the port after the last byte: that is the end of file.
pub const IN: u32 = 3;
/// Standard output, guest to host.
pub const OUT: u32 = 4;
/// Standard error, guest to host.
pub const ERR: u32 = 5;

/// I/O port of the debug console: each byte written is kept by the tool and shown if the kernel dies wordless.
pub const DEBUG_CONSOLE_IO: u16 = 0xe9;
/// I/O port that ends the machine: a 32-bit write of any value. Bytes the device has not yet handed on are lost, so
/// the kernel waits until the host has used every transmit buffer.
pub const DEBUG_EXIT_IO: u16 = 0xf4;
