//! Templates: bytes assembled at build time, and where their holes are.

use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU64, Ordering};

use crate::draft::Draft;
use crate::hole::HoleKind;
use crate::optimize::Instruction;

/// Most occurrences of holes in one template.
const MOST_PLACES: usize = 24;
const NOT_KNOWN: u8 = u8::MAX;

/// What is known of a template but its bytes: its holes, and where they are. The places are found once, by the holes'
/// patterns, then remembered. Made by [`template!`](crate::template) only.
#[derive(Debug)]
pub struct Shape {
    pub name: &'static str,
    /// Names of the holes, in the order of the struct's fields.
    pub holes: &'static [&'static str],
    pub kinds: &'static [HoleKind],
    patterns: &'static [i32],
    known: AtomicU8,
    /// Number of the hole, and its offset in the lower 11 bits.
    places: [AtomicU16; MOST_PLACES],
    /// The template as one instruction, packed, once the optimizer has met it.
    row: AtomicU64,
}

/// The template's row is not known yet; there is none.
const NO_ROW_YET: u64 = 0;
const NO_ROW: u64 = u64::MAX;

impl Shape {
    pub const fn new(
        name: &'static str,
        holes: &'static [&'static str],
        kinds: &'static [HoleKind],
        patterns: &'static [i32],
    ) -> Shape {
        let places = [const { AtomicU16::new(0) }; MOST_PLACES];
        let (known, row) = (AtomicU8::new(NOT_KNOWN), AtomicU64::new(NO_ROW_YET));
        Shape { name, holes, kinds, patterns, known, places, row }
    }

    /// Hole number and offset of every hole field, once the template has been used.
    pub fn places(&self) -> impl Iterator<Item = (usize, usize)> {
        let known = match self.known.load(Ordering::Acquire) {
            NOT_KNOWN => 0,
            known => known as usize,
        };
        self.places[..known.min(MOST_PLACES)].iter().map(|place| {
            let packed = place.load(Ordering::Relaxed) as usize;
            (packed >> 11, packed & 0x7FF)
        })
    }

    /// The template, whose bytes these are, as if it were one instruction: where it has no holes, and nothing in it can be
    /// known before or after it. It is looked at once.
    pub(crate) fn row(&self, bytes: &[u8]) -> Option<Instruction> {
        if !self.holes.is_empty() {
            return None;
        }
        let mut row = self.row.load(Ordering::Relaxed);
        if row == NO_ROW_YET {
            row = Instruction::row(bytes).map_or(NO_ROW, |row| row.packed());
            self.row.store(row, Ordering::Relaxed);
        }
        (row != NO_ROW).then(|| Instruction::unpacked(row))
    }

    /// Looks at each place where a pattern can end: all have the same top four bits.
    #[cold]
    fn find_places(&self, bytes: &[u8]) {
        assert!(bytes.len() < 0x800 && self.holes.len() < 32, "template {} is too large", self.name);
        let (mut count, mut found) = (0, 0u32);
        for (offset, window) in bytes.windows(4).enumerate() {
            if window[3] & 0xF0 != 0x50 {
                continue;
            }
            let field = i32::from_le_bytes([window[0], window[1], window[2], window[3]]);
            if let Some(hole) = self.patterns.iter().position(|pattern| *pattern == field) {
                assert!(count < MOST_PLACES, "template {} has too many holes", self.name);
                self.places[count].store((hole << 11 | offset) as u16, Ordering::Relaxed);
                count += 1;
                found |= 1 << hole;
            }
        }
        let missing = found.trailing_ones() as usize;
        assert!(missing == self.holes.len(), "template {}: hole {} does not occur", self.name, self.holes[missing]);
        self.known.store(count as u8, Ordering::Release);
    }
}

/// One template. Made by [`template!`](crate::template) only.
#[derive(Clone, Copy)]
pub struct Template {
    pub bytes: &'static [u8],
    pub shape: &'static Shape,
}

impl Template {
    /// Hole number and offset of every hole field.
    ///
    /// # Panics
    /// When a declared hole does not occur or there are too many places: a mistake in the template
    /// that the golden test meets before a kernel does.
    pub fn places(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        if self.shape.known.load(Ordering::Acquire) == NOT_KNOWN {
            self.shape.find_places(self.bytes);
        }
        self.shape.places()
    }
}

/// Declares a template: its documentation, the struct with a typed field per hole, and its code.
///
/// In the code a hole is written `{name}`, and a jump to a hole [`jump!`](crate::jump), which is its
/// opcode (`.byte 0xe9`) followed by `.long {name}`. A line may be a `concat!`. Constants such as field
/// offsets follow after `where`.
///
/// ```ignore
/// template! {
///     /// Counts a call. In: nothing. Out: nothing. Clobbers: flags.
///     pub struct Count { counter: Abs32 }
///     "inc qword ptr [{counter}]",
/// }
/// let draft = Count { counter: Abs32(address) }.draft();
/// ```
#[macro_export]
macro_rules! template {
    (
        $(#[$meta:meta])*
        pub struct $name:ident { $($hole:ident : $kind:ident),* $(,)? }
        $(where { $($constant:ident = $value:expr),* $(,)? })?
        $($line:expr),+ $(,)?
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name { $(pub $hole: $crate::$kind),* }

        ::core::arch::global_asm!(
                ".pushsection .synth_templates, \"a\", @progbits",
                concat!(".globl synth_template_", stringify!($name), "_start"),
                concat!(".globl synth_template_", stringify!($name), "_end"),
                concat!("synth_template_", stringify!($name), "_start:"),
                $($line),+,
                concat!("synth_template_", stringify!($name), "_end:"),
                ".popsection",
                $($hole = const $crate::pattern(stringify!($hole)),)*
                $($($constant = const $value,)*)?
        );

        impl $name {
            #[allow(unsafe_code, reason = "the bounds of the template are linker symbols")]
            pub fn template() -> $crate::Template {
                static SHAPE: $crate::Shape = $crate::Shape::new(
                    stringify!($name),
                    &[$(stringify!($hole)),*],
                    &[$($crate::HoleKind::$kind),*],
                    &[$($crate::pattern(stringify!($hole))),*],
                );
                unsafe extern "C" {
                    #[link_name = concat!("synth_template_", stringify!($name), "_start")]
                    static START: u8;
                    #[link_name = concat!("synth_template_", stringify!($name), "_end")]
                    static END: u8;
                }
                let (start, end) = (&raw const START, &raw const END);
                let length = end as usize - start as usize;
                $crate::Template {
                    // SAFETY: 1. both symbols bound one read-only block that the assembler emitted.
                    // 2. It lives as long as the program.
                    bytes: unsafe { ::core::slice::from_raw_parts(start, length) },
                    shape: &SHAPE,
                }
            }

            /// The template with its holes filled.
            pub fn draft(self) -> $crate::Draft {
                let mut draft = $crate::Draft::for_one(&Self::template());
                draft.append(&Self::template(), &[$(self.$hole.into()),*]);
                draft
            }

            /// Appends the filled template to `draft` (collapse by concatenation, rule R7).
            pub fn append_to(self, draft: &mut $crate::Draft) {
                draft.append(&Self::template(), &[$(self.$hole.into()),*]);
            }
        }

        impl $crate::Paste for $name {
            fn paste(self, draft: &mut $crate::Draft) {
                self.append_to(draft);
            }
        }

        impl $crate::MadeOf for $name {
            fn each_template(see: &mut dyn FnMut($crate::Template)) {
                see(Self::template());
            }
        }
    };
}

/// A jump or call to a hole of a template: `jump!(jne slow)`. The assembler would choose a form for a target that it knows.
#[macro_export]
macro_rules! jump {
    (call $to:ident) => { $crate::jump!("0xe8" $to) };
    (jmp $to:ident) => { $crate::jump!("0xe9" $to) };
    (jb $to:ident) => { $crate::jump!("0x0f, 0x82" $to) };
    (jae $to:ident) => { $crate::jump!("0x0f, 0x83" $to) };
    (je $to:ident) => { $crate::jump!("0x0f, 0x84" $to) };
    (jne $to:ident) => { $crate::jump!("0x0f, 0x85" $to) };
    (jbe $to:ident) => { $crate::jump!("0x0f, 0x86" $to) };
    (ja $to:ident) => { $crate::jump!("0x0f, 0x87" $to) };
    (js $to:ident) => { $crate::jump!("0x0f, 0x88" $to) };
    (jg $to:ident) => { $crate::jump!("0x0f, 0x8f" $to) };
    ($opcode:literal $to:ident) => { concat!(".byte ", $opcode, "\n.long {", stringify!($to), "}") };
}

/// Something that can be appended to a draft: a template with its holes filled.
pub trait Paste {
    fn paste(self, draft: &mut Draft);
}

/// What may be absent: nothing is appended then.
impl<P: Paste> Paste for Option<P> {
    fn paste(self, draft: &mut Draft) {
        if let Some(fragment) = self {
            fragment.paste(draft);
        }
    }
}

/// Whatever a procedure appends.
impl Paste for &dyn Fn(&mut Draft) {
    fn paste(self, draft: &mut Draft) {
        self(draft);
    }
}

/// Something that is made of templates: one of them, or a list of fragments.
pub trait MadeOf {
    fn each_template(see: &mut dyn FnMut(Template));
}

/// A template without holes.
impl Paste for Template {
    fn paste(self, draft: &mut Draft) {
        draft.append(&self, &[]);
    }
}

#[cfg(test)]
mod tests {
    #![allow(unsafe_code, reason = "the template macro names linker symbols")]
    use alloc::vec::Vec;

    use crate::{Abs32, Draft, FillError, HoleKind, HoleValue, Imm32, Label, Target};

    template! {
        /// A test template.
        pub struct Probe { counter: Abs32, amount: Imm32, next: Target }
        where { OFFSET = 8 }
        "add dword ptr [{counter}], {amount}",
        "mov rax, qword ptr [rdi + {OFFSET}]",
        ".byte 0xe9",
        ".long {next}",
    }

    #[test]
    fn holes_are_found_and_filled() {
        let draft =
            Probe { counter: Abs32(0xFFFF_FFFF_A000_0010), amount: Imm32(7), next: Target::Address(0x2000) }.draft();
        let bytes = draft.bind(0x1000).unwrap().bytes;
        assert_eq!(&bytes[..2], [0x81, 0x04]);
        assert_eq!(&bytes[3..7], 0xA000_0010u32.to_le_bytes());
        assert_eq!(&bytes[7..11], 7u32.to_le_bytes());
        assert_eq!(*bytes.last_chunk::<4>().unwrap(), (0x2000i32 - 0x1000 - bytes.len() as i32).to_le_bytes());
    }

    #[test]
    fn a_jump_finds_its_label_in_the_same_draft() {
        let mut draft = Draft::new();
        let probe = Probe { counter: Abs32(0x10), amount: Imm32(7), next: Target::Label(Label(3)) };
        probe.append_to(&mut draft);
        let length = draft.len();
        probe.append_to(&mut draft);
        draft.place(Label(3));
        probe.append_to(&mut draft);
        let bytes = draft.bind(0x1000).unwrap().bytes;
        assert_eq!(bytes[length - 4..length], (length as u32).to_le_bytes());
        assert_eq!(bytes[2 * length - 4..2 * length], 0u32.to_le_bytes());
    }

    #[test]
    fn what_was_filled_in_is_read_back_from_the_code() {
        let mut draft = Draft::new();
        let probe = |next| Probe { counter: Abs32(0xFFFF_FFFF_A000_0010), amount: Imm32(0xF000_0007), next };
        draft.place(Label(1));
        probe(Target::Address(0x40)).append_to(&mut draft);
        probe(Target::Label(Label(1))).append_to(&mut draft);
        let bound = draft.bind(0x1000).unwrap();
        let read = |origin: usize| bound.origins[origin].holes(0x1000, &bound.bytes).collect::<Vec<_>>();
        let value = |kind, value| HoleValue { kind, value };
        let counter = ("counter", value(HoleKind::Abs32, 0xFFFF_FFFF_A000_0010));
        let amount = ("amount", value(HoleKind::Imm32, 0xF000_0007));
        assert_eq!(read(0), [counter, amount, ("next", value(HoleKind::Target, 0x40))]);
        assert_eq!(read(1), [counter, amount, ("next", value(HoleKind::Label, 0))]);
    }

    #[test]
    fn a_value_that_does_not_fit_is_refused() {
        let probe = Probe { counter: Abs32(1 << 40), amount: Imm32(7), next: Target::Address(0x2000) };
        let error = probe.draft().bind(0x1000).map(|_| ()).unwrap_err();
        assert_eq!(error, FillError::DoesNotFit("Probe", "counter", 1 << 40));
        let probe = Probe { counter: Abs32(0x10), amount: Imm32(7), next: Target::Address(1 << 40) };
        assert!(probe.draft().bind(0x1000).is_err());
    }
}
