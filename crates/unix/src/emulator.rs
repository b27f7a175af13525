//! The emulator: one value that knows everything, and what the machine calls.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use codestore::CodeStore;
use kernel::call::Makers;
use kernel::call::watch::WatchWords;
use kernel::file::{Namespace, Time};
use kernel::net::Network;
use kernel::playback::Playback;
use kernel::schedule::{Scheduler, WaitQueue};
use kernel::sound::Sound;
use kernel::space::{FramePool, Page};
use kernel::thread::Thread;
use machine::{CALLS_MAX, Channel, Held, KernelCell, KernelValue, Machine, Nanos, TteId};
use quaject::{Class, Quaject};
use strace::Summary;

use crate::calls::futexes::FutexTable;
use crate::calls::memory::exhaustion::Want;
use crate::calls::sockets::flight::Flight;
use crate::calls::sockets::names::SocketNames;
use crate::calls::system::SystemNames;
use crate::families::Families;
use crate::files::channel::Channels;
use crate::files::lock_waits::LockWaits;
use crate::files::random::Random;
use crate::files::terminal::registry::Terminals;
use crate::inspect::monitor::{Desk, MonitorHooks};
use crate::inspect::port::ControlPort;
use crate::inspect::trace::Tracing;
use crate::task::process::Process;
use crate::task::table::TaskTable;
use crate::task::thread::Task;

/// What the user asked for on the command line.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// No synthesized call routine is bound (R6).
    pub generic: bool,
    pub strace: bool,
    pub verbose: bool,
    /// The run is traced from its start.
    pub trace: bool,
}

impl Options {
    /// Whether synthesized routines may be bound as calls. With `--strace` all calls come the slow way,
    /// where they are shown.
    pub fn binds_code(&self) -> bool {
        !self.generic && !self.strace
    }
}

/// Shows classes, one after the other.
pub type EachClass = fn(&mut dyn FnMut(&'static Class));

pub struct Unix {
    pub machine: &'static dyn Machine,
    pub store: &'static CodeStore,
    pub(crate) machine_classes: EachClass,
    pub scheduler: &'static Scheduler,
    pub pool: &'static FramePool,
    pub names: Namespace,
    pub tasks: TaskTable,
    pub channels: &'static Channels,
    pub terminals: Terminals,
    /// The port to the host tool.
    pub(crate) control: ControlPort,
    pub(crate) tracing: Tracing,
    pub(crate) desk: Desk,
    pub(crate) monitor: &'static MonitorHooks,
    /// Calls done in Rust, by number: gauges (S-31).
    pub(crate) call_counts: [KernelValue<u64>; CALLS_MAX],
    pub lock_waits: LockWaits,
    /// The Sound-IO device server, on machines with a sample clock.
    pub sound: Option<Sound>,
    /// What programs write to the sound device, on machines that have one.
    pub playback: Playback,
    pub options: Options,
    pub shm: crate::calls::shm::Segments,
    pub(crate) families: Families,
    /// Wall clock minus time since boot.
    pub epoch: KernelCell<Nanos>,
    pub system_names: SystemNames,
    pub random: Random,
    /// How often the time of day has been set, and who waits for that.
    pub(crate) clock_sets: KernelValue<u64>,
    pub(crate) clock_set: WaitQueue,
    pub(crate) futexes: FutexTable,
    pub(crate) socket_names: SocketNames,
    pub(crate) flight: Flight,
    pub(crate) network: &'static Network,
    pub first: KernelCell<Option<Arc<Process>>>,
    /// Threads that have ended and wait for another thread to drop their TTE.
    pub(crate) morgue: KernelCell<Vec<Arc<Thread>>>,
    /// The morgue is not empty.
    pub(crate) has_dead: KernelValue<bool>,
    /// Who was killed for want of memory.
    pub(crate) want: Want,
    pub(crate) summary: KernelCell<Summary>,
    /// Processor counter at the kernel's first instruction, and whether the first program has started.
    pub(crate) boot_report: KernelCell<Option<Nanos>>,
    /// The time page and the vDSO's image, shared by all programs.
    pub(crate) vdso_pages: KernelCell<Option<[Page; 2]>>,
}

impl Unix {
    /// Who makes call routines; nobody when every call shall be done in Rust (`--generic`, `--strace`).
    pub fn makers(&self) -> Option<Makers> {
        self.options.binds_code().then_some(Makers::new(self.machine, self.store))
    }

    /// The classes of all quajects that there can be.
    pub fn each_class(&self, mut see: impl FnMut(&'static Class)) {
        (self.machine_classes)(&mut see);
        kernel::classes().for_each(&mut see);
        if cfg!(feature = "watch") {
            see(WatchWords::class());
        }
    }

    pub fn wall_time(&self) -> Time {
        self.wall_time_at(self.machine.now())
    }

    pub(crate) fn wall_time_at(&self, at: Nanos) -> Time {
        let now = at.saturating_add(self.epoch.get());
        Time { seconds: (now.0 / Nanos::PER_SECOND) as i64, nanos: (now.0 % Nanos::PER_SECOND) as u32 }
    }

    /// The task that runs now. Only programs' threads come here.
    pub fn current(&self) -> Arc<Task> {
        self.running(self.machine.current_tte())
    }

    #[inline(always)]
    pub(crate) fn running(&self, thread: TteId) -> Arc<Task> {
        self.tasks.of_thread(thread).expect("a program's thread has a task")
    }

    /// Sends a record to the host tool; waits for room, because records may not be torn.
    pub fn tell(&self, held: Held<'_>, kind: u8, payload: &[u8]) {
        self.control.tell(held, self, kind, payload);
    }

    /// A kernel message, shown with `--verbose`.
    pub fn log(&self, held: Held<'_>, line: fmt::Arguments<'_>) {
        if self.options.verbose {
            let line = machine::try_text(format_args!("{line}\n")).unwrap_or_default();
            self.tell(held, bootimage::control::kind::LOG, line.as_bytes());
        }
    }

    /// The running thread ends: its TTE is to be dropped by another thread.
    #[expect(clippy::disallowed_methods, reason = "who leaves the kernel next buries the dead")]
    pub(crate) fn mourn(&self) {
        self.morgue.borrow_mut().push(self.scheduler.current());
        self.has_dead.set(true);
    }

    /// Drops the TTEs of threads that have ended. Called by other threads.
    #[cold]
    pub(crate) fn bury(&self) {
        self.has_dead.set(false);
        let dead = core::mem::take(&mut *self.morgue.borrow_mut());
        for thread in dead {
            self.scheduler.discharge(thread.id());
        }
    }

    /// Ends the machine with the first process's status, after everything it wrote has gone out.
    #[expect(clippy::disallowed_macros, reason = "four numbers")]
    pub(crate) fn finish(&'static self, held: Held<'_>, status: i32, signal: u32) -> ! {
        self.bury();
        if self.options.trace {
            self.tracing.tell_run(held, self);
        }
        if self.options.strace {
            let table = self.summary.borrow().table();
            self.tell(held, bootimage::control::kind::STRACE, table.as_bytes());
        }
        let stats = alloc::format!(
            "boot_ns={}\nswitches={}\nfree_frames={}\ncode_bytes={}\n",
            self.boot_report.get().map_or(0, |at| at.0),
            self.scheduler.switch_count(),
            self.pool.free_frames(),
            self.store.live_bytes()
        );
        self.tell(held, bootimage::control::kind::STATS, stats.as_bytes());
        self.drain_console(held);
        for channel in [Channel::StandardOutput, Channel::StandardError, Channel::Terminal] {
            self.drain(held, channel);
        }
        kernel::file::share::stop_sleeping();
        self.names.send_out(self.wall_time());
        self.names.send_changes(self.wall_time());
        let exit = bootimage::control::exit_record(status, signal);
        self.tell(held, bootimage::control::kind::EXIT, &exit[bootimage::control::HEADER_BYTES..]);
        kernel::file::share::finish_all(self.machine);
        self.drain(held, Channel::Control);
        self.machine.power_off()
    }

    fn drain_console(&self, held: Held<'_>) {
        if let Some(console) = self.terminals.console() {
            while !console.is_drained() {
                self.scheduler.sleep(held, &[console.writers()], None);
            }
        }
    }

    fn drain(&self, held: Held<'_>, channel: Channel) {
        while !self.machine.is_drained(channel) {
            self.scheduler.sleep(held, &[self.channels.output()], None);
        }
    }
}
