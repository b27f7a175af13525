//! Special cases that are computed beforehand (S-13): a routine that asks nothing of the length, and the one that is made.

use abi::nr;
use golden::bench;
use kernel::call::Routine;
use kernel::call::fragments::{CountWords, ForOne, GiveBack, Keep, MoveMany, MoveSorted, UserAddress};
use kernel::pipe::{PlaceToPut, PutMany, PutOne, RoomForMany, RoomForOne};
use quaject::Routine as _;
use synth::{Abs32, Draft, Imm32};

use crate::optimizer::listed;

/// Words of nobody.
const HEAD: Abs32 = Abs32(0x1000);
const TAIL: Abs32 = Abs32(0x1008);
const LIMIT: Abs32 = Abs32(0x1010);
const RING: Abs32 = Abs32(0x10000);
const CAPACITY: Imm32 = Imm32(0x10000);

/// `paste` makes the general routine first, then the one with the special case.
fn general_and_special(name: &'static str, says: &str, paste: [fn(&mut Routine); 2]) -> (String, String) {
    let [general, special] = paste.map(|paste| {
        let mut routine = Routine::begin(bench().makers(), nr::WRITE);
        paste(&mut routine);
        let draft: Draft = routine.finish();
        let plan = synth::optimize(&draft).expect("known instructions");
        listed(name, plan.apply(&draft).expect("its own plan"))
    });
    (name.to_string(), format!("; {says}\n\n; ---- general ----\n{general}\n; ---- special ----\n{special}"))
}

/// A run of any length into a ring of 2^16 bytes: that it is a power of two lets the index be the head's low half word.
fn put_many(routine: &mut Routine, copy: fn(&mut Routine)) {
    let (slow, slow_many) = (routine.slow(), routine.slow_many());
    routine.paste(RoomForMany { head: HEAD, tail: TAIL, run_limit: LIMIT, full: slow });
    routine.paste(Keep {});
    routine.paste(PlaceToPut { head: HEAD, capacity: CAPACITY, base: RING, slow_many });
    copy(routine);
    routine.paste(GiveBack {});
    routine.paste(PutMany { head: HEAD });
    routine.leave();
}

fn by_words(routine: &mut Routine) {
    routine.paste(CountWords {});
    routine.paste_user_many(MoveMany {});
}

fn sorted(routine: &mut Routine) {
    routine.paste_user_many(MoveSorted {});
}

/// Name and listing of each.
pub fn all() -> Vec<(String, String)> {
    let _alone = crate::alone();
    bench().use_pc_fragments();
    vec![
        general_and_special(
            "length-one",
            "One byte into a pipe: no run, no turn, no registers to keep. The straight way is that of one byte.",
            [
                |routine| {
                    let (user_limit, slow) = (routine.user_limit(), routine.slow());
                    routine.paste(UserAddress { user_limit, slow });
                    put_many(routine, by_words);
                },
                |routine| {
                    let (user_limit, slow, many) = (routine.user_limit(), routine.slow(), routine.many());
                    routine.paste(UserAddress { user_limit, slow });
                    routine.paste(ForOne { many });
                    routine.paste(RoomForOne { head: HEAD, tail: TAIL, write_limit: LIMIT, full: slow });
                    routine.paste_user_one(PutOne { head: HEAD, base: RING });
                    routine.leave();
                    routine.begin_many();
                    put_many(routine, by_words);
                },
            ],
        ),
        general_and_special(
            "length-classes",
            "A run into a pipe by the class of its length: whole words, 0 to 7, 8 to 16, 17 to 32, others.",
            [|routine| put_many(routine, by_words), |routine| put_many(routine, sorted)],
        ),
    ]
}
