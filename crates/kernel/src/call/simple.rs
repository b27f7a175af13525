//! /dev/null and /dev/zero: quajects without data. All their open files share one copy (R4).

use abi::nr;
use machine::KernelCell;
use quaject::{Makers, quaject};
use synth::{Imm32, template};

use super::FileCall;
use super::fragments::{AllDone, AtMost, GiveBack, Keep, UserAddress, UserRange};

/// The most bytes that are done without coming back to Rust.
const BYTES_MAX: u32 = 0x10000;

template! {
    /// The end of file. Cost: 1 instruction.
    pub struct EndOfFile {}
    "xor eax, eax",
}

template! {
    /// The buffer ends in the program's half, too. Out: rax lost. Cost: 3 instructions.
    pub struct UserEnd { user_limit: Abs32, slow: Target }
    "lea rax, [rsi + rdx]",
    "cmp rax, qword ptr [{user_limit}]",
    ".byte 0x0f, 0x87",                     // ja slow
    ".long {slow}",
}

template! {
    /// The registers for storing zeros. Cost: 4 instructions.
    pub struct ZerosReady {}
    "mov rdi, rsi",
    "mov ecx, edx",
    "shr ecx, 3",
    "xor eax, eax",
}

template! {
    /// Stores the zeros: eight bytes an instruction, then single ones.
    pub struct StoreZeros {}
    "rep stosq",
    "mov ecx, edx",
    "and ecx, 7",
    "rep stosb",
}

quaject! {
    /// /dev/null: reads the end of file, writes to nowhere. A range that leaves the program is an error, found in Rust.
    #[derive(Default)]
    pub quaject Null ("null", made by "boot", at most 0 inactive)
    data {}
    factors(null) {}
    callouts NullCallouts {}
    callbacks {}
    callentries NullCode {
        read: FileCall(nr::READ) named "null.read" uses(user_limit, slow) {
            paste UserRange { user_limit, slow };
            paste EndOfFile {};
            leave_uncounted;
        }
        write: FileCall(nr::WRITE) named "null.write" uses(user_limit, slow) {
            paste AtMost { most: Imm32(BYTES_MAX), slow };
            paste UserAddress { user_limit, slow };
            paste UserEnd { user_limit, slow };
            paste AllDone {};
            leave_uncounted;
        }
    }
}

quaject! {
    /// /dev/zero: reads zeros. Its `write` is that of /dev/null.
    #[derive(Default)]
    pub quaject Zero ("zero", made by "boot", at most 0 inactive)
    data {}
    factors(zero) {}
    callouts ZeroCallouts {}
    callbacks {}
    callentries ZeroCode {
        read: FileCall(nr::READ) named "zero.read" uses(user_limit, slow) {
            paste AtMost { most: Imm32(BYTES_MAX), slow };
            paste UserAddress { user_limit, slow };
            paste Keep {};
            paste ZerosReady {};
            paste_user_many StoreZeros {};
            paste GiveBack {};
            paste AllDone {};
            leave_uncounted;
        }
    }
}

/// The one copy of each, made at boot.
#[derive(Clone, Default)]
pub struct SimpleCode {
    pub null: NullCode,
    pub zero: ZeroCode,
}

impl SimpleCode {
    pub fn make(makers: Makers) -> SimpleCode {
        SimpleCode {
            null: quaject::create::create(&Null {}, makers, &NullCallouts {}),
            zero: quaject::create::create(&Zero {}, makers, &ZeroCallouts {}),
        }
    }
}

/// The simple devices' code for the whole machine, as it was made at boot.
static SHARED: KernelCell<Option<SimpleCode>> = KernelCell::new(None);

impl SimpleCode {
    /// The shared copy; made when it is first asked for, and again as long as there was no room for all of it. Who watches
    /// gets one of its own.
    pub fn shared(makers: Makers) -> SimpleCode {
        if makers.watch().is_some() {
            return SimpleCode::make(makers);
        }
        let mut shared = SHARED.borrow_mut();
        if let Some(code) = &*shared {
            return code.clone();
        }
        let code = SimpleCode::make(makers);
        let is_whole = code.null.read.is_some() && code.null.write.is_some() && code.zero.read.is_some();
        *shared = is_whole.then(|| code.clone());
        code
    }
}
