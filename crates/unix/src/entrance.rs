//! What the machine calls: calls, faults and interrupts come in here.

use abi::siginfo::SigInfo;
use abi::signal::SIGKILL;
use alloc::boxed::Box;

use kernel::file::share::Sleeper;
use kernel::file::{CounterClock, Time};
use kernel::sound::Sound;
use kernel::space::{Access, FaultKind};
use kernel::trace::kind;
use machine::stretch::Cause;
use machine::{CALLS_MAX, Exception, Held, Registers, TteId, Upcalls, VirtAddr, failing, stages, stretch};

use crate::call::Call;
use crate::calls;
use crate::calls::life::end::Onward;
use crate::calls::signals::send::send_to_process;
use crate::emulator::Unix;

impl CounterClock for Entrance {
    fn time_of_counter(&self, counter: u64) -> Time {
        self.0.wall_time_at(self.0.machine.time_of_counter(counter))
    }
}

impl Sleeper for Entrance {
    fn is_ending(&self) -> bool {
        self.0.tasks.of_thread(self.0.machine.current_tte()).is_some_and(|task| task.is_ending())
    }
}

/// How machine and files come in: a reference, because a table of functions for the emulator itself would bring code along that
/// takes it apart.
pub(crate) struct Entrance(&'static Unix);

impl Upcalls for Entrance {
    fn system_call(&'static self, held: Held<'_>, thread: TteId, registers: &mut Registers) -> bool {
        stages::begin(u64::from(registers.cause as u32));
        let stretch = stretch::enter(Cause::Call(u64::from(registers.cause as u32)));
        let served = self.0.system_call(held, thread, registers);
        let is_plain = matches!(served, Served::Plain);
        let onward = if is_plain { Onward::Program } else { self.0.look_around(held, thread, registers, served) };
        drop(stretch);
        stages::end();
        match onward {
            Onward::Program => is_plain,
            Onward::End(departed) => departed.end(held, self.0),
        }
    }

    fn exception(&'static self, held: Held<'_>, thread: TteId, registers: &mut Registers, exception: Exception) {
        let _stretch = stretch::enter(Cause::Exception);
        self.0.exception(held, thread, registers, exception)
    }

    fn page_fault(&'static self, thread: TteId, access: machine::Access) -> bool {
        let _stretch = stretch::enter(Cause::PageFault);
        self.0.page_fault(thread, access)
    }

    fn rewrite_text(&'static self, thread: TteId, address: VirtAddr, bytes: &[u8]) -> bool {
        self.0.rewrite_text(thread, address, bytes)
    }

    fn timer(&'static self, held: Held<'_>) {
        let _stretch = stretch::enter(Cause::Timer);
        self.0.timer(held)
    }

    fn device(&'static self) {
        let _stretch = stretch::enter(Cause::Device);
        self.0.device()
    }

    fn chained(&'static self, held: Held<'_>) {
        let _stretch = stretch::enter(Cause::Chained);
        self.0.chained(held)
    }

    fn quaspace_lost(&'static self, _held: Held<'_>, number: u64) {
        self.0.quaspace_lost(number);
    }

    fn sample(&'static self) {
        self.0.sample()
    }

    fn before_user(&'static self, held: Held<'_>, thread: TteId, registers: &mut Registers) {
        let stretch = stretch::enter(Cause::BeforeUser);
        let onward = self.0.before_user(held, thread, registers);
        drop(stretch);
        if let Onward::End(departed) = onward {
            departed.end(held, self.0)
        }
    }
}

/// How a call was served.
#[derive(Clone, Copy)]
enum Served {
    /// No register but the result's has changed, and nothing else is to be done.
    Plain,
    /// Any may have, or the thread has to look around.
    Whole,
    /// While a tracer may look on.
    Watched,
}

/// What the machine asks: see [`Upcalls`].
impl Unix {
    #[inline(always)]
    fn system_call(&'static self, held: Held<'_>, thread: TteId, registers: &mut Registers) -> Served {
        failing::safe_point();
        let task = self.running(thread);
        task.count_call();
        let number = u64::from(registers.cause as u32);
        let mut call = Call { held, unix: self, task: &task, registers, registers_replaced: false };
        if self.options.strace || task.watch.is_traced() {
            crate::calls::watched::serve_watched(&mut call, number);
            if self.scheduler.trace().is_on() {
                self.note_return(number, registers.rax);
            }
            return Served::Watched;
        }
        calls::table::serve(&mut call, number);
        let is_plain = !call.registers_replaced;
        if self.has_dead.get() {
            self.bury();
        }
        if self.scheduler.trace().is_on() {
            self.note_return(number, registers.rax);
        }
        if is_plain && !task.has_attention() { Served::Plain } else { Served::Whole }
    }

    /// After a call that was not plain. A program that was executed may have made the thread another task.
    #[inline(never)]
    fn look_around(&'static self, held: Held<'_>, thread: TteId, registers: &mut Registers, served: Served) -> Onward {
        if let Served::Watched = served {
            return self.after_watched_call(held, registers);
        }
        let task = self.running(thread);
        if crate::calls::signals::deliver::needs_attention(&task, registers) {
            return crate::calls::signals::deliver::before_user(held, self, task, registers);
        }
        Onward::Program
    }

    #[inline(always)]
    fn exception(&'static self, held: Held<'_>, thread: TteId, registers: &mut Registers, exception: Exception) {
        failing::safe_point();
        let task = self.running(thread);
        task.watch.in_call.set(false);
        if task.last_fault.get() == Some(FaultKind::Coming) && crate::calls::coming::await_fault(held, &task) {
            return;
        }
        if crate::calls::memory::exhaustion::take_starvation(&task) {
            // The program tries the same instruction again.
            crate::calls::memory::exhaustion::make_room(held, self, &task);
            return;
        }
        if (self.monitor.exception)(held, self, &task, registers, &exception) {
            return;
        }
        crate::calls::signals::deliver::fault(held, self, &task, registers, exception);
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
        crate::calls::signals::deliver::page_fault(&task, resolved)
    }

    #[inline(always)]
    fn rewrite_text(&'static self, thread: TteId, address: VirtAddr, bytes: &[u8]) -> bool {
        let Some(space) = self.tasks.of_thread(thread).and_then(|task| task.process.space()) else { return false };
        let mut space = space.borrow_mut();
        space.is_text(address.0, bytes.len()) && space.poke_bytes(address.0, bytes).is_ok()
    }

    #[cold]
    fn quaspace_lost(&'static self, number: u64) {
        for process in self.tasks.processes() {
            if process.space().is_some_and(|space| space.borrow().translation().number() == number) {
                send_to_process(self, &process, &SigInfo::kernel(SIGKILL));
            }
        }
    }

    #[inline(always)]
    fn timer(&'static self, held: Held<'_>) {
        self.scheduler.trace().interrupt(0);
        self.scheduler.timer(held);
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

    fn chained(&'static self, held: Held<'_>) {
        self.scheduler.run_chained();
        if self.terminals.take_signal() {
            self.device();
        }
        if let Some(sound) = &self.sound
            && sound.is_chained()
        {
            self.signal_sound(held, sound);
        }
    }

    /// Who was woken runs next, as after the timer (S-73).
    #[cold]
    fn signal_sound(&self, held: Held<'_>, sound: &Sound) {
        if sound.signal_chained(self.scheduler) && self.machine.current_tte() != self.scheduler.idle().id() {
            self.scheduler.yield_now(held);
        }
    }

    #[inline(always)]
    fn sample(&'static self) {
        if let Some(sound) = &self.sound {
            sound.interrupt();
        }
    }

    #[inline(always)]
    fn before_user(&'static self, held: Held<'_>, thread: TteId, registers: &mut Registers) -> Onward {
        const FIRST_INTERRUPT: u64 = 32;
        let task = self.running(thread);
        if registers.cause >= FIRST_INTERRUPT
            && let Some(area) = task.restart_area()
        {
            // Others may have run meanwhile.
            crate::calls::restartable::interrupted(held, self, &task, area, registers);
        }
        if crate::calls::signals::deliver::needs_attention(&task, registers) {
            return crate::calls::signals::deliver::before_user(held, self, task, registers);
        }
        Onward::Program
    }
}

/// Makes the emulator known to the machine.
pub(crate) fn install(unix: &'static Unix) {
    unix.machine.set_upcalls(unix.entrance());
}

impl Unix {
    /// For those who know the emulator by a trait. Made once for each of them and kept for good.
    pub(crate) fn entrance(&'static self) -> &'static Entrance {
        Box::leak(Box::new(Entrance(self)))
    }

    /// A call that a tracer may have seen has been served; until the thread is back in its program, it is in it.
    #[cold]
    fn after_watched_call(&'static self, held: Held<'_>, registers: &mut Registers) -> Onward {
        let task = self.current();
        if crate::calls::signals::deliver::needs_attention(&task, registers)
            && let Onward::End(departed) = crate::calls::signals::deliver::before_user(held, self, task, registers)
        {
            return Onward::End(departed);
        }
        self.current().watch.in_call.set(false);
        Onward::Program
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
}
