//! All tasks and processes, by their numbers.

use alloc::sync::Arc;
use alloc::vec::Vec;

use machine::{KernelCell, KernelSlots, Sorted, TteId};

use super::{Process, Task};
use crate::limits::{PROCESS_ID_MAX, TASKS_MAX};

pub struct TaskTable {
    state: KernelCell<State>,
    by_thread: KernelSlots<Task>,
}

struct State {
    tasks: Sorted<u32, Arc<Task>>,
    processes: Sorted<u32, Arc<Process>>,
    last_id: u32,
    created: u64,
}

impl TaskTable {
    pub const fn new() -> TaskTable {
        let state = State { tasks: Sorted::new(), processes: Sorted::new(), last_id: 0, created: 0 };
        TaskTable { state: KernelCell::new(state), by_thread: KernelSlots::new() }
    }

    /// A number that no task, process, group or session uses; `None` when there are too many tasks.
    pub fn take_id(&self) -> Option<u32> {
        let mut state = self.state.borrow_mut();
        if state.tasks.entries().len() >= TASKS_MAX {
            return None;
        }
        loop {
            state.last_id = if state.last_id >= PROCESS_ID_MAX { 300 } else { state.last_id + 1 };
            let id = state.last_id;
            let used = state.tasks.get(&id).is_some()
                || state.processes.entries().iter().any(|(_, process)| {
                    let family = process.family.get();
                    process.pid == id || family.group == id || family.session == id
                });
            if !used {
                state.created += 1;
                return Some(id);
            }
        }
    }

    pub fn add_task(&self, task: &Arc<Task>) {
        self.by_thread.set(task.thread.id().0 as usize, Some(task.clone()));
        self.state.borrow_mut().tasks.insert(task.tid, task.clone());
    }

    pub fn remove_task(&self, task: &Task) {
        self.by_thread.set(task.thread.id().0 as usize, None);
        self.state.borrow_mut().tasks.remove(&task.tid);
    }

    pub fn add_process(&self, process: &Arc<Process>) {
        self.state.borrow_mut().processes.insert(process.pid, process.clone());
    }

    pub fn remove_process(&self, pid: u32) {
        self.state.borrow_mut().processes.remove(&pid);
    }

    /// The task that runs as this thread; `None` for the kernel's own threads.
    #[inline]
    pub fn of_thread(&self, id: TteId) -> Option<Arc<Task>> {
        self.by_thread.get(id.0 as usize)
    }

    pub fn task(&self, tid: u32) -> Option<Arc<Task>> {
        self.state.borrow().tasks.get(&tid).cloned()
    }

    pub fn process(&self, pid: u32) -> Option<Arc<Process>> {
        self.state.borrow().processes.get(&pid).cloned()
    }

    pub fn processes(&self) -> Vec<Arc<Process>> {
        self.state.borrow().processes.entries().iter().map(|(_, process)| process.clone()).collect()
    }

    /// Something that anybody's synthesized opens may have been folded from has changed: a shared root directory, who may open a
    /// terminal or gets it.
    pub fn unbind_opens(&self) {
        self.processes().iter().for_each(|process| process.unbind_opens());
    }

    /// Numbers of tasks and processes from `first` on, in order.
    pub fn numbers_from(&self, first: u32) -> Vec<u32> {
        let state = self.state.borrow();
        let tasks = state.tasks.entries().iter().map(|(number, _)| *number);
        // A process without a task of its number: its first thread has ended.
        let processes = state.processes.entries().iter().map(|(number, _)| *number);
        let mut numbers: Vec<u32> = tasks.filter(|number| *number >= first).collect();
        for number in processes.filter(|number| *number >= first) {
            if let Err(place) = numbers.binary_search(&number) {
                numbers.insert(place, number);
            }
        }
        numbers
    }

    pub fn task_count(&self) -> usize {
        self.state.borrow().tasks.entries().len()
    }

    pub fn process_count(&self) -> usize {
        self.state.borrow().processes.entries().len()
    }

    /// The number that was given last.
    pub fn last_id(&self) -> u32 {
        self.state.borrow().last_id
    }

    /// Tasks ever created, for /proc/loadavg and /proc/stat.
    pub fn created(&self) -> u64 {
        self.state.borrow().created
    }
}
