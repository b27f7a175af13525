//! One channel: a ring, its two counts, and what a place holds.

use alloc::boxed::Box;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use abi::Errno;
use machine::{KernelCell, try_collect};

/// Places in a ring: as many as 16 bits can name, so that handlers need no mask. 1.5 seconds.
pub const RING_PLACES: u32 = 1 << 16;

/// Places that the A/D converter's readers see at once: an element of the buffered queue (S-43).
pub const ELEMENT_PLACES: u32 = 8;

/// No place: nobody waits for one.
const NOBODY: u32 = u32::MAX;

/// The server's channels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Channel {
    CdIn,
    AdIn,
    DaOut,
}

impl Channel {
    pub const ALL: [Channel; 3] = [Channel::CdIn, Channel::AdIn, Channel::DaOut];
}

/// What one place of a ring holds, and which way it goes. The numbers are known to the generic handler in assembly.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// Two 16-bit samples from the CD.
    Stereo = 1,
    /// One 16-bit sample from the A/D converter.
    Linear = 2,
    /// The same in 8 bits (ITU-T G.711).
    MuLaw = 3,
    /// Two 16-bit samples for the D/A converter.
    StereoOut = 4,
    /// Two 16-bit samples from the A/D converter.
    StereoIn = 5,
}

impl Format {
    /// Bytes of a place.
    pub fn bytes(self) -> usize {
        match self {
            Format::Stereo | Format::StereoOut | Format::StereoIn => 4,
            Format::Linear => 2,
            Format::MuLaw => 1,
        }
    }

    fn of(number: u32) -> Option<Format> {
        let all = [Format::Stereo, Format::Linear, Format::MuLaw, Format::StereoOut, Format::StereoIn];
        all.into_iter().find(|format| *format as u32 == number)
    }

    /// Places that become visible at once.
    pub fn places_at_once(self) -> u32 {
        match self {
            Format::Stereo | Format::StereoOut => 1,
            Format::Linear | Format::MuLaw | Format::StereoIn => ELEMENT_PLACES,
        }
    }
}

/// Which channels are active, and in which format.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Activity([Option<Format>; 3]);

impl Activity {
    pub fn format(self, channel: Channel) -> Option<Format> {
        self.0[channel as usize]
    }

    pub fn with(mut self, channel: Channel, format: Option<Format>) -> Activity {
        self.0[channel as usize] = format;
        self
    }

    pub fn is_silent(self) -> bool {
        self.0 == [None; 3]
    }

    /// Whether `channel` is the only one.
    pub fn is_alone(self, channel: Channel) -> bool {
        self.with(channel, None).is_silent()
    }
}

/// The words of a channel that handlers know by address.
#[repr(C)]
pub struct ChannelWords {
    /// A [`Format`], or 0 while the channel is off.
    pub format: AtomicU32,
    /// Places filled so far. Written by the handler of an input, by the program's side of an output.
    pub head: AtomicU32,
    /// Places taken so far. Written by the other side.
    pub tail: AtomicU32,
    /// Places that were written over before anybody had read them.
    lost: AtomicU32,
    /// The device's count when the channel was switched on.
    pub started: AtomicU32,
    /// The place whose use chains a signal to who waits; [`NOBODY`].
    pub wake_at: AtomicU32,
    /// Such a signal is chained.
    pub chained: AtomicU32,
    /// Address of the ring, and of the table from 14-bit samples to µ-law.
    pub ring_at: AtomicU64,
    pub table_at: AtomicU64,
    /// The element in the making, of a handler with eight inserts.
    pub element: [AtomicU64; 4],
    ring: KernelCell<Option<Memory>>,
}

impl Default for ChannelWords {
    fn default() -> ChannelWords {
        ChannelWords {
            format: AtomicU32::new(0),
            head: AtomicU32::new(0),
            tail: AtomicU32::new(0),
            lost: AtomicU32::new(0),
            started: AtomicU32::new(0),
            wake_at: AtomicU32::new(NOBODY),
            chained: AtomicU32::new(0),
            ring_at: AtomicU64::new(0),
            table_at: AtomicU64::new(0),
            element: Default::default(),
            ring: KernelCell::new(None),
        }
    }
}

/// Four-byte places, and the table of µ-law behind them. Smaller places are packed.
struct Memory {
    places: Box<[AtomicU32]>,
    table: Box<[u8]>,
}

const TABLE_BYTES: usize = 1 << 14;

fn memory() -> Result<Memory, Errno> {
    let places = try_collect((0..RING_PLACES).map(|_| AtomicU32::new(0)))?;
    let table = try_collect((0..TABLE_BYTES).map(|sample| mu_law((sample << 2) as u16 as i16)))?;
    Ok(Memory { places: places.into_boxed_slice(), table: table.into_boxed_slice() })
}

impl Memory {
    /// The word that holds a place, how far it is shifted there, and the mask of a place.
    fn word(&self, count: u32, format: Format) -> (&AtomicU32, usize, u32) {
        let byte = (count % RING_PLACES) as usize * format.bytes();
        (&self.places[byte / 4], byte % 4 * 8, u32::MAX >> (32 - format.bytes() * 8))
    }

    fn get(&self, count: u32, format: Format) -> u32 {
        let (word, shift, mask) = self.word(count, format);
        word.load(Ordering::Relaxed) >> shift & mask
    }

    fn put(&self, count: u32, format: Format, value: u32) {
        let (word, shift, mask) = self.word(count, format);
        let others = word.load(Ordering::Relaxed) & !(mask << shift);
        word.store(others | (value & mask) << shift, Ordering::Relaxed);
    }
}

impl ChannelWords {
    /// Memory for the ring, unless it is there.
    pub(super) fn allocate(&self) -> Result<(), Errno> {
        if self.ring.borrow().is_none() {
            let memory = memory()?;
            self.ring_at.store(memory.places.as_ptr() as u64, Ordering::Relaxed);
            self.table_at.store(memory.table.as_ptr() as u64, Ordering::Relaxed);
            *self.ring.borrow_mut() = Some(memory);
        }
        Ok(())
    }

    /// Empties the ring; `device`: the device's count.
    pub(super) fn restart(&self, device: u32) {
        self.head.store(0, Ordering::Relaxed);
        self.tail.store(0, Ordering::Relaxed);
        self.lost.store(0, Ordering::Relaxed);
        self.wake_at.store(NOBODY, Ordering::Relaxed);
        self.started.store(device, Ordering::Relaxed);
    }

    /// Gives an output all the samples that there is room for.
    pub(super) fn fill_up(&self, format: Option<Format>) {
        if format == Some(Format::StereoOut) {
            self.head.store(self.tail.load(Ordering::Relaxed).wrapping_add(RING_PLACES), Ordering::Relaxed);
        }
    }

    pub(super) fn set_format(&self, format: Option<Format>) {
        self.format.store(format.map_or(0, |format| format as u32), Ordering::Relaxed);
    }

    /// Places that are filled and not taken.
    pub fn fill(&self) -> u32 {
        let format = Format::of(self.format.load(Ordering::Relaxed));
        format
            .map_or(self.head.load(Ordering::Acquire), |format| self.visible(format))
            .wrapping_sub(self.tail.load(Ordering::Acquire))
    }

    /// Places filled so far, as far as the reader may see them: whole elements.
    fn visible(&self, format: Format) -> u32 {
        self.head.load(Ordering::Acquire) & !(format.places_at_once() - 1)
    }

    /// Takes the first `parts` places out of the element in the making: from now on each goes into the ring at once.
    pub(super) fn unpack(&self, parts: u32) {
        let Some(format) = Format::of(self.format.load(Ordering::Relaxed)) else { return };
        let head = self.head.load(Ordering::Relaxed);
        for part in 0..parts {
            let (word, shift) = self.part(part, format);
            self.put(head.wrapping_add(part), format, (word.load(Ordering::Relaxed) >> shift) as u32);
        }
        self.head.store(head.wrapping_add(parts), Ordering::Relaxed);
    }

    /// Puts the places behind the last whole element into the one in the making; returns how many.
    pub(super) fn pack(&self) -> u32 {
        let Some(format) = Format::of(self.format.load(Ordering::Relaxed)) else { return 0 };
        let head = self.head.load(Ordering::Relaxed);
        let first = self.visible(format);
        for count in first..head {
            let (word, shift) = self.part(count - first, format);
            let mask = u64::MAX >> (64 - format.bytes() * 8) << shift;
            let others = word.load(Ordering::Relaxed) & !mask;
            word.store(others | u64::from(self.get(count, format)) << shift & mask, Ordering::Relaxed);
        }
        self.head.store(first, Ordering::Relaxed);
        head - first
    }

    /// The word of the element that holds a part, and how far it is shifted there.
    fn part(&self, part: u32, format: Format) -> (&AtomicU64, usize) {
        let byte = part as usize * format.bytes();
        (&self.element[byte / 8], byte % 8 * 8)
    }

    /// Interrupts since an output was switched on that found no sample; `device`: the device's count.
    pub fn dry(&self, device: u32) -> u32 {
        let interrupts = device.wrapping_sub(self.started.load(Ordering::Relaxed));
        interrupts.wrapping_sub(self.tail.load(Ordering::Relaxed))
    }

    /// One interrupt for this channel, whatever its format; true if a signal is to be chained.
    pub(super) fn serve(&self, sample: u32, analog_out: &AtomicU32) -> bool {
        let Some(format) = Format::of(self.format.load(Ordering::Relaxed)) else { return false };
        if format == Format::StereoOut {
            if self.fill() > 0 {
                let tail = self.tail.load(Ordering::Relaxed);
                analog_out.store(self.get(tail, format), Ordering::Relaxed);
                self.tail.store(tail.wrapping_add(1), Ordering::Relaxed);
                return self.chain_at(tail);
            }
            return self.chain_at(self.tail.load(Ordering::Relaxed));
        }
        let head = self.head.load(Ordering::Relaxed);
        let value = if format == Format::MuLaw { mu_law(sample as u16 as i16).into() } else { sample };
        self.put(head, format, value);
        self.head.store(head.wrapping_add(1), Ordering::Relaxed);
        self.chain_at(head)
    }

    fn chain_at(&self, count: u32) -> bool {
        let is_awaited = count % RING_PLACES == self.wake_at.load(Ordering::Relaxed);
        if is_awaited {
            self.chained.store(1, Ordering::Relaxed);
        }
        is_awaited
    }

    /// Names the place that somebody waits for, `places` further; returns places used so far.
    pub(super) fn await_place(&self, format: Format, places: u32) -> u32 {
        let start = self.used(format);
        // Both are the ends of elements.
        let end = start.wrapping_add(places.next_multiple_of(format.places_at_once()));
        self.wake_at.store(end.wrapping_sub(1) % RING_PLACES, Ordering::Release);
        start
    }

    /// Places that the handler has filled, as far as they can be seen, or taken so far.
    pub fn used(&self, format: Format) -> u32 {
        if format == Format::StereoOut { self.tail.load(Ordering::Acquire) } else { self.visible(format) }
    }

    /// Not 0: a signal is chained.
    #[inline]
    pub fn chained(&self) -> u32 {
        self.chained.load(Ordering::Relaxed)
    }

    /// Takes the chained signal back.
    pub fn take_signal(&self) -> bool {
        let is_chained = self.chained() != 0 && self.chained.swap(0, Ordering::Relaxed) != 0;
        if is_chained {
            self.wake_at.store(NOBODY, Ordering::Relaxed);
        }
        is_chained
    }

    pub(super) fn is_awaited(&self) -> bool {
        self.wake_at.load(Ordering::Relaxed) != NOBODY
    }

    fn get(&self, count: u32, format: Format) -> u32 {
        self.ring.borrow().as_ref().map_or(0, |memory| memory.get(count, format))
    }

    fn put(&self, count: u32, format: Format, value: u32) {
        if let Some(memory) = &*self.ring.borrow() {
            memory.put(count, format, value);
        }
    }

    /// Places that were lost because the reader was late.
    pub fn lost(&self) -> u32 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Takes places out of an input's ring, as bytes; returns how many bytes. The handler goes on meanwhile: places that it
    /// has written over during the copy are lost, and the copy is made again from what is there then.
    pub fn take(&self, format: Format, into: &mut [u8]) -> usize {
        const TRIES_MOST: u32 = 8;
        for _ in 0..TRIES_MOST {
            let head = self.head.load(Ordering::Acquire);
            self.skip_lost(head);
            let tail = self.tail.load(Ordering::Relaxed);
            let count = (self.visible(format).wrapping_sub(tail) as usize).min(into.len() / format.bytes());
            let into = &mut into[..count * format.bytes()];
            self.copy(tail, format, into);
            if self.head.load(Ordering::Acquire).wrapping_sub(tail) <= RING_PLACES {
                self.tail.store(tail.wrapping_add(count as u32), Ordering::Release);
                return into.len();
            }
        }
        0
    }

    /// Counts what the handler has written over.
    fn skip_lost(&self, head: u32) {
        let tail = self.tail.load(Ordering::Relaxed);
        if head.wrapping_sub(tail) > RING_PLACES {
            let first = head.wrapping_sub(RING_PLACES);
            self.lost.store(self.lost().wrapping_add(first.wrapping_sub(tail)), Ordering::Relaxed);
            self.tail.store(first, Ordering::Relaxed);
        }
    }

    /// Each size of a place has a loop of its own.
    fn copy(&self, from: u32, format: Format, into: &mut [u8]) {
        let ring = self.ring.borrow();
        let Some(memory) = &*ring else { return };
        let places = (0..).map(|at: u32| memory.get(from.wrapping_add(at), format));
        match format.bytes() {
            4 => into.chunks_exact_mut(4).zip(places).for_each(|(to, place)| to.copy_from_slice(&place.to_le_bytes())),
            2 => {
                let places = places.map(|place| (place as u16).to_le_bytes());
                into.chunks_exact_mut(2).zip(places).for_each(|(to, place)| to.copy_from_slice(&place));
            }
            _ => into.iter_mut().zip(places).for_each(|(to, place)| *to = place as u8),
        }
    }

    /// Puts samples into an output's ring; returns how many bytes had room.
    pub fn add(&self, from: &[u8]) -> usize {
        let format = Format::StereoOut;
        let head = self.head.load(Ordering::Relaxed);
        let count = ((RING_PLACES - self.fill()) as usize).min(from.len() / format.bytes());
        let ring = self.ring.borrow();
        let Some(memory) = &*ring else { return 0 };
        for (at, frame) in from.chunks_exact(format.bytes()).take(count).enumerate() {
            let value = frame.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
            memory.put(head.wrapping_add(at as u32), format, value);
        }
        self.head.store(head.wrapping_add(count as u32), Ordering::Release);
        count * format.bytes()
    }
}

/// A sample in 8 bits: sign, three bits of exponent, four of fraction, all inverted (ITU-T G.711, µ-law).
pub fn mu_law(sample: i16) -> u8 {
    const BIAS: u32 = 33;
    const MOST: u32 = 8158;
    // Of the 16 bits, 14 count.
    let value = i32::from(sample) >> 2;
    let sign = if value < 0 { 0x80 } else { 0 };
    let magnitude = value.unsigned_abs().min(MOST) + BIAS;
    let exponent = 26 - magnitude.leading_zeros();
    let fraction = magnitude >> (exponent + 1) & 15;
    !(sign | (exponent << 4) as u8 | fraction as u8)
}
