//! The emulator: one value that knows everything, and what the machine calls.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use codestore::CodeStore;
use kernel::call::Makers;
use kernel::call::watch::WatchWords;
use kernel::file::{CounterClock, Namespace, Time};
use kernel::schedule::{Scheduler, WaitQueue};
use kernel::sound::Sound;
use kernel::space::{Access, FaultKind, FramePool, Page};
use kernel::thread::Thread;
use kernel::trace::kind;
use machine::stretch::Cause;
use machine::{
    CALLS_MAX, Channel, Exception, KernelCell, KernelValue, Machine, Nanos, Registers, TteId, Upcalls, VirtAddr,
    failing, stages, stretch,
};
use quaject::{Class, Quaject};
use strace::Summary;

use crate::call::Call;
use crate::calls::{self, Departed, Flight, FutexTable, LockWaits, Onward, SocketNames, SystemNames, Want};
use crate::families::Families;
use crate::files::{Channels, Random, Terminals};
use crate::inspect::{ControlPort, Desk, MonitorHooks, Tracing};
use crate::task::{Process, Task, TaskTable};

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
    pub options: Options,
    pub shm: calls::Segments,
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
    /// For those who know the emulator by a trait. Made once for each of them and kept for good.
    pub(crate) fn entrance(&'static self) -> &'static Entrance {
        Box::leak(Box::new(Entrance(self)))
    }

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

    fn wall_time_at(&self, at: Nanos) -> Time {
        let now = at.saturating_add(self.epoch.get());
        Time { seconds: (now.0 / Nanos::PER_SECOND) as i64, nanos: (now.0 % Nanos::PER_SECOND) as u32 }
    }

    /// The task that runs now. Only programs' threads come here.
    pub fn current(&self) -> Arc<Task> {
        self.running(self.machine.current_tte())
    }

    #[inline(always)]
    fn running(&self, thread: TteId) -> Arc<Task> {
        self.tasks.of_thread(thread).expect("a program's thread has a task")
    }

    /// A call that a tracer may have seen has been served; until the thread is back in its program, it is in it.
    #[cold]
    fn after_watched_call(&'static self, number: u64, registers: &mut Registers) -> Onward {
        if self.scheduler.trace().is_on() {
            self.note_return(number, registers.rax);
        }
        let task = self.current();
        if calls::needs_attention(&task, registers)
            && let Onward::End(departed) = calls::before_user(self, task, registers)
        {
            return Onward::End(departed);
        }
        self.current().watch.in_call.set(false);
        Onward::Program
    }

    /// Sends a record to the host tool; waits for room, because records may not be torn.
    pub fn tell(&self, kind: u8, payload: &[u8]) {
        self.control.tell(self, kind, payload);
    }

    /// A kernel message, shown with `--verbose`.
    pub fn log(&self, line: fmt::Arguments<'_>) {
        if self.options.verbose {
            let line = machine::try_text(format_args!("{line}\n")).unwrap_or_default();
            self.tell(bootimage::control::kind::LOG, line.as_bytes());
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
    pub(crate) fn finish(&'static self, status: i32, signal: u32) -> ! {
        self.bury();
        if self.options.trace {
            self.tracing.tell_run(self);
        }
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
        self.drain_console();
        for channel in [Channel::StandardOutput, Channel::StandardError, Channel::Terminal] {
            self.drain(channel);
        }
        let exit = bootimage::control::exit_record(status, signal);
        self.tell(bootimage::control::kind::EXIT, &exit[bootimage::control::HEADER_BYTES..]);
        self.drain(Channel::Control);
        self.machine.power_off()
    }

    /// A call that was done in Rust, at its end.
    #[cold]
    fn note_return(&self, number: u64, result: u64) {
        let (trace, thread) = (self.scheduler.trace(), self.machine.current_tte());
        if number >= CALLS_MAX as u64 {
            trace.note(kind::UNKNOWN_CALL, thread, number as u32, 0, 0);
        }
        trace.note(kind::RETURN, thread, number as u32, result, 0);
    }

    fn drain_console(&self) {
        if let Some(console) = self.terminals.console() {
            while !console.is_drained() {
                self.scheduler.sleep(&[console.writers()], None);
            }
        }
    }

    fn drain(&self, channel: Channel) {
        while !self.machine.is_drained(channel) {
            self.scheduler.sleep(&[self.channels.output()], None);
        }
    }
}

impl CounterClock for Entrance {
    fn time_of_counter(&self, counter: u64) -> Time {
        self.0.wall_time_at(self.0.machine.time_of_counter(counter))
    }
}

/// How machine and files come in: a reference, because a table of functions for the emulator itself would bring code along that
/// takes it apart.
pub(crate) struct Entrance(&'static Unix);

impl Upcalls for Entrance {
    fn system_call(&'static self, thread: TteId, registers: &mut Registers) -> bool {
        stages::begin(u64::from(registers.cause as u32));
        let stretch = stretch::enter(Cause::Call(u64::from(registers.cause as u32)));
        let served = self.0.system_call(thread, registers);
        drop(stretch);
        stages::end();
        match served {
            Served::Plain => true,
            Served::Whole => false,
            Served::End(departed) => departed.end(self.0),
        }
    }

    fn exception(&'static self, thread: TteId, registers: &mut Registers, exception: Exception) {
        let _stretch = stretch::enter(Cause::Exception);
        self.0.exception(thread, registers, exception)
    }

    fn page_fault(&'static self, thread: TteId, access: machine::Access) -> bool {
        let _stretch = stretch::enter(Cause::PageFault);
        self.0.page_fault(thread, access)
    }

    fn rewrite_text(&'static self, thread: TteId, address: VirtAddr, bytes: &[u8]) -> bool {
        self.0.rewrite_text(thread, address, bytes)
    }

    fn timer(&'static self) {
        let _stretch = stretch::enter(Cause::Timer);
        self.0.timer()
    }

    fn device(&'static self) {
        let _stretch = stretch::enter(Cause::Device);
        self.0.device()
    }

    fn chained(&'static self) {
        let _stretch = stretch::enter(Cause::Chained);
        self.0.chained()
    }

    fn sample(&'static self) {
        self.0.sample()
    }

    fn before_user(&'static self, thread: TteId, registers: &mut Registers) {
        let stretch = stretch::enter(Cause::BeforeUser);
        let onward = self.0.before_user(thread, registers);
        drop(stretch);
        if let Onward::End(departed) = onward {
            departed.end(self.0)
        }
    }
}

/// How a call has ended.
enum Served {
    /// No register but the result's has changed.
    Plain,
    /// Any may have.
    Whole,
    /// With its thread.
    End(Departed),
}

impl From<Onward> for Served {
    #[inline(always)]
    fn from(onward: Onward) -> Served {
        match onward {
            Onward::Program => Served::Whole,
            Onward::End(departed) => Served::End(departed),
        }
    }
}

/// What the machine asks: see [`Upcalls`].
impl Unix {
    #[inline(always)]
    fn system_call(&'static self, thread: TteId, registers: &mut Registers) -> Served {
        failing::safe_point();
        let task = self.running(thread);
        task.count_call();
        let number = u64::from(registers.cause as u32);
        let mut call = Call { unix: self, task: &task, registers, registers_replaced: false };
        if self.options.strace || task.watch.is_traced() {
            calls::serve_watched(&mut call, number);
            return self.after_watched_call(number, registers).into();
        }
        calls::serve(&mut call, number);
        let is_plain = !call.registers_replaced;
        if self.has_dead.get() {
            self.bury();
        }
        if self.scheduler.trace().is_on() {
            self.note_return(number, registers.rax);
        }
        if is_plain && !task.has_attention() {
            return Served::Plain;
        }
        // A program that was executed may have made the thread another task.
        let task = if is_plain { task } else { self.running(thread) };
        if calls::needs_attention(&task, registers) {
            return calls::before_user(self, task, registers).into();
        }
        Served::Whole
    }

    #[inline(always)]
    fn exception(&'static self, thread: TteId, registers: &mut Registers, exception: Exception) {
        failing::safe_point();
        let task = self.running(thread);
        task.watch.in_call.set(false);
        if task.last_fault.get() == Some(FaultKind::Coming) && calls::await_fault(&task) {
            return;
        }
        if calls::take_starvation(&task) {
            // The program tries the same instruction again.
            calls::make_room(self, &task);
            return;
        }
        if (self.monitor.exception)(self, &task, registers, &exception) {
            return;
        }
        calls::fault(self, &task, registers, exception);
    }

    #[inline(always)]
    fn page_fault(&'static self, thread: TteId, access: machine::Access) -> bool {
        let Some(task) = self.tasks.of_thread(thread) else { return false };
        failing::safe_point();
        let kind = match (access.execute, access.write) {
            (true, _) => Access::Execute,
            (_, true) => Access::Write,
            _ => Access::Read,
        };
        let space = task.process.space.borrow();
        let Some(space) = &*space else { return false };
        let resolved = space.borrow_mut().fault(access.address.0, kind);
        if resolved.is_ok() {
            self.scheduler.trace().page(thread, kind as u32, access.address.0);
        } else if resolved == Err(FaultKind::Coming) {
            task.met_coming(space.borrow_mut().take_coming());
        }
        calls::page_fault(&task, resolved)
    }

    #[inline(always)]
    fn rewrite_text(&'static self, thread: TteId, address: VirtAddr, bytes: &[u8]) -> bool {
        let Some(space) = self.tasks.of_thread(thread).and_then(|task| task.process.space()) else { return false };
        let mut space = space.borrow_mut();
        space.is_text(address.0, bytes.len()) && space.poke_bytes(address.0, bytes).is_ok()
    }

    #[inline(always)]
    fn timer(&'static self) {
        self.scheduler.trace().interrupt(0);
        self.scheduler.timer();
    }

    #[cold]
    fn device(&'static self) {
        self.scheduler.trace().interrupt(1);
        // First, so that people see who slept.
        self.control.device(self);
        self.channels.wake(self.scheduler);
        self.families.inotify.pull();
        self.terminals.device();
    }

    fn chained(&'static self) {
        self.scheduler.run_chained();
        if self.terminals.take_signal() {
            self.device();
        }
        if let Some(sound) = &self.sound
            && sound.is_chained()
        {
            self.signal_sound(sound);
        }
    }

    /// Who was woken runs next, as after the timer (S-73).
    #[cold]
    fn signal_sound(&self, sound: &Sound) {
        if sound.signal_chained(self.scheduler) && self.machine.current_tte() != self.scheduler.idle().id() {
            self.scheduler.yield_now();
        }
    }

    #[inline(always)]
    fn sample(&'static self) {
        if let Some(sound) = &self.sound {
            sound.interrupt();
        }
    }

    #[inline(always)]
    fn before_user(&'static self, thread: TteId, registers: &mut Registers) -> Onward {
        const FIRST_INTERRUPT: u64 = 32;
        let task = self.running(thread);
        if registers.cause >= FIRST_INTERRUPT
            && let Some(area) = task.restart_area()
        {
            // Others may have run meanwhile.
            calls::interrupted(self, &task, area, registers);
        }
        if calls::needs_attention(&task, registers) {
            return calls::before_user(self, task, registers);
        }
        Onward::Program
    }
}

/// Makes the emulator known to the machine.
pub(crate) fn install(unix: &'static Unix) {
    unix.machine.set_upcalls(unix.entrance());
}
