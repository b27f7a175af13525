//! The instructions of the language, a template each. Registers of the generated code:
//!
//! ```text
//!   rsi  next input byte      rdi  where the next emitted byte goes     eax  the byte taken last
//!   rdx  end of the input     r8   where a state stops for lack of room  ecx, r9, r10  scratch
//!   r11, r14, r15  the machine's hottest words
//! ```
//! `to`, `pause`, `no` are distances from the end of the template to another place of the same code.
#![allow(unsafe_code, reason = "the template macro names linker symbols")]

use alloc::vec::Vec;

use synth::{Template, jump, template};

template! {
    /// Entry. Goes on in the state that the word holds, a code address. Cost: 1.
    pub struct MachineEnter { state: Abs32 }
    "jmp qword ptr [{state}]",
}

template! {
    /// A state: is there input? Cost: 2.
    pub struct TakeInput { pause: Imm32 }
    "cmp rsi, rdx",
    jump!(jae pause),
}

template! {
    /// A state of a machine that emits: is there room for what one byte may become? Cost: 2.
    pub struct TakeRoom { pause: Imm32 }
    "cmp rdi, r8",
    jump!(jae pause),
}

template! {
    /// Takes a byte. Cost: 2.
    pub struct TakeByte {}
    "movzx eax, byte ptr [rsi]",
    "inc rsi",
}

template! {
    /// Falls through for bytes from `first` to `first + span` (`less` is minus `first`). Cost: 3.
    pub struct InRange { less: Imm32, span: Imm32, no: Imm32 }
    "lea ecx, [rax + {less}]",
    "cmp ecx, {span}",
    jump!(ja no),
}

template! {
    /// Falls through for bytes from `bound` on. Cost: 2.
    pub struct FromByte { bound: Imm32, no: Imm32 }
    "cmp eax, {bound}",
    jump!(jb no),
}

template! {
    /// Goes on elsewhere. Cost: 1.
    pub struct GoTo { to: Imm32 }
    jump!(jmp to),
}

template! {
    /// The address where the machine goes on later. Cost: 1.
    pub struct PauseAt { to: Imm32 }
    ".byte 0x48, 0x8d, 0x0d", ".long {to}",
}

template! {
    /// Leaves: no input, or no room. Out: eax = 0. Cost: 3.
    pub struct Pause { state: Abs32 }
    "mov qword ptr [{state}], rcx",
    "xor eax, eax",
    "ret",
}

template! {
    /// Leaves for something that the machine cannot do. Out: eax = its number. Cost: 4.
    pub struct LeaveOutside { state: Abs32, input: Abs32, number: Imm32 }
    "mov dword ptr [{input}], eax",
    "mov qword ptr [{state}], rcx",
    "mov eax, {number}",
    "ret",
}

template! {
    /// Comes back from there. Cost: 1.
    pub struct BackInside { input: Abs32 }
    "mov eax, dword ptr [{input}]",
}

template! {
    /// Emits the input. Cost: 2.
    pub struct EmitInput {}
    "mov byte ptr [rdi], al",
    "inc rdi",
}

template! {
    /// Emits r9b. Cost: 2.
    pub struct EmitValue {}
    "mov byte ptr [rdi], r9b",
    "inc rdi",
}

template! {
    /// r9 = the input with some bits changed. Cost: 2.
    pub struct LoadFlipped { mask: Imm32 }
    "mov r9d, eax",
    "xor r9d, {mask}",
}

template! {
    /// r9 = the input. Cost: 1.
    pub struct LoadInput {}
    "mov r9d, eax",
}

template! {
    /// r9 = a constant. Cost: 1.
    pub struct LoadConst { byte: Imm32 }
    "mov r9d, {byte}",
}

template! {
    /// Cost: 1.
    pub struct SetWord { word: Abs32, number: Imm32 }
    "mov dword ptr [{word}], {number}",
}

template! {
    /// Cost: 1.
    pub struct AddNumber { word: Abs32, number: Imm32 }
    "add dword ptr [{word}], {number}",
}

template! {
    /// Cost: 1.
    pub struct AddOne { word: Abs32 }
    "inc dword ptr [{word}]",
}

template! {
    /// Cost: 1.
    pub struct OrNumber { word: Abs32, number: Imm32 }
    "or dword ptr [{word}], {number}",
}

template! {
    /// Cost: 2.
    pub struct MultiplyWord { word: Abs32, number: Imm32 }
    "imul ecx, dword ptr [{word}], {number}",
    "mov dword ptr [{word}], ecx",
}

template! {
    /// Cost: 2.
    pub struct MoveWord { word: Abs32, other: Abs32 }
    "mov ecx, dword ptr [{other}]",
    "mov dword ptr [{word}], ecx",
}

template! {
    /// Cost: 2.
    pub struct AddWords { word: Abs32, other: Abs32 }
    "mov ecx, dword ptr [{other}]",
    "add dword ptr [{word}], ecx",
}

template! {
    /// Cost: 2.
    pub struct SubtractWords { word: Abs32, other: Abs32 }
    "mov ecx, dword ptr [{other}]",
    "sub dword ptr [{word}], ecx",
}

template! {
    /// Appends the digit in r9. Cost: 6.
    pub struct AppendDigit { word: Abs32, most: Imm32 }
    "imul ecx, dword ptr [{word}], 10",
    "lea ecx, [rcx + r9 - 48]",
    "mov r10d, {most}",
    "cmp ecx, r10d",
    "cmova ecx, r10d",
    "mov dword ptr [{word}], ecx",
}

template! {
    /// Stores the input in an array. Cost: 3.
    pub struct StoreInput { array: Abs32, index: Abs32, mask: Imm32 }
    "mov ecx, dword ptr [{index}]",
    "and ecx, {mask}",
    "mov byte ptr [rcx + {array}], al",
}

template! {
    /// Stores r9b in an array. Cost: 3.
    pub struct StoreValue { array: Abs32, index: Abs32, mask: Imm32 }
    "mov ecx, dword ptr [{index}]",
    "and ecx, {mask}",
    "mov byte ptr [rcx + {array}], r9b",
}

template! {
    /// Adds the bits of a word to the byte in r9. Cost: 1.
    pub struct AddAbove { above: Abs32 }
    "or r9d, dword ptr [{above}]",
}

template! {
    /// Stores r9w in an array of cells. Cost: 3.
    pub struct StoreCell { array: Abs32, index: Abs32, mask: Imm32 }
    "mov ecx, dword ptr [{index}]",
    "and ecx, {mask}",
    "mov word ptr [rcx*2 + {array}], r9w",
}

template! {
    /// Two cells in a word become four in r9. Cost: 4.
    pub struct LoadBlank { cells: Abs32 }
    "mov r9d, dword ptr [{cells}]",
    "mov r10, r9",
    "shl r10, 32",
    "or r9, r10",
}

template! {
    /// Stores r9 in sixteen cells of an array. Cost: 8.
    pub struct BlankCells { array: Abs32, index: Abs32, mask: Imm32 }
    "mov ecx, dword ptr [{index}]",
    "and ecx, {mask}",
    "and ecx, -16",
    "lea rcx, [rcx*2 + {array}]",
    "mov qword ptr [rcx], r9",
    "mov qword ptr [rcx + 8], r9",
    "mov qword ptr [rcx + 16], r9",
    "mov qword ptr [rcx + 24], r9",
}

template! {
    /// Sets a bit of an array. Cost: 3.
    pub struct MarkBit { array: Abs32, index: Abs32, mask: Imm32 }
    "mov ecx, dword ptr [{index}]",
    "and ecx, {mask}",
    "bts dword ptr [{array}], ecx",
}

template! {
    /// Loads from an array into a word. Cost: 4.
    pub struct LoadArray { word: Abs32, array: Abs32, index: Abs32, mask: Imm32 }
    "mov ecx, dword ptr [{index}]",
    "and ecx, {mask}",
    "movzx ecx, byte ptr [rcx + {array}]",
    "mov dword ptr [{word}], ecx",
}

template! {
    /// Falls through if equal. Cost: 2.
    pub struct IfIs { word: Abs32, number: Imm32, no: Imm32 }
    "cmp dword ptr [{word}], {number}",
    jump!(jne no),
}

template! {
    /// Falls through if below. Cost: 2.
    pub struct IfBelow { word: Abs32, number: Imm32, no: Imm32 }
    "cmp dword ptr [{word}], {number}",
    jump!(jae no),
}

template! {
    /// Falls through if equal. Cost: 3.
    pub struct IfSame { word: Abs32, other: Abs32, no: Imm32 }
    "mov ecx, dword ptr [{word}]",
    "cmp ecx, dword ptr [{other}]",
    jump!(jne no),
}

template! {
    /// Falls through if not equal. Cost: 3.
    pub struct IfDiffer { word: Abs32, other: Abs32, no: Imm32 }
    "mov ecx, dword ptr [{word}]",
    "cmp ecx, dword ptr [{other}]",
    jump!(je no),
}

template! {
    /// Falls through if below. Cost: 3.
    pub struct IfBelowWord { word: Abs32, other: Abs32, no: Imm32 }
    "mov ecx, dword ptr [{word}]",
    "cmp ecx, dword ptr [{other}]",
    jump!(jae no),
}

template! {
    /// Falls through if the word's low byte is in the set. Cost: 3.
    pub struct IfIn { word: Abs32, set: Abs32, no: Imm32 }
    "movzx ecx, byte ptr [{word}]",
    "bt dword ptr [{set}], ecx",
    jump!(jae no),
}

/// The templates of one register that a hot word lives in.
pub(crate) struct Hot {
    pub fill: fn() -> Template,
    pub spill: fn() -> Template,
    pub add_one: fn() -> Template,
    pub if_is: fn() -> Template,
    pub if_below: fn() -> Template,
    pub store_input: fn() -> Template,
    pub store_cell: fn() -> Template,
}

/// Templates that keep a word in `register`.
macro_rules! hot {
    (
        $hot:ident, $register:literal,
        $Fill:ident $Spill:ident $AddOne:ident $IfIs:ident $IfBelow:ident $StoreInput:ident $StoreCell:ident
    ) => {
        template! {
            /// A hot word into its register. Cost: 1.
            pub struct $Fill { word: Abs32 }
            concat!("mov ", $register, ", dword ptr [{word}]"),
        }

        template! {
            /// And back into memory. Cost: 1.
            pub struct $Spill { word: Abs32 }
            concat!("mov dword ptr [{word}], ", $register),
        }

        template! {
            /// Cost: 1.
            pub struct $AddOne {}
            concat!("inc ", $register),
        }

        template! {
            /// Falls through if equal. Cost: 2.
            pub struct $IfIs { number: Imm32, no: Imm32 }
            concat!("cmp ", $register, ", {number}"),
            jump!(jne no),
        }

        template! {
            /// Falls through if below. Cost: 2.
            pub struct $IfBelow { number: Imm32, no: Imm32 }
            concat!("cmp ", $register, ", {number}"),
            jump!(jae no),
        }

        template! {
            /// Stores the input in an array. Cost: 3.
            pub struct $StoreInput { array: Abs32, mask: Imm32 }
            concat!("mov ecx, ", $register),
            "and ecx, {mask}",
            "mov byte ptr [rcx + {array}], al",
        }

        template! {
            /// Stores the input in an array of cells, with the bits of a word above it. Cost: 5.
            pub struct $StoreCell { array: Abs32, mask: Imm32, above: Abs32 }
            concat!("mov ecx, ", $register),
            "and ecx, {mask}",
            "mov r9d, dword ptr [{above}]",
            "or r9d, eax",
            "mov word ptr [rcx*2 + {array}], r9w",
        }

        const $hot: Hot = Hot {
            fill: $Fill::template,
            spill: $Spill::template,
            add_one: $AddOne::template,
            if_is: $IfIs::template,
            if_below: $IfBelow::template,
            store_input: $StoreInput::template,
            store_cell: $StoreCell::template,
        };
    };
}

hot!(FIRST, "r11d", FillFirst SpillFirst AddOneFirst IfIsFirst IfBelowFirst StoreInputFirst StoreCellFirst);
hot!(SECOND, "r14d", FillSecond SpillSecond AddOneSecond IfIsSecond IfBelowSecond StoreInputSecond StoreCellSecond);
hot!(THIRD, "r15d", FillThird SpillThird AddOneThird IfIsThird IfBelowThird StoreInputThird StoreCellThird);

/// The registers for hot words.
pub(crate) const HOT: [Hot; 3] = [FIRST, SECOND, THIRD];

/// All templates, for their listings.
pub fn templates() -> Vec<Template> {
    let plain = [
        MachineEnter::template(),
        TakeInput::template(),
        TakeRoom::template(),
        TakeByte::template(),
        InRange::template(),
        FromByte::template(),
        GoTo::template(),
        PauseAt::template(),
        Pause::template(),
        LeaveOutside::template(),
        BackInside::template(),
        EmitInput::template(),
        EmitValue::template(),
        LoadFlipped::template(),
        LoadInput::template(),
        LoadConst::template(),
        SetWord::template(),
        AddNumber::template(),
        AddOne::template(),
        OrNumber::template(),
        MultiplyWord::template(),
        MoveWord::template(),
        AddWords::template(),
        SubtractWords::template(),
        AppendDigit::template(),
        StoreInput::template(),
        StoreValue::template(),
        AddAbove::template(),
        StoreCell::template(),
        LoadBlank::template(),
        BlankCells::template(),
        MarkBit::template(),
        LoadArray::template(),
        IfIs::template(),
        IfBelow::template(),
        IfSame::template(),
        IfDiffer::template(),
        IfBelowWord::template(),
        IfIn::template(),
    ];
    let of_register =
        |hot: &Hot| [hot.fill, hot.spill, hot.add_one, hot.if_is, hot.if_below, hot.store_input, hot.store_cell];
    plain.into_iter().chain(HOT.iter().flat_map(of_register).map(|template| template())).collect()
}
