//! Thread table entries: records in a vector, and a host thread each once they have run.

use machine::{
    BadVectorState, CallEntry, DescriptorEntries, Entries, Entry, FloatWords, Nanos, NoFrames, Place, QUANTUM_MOST_NS,
    Registers, SOFTWARE_AT, SOFTWARE_BYTES, Start, Translation, Tte, TteId, UserFault, UserMemory, VirtAddr,
};
use synth::Draft;

use crate::SimMachine;
use crate::entry::entered;
use crate::program::User;

/// Bytes of an XSAVE image with the x87 and SSE parts alone (SDM vol. 1, 13.4).
pub const VECTOR_BYTES: usize = 576;
const XSAVE_HEADER: usize = 512;
/// x87 and SSE.
pub const VECTOR_FEATURES: u64 = 3;
/// Default x87 control word and MXCSR (SDM vol. 1, 13.6).
const FCW: u16 = 0x037F;
const MXCSR: u32 = 0x1F80;
const FIRST_XMM: usize = 160;

/// What the machine knows of a thread.
pub struct Record {
    pub registers: Registers,
    pub thread_pointer: u64,
    pub gs_base: u64,
    pub root: u64,
    pub next: Option<TteId>,
    pub quantum: u64,
    pub ran: u64,
    /// The lower half of XMM0, for all the vector state there is.
    pub vector: u64,
    /// How it begins, until it has.
    pub start: Option<Start>,
    pub host: Option<u32>,
}

impl Record {
    pub fn new(start: Start) -> Record {
        let registers = if let Start::User(registers) = &start { *registers } else { Registers::default() };
        Record {
            registers,
            thread_pointer: 0,
            gs_base: 0,
            root: 0,
            next: None,
            quantum: QUANTUM_MOST_NS,
            ran: 0,
            vector: 0,
            start: Some(start),
            host: None,
        }
    }
}

pub struct SimTte {
    pub machine: &'static SimMachine,
    pub id: TteId,
}

impl SimTte {
    fn with<R>(&self, act: impl FnOnce(&mut Record) -> R) -> R {
        self.machine.with_record(self.id, act)
    }
}

impl Drop for SimTte {
    fn drop(&mut self) {
        if !self.machine.is_over() {
            assert!(self.machine.current() != self.id, "the running thread's TTE is dropped");
            self.machine.free_record(self.id);
        }
    }
}

impl Tte for SimTte {
    fn id(&self) -> TteId {
        self.id
    }

    fn registers(&self) -> Registers {
        self.with(|record| record.registers)
    }

    fn set_registers(&self, registers: &Registers) {
        self.with(|record| record.registers = *registers);
    }

    fn thread_pointer(&self) -> u64 {
        self.with(|record| record.thread_pointer)
    }

    fn set_thread_pointer(&self, base: u64) {
        self.with(|record| record.thread_pointer = base);
    }

    fn set_gs_base(&self, base: u64) {
        self.with(|record| record.gs_base = base);
    }

    fn gs_base(&self) -> u64 {
        self.with(|record| record.gs_base)
    }

    fn set_quaspace(&self, quaspace: Option<&dyn Translation>) {
        self.with(|record| record.root = quaspace.map_or(0, |quaspace| quaspace.number()));
    }

    fn link_in(&self, place: Place) {
        let current = self.machine.current();
        self.machine.change_ring(|ring| match place {
            Place::Next => ring.insert_after(current, self.id),
            Place::Last => ring.insert_before(current, self.id),
        });
    }

    fn link_out(&self) {
        self.machine.change_ring(|ring| {
            ring.remove(self.id);
        });
        self.machine.follow(self.id);
    }

    fn relink(&self) {
        self.machine.change_ring(|ring| ring.touch(self.id));
    }

    fn float_words(&self) -> FloatWords {
        FloatWords { x87_control: FCW, x87_status: 0, mxcsr: MXCSR }
    }

    fn save_vector_state(&self, to: VirtAddr, software: &[u8; SOFTWARE_BYTES]) -> Result<(), UserFault> {
        let mut image = [0; VECTOR_BYTES];
        self.copy_vector_state(&mut image);
        image[SOFTWARE_AT..SOFTWARE_AT + SOFTWARE_BYTES].copy_from_slice(software);
        self.machine.copy_out(to, &image)
    }

    fn load_vector_state(&self, from: VirtAddr, bytes: usize, features: u64) -> Result<(), BadVectorState> {
        let mut image = [0; VECTOR_BYTES];
        let bytes = bytes.min(VECTOR_BYTES);
        self.machine.copy_in(from, &mut image[..bytes]).map_err(|UserFault| BadVectorState)?;
        self.replace_vector_state(&image, features)
    }

    fn copy_vector_state(&self, into: &mut [u8]) {
        let mut image = [0; VECTOR_BYTES];
        image[..2].copy_from_slice(&FCW.to_le_bytes());
        image[24..28].copy_from_slice(&MXCSR.to_le_bytes());
        image[FIRST_XMM..FIRST_XMM + 8].copy_from_slice(&self.with(|record| record.vector).to_le_bytes());
        image[XSAVE_HEADER..XSAVE_HEADER + 8].copy_from_slice(&VECTOR_FEATURES.to_le_bytes());
        let bytes = into.len().min(VECTOR_BYTES);
        into[..bytes].copy_from_slice(&image[..bytes]);
    }

    fn replace_vector_state(&self, from: &[u8], _features: u64) -> Result<(), BadVectorState> {
        let word = from.get(FIRST_XMM..).and_then(|rest| rest.first_chunk()).ok_or(BadVectorState)?;
        self.with(|record| record.vector = u64::from_le_bytes(*word));
        Ok(())
    }

    /// Nobody debugs a program that has no instructions.
    fn set_debugged(&self, _debugged: bool) {}

    fn reset_vector_state(&self) {
        self.with(|record| record.vector = 0);
    }

    fn inherit_vector_state(&self) {
        let vector = self.machine.with_record(self.machine.current(), |record| record.vector);
        self.with(|record| record.vector = vector);
    }

    fn bind_call(&self, _number: usize, _entry: Option<Entry<CallEntry>>) {}

    fn bind_descriptor_call(&self, _number: usize, _entries: DescriptorEntries) -> Result<(), NoFrames> {
        Err(NoFrames)
    }

    fn append_kernel_stack(&self, _draft: &mut Draft) {}

    fn quantum(&self) -> Nanos {
        Nanos(self.with(|record| record.quantum))
    }

    fn set_quantum(&self, quantum: Nanos) {
        self.with(|record| record.quantum = quantum.0);
    }

    fn ran(&self) -> Nanos {
        Nanos(self.with(|record| record.ran))
    }

    fn slow_entry(&self) -> Entry<CallEntry> {
        // SAFETY: this machine enters no code.
        unsafe { Entry::new(0) }
    }

    fn bind_constant_call(&self, _number: usize, _value: u32) -> Result<(), NoFrames> {
        Err(NoFrames)
    }

    fn entries(&self) -> Entries {
        Entries { sw_in: 0, sw_in_mmu: 0, root: self.with(|record| record.root), quantum: 0, sw_out: 0, dispatch: 0 }
    }
}

impl SimMachine {
    /// The host thread of `id`, made at its first turn.
    pub(crate) fn host_of(&'static self, id: TteId) -> u32 {
        if let Some(host) = self.with_record(id, |record| record.host) {
            return host;
        }
        let start = self.with_record(id, |record| record.start.take()).expect("a thread begins once");
        let host = self.new_host(move || match start {
            Start::User(registers) => User::new(self, id, registers).run(),
            Start::Kernel(function) => {
                let entered = entered();
                function(entered.held())
            }
        });
        self.with_record(id, |record| record.host = Some(host));
        host
    }
}
