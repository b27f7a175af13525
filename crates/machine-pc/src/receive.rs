//! The pc's code that receives from a channel: what `Virtqueue` does with a buffer that the device has filled, as
//! instructions to paste into the device's interrupt handler, and that handler's slot.

use alloc::vec;
use core::arch::asm;
use core::mem::offset_of;

use machine::{DeviceEntry, Entry, Fragment, KernelCell, PAGE_BYTES, ReceiveCode};
use synth::{Abs32, Imm32, Target, Template, template};

use crate::trap::DEVICE_VECTOR;
use crate::virtio_console::{INTERRUPT_ACKNOWLEDGE, INTERRUPT_STATUS, QUEUE_NOTIFY};
use crate::virtqueue::{AVAILABLE, QueueWords, SIZE, USED, Virtqueue};
use crate::{lines, nesting};

template! {
    /// Asks the device why it interrupts (virtio 1.2, 4.2.2). Out: eax, and rsi for `Acknowledge`. Cost: 2 instructions.
    pub struct AskWhy { notify: Abs32 }
    where { STATUS = INTERRUPT_STATUS - QUEUE_NOTIFY }
    "mov rsi, qword ptr [{notify}]",
    "mov eax, dword ptr [rsi + {STATUS}]",
}

template! {
    /// Tells the device that its interrupt is seen. In: eax and rsi of `AskWhy`. Cost: 1 instruction.
    pub struct Acknowledge {}
    where { SEEN = INTERRUPT_ACKNOWLEDGE - QUEUE_NOTIFY }
    "mov dword ptr [rsi + {SEEN}], eax",
}

template! {
    /// Looks at the next buffer that the device has filled. Out: rax = its number, rsi = its bytes, ecx = how many. Clobbers
    /// rdi. Leaves through `none` if there is none, or one that cannot be. Cost: 12 instructions.
    pub struct LookReceived { used: Abs32, ring: Abs32, buffer_count: Imm32, buffers: Abs32, none: Target }
    where { USED_INDEX = USED + 2, ENTRY = USED + 4, LENGTH = USED + 8, MASK = SIZE - 1, MOST = PAGE_BYTES }
    "movzx eax, word ptr [{used}]",
    "mov rdi, qword ptr [{ring}]",
    "cmp ax, word ptr [rdi + {USED_INDEX}]",
    ".byte 0x0f, 0x84",                     // je none
    ".long {none}",
    "and eax, {MASK}",
    "mov ecx, dword ptr [rdi + rax*8 + {LENGTH}]",
    "mov eax, dword ptr [rdi + rax*8 + {ENTRY}]",
    "cmp eax, {buffer_count}",
    ".byte 0x0f, 0x83",                     // jae none: a buffer that we do not have
    ".long {none}",
    "cmp ecx, {MOST}",
    ".byte 0x0f, 0x87",                     // ja none: more than it can hold
    ".long {none}",
    "mov rsi, qword ptr [{buffers} + rax*8]",
}

template! {
    /// Gives buffer eax back to the device and tells it (virtio 1.2, 2.7.13); its descriptor says already what it can hold. The
    /// processor keeps the order of stores. Clobbers rcx, rdi. Cost: 10 instructions.
    pub struct ReturnReceived { used: Abs32, ring: Abs32, available: Abs32, notify: Abs32, queue: Imm32 }
    where { ENTRIES = AVAILABLE + 4, INDEX = AVAILABLE + 2, MASK = SIZE - 1 }
    "inc dword ptr [{used}]",
    "mov rdi, qword ptr [{ring}]",
    "mov ecx, dword ptr [{available}]",
    "and ecx, {MASK}",
    "mov word ptr [rdi + rcx*2 + {ENTRIES}], ax",
    "inc dword ptr [{available}]",
    "mov ecx, dword ptr [{available}]",
    "mov word ptr [rdi + {INDEX}], cx",
    "mov rdi, qword ptr [{notify}]",
    "mov dword ptr [rdi], {queue}",
}

/// The code for a queue that the device knows as number `queue`; it names the words, which must not move while it is used.
pub fn receive_code(words: &QueueWords, queue: u32, none: Target) -> ReceiveCode {
    let buffer_count = Imm32(words.buffer_count);
    let words = core::ptr::from_ref(words) as u64;
    let word = |offset: usize| Abs32(words + offset as u64);
    let (used, ring) = (word(offset_of!(QueueWords, used)), word(offset_of!(QueueWords, ring)));
    let notify = word(offset_of!(QueueWords, notify));
    let buffers = word(offset_of!(QueueWords, buffers));
    let available = word(offset_of!(QueueWords, available));
    let look = vec![used.into(), ring.into(), buffer_count.into(), buffers.into(), none.into()];
    let give_back = vec![used.into(), ring.into(), available.into(), notify.into(), Imm32(queue).into()];
    ReceiveCode {
        acknowledge: [
            Fragment { template: AskWhy::template(), holes: vec![notify.into()] },
            Fragment { template: Acknowledge::template(), holes: vec![] },
        ],
        look: Fragment { template: LookReceived::template(), holes: look },
        give_back: Fragment { template: ReturnReceived::template(), holes: give_back },
    }
}

/// A queue that no device knows: its second buffer is in place of the device's registers.
static PRACTICE: KernelCell<Option<Virtqueue>> = KernelCell::new(None);

/// The code for that queue; `None` without memory.
pub fn practice_code(none: Target) -> Option<ReceiveCode> {
    let mut practice = PRACTICE.borrow_mut();
    if practice.is_none() {
        let queue = Virtqueue::new(2, false).ok()?;
        queue.words.notify.set(queue.words.buffers[1].get());
        *practice = Some(queue);
    }
    practice.as_ref().map(|queue| receive_code(&queue.words, 0, none))
}

/// The place whose interrupt is raised by hand.
const PLACE: usize = 0;

/// Raises the interrupt by hand, led to `entry`, with a byte each time.
pub fn practice(entry: Entry<DeviceEntry>, count: u32) {
    let practice = PRACTICE.borrow();
    let Some(queue) = &*practice else { return };
    nesting::between_interrupts(&mut || {
        // No other interrupt comes before it holds its own value again.
        let before = lines::swap(PLACE, entry.address());
        for _ in 0..count {
            queue.pretend_finished(1);
            // SAFETY: the gate leads to a handler that keeps all registers and comes back; the kernel has no red zone.
            unsafe { asm!("int {}", const DEVICE_VECTOR + PLACE as u8) };
        }
        lines::swap(PLACE, before);
    });
}

/// For the golden listings.
pub fn templates() -> [Template; 4] {
    [AskWhy::template(), Acknowledge::template(), LookReceived::template(), ReturnReceived::template()]
}
