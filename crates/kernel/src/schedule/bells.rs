//! Procedures that alarms call.

use alloc::sync::Arc;

use machine::{NoMemory, TryGrow};

use super::{AlarmCall, Bell, Scheduler};

impl Scheduler {
    /// Makes sure that the next `add_bell` finds room, and that it can be forgotten again.
    pub fn make_bell_room(&self) -> Result<(), NoMemory> {
        let mut bells = self.bells.borrow_mut();
        let count = bells.len() + 1;
        let mut free = self.free_bells.borrow_mut();
        let missing = count - free.len();
        free.room_for(missing)?;
        bells.room_for(1)
    }

    /// Makes a procedure known that alarms can call; room was made for it.
    pub fn add_bell(&self, call: Arc<dyn AlarmCall>) -> Bell {
        let mut bells = self.bells.borrow_mut();
        let free = self.free_bells.borrow_mut().pop();
        if let Some(Bell(free)) = free {
            bells[free as usize] = Some(call);
            return Bell(free);
        }
        bells.put(Some(call));
        Bell(bells.len() as u32 - 1)
    }

    /// Forgets it. No alarm for it is set any more.
    pub fn remove_bell(&self, bell: Bell) {
        let call = self.bells.borrow_mut()[bell.0 as usize].take();
        self.free_bells.borrow_mut().put(bell);
        drop(call);
    }
}
