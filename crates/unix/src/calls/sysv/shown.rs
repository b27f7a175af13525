//! What /proc/sysvipc shows.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;

use crate::emulator::Unix;

/// Lines that fit are shown; a machine without memory shows fewer.
fn lines(header: &str, count: usize, write: impl FnOnce(&mut String)) -> Vec<u8> {
    const LINE_BYTES: usize = 160;
    let mut text = String::new();
    if text.try_reserve((count + 1) * LINE_BYTES).is_ok() {
        text.push_str(header);
        write(&mut text);
    }
    text.into_bytes()
}

pub fn semaphores(unix: &Unix) -> Vec<u8> {
    let header = "       key      semid perms      nsems   uid   gid  cuid  cgid      otime      ctime\n";
    let mut count = 0;
    unix.families.semaphores.each(|_, _, _, _| count += 1);
    lines(header, count, |text| {
        unix.families.semaphores.each(|id, owner, semaphores, [operated, changed]| {
            let (key, mode, [user, group, creator, creators]) = (owner.key as i32, owner.mode.get(), owner.ids());
            let ids = format_args!("{user:5} {group:5} {creator:5} {creators:5}");
            let _ = writeln!(text, "{key:10} {id:10}  {mode:4o} {semaphores:10} {ids} {operated:10} {changed:10}");
        });
    })
}

pub fn messages(unix: &Unix) -> Vec<u8> {
    let header = concat!(
        "       key      msqid perms      cbytes       qnum lspid lrpid",
        "   uid   gid  cuid  cgid      stime      rtime      ctime\n"
    );
    let queues = unix.families.messages.borrow();
    lines(header, queues.count, |text| {
        for (id, queue) in queues.each() {
            let ([bytes, messages], [sender, receiver], [sent, received, changed]) = queue.facts();
            let owner = super::objects::Kind::owner(&**queue);
            let (key, mode, [user, group, creator, creators]) = (owner.key as i32, owner.mode.get(), owner.ids());
            let ids = format_args!("{user:5} {group:5} {creator:5} {creators:5}");
            let _ = writeln!(
                text,
                "{key:10} {id:10}  {mode:4o}  {bytes:10} {messages:10} {sender:5} {receiver:5} {ids} {sent:10} {received:10} {changed:10}"
            );
        }
    })
}
