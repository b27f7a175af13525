//! What families of calls keep for the machine as a whole.

use machine::KernelCell;

use crate::calls::aio::context::Contexts;
use crate::calls::descriptors::signal_driven::SignalDriven;
use crate::calls::inotify::users::InotifyUsers;
use crate::calls::mqueue::open::QueueNames;
use crate::calls::sysv::messages::Queues;
use crate::calls::sysv::objects::Objects;
use crate::calls::sysv::semaphores::Sets;
use crate::core_names::CoreNames;
use crate::tunables::Tunables;

pub struct Families {
    pub tunables: Tunables,
    pub inotify: InotifyUsers,
    pub semaphores: Sets,
    pub messages: Queues,
    pub queue_names: QueueNames,
    pub aio: Contexts,
    pub signal_driven: SignalDriven,
    pub core_names: CoreNames,
}

impl Families {
    pub const fn new() -> Families {
        Families {
            tunables: Tunables::new(),
            inotify: InotifyUsers::new(),
            semaphores: Sets::new(),
            messages: KernelCell::new(Objects::new()),
            queue_names: QueueNames::new(),
            aio: Contexts::new(),
            signal_driven: SignalDriven::new(),
            core_names: CoreNames::new(),
        }
    }
}
