//! The routines that are listed: made as the kernel makes them, with the fragments of the pc.

use golden::{OnlyTte, bench};
use kernel::call::{ClosePlan, OpenPlan, SimpleCode, cached_close, cached_open, console};
use kernel::file::{NewNode, Node, Time, Volume, Window};
use kernel::pipe::Pipe;
use kernel::tty::Tty;
use machine::Channel;

use crate::disassembly;

/// Places that the listings do not show.
const PLAN: ClosePlan = ClosePlan { free: 0x1000, pending: 0x1008, reads: 0x2000, writes: 0x3000, slow_entry: 0x4000 };

fn open_plan(path: &[u8], flags: u32) -> OpenPlan<'_> {
    OpenPlan {
        table: PLAN,
        recipes: 0x5000,
        path,
        flags,
        generation_word: 0x6000,
        generation: 7,
        read_entry: 0x7000,
        write_entry: 0x7100,
        recipe: 0,
    }
}

fn listed(name: &str, entry: u64) -> (String, String) {
    let birth = bench().store.birth(entry).expect("live code");
    let mut code = vec![0; birth.bytes as usize];
    assert_eq!(bench().store.read(entry, &mut code), code.len());
    (name.to_string(), disassembly::routine(&birth, &code))
}

/// Name and listing of every routine.
pub fn all() -> Vec<(String, String)> {
    bench().use_pc_fragments();
    let (makers, slow) = (bench().makers(), bench().slow_direct());
    let pipe = Pipe::new(Some(makers)).expect("memory").code().expect("room for code");
    let volume = Volume::in_memory(bench().pool, 1);
    let new = NewNode { mode: 0o644, user: 0, group: 0, now: Time::default() };
    let node = Node::nameless(&volume, new).expect("room for a node");
    let window = Window::open(node.content().expect("a regular file"), Some(makers));
    let file = window.callentries().expect("room for code");
    let SimpleCode { null, zero } = SimpleCode::make(makers);
    let open_null = cached_open(makers, &open_plan(b"/dev/null", 0), &OnlyTte).expect("room");
    let open_tty = cached_open(makers, &open_plan(b"/dev/tty", 2), &OnlyTte).expect("room");
    let close = cached_close(makers, &PLAN, slow).expect("room");
    let console = console(Channel::StandardOutput, makers);
    let terminal = Box::new(Tty::new(4096).expect("memory"));
    let tty = terminal.synthesize(Some(Channel::Terminal), makers);
    let mut listings = vec![
        listed("pipe.read", pipe.read.expect("room").entry()),
        listed("pipe.write", pipe.write.expect("room").entry()),
        listed("file.read", file.read.expect("room").entry()),
        listed("file.write", file.write.expect("room").entry()),
        listed("file.seek", file.seek.expect("room").entry()),
        listed("null.read", null.read.expect("room").entry()),
        listed("null.write", null.write.expect("room").entry()),
        listed("zero.read", zero.read.expect("room").entry()),
        listed("console.write", console.write.expect("room").entry()),
        listed("tty.read", tty.read.expect("room").entry()),
        listed("tty.write", tty.write.expect("room").entry()),
        listed("call.open.null", open_null.entry()),
        listed("call.open.tty", open_tty.entry()),
        listed("call.close", close.entry()),
    ];
    // A thread's routines are one template each, filled with addresses that are not shown.
    for (name, template) in machine_pc::thread_templates() {
        listings.push((name.to_string(), format!("; {name}\n{}", disassembly::template(&template))));
    }
    listings
}
