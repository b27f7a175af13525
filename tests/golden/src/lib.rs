//! tmp
pub fn all() -> usize { machine_pc::thread_templates().len() + machine_pc::call_templates().len() + kernel::call::templates().len() }
