//! One call under way: who calls, and the caller's memory.

use alloc::sync::Arc;
use alloc::vec::Vec;

use abi::{Errno, Field};
use kernel::file::{Access, Credentials, Node, Time, View};
use kernel::stream::{Caller as _, Io, UserRange, Waits, copy_anew};
use machine::{Held, PAGE_BYTES, Registers, TryGrow, VirtAddr, try_filled, try_to_vec};

use crate::calls::parts;
use crate::emulator::Unix;
use crate::files::descriptors::{Descriptor, DescriptorTable};
use crate::files::open_file::OpenFile;
use crate::limits::{PATH_BYTES_MAX, TRANSFER_BYTES_MAX};
use crate::task::process::Process;
use crate::task::thread::Task;

/// What a call returns: a number for `rax`, or an error.
pub type CallResult = Result<u64, Errno>;

/// A call's function: it gets the six argument registers.
pub type Function = fn(&mut Call<'_>, [u64; 6]) -> CallResult;

/// A line of the table of calls.
pub type Entry = (u64, Function);

pub struct Call<'a> {
    /// What it may leave for another thread with.
    pub held: Held<'a>,
    pub unix: &'static Unix,
    pub task: &'a Arc<Task>,
    pub registers: &'a mut Registers,
    /// The call set all registers itself (exec, sigreturn): no result goes into rax.
    pub registers_replaced: bool,
}

impl Call<'_> {
    pub fn process(&self) -> &Arc<Process> {
        &self.task.process
    }

    /// The caller's descriptors.
    pub fn files(&self) -> Arc<DescriptorTable> {
        self.task.files()
    }

    pub fn now(&self) -> Time {
        self.unix.wall_time()
    }

    /// Runs `act` with the circumstances of a stream operation on a file with these flags.
    pub fn with_io<R>(&self, nonblocking: bool, act: impl FnOnce(&Io<'_>) -> R) -> R {
        let waits = Waits::new(self.held, nonblocking);
        act(&Io { waits, scheduler: self.unix.scheduler, caller: &**self.task })
    }

    /// The open file behind a descriptor. Error: `EBADF`, also for `O_PATH` descriptors.
    pub fn file(&self, descriptor: u64) -> Result<Arc<OpenFile>, Errno> {
        let file = self.task.file(Descriptor::from_register(descriptor));
        file.filter(|file| !file.is_path_only()).ok_or(Errno::EBADF)
    }

    /// As `file`, for a call that sleeps by code where it can.
    pub fn file_slept_at(&self, descriptor: u64) -> Result<Arc<OpenFile>, Errno> {
        let file = self.task.file_slept_at(Descriptor::from_register(descriptor));
        file.filter(|file| !file.is_path_only()).ok_or(Errno::EBADF)
    }

    /// As `file`, but `O_PATH` descriptors count.
    #[inline(never)]
    pub fn any_file(&self, descriptor: u64) -> Result<Arc<OpenFile>, Errno> {
        self.task.file(Descriptor::from_register(descriptor)).ok_or(Errno::EBADF)
    }

    /// A range of the caller's memory, cut to what one call moves.
    ///
    /// Error: `EFAULT` when it leaves the user's addresses. A count that only says "much" may do so: it depends on
    /// where the program's memory happens to lie, and Linux's lies lower.
    pub fn range(&self, address: u64, bytes: u64) -> Result<UserRange, Errno> {
        const MUCH_BYTES: u64 = 16 << 20;
        let limit = kernel::space::USER_LIMIT;
        if bytes > limit || address.checked_add(bytes.min(MUCH_BYTES)).is_none_or(|end| end > limit) {
            return Err(Errno::EFAULT);
        }
        Ok(UserRange { address: VirtAddr(address), bytes: (bytes as usize).min(TRANSFER_BYTES_MAX) })
    }

    /// Copies from the caller; sleeps where a page must come first, so nothing is borrowed meanwhile.
    ///
    /// Errors: `EFAULT`; `EINTR` when the thread is to end.
    #[inline]
    pub fn copy_in(&self, address: u64, into: &mut [u8]) -> Result<(), Errno> {
        match self.unix.machine.copy_in(VirtAddr(address), into) {
            Ok(()) => Ok(()),
            Err(_) => self.copy_in_anew(address, into),
        }
    }

    #[cold]
    #[inline(never)]
    fn copy_in_anew(&self, address: u64, into: &mut [u8]) -> Result<(), Errno> {
        copy_anew(|| self.task.await_page(self.held), || self.unix.machine.copy_in(VirtAddr(address), into))
    }

    /// Copies to the caller. As `copy_in`.
    #[inline]
    pub fn copy_out(&self, address: u64, from: &[u8]) -> Result<(), Errno> {
        match self.unix.machine.copy_out(VirtAddr(address), from) {
            Ok(()) => Ok(()),
            Err(_) => self.copy_out_anew(address, from),
        }
    }

    #[cold]
    #[inline(never)]
    fn copy_out_anew(&self, address: u64, from: &[u8]) -> Result<(), Errno> {
        copy_anew(|| self.task.await_page(self.held), || self.unix.machine.copy_out(VirtAddr(address), from))
    }

    /// Reads a record from the caller.
    pub fn read<T: Field>(&self, address: u64) -> Result<T, Errno> {
        with_buffer::<T, _>(|bytes| {
            self.copy_in(address, bytes)?;
            Ok(T::get(bytes))
        })
    }

    /// Writes a record to the caller.
    pub fn write<T: Field>(&self, address: u64, value: &T) -> Result<(), Errno> {
        with_buffer::<T, _>(|bytes| {
            value.put(bytes);
            self.copy_out(address, bytes)
        })
    }

    /// Writes a record unless the address is null.
    pub fn write_if<T: Field>(&self, address: u64, value: &T) -> Result<(), Errno> {
        if address == 0 { Ok(()) } else { self.write(address, value) }
    }

    pub fn read_bytes(&self, address: u64, bytes: usize) -> Result<Vec<u8>, Errno> {
        let mut data = self.buffer(bytes)?;
        self.copy_in(address, &mut data)?;
        Ok(data)
    }

    /// A NUL-terminated string of at most `most` bytes, NUL not counted.
    ///
    /// Errors: `EFAULT`; `ENOMEM`; `too_long` when there is no NUL within `most + 1` bytes.
    pub fn read_string(&self, address: u64, most: usize, too_long: Errno) -> Result<Vec<u8>, Errno> {
        let mut text = Vec::new();
        loop {
            let at = address.checked_add(text.len() as u64).ok_or(Errno::EFAULT)?;
            // Pieces end at page boundaries: a string may end just before memory that is not there.
            let to_page_end = PAGE_BYTES - (at as usize & (PAGE_BYTES - 1));
            let mut piece = [0; 64];
            let piece = &mut piece[..to_page_end.min(64)];
            self.copy_in(at, piece)?;
            if let Some(end) = piece.iter().position(|byte| *byte == 0) {
                if text.is_empty() && end <= most {
                    return Ok(try_to_vec(&piece[..end])?);
                }
                text.room_for_exact(end)?;
                piece[..end].iter().for_each(|byte| text.put(*byte));
                return if text.len() > most { Err(too_long) } else { Ok(text) };
            }
            let before = text.len() / parts::STRING_BYTES;
            text.try_extend_from_slice(piece)?;
            if text.len() > most {
                return Err(too_long);
            }
            if text.len() / parts::STRING_BYTES > before {
                self.unix.scheduler.breathe(self.held);
            }
        }
    }

    /// A path. Errors: `EFAULT`, `ENAMETOOLONG`.
    pub fn read_path(&self, address: u64) -> Result<Vec<u8>, Errno> {
        self.read_string(address, PATH_BYTES_MAX - 1, Errno::ENAMETOOLONG)
    }

    /// A null-terminated vector of strings (`argv`). Errors: `EFAULT`, `E2BIG`, `ENOMEM`.
    pub fn read_strings(&self, address: u64, budget_bytes: usize) -> Result<Vec<Vec<u8>>, Errno> {
        let mut strings = Vec::new();
        let read = if address == 0 { Ok(()) } else { self.fill_strings(&mut strings, address, budget_bytes) };
        match read {
            Ok(()) => Ok(strings),
            Err(error) => {
                parts::forget_strings(self.held, self.unix.scheduler, strings);
                Err(error)
            }
        }
    }

    fn fill_strings(&self, strings: &mut Vec<Vec<u8>>, address: u64, budget_bytes: usize) -> Result<(), Errno> {
        let mut left = budget_bytes;
        loop {
            let pointer: u64 = self.read(address.wrapping_add(strings.len() as u64 * 8))?;
            if pointer == 0 {
                return Ok(());
            }
            let text = self.read_string(pointer, (left.saturating_sub(1)).min(131_071), Errno::E2BIG)?;
            left = left.checked_sub(text.len() + 9).ok_or(Errno::E2BIG)?;
            strings.try_push(text)?;
            if strings.len().is_multiple_of(parts::STRINGS) {
                self.unix.scheduler.breathe(self.held);
            }
        }
    }

    /// Runs `act` with the caller's view of the names, relative paths starting at `descriptor`
    /// (`AT_FDCWD`: the working directory).
    ///
    /// Errors: `EBADF`, `ENOTDIR` for a descriptor that a relative path cannot start at.
    pub fn with_view<R>(
        &self,
        descriptor: u64,
        path: &[u8],
        act: impl FnOnce(View<'_>) -> Result<R, Errno>,
    ) -> Result<R, Errno> {
        let place = self.process().place.borrow().borrow().clone();
        let directory = self.start_of(descriptor, path, &place.directory)?;
        let credentials: Credentials = self.process().credentials.borrow().clone();
        act(View::new(&place.root, &directory, &credentials))
    }

    fn start_of(&self, descriptor: u64, path: &[u8], working: &Arc<Node>) -> Result<Arc<Node>, Errno> {
        if path.is_empty() {
            return Err(Errno::ENOENT);
        }
        if path.first() == Some(&b'/') || descriptor as i32 == abi::file::AT_FDCWD {
            return Ok(working.clone());
        }
        let node = self.any_file(descriptor)?.node().cloned().ok_or(Errno::ENOTDIR)?;
        if node.is_directory() { Ok(node) } else { Err(Errno::ENOTDIR) }
    }

    /// Whether the caller has this capability in force.
    pub fn can(&self, capability: u32) -> bool {
        self.process().can(capability)
    }

    /// Error: `EPERM` for a caller without this capability.
    pub fn require(&self, capability: u32) -> Result<(), Errno> {
        if self.can(capability) { Ok(()) } else { Err(Errno::EPERM) }
    }

    /// Whether the caller may do this to the node.
    pub fn permit(&self, node: &Node, access: Access) -> Result<(), Errno> {
        self.process().credentials.borrow().permit(node, access)
    }

    /// A zeroed buffer of the kernel's own. Error: `ENOMEM`.
    pub fn buffer(&self, bytes: usize) -> Result<Vec<u8>, Errno> {
        Ok(try_filled(0, bytes)?)
    }
}

/// Zeroed bytes for one record. Most records are small, and a large buffer costs more than the rest of a call.
#[inline]
fn with_buffer<T: Field, R>(act: impl FnOnce(&mut [u8]) -> R) -> R {
    match T::BYTES {
        0..=16 => act(&mut [0; 16][..T::BYTES]),
        17..=64 => act(&mut [0; 64][..T::BYTES]),
        65..=160 => act(&mut [0; 160][..T::BYTES]),
        _ => act(&mut [0; 512][..T::BYTES]),
    }
}

/// A register that holds a C `int`.
pub fn int(register: u64) -> i32 {
    register as i32
}
