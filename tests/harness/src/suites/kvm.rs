//! A choice of the other suites' cases on a machine that KVM runs: where the processor does by itself what the translator of the
//! monitor does otherwise (traps, vector state, page tables, the local APIC, KVM's clock).
//!
//! Without a KVM that the processor backs it says why and tries nothing. `tests/README.md` tells how to run it inside a virtual
//! machine that has one.

use std::fs::{self, OpenOptions};
use std::path::Path;

use super::{comparison, streams};
use crate::options::Options;
use crate::report::Tally;

/// Names of cases, each with the start of many: what depends on the machine, and a few of each kind of the rest. It is short
/// because a machine inside a machine that is translated takes a minute for what others do in a second.
const CHOICE: &[&str] = &[
    "faults/faults/",
    "semantics/signals/",
    "semantics/mm/",
    "semantics/vector/",
    "semantics/turns/",
    "differential/dash/",
    "differential/mixed/",
    "streams/exit_statuses",
    "streams/stdout_and_stderr_are_separate",
    "streams/a_megabyte_through_a_dynamic_cat",
    "streams/a_kernel_panic_leaves_its_epitaph",
];
/// Where the host itself is translated, its Linux is no oracle for these: QEMU before 9.1 reads frames of far returns with the
/// wrong rights, which kills the host's program or its kernel.
const NO_ORACLE_WHEN_TRANSLATED: &[&str] = &["/interrupt_return", "/compatible_segment"];

/// Runs the choice.
///
/// # Errors
/// A sentence when a suite could not be tried at all.
pub fn run(options: &Options, tally: &mut Tally) -> Result<(), String> {
    if let Some(why) = objection(options) {
        tally.skip("kvm", &why);
        return Ok(());
    }
    let mut options = options.clone();
    options.runner.extend(["--accel".into(), "kvm".into()]);
    options.choice = CHOICE;
    if fs::read_to_string("/proc/cpuinfo").is_ok_and(|text| text.contains("QEMU TCG")) {
        options.left_out = NO_ORACLE_WHEN_TRANSLATED;
        NO_ORACLE_WHEN_TRANSLATED.iter().for_each(|name| tally.skip(name, "this host's processor is translated"));
    }
    for suite in [comparison::Suite::Faults, comparison::Suite::Semantics, comparison::Suite::Differential] {
        comparison::run(suite, &options, tally)?;
    }
    streams::run_all(&options, tally)
}

/// Why there is nothing to try here.
fn objection(options: &Options) -> Option<String> {
    if options.is_hosted() {
        return Some("the hosted machine has no use for KVM".into());
    }
    if let Err(error) = OpenOptions::new().read(true).write(true).open("/dev/kvm") {
        return Some(format!("/dev/kvm does not open: {error}"));
    }
    let is_backed = ["kvm_amd", "kvm_intel"].iter().any(|name| Path::new("/sys/module").join(name).is_dir());
    (!is_backed).then(|| "neither kvm_amd nor kvm_intel is behind /dev/kvm".into())
}
