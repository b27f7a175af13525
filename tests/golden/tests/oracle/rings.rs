//! The ready ring as code that sleeps and wakes changes it, against the ring of numbers: order, links, and whose quantum comes next.
#![allow(clippy::multiple_unsafe_ops_per_block, reason = "one proof for records that nobody else knows")]

use std::mem::{offset_of, transmute, zeroed};
use std::sync::atomic::Ordering::Relaxed;

use codestore::{Code, Maker};
use golden::bench;
use machine::{Ring, TteId};
use machine_pc::UserCall;
use machine_x86::{LeaveRing, LinkIn, Slots, TteRecord};
use synth::{Draft, Imm32, template};

use crate::race::Race;

template! {
    /// Thread and processor where the routine wants them.
    pub struct EnterLeave {}
    "push rbx",
    "push r12",
    "mov rbx, rdi",
    "mov r12, rsi",
}

template! {
    pub struct EndLeave {}
    "pop r12",
    "pop rbx",
    "ret",
}

template! {
    /// Running thread, processor and the other thread where the routine wants them.
    pub struct EnterLink {}
    "push rbx",
    "mov rbx, rdi",
    "mov rdi, rsi",
    "mov rsi, rdx",
}

template! {
    pub struct EndLink {}
    "pop rbx",
    "ret",
}

const MMU: u64 = 11;
/// The first is a thread of the kernel: it has no quaspace, and does not sleep by code.
const THREADS: usize = 7;

type Leave = extern "sysv64" fn(*mut TteRecord, *mut Slots);
type Link = extern "sysv64" fn(*mut TteRecord, *mut Slots, *mut TteRecord);

pub struct Rings {
    leave: Code<UserCall>,
    link: Code<UserCall>,
    records: Vec<*mut TteRecord>,
    cpu: *mut Slots,
    ring: Ring,
}

impl Rings {
    pub fn new() -> Rings {
        let mmu_bytes = Imm32(MMU as u32);
        let publish = |draft| bench().store.publish("bench.ring", Maker::new("bench"), draft).expect("room for code");
        let (mut leave, mut link) = (Draft::new(), Draft::new());
        EnterLeave {}.append_to(&mut leave);
        LeaveRing { mmu_bytes }.append_to(&mut leave);
        EndLeave {}.append_to(&mut leave);
        EnterLink {}.append_to(&mut link);
        LinkIn { mmu_bytes }.append_to(&mut link);
        EndLink {}.append_to(&mut link);
        // SAFETY: all fields are numbers and pointers.
        let record = || Box::into_raw(Box::new(unsafe { zeroed::<TteRecord>() }));
        let records: Vec<_> = (0..=THREADS).map(|_| record()).collect();
        for (number, record) in records.iter().enumerate() {
            // Two threads have a quaspace together; the last one is the idle thread.
            let root = if number == THREADS { 0 } else { number.div_ceil(2) as u64 };
            // SAFETY: nobody else knows the record.
            unsafe {
                ((**record).id, (**record).switch_in, (**record).root) =
                    (number as u64, 0x1000 * (number as u64 + 1), root)
            };
        }
        let cpu = Box::into_raw(Box::new(Slots::new()));
        // SAFETY: as above.
        unsafe { (*cpu).idle = records[THREADS] };
        Rings { leave: publish(leave), link: publish(link), records, cpu, ring: Ring::new() }
    }

    pub fn step(&mut self, race: &mut Race) {
        let order = self.ring.order();
        let (place, thread) = (race.random.below(THREADS as u64), race.random.below(THREADS as u64));
        let is_ready = |number: u64| order.contains(&TteId(number as u32));
        if order.is_empty() {
            self.begin();
        } else if is_ready(thread) {
            // SAFETY: the routine has this contract.
            let leave: Leave = unsafe { transmute(self.leave.entry().address()) };
            leave(self.records[thread as usize], self.cpu);
            self.ring.remove(TteId(thread as u32));
        } else if is_ready(place) && thread != 0 {
            // SAFETY: as above.
            let link: Link = unsafe { transmute(self.link.entry().address()) };
            link(self.records[place as usize], self.cpu, self.records[thread as usize]);
            self.ring.insert_after(TteId(place as u32), TteId(thread as u32));
        }
        self.compare();
    }

    /// The thread of the kernel comes in alone, as Rust does it.
    fn begin(&mut self) {
        let (first, idle) = (self.records[0], self.records[THREADS]);
        // SAFETY: nobody else knows the records.
        unsafe {
            ((*first).after, (*first).before, (*self.cpu).first) = (first, first, first);
            (*self.cpu).words.ready.store(1, Relaxed);
            for from in [first, idle] {
                (*from).next = (*first).switch_in;
                (*from).next_quantum = first as u64 + offset_of!(TteRecord, quantum) as u64;
            }
        }
        self.ring.insert_after(TteId(0), TteId(0));
    }

    fn compare(&self) {
        let order: Vec<usize> = self.ring.order().iter().map(|id| id.0 as usize).collect();
        // SAFETY: nobody else knows the records.
        let (ready, mut at) = unsafe { ((*self.cpu).words.ready.load(Relaxed), (*self.cpu).first) };
        assert_eq!(ready as usize, order.len());
        let first = order.first().copied().unwrap_or(THREADS);
        self.check_link(THREADS, first);
        for (place, thread) in order.iter().enumerate() {
            assert_eq!(at, self.records[*thread]);
            self.check_link(*thread, order[(place + 1) % order.len()]);
            // SAFETY: as above.
            let (after, before) = unsafe { ((*at).after, (*at).before) };
            // SAFETY: as above.
            assert!(unsafe { (*after).before == at && (*before).after == at });
            at = after;
        }
    }

    /// Leaving `from` leads to `to`, by the entry that the two quaspaces ask for.
    fn check_link(&self, from: usize, to: usize) {
        // SAFETY: nobody else knows the records.
        let (from, to) = unsafe { (&*self.records[from], &*self.records[to]) };
        let bytes = if to.root == 0 || to.root == from.root { 0 } else { MMU };
        assert_eq!(from.next, to.switch_in - bytes, "from {} to {}", from.id, to.id);
        assert_eq!(from.next_quantum, core::ptr::from_ref(to) as u64 + offset_of!(TteRecord, quantum) as u64);
    }
}
