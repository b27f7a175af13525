//! What a volume as a whole allows, whatever the modes of its nodes say.

use super::attributes::{Meta, Time};

/// When reading moves a node's access time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum AccessTimes {
    /// When it is not newer than the last change, or is a day old (Linux `relatime`).
    #[default]
    Relative,
    /// Each time (`strictatime`).
    Strict,
    /// Not at all (`noatime`).
    Never,
}

/// The rules of a volume. Linux knows them as flags of a mount.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Rules {
    /// Nothing may be changed through a path (`EROFS`): the mount says so, or the volume itself does.
    pub mount_read_only: bool,
    pub volume_read_only: bool,
    /// Set-user and set-group bits give a program nothing (`nosuid`).
    pub no_set_id: bool,
    /// Devices cannot be opened (`nodev`).
    pub no_devices: bool,
    /// Nothing is executed, nor mapped to be executed (`noexec`).
    pub no_execute: bool,
    /// Symlinks are not followed (`nosymfollow`).
    pub no_follow: bool,
    pub access_times: AccessTimes,
    /// Reading a directory does not move its access time (`nodiratime`).
    pub no_directory_times: bool,
    /// These three ask for what is always so in memory: nothing is ever later on the medium than in the file.
    pub synchronous: bool,
    pub directories_synchronous: bool,
    pub lazy_times: bool,
}

impl Rules {
    pub fn is_read_only(self) -> bool {
        self.mount_read_only || self.volume_read_only
    }

    /// The access time of a node that is read at `now`, if that moves it.
    pub(super) fn access_time(self, meta: &Meta, is_directory: bool, now: Time) -> Option<Time> {
        const DAY_SECONDS: i64 = 86_400;
        let is_stale = meta.accessed <= meta.modified
            || meta.accessed <= meta.changed
            || now.seconds.saturating_sub(meta.accessed.seconds) >= DAY_SECONDS;
        let moves = match self.access_times {
            AccessTimes::Never => false,
            AccessTimes::Strict => true,
            AccessTimes::Relative => is_stale,
        };
        let is_kept = self.is_read_only() || is_directory && self.no_directory_times;
        (moves && !is_kept).then_some(now)
    }
}
