//! When a node was read, written and changed.

use super::super::attributes::{SET_GROUP, SET_USER, Time};
use super::super::credentials::Credentials;
use super::super::rules::AccessTimes;
use super::{Data, Node};
use abi::process::CAP_FSETID;

impl Node {
    /// The times change now: what machine code left comes before, and the next read looks at them again.
    pub(super) fn forget_noted(&self) {
        self.settle_times();
        if let Data::Regular(content) = &self.data {
            content.words().read_is_noted.set(0);
        }
    }

    /// Notes the times that machine code has left as counter values.
    pub(super) fn settle_times(&self) {
        let Data::Regular(content) = &self.data else { return };
        let (written, read) = (content.words().written_at.take(), content.words().read_at.take());
        if written == 0 && read == 0 {
            return;
        }
        if written != 0 {
            content.note_written();
        }
        let Some(clock) = self.volume.clock() else { return };
        let mut meta = self.meta.borrow_mut();
        if written != 0 {
            let time = clock.time_of_counter(written);
            meta.modified = meta.modified.max(time);
            meta.changed = meta.changed.max(time);
        }
        // A routine notes only what moves the time under the relative rule.
        let keeps = self.volume.rules().access_times == AccessTimes::Never || self.volume.is_read_only();
        if read != 0 && !keeps {
            meta.accessed = meta.accessed.max(clock.time_of_counter(read));
        }
    }

    /// Notes that data was read: the access time moves if the volume's rules say so.
    pub fn note_read(&self, now: Time) {
        if self.is_elsewhere() {
            return;
        }
        self.settle_times();
        let mut meta = self.meta.borrow_mut();
        if let Some(time) = self.volume.rules().access_time(&meta, self.is_directory(), now) {
            meta.accessed = time;
        }
        if let Data::Regular(content) = &self.data {
            content.words().read_is_noted.set(1);
        }
    }

    /// Notes that data was written by `who`: the times move, and a writer without privilege takes
    /// away set-user and set-group, so that a changed program cannot keep them.
    pub fn note_write(&self, who: &Credentials, now: Time) {
        if self.is_elsewhere() {
            return;
        }
        self.forget_noted();
        let mut meta = self.meta.borrow_mut();
        meta.modified = now;
        meta.changed = now;
        if !who.can(CAP_FSETID) && meta.mode & (SET_USER | SET_GROUP) != 0 {
            meta.mode &= !SET_USER;
            if meta.mode & 0o010 != 0 {
                meta.mode &= !SET_GROUP;
            }
        }
    }

    /// Notes that names in this directory changed.
    pub(in super::super) fn note_names_changed(&self, now: Time) {
        self.change_meta(|meta| {
            meta.modified = now;
            meta.changed = now;
        });
    }
}
