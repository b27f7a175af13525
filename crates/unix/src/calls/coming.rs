//! Pages that must come first: who asks for one sleeps where it holds nothing, and then does the whole thing anew.
//!
//! A copy to or from a program never sleeps. It ends early, and what it met is noted with the task. Whoever made the copy has either
//! done nothing yet or takes it back, waits for what is noted, and begins again ([`anew`], [`kernel::stream::Io::copy_in`]).

use alloc::sync::Arc;

use abi::Errno;
use kernel::file::Content;
use kernel::space::{Coming, FaultKind, MapError, Space};
use kernel::stream::Caller;
use machine::{Held, KernelCell, VirtAddr};

use crate::call::Call;
use crate::emulator::Unix;
use crate::task::thread::{Awaited, Task};

impl Caller for Task {
    fn is_interrupted(&self) -> bool {
        Task::is_interrupted(self)
    }

    #[cold]
    fn await_page(&self, held: Held<'_>) -> Result<(), Errno> {
        let Awaited { coming, failure } = self.take_awaited().ok_or(Errno::EFAULT)?;
        wait(held, self, &coming).map_err(|error| if error == Errno::EINTR { error } else { failure })
    }
}

fn wait(held: Held<'_>, task: &Task, coming: &Coming) -> Result<(), Errno> {
    let scheduler = kernel::schedule::Scheduler::the().ok_or(Errno::EIO)?;
    coming.wait(held, scheduler, &|| task.is_ending())
}

/// Stores to the memory of a thread that is to end, for those who share it. False: it has no such memory.
pub fn store_at_end(held: Held<'_>, unix: &Unix, task: &Task, address: u64, bytes: &[u8]) -> bool {
    while unix.machine.copy_out(VirtAddr(address), bytes).is_err() {
        if task.await_at_end(held).is_err() {
            return false;
        }
    }
    true
}

impl Task {
    /// As `await_page`, of a thread that is to end: others wait for what it has to say.
    #[cold]
    pub fn await_at_end(&self, held: Held<'_>) -> Result<(), Errno> {
        let Awaited { coming, .. } = self.take_awaited().ok_or(Errno::EFAULT)?;
        let scheduler = kernel::schedule::Scheduler::the().ok_or(Errno::EIO)?;
        coming.wait(held, scheduler, &|| false)
    }

    /// A page of the task's own memory that it has met on the way.
    #[cold]
    pub fn met_coming(&self, coming: Option<Coming>) {
        let awaited = coming.map(|coming| Awaited { coming, failure: Errno::EFAULT });
        self.note_awaited(awaited);
    }
}

/// Does `attempt` until it meets no page that must come first. An attempt that met one has left nothing behind.
pub fn anew<R>(call: &Call<'_>, mut attempt: impl FnMut() -> Result<R, Errno>) -> Result<R, Errno> {
    call.task.forget_awaited();
    loop {
        let result = attempt();
        if !call.task.is_awaiting() {
            return result;
        }
        call.task.await_page(call.held)?;
    }
}

/// For an attempt: the pages of a file's bytes `from..from + bytes` are here. Error: they are not, and the task has noted what to
/// wait for; or there is no room for them.
#[inline]
pub fn bring(call: &Call<'_>, content: &Content, from: u64, bytes: usize) -> Result<(), Errno> {
    if content.is_kept() { note(call, content.bring(from..from.saturating_add(bytes as u64))?) } else { Ok(()) }
}

/// The same for the pages at the edges of a range that is going to be cut off or cleared.
pub fn bring_edges(call: &Call<'_>, content: &Content, range: core::ops::Range<u64>) -> Result<(), Errno> {
    note(call, content.bring_edges(range)?)
}

#[cold]
fn note(call: &Call<'_>, coming: Option<Coming>) -> Result<(), Errno> {
    let Some(coming) = coming else { return Ok(()) };
    call.task.note_awaited(Some(Awaited { coming, failure: Errno::EIO }));
    Err(Errno::EIO)
}

/// The program touched a page that must come first, and sleeps until it is here. False: it could not be had.
#[cold]
pub fn await_fault(held: Held<'_>, task: &Arc<Task>) -> bool {
    // It tries the same instruction again, or ends before that.
    let is_here =
        task.take_awaited().is_none_or(|awaited| !matches!(wait(held, task, &awaited.coming), Err(Errno::EIO)));
    task.last_fault.set(if is_here { None } else { Some(FaultKind::Failed) });
    is_here
}

impl Unix {
    /// Sleeps for the calling thread, if it is a program's. Errors: `EIO`; `EINTR` when the thread is to end.
    pub fn await_coming(&self, held: Held<'_>, coming: &Coming) -> Result<(), Errno> {
        let task = self.tasks.of_thread(self.machine.current_tte());
        coming.wait(held, self.scheduler, &|| task.as_ref().is_some_and(|task| task.is_ending()))
    }

    /// Reaches into a quaspace that may be another program's; sleeps where a page must come first.
    pub fn reach<R>(
        &self,
        held: Held<'_>,
        space: &KernelCell<Space>,
        mut act: impl FnMut(&mut Space) -> Result<R, FaultKind>,
    ) -> Result<R, FaultKind> {
        loop {
            let (result, coming) = {
                let mut space = space.borrow_mut();
                let result = act(&mut space);
                (result, space.take_coming())
            };
            match (result, coming) {
                (Err(FaultKind::Coming), Some(coming)) => {
                    self.await_coming(held, &coming).map_err(|_| FaultKind::Failed)?;
                }
                (result, _) => return result,
            }
        }
    }

    /// As `reach`, for an attempt that does not sleep itself ([`anew`]): the running thread's task notes what to wait for.
    pub fn reach_now<R>(
        &self,
        space: &KernelCell<Space>,
        act: impl FnOnce(&mut Space) -> Result<R, FaultKind>,
    ) -> Result<R, FaultKind> {
        let (result, coming) = {
            let mut space = space.borrow_mut();
            let result = act(&mut space);
            (result, space.take_coming())
        };
        if let (Err(FaultKind::Coming), Some(coming)) = (&result, coming)
            && let Some(task) = self.tasks.of_thread(self.machine.current_tte())
        {
            task.note_awaited(Some(Awaited { coming, failure: Errno::EIO }));
        }
        result
    }

    /// As `reach`, for what changes areas.
    pub fn change(
        &self,
        held: Held<'_>,
        space: &KernelCell<Space>,
        mut act: impl FnMut(&mut Space) -> Result<(), MapError>,
    ) -> Result<(), Errno> {
        loop {
            let (result, coming) = {
                let mut space = space.borrow_mut();
                let result = act(&mut space);
                (result, space.take_coming())
            };
            match (result, coming) {
                (Err(MapError::Coming), Some(coming)) => self.await_coming(held, &coming)?,
                (result, _) => return result.map_err(super::memory::errno_of),
            }
        }
    }
}
