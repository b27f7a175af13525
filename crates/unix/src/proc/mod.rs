//! /proc and /sys: what the kernel knows, as files (Linux `proc(5)`, `sysfs(5)`).
//!
//! Nothing here is stored. A name is looked up in a table of entries, or in a table of the emulator;
//! the text of a file is made when it is opened.
//!
//! ```text
//!   tree.rs          directories that are tables of entries
//!   root.rs          /proc itself: the table, and a directory for each process
//!   process.rs       /proc/PID and /proc/PID/task/TID
//!   status.rs        stat, statm, status
//!   accounts.rs      limits, io, settings of one process
//!   memory.rs        maps, smaps, cmdline, environ, auxv
//!   descriptors.rs   fd and fdinfo; opening a file again through its descriptor
//!   mounts.rs        mounts, mountinfo
//!   system.rs        the machine: meminfo, stat, uptime, ...
//!   processor.rs     cpuinfo
//!   settings.rs      /proc/sys
//!   synthesis.rs     gauges and synthesized code
//!   interrupts.rs    interrupts: what handling one costs
//!   pumps.rs         pumps: the kernel's own threads between two streams
//!   devices.rs       /sys
//! ```

mod accounts;
pub(crate) mod descriptors;
mod devices;
#[cfg(feature = "failing")]
mod failing;
mod interrupts;
pub mod memory;
mod mounts;
mod net;
mod process;
mod processor;
mod pumps;
mod root;
mod settings;
mod status;
mod synthesis;
mod system;
mod text;
mod tree;

use alloc::sync::Arc;

use abi::Errno;
use kernel::file::{
    Credentials, FinalLink, MAGIC_PROC, MAGIC_SYSFS, Mount, NewNode, Node, View, VirtualDirectory, Volume,
};

use crate::emulator::Unix;

/// Mounts /proc and /sys. Errors: those of [`kernel::file::Namespace::mount`].
pub fn mount(unix: &'static Unix) -> Result<(), Errno> {
    let proc_volume = Volume::on_demand(unix.pool, MAGIC_PROC)?;
    mount_at(unix, b"/proc", &proc_volume, Arc::new(root::Root { unix }), b"proc")?;
    let sys_volume = Volume::on_demand(unix.pool, MAGIC_SYSFS)?;
    mount_at(unix, b"/sys", &sys_volume, devices::root(unix), b"sysfs")
}

fn mount_at(
    unix: &'static Unix,
    path: &[u8],
    volume: &Arc<Volume>,
    directory: Arc<dyn VirtualDirectory>,
    kind: &[u8],
) -> Result<(), Errno> {
    let new = NewNode { mode: 0o555, user: 0, group: 0, now: unix.wall_time() };
    let root = Node::virtual_root(volume, directory, new)?;
    let credentials = Credentials::root();
    let top = unix.names.root();
    let view = View::new(top, top, &credentials);
    let point = unix.names.lookup(view, path, FinalLink::Follow)?;
    let (source, kind, options) = (kind.into(), kind.into(), [].as_slice().into());
    unix.names.mount(Mount { point, root, source, kind, options })
}
