//! What the optimizer does, one peephole at a time, to fragments that real quajects are made of: before and after.

use abi::nr;
use codestore::Maker;
use golden::bench;
use kernel::FileCall;
use kernel::call::Routine;
use kernel::call::fragments::{AllDone, AtMost, ForOne, GiveBack, Keep, NobodyWaits, UserAddress, UserRange};
use kernel::pipe::{GetOne, OneAtTail, OneThere};
use quaject::Routine as _;
use synth::{Abs32, Draft, Imm32, Target};

use crate::disassembly;

/// Words of nobody.
const HEAD: Abs32 = Abs32(0x1000);
const TAIL: Abs32 = Abs32(0x1008);
const WAITING: Abs32 = Abs32(0x1010);
const RING: Abs32 = Abs32(0x10000);

pub fn listed(name: &'static str, draft: Draft) -> String {
    let code = bench().store.publish::<FileCall>(name, Maker::new("test"), draft).expect("room");
    let birth = bench().store.birth(code.entry().address()).expect("live code");
    let mut bytes = vec![0; birth.bytes as usize];
    bench().store.read(code.entry().address(), &mut bytes);
    disassembly::routine(&birth, &bytes)
}

fn before_and_after(name: &'static str, says: &str, paste: impl Fn(&mut Routine)) -> (String, String) {
    let draft = || {
        let mut routine = Routine::begin(bench().makers(), nr::WRITE);
        paste(&mut routine);
        routine.finish()
    };
    let plan = synth::optimize(&draft()).expect("known instructions");
    let optimized = plan.apply(&draft()).expect("its own plan");
    let [was, is] = plan.instructions;
    assert!(is < was, "{name}: nothing was taken out");
    let text = format!(
        "; {says}\n\n; ---- before ----\n{}\n; ---- after ----\n{}",
        listed(name, draft()),
        listed(name, optimized)
    );
    (name.to_string(), text)
}

/// Name and listing of each.
pub fn all() -> Vec<(String, String)> {
    let _alone = crate::alone();
    bench().use_pc_fragments();
    vec![
        before_and_after(
            "dead-test",
            "Dead test elimination: the way for many bytes asks what was already asked in front of the fork.",
            |routine| {
                let (user_limit, slow, many) = (routine.user_limit(), routine.slow(), routine.many());
                routine.paste(UserAddress { user_limit, slow });
                routine.paste(NobodyWaits { waiting: WAITING, slow });
                routine.paste(ForOne { many });
                routine.paste(AllDone {});
                routine.leave();
                routine.begin_many();
                routine.paste(AtMost { most: Imm32(0x10000), slow });
                routine.paste(UserAddress { user_limit, slow });
                routine.paste(NobodyWaits { waiting: WAITING, slow });
                routine.paste(AllDone {});
                routine.leave();
            },
        ),
        before_and_after(
            "redundant-load",
            "Redundant load: the tail is in rdx; its low half is taken from there.",
            |routine| {
                routine.paste(OneThere { head: HEAD, tail: TAIL, empty: routine.slow_one() });
                routine.paste(OneAtTail { tail: TAIL, base: RING });
                routine.paste_user_one(GetOne { tail: TAIL });
                routine.leave();
            },
        ),
        before_and_after(
            "jump-threading",
            "Jump threading: eax holds the call's number already, so a way out that finds it there goes straight to Rust; what no \
             way leads to is gone.",
            |routine| {
                let (user_limit, slow) = (routine.user_limit(), routine.slow());
                routine.paste(UserAddress { user_limit, slow });
                routine.paste(AllDone {});
                routine.leave();
            },
        ),
        before_and_after("short-jumps", "Jumps that do not go far get one byte instead of four.", |routine| {
            let (user_limit, slow): (_, Target) = (routine.user_limit(), routine.slow_many());
            routine.paste(Keep {});
            routine.paste(UserRange { user_limit, slow });
            routine.paste(GiveBack {});
            routine.leave();
        }),
    ]
}
