//! What /proc/sysvipc shows.

use alloc::vec::Vec;
use core::fmt::Write;

use machine::Text;

use crate::emulator::Unix;

/// Lines that fit are shown; a machine without memory shows fewer.
fn lines(header: &str, write: impl FnOnce(&mut Text)) -> Vec<u8> {
    let mut text = Text::default();
    let _ = text.write_str(header);
    write(&mut text);
    text.0.into_bytes()
}

pub fn semaphores(unix: &Unix) -> Vec<u8> {
    let header = "       key      semid perms      nsems   uid   gid  cuid  cgid      otime      ctime\n";
    lines(header, |text| {
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
    lines(header, |text| {
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
