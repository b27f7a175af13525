//! All tasks and processes, by their numbers.

use alloc::sync::Arc;
use core::ops::Bound;

use machine::{KernelCell, KernelSlots, NoMemory, Ordered, TteId};

use crate::task::process::{Family, Process};
use crate::task::thread::Task;
use crate::tunables::Tunables;

pub struct TaskTable {
    state: KernelCell<State>,
    by_thread: KernelSlots<Task>,
}

struct State {
    tasks: Ordered<u32, Arc<Task>>,
    processes: Ordered<u32, Arc<Process>>,
    /// Who is in a group, by the group's number and its own.
    groups: Ordered<(u32, u32), Arc<Process>>,
    /// The same of sessions.
    sessions: Ordered<(u32, u32), ()>,
    last_id: u32,
    created: u64,
}

impl TaskTable {
    pub const fn new() -> TaskTable {
        let state = State {
            tasks: Ordered::new(),
            processes: Ordered::new(),
            groups: Ordered::new(),
            sessions: Ordered::new(),
            last_id: 0,
            created: 0,
        };
        TaskTable { state: KernelCell::new(state), by_thread: KernelSlots::new() }
    }

    /// A number that no task, process, group or session uses; `None` when there are too many tasks, or no number is left.
    pub fn take_id(&self, limits: &Tunables) -> Option<u32> {
        let mut state = self.state.borrow_mut();
        if state.tasks.len() as u64 >= limits.tasks.get() {
            return None;
        }
        let numbers = limits.process_ids.get() as u32;
        for _ in 0..numbers {
            state.last_id = if state.last_id + 1 >= numbers { 300 } else { state.last_id + 1 };
            let id = state.last_id;
            let used = state.tasks.get(&id).is_some()
                || state.processes.get(&id).is_some()
                || has_members(&state.groups, id)
                || has_members(&state.sessions, id);
            if !used {
                state.created += 1;
                return Some(id);
            }
        }
        None
    }

    /// Makes sure that a task that runs as this thread can be added.
    pub fn make_room(&self, thread: TteId) -> Result<(), NoMemory> {
        self.by_thread.make_room(thread.0 as usize)
    }

    /// Room was made for it.
    pub fn add_task(&self, task: &Arc<Task>) {
        self.by_thread.set(task.thread.id().0 as usize, Some(task.clone()));
        self.state.borrow_mut().tasks.put(task.tid, task.clone());
    }

    pub fn remove_task(&self, task: &Task) {
        self.by_thread.set(task.thread.id().0 as usize, None);
        self.state.borrow_mut().tasks.remove(&task.tid);
    }

    pub fn add_process(&self, process: &Arc<Process>) {
        self.state.borrow_mut().processes.put(process.pid, process.clone());
        self.join(process);
    }

    pub fn remove_process(&self, process: &Process) {
        self.leave(process);
        self.state.borrow_mut().processes.remove(&process.pid);
    }

    /// Changes a process's group and session.
    pub fn set_family(&self, process: &Arc<Process>, family: Family) {
        self.leave(process);
        process.family.set(family);
        self.join(process);
    }

    fn join(&self, process: &Arc<Process>) {
        let (family, mut state) = (process.family.get(), self.state.borrow_mut());
        state.groups.put((family.group, process.pid), process.clone());
        state.sessions.put((family.session, process.pid), ());
    }

    fn leave(&self, process: &Process) {
        let (family, mut state) = (process.family.get(), self.state.borrow_mut());
        state.groups.remove(&(family.group, process.pid));
        state.sessions.remove(&(family.session, process.pid));
    }

    /// The processes of a group, those that have ended among them.
    /// Others may come and go meanwhile.
    pub fn group(&self, group: u32) -> impl Iterator<Item = Arc<Process>> + '_ {
        let mut from = 0;
        core::iter::from_fn(move || {
            let state = self.state.borrow();
            let first = (group, from);
            let ((of, pid), process) = state.groups.range(Bound::Included(&first)).next()?;
            from = pid + 1;
            (*of == group).then(|| process.clone())
        })
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

    /// All processes, in the order of their numbers. Others may come and go meanwhile.
    pub fn processes(&self) -> impl Iterator<Item = Arc<Process>> + '_ {
        let mut from = 0;
        core::iter::from_fn(move || {
            let state = self.state.borrow();
            let (pid, process) = state.processes.range(Bound::Included(&from)).next()?;
            from = pid + 1;
            Some(process.clone())
        })
    }

    /// Shows all processes; as `processes`, without a copy. Nothing that is done meanwhile may add or remove one.
    pub fn each_process(&self, mut visit: impl FnMut(&Arc<Process>)) {
        self.state.borrow().processes.iter().for_each(|(_, process)| visit(process));
    }

    /// The process with the next higher number.
    pub fn process_after(&self, pid: u32) -> Option<Arc<Process>> {
        let state = self.state.borrow();
        state.processes.range(Bound::Excluded(&pid)).next().map(|(_, process)| process.clone())
    }

    /// Something that anybody's synthesized opens may have been folded from has changed: a shared root directory, who may open a
    /// terminal or gets it.
    pub fn unbind_opens(&self) {
        self.processes().for_each(|process| process.unbind_opens());
    }

    /// Numbers of tasks and processes from `first` on, in order. Others may come and go meanwhile.
    pub fn numbers_from(&self, first: u32) -> impl Iterator<Item = u32> + '_ {
        let mut from = first;
        core::iter::from_fn(move || {
            let state = self.state.borrow();
            let task = state.tasks.range(Bound::Included(&from)).next().map(|(number, _)| *number);
            // A process without a task of its number: its first thread has ended.
            let process = state.processes.range(Bound::Included(&from)).next().map(|(number, _)| *number);
            let number = task.into_iter().chain(process).min()?;
            from = number + 1;
            Some(number)
        })
    }

    pub fn task_count(&self) -> usize {
        self.state.borrow().tasks.len()
    }

    pub fn process_count(&self) -> usize {
        self.state.borrow().processes.len()
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

fn has_members<V>(relations: &Ordered<(u32, u32), V>, number: u32) -> bool {
    relations.range(Bound::Included(&(number, 0))).next().is_some_and(|((of, _), _)| *of == number)
}
