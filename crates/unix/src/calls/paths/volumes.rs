//! What a file system is: statfs, fstatfs.

use abi::Errno;
use abi::file::{
    PIPEFS_MAGIC, ST_NOATIME, ST_NODEV, ST_NODIRATIME, ST_NOEXEC, ST_NOSUID, ST_NOSYMFOLLOW, ST_RDONLY, ST_RELATIME,
    ST_SYNCHRONOUS, ST_VALID, Statfs,
};
use kernel::file::{AccessTimes, FinalLink, Node, Rules};
use machine::Room;

use super::HERE;
use super::locate::lookup;
use crate::call::{Call, CallResult};

pub fn statfs(call: &Call<'_>, path: u64, address: u64) -> CallResult {
    let path = call.read_path(path)?;
    let node = lookup(call, HERE, &path, FinalLink::Follow)?;
    call.write(address, &record(&node)?).map(|()| 0)
}

pub fn fstatfs(call: &Call<'_>, descriptor: u64, address: u64) -> CallResult {
    let file = call.any_file(descriptor)?;
    let record = file.node().map_or_else(|| Ok(nameless()), |node| record(node))?;
    call.write(address, &record).map(|()| 0)
}

fn record(node: &Node) -> Result<Statfs, Errno> {
    let numbers = node.volume().numbers();
    if let Some(room) = node.room() {
        return Ok(record_outside(&room?));
    }
    Ok(Statfs {
        f_type: numbers.magic as i64,
        f_bsize: numbers.block_bytes as i64,
        f_blocks: numbers.blocks as i64,
        f_bfree: numbers.blocks_free as i64,
        f_bavail: numbers.blocks_free as i64,
        f_files: numbers.nodes as i64,
        f_ffree: numbers.nodes_free as i64,
        f_fsid: [numbers.device.1 as i32, 0],
        f_namelen: numbers.name_bytes_max as i64,
        f_frsize: numbers.block_bytes as i64,
        f_flags: i64::from(flags(node.volume().rules())),
        ..Statfs::zeroed()
    })
}

fn flags(rules: Rules) -> u32 {
    let known = [
        (rules.is_read_only(), ST_RDONLY),
        (rules.no_set_id, ST_NOSUID),
        (rules.no_devices, ST_NODEV),
        (rules.no_execute, ST_NOEXEC),
        (rules.synchronous, ST_SYNCHRONOUS),
        (rules.access_times == AccessTimes::Never, ST_NOATIME),
        (rules.no_directory_times, ST_NODIRATIME),
        (rules.access_times == AccessTimes::Relative, ST_RELATIME),
        (rules.no_follow, ST_NOSYMFOLLOW),
    ];
    known.iter().filter(|(holds, _)| *holds).fold(ST_VALID, |flags, (_, flag)| flags | flag)
}

fn record_outside(room: &Room) -> Statfs {
    Statfs {
        f_type: room.magic as i64,
        f_bsize: room.block_bytes as i64,
        f_blocks: room.blocks as i64,
        f_bfree: room.blocks_free as i64,
        f_bavail: room.blocks_available as i64,
        f_files: room.nodes as i64,
        f_ffree: room.nodes_free as i64,
        f_namelen: room.name_bytes_max as i64,
        f_frsize: room.block_bytes as i64,
        f_flags: room.flags as i64,
        ..Statfs::zeroed()
    }
}

/// The file system of pipes and other streams without a path.
fn nameless() -> Statfs {
    let flags = i64::from(ST_VALID);
    Statfs {
        f_type: PIPEFS_MAGIC as i64,
        f_bsize: 4096,
        f_frsize: 4096,
        f_namelen: 255,
        f_flags: flags,
        ..Statfs::zeroed()
    }
}
