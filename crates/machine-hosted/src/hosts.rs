//! Host processes: each quaspace is shown by one, so that its mappings stay while others run (ADR 62).
//!
//! ```text
//!   first ── made by the tool; the others are its children        host process of quaspace A    host process of quaspace B
//!                                                                  ┌───────────────────────┐    ┌───────────────────────┐
//!   the programs' addresses: each its own                          │ pages of A            │    │ pages of B            │
//!   image's data, heap, code, thread areas, frames: shared         │ the kernel ═══════════╪════╪═══════════ the kernel │
//!   a page of words, a stack, a signal stack (`Own`): each its own │ own                   │    │ own                   │
//!                                                                  └───────────────────────┘    └───────────────────────┘
//! ```
//! Whoever has the *baton* is the processor's host process and runs kernel and programs; the others sleep on their own stacks. A
//! switch to a thread of another quaspace gives the baton away in the midst of `sw_in_mmu`: the next process goes on at the same
//! instruction on the same kernel stack. Which process has it is a word of the processor's record.
//!
//! Processes are like the tags of a TLB: there are at most so many, one without a quaspace waits for the next, and where the host gives no
//! more of them one is taken from another quaspace, whose pages come back when they are touched.
#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "one proof for the words of one record, or for calls that belong together"
)]

use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};

use machine_x86::read_tsc;

use crate::cpu::cpu;
use crate::entry::{hosted_clone, hosted_hand_over};
use crate::host::{self, HostError};
use crate::layout::{OWN, OWN_STACK_TOP, SIGNAL_STACK, SIGNAL_STACK_BYTES};
use crate::threads::HostedGround;
use crate::translation::{self, HostTranslation};
use crate::{debug, signals, start, threads, windows};

/// Host processes at most.
const HOSTS_MAX: usize = 1024;
/// So many wait without a quaspace; more are ended.
const IDLE_MAX: u32 = 16;
/// The process that the tool started.
const FIRST: usize = 0;

const SIGKILL: i32 = 9;

/// What is said with the baton.
mod word {
    pub const NOTHING: u32 = 0;
    /// The process sleeps, and must be woken by the host.
    pub const ASLEEP: u32 = 1;
    pub const GO_ON: u32 = 2;
    pub const END: u32 = 3;
}

/// What a place in the table holds.
mod state {
    pub const FREE: u32 = 0;
    pub const ALIVE: u32 = 1;
    /// It was told to end; the first process will see it.
    pub const ENDING: u32 = 2;
    /// Somebody killed it; its quaspace is to be told.
    pub const LOST: u32 = 3;
}

/// One host process, as all see it.
#[repr(align(64))]
struct Host {
    /// The futex that it sleeps on.
    baton: AtomicU32,
    state: AtomicU32,
    process: AtomicI32,
    /// It must unmap all that it shows before it goes on.
    is_stale: AtomicBool,
    /// Root word of the quaspace that it shows; 0: none.
    shows: AtomicU64,
}

impl Host {
    const fn none() -> Host {
        Host {
            baton: AtomicU32::new(word::NOTHING),
            state: AtomicU32::new(state::FREE),
            process: AtomicI32::new(0),
            is_stale: AtomicBool::new(false),
            shows: AtomicU64::new(0),
        }
    }

    fn is_idle(&self) -> bool {
        self.state.load(Ordering::Relaxed) == state::ALIVE && self.shows.load(Ordering::Relaxed) == 0
    }

    /// Wakes the process with a word.
    fn tell(&self, word: u32) {
        if self.baton.swap(word, Ordering::AcqRel) == word::ASLEEP {
            host::wake(&self.baton);
        }
    }
}

static HOSTS: [Host; HOSTS_MAX] = [const { Host::none() }; HOSTS_MAX];
/// Places that were ever taken are below this.
static PLACES: AtomicU32 = AtomicU32::new(1);
static IDLE: AtomicU32 = AtomicU32::new(0);
/// Which one lost its quaspace last: its page tables are the warmest.
static LAST_IDLE: AtomicU32 = AtomicU32::new(0);
/// Where the search for one to take away goes on.
static HAND: AtomicU32 = AtomicU32::new(0);
/// With what the first process ends.
static STATUS: AtomicI32 = AtomicI32::new(0);
/// All quaspaces are shown by the first process, in turn.
static ONE_ONLY: AtomicBool = AtomicBool::new(false);

/// What each process has of its own, at the same address.
#[repr(C)]
struct Own {
    index: AtomicU32,
    /// Timers belong to a process: this one's.
    timer: AtomicI32,
    /// When `timer` goes off at the latest; `NEVER`: it is not set.
    alarm_at: AtomicU64,
    /// How many changes of windows this process has made, too.
    windows_seen: AtomicU64,
}
const NEVER: u64 = u64::MAX;

fn own() -> &'static Own {
    // SAFETY: `prepare` maps the page, zeros at first, before anybody asks; each process has a copy.
    unsafe { &*(OWN as *const Own) }
}

/// Who has the baton.
fn holder() -> &'static AtomicU64 {
    // SAFETY: the slot is an aligned word of a record that is never freed.
    unsafe { AtomicU64::from_ptr(&raw mut (*cpu()).host) }
}

/// The host process that has the baton.
fn here() -> usize {
    holder().load(Ordering::SeqCst) as usize
}

/// The number of the process that has the baton.
pub fn process() -> i32 {
    HOSTS[here()].process.load(Ordering::Relaxed)
}

/// This process has the baton.
fn has_baton() -> bool {
    own().index.load(Ordering::Relaxed) as usize == here()
}

/// All quaspaces share the first process.
pub fn use_one_only() {
    ONE_ONLY.store(true, Ordering::Relaxed);
}

/// Makes this process the first.
///
/// # Errors
/// The host has no memory or no timers.
pub fn prepare() -> Result<(), HostError> {
    const GUARD: u64 = 4096;
    let read_write = host::PROT_READ | host::PROT_WRITE;
    // SAFETY: the ranges are the kernel's own (see `layout`), and nothing is mapped there yet.
    unsafe {
        host::map_anonymous(OWN, GUARD, read_write)?;
        host::map_anonymous(OWN + 2 * GUARD, OWN_STACK_TOP - (OWN + 2 * GUARD), read_write)?;
        host::map_anonymous(SIGNAL_STACK, SIGNAL_STACK_BYTES, read_write)?;
        host::set_signal_stack(SIGNAL_STACK, SIGNAL_STACK_BYTES)?;
    }
    HOSTS[FIRST].state.store(state::ALIVE, Ordering::Relaxed);
    HOSTS[FIRST].process.store(host::process_id(), Ordering::Relaxed);
    IDLE.store(1, Ordering::Relaxed);
    HAS_CORES.store(host::cores() > 1, Ordering::Relaxed);
    make_timer()
}

fn make_timer() -> Result<(), HostError> {
    let own = own();
    own.timer.store(host::create_timer(signals::SIGALRM)?, Ordering::Relaxed);
    own.alarm_at.store(NEVER, Ordering::Relaxed);
    Ok(())
}

/// Has SIGALRM come to whoever has the baton at `at`, or earlier: whoever gets it looks at the clock and sets it again.
pub fn set_alarm(at: u64) {
    if own().alarm_at.load(Ordering::Relaxed) > at {
        set_timer(at, at.saturating_sub(machine_x86::now().0));
    }
}

/// Has SIGALRM come to this process in `nanos`, whatever it was set to.
pub fn set_alarm_in(nanos: u64) {
    set_timer(machine_x86::now().0 + nanos, nanos);
}

fn set_timer(at: u64, nanos: u64) {
    let own = own();
    own.alarm_at.store(at, Ordering::Relaxed);
    host::set_timer(own.timer.load(Ordering::Relaxed), nanos.max(1));
}

/// SIGALRM has come to this process. Returns whether it is the processor's: whoever gets the baton looks at the clock himself.
pub fn alarm_came() -> bool {
    own().alarm_at.store(NEVER, Ordering::Relaxed);
    has_baton()
}

/// Sees that the quaspace is shown by the process that goes on. Returns on the same stack, in another process or in this one.
pub fn show(space: &HostTranslation) {
    let here = here();
    let (to, is_new) = match space.host().filter(|host| HOSTS[*host].state.load(Ordering::SeqCst) != state::LOST) {
        Some(host) => (host, false),
        None => (find(here), true),
    };
    if is_new {
        give(to, space);
    }
    if to == here {
        begin();
    } else {
        // The vector registers stay behind in this process.
        machine_x86::release_vector_state::<HostedGround>();
        // SAFETY: 1. `to` sleeps and waits for the baton. 2. Its own stack is used by nobody while it runs.
        unsafe { hosted_hand_over(OWN_STACK_TOP, here as u64, to as u64) };
    }
}

/// A process without a quaspace, or one that loses its own.
fn find(here: usize) -> usize {
    if HOSTS[here].is_idle() || ONE_ONLY.load(Ordering::Relaxed) {
        return here;
    }
    let places = PLACES.load(Ordering::Relaxed) as usize;
    let last = LAST_IDLE.load(Ordering::Relaxed) as usize;
    if HOSTS[last].is_idle() {
        return last;
    }
    if IDLE.load(Ordering::Relaxed) > 0
        && let Some(idle) = (0..places).find(|index| HOSTS[*index].is_idle())
    {
        return idle;
    }
    make().unwrap_or_else(|| take_away(here, places))
}

/// The next in turn that is not this one; this one, if it is alone.
fn take_away(here: usize, places: usize) -> usize {
    let from = HAND.load(Ordering::Relaxed) as usize;
    let in_turn = (from..from + places).map(|index| index % places);
    let mut others =
        in_turn.filter(|index| *index != here && HOSTS[*index].state.load(Ordering::Relaxed) == state::ALIVE);
    let chosen = others.next().unwrap_or(here);
    HAND.store(chosen as u32 + 1, Ordering::Relaxed);
    chosen
}

/// `to` shows `space` from now on; what it showed before goes when it runs.
fn give(to: usize, space: &HostTranslation) {
    let host = &HOSTS[to];
    match host.shows.swap(space.root_word(), Ordering::Relaxed) {
        0 => drop(IDLE.fetch_sub(1, Ordering::Relaxed)),
        // SAFETY: a translation that goes says so to the process that shows it.
        before => unsafe { (*(before as *const HostTranslation)).lose_host() },
    }
    host.is_stale.store(true, Ordering::Relaxed);
    space.have_host(to);
}

/// The quaspace that the process shows has gone.
pub fn release(index: usize) {
    let host = &HOSTS[index];
    host.shows.store(0, Ordering::Relaxed);
    if host.state.load(Ordering::SeqCst) == state::LOST {
        return;
    }
    if IDLE.load(Ordering::Relaxed) >= IDLE_MAX && index != FIRST && index != here() {
        host.state.store(state::ENDING, Ordering::Relaxed);
        host.tell(word::END);
        return;
    }
    IDLE.fetch_add(1, Ordering::Relaxed);
    LAST_IDLE.store(index as u32, Ordering::Relaxed);
}

/// All that the process shows of programs is to go before it runs again.
pub fn must_forget(index: usize) {
    HOSTS[index].is_stale.store(true, Ordering::Relaxed);
}

/// One more process: a copy of this one, which sleeps until it gets the baton. `None` where the host gives no more.
fn make() -> Option<usize> {
    let index = HOSTS.iter().position(|host| host.state.load(Ordering::Relaxed) == state::FREE)?;
    let host = &HOSTS[index];
    host.baton.store(word::NOTHING, Ordering::Relaxed);
    host.state.store(state::ALIVE, Ordering::Relaxed);
    // SAFETY: the copy begins on its own stack, which is a copy, too, and whose top nobody uses in a process that has the baton.
    match unsafe { hosted_clone(host::clone_flags(here() != FIRST), OWN_STACK_TOP, index as u64) } {
        process @ 1.. => {
            host.process.store(process as i32, Ordering::Relaxed);
            PLACES.fetch_max(index as u32 + 1, Ordering::Relaxed);
            IDLE.fetch_add(1, Ordering::Relaxed);
            debug::host_made(process as i32);
            Some(index)
        }
        _ => {
            host.state.store(state::FREE, Ordering::Relaxed);
            None
        }
    }
}

/// The first thing that a new process does, while the one that made it goes on: it touches nothing that others write.
#[unsafe(no_mangle)]
extern "C" fn hosted_host_begins(index: u64) {
    let first = HOSTS[FIRST].process.load(Ordering::Relaxed) as u64;
    let own = own();
    own.index.store(index as u32, Ordering::Relaxed);
    let is_child = host::end_with_parent().is_ok() && host::parent() == Ok(first);
    let is_made = is_child && threads::map_window().is_ok() && make_timer().is_ok();
    if !is_made {
        host::exit_process(start::MACHINE_DIED);
    }
    start::catch_calls();
    sleep(index as usize);
}

/// Wakes the next process and sleeps until somebody wakes this one.
#[unsafe(no_mangle)]
extern "C" fn hosted_give_baton(_stack: u64, from: u64, to: u64) {
    GIVER.store(from as u32, Ordering::SeqCst);
    holder().store(to, Ordering::SeqCst);
    HOSTS[to as usize].tell(word::GO_ON);
    GIVER.store(NOBODY, Ordering::SeqCst);
    let is_lost = HOSTS[to as usize].state.load(Ordering::SeqCst) == state::LOST;
    if is_lost && holder().compare_exchange(to, from, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
        return begin();
    }
    sleep(from as usize);
}

/// Until this process gets the baton.
fn sleep(index: usize) {
    let baton = &HOSTS[index].baton;
    look_out(baton);
    loop {
        match baton.compare_exchange(word::NOTHING, word::ASLEEP, Ordering::Acquire, Ordering::Acquire) {
            Ok(_) | Err(word::ASLEEP) => host::wait(baton, word::ASLEEP),
            Err(word::GO_ON) => break,
            Err(_) if index == FIRST => end_all(STATUS.load(Ordering::Relaxed)),
            Err(_) => host::exit_process(0),
        }
    }
    baton.store(word::NOTHING, Ordering::Relaxed);
    begin();
}

/// Who has just given the baton away looks for so many ticks whether it comes back, before it sleeps: a host's wake-up costs thousands.
const LOOK_TICKS: u64 = 50_000;
/// Looking pays where it succeeds: each success is one more attempt, each failure one less, and some hand-overs later one is given.
const ATTEMPTS_MAX: i32 = 8;
const ATTEMPT_AFTER: i32 = -100;
static ATTEMPTS: AtomicI32 = AtomicI32::new(ATTEMPTS_MAX);
/// The machine may use several of the host's cores: one process can look while another runs.
static HAS_CORES: AtomicBool = AtomicBool::new(false);

fn look_out(baton: &AtomicU32) {
    if !HAS_CORES.load(Ordering::Relaxed) {
        return;
    }
    let attempts = ATTEMPTS.load(Ordering::Relaxed);
    if attempts <= 0 {
        ATTEMPTS.store(if attempts > ATTEMPT_AFTER { attempts - 1 } else { 1 }, Ordering::Relaxed);
        return;
    }
    let start = read_tsc();
    while read_tsc() - start < LOOK_TICKS {
        if baton.load(Ordering::Relaxed) != word::NOTHING {
            ATTEMPTS.store((attempts + 1).min(ATTEMPTS_MAX), Ordering::Relaxed);
            return;
        }
        core::hint::spin_loop();
    }
    ATTEMPTS.store(attempts - 1, Ordering::Relaxed);
}

/// This process has the baton: brings what it has of its own up to date.
fn begin() {
    let here = here();
    if let Some(space) = translation::active().filter(|space| space.host() != Some(here)) {
        // Whose process it was has been killed.
        give(here, space);
    }
    let is_stale = HOSTS[here].is_stale.swap(false, Ordering::Relaxed);
    if is_stale {
        translation::unmap_all();
    }
    show_windows();
    match translation::active() {
        Some(space) if is_stale => space.bring_in_ahead(),
        Some(space) => space.catch_up(),
        None => {}
    }
    if LOST.load(Ordering::SeqCst) > 0 {
        // SAFETY: the slot is a word.
        unsafe { (*cpu()).timer_pending = 1 };
    }
    crate::the().keep_alarms();
}

/// Makes the changes of windows that other processes made.
fn show_windows() {
    let (seen, changes) = (own().windows_seen.load(Ordering::Relaxed), windows::changes());
    if seen != changes {
        windows::catch_up(seen);
        own().windows_seen.store(changes, Ordering::Relaxed);
    }
}

/// This process has changed windows, and was up to date.
pub fn windows_changed() {
    own().windows_seen.store(windows::changes(), Ordering::Relaxed);
}

/// Has this process show another quaspace in the place of one that nobody runs in any more.
pub fn show_here(space: &HostTranslation) {
    give(here(), space);
    begin();
}

/// A child of the first process has ended. One that was told to leaves its place; of another one the quaspace is lost, and if it had the
/// baton the whole machine, since it may have been in the midst of the kernel.
pub fn child_ended() {
    while let Some(process) = host::reap() {
        let is_it = |host: &Host| host.process.load(Ordering::Relaxed) == process;
        // One that is not in the table yet is being made by somebody who will give it the baton.
        let is_survived = HOSTS.iter().position(is_it).is_some_and(|index| {
            HOSTS[index].process.store(0, Ordering::Relaxed);
            let was_told = HOSTS[index].state.load(Ordering::Relaxed) == state::ENDING;
            if was_told {
                HOSTS[index].state.store(state::FREE, Ordering::Relaxed);
            }
            was_told || is_survived(index)
        });
        if !is_survived {
            let _ = host::send_signal(host::process_id() as u64, SIGKILL);
        }
    }
}

/// Who gives the baton away at this moment.
static GIVER: AtomicU32 = AtomicU32::new(NOBODY);
const NOBODY: u32 = u32::MAX;
/// Processes that were killed and whose quaspaces do not know yet.
static LOST: AtomicU32 = AtomicU32::new(0);

/// A process was killed. Whether the machine can go on: it slept, or died before it took the baton that it was given.
fn is_survived(index: usize) -> bool {
    let host = &HOSTS[index];
    host.state.store(state::LOST, Ordering::SeqCst);
    LOST.fetch_add(1, Ordering::SeqCst);
    let was_giving = GIVER.compare_exchange(index as u32, NOBODY, Ordering::SeqCst, Ordering::SeqCst).is_ok();
    let next = here();
    if next == index {
        let has_taken = host.baton.load(Ordering::SeqCst) == word::NOTHING;
        let first = FIRST as u64;
        let is_mine = holder().compare_exchange(index as u64, first, Ordering::SeqCst, Ordering::SeqCst).is_ok();
        if is_mine && !has_taken {
            // Between two instructions of a switch: this process goes on in its place.
            HOSTS[FIRST].tell(word::GO_ON);
        }
        return !has_taken;
    }
    if was_giving && HOSTS[next].baton.load(Ordering::SeqCst) != word::GO_ON {
        // The next one may have been told or not.
        return false;
    }
    // Whoever runs the kernel looks for it.
    let running = HOSTS[next].process.load(Ordering::Relaxed);
    running == 0 || host::send_signal(running as u64, signals::SIGALRM).is_ok()
}

/// The quaspaces whose processes were killed, by their numbers.
pub fn take_lost(mut tell: impl FnMut(u64)) {
    if LOST.load(Ordering::SeqCst) == 0 {
        return;
    }
    for (index, host) in HOSTS.iter().enumerate().filter(|(_, host)| host.state.load(Ordering::SeqCst) == state::LOST) {
        match host.shows.swap(0, Ordering::Relaxed) {
            0 => {}
            root => {
                // SAFETY: a translation that goes says so to the process that shows it.
                let space = unsafe { &*(root as *const HostTranslation) };
                if space.host() == Some(index) {
                    space.lose_host();
                }
                tell(root);
            }
        }
        host.state.store(state::FREE, Ordering::SeqCst);
        LOST.fetch_sub(1, Ordering::SeqCst);
    }
    let is_idle = |host: &&Host| host.is_idle();
    IDLE.store(HOSTS.iter().filter(is_idle).count() as u32, Ordering::Relaxed);
}

/// A quaspace goes that another process showed before that was killed.
pub fn forget_lost(root: u64) {
    if LOST.load(Ordering::SeqCst) > 0 {
        let shows = HOSTS.iter().map(|host| &host.shows);
        for shows in shows {
            let _ = shows.compare_exchange(root, 0, Ordering::Relaxed, Ordering::Relaxed);
        }
    }
}

/// Ends all processes, the first with this status.
pub fn end(status: i32) -> ! {
    if here() == FIRST {
        end_all(status);
    }
    STATUS.store(status, Ordering::Relaxed);
    HOSTS[FIRST].tell(word::END);
    loop {
        // The first process takes all others with it.
        host::wait_for(&mut [], None);
    }
}

/// The first process ends, behind all others: not every host has somebody who looks after their remains.
fn end_all(status: i32) -> ! {
    host::set_blocked_signals(u64::MAX);
    let places = PLACES.load(Ordering::Relaxed) as usize;
    for host in &HOSTS[FIRST + 1..places] {
        let process = host.process.load(Ordering::Relaxed);
        if process != 0 && host.state.load(Ordering::Relaxed) != state::FREE {
            let _ = host::send_signal(process as u64, SIGKILL);
        }
    }
    while host::await_child() {}
    host::exit_process(status)
}
