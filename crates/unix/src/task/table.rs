//! All tasks and processes, by their numbers.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use machine::{KernelCell, TteId};

use super::{Process, Task};
use crate::limits::{PROCESS_ID_MAX, TASKS_MAX};

pub struct TaskTable(KernelCell<State>);

struct State {
    by_thread: Vec<Option<Arc<Task>>>,
    tasks: BTreeMap<u32, Arc<Task>>,
    processes: BTreeMap<u32, Arc<Process>>,
    last_id: u32,
    created: u64,
}

impl TaskTable {
    pub const fn new() -> TaskTable {
        TaskTable(KernelCell::new(State {
            by_thread: Vec::new(),
            tasks: BTreeMap::new(),
            processes: BTreeMap::new(),
            last_id: 0,
            created: 0,
        }))
    }

    /// A number that no task, process, group or session uses; `None` when there are too many tasks.
    pub fn take_id(&self) -> Option<u32> {
        let mut state = self.0.borrow_mut();
        if state.tasks.len() >= TASKS_MAX {
            return None;
        }
        loop {
            state.last_id = if state.last_id >= PROCESS_ID_MAX { 300 } else { state.last_id + 1 };
            let id = state.last_id;
            let used = state.tasks.contains_key(&id)
                || state.processes.values().any(|process| {
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
        let mut state = self.0.borrow_mut();
        let index = task.thread.id().0 as usize;
        if state.by_thread.len() <= index {
            state.by_thread.resize(index + 1, None);
        }
        state.by_thread[index] = Some(task.clone());
        state.tasks.insert(task.tid, task.clone());
    }

    pub fn remove_task(&self, task: &Task) {
        let mut state = self.0.borrow_mut();
        state.by_thread[task.thread.id().0 as usize] = None;
        state.tasks.remove(&task.tid);
    }

    pub fn add_process(&self, process: &Arc<Process>) {
        self.0.borrow_mut().processes.insert(process.pid, process.clone());
    }

    pub fn remove_process(&self, pid: u32) {
        self.0.borrow_mut().processes.remove(&pid);
    }

    /// The task that runs as this thread; `None` for the kernel's own threads.
    pub fn of_thread(&self, id: TteId) -> Option<Arc<Task>> {
        self.0.borrow().by_thread.get(id.0 as usize)?.clone()
    }

    pub fn task(&self, tid: u32) -> Option<Arc<Task>> {
        self.0.borrow().tasks.get(&tid).cloned()
    }

    pub fn process(&self, pid: u32) -> Option<Arc<Process>> {
        self.0.borrow().processes.get(&pid).cloned()
    }

    pub fn processes(&self) -> Vec<Arc<Process>> {
        self.0.borrow().processes.values().cloned().collect()
    }

    pub fn task_count(&self) -> usize {
        self.0.borrow().tasks.len()
    }

    /// The number that was given last.
    pub fn last_id(&self) -> u32 {
        self.0.borrow().last_id
    }

    /// Tasks ever created, for /proc/loadavg and /proc/stat.
    pub fn created(&self) -> u64 {
        self.0.borrow().created
    }
}
