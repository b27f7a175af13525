//! The emulator: one value that knows everything, and what the machine calls.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use abi::nr;
use codestore::CodeStore;
use kernel::file::{Namespace, Time};
use kernel::schedule::Scheduler;
use kernel::space::{Access, FramePool, Page};
use kernel::thread::Thread;
use machine::{Channel, Exception, KernelCell, Machine, Nanos, Registers, Upcalls};

use crate::call::Call;
use crate::calls;
use crate::files::Channels;
use crate::strace::Summary;
use crate::task::{Process, Task, TaskTable};

/// What the user asked for on the command line.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// No synthesized call routine is bound (R6).
    pub generic: bool,
    pub strace: bool,
    pub verbose: bool,
}

pub struct Unix {
    pub machine: &'static dyn Machine,
    pub store: &'static CodeStore,
    pub scheduler: &'static Scheduler,
    pub pool: &'static FramePool,
    pub names: Namespace,
    pub tasks: TaskTable,
    pub channels: &'static Channels,
    pub options: Options,
    /// Wall clock minus time since boot.
    pub epoch: KernelCell<Nanos>,
    pub host_name: KernelCell<Vec<u8>>,
    pub first: KernelCell<Option<Arc<Process>>>,
    /// Threads that have ended and wait for another thread to drop their TTE.
    pub(crate) morgue: KernelCell<Vec<Arc<Thread>>>,
    pub(crate) summary: KernelCell<Summary>,
    /// Processor counter at the kernel's first instruction, and whether the first program has started.
    pub(crate) boot_report: KernelCell<Option<Nanos>>,
    /// The time page and the vDSO's image, shared by all programs.
    pub(crate) vdso_pages: KernelCell<Option<[Page; 2]>>,
}

impl Unix {
    pub fn wall_time(&self) -> Time {
        let now = self.machine.now().saturating_add(self.epoch.get());
        Time { seconds: (now.0 / Nanos::PER_SECOND) as i64, nanos: (now.0 % Nanos::PER_SECOND) as u32 }
    }

    /// The task that runs now. Only programs' threads come here.
    pub fn current(&self) -> Arc<Task> {
        self.tasks.of_thread(self.machine.current_tte()).expect("a program's thread has a task")
    }

    /// Sends a record to the host tool; waits for room, because records may not be torn.
    pub fn tell(&self, kind: u8, payload: &[u8]) {
        let mut record = Vec::with_capacity(payload.len() + 8);
        record.extend_from_slice(&bootimage::control::header(kind, payload.len() as u32));
        record.extend_from_slice(payload);
        let mut sent = 0;
        while sent < record.len() {
            let part = self.machine.send(Channel::Control, &record[sent..]);
            sent += part;
            if part == 0 {
                self.scheduler.sleep(&[self.channels.output()], None);
            }
        }
    }

    /// A kernel message, shown with `--verbose`.
    pub fn log(&self, line: fmt::Arguments<'_>) {
        if self.options.verbose {
            let mut text = String::new();
            let _ = fmt::write(&mut text, line);
            text.push('\n');
            self.tell(bootimage::control::kind::LOG, text.as_bytes());
        }
    }

    /// Drops the TTEs of threads that have ended. Called by other threads.
    pub(crate) fn bury(&self) {
        if self.morgue.borrow().is_empty() {
            return;
        }
        let dead = core::mem::take(&mut *self.morgue.borrow_mut());
        for thread in dead {
            self.scheduler.discharge(thread.id());
        }
    }

    /// Ends the machine with the first process's status, after everything it wrote has gone out.
    pub(crate) fn finish(&self, status: i32, signal: u32) -> ! {
        if self.options.strace {
            let table = self.summary.borrow().table();
            self.tell(bootimage::control::kind::STRACE, table.as_bytes());
        }
        let stats = alloc::format!(
            "boot_ns={}\nswitches={}\nfree_frames={}\ncode_bytes={}\n",
            self.boot_report.get().map_or(0, |at| at.0),
            self.scheduler.switch_count(),
            self.pool.free_frames(),
            self.store.live_bytes()
        );
        self.tell(bootimage::control::kind::STATS, stats.as_bytes());
        for channel in [Channel::StandardOutput, Channel::StandardError, Channel::Terminal] {
            self.drain(channel);
        }
        self.tell_raw(&bootimage::control::exit_record(status, signal));
        self.drain(Channel::Control);
        self.machine.power_off()
    }

    fn tell_raw(&self, record: &[u8]) {
        while self.machine.sendable(Channel::Control) < record.len() {
            self.scheduler.sleep(&[self.channels.output()], None);
        }
        self.machine.send(Channel::Control, record);
    }

    fn drain(&self, channel: Channel) {
        while !self.machine.is_drained(channel) {
            self.scheduler.sleep(&[self.channels.output()], None);
        }
    }
}

impl Upcalls for Unix {
    fn system_call(&self, registers: &mut Registers) {
        let unix = the(self);
        unix.bury();
        let task = unix.current();
        let number = registers.cause as u32 as u64;
        let mut call = Call { unix, task: &task, registers, registers_replaced: false };
        calls::serve(&mut call, number);
    }

    fn exception(&self, registers: &mut Registers, exception: Exception) {
        let unix = the(self);
        calls::fault(unix, &unix.current(), registers, exception);
    }

    fn page_fault(&self, access: machine::Access) -> bool {
        let Some(task) = self.tasks.of_thread(self.machine.current_tte()) else { return false };
        let Some(space) = task.process.space() else { return false };
        let kind = match (access.execute, access.write) {
            (true, _) => Access::Execute,
            (_, true) => Access::Write,
            _ => Access::Read,
        };
        space.borrow_mut().fault(access.address.0, kind).is_ok()
    }

    fn timer(&self) {
        self.scheduler.timer();
    }

    fn device(&self) {
        self.channels.wake(self.scheduler);
    }

    fn before_user(&self, registers: &mut Registers) {
        let unix = the(self);
        let task = unix.current();
        calls::before_user(unix, &task, registers);
    }
}

/// The emulator lives as long as the machine; upcalls get it back with that lifetime.
fn the(unix: &Unix) -> &'static Unix {
    THE.get().filter(|the| core::ptr::eq(*the, unix)).expect("one emulator, started by boot")
}

static THE: KernelCell<Option<&'static Unix>> = KernelCell::new(None);

/// Makes the emulator known to its own upcalls and to the machine.
pub(crate) fn install(unix: &'static Unix) {
    THE.set(Some(unix));
    unix.machine.set_upcalls(unix);
}

/// Whether a call number is one that the strace summary should count as implemented.
pub(crate) fn is_known(number: u64) -> bool {
    nr::name(number).is_some()
}
