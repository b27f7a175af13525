//! Templates: bytes assembled at build time, and where their holes are.

use core::sync::atomic::{AtomicU8, AtomicU16, Ordering};

use crate::hole::pattern;

/// Most occurrences of holes in one template.
const MOST_PLACES: usize = 24;

/// Where a template's holes are: found once, by their patterns, then remembered.
pub struct Positions {
    known: AtomicU8,
    places: [AtomicU16; MOST_PLACES],
}

impl Positions {
    pub const fn new() -> Positions {
        Positions { known: AtomicU8::new(u8::MAX), places: [const { AtomicU16::new(0) }; MOST_PLACES] }
    }
}

impl Default for Positions {
    fn default() -> Positions {
        Positions::new()
    }
}

/// One template. Made by [`template!`](crate::template) only.
#[derive(Clone, Copy)]
pub struct Template {
    pub name: &'static str,
    pub bytes: &'static [u8],
    /// Names of the holes, in the order of the struct's fields.
    pub holes: &'static [&'static str],
    pub positions: &'static Positions,
}

impl Template {
    /// Calls `each(hole index, offset)` for every hole field.
    ///
    /// # Panics
    /// When a declared hole does not occur or there are too many places: a mistake in the template
    /// that the golden test meets before a kernel does.
    pub fn each_place(&self, mut each: impl FnMut(usize, usize)) {
        if self.positions.known.load(Ordering::Acquire) == u8::MAX {
            self.find_places();
        }
        let known = self.positions.known.load(Ordering::Acquire) as usize;
        for place in &self.positions.places[..known] {
            let packed = place.load(Ordering::Relaxed) as usize;
            each(packed >> 11, packed & 0x7FF);
        }
    }

    fn find_places(&self) {
        assert!(self.bytes.len() < 0x800 && self.holes.len() < 32, "template {} is too large", self.name);
        let mut count = 0;
        for (hole, name) in self.holes.iter().enumerate() {
            let wanted = pattern(name).to_le_bytes();
            let before = count;
            for (offset, window) in self.bytes.windows(4).enumerate() {
                if window == wanted {
                    assert!(count < MOST_PLACES, "template {} has too many holes", self.name);
                    self.positions.places[count].store((hole << 11 | offset) as u16, Ordering::Relaxed);
                    count += 1;
                }
            }
            assert!(count > before, "template {}: hole {} does not occur", self.name, name);
        }
        self.positions.known.store(count as u8, Ordering::Release);
    }
}

/// Declares a template: its documentation, the struct with a typed field per hole, and its code.
///
/// In the code a hole is written `{name}`; a jump to a hole is `.byte 0xe9` (or `0xe8`, or
/// `0x0f, 0x8c`) followed by `.long {name}`. Constants such as field offsets follow after `where`.
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
        $($line:literal),+ $(,)?
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
                static POSITIONS: $crate::Positions = $crate::Positions::new();
                unsafe extern "C" {
                    #[link_name = concat!("synth_template_", stringify!($name), "_start")]
                    static START: u8;
                    #[link_name = concat!("synth_template_", stringify!($name), "_end")]
                    static END: u8;
                }
                let (start, end) = (&raw const START, &raw const END);
                let length = end as usize - start as usize;
                $crate::Template {
                    name: stringify!($name),
                    // SAFETY: 1. both symbols bound one read-only block that the assembler emitted.
                    // 2. It lives as long as the program.
                    bytes: unsafe { ::core::slice::from_raw_parts(start, length) },
                    holes: &[$(stringify!($hole)),*],
                    positions: &POSITIONS,
                }
            }

            /// The template with its holes filled.
            pub fn draft(self) -> $crate::Draft {
                let mut draft = $crate::Draft::new();
                draft.append(&Self::template(), &[$(self.$hole.into()),*]);
                draft
            }

            /// Appends the filled template to `draft` (collapse by concatenation, rule R7).
            pub fn append_to(self, draft: &mut $crate::Draft) {
                draft.append(&Self::template(), &[$(self.$hole.into()),*]);
            }
        }
    };
}

#[cfg(test)]
mod tests {
    #![allow(unsafe_code, reason = "the template macro names linker symbols")]
    use crate::{Abs32, Draft, Imm32, Label, Target};

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
        let mut draft =
            Probe { counter: Abs32(0xFFFF_FFFF_A000_0010), amount: Imm32(7), next: Target::Address(0x2000) }.draft();
        let bytes = draft.bind(0x1000).unwrap().to_vec();
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
        let bytes = draft.bind(0x1000).unwrap();
        assert_eq!(bytes[length - 4..length], (length as u32).to_le_bytes());
        assert_eq!(*bytes.last_chunk::<4>().unwrap(), 0u32.to_le_bytes());
    }
}
