//! Thread table entries on the hosted machine (S-50): one 32 KB area of the thread window each.
//!
//! ```text
//! area + 0x0000  TteRecord: slots, register save words, the thread's call table
//! area + 0x1000  vector state (XSAVE image)
//! area + 0x2000  guard page, never mapped
//! area + 0x3000  kernel stack, 20 KB, grows down from
//! area + 0x8000  the top: the Registers record of the program ends here
//! ```
//! The area is aligned to its size, so `rsp & -32768` is the running thread's TTE.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::arch::{asm, global_asm};
use core::mem::{ManuallyDrop, offset_of};

use codestore::{Code, CodeStore, Maker};
use machine::{
    BadVectorState, Entries, FloatWords, KernelCell, Nanos, NoFrames, Registers, Start, Translation, Tte, TteId,
    UserFault, VirtAddr,
};
use synth::{Abs32, Draft, Imm32, Target};

use crate::cpu::{Cpu, cpu, vector_bytes, vector_features};
use crate::entry::{hosted_change_space, hosted_first_return, hosted_slow_call};
use crate::host;
use crate::layout::{THREAD_AREA_BYTES, THREAD_AREAS, THREADS, USER_CODE, USER_DATA};
use crate::thread_code::{
    ByDescriptor, Constant, Dispatch, MMU_BYTES, SlowCall, Switch, SwitchIn, SwitchOut, UserCall,
};
use crate::user;

pub const VECTOR_OFFSET: usize = 0x1000;
/// System calls a thread's table covers; larger numbers take the slow end.
pub const CALLS: usize = 464;
/// Bytes below the guard page.
const LOW_BYTES: u64 = 0x2000;
/// Where the kernel stack begins, above the guard page.
const STACK_OFFSET: u64 = 0x3000;

/// The first page of a thread area. Synthesized code has the addresses of these fields folded in.
#[repr(C)]
pub struct TteRecord {
    /// Where the thread's kernel stack stands while it is switched out.
    pub kernel_sp: u64,
    /// Slot: where `sw_out` jumps, the successor's `sw_in` or `sw_in_mmu`.
    pub next: u64,
    /// Root word of the thread's quaspace.
    pub root: u64,
    pub fs_base: u64,
    pub gs_base: u64,
    pub id: u64,
    pub start: u64,
    /// Entry of the thread's `sw_out`.
    pub switch_out: u64,
    /// What the last trap was about (CR2 of a page fault).
    pub fault_address: u64,
    /// What the kernel wants routines to know of the thread.
    pub tag: u64,
    /// The thread's call table (vector table, S-55): an entry point per system call.
    pub calls: [u64; CALLS],
    /// Nanoseconds as the running thread, up to the last `charge`.
    pub ran: u64,
    /// Not 0: a debugger looks; no routine is bound and no text rewritten.
    pub debugged: u64,
}

global_asm!(
    ".pushsection .text",
    ".globl hosted_thread_start",
    "hosted_thread_start:",
    "mov rbx, rsp",
    "and rbx, -{area}",
    "call qword ptr [rbx + {start}]",
    "ud2",
    ".popsection",
    area = const THREAD_AREA_BYTES,
    start = const offset_of!(TteRecord, start),
);

unsafe extern "C" {
    static hosted_thread_start: u8;
}

/// Which thread areas are taken.
static AREAS: KernelCell<Areas> = KernelCell::new(Areas { next: 0, free: Vec::new() });

struct Areas {
    next: u32,
    free: Vec<u32>,
}

/// Areas of ended threads that stay mapped and keep their code, for the next threads (R4).
static INACTIVE: KernelCell<Vec<Body>> = KernelCell::new(Vec::new());
const INACTIVE_MAX: usize = 8;

/// A mapped area with its synthesized code. All calls of its table go to the slow end.
struct Body {
    id: TteId,
    area: u64,
    code: Codes,
}

/// One thread's area and synthesized code.
pub struct HostedTte {
    id: TteId,
    area: u64,
    code: ManuallyDrop<Codes>,
    /// Bit per call that may be bound to a routine.
    bound: KernelCell<[u64; CALLS.div_ceil(64)]>,
    store: &'static CodeStore,
    /// Routines of this thread alone, by call number.
    own: KernelCell<BTreeMap<usize, Code<UserCall>>>,
}

struct Codes {
    switch_in: Code<Switch>,
    switch_out: Code<Switch>,
    _dispatch: Code<UserCall>,
    slow: Code<UserCall>,
}

fn record(area: u64) -> *mut TteRecord {
    area as *mut TteRecord
}

/// The running thread's record.
pub fn current() -> *mut TteRecord {
    // SAFETY: the slot is a word that switches store.
    unsafe { ((*cpu()).stack_top - THREAD_AREA_BYTES) as *mut TteRecord }
}

/// Where the running thread's record of its program's registers lies.
pub fn user_registers() -> *mut Registers {
    (current() as u64 + THREAD_AREA_BYTES - size_of::<Registers>() as u64) as *mut Registers
}

fn take_area() -> Result<u32, NoFrames> {
    let mut areas = AREAS.borrow_mut();
    if let Some(id) = areas.free.pop() {
        return Ok(id);
    }
    if areas.next as u64 == THREAD_AREAS {
        return Err(NoFrames);
    }
    areas.next += 1;
    Ok(areas.next - 1)
}

/// Maps a thread's area; the guard page stays unmapped.
fn map_area(area: u64) -> Result<(), NoFrames> {
    let rights = host::PROT_READ | host::PROT_WRITE;
    // SAFETY: the range is this thread's own.
    unsafe {
        host::map_anonymous(area, LOW_BYTES, rights)
            .and_then(|()| host::map_anonymous(area + STACK_OFFSET, THREAD_AREA_BYTES - STACK_OFFSET, rights))
            .map_err(|_| NoFrames)
    }
}

fn unmap_area(area: u64) {
    // SAFETY: the thread has gone.
    let _ = unsafe { host::unmap(area, THREAD_AREA_BYTES) };
}

impl HostedTte {
    pub fn create(start: Start, store: &'static CodeStore) -> Result<HostedTte, NoFrames> {
        let inactive = INACTIVE.borrow_mut().pop();
        let Body { id, area, code } = match inactive {
            Some(body) => body,
            None => Self::create_body(store)?,
        };
        let code = ManuallyDrop::new(code);
        let (bound, own) = (KernelCell::default(), KernelCell::new(BTreeMap::new()));
        let tte = HostedTte { id, area, code, bound, store, own };
        tte.fill(start);
        Ok(tte)
    }

    fn create_body(store: &'static CodeStore) -> Result<Body, NoFrames> {
        let id = TteId(take_area()?);
        let area = THREADS + id.0 as u64 * THREAD_AREA_BYTES;
        let made = map_area(area).and_then(|()| Self::synthesize(id, area, store).inspect_err(|_| unmap_area(area)));
        let code = match made {
            Ok(code) => code,
            Err(NoFrames) => {
                AREAS.borrow_mut().free.push(id.0);
                return Err(NoFrames);
            }
        };
        // SAFETY: the area is mapped and not yet known to anybody else.
        unsafe { (*record(area)).calls = [code.slow.entry(); CALLS] };
        Ok(Body { id, area, code })
    }

    /// Creates the thread's code: factor the templates with the addresses of its own record.
    fn synthesize(id: TteId, area: u64, store: &'static CodeStore) -> Result<Codes, NoFrames> {
        let field = |offset: usize| Abs32(area + offset as u64);
        let maker = Maker::new("creation").thread(id.0);
        let cpu_field = |offset: usize| Abs32(cpu() as u64 + offset as u64);
        let top = area + THREAD_AREA_BYTES;
        let slow = SlowCall { user_sp: Abs32(top - 8), common: Target::Address(slow_call()) };
        let slow = store.publish("thread.slow_call", maker, slow.draft()).map_err(|_| NoFrames)?;
        let dispatch = Dispatch { calls: field(offset_of!(TteRecord, calls)), slow: Target::Address(slow.entry()) };
        let dispatch = store.publish("thread.dispatch", maker, dispatch.draft()).map_err(|_| NoFrames)?;
        let switch_in = SwitchIn {
            root: field(offset_of!(TteRecord, root)),
            kernel_sp: field(offset_of!(TteRecord, kernel_sp)),
            change_space: Target::Address((&raw const hosted_change_space) as u64),
            cpu_top: cpu_field(offset_of!(Cpu, stack_top)),
            stack_top: Abs32(top),
            cpu_dispatch: cpu_field(offset_of!(Cpu, dispatch)),
            dispatch: Abs32(dispatch.entry()),
            fs_base: field(offset_of!(TteRecord, fs_base)),
            gs_base: field(offset_of!(TteRecord, gs_base)),
        };
        let switch_in = store.publish("thread.sw_in", maker, switch_in.draft()).map_err(|_| NoFrames)?;
        let switch_out = SwitchOut {
            kernel_sp: field(offset_of!(TteRecord, kernel_sp)),
            next: field(offset_of!(TteRecord, next)),
            fs_base: field(offset_of!(TteRecord, fs_base)),
            gs_base: field(offset_of!(TteRecord, gs_base)),
        };
        let switch_out = store.publish("thread.sw_out", maker, switch_out.draft()).map_err(|_| NoFrames)?;
        Ok(Codes { switch_in, switch_out, _dispatch: dispatch, slow })
    }

    /// Lays out the record, the vector state and the first stack frame.
    fn fill(&self, start: Start) {
        let top = self.area + THREAD_AREA_BYTES;
        let registers = top - size_of::<Registers>() as u64;
        let (first, function) = match start {
            Start::User(_) => ((&raw const hosted_first_return) as u64, 0),
            Start::Kernel(function) => ((&raw const hosted_thread_start) as u64, function as usize as u64),
        };
        let tte = record(self.area);
        // SAFETY: 1. The area is mapped and not yet known to anybody else. 2. The stack word
        // lies below the Registers record, inside the stack.
        unsafe {
            (*tte).kernel_sp = registers - 8;
            (*tte).id = self.id.0 as u64;
            (*tte).tag = 0;
            (*tte).ran = 0;
            (*tte).start = function;
            (*tte).debugged = 0;
            (*tte).next = 0;
            (*tte).root = 0;
            (*tte).fs_base = 0;
            (*tte).gs_base = 0;
            (*tte).switch_out = self.code.switch_out.entry();
            ((registers - 8) as *mut u64).write(first);
        }
        self.erase_vector_state();
        if let Start::User(values) = start {
            self.set_registers(&values);
        }
    }

    fn record(&self) -> *mut TteRecord {
        record(self.area)
    }

    /// Publishes a routine of this thread alone and binds it to a call.
    fn bind_own(&self, name: &'static str, number: usize, draft: Draft) -> Result<(), NoFrames> {
        let maker = Maker::new("call").call(number).thread(self.id.0);
        let code = self.store.publish(name, maker, draft).map_err(|_| NoFrames)?;
        self.bind_call(number, Some(code.entry()));
        self.own.borrow_mut().insert(number, code);
        Ok(())
    }

    /// All calls are done in Rust again.
    fn unbind_all(&self) {
        let bound = self.bound.get();
        for (word, mut bits) in bound.into_iter().enumerate() {
            while bits != 0 {
                let number = word * 64 + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                self.bind_call(number, None);
            }
        }
    }

    fn user_registers(&self) -> *mut Registers {
        (self.area + THREAD_AREA_BYTES - size_of::<Registers>() as u64) as *mut Registers
    }

    fn vector(&self) -> *mut u8 {
        (self.area as usize + VECTOR_OFFSET) as *mut u8
    }

    fn owns_vector_registers(&self) -> bool {
        // SAFETY: the slot is a word.
        unsafe { (*cpu()).vector_owner == self.area }
    }

    /// Makes an image that a program wrote into the vector page one that the processor takes: false if that
    /// cannot be. A reserved bit would make XRSTOR fault inside the kernel (SDM vol. 1, 13.8).
    fn adopt_image(&self, bytes: usize, features: u64) -> bool {
        if self.float_words().mxcsr & !0xFFFF != 0 {
            return false;
        }
        // SAFETY: the header lies in the vector page, which is this thread's, at an aligned address.
        unsafe {
            let header = self.vector().add(XSAVE_HEADER).cast::<u64>();
            let present = if bytes > XSAVE_HEADER { header.read() } else { 3 };
            header.write_bytes(0, 8);
            header.write(present & features);
            present & !vector_features() == 0
        }
    }

    /// Stores the parts above SSE in the image, if the registers are this thread's.
    fn save_wide(&self) {
        if self.owns_vector_registers() {
            let wide = vector_features() & !3;
            // SAFETY: 1. The area is 64-byte aligned and large enough. 2. Only the parts above SSE are
            // stored: the legacy part was saved at kernel entry and Rust has used its registers since.
            unsafe {
                asm!("xsave64 [{}]", in(reg) self.vector(), in("eax") wide as u32, in("edx") (wide >> 32) as u32);
            }
        }
    }

    /// Loads the parts above SSE, if the registers are this thread's; the others are restored at kernel exit.
    fn load_wide(&self) {
        if self.owns_vector_registers() {
            let wide = vector_features() & !3;
            // SAFETY: the image is valid: the initial state, or one that was checked.
            unsafe {
                asm!("xrstor64 [{}]", in(reg) self.vector(), in("eax") wide as u32, in("edx") (wide >> 32) as u32);
            }
        }
    }
}

const XSAVE_HEADER: usize = 512;
/// Default x87 control word and MXCSR (SDM vol. 1, 13.6).
const FCW: u16 = 0x037F;
const MXCSR: u32 = 0x1F80;

impl Tte for HostedTte {
    fn id(&self) -> TteId {
        self.id
    }

    fn registers(&self) -> Registers {
        // SAFETY: the record at the stack top belongs to the thread; it is not running its program.
        unsafe { *self.user_registers() }
    }

    fn set_registers(&self, registers: &Registers) {
        let mut values = *registers;
        values.cs = USER_CODE as u64;
        values.ss = USER_DATA as u64;
        // Programs keep arithmetic flags, TF, DF, AC, ID; IF is always on.
        values.rflags = values.rflags & 0x25_0DD5 | 0x202;
        // SAFETY: as in `registers`.
        unsafe { *self.user_registers() = values };
    }

    fn thread_pointer(&self) -> u64 {
        if current() == self.record() {
            let base;
            // SAFETY: the host allows FSGSBASE (checked at start).
            unsafe { asm!("rdfsbase {}", out(reg) base) };
            return base;
        }
        // SAFETY: the record is mapped while the TTE lives.
        unsafe { (*self.record()).fs_base }
    }

    fn set_thread_pointer(&self, base: u64) {
        // SAFETY: the record is mapped; `base` is checked by the caller to be a user address.
        unsafe {
            (*self.record()).fs_base = base;
            if current() == self.record() {
                asm!("wrfsbase {}", in(reg) base);
            }
        }
    }

    fn set_gs_base(&self, base: u64) {
        // SAFETY: as in `set_thread_pointer`.
        unsafe {
            (*self.record()).gs_base = base;
            if current() == self.record() {
                asm!("wrgsbase {}", in(reg) base);
            }
        }
    }

    fn gs_base(&self) -> u64 {
        if current() == self.record() {
            let base;
            // SAFETY: the host allows FSGSBASE (checked at start).
            unsafe { asm!("rdgsbase {}", out(reg) base) };
            return base;
        }
        // SAFETY: the record is mapped while the TTE lives.
        unsafe { (*self.record()).gs_base }
    }

    fn set_quaspace(&self, quaspace: Option<&dyn Translation>) {
        // SAFETY: the record is mapped; an aligned store.
        unsafe { (*self.record()).root = quaspace.map_or(0, Translation::root) };
    }

    fn link_next(&self, next: &dyn Tte) {
        let entries = next.entries();
        // SAFETY: the record is mapped.
        let root = unsafe { (*self.record()).root };
        // A kernel-only thread leaves no certain address space behind; it runs in any.
        let same = entries.root == 0 || root == entries.root;
        let entry = if same { entries.sw_in } else { entries.sw_in_mmu };
        // SAFETY: an aligned 8-byte store publishes the link (R3).
        unsafe { (&raw mut (*self.record()).next).write_volatile(entry) };
    }

    fn float_words(&self) -> FloatWords {
        let legacy = self.vector();
        // SAFETY: the vector page is mapped and aligned; the legacy part was saved at kernel entry.
        unsafe {
            FloatWords {
                x87_control: legacy.cast::<u16>().read(),
                x87_status: legacy.add(2).cast::<u16>().read(),
                mxcsr: legacy.add(24).cast::<u32>().read(),
            }
        }
    }

    fn save_vector_state(&self, to: VirtAddr) -> Result<(), UserFault> {
        self.save_wide();
        // SAFETY: the vector page is mapped and holds an image; it was checked to fit at boot.
        unsafe {
            *self.vector().add(XSAVE_HEADER) |= 3;
            user::copy_out(to, self.vector(), vector_bytes())
        }
    }

    fn load_vector_state(&self, from: VirtAddr, bytes: usize, features: u64) -> Result<(), BadVectorState> {
        let bytes = bytes.min(vector_bytes());
        // SAFETY: the vector page is mapped and holds `bytes`; only this thread uses it.
        let is_read = unsafe { user::copy_in(self.vector(), from, bytes) }.is_ok();
        if !is_read || bytes < XSAVE_HEADER || !self.adopt_image(bytes, features) {
            self.reset_vector_state();
            return Err(BadVectorState);
        }
        self.load_wide();
        Ok(())
    }

    fn reset_vector_state(&self) {
        let mut image = [0u8; XSAVE_HEADER + 64];
        image[0..2].copy_from_slice(&FCW.to_le_bytes());
        image[24..28].copy_from_slice(&MXCSR.to_le_bytes());
        // SAFETY: the vector page belongs to the thread.
        unsafe { self.vector().copy_from_nonoverlapping(image.as_ptr(), image.len()) };
        self.load_wide();
    }

    fn erase_vector_state(&self) {
        // SAFETY: the vector page belongs to the thread and holds that many bytes.
        unsafe { self.vector().write_bytes(0, vector_bytes()) };
        self.reset_vector_state();
    }

    fn inherit_vector_state(&self) {
        let (from, to) = (current(), self.vector());
        // SAFETY: 1. Both records and their processor are mapped, and so are their vector pages, which hold an image.
        // 2. This thread does not run, so nobody else uses its page.
        unsafe {
            let image = (from as *const u8).add(VECTOR_OFFSET);
            if (*cpu()).vector_owner != from as u64 {
                to.copy_from_nonoverlapping(image, vector_bytes());
                return;
            }
            // The legacy part was saved at kernel entry; the wide parts are in the registers.
            to.copy_from_nonoverlapping(image, XSAVE_HEADER);
            to.add(XSAVE_HEADER).write_bytes(0, 64);
            let wide = (*cpu()).wide_mask;
            asm!("xsave64 [{}]", in(reg) to, in("eax") wide as u32, in("edx") (wide >> 32) as u32);
            *to.add(XSAVE_HEADER) |= 3;
        }
    }

    fn copy_vector_state(&self, into: &mut [u8]) {
        self.save_wide();
        let bytes = into.len().min(vector_bytes());
        // SAFETY: the vector page is mapped and holds an image.
        unsafe {
            *self.vector().add(XSAVE_HEADER) |= 3;
            into.as_mut_ptr().copy_from(self.vector(), bytes);
        }
    }

    fn replace_vector_state(&self, image: &[u8], features: u64) -> Result<(), BadVectorState> {
        let bytes = image.len().min(vector_bytes());
        // SAFETY: the vector page is mapped and holds `bytes`; the thread is not in its program.
        unsafe { self.vector().copy_from(image.as_ptr(), bytes) };
        if bytes < XSAVE_HEADER || !self.adopt_image(bytes, features) {
            self.reset_vector_state();
            return Err(BadVectorState);
        }
        self.load_wide();
        Ok(())
    }

    fn set_debugged(&self, debugged: bool) {
        self.unbind_all();
        // SAFETY: the record is mapped; an aligned 8-byte store.
        unsafe { (&raw mut (*self.record()).debugged).write_volatile(u64::from(debugged)) };
    }

    fn bind_call(&self, number: usize, entry: Option<u64>) {
        // SAFETY: the record is mapped.
        let entry = entry.filter(|_| unsafe { (*self.record()).debugged } == 0);
        // SAFETY: the record is mapped; an aligned 8-byte store publishes the entry (R3).
        unsafe { (&raw mut (*self.record()).calls[number]).write_volatile(entry.unwrap_or(self.code.slow.entry())) };
        if entry.is_none() {
            self.own.borrow_mut().remove(&number);
        } else {
            self.bound.borrow_mut()[number / 64] |= 1 << (number % 64);
        }
    }

    fn bind_descriptor_call(&self, number: usize, entries: u64, count: u32) -> Result<(), NoFrames> {
        let code = ByDescriptor {
            user_sp: Abs32(self.area + THREAD_AREA_BYTES - 8),
            count: Imm32(count),
            entries: Abs32(entries),
            slow: Target::Address(slow_call()),
        };
        self.bind_own("thread.by_descriptor", number, code.draft())
    }

    fn append_kernel_stack(&self, draft: &mut Draft) {
        crate::call::ToKernelStack { user_sp: Abs32(self.area + THREAD_AREA_BYTES - 8) }.append_to(draft);
    }

    fn set_tag(&self, tag: u64) {
        // SAFETY: the record is mapped; an aligned 8-byte store.
        unsafe { (&raw mut (*self.record()).tag).write_volatile(tag) };
    }

    fn ran(&self) -> Nanos {
        // SAFETY: the record is mapped.
        Nanos(unsafe { (&raw const (*self.record()).ran).read_volatile() })
    }

    fn slow_entry(&self) -> u64 {
        self.code.slow.entry()
    }

    fn bind_constant_call(&self, number: usize, value: u32) -> Result<(), NoFrames> {
        self.bind_own("thread.constant", number, Constant { value: Imm32(value) }.draft())
    }

    fn entries(&self) -> Entries {
        let sw_in_mmu = self.code.switch_in.entry();
        // SAFETY: the record is mapped.
        let root = unsafe { (*self.record()).root };
        Entries { sw_in: sw_in_mmu + MMU_BYTES, sw_in_mmu, root, quantum: 0 }
    }
}

impl Drop for HostedTte {
    fn drop(&mut self) {
        assert!(current() != self.record(), "a thread dropped its own TTE");
        // SAFETY: the slot is a word of the processor.
        unsafe {
            if (*cpu()).vector_owner == self.area {
                (*cpu()).vector_owner = crate::dummy_area();
            }
        }
        self.unbind_all();
        // SAFETY: `code` is not used again.
        let code = unsafe { ManuallyDrop::take(&mut self.code) };
        let body = Body { id: self.id, area: self.area, code };
        let mut inactive = INACTIVE.borrow_mut();
        if inactive.len() < INACTIVE_MAX && inactive.try_reserve(1).is_ok() {
            inactive.push(body);
        } else {
            drop(inactive);
            body.release();
        }
    }
}

impl Body {
    /// Gives the memory and the code back.
    fn release(self) {
        unmap_area(self.area);
        AREAS.borrow_mut().free.push(self.id.0);
    }
}

/// Leaves the running thread through its synthesized `sw_out`.
pub fn switch_away() {
    // SAFETY: 1. The record is the running thread's. 2. `out` is its `sw_out`, which follows the C convention.
    unsafe {
        let record = &*current();
        assert!(record.next != 0, "thread {} has no successor", record.id);
        let out: extern "C" fn() = core::mem::transmute(record.switch_out);
        out();
    }
}

/// Where a call goes to be done in Rust, on the kernel stack.
pub fn slow_call() -> u64 {
    (&raw const hosted_slow_call) as u64
}

/// For the trait-object world.
pub fn boxed(tte: HostedTte) -> Box<dyn Tte> {
    Box::new(tte)
}
