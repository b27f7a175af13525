//! Who uses a volume.

use alloc::sync::Arc;

use kernel::file::{Node, Volume};
use kernel::space::AreaLabel;

use crate::emulator::Unix;
use crate::task::process::Process;

/// Whether a process stands in the volume, runs from it, or has a file of it open or mapped.
pub fn is_used(unix: &Unix, volume: &Arc<Volume>) -> bool {
    let inside = |node: &Arc<Node>| Arc::ptr_eq(node.volume(), volume);
    unix.tasks.processes().any(|process| {
        let place = process.place.borrow().borrow().clone();
        inside(&place.root)
            || inside(&place.directory)
            || process.executable.borrow().as_ref().is_some_and(inside)
            || has_open(&process, &inside)
            || is_mapped(&process, volume)
    })
}

fn has_open(process: &Process, inside: &dyn Fn(&Arc<Node>) -> bool) -> bool {
    let mut found = false;
    process.each_files(|files| {
        found |= files.list().any(|(_, file)| file.node().is_some_and(inside));
    });
    found
}

fn is_mapped(process: &Process, volume: &Volume) -> bool {
    let Some(space) = process.space() else { return false };
    let (major, minor) = volume.device();
    let space = space.borrow();
    space.areas().any(|area| match area.label {
        AreaLabel::Backing(backing) => {
            let identity = backing.identity();
            identity.inode != 0 && (identity.device_major, identity.device_minor) == (major, minor)
        }
        _ => false,
    })
}
