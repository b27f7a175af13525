//! What families of calls keep for the machine as a whole.

use crate::calls::InotifyUsers;
use crate::tunables::Tunables;

pub struct Families {
    pub tunables: Tunables,
    pub inotify: InotifyUsers,
}

impl Families {
    pub const fn new() -> Families {
        Families { tunables: Tunables::new(), inotify: InotifyUsers::new() }
    }
}
