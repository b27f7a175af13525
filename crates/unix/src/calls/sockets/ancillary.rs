//! Control data beside a message: descriptors and credentials (cmsg(3), unix(7)).

use alloc::sync::Arc;
use alloc::vec::Vec;

use abi::process::{CAP_SETGID, CAP_SETUID, CAP_SYS_ADMIN, CAP_SYS_RESOURCE};
use abi::socket::{
    Cmsghdr, MSG_CMSG_CLOEXEC, MSG_CTRUNC, Msghdr, SCM_CREDENTIALS, SCM_MAX_FD, SCM_RIGHTS, SOL_SOCKET, Ucred,
};
use abi::{Errno, Field};

use machine::TryGrow;

use super::flight::Rights;
use super::parcel::{Beside, Parcel, Received};
use crate::call::Call;
use crate::files::descriptors::{Descriptor, Slot};
use crate::files::open_file::OpenFile;

const HEADER_BYTES: usize = Cmsghdr::BYTES;
/// Control data of one message at most (Linux's `optmem_max`).
const CONTROL_BYTES_MAX: u64 = 20_480;
/// What numbers of users and groups are shown as where there are none.
const OVERFLOW_ID: u32 = 65_534;

/// Reads what a message shall carry beside its bytes.
///
/// Errors: `EFAULT`, `ENOBUFS` for too much, `EINVAL` for nonsense, `EBADF`, `EPERM` and `ESRCH` for credentials of
/// others, `ETOOMANYREFS`.
pub fn read(call: &Call<'_>, message: &Msghdr) -> Result<Parcel, Errno> {
    if message.msg_controllen > CONTROL_BYTES_MAX {
        return Err(Errno::ENOBUFS);
    }
    let data = call.read_bytes(message.msg_control, message.msg_controllen as usize)?;
    let mut files = Vec::new();
    let mut credentials = None;
    let mut beside = Vec::new();
    let mut rest = &data[..];
    while rest.len() >= HEADER_BYTES {
        let header = Cmsghdr::get(&rest[..HEADER_BYTES]);
        let bytes = usize::try_from(header.cmsg_len).map_err(|_| Errno::EINVAL)?;
        let content = rest.get(HEADER_BYTES..bytes).ok_or(Errno::EINVAL)?;
        match (header.cmsg_level, header.cmsg_type) {
            (SOL_SOCKET, SCM_RIGHTS) => read_files(call, content, &mut files)?,
            (SOL_SOCKET, SCM_CREDENTIALS) => credentials = Some(read_credentials(call, content)?),
            (SOL_SOCKET, _) => return Err(Errno::EINVAL),
            (level, kind) => beside.try_push(piece(level, kind, content)?)?,
        }
        rest = rest.get(bytes.next_multiple_of(8)..).unwrap_or(&[]);
    }
    let rights = if files.is_empty() { None } else { Some(send_off(call, files)?) };
    Ok(Parcel { credentials, rights, beside })
}

/// What the family knows. Error: `EINVAL` for what is longer than anything that it may be.
fn piece(level: u32, kind: u32, content: &[u8]) -> Result<Beside, Errno> {
    let mut piece = Beside { level, kind, bytes: content.len(), content: [0; Beside::BYTES] };
    piece.content.get_mut(..content.len()).ok_or(Errno::EINVAL)?.copy_from_slice(content);
    Ok(piece)
}

fn send_off(call: &Call<'_>, files: Vec<Arc<OpenFile>>) -> Result<Rights, Errno> {
    let process = call.process();
    let is_free = process.can(CAP_SYS_RESOURCE) || process.can(CAP_SYS_ADMIN);
    let most = if is_free { u64::MAX } else { process.limits.borrow().descriptors() };
    Rights::new(call.unix, files, process.user_ids.get().real, most)
}

fn read_files(call: &Call<'_>, content: &[u8], files: &mut Vec<Arc<OpenFile>>) -> Result<(), Errno> {
    let numbers = content.chunks_exact(4).map(<u32 as Field>::get);
    if numbers.len() > SCM_MAX_FD || files.len() + numbers.len() > SCM_MAX_FD {
        return Err(Errno::EINVAL);
    }
    for number in numbers {
        files.try_push(call.any_file(number.into())?)?;
    }
    Ok(())
}

/// A program may give other credentials than its own only if it could become what they say.
fn read_credentials(call: &Call<'_>, content: &[u8]) -> Result<Ucred, Errno> {
    if content.len() != Ucred::BYTES {
        return Err(Errno::EINVAL);
    }
    let given = Ucred::get(content);
    let process = call.process();
    let (user, group) = (process.user_ids.get(), process.group_ids.get());
    let is_own_user = [user.real, user.effective, user.saved].contains(&given.uid);
    let is_own_group = [group.real, group.effective, group.saved].contains(&given.gid);
    let may = (given.pid == process.pid as i32 || process.can(CAP_SYS_ADMIN))
        && (is_own_user || process.can(CAP_SETUID))
        && (is_own_group || process.can(CAP_SETGID));
    if !may {
        return Err(Errno::EPERM);
    }
    if call.unix.tasks.process(given.pid as u32).is_none() {
        return Err(Errno::ESRCH);
    }
    Ok(given)
}

/// Where control data goes, as far as there is room.
struct Room {
    at: u64,
    left: usize,
    is_cut: bool,
}

impl Room {
    fn put(&mut self, call: &Call<'_>, level: u32, kind: u32, content: &[u8]) {
        let whole = HEADER_BYTES + content.len();
        let bytes = whole.min(self.left);
        self.is_cut |= bytes < whole;
        let Some(part) = bytes.checked_sub(HEADER_BYTES) else { return };
        let put = self.put_header(call, level, kind, bytes);
        if put.and_then(|()| call.copy_out(self.at.wrapping_add(HEADER_BYTES as u64), &content[..part])).is_ok() {
            self.pass(content.len());
        }
    }

    fn put_header(&self, call: &Call<'_>, level: u32, kind: u32, bytes: usize) -> Result<(), Errno> {
        call.write(self.at, &Cmsghdr { cmsg_len: bytes as u64, cmsg_level: level, cmsg_type: kind })
    }

    fn pass(&mut self, content_bytes: usize) {
        let bytes = (HEADER_BYTES + content_bytes).next_multiple_of(8).min(self.left);
        self.at = self.at.wrapping_add(bytes as u64);
        self.left -= bytes;
    }

    /// Gives the program descriptors for the files, as many as there is room and numbers for; the rest is lost.
    fn put_files(&mut self, call: &Call<'_>, rights: &Rights, close_on_exec: bool) {
        let files = rights.files();
        let room = self.left.saturating_sub(HEADER_BYTES) / 4;
        let mut given = 0;
        for file in files.iter().take(room) {
            let at = self.at.wrapping_add((HEADER_BYTES + given * 4) as u64);
            if give(call, file, at, close_on_exec).is_err() {
                break;
            }
            given += 1;
        }
        self.is_cut |= given < files.len();
        if given > 0 && self.put_header(call, SOL_SOCKET, SCM_RIGHTS, HEADER_BYTES + given * 4).is_ok() {
            self.pass(given * 4);
        }
    }
}

/// A new descriptor for a file that has come, whose number goes to `at`. Errors: `EMFILE`, `EFAULT`.
fn give(call: &Call<'_>, file: &Arc<OpenFile>, at: u64, close_on_exec: bool) -> Result<(), Errno> {
    let limit = call.process().limits.borrow().descriptors();
    let descriptor = call.files().add(Slot { file: file.clone(), close_on_exec }, 0, limit)?;
    call.write(at, &descriptor.0).inspect_err(|_| drop(call.files().remove(Descriptor(descriptor.0))))
}

/// Writes what came beside a message into the program's room; sets `msg_flags` and `msg_controllen`. Room that cannot be written
/// stays as if nothing had come: the message itself was received.
pub fn write(call: &Call<'_>, received: &Received, passes_credentials: bool, flags: u32, message: &mut Msghdr) {
    let left = if message.msg_control == 0 { 0 } else { message.msg_controllen as usize };
    let mut room = Room { at: message.msg_control, left, is_cut: false };
    if passes_credentials {
        let unknown = Ucred { pid: 0, uid: OVERFLOW_ID, gid: OVERFLOW_ID };
        room.put(call, SOL_SOCKET, SCM_CREDENTIALS, &received.credentials.unwrap_or(unknown).to_bytes());
    }
    for piece in &received.beside {
        room.put(call, piece.level, piece.kind, &piece.content[..piece.bytes]);
    }
    if let Some(rights) = &received.rights {
        room.put_files(call, rights, flags & MSG_CMSG_CLOEXEC != 0);
    }
    message.msg_flags |= if room.is_cut { MSG_CTRUNC } else { 0 };
    message.msg_controllen = room.at.wrapping_sub(message.msg_control);
}
