//! Devices that play sound (Intel High Definition Audio). Such a device is started when somebody wants it.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use hda::{Lost, Output, Registers};
use machine::{Claimed, KernelCell, KernelOnce, Pace, Player, PlayerLost, Procedure, try_arc, try_box, try_to_vec};
use virtio::Window as _;

use crate::devices::MmioWindow;
use crate::pci::{Interrupts, Root};
use crate::threads::PcGround;

/// Bytes of registers: global ones, and eight descriptors of streams at least (HDA 3.3).
const WINDOW_BYTES: u64 = 0x180;

/// The devices that nobody has started yet, in their order.
static FOUND: KernelCell<Vec<(MmioWindow, Interrupts)>> = KernelCell::new(Vec::new());

/// Keeps the controllers on PCI, until somebody wants one.
pub fn keep(root: &mut Root) {
    for function in root.functions_of_class(hda::PCI_CLASS) {
        FOUND.borrow_mut().extend(root.open_plain(function, WINDOW_BYTES));
    }
}

/// A controller's window, and this processor's clock.
struct Controller(MmioWindow);

macro_rules! access {
    ($($read:ident, $write:ident, $type:ty;)*) => {
        impl Registers for Controller {
            $(fn $read(&self, offset: u32) -> $type {
                self.0.$read(offset)
            }

            fn $write(&self, offset: u32, value: $type) {
                self.0.$write(offset, value);
            })*

            fn now(&self) -> u64 {
                machine_x86::now().0
            }
        }
    };
}

access! {
    read8, write8, u8;
    read16, write16, u16;
    read32, write32, u32;
}

struct Loudspeaker {
    output: KernelCell<Output<Controller>>,
    rates: Vec<u32>,
    fetched_ahead: usize,
    news: KernelCell<Option<Procedure>>,
    /// Empty while devices are polled.
    line: KernelOnce<Claimed>,
}

/// Starts the next device; `None` if there is none, or it cannot be driven.
pub fn next(polls: bool) -> Option<&'static dyn Player> {
    loop {
        let next = {
            let mut found = FOUND.borrow_mut();
            if found.is_empty() { None } else { Some(found.remove(0)) }
        };
        let (window, interrupts) = next?;
        if let Ok(player) = start(window, &interrupts, polls) {
            return Some(player);
        }
    }
}

fn start(window: MmioWindow, interrupts: &Interrupts, polls: bool) -> Result<&'static Loudspeaker, Lost> {
    let output = Output::start(Controller(window), machine_x86::dma::<PcGround>)?;
    let rates = try_to_vec(output.rates()).map_err(|_| Lost::NoMemory)?;
    let fetched_ahead = output.fetched_ahead();
    let (output, news) = (KernelCell::new(output), KernelCell::new(None));
    let player = Loudspeaker { output, rates, fetched_ahead, news, line: KernelOnce::new() };
    // There is one, as long as the machine runs.
    let player: &'static Loudspeaker = Box::leak(try_box(player).map_err(|_| Lost::NoMemory)?);
    if !polls {
        let procedure: Arc<_> = try_arc(|| player.came()).map_err(|_| Lost::NoMemory)?;
        // Without a line who plays looks now and then, and finds out all the same.
        let _ = interrupts.claim(procedure).map(|line| player.line.set(line));
    }
    Ok(player)
}

impl Loudspeaker {
    /// What the line chains to.
    fn came(&self) {
        self.output.borrow().acknowledge();
        let procedure = self.news.borrow().clone();
        procedure.into_iter().for_each(|procedure| procedure());
    }
}

fn lost(_: Lost) -> PlayerLost {
    PlayerLost
}

impl Player for Loudspeaker {
    fn rates(&self) -> &[u32] {
        &self.rates
    }

    fn limits(&self) -> (usize, usize) {
        (Output::<Controller>::RING_BYTES, Output::<Controller>::PERIODS_MOST)
    }

    fn play(&self, pace: Pace) -> Result<(), PlayerLost> {
        self.output.borrow_mut().play(pace).map_err(lost)
    }

    fn halt(&self) {
        // One that does not stop is found out when it is to play again.
        let _ = self.output.borrow_mut().halt();
    }

    fn write(&self, offset: usize, from: &[u8]) {
        self.output.borrow().write(offset, from);
    }

    fn position(&self) -> Result<usize, PlayerLost> {
        self.output.borrow().position().map_err(lost)
    }

    fn fetched_ahead(&self) -> usize {
        self.fetched_ahead
    }

    fn when_period(&self, procedure: Procedure) {
        *self.news.borrow_mut() = Some(procedure);
    }
}
