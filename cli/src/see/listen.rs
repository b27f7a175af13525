//! The side of the tool that runs a system: passes requests on and answers back.

use std::collections::HashMap;
use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use bootimage::control::Record;
use bootimage::inspect::{HEAD_BYTES, REQUEST_BYTES_MAX};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::SendFlags;

/// Askers at a time; further ones wait to be accepted.
const ASKERS_MAX: usize = 8;

/// How long the kernel may think about one request.
const PATIENCE: Duration = Duration::from_secs(20);

/// Who waits for which answer.
#[derive(Clone, Default)]
pub struct Listener {
    waiting: Arc<Mutex<HashMap<u32, Sender<Vec<u8>>>>>,
}

/// The socket's path, to be removed at the end.
static SOCKET: OnceLock<PathBuf> = OnceLock::new();

/// The socket that askers connect to.
pub struct Door {
    socket: UnixListener,
    waiting: Arc<Mutex<HashMap<u32, Sender<Vec<u8>>>>>,
    control: Arc<UnixStream>,
    numbers: Arc<AtomicU32>,
    askers: Arc<AtomicU32>,
}

impl Listener {
    /// Opens the socket. Requests go to `control` as records.
    pub fn open(&self, control: UnixStream) -> io::Result<Door> {
        let folder = super::folder();
        make_private(&folder)?;
        let path = folder.join(std::process::id().to_string());
        let _ = fs::remove_file(&path);
        let socket = UnixListener::bind(&path)?;
        let _ = SOCKET.set(path);
        // Whoever waits for askers looks at the socket first; one that has gone again must not make it wait.
        socket.set_nonblocking(true)?;
        Ok(Door {
            socket,
            waiting: self.waiting.clone(),
            control: Arc::new(control),
            numbers: Arc::new(AtomicU32::new(1)),
            askers: Arc::default(),
        })
    }

    /// Hands an answer of the kernel to who asked; one that nobody waits for is dropped.
    pub fn answer(&self, payload: &[u8]) {
        let Some(number) = payload.first_chunk().map(|bytes| u32::from_le_bytes(*bytes)) else { return };
        if let Some(asker) = lock(&self.waiting).remove(&number) {
            let _ = asker.send(payload.to_vec());
        }
    }
}

impl Door {
    /// Serves who has come, in a thread of its own.
    pub fn answer(&self) {
        let Ok((asker, _)) = self.socket.accept() else { return };
        if self.askers.load(Ordering::Relaxed) as usize >= ASKERS_MAX {
            return;
        }
        self.askers.fetch_add(1, Ordering::Relaxed);
        let (waiting, control, numbers) = (self.waiting.clone(), self.control.clone(), self.numbers.clone());
        let left = self.askers.clone();
        let _ = thread::Builder::new().spawn(move || {
            // An asker that goes away is its own affair.
            let _ = serve(asker, &waiting, &control, &numbers);
            left.fetch_sub(1, Ordering::Relaxed);
        });
    }

    /// Serves all who come, from a thread of its own.
    pub fn keep(self) -> io::Result<()> {
        thread::Builder::new().spawn(move || {
            while matches!(poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], None), Ok(_) | Err(Errno::INTR)) {
                self.answer();
            }
        })?;
        Ok(())
    }
}

impl AsFd for Door {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Removes the socket.
pub fn stop() {
    if let Some(path) = SOCKET.get() {
        let _ = fs::remove_file(path);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes the folder, for this user alone; refuses one that belongs to somebody else.
pub(super) fn make_private(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let meta = fs::symlink_metadata(folder)?;
    if !meta.is_dir() || meta.uid() != rustix::process::getuid().as_raw() {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    if meta.permissions().mode() & 0o7777 == 0o700 {
        return Ok(());
    }
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700))
}

/// Requests of one asker, one at a time: a length (u32), then the payload.
fn serve(
    mut asker: UnixStream,
    waiting: &Mutex<HashMap<u32, Sender<Vec<u8>>>>,
    control: &UnixStream,
    numbers: &AtomicU32,
) -> io::Result<()> {
    loop {
        let mut length = [0; 4];
        asker.read_exact(&mut length)?;
        let length = u32::from_le_bytes(length) as usize;
        if !(HEAD_BYTES..=REQUEST_BYTES_MAX).contains(&length) {
            return Ok(());
        }
        let mut request = vec![0; length];
        asker.read_exact(&mut request)?;
        let number = numbers.fetch_add(1, Ordering::Relaxed);
        request[..4].copy_from_slice(&number.to_le_bytes());
        let (sender, answers) = mpsc::channel();
        lock(waiting).insert(number, sender);
        let mut record = Vec::new();
        Record::Request(&request).encode(&mut record);
        // Whole or not at all: the records of the window's size go the same way.
        rustix::net::send(control, &record, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)?;
        let answer = answers.recv_timeout(PATIENCE);
        lock(waiting).remove(&number);
        let answer = answer.map_err(|_| io::ErrorKind::TimedOut)?;
        asker.write_all(&(answer.len() as u32).to_le_bytes())?;
        asker.write_all(&answer)?;
    }
}
