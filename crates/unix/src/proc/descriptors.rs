//! /proc/PID/fd and fdinfo, and opening a file again through its descriptor.

use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::Write;

use abi::Errno;
use abi::file::{O_ACCMODE, O_CLOEXEC, O_RDONLY, O_WRONLY};
use kernel::file::{
    Data, LinkTarget, Listed, NewNode, Node, NodeKind, VirtualDirectory, VirtualFile, VirtualLink, Visit,
};
use kernel::pipe::{PipeEnd, Side};
use kernel::stream::{Nameless, Stream};

use super::mounts::mount_id;
use super::process::{Member, jump};
use super::text::Lines;
use super::tree::parse_number;
use super::tree::{Subject, produce, show};
use crate::calls::inotify::instance::Inotify;
use crate::calls::pidfd::ProcessHandle;
use crate::emulator::Unix;
use crate::files::descriptors::{Descriptor, Slot};
use crate::files::open_file::{Body, OpenFile};
use crate::task::process::Life;

/// What the entries of the directory are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    /// `fd`: links to the open files.
    Links,
    /// `fdinfo`: how they are open.
    Infos,
}

struct Descriptors {
    unix: &'static Unix,
    member: Member,
    shown: Shown,
}

pub fn links(unix: &'static Unix, member: &Member) -> Arc<dyn VirtualDirectory> {
    Arc::new(Descriptors { unix, member: member.clone(), shown: Shown::Links })
}

pub fn infos(unix: &'static Unix, member: &Member) -> Arc<dyn VirtualDirectory> {
    Arc::new(Descriptors { unix, member: member.clone(), shown: Shown::Infos })
}

/// Errors: `ESRCH`, `EACCES`; `ENOENT` for a descriptor that is not open.
fn slot(unix: &Unix, member: &Member, descriptor: Descriptor) -> Result<Slot, Errno> {
    member.files(&*member.inspect(unix)?).slot(descriptor).ok_or(Errno::ENOENT)
}

impl VirtualDirectory for Descriptors {
    fn lookup(&self, this: &Arc<Node>, name: &[u8]) -> Result<Arc<Node>, Errno> {
        let descriptor = Descriptor(parse_number(name).ok_or(Errno::ENOENT)?);
        let slot = slot(self.unix, &self.member, descriptor)?;
        let file = &slot.file;
        let (unix, member) = (self.unix, self.member.clone());
        let (kind, data) = match self.shown {
            Shown::Links => {
                let directory = this.clone();
                let link = DescriptorLink { unix, member, descriptor, directory };
                ((NodeKind::Symlink, link_mode(file)), Data::VirtualLink(Arc::new(link)))
            }
            Shown::Infos => {
                let info = Info { unix, member, descriptor };
                ((NodeKind::Regular, 0o444), Data::VirtualFile(Arc::new(info)))
            }
        };
        Ok(produce(self.unix, this, name, kind, self.member.owner(), data))
    }

    /// A descriptor's cookie is its number.
    #[expect(clippy::disallowed_macros, reason = "a number")]
    fn list(&self, this: &Arc<Node>, from: u64, visit: &mut dyn FnMut(&Listed<'_>) -> Visit) {
        let Ok(process) = self.member.inspect(self.unix) else { return };
        let kind = if self.shown == Shown::Links { NodeKind::Symlink } else { NodeKind::Regular };
        for (descriptor, _) in self.member.files(&process).list() {
            let cookie = u64::from(descriptor.0);
            let name = format!("{}", descriptor.0);
            if cookie >= from && show(this, cookie, kind, name.as_bytes(), visit) == Visit::Stop {
                return;
            }
        }
    }
}

/// The mode of the link tells how the file is open.
fn link_mode(file: &OpenFile) -> u32 {
    let read = if file.is_readable() { 0o500 } else { 0 };
    let write = if file.is_writable() { 0o300 } else { 0 };
    read | write
}

/// Inode number of everything that is neither a pipe nor a socket; Linux, too, has one for all.
const ANONYMOUS: u64 = 1;

struct DescriptorLink {
    unix: &'static Unix,
    member: Member,
    descriptor: Descriptor,
    /// Where the link is; a stream gets its node from there.
    directory: Arc<Node>,
}

impl VirtualLink for DescriptorLink {
    fn target(&self) -> Result<LinkTarget, Errno> {
        let slot = slot(self.unix, &self.member, self.descriptor)?;
        let file = &slot.file;
        match (file.node(), file.as_stream()) {
            (Some(node), _) => jump(self.unix, node),
            (None, Some(stream)) => Ok(self.nameless(stream)),
            (None, None) => Err(Errno::ENOENT),
        }
    }
}

impl DescriptorLink {
    /// A stream that was never in the file tree leads to a node made for it.
    #[expect(clippy::disallowed_macros, reason = "a word and a number")]
    fn nameless(&self, stream: &Arc<dyn Stream>) -> LinkTarget {
        let (kind, number, text) = match stream.nameless() {
            Nameless::Pipe(number) => (NodeKind::Fifo, number, format!("pipe:[{number}]")),
            Nameless::Socket(number) => (NodeKind::Socket, number, format!("socket:[{number}]")),
            Nameless::Anonymous(what) => (NodeKind::Regular, ANONYMOUS, format!("anon_inode:{what}")),
        };
        let (user, group) = self.member.owner();
        let new = NewNode { mode: 0o600, user, group, now: self.unix.wall_time() };
        let node = Node::produce(&self.directory, text.as_bytes(), number, kind, Data::Special, new);
        *node.attachment().borrow_mut() = Some(Arc::new(Again(stream.clone())));
        LinkTarget::Node(node, text.into_bytes().into())
    }
}

/// What the node of a nameless stream keeps: the stream.
struct Again(Arc<dyn Stream>);

/// Opens the stream that a link of /proc/PID/fd led to; `None` for any other node. The end of a pipe is chosen
/// by the access mode, as Linux does. Error: `ENXIO` for what is neither a pipe nor a channel.
pub fn reopen(unix: &'static Unix, node: &Arc<Node>, flags: u32) -> Option<Result<OpenFile, Errno>> {
    let attachment = node.attachment().borrow().clone()?;
    let Again(stream) = attachment.downcast_ref::<Again>()?;
    let stream: Arc<dyn Stream> = match (stream.as_any().downcast_ref::<PipeEnd>(), stream.nameless()) {
        (Some(end), _) => Arc::new(PipeEnd::new(end.pipe(), side(flags), unix.scheduler)),
        (None, Nameless::Pipe(_)) => stream.clone(),
        _ => return Some(Err(Errno::ENXIO)),
    };
    Some(Ok(OpenFile::new(Body::Stream(stream), Some(node.clone()), flags)))
}

fn side(flags: u32) -> Side {
    match flags & O_ACCMODE {
        O_RDONLY => Side::Read,
        O_WRONLY => Side::Write,
        _ => Side::Both,
    }
}

struct Info {
    unix: &'static Unix,
    member: Member,
    descriptor: Descriptor,
}

impl VirtualFile for Info {
    fn content(&self) -> Result<Vec<u8>, Errno> {
        const O_LARGEFILE: u32 = 0o100000;
        let slot = slot(self.unix, &self.member, self.descriptor)?;
        let close = if slot.close_on_exec { O_CLOEXEC } else { 0 };
        // Linux opens every file of a 64-bit program so, and shows it.
        let large = if slot.file.node().is_some() { O_LARGEFILE } else { 0 };
        let flags = slot.file.flags() | close | large;
        let (mount, inode) = slot.file.node().map_or((0, 0), |node| (mount_id(node.volume()), node.number()));
        let position = slot.file.position();
        let mut text = Lines::default();
        let _ = writeln!(text, "pos:\t{position}\nflags:\t0{flags:o}\nmnt_id:\t{mount}\nino:\t{inode}");
        if let Some(instance) = slot.file.stream_of::<Inotify>() {
            instance.each_watch(|number, ((major, minor), inode), mask| {
                let device = major << 20 | minor;
                let ignored = "ignored_mask:0 fhandle-bytes:0 fhandle-type:0 f_handle:";
                let _ = writeln!(text, "inotify wd:{number:x} ino:{inode:x} sdev:{device:x} mask:{mask:x} {ignored}");
            });
        }
        if let Some(process) = slot.file.stream_of::<ProcessHandle>().and_then(ProcessHandle::process) {
            let pid = if process.life.get() == Life::Reaped { -1 } else { process.pid as i32 };
            let _ = writeln!(text, "Pid:\t{pid}\nNSpid:\t{pid}");
        }
        text.whole()
    }
}
