//! `synth graph`: what the descriptors of programs lead to.

use alloc::sync::Arc;

use bootimage::inspect::{Items, Stream as Item, stream as kind};
use kernel::file::NodeKind;
use kernel::pipe::PipeEnd;
use kernel::stream::Nameless;
use machine::try_text;

use super::{Cursor, Question, Refusal};
use crate::emulator::Unix;
use crate::files::channel::ChannelStream;
use crate::files::open_file::OpenFile;
use crate::files::terminal::ends::TtyStream;
use crate::files::terminal::pty::PtyMaster;

/// All open descriptors, by process and number.
pub fn list(question: &mut Question<'_>, out: &mut Items) -> Result<Cursor, Refusal> {
    let unix = question.unix;
    let (first, mut from) = ((question.cursor >> 32) as u32, question.cursor as u32);
    for number in unix.tasks.numbers_from(first) {
        let Some(process) = unix.tasks.process(number) else { continue };
        if number != first {
            from = 0;
        }
        for (descriptor, file) in process.files().list() {
            if descriptor.0 < from {
                continue;
            }
            let item = Item { process: number, descriptor: descriptor.0, ..describe(unix, &file) };
            item.put(out);
            if !out.keep() {
                return Ok(u64::from(number) << 32 | u64::from(descriptor.0));
            }
        }
    }
    Ok(0)
}

/// What an open file is, but for its descriptor.
pub fn describe(unix: &Unix, file: &Arc<OpenFile>) -> Item {
    let [read, write, _] = file.entry_points();
    let ways = [file.is_readable(), file.is_writable(), read.is_some(), write.is_some()];
    let ways = ways.into_iter().enumerate().map(|(place, way)| u8::from(way) << place).sum();
    let mut item = Item { kind: kind::OTHER, ways, identity: file.lock_owner(), ..Item::default() };
    if let Some(node) = file.node() {
        item.identity = Arc::as_ptr(node) as *const u8 as u64;
        item.name = unix.names.path_of(node, unix.names.root()).unwrap_or_default();
        item.kind = match node.kind() {
            NodeKind::Regular => kind::FILE,
            NodeKind::Directory => kind::DIRECTORY,
            NodeKind::Fifo => kind::PIPE,
            NodeKind::Socket => kind::SOCKET,
            _ => kind::DEVICE,
        };
    }
    if let Some(content) = file.content() {
        (item.gauge, item.limit) = (file.position(), content.size());
    }
    describe_stream(file, &mut item);
    item
}

fn describe_stream(file: &OpenFile, item: &mut Item) {
    let Some(stream) = file.as_stream() else { return };
    if item.name.is_empty() {
        item.name = match stream.nameless() {
            Nameless::Pipe(number) => try_text(format_args!("pipe:[{number}]")).unwrap_or_default(),
            Nameless::Socket(number) => try_text(format_args!("socket:[{number}]")).unwrap_or_default(),
            Nameless::Anonymous(what) => try_text(format_args!("anon_inode:{what}")).unwrap_or_default(),
        }
        .into_bytes();
    }
    if let Some(end) = file.stream_of::<PipeEnd>() {
        let pipe = end.pipe();
        (item.kind, item.identity) = (kind::PIPE, pipe.number());
        (item.gauge, item.limit) = (pipe.fill() as u64, pipe.capacity() as u64);
    } else if let Some(channel) = file.stream_of::<ChannelStream>() {
        (item.kind, item.identity, item.name) = (kind::CHANNEL, channel.number(), channel.name().into());
    } else if let Some(tty) = file.stream_of::<TtyStream>() {
        (item.kind, item.identity) = (kind::TERMINAL, Arc::as_ptr(tty.terminal()) as *const u8 as u64);
    } else if file.stream_of::<PtyMaster>().is_some() {
        item.kind = kind::TERMINAL;
    } else if matches!(stream.nameless(), Nameless::Socket(_)) {
        item.kind = kind::SOCKET;
    }
}
