//! The instructions of inner loops: AVX2 on samples of 16 bits.
//!
//! ```text
//!   ymm0…7   sums of up to four phases, 2 p for the even samples, 2 p + 1 for the odd ones
//!   ymm8     samples from an even place on, as pairs; ymm9: the same one sample later
//!   ymm10…13 scratch
//!   rdi = out, rsi = in, rdx = samples still to do (a multiple of 16)
//! ```
//! `vpmaddwd` multiplies eight pairs of samples with a pair of coefficients and adds the two products: read from sample `n` on it does
//! two taps for the outputs n, n + 2, n + 4, …; read from `n + 1` on for those between. Nothing is shuffled until the end.

#![allow(unsafe_code, reason = "the template macro names linker symbols")]

use synth::{jump, template};

template! {
    /// Two taps' worth of samples, `at` bytes from the first and two bytes later.
    pub struct Samples { at: Imm32, later: Imm32 }
    "vmovdqu ymm8, ymmword ptr [rsi + {at}]",
    "vmovdqu ymm9, ymmword ptr [rsi + {later}]",
}

template! {
    /// The first two taps of phase 0.
    pub struct Begin0 { taps: Abs32 }
    "vpmaddwd ymm0, ymm8, ymmword ptr [{taps}]",
    "vpmaddwd ymm1, ymm9, ymmword ptr [{taps}]",
}

template! {
    /// Two more taps of phase 0.
    pub struct Add0 { taps: Abs32 }
    "vpmaddwd ymm10, ymm8, ymmword ptr [{taps}]",
    "vpmaddwd ymm11, ymm9, ymmword ptr [{taps}]",
    "vpaddd ymm0, ymm0, ymm10",
    "vpaddd ymm1, ymm1, ymm11",
}

template! {
    /// Phase 0 has no taps.
    pub struct Silent0 {}
    "vpxor ymm0, ymm0, ymm0",
    "vpxor ymm1, ymm1, ymm1",
}

template! {
    /// Rounds phase 0, saturates, and leaves its 16 samples in ymm0: the first eight in the lower half.
    pub struct Round0 { half: Abs32, shift: Abs32 }
    "vpaddd ymm0, ymm0, ymmword ptr [{half}]",
    "vpaddd ymm1, ymm1, ymmword ptr [{half}]",
    "vpsrad ymm0, ymm0, xmmword ptr [{shift}]",
    "vpsrad ymm1, ymm1, xmmword ptr [{shift}]",
    "vpunpckldq ymm10, ymm0, ymm1",
    "vpunpckhdq ymm11, ymm0, ymm1",
    "vpackssdw ymm0, ymm10, ymm11",
}

template! {
    /// The first two taps of phase 1.
    pub struct Begin1 { taps: Abs32 }
    "vpmaddwd ymm2, ymm8, ymmword ptr [{taps}]",
    "vpmaddwd ymm3, ymm9, ymmword ptr [{taps}]",
}

template! {
    /// Two more taps of phase 1.
    pub struct Add1 { taps: Abs32 }
    "vpmaddwd ymm10, ymm8, ymmword ptr [{taps}]",
    "vpmaddwd ymm11, ymm9, ymmword ptr [{taps}]",
    "vpaddd ymm2, ymm2, ymm10",
    "vpaddd ymm3, ymm3, ymm11",
}

template! {
    /// Phase 1 has no taps.
    pub struct Silent1 {}
    "vpxor ymm2, ymm2, ymm2",
    "vpxor ymm3, ymm3, ymm3",
}

template! {
    /// Rounds phase 1, saturates, and leaves its 16 samples in ymm2: the first eight in the lower half.
    pub struct Round1 { half: Abs32, shift: Abs32 }
    "vpaddd ymm2, ymm2, ymmword ptr [{half}]",
    "vpaddd ymm3, ymm3, ymmword ptr [{half}]",
    "vpsrad ymm2, ymm2, xmmword ptr [{shift}]",
    "vpsrad ymm3, ymm3, xmmword ptr [{shift}]",
    "vpunpckldq ymm10, ymm2, ymm3",
    "vpunpckhdq ymm11, ymm2, ymm3",
    "vpackssdw ymm2, ymm10, ymm11",
}

template! {
    /// The first two taps of phase 2.
    pub struct Begin2 { taps: Abs32 }
    "vpmaddwd ymm4, ymm8, ymmword ptr [{taps}]",
    "vpmaddwd ymm5, ymm9, ymmword ptr [{taps}]",
}

template! {
    /// Two more taps of phase 2.
    pub struct Add2 { taps: Abs32 }
    "vpmaddwd ymm10, ymm8, ymmword ptr [{taps}]",
    "vpmaddwd ymm11, ymm9, ymmword ptr [{taps}]",
    "vpaddd ymm4, ymm4, ymm10",
    "vpaddd ymm5, ymm5, ymm11",
}

template! {
    /// Phase 2 has no taps.
    pub struct Silent2 {}
    "vpxor ymm4, ymm4, ymm4",
    "vpxor ymm5, ymm5, ymm5",
}

template! {
    /// Rounds phase 2, saturates, and leaves its 16 samples in ymm4: the first eight in the lower half.
    pub struct Round2 { half: Abs32, shift: Abs32 }
    "vpaddd ymm4, ymm4, ymmword ptr [{half}]",
    "vpaddd ymm5, ymm5, ymmword ptr [{half}]",
    "vpsrad ymm4, ymm4, xmmword ptr [{shift}]",
    "vpsrad ymm5, ymm5, xmmword ptr [{shift}]",
    "vpunpckldq ymm10, ymm4, ymm5",
    "vpunpckhdq ymm11, ymm4, ymm5",
    "vpackssdw ymm4, ymm10, ymm11",
}

template! {
    /// The first two taps of phase 3.
    pub struct Begin3 { taps: Abs32 }
    "vpmaddwd ymm6, ymm8, ymmword ptr [{taps}]",
    "vpmaddwd ymm7, ymm9, ymmword ptr [{taps}]",
}

template! {
    /// Two more taps of phase 3.
    pub struct Add3 { taps: Abs32 }
    "vpmaddwd ymm10, ymm8, ymmword ptr [{taps}]",
    "vpmaddwd ymm11, ymm9, ymmword ptr [{taps}]",
    "vpaddd ymm6, ymm6, ymm10",
    "vpaddd ymm7, ymm7, ymm11",
}

template! {
    /// Phase 3 has no taps.
    pub struct Silent3 {}
    "vpxor ymm6, ymm6, ymm6",
    "vpxor ymm7, ymm7, ymm7",
}

template! {
    /// Rounds phase 3, saturates, and leaves its 16 samples in ymm6: the first eight in the lower half.
    pub struct Round3 { half: Abs32, shift: Abs32 }
    "vpaddd ymm6, ymm6, ymmword ptr [{half}]",
    "vpaddd ymm7, ymm7, ymmword ptr [{half}]",
    "vpsrad ymm6, ymm6, xmmword ptr [{shift}]",
    "vpsrad ymm7, ymm7, xmmword ptr [{shift}]",
    "vpunpckldq ymm10, ymm6, ymm7",
    "vpunpckhdq ymm11, ymm6, ymm7",
    "vpackssdw ymm6, ymm10, ymm11",
}

template! {
    /// Stores one phase.
    pub struct Store1 {}
    "vmovdqu ymmword ptr [rdi], ymm0",
    "add rdi, 32",
}

template! {
    /// Stores two phases in turns.
    pub struct Store2 {}
    "vpunpcklwd ymm10, ymm0, ymm2",
    "vpunpckhwd ymm11, ymm0, ymm2",
    "vmovdqu xmmword ptr [rdi], xmm10",
    "vmovdqu xmmword ptr [rdi + 16], xmm11",
    "vextracti128 xmmword ptr [rdi + 32], ymm10, 1",
    "vextracti128 xmmword ptr [rdi + 48], ymm11, 1",
    "add rdi, 64",
}

template! {
    /// Stores four phases in turns.
    pub struct Store4 {}
    "vpunpcklwd ymm10, ymm0, ymm2",
    "vpunpckhwd ymm11, ymm0, ymm2",
    "vpunpcklwd ymm12, ymm4, ymm6",
    "vpunpckhwd ymm13, ymm4, ymm6",
    "vpunpckldq ymm0, ymm10, ymm12",
    "vpunpckhdq ymm1, ymm10, ymm12",
    "vpunpckldq ymm2, ymm11, ymm13",
    "vpunpckhdq ymm3, ymm11, ymm13",
    "vmovdqu xmmword ptr [rdi], xmm0",
    "vmovdqu xmmword ptr [rdi + 16], xmm1",
    "vmovdqu xmmword ptr [rdi + 32], xmm2",
    "vmovdqu xmmword ptr [rdi + 48], xmm3",
    "vextracti128 xmmword ptr [rdi + 64], ymm0, 1",
    "vextracti128 xmmword ptr [rdi + 80], ymm1, 1",
    "vextracti128 xmmword ptr [rdi + 96], ymm2, 1",
    "vextracti128 xmmword ptr [rdi + 112], ymm3, 1",
    "sub rdi, -128",
}

template! {
    /// Sixteen samples further, as long as there are any.
    pub struct Next { again: Target }
    "add rsi, 32",
    "sub rdx, 16",
    jump!(jne again),
    "vzeroupper",
    "ret",
}

template! {
    /// A mixer's loop begins. In: rdi = out, rsi = the inputs' addresses, rdx = bytes to do, a multiple of 32.
    pub struct MixBegin {}
    "xor ecx, ecx",
}

template! {
    /// Samples of two inputs side by side: in ymm10 and ymm11, as pairs. `first` and `second`: eight times their numbers.
    pub struct MixInputs { first: Imm32, second: Imm32 }
    "mov rax, qword ptr [rsi + {first}]",
    "vmovdqu ymm8, ymmword ptr [rax + rcx]",
    "mov rax, qword ptr [rsi + {second}]",
    "vmovdqu ymm9, ymmword ptr [rax + rcx]",
    "vpunpcklwd ymm10, ymm8, ymm9",
    "vpunpckhwd ymm11, ymm8, ymm9",
}

template! {
    /// The first two inputs with their gains.
    pub struct MixFirst { gains: Abs32 }
    "vpmaddwd ymm0, ymm10, ymmword ptr [{gains}]",
    "vpmaddwd ymm1, ymm11, ymmword ptr [{gains}]",
}

template! {
    /// Two more inputs with their gains.
    pub struct MixMore { gains: Abs32 }
    "vpmaddwd ymm10, ymm10, ymmword ptr [{gains}]",
    "vpmaddwd ymm11, ymm11, ymmword ptr [{gains}]",
    "vpaddd ymm0, ymm0, ymm10",
    "vpaddd ymm1, ymm1, ymm11",
}

template! {
    /// Rounds, saturates and stores sixteen samples, and goes on.
    pub struct MixEnd { half: Abs32, shift: Abs32, again: Target }
    "vpaddd ymm0, ymm0, ymmword ptr [{half}]",
    "vpaddd ymm1, ymm1, ymmword ptr [{half}]",
    "vpsrad ymm0, ymm0, xmmword ptr [{shift}]",
    "vpsrad ymm1, ymm1, xmmword ptr [{shift}]",
    "vpackssdw ymm0, ymm0, ymm1",
    "vmovdqu ymmword ptr [rdi + rcx], ymm0",
    "add rcx, 32",
    "cmp rcx, rdx",
    jump!(jne again),
    "vzeroupper",
    "ret",
}
